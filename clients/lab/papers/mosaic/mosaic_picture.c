/* mosaic_picture.c: see mosaic_picture.h. Each number is drawn as a bar. The accepted band is
 * beneath the bar, and the paper's number is beside it. */
#include "clients/lab/papers/mosaic/mosaic_picture.h"

#include <math.h>
#include <stdio.h>

enum { ROW = 34, LEFT = 380, WIDTH = 360, TOP = 44, RIGHT = 150, BAR = 12, BAND = 24 };

struct scale {
    double low, high;
};

static double x_position(const struct scale *s, double v)
{
    const double inside = fmin(fmax(v, s->low), s->high);
    return LEFT + WIDTH * (inside - s->low) / (s->high - s->low);
}

/* Escapes `<`, the only special character in the paper's numbers. */
static void print_text(const char *text)
{
    for (; *text; text++) {
        if (*text == '<')
            (void)fputs("&lt;", stdout);
        else
            (void)putchar(*text);
    }
}

static void print_row(const struct mosaic_part *p, uint32_t row)
{
    /* Truncates bands without an end and numbers far outside of a band. */
    const double most = fmax(fabs(p->value), fmin(fabs(p->high), 4 * fabs(p->value) + p->low)) + 1;
    const struct scale s = {fmin(fmin(0, p->value), fmax(p->low, -most)), most};
    const uint32_t y = TOP + row * ROW;
    const double zero = x_position(&s, 0);
    const double end = x_position(&s, p->value);
    printf("<text x=\"%d\" y=\"%u\" text-anchor=\"end\">%s ", LEFT - 10, y + 16, p->id);
    print_text(p->what);
    printf("</text>\n<rect x=\"%.1f\" y=\"%u\" width=\"%.1f\" height=\"%d\" fill=\"#c6dbef\"/>\n",
           x_position(&s, p->low), y, x_position(&s, p->high) - x_position(&s, p->low), BAND);
    printf("<rect x=\"%.1f\" y=\"%u\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n",
           fmin(zero, end), y + (BAND - BAR) / 2, fabs(end - zero) + 1, BAR,
           p->holds ? "#08306b" : "#d94801");
    printf("<text x=\"%d\" y=\"%u\">%.1f%s (paper ", LEFT + WIDTH + 8, y + 16, p->value, p->unit);
    print_text(p->paper);
    puts(")</text>");
}

void mosaic_print_svg(const struct mosaic_report *r, const char *figure)
{
    uint32_t rows = 0;
    for (uint32_t i = 0; i < r->part_count; i++)
        rows += r->parts[i].unit != NULL;
    printf(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %u\" "
        "font-family=\"sans-serif\" "
        "font-size=\"13\">\n<text x=\"10\" y=\"22\" font-size=\"15\">Mosaic 2017, figure %s "
        "(simulated), each number to its own scale: dark within the band, orange outside</text>\n",
        LEFT + WIDTH + RIGHT, TOP + rows * ROW + 10, figure);
    rows = 0;
    for (uint32_t i = 0; i < r->part_count; i++) {
        if (r->parts[i].unit)
            print_row(&r->parts[i], rows++);
    }
    puts("</svg>");
}
