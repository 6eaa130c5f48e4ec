/* picture_curve.c: the curve of a fingerprint as lines over bytes. The measured points are the
 * corners; nothing is smoothed. */
#include "clients/reachctl/picture.h"
#include "clients/reachctl/svg.h"

#include "base/units.h"
#include "planner/format_size.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    WIDTH = 916,
    HEIGHT = 470,
    LEFT = 74,
    RIGHT = 218, /* the names of the lines */
    TOP = 92,
    BOTTOM = 62,
    LINES = 3,
    LABEL_HEIGHT = 30,
};

struct plot {
    const struct throughput *t;
    double most_bytes;
    double most_gbps;
};

static const struct {
    const char *name;
    const char *more;
    const char *dashes;
    unsigned color;
    size_t offset;
} lines[LINES] = {
    {"windows by group", "SMs that share a TLB", "", 0,
     offsetof(struct curve_point, by_group_gbps)},
    {"windows by SM id", "groups disregarded", " stroke-dasharray=\"2 3\"", 6,
     offsetof(struct curve_point, by_sm_gbps)},
    {"naive", "any SM anywhere", " stroke-dasharray=\"8 3\"", 1,
     offsetof(struct curve_point, naive_gbps)},
};

static struct maybe_f64 value_of(const struct curve_point *p, int line)
{
    struct maybe_f64 v;

    memcpy(&v, (const char *)p + lines[line].offset, sizeof(v));
    return v;
}

static double x_of(const struct plot *p, double bytes)
{
    return LEFT + (WIDTH - LEFT - RIGHT) * bytes / p->most_bytes;
}

static double y_of(const struct plot *p, double gbps)
{
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * gbps / p->most_gbps;
}

/* A round step of which at most six make `most`. */
static double step_of(double most)
{
    const double power = pow(10, floor(log10(most / 6)));
    const double n = most / 6 / power;

    return power * (n <= 1 ? 1 : n <= 2 ? 2 : n <= 5 ? 5 : 10);
}

/* The same in powers of two. */
static double step_of_bytes(double most)
{
    return exp2(ceil(log2(most / 9)));
}

static void draw_axes(const struct plot *p)
{
    const double step = step_of(p->most_gbps);
    const double bytes_step = step_of_bytes(p->most_bytes);
    char text[FORMAT_SIZE_BYTES];

    for (int i = 0; i * step <= p->most_gbps * 1.0001; i++) {
        const double v = i * step;
        svg_line(LEFT, y_of(p, v), WIDTH - RIGHT, y_of(p, v), "stroke=\"" SVG_LINE "\"");
        svg_text(LEFT - 8, y_of(p, v) + 4, 12, "fill=\"" SVG_QUIET "\" text-anchor=\"end\"", "%.0f",
                 v);
    }
    for (int i = 0; i * bytes_step <= p->most_bytes * 1.0001; i++) {
        const double b = i * bytes_step;
        svg_line(x_of(p, b), HEIGHT - BOTTOM, x_of(p, b), HEIGHT - BOTTOM + 5,
                 "stroke=\"" SVG_QUIET "\"");
        svg_text(x_of(p, b), HEIGHT - BOTTOM + 20, 12,
                 "fill=\"" SVG_QUIET "\" text-anchor=\"middle\"", "%s",
                 b > 0 ? format_size((uint64_t)b, text) : "0");
    }
    svg_text(LEFT, TOP - 14, 12, "fill=\"" SVG_QUIET "\"", "GB/s");
    svg_text(LEFT + (WIDTH - LEFT - RIGHT) / 2.0, HEIGHT - 16, 12,
             "fill=\"" SVG_QUIET "\" text-anchor=\"middle\"", "memory that is read at random");
}

static void draw_reach(const struct plot *p, struct maybe_u64 reach)
{
    char size[FORMAT_SIZE_BYTES];
    double x;

    if (!IS_KNOWN(reach) || (double)reach.v > p->most_bytes)
        return;
    x = x_of(p, (double)reach.v);
    svg_line(x, TOP - 6, x, HEIGHT - BOTTOM,
             "stroke=\"" SVG_INK "\" stroke-width=\"1.2\" stroke-dasharray=\"1 3\"");
    svg_text(x - 7, TOP - 10, 12, "fill=\"" SVG_INK "\" text-anchor=\"end\"", "reach of a TLB: %s",
             format_size(reach.v, size));
}

static void draw_line(const struct plot *p, int line)
{
    const char *const color = svg_color(lines[line].color);
    bool first = true;

    svg_group("%s: %s", lines[line].name, lines[line].more);
    svg_raw("<path fill=\"none\" stroke=\"%s\" stroke-width=\"2.4\" stroke-linejoin=\"round\"%s "
            "d=\"",
            color, lines[line].dashes);
    for (uint32_t i = 0; i < p->t->curve_count; i++) {
        const struct maybe_f64 v = value_of(&p->t->curve[i], line);
        if (!IS_KNOWN(v))
            continue;
        svg_raw("%s%.1f %.1f", first ? "M" : " L", x_of(p, (double)p->t->curve[i].region_bytes),
                y_of(p, v.v));
        first = false;
    }
    svg_raw("\"/>\n");
    for (uint32_t i = 0; i < p->t->curve_count; i++) {
        const struct maybe_f64 v = value_of(&p->t->curve[i], line);
        if (IS_KNOWN(v))
            svg_raw("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"#fff\" stroke=\"%s\" "
                    "stroke-width=\"1.6\"/>\n",
                    x_of(p, (double)p->t->curve[i].region_bytes), y_of(p, v.v), color);
    }
    svg_group_end();
}

/* The last known value of a line, which is where its name is. */
static struct maybe_f64 last_of(const struct plot *p, int line)
{
    struct maybe_f64 last = UNKNOWN_F64(REASON_NOT_MEASURED);

    for (uint32_t i = 0; i < p->t->curve_count; i++) {
        const struct maybe_f64 v = value_of(&p->t->curve[i], line);
        if (IS_KNOWN(v))
            last = v;
    }
    return last;
}

/* Names at the ends of the lines, from the highest down, none over another. */
static void draw_names(const struct plot *p)
{
    double below = TOP - LABEL_HEIGHT;
    bool done[LINES] = {false};

    for (int n = 0; n < LINES; n++) {
        int next = -1;
        for (int i = 0; i < LINES; i++) {
            if (!done[i] && IS_KNOWN(last_of(p, i)) &&
                (next < 0 || last_of(p, i).v > last_of(p, next).v))
                next = i;
        }
        if (next < 0)
            return;
        const double y = fmax(y_of(p, last_of(p, next).v), below + LABEL_HEIGHT);
        char attributes[64];
        (void)snprintf(attributes, sizeof(attributes), "fill=\"%s\" font-weight=\"600\"",
                       svg_color(lines[next].color));
        svg_text(WIDTH - RIGHT + 12, y + 2, 12.5, attributes, "%s: %.0f", lines[next].name,
                 last_of(p, next).v);
        svg_text(WIDTH - RIGHT + 12, y + 15, 11, "fill=\"" SVG_QUIET "\"", "%s", lines[next].more);
        below = y;
        done[next] = true;
    }
}

/* "naive reads fall from 4215 to 749 GB/s, windows by group keep 4213": in numbers, for readers. */
static void describe(const struct plot *p, char *out, size_t size)
{
    const struct curve_point *const last = &p->t->curve[p->t->curve_count - 1];
    char bytes[FORMAT_SIZE_BYTES];
    int n = snprintf(out, size, "Random reads over %s:", format_size(last->region_bytes, bytes));

    for (int i = 0; i < LINES; i++) {
        const struct maybe_f64 v = value_of(last, i);
        if (IS_KNOWN(v) && n > 0 && (size_t)n < size)
            n += snprintf(out + n, size - (size_t)n, " %s %.0f GB/s;", lines[i].name, v.v);
    }
    if (IS_KNOWN(p->t->plateau_gbps) && n > 0 && (size_t)n < size)
        (void)snprintf(out + n, size - (size_t)n, " within the reach %.0f GB/s.",
                       p->t->plateau_gbps.v);
}

bool picture_curve(const struct fingerprint *fp, const char *id)
{
    struct plot p = {.t = &fp->throughput};
    char description[SVG_TEXT_BYTES];
    char title[SVG_TEXT_BYTES];

    for (uint32_t i = 0; i < p.t->curve_count; i++) {
        p.most_bytes = fmax(p.most_bytes, (double)p.t->curve[i].region_bytes);
        for (int line = 0; line < LINES; line++)
            p.most_gbps = fmax(p.most_gbps, value_of(&p.t->curve[i], line).v);
    }
    if (p.most_bytes <= 0 || p.most_gbps <= 0)
        return false;
    p.most_gbps = step_of(p.most_gbps) * ceil(p.most_gbps / step_of(p.most_gbps));
    (void)snprintf(title, sizeof(title), "%s: random 128-byte reads", fp->gpu.name);
    describe(&p, description, sizeof(description));
    svg_begin(WIDTH, HEIGHT, title, description);
    svg_text(24, 36, 20, "fill=\"" SVG_INK "\" font-weight=\"600\"", "%s", title);
    svg_text(24, 57, 12.5, "fill=\"" SVG_QUIET "\"", "%s%s, fingerprint %s",
             fp->gpu.origin == ORIGIN_MEASURED ? "" : "NOT OF THIS HARDWARE: ",
             origin_name(fp->gpu.origin), id);
    draw_axes(&p);
    draw_reach(&p, fp->windows.reach_bytes);
    for (int line = LINES - 1; line >= 0; line--)
        draw_line(&p, line);
    draw_names(&p);
    svg_end();
    return true;
}
