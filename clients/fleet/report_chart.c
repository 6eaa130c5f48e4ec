/* report_chart.c: the signatures as a chart in one SVG file that needs nothing else. What is drawn,
 * and in which order, report_chart.sql says. Bars have names and counts, so that nothing depends
 * on a color. */
#include "clients/fleet/report_chart.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_PANELS = 12, /* of report_chart.sql */
    WIDTH = 860,
    LEFT = 250,  /* where the bars begin */
    RIGHT = 120, /* room for what follows a bar */
    BAR = 16,
    STEP = 22,
    HEAD = 62,  /* above the first panel */
    TITLE = 34, /* of a panel, above its bars */
    AXIS = 52,  /* below its bars */
    TICKS = 5
};

/* A row of report_chart.sql. */
struct bar {
    int64_t panel;
    const char *model;
    const char *origin;
    const char *label;
    int64_t gpus;
    bool others;    /* all signatures that have no bar */
    bool ambiguous; /* several sets of SMs would leave this pattern */
    int64_t panel_gpus;
    int64_t panel_most; /* GPUs of the longest bar */
    int64_t panel_bars;
    int64_t bars;   /* of all panels */
    int64_t panels; /* those that are left out too */
};

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

static double width_of(const struct bar *b, int64_t gpus)
{
    return (double)(WIDTH - LEFT - RIGHT) * (double)gpus / (double)b->panel_most;
}

static void put_head(const struct report_chart *c, int64_t panels, int64_t bars)
{
    const struct report_head *const head = c->head;
    const double height = HEAD + 30 + (double)panels * (TITLE + AXIS) + (double)bars * STEP;

    fprintf(c->out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" "
            "viewBox=\"0 0 %d %.0f\" font-family=\"sans-serif\" font-size=\"12\" role=\"img\">\n"
            "<title>Signatures of disabled SMs, survey %" PRId64 "</title>\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
            "<text x=\"20\" y=\"28\" font-size=\"18\" font-weight=\"bold\">Signatures of the "
            "disabled SMs</text>\n<text x=\"20\" y=\"48\" fill=\"#555\">survey %" PRId64 " of ",
            WIDTH, height, WIDTH, height, head->survey, head->survey);
    report_put_xml(c->out, head->at);
    fprintf(c->out, ", %" PRId64 " GPUs of %" PRId64 " hosts%s</text>\n", head->gpus, head->hosts,
            !head->simulated ? ""
            : head->measured ? "; simulated ones in panels of their own"
                             : "; all of them SIMULATED");
}

static void put_axis(FILE *out, const struct bar *b, double top)
{
    const double bottom = top + (double)b->panel_bars * STEP;

    for (int64_t v = 0; v <= b->panel_most; v += tick_step(b->panel_most)) {
        const double x = LEFT + width_of(b, v);
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

static void put_title(FILE *out, const struct bar *b, double y)
{
    fprintf(out, "<text x=\"20\" y=\"%.1f\" font-size=\"15\" font-weight=\"bold\">", y + 18);
    report_put_xml(out, b->model);
    fprintf(out, ", %s: %" PRId64 " GPUs</text>\n",
            strcmp(b->origin, "simulated") == 0 ? "SIMULATED" : b->origin, b->panel_gpus);
}

static void put_bar(FILE *out, const struct bar *b, double y)
{
    const double width = width_of(b, b->gpus);
    const char *const color = b->others                             ? "#999"
                              : strcmp(b->origin, "simulated") == 0 ? "#b07a2a"
                                                                    : "#2f6ea5";

    fprintf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", LEFT - 8, y + BAR - 4);
    report_put_xml(out, b->label);
    fprintf(out,
            "</text><rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" fill=\"%s\"><title>",
            LEFT, y, width, BAR, color);
    report_put_xml(out, b->label);
    fprintf(out, ": %" PRId64 "</title></rect>", b->gpus);
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\">%" PRId64 " (%.1f%%)%s</text>\n", LEFT + width + 6,
            y + BAR - 4, b->gpus, 100.0 * (double)b->gpus / (double)b->panel_gpus,
            b->ambiguous ? " *" : "");
}

enum status report_chart_row(void *self, int columns, const char *const *values, struct err *err)
{
    struct report_chart *const c = self;
    const struct bar b = {strtoll(values[0], NULL, 10),
                          values[1],
                          values[2],
                          values[3],
                          strtoll(values[4], NULL, 10),
                          values[5][0] == '1',
                          values[6][0] == '1',
                          strtoll(values[7], NULL, 10),
                          strtoll(values[8], NULL, 10),
                          strtoll(values[9], NULL, 10),
                          strtoll(values[10], NULL, 10),
                          strtoll(values[11], NULL, 10)};

    (void)columns;
    (void)err;
    c->left_out = b.panels > MAX_PANELS;
    if (c->panels == 0) {
        put_head(c, c->left_out ? MAX_PANELS : b.panels, b.bars);
        c->y = HEAD - AXIS;
    }
    if (b.panel > c->panels) {
        c->panels = b.panel;
        c->y += AXIS;
        put_title(c->out, &b, c->y);
        c->y += TITLE;
        put_axis(c->out, &b, c->y);
    }
    put_bar(c->out, &b, c->y + 3);
    c->y += STEP;
    return STATUS_OK;
}

enum status report_chart_end(struct report_chart *chart, struct err *err)
{
    if (chart->panels == 0) {
        put_head(chart, 0, 0);
        chart->y = HEAD - AXIS;
    }
    fprintf(chart->out,
            "<text x=\"20\" y=\"%.1f\" fill=\"#555\">* several sets of SMs would leave this "
            "pattern%s</text>\n</svg>\n",
            chart->y + AXIS + 14,
            chart->left_out ? "; more models than fit here: --model shows one" : "");
    if (fflush(chart->out) != 0 || ferror(chart->out))
        return err_set(err, STATUS_IO, "cannot write the chart");
    return STATUS_OK;
}
