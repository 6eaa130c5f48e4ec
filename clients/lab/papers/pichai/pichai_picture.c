/* pichai_picture.c: see pichai_picture.h. Each job and the mean have a group of bars, and each bar
 * has its number. The colors differ in luminance, so bars are distinct without color. */
#include "clients/lab/papers/pichai/pichai_picture.h"

#include <math.h>
#include <stdio.h>

enum {
    BAR = 22,
    GAP_WIDTH = 26,
    HEIGHT = 240,
    LEFT = 50,
    TOP = 60,
    BELOW = 50,
    TICKS = 5,
    LEGEND = 110
};

static const char *const colors[PICHAI_COLUMNS] = {"#08306b", "#2171b5", "#6baed6", "#c6dbef",
                                                   "#7f2704", "#d94801", "#fd8d3c", "#fdd0a2"};

static double largest(const struct pichai_runs *runs, const struct pichai_figure *f)
{
    double most = 0;
    for (uint32_t i = 0; i < f->column_count; i++) {
        const struct pichai_part part = pichai_column_part(&f->columns[i]);
        for (uint32_t job = 0; job <= LAB_JOBS; job++)
            most = fmax(most, fabs(pichai_value(runs, &part, job)));
    }
    return most > 0 ? most : 1;
}

/* Returns the least number not below `v` that is 1, 2 or 5 times a power of ten. */
static double rounded_up(double v)
{
    const double power = pow(10, floor(log10(v)));
    const double digits = v / power;
    return power * (digits <= 1 ? 1 : digits <= 2 ? 2 : digits <= 5 ? 5 : 10);
}

static void print_axis(double top, uint32_t width)
{
    for (int i = 0; i <= TICKS; i++) {
        const double y = TOP + HEIGHT * (1 - (double)i / TICKS);
        printf("<line x1=\"%d\" x2=\"%u\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n"
               "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
               LEFT, width, y, y, LEFT - 6, y + 4, top * i / TICKS);
    }
}

static void print_group(const struct pichai_runs *runs, const struct pichai_figure *f, uint32_t job,
                        double top, uint32_t x)
{
    for (uint32_t i = 0; i < f->column_count; i++) {
        const struct pichai_part part = pichai_column_part(&f->columns[i]);
        const double v = pichai_value(runs, &part, job);
        const double height = isfinite(v) && v > 0 ? HEIGHT * v / top : 0;
        const uint32_t left = x + i * BAR;
        printf("<rect x=\"%u\" y=\"%.1f\" width=\"%d\" height=\"%.1f\" fill=\"%s\"/>\n", left,
               TOP + HEIGHT - height, BAR - 2, height, colors[i]);
        printf("<text x=\"%u\" y=\"%.1f\" font-size=\"8\" text-anchor=\"middle\">%.*f</text>\n",
               left + BAR / 2, TOP + HEIGHT - height - 2, v < 10 ? 2 : 0, v);
    }
    printf("<text x=\"%u\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
           x + f->column_count * BAR / 2, TOP + HEIGHT + 16,
           job < LAB_JOBS ? lab_gen_work((enum lab_job)job)->name : "mean");
}

void pichai_print_svg(const struct pichai_runs *runs, const struct pichai_figure *figure)
{
    const uint32_t columns = figure->column_count;
    const uint32_t group =
        columns * BAR > 90 ? columns * BAR : 90; /* a column is never narrower than its name */
    const uint32_t bars = LEFT + (LAB_JOBS + 1) * (group + GAP_WIDTH);
    const uint32_t width = bars > columns * LEGEND ? bars : LEFT + columns * LEGEND;
    const double top = rounded_up(largest(runs, figure));
    printf(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%d\" "
        "font-family=\"sans-serif\" font-size=\"11\">\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
        "<text x=\"%d\" y=\"18\" font-size=\"14\">Pichai 2014, figure %u, simulated: %s</text>\n",
        width, TOP + HEIGHT + BELOW, LEFT, figure->number, figure->title);
    for (uint32_t i = 0; i < columns; i++)
        printf("<rect x=\"%u\" y=\"30\" width=\"10\" height=\"10\" fill=\"%s\"/>\n"
               "<text x=\"%u\" y=\"39\">%s</text>\n",
               LEFT + i * LEGEND, colors[i], LEFT + i * LEGEND + 14, figure->columns[i].title);
    print_axis(top, width);
    for (uint32_t job = 0; job <= LAB_JOBS; job++)
        print_group(runs, figure, job, top, LEFT + GAP_WIDTH / 2 + job * (group + GAP_WIDTH));
    puts("</svg>");
}
