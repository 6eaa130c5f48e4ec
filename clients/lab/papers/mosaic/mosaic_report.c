/* mosaic_report.c: see mosaic_report.h. */
#include "clients/lab/papers/mosaic/mosaic_report.h"

#include <stdarg.h>
#include <stdio.h>

static struct mosaic_part *add_part(struct mosaic_report *r, const char *id, const char *what,
                                    bool holds)
{
    struct mosaic_part *p = &r->parts[r->part_count];
    r->part_count += r->part_count < MOSAIC_MAX_PARTS - 1 ? 1 : 0;
    *p = (struct mosaic_part){.holds = holds};
    (void)snprintf(p->id, sizeof p->id, "%s", id);
    (void)snprintf(p->what, sizeof p->what, "%s", what);
    return p;
}

void mosaic_report_statement(struct mosaic_report *r, const char *id, const char *what, bool holds)
{
    (void)add_part(r, id, what, holds);
}

void mosaic_report_number(struct mosaic_report *r, const char *id, const char *what, double value,
                          const char *unit, const char *paper, double low, double high)
{
    struct mosaic_part *p = add_part(r, id, what, value >= low && value <= high);
    p->value = value;
    p->unit = unit;
    p->paper = paper;
    p->low = low;
    p->high = high;
}

void mosaic_report_row(const struct mosaic_report *r, const char *format, ...)
{
    va_list list;
    if (r->quiet)
        return;
    va_start(list, format);
    (void)vprintf(format, list);
    va_end(list);
}

enum status mosaic_report_alone(struct mosaic_report *r, struct err *err)
{
    if (r->has_alone)
        return STATUS_OK;
    const enum status s = mosaic_run_alone(&r->alone, err);
    r->has_alone = s == STATUS_OK;
    return s;
}
