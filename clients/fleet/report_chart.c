/* report_chart.c: the signatures as a chart: a bar a signature, a panel a model and origin. One SVG
 * file that needs nothing else. Bars are named and counted in words, so that no color has to be
 * told from another. */
#include "clients/fleet/report_chart.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_BARS = 24, /* of a panel; the rest is one bar more */
    MAX_PANELS = 12,
    LABEL_BYTES = 40,
    WIDTH = 860,
    LEFT = 250,  /* where the bars begin */
    RIGHT = 120, /* room for what stands behind a bar */
    BAR = 16,
    STEP = 22,
    HEAD = 62,  /* above the first panel */
    TITLE = 34, /* of a panel, above its bars */
    AXIS = 52,  /* below its bars */
    TICKS = 5
};

struct bar {
    char label[LABEL_BYTES];
    int64_t count;
    bool ambiguous;
};

struct panel {
    char model[100];
    char origin[16];
    int64_t total;
    uint32_t bar_count;
    uint32_t rest_count; /* signatures beyond MAX_BARS */
    int64_t rest;        /* their GPUs */
    struct bar bars[MAX_BARS];
};

struct report_chart {
    struct panel panels[MAX_PANELS];
    uint32_t count;
    uint32_t left_out; /* panels */
};

/* A label that fits: cut between characters. */
static void label(const char *text, char *out)
{
    size_t n = strlen(text);

    if (n < LABEL_BYTES) {
        memcpy(out, text, n + 1);
        return;
    }
    n = LABEL_BYTES - 4;
    while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--;
    (void)snprintf(out, LABEL_BYTES, "%.*s...", (int)n, text);
}

enum status report_chart_row(void *self, int columns, const char *const *values, struct err *err)
{
    enum { MODEL = 0, ORIGIN, SIGNATURE, GPUS, PERCENT, CANDIDATES, CANDIDATE_COUNT, PEOPLE };
    struct report_chart *const c = self;
    struct panel *p = c->count ? &c->panels[c->count - 1] : NULL;
    const int64_t n = strtoll(values[GPUS], NULL, 10);

    (void)columns;
    (void)err;
    if (strcmp(values[PEOPLE], "0") != 0)
        return STATUS_OK;
    if (!p || strcmp(p->model, values[MODEL]) != 0 || strcmp(p->origin, values[ORIGIN]) != 0) {
        if (c->count == MAX_PANELS) {
            c->left_out++;
            return STATUS_OK;
        }
        p = &c->panels[c->count++];
        (void)snprintf(p->model, sizeof(p->model), "%s", values[MODEL]);
        (void)snprintf(p->origin, sizeof(p->origin), "%s", values[ORIGIN]);
    }
    p->total += n;
    if (p->bar_count == MAX_BARS) {
        p->rest_count++;
        p->rest += n;
        return STATUS_OK;
    }
    struct bar *const b = &p->bars[p->bar_count++];
    label(values[SIGNATURE], b->label);
    b->count = n;
    b->ambiguous = values[CANDIDATE_COUNT] && strcmp(values[CANDIDATE_COUNT], "1") != 0;
    return STATUS_OK;
}

static uint32_t rows_of(const struct panel *p)
{
    return p->bar_count + (p->rest_count ? 1 : 0);
}

/* A round step for the axis, so that there are at most TICKS of them. */
static int64_t tick_step(int64_t most)
{
    static const int64_t factors[] = {1, 2, 5};

    for (int64_t scale = 1;; scale *= 10) {
        for (size_t i = 0; i < sizeof(factors) / sizeof(*factors); i++) {
            if (factors[i] * scale * TICKS >= most)
                return factors[i] * scale;
        }
    }
}

static void put_bar(FILE *out, const struct bar *b, const struct panel *p, double y, double per_gpu,
                    const char *color)
{
    fprintf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", LEFT - 8, y + BAR - 4);
    report_put_xml(out, b->label);
    fprintf(out,
            "</text><rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" fill=\"%s\"><title>",
            LEFT, y, (double)b->count * per_gpu, BAR, color);
    report_put_xml(out, b->label);
    fprintf(out, ": %" PRId64 "</title></rect>", b->count);
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\">%" PRId64 " (%.1f%%)%s</text>\n",
            LEFT + (double)b->count * per_gpu + 6, y + BAR - 4, b->count,
            100.0 * (double)b->count / (double)p->total, b->ambiguous ? " *" : "");
}

static void put_axis(FILE *out, int64_t most, double top, double bottom, double per_gpu)
{
    const int64_t step = tick_step(most);

    for (int64_t v = 0; v <= most; v += step) {
        const double x = LEFT + (double)v * per_gpu;
        fprintf(out,
                "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>"
                "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" fill=\"#555\">%" PRId64
                "</text>\n",
                x, top, x, bottom + 4, v ? "#e4e4e4" : "#333", x, bottom + 18, v);
    }
    fprintf(out,
            "<text x=\"%d\" y=\"%.1f\" text-anchor=\"middle\" fill=\"#555\">GPUs</text>\n"
            "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\" fill=\"#555\">signature of the disabled "
            "SMs</text>\n",
            (LEFT + WIDTH - RIGHT) / 2, bottom + 36, LEFT - 8, bottom + 18);
}

static void put_panel(FILE *out, const struct panel *p, double y)
{
    const bool simulated = strcmp(p->origin, "simulated") == 0;
    const char *const color = simulated ? "#b07a2a" : "#2f6ea5";
    const double top = y + TITLE;
    const double bottom = top + (double)rows_of(p) * STEP;
    int64_t most = p->rest;

    for (uint32_t i = 0; i < p->bar_count; i++)
        most = p->bars[i].count > most ? p->bars[i].count : most;
    const double per_gpu = (double)(WIDTH - LEFT - RIGHT) / (double)(most > 0 ? most : 1);
    fprintf(out, "<text x=\"20\" y=\"%.1f\" font-size=\"15\" font-weight=\"bold\">", y + 18);
    report_put_xml(out, p->model);
    fprintf(out, ", %s: %" PRId64 " GPUs</text>\n", simulated ? "SIMULATED" : p->origin, p->total);
    put_axis(out, most, top, bottom, per_gpu);
    for (uint32_t i = 0; i < p->bar_count; i++)
        put_bar(out, &p->bars[i], p, top + i * STEP + 3, per_gpu, color);
    if (p->rest_count) {
        struct bar rest = {.count = p->rest};
        (void)snprintf(rest.label, sizeof(rest.label), "(%u others)", p->rest_count);
        put_bar(out, &rest, p, top + p->bar_count * STEP + 3, per_gpu, "#999");
    }
}

static void put_chart(FILE *out, const struct report_chart *c, const struct report_head *head)
{
    double height = HEAD + 30;
    double y = HEAD;

    for (uint32_t i = 0; i < c->count; i++)
        height += TITLE + AXIS + (double)rows_of(&c->panels[i]) * STEP;
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" "
            "viewBox=\"0 0 %d %.0f\" font-family=\"sans-serif\" font-size=\"12\" role=\"img\">\n"
            "<title>Signatures of disabled SMs, survey %" PRId64 "</title>\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
            "<text x=\"20\" y=\"28\" font-size=\"18\" font-weight=\"bold\">Signatures of the "
            "disabled SMs</text>\n<text x=\"20\" y=\"48\" fill=\"#555\">survey %" PRId64 " of ",
            WIDTH, height, WIDTH, height, head->survey, head->survey);
    report_put_xml(out, head->at);
    fprintf(out, ", %" PRId64 " GPUs of %" PRId64 " hosts%s</text>\n", head->gpus, head->hosts,
            !head->simulated ? ""
            : head->measured ? "; simulated ones in panels of their own"
                             : "; all of them SIMULATED");
    for (uint32_t i = 0; i < c->count; i++) {
        put_panel(out, &c->panels[i], y);
        y += TITLE + AXIS + (double)rows_of(&c->panels[i]) * STEP;
    }
    fprintf(out,
            "<text x=\"20\" y=\"%.1f\" fill=\"#555\">* several sets of SMs would leave this "
            "pattern%s</text>\n</svg>\n",
            y + 14, c->left_out ? "; more models than fit here: --model shows one" : "");
}

struct report_chart *report_chart_new(void)
{
    return calloc(1, sizeof(struct report_chart));
}

enum status report_chart_print(const struct report_chart *chart, const struct report_head *head,
                               FILE *out, struct err *err)
{
    put_chart(out, chart, head);
    if (fflush(out) != 0 || ferror(out))
        return err_set(err, STATUS_IO, "the chart cannot be written");
    return STATUS_OK;
}
