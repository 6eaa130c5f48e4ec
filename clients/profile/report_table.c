/* report_table.c: see report_table.h. */
#include "clients/profile/report_table.h"

#include "clients/profile/report_text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { NAME_WIDTH = 40, TOUCHES_WIDTH = 32 };

/* Copies a text of at most `width` characters; a longer text ends with three dots. */
static const char *cut(const char *text, size_t width, char *out)
{
    const size_t length = strlen(text);

    if (length <= width)
        memcpy(out, text, length + 1);
    else
        (void)snprintf(out, width + 1, "%.*s...", (int)width - 3, text);
    return out;
}

static void print_row(const struct report_row *row, FILE *out)
{
    char name[NAME_WIDTH + 1];
    char touches[REPORT_CELL_BYTES];
    char time[REPORT_CELL_BYTES];
    char misses[REPORT_CELL_BYTES];
    char costs[REPORT_CELL_BYTES];
    char instead[REPORT_CELL_BYTES];

    (void)fprintf(out, "%-*s %10llu %6s  %-*s %6s %11s  %s\n", NAME_WIDTH,
                  cut(row->name, NAME_WIDTH, name), (unsigned long long)row->kernel->launches,
                  report_text_time(row, time), TOUCHES_WIDTH, report_text_touches(row, touches),
                  report_text_misses(row, misses), report_text_costs(row, costs),
                  report_text_instead(row, instead));
}

static void print_section(const struct report_section *section, FILE *out)
{
    char text[REPORT_CELL_BYTES];

    (void)fprintf(out, "%s\n", report_text_title(section, text));
    (void)fprintf(out, "%-*s %10s %6s  %-*s %6s %11s  %s\n", NAME_WIDTH, "kernel", "launches",
                  "time", TOUCHES_WIDTH, "touches", "misses", "costs up to", "instead");
    for (uint32_t i = 0; i < section->row_count; i++)
        print_row(&section->rows[i], out);
    if (report_text_advice(section, text)[0])
        (void)fprintf(out, "%s\n", text);
    (void)fputc('\n', out);
}

enum status report_table_print(const struct report_source *source, const struct report *r,
                               FILE *out, struct err *err)
{
    char text[REPORT_CELL_BYTES];

    for (uint32_t i = 0; i < r->section_count; i++)
        print_section(&r->sections[i], out);
    for (uint32_t i = 0; i < source->count; i++)
        if (source->recordings[i].kernel_count == 0)
            (void)fprintf(out, "%s\n", report_text_problem(&source->recordings[i], text));
    (void)fprintf(out, "%s\n", report_text_sum(r, text));
    return fflush(out) == 0 && !ferror(out)
               ? STATUS_OK
               : err_set(err, STATUS_IO, "cannot write the report: %s", strerror(errno));
}
