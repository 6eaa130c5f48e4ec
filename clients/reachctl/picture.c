/* picture.c: SVG on standard output: a chip as nested boxes, and the curve of a fingerprint.
 *
 * The pictures are plain SVG: they contain no script, no style sheet and no link. Texts can come
 * from a driver or a file, so they are sanitized and escaped. The palette is from Okabe and Ito,
 * which color-blind readers can distinguish, and no meaning depends on a color alone. All lengths
 * are in units of the picture.
 */
#include "clients/reachctl/picture.h"

#include "base/text.h"
#include "base/format_size.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES = 512, MARGIN = 24 };

#define INK    "fill=\"#1a1f24\""
#define QUIET  "fill=\"#59636e\"" /* a contrast of 6 : 1 on white */
#define LINE   "stroke=\"#d0d7de\""
#define MIDDLE " text-anchor=\"middle\""
#define END    " text-anchor=\"end\""
#define BOLD   " font-weight=\"600\""
#define ABSENT "fill=\"none\" stroke=\"#8c959f\" stroke-dasharray=\"3 2\""

#define PRINTF(at) __attribute__((format(printf, (at), (at) + 1)))

/* ---- elements ---- */

/* Returns a color that is dark enough for lines on white. The colors repeat after seven. */
static const char *palette_color(unsigned i)
{
    static const char *const colors[] = {"#0072b2", "#d55e00", "#009e73", "#a6548a",
                                         "#b87d00", "#3a8fc0", "#5b5b5b"};

    return colors[i % (sizeof(colors) / sizeof(*colors))];
}

__attribute__((format(printf, 1, 0))) static void put_text(const char *format, va_list arguments)
{
    char text[TEXT_BYTES];

    (void)vsnprintf(text, sizeof(text), format, arguments);
    text_sanitize(text);
    text_put_xml(stdout, text);
}

/* Writes an element that contains a text. */
static PRINTF(2) void put_element(const char *name, const char *format, ...)
{
    va_list arguments;

    printf("<%s>", name);
    va_start(arguments, format);
    put_text(format, arguments);
    va_end(arguments);
    printf("</%.*s>\n", (int)strcspn(name, " "), name);
}

static PRINTF(5) void put_label(double x, double y, double size, const char *attributes,
                                const char *format, ...)
{
    va_list arguments;

    printf("<text x=\"%.1f\" y=\"%.1f\" font-size=\"%.1f\" %s>", x, y, size, attributes);
    va_start(arguments, format);
    put_text(format, arguments);
    va_end(arguments);
    puts("</text>");
}

/* Writes a rectangle with the attributes that `format` describes. */
static PRINTF(6) void put_rect(double x, double y, double width, double height, double radius,
                               const char *format, ...)
{
    va_list arguments;

    printf("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"%.1f\" ", x, y, width,
           height, radius);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    puts("/>");
}

static void put_line(double x1, double y1, double x2, double y2, const char *attributes)
{
    printf("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x1, y1, x2, y2,
           attributes);
}

/* Writes the head of a picture. `description` is for screen readers. `more` precedes the origin and
 * the id of the fingerprint. */
static void begin_picture(double width, double height, const char *title, const char *description,
                          const char *more, const struct fingerprint *fp, const char *id)
{
    printf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
           "height=\"%.0f\" role=\"img\" aria-labelledby=\"title desc\" font-family=\"system-ui, "
           "'DejaVu Sans', 'Helvetica Neue', Arial, sans-serif\">\n",
           width, height, width, height);
    put_element("title id=\"title\"", "%s", title);
    put_element("desc id=\"desc\"", "%s", description);
    put_rect(0, 0, width, height, 0, "fill=\"#fff\"");
    put_label(MARGIN, 38, 20, INK BOLD, "%s", title);
    put_label(MARGIN, 60, 12.5, QUIET, "%s%s%s, fingerprint %s", more,
              fp->gpu.origin == ORIGIN_MEASURED ? "" : "NOT OF THIS HARDWARE: ",
              origin_name(fp->gpu.origin), id);
}

/* ---- a chip: the classes of groups, the groups, the SMs ---- */

/* SMs come in pairs of neighboring ids, so a row of a group has two or four SMs. */
enum {
    SM_WIDTH = 36,
    SM_HEIGHT = 21,
    SM_GAP = 3,
    GROUP_PAD = 7,
    GROUP_HEAD = 19,
    GROUP_GAP = 10,
    CLASS_PAD = 12,
    CLASS_HEAD = 26,
    CLASS_GAP = 16,
    MAP_TOP = 78,
    LEGEND_ROW = 24,
    MIN_WIDTH = 640,
    MAX_CLASSES = 8,
};

/* Boxes of one size that are laid out in rows. */
struct grid {
    uint32_t columns;
    double width; /* width of a box */
    double height;
    double gap;
};

struct map_layout {
    uint32_t classes;
    uint32_t in_class[MAX_CLASSES]; /* groups */
    bool lacks_any;
    uint32_t legend_rows;
    struct grid sms, groups, class_boxes;
};

static double grid_x(const struct grid *g, uint32_t i)
{
    return i % g->columns * (g->width + g->gap);
}

static double grid_y(const struct grid *g, uint32_t i)
{
    const uint32_t row = i / g->columns;

    return row * (g->height + g->gap);
}

/* Returns the height of `count` boxes, without a gap at the end. */
static double grid_height(const struct grid *g, uint32_t count)
{
    return grid_y(g, count + g->columns - 1) - g->gap;
}

static double grid_width(const struct grid *g)
{
    return g->columns * (g->width + g->gap) - g->gap;
}

static uint32_t group_class(const struct chip *chip, const struct map_layout *l, uint32_t group)
{
    const struct maybe_u32 class = chip->fp.topology.groups[group].penalty_class;

    return l->classes > 1 && IS_KNOWN(class) && class.v < l->classes ? class.v : 0;
}

static bool has_windows(const struct chip *chip)
{
    return chip->planned && chip->plan.window_count > 0;
}

static struct map_layout lay_out(const struct chip *chip)
{
    const struct maybe_u32 classes = chip->fp.topology.penalty_classes;
    struct map_layout l = {.classes = 1};
    uint32_t places = 1; /* SMs of a full group */
    uint32_t most = 1;   /* the largest number of groups in a class */

    if (IS_KNOWN(classes) && classes.v >= 1 && classes.v <= MAX_CLASSES)
        l.classes = classes.v;
    for (uint32_t g = 0; g < chip->group_count; g++) {
        const uint32_t lacks = chip_group_lacks(chip, g);
        const uint32_t full = chip->fp.topology.groups[g].sm_count + lacks;
        const uint32_t count = ++l.in_class[group_class(chip, &l, g)];
        places = full > places ? full : places;
        most = count > most ? count : most;
        l.lacks_any |= lacks > 0;
    }
    l.legend_rows = (has_windows(chip) ? chip->plan.window_count : 1) + l.lacks_any;
    l.sms = (struct grid){.columns = places == 1    ? 1
                                     : places <= 8  ? 2
                                     : places <= 32 ? 4
                                                    : 8,
                          .width = SM_WIDTH,
                          .height = SM_HEIGHT,
                          .gap = SM_GAP};
    l.groups = (struct grid){.width = 2 * GROUP_PAD + grid_width(&l.sms),
                             .height = GROUP_HEAD + GROUP_PAD + grid_height(&l.sms, places),
                             .gap = GROUP_GAP};
    l.groups.columns =
        (uint32_t)ceil(sqrt(most * (l.groups.height + GROUP_GAP) / (l.groups.width + GROUP_GAP) *
                            (l.classes > 1 ? 1.0 : 2.0)));
    l.groups.columns = l.groups.columns < 1 ? 1 : l.groups.columns < most ? l.groups.columns : most;
    l.class_boxes = (struct grid){.columns = l.classes > 1 ? 2 : 1,
                                  .width = 2 * CLASS_PAD + grid_width(&l.groups),
                                  .height = CLASS_HEAD + CLASS_PAD + grid_height(&l.groups, most),
                                  .gap = CLASS_GAP};
    return l;
}

/* Draws one place of a group, which is dashed if it has no SM. */
static void draw_place(double x, double y, const char *color, const uint16_t *sm)
{
    if (sm) {
        put_rect(x, y, SM_WIDTH, SM_HEIGHT, 3, "fill=\"#fff\" stroke=\"%s\" stroke-width=\".8\"",
                 color);
        put_label(x + SM_WIDTH / 2.0, y + 15, 11.5, INK MIDDLE, "%u", *sm);
    } else {
        put_rect(x, y, SM_WIDTH, SM_HEIGHT, 3, ABSENT);
        put_label(x + SM_WIDTH / 2.0, y + 15, 11, "fill=\"#6e7781\"" MIDDLE, "–");
    }
}

static void draw_group(const struct chip *chip, const struct map_layout *l, uint32_t group,
                       double x, double y)
{
    const int window = chip->window_of_group[group];
    const char *const color =
        window == CHIP_NO_WINDOW ? "#6e7781" : palette_color((unsigned)window);
    const uint32_t lacks = chip_group_lacks(chip, group);
    uint16_t sms[REACH_MAX_SMS];
    const uint32_t count = chip_group_sms(chip, group, sms);
    char list[TEXT_BYTES / 2];
    char name[32] = "no window";

    if (window != CHIP_NO_WINDOW)
        (void)snprintf(name, sizeof(name), "window %d", window);
    fputs("<g>", stdout);
    put_element("title", "group %u, %s: SMs %s%s", group, name,
                chip_format_list(sms, count, list, sizeof(list)),
                lacks > 0 ? "; some of a full group are not there" : "");
    put_rect(x, y, l->groups.width, l->groups.height, 5,
             "fill=\"%s\" fill-opacity=\".16\" stroke=\"%s\" stroke-width=\"1.4\"", color, color);
    put_label(x + GROUP_PAD, y + 13.5, 10.5, INK, "%u", group);
    if (window != CHIP_NO_WINDOW)
        put_label(x + l->groups.width - GROUP_PAD, y + 13.5, 10.5, INK END BOLD, "w%d", window);
    for (uint32_t i = 0; i < count + lacks; i++)
        draw_place(x + GROUP_PAD + grid_x(&l->sms, i), y + GROUP_HEAD + grid_y(&l->sms, i), color,
                   i < count ? &sms[i] : NULL);
    puts("</g>");
}

static void draw_class(const struct chip *chip, const struct map_layout *l, uint32_t class)
{
    const double x = MARGIN + grid_x(&l->class_boxes, class);
    const double y = MAP_TOP + grid_y(&l->class_boxes, class);
    double least = INFINITY;
    double most = 0;
    char costs[64] = "";
    uint32_t place = 0;

    for (uint32_t g = 0; g < chip->group_count; g++) {
        const struct maybe_f64 cost = chip->fp.topology.groups[g].miss_penalty_cycles;
        if (group_class(chip, l, g) == class && IS_KNOWN(cost)) {
            least = fmin(least, cost.v);
            most = fmax(most, cost.v);
        }
    }
    if (most > 0)
        (void)snprintf(costs, sizeof(costs), ": a miss costs %.0f to %.0f cycles", least, most);
    put_rect(x, y, l->class_boxes.width, l->class_boxes.height, 8, "fill=\"#f6f8fa\" " LINE);
    put_label(x + CLASS_PAD, y + 18, 12, QUIET, "%u groups%s", l->in_class[class], costs);
    for (uint32_t g = 0; g < chip->group_count; g++) {
        if (group_class(chip, l, g) != class)
            continue;
        draw_group(chip, l, g, x + CLASS_PAD + grid_x(&l->groups, place),
                   y + CLASS_HEAD + grid_y(&l->groups, place));
        place++;
    }
}

static void draw_legend(const struct chip *chip, const struct map_layout *l, double y)
{
    for (uint32_t i = 0; has_windows(chip) && i < chip->plan.window_count; i++, y += LEGEND_ROW) {
        const struct placement_window *const w = &chip->plan.windows[i];
        char first[FORMAT_SIZE_BYTES];
        char last[FORMAT_SIZE_BYTES];
        char length[FORMAT_SIZE_BYTES];
        put_rect(MARGIN, y, 26, 16, 3,
                 "fill=\"%s\" fill-opacity=\".25\" stroke=\"%s\" stroke-width=\"1.4\"",
                 palette_color(i), palette_color(i));
        put_label(MARGIN + 13, y + 12, 10.5, INK MIDDLE BOLD, "w%u", i);
        put_label(MARGIN + 38, y + 12.5, 12.5, INK,
                  "window %u: %s, from %s to %s; %u SMs in %u groups", i,
                  format_size(w->length_bytes, length), format_size(w->first_byte, first),
                  format_size(w->first_byte + w->length_bytes, last), w->sm_count, w->group_count);
    }
    if (!has_windows(chip)) {
        put_label(MARGIN, y + 12.5, 12.5, INK, "no windows: %.300s",
                  chip->planned ? chip->plan.reason : chip->why.text);
        y += LEGEND_ROW;
    }
    if (l->lacks_any) {
        put_rect(MARGIN, y, 26, 16, 3, ABSENT);
        put_label(MARGIN + 38, y + 12.5, 12.5, INK, "an SM of a full group that is not there");
    }
}

void picture_map(const struct chip *chip)
{
    const struct gpu_identity *const gpu = &chip->fp.gpu;
    const struct map_layout l = lay_out(chip);
    const double legend_top = MAP_TOP + grid_height(&l.class_boxes, l.classes) + CLASS_GAP + 14;
    char size[FORMAT_SIZE_BYTES];
    char title[TEXT_BYTES];
    char groups[64] = "; the SMs that share a TLB are unknown";
    char windows[64] = "";

    if (chip->group_count > 0)
        (void)snprintf(groups, sizeof(groups), " in %u groups that share a TLB", chip->group_count);
    if (has_windows(chip))
        (void)snprintf(windows, sizeof(windows), "%u windows over %s; ", chip->plan.window_count,
                       format_size(chip->bytes, size));
    (void)snprintf(title, sizeof(title), "%s: %u SMs%s", gpu->name, gpu->sm_count, groups);
    begin_picture(
        fmax(2 * MARGIN + grid_width(&l.class_boxes), MIN_WIDTH),
        legend_top + l.legend_rows * LEGEND_ROW + MARGIN + 8, title,
        "Each box is a group of SMs with their ids; its color and the label w0, w1, ... are the "
        "window of memory in which the group works. A dashed place is an SM of a full group "
        "that is not there.",
        windows, &chip->fp, chip->id);
    for (uint32_t c = 0; chip->group_count > 0 && c < l.classes; c++)
        draw_class(chip, &l, c);
    draw_legend(chip, &l, legend_top);
    puts("</svg>");
}

/* ---- a curve: the measured points are its corners, nothing is smoothed ---- */

enum {
    WIDTH = 916,
    HEIGHT = 470,
    LEFT = 74,
    RIGHT = WIDTH - 218, /* the names of the lines are to the right of it */
    TOP = 92,
    BOTTOM = HEIGHT - 62,
    LINES = 3,
    NAME_HEIGHT = 30,
};

struct plot {
    const struct throughput *t;
    double max_bytes;
    double max_gbps;
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

static struct maybe_f64 point_value(const struct curve_point *p, int line)
{
    struct maybe_f64 v;

    memcpy(&v, (const char *)p + lines[line].offset, sizeof(v));
    return v;
}

static double plot_x(const struct plot *p, double bytes)
{
    return LEFT + (RIGHT - LEFT) * bytes / p->max_bytes;
}

static double plot_y(const struct plot *p, double gbps)
{
    return BOTTOM - (BOTTOM - TOP) * gbps / p->max_gbps;
}

/* Returns a round step that divides `most` into at most six parts. */
static double axis_step(double most)
{
    const double power = pow(10, floor(log10(most / 6)));
    const double n = most / 6 / power;

    return power * (n <= 1 ? 1 : n <= 2 ? 2 : n <= 5 ? 5 : 10);
}

static void draw_axes(const struct plot *p, struct maybe_u64 reach)
{
    const double step = axis_step(p->max_gbps);
    const double bytes_step = exp2(ceil(log2(p->max_bytes / 9)));
    char text[FORMAT_SIZE_BYTES];

    for (int i = 0; i * step <= p->max_gbps * 1.0001; i++) {
        const double v = i * step;
        put_line(LEFT, plot_y(p, v), RIGHT, plot_y(p, v), LINE);
        put_label(LEFT - 8, plot_y(p, v) + 4, 12, QUIET END, "%.0f", v);
    }
    for (int i = 0; i * bytes_step <= p->max_bytes * 1.0001; i++) {
        const double b = i * bytes_step;
        put_line(plot_x(p, b), BOTTOM, plot_x(p, b), BOTTOM + 5, "stroke=\"#59636e\"");
        put_label(plot_x(p, b), BOTTOM + 20, 12, QUIET MIDDLE, "%s",
                  b > 0 ? format_size((uint64_t)b, text) : "0");
    }
    put_label(LEFT, TOP - 14, 12, QUIET, "GB/s");
    put_label((LEFT + RIGHT) / 2.0, HEIGHT - 16, 12, QUIET MIDDLE, "memory that is read at random");
    if (IS_KNOWN(reach) && (double)reach.v <= p->max_bytes) {
        const double x = plot_x(p, (double)reach.v);
        put_line(x, TOP - 6, x, BOTTOM,
                 "stroke=\"#1a1f24\" stroke-width=\"1.2\" stroke-dasharray=\"1 3\"");
        put_label(x - 7, TOP - 10, 12, INK END, "reach of a TLB: %s", format_size(reach.v, text));
    }
}

/* Draws a line. Returns the last known value of the line, at which its name is written. */
static struct maybe_f64 draw_line(const struct plot *p, int line)
{
    const char *const color = palette_color(lines[line].color);
    struct maybe_f64 last = UNKNOWN_F64(REASON_NOT_MEASURED);

    fputs("<g>", stdout);
    put_element("title", "%s: %s", lines[line].name, lines[line].more);
    printf(
        "<path fill=\"none\" stroke=\"%s\" stroke-width=\"2.4\" stroke-linejoin=\"round\"%s d=\"",
        color, lines[line].dashes);
    for (uint32_t i = 0; i < p->t->curve_count; i++) {
        const struct maybe_f64 v = point_value(&p->t->curve[i], line);
        if (!IS_KNOWN(v))
            continue;
        printf("%s%.1f %.1f", IS_KNOWN(last) ? " L" : "M",
               plot_x(p, (double)p->t->curve[i].region_bytes), plot_y(p, v.v));
        last = v;
    }
    puts("\"/>");
    for (uint32_t i = 0; i < p->t->curve_count; i++) {
        const struct maybe_f64 v = point_value(&p->t->curve[i], line);
        if (IS_KNOWN(v))
            printf("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"#fff\" stroke=\"%s\" "
                   "stroke-width=\"1.6\"/>\n",
                   plot_x(p, (double)p->t->curve[i].region_bytes), plot_y(p, v.v), color);
    }
    puts("</g>");
    return last;
}

/* Writes the names at the ends of the lines, the highest first, so that none overlaps another. */
static void draw_names(const struct plot *p, struct maybe_f64 last[LINES])
{
    double y = TOP - NAME_HEIGHT;

    for (int n = 0; n < LINES; n++) {
        char attributes[64];
        int next = 0;
        for (int i = 1; i < LINES; i++) {
            if (IS_KNOWN(last[i]) && (!IS_KNOWN(last[next]) || last[i].v > last[next].v))
                next = i;
        }
        if (!IS_KNOWN(last[next]))
            return;
        y = fmax(plot_y(p, last[next].v), y + NAME_HEIGHT);
        (void)snprintf(attributes, sizeof(attributes), "fill=\"%s\"" BOLD,
                       palette_color(lines[next].color));
        put_label(RIGHT + 12, y + 2, 12.5, attributes, "%s: %.0f", lines[next].name, last[next].v);
        put_label(RIGHT + 12, y + 15, 11, QUIET, "%s", lines[next].more);
        last[next] = UNKNOWN_F64(REASON_NOT_MEASURED);
    }
}

/* Writes the description: "Random reads over 139.8 GiB: windows by group 4213 GB/s; ...". */
static void write_description(const struct plot *p, char out[TEXT_BYTES])
{
    const struct curve_point *const last = &p->t->curve[p->t->curve_count - 1];
    char bytes[FORMAT_SIZE_BYTES];
    int n =
        snprintf(out, TEXT_BYTES, "Random reads over %s:", format_size(last->region_bytes, bytes));

    for (int i = 0; i < LINES; i++) {
        const struct maybe_f64 v = point_value(last, i);
        if (IS_KNOWN(v) && n < TEXT_BYTES)
            n += snprintf(out + n, TEXT_BYTES - (size_t)n, " %s %.0f GB/s;", lines[i].name, v.v);
    }
    if (IS_KNOWN(p->t->plateau_gbps) && n < TEXT_BYTES)
        (void)snprintf(out + n, TEXT_BYTES - (size_t)n, " within the reach %.0f GB/s.",
                       p->t->plateau_gbps.v);
}

bool picture_curve(const struct fingerprint *fp, const char *id)
{
    struct plot p = {.t = &fp->throughput};
    struct maybe_f64 last[LINES];
    char description[TEXT_BYTES];
    char title[TEXT_BYTES];

    for (uint32_t i = 0; i < p.t->curve_count; i++) {
        p.max_bytes = fmax(p.max_bytes, (double)p.t->curve[i].region_bytes);
        for (int line = 0; line < LINES; line++)
            p.max_gbps = fmax(p.max_gbps, point_value(&p.t->curve[i], line).v);
    }
    if (p.max_bytes <= 0 || p.max_gbps <= 0)
        return false;
    p.max_gbps = axis_step(p.max_gbps) * ceil(p.max_gbps / axis_step(p.max_gbps));
    (void)snprintf(title, sizeof(title), "%s: random 128-byte reads", fp->gpu.name);
    write_description(&p, description);
    begin_picture(WIDTH, HEIGHT, title, description, "", fp, id);
    draw_axes(&p, fp->windows.reach_bytes);
    for (int line = LINES - 1; line >= 0; line--)
        last[line] = draw_line(&p, line);
    draw_names(&p, last);
    puts("</svg>");
    return true;
}
