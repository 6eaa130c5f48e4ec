/* report_html.c: see report_html.h. A bar has the share of time of a kernel; its dark part is the
 * share that the fastest option saves. */
#include "clients/profile/report_html.h"

#include "base/text.h"
#include "clients/profile/report_text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char head[] =
    "<!doctype html>\n"
    "<html lang=\"en\">\n"
    "<head>\n"
    "<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n"
    "<title>reach-profile</title>\n"
    "<link rel=\"icon\" href=\"data:,\">\n"
    "<style>\n"
    ":root { --back: #f4f5f7; --card: #fff; --text: #1b1f24; --soft: #525a64; --edge: #d3d8df; "
    "--bar: #8fb3d0; --gain: #00694c; --limited: #fdefe3; --untimed: #f6f3e0; }\n"
    "@media (prefers-color-scheme: dark) { :root { --back: #14171b; --card: #1d2126; --text: "
    "#e8ebef; --soft: #a8b1bc; --edge: #3a414a; --bar: #3f6482; --gain: #6fdcb6; --limited: "
    "#3d2513; --untimed: #2f2c17; } }\n"
    "body { margin: 0 auto; max-width: 1280px; padding: 20px; background: var(--back); color: "
    "var(--text); font: 15px/1.5 system-ui, \"DejaVu Sans\", sans-serif; }\n"
    "section { overflow-x: auto; margin: 16px 0; padding: 8px 16px; background: var(--card); "
    "border: 1px solid var(--edge); border-radius: 8px; }\n"
    "h2 { font-size: 16px; overflow-wrap: anywhere; }\n"
    "table { width: 100%; border-collapse: collapse; }\n"
    "th, td { padding: 4px 10px; border-top: 1px solid var(--edge); text-align: left; "
    "vertical-align: top; }\n"
    "th { border-top: 0; color: var(--soft); font-weight: 600; }\n"
    "td.number, th.number { text-align: right; white-space: nowrap; }\n"
    "tr.limited td { background: var(--limited); }\n"
    "tr.untimed td { background: var(--untimed); }\n"
    "td:first-child { min-width: 220px; }\n"
    "code { overflow-wrap: anywhere; }\n"
    ".bar { display: flex; width: 160px; height: 12px; margin-top: 5px; background: var(--edge); "
    "border-radius: 3px; overflow: hidden; }\n"
    ".bar i { background: var(--gain); }\n"
    ".bar b { background: var(--bar); }\n"
    ".key { color: var(--soft); }\n"
    "</style>\n"
    "</head>\n"
    "<body>\n"
    "<h1>reach-profile</h1>\n";

static const char columns[] =
    "<table>\n"
    "<thead><tr><th>kernel</th><th class=\"number\">launches</th><th class=\"number\">time</th>"
    "<th>share of time</th><th>touches</th><th class=\"number\">misses"
    "</th><th class=\"number\">costs up to</th><th>instead</th></tr></thead>\n"
    "<tbody>\n";

static void print_element(const char *begin, const char *text, const char *end, FILE *out)
{
    (void)fputs(begin, out);
    text_put_xml(out, text);
    (void)fputs(end, out);
}

static void print_row(const struct report_row *row, FILE *out)
{
    const double time_ns = (double)row->kernel->time_ns;
    const bool is_limited = row->verdict == REPORT_LIMITED;
    const double saved = is_limited && time_ns > 0 ? row->time_share * row->gain_ns / time_ns : 0;
    char text[REPORT_CELL_BYTES];

    (void)fprintf(out, "<tr%s>",
                  is_limited                       ? " class=\"limited\""
                  : row->verdict == REPORT_UNTIMED ? " class=\"untimed\""
                                                   : "");
    print_element("<td><code>", row->name, "</code>", out);
    if (row->kernel->operator[0])
        print_element("<br><span class=\"key\">", row->kernel->operator, "</span>", out);
    (void)fprintf(out,
                  "</td><td class=\"number\">%llu</td><td class=\"number\">%s</td>"
                  "<td><div class=\"bar\"><i style=\"width:%.1f%%\"></i><b "
                  "style=\"width:%.1f%%\"></b></div></td>",
                  (unsigned long long)row->kernel->launches, report_text_time(row, text),
                  100 * saved, 100 * (row->time_share - saved));
    print_element("<td>", report_text_touches(row, text), "</td>", out);
    print_element("<td class=\"number\">", report_text_misses(row, text), "</td>", out);
    print_element("<td class=\"number\">", report_text_costs(row, text), "</td>", out);
    print_element("<td>", report_text_instead(row, text), "</td></tr>\n", out);
}

static void print_section(const struct report_section *section, FILE *out)
{
    char text[REPORT_CELL_BYTES];

    print_element("<section>\n<h2>", report_text_title(section, text), "</h2>\n", out);
    (void)fputs(columns, out);
    for (uint32_t i = 0; i < section->row_count; i++)
        print_row(&section->rows[i], out);
    (void)fputs("</tbody>\n</table>\n", out);
    if (report_text_advice(section, text)[0])
        print_element("<p>", text, "</p>\n", out);
    (void)fputs("</section>\n", out);
}

enum status report_html_print(const struct report_source *source, const struct report *r, FILE *out,
                              struct err *err)
{
    char text[REPORT_CELL_BYTES];

    (void)fputs(head, out);
    print_element("<p>", report_text_sum(r, text), "", out);
    (void)fputs(" The dark part of a bar is the time that the fastest option saves.</p>\n", out);
    for (uint32_t i = 0; i < r->section_count; i++)
        print_section(&r->sections[i], out);
    for (uint32_t i = 0; i < source->count; i++)
        if (source->recordings[i].kernel_count == 0)
            print_element("<p>", report_text_problem(&source->recordings[i], text), "</p>\n", out);
    (void)fputs("</body>\n</html>\n", out);
    return fflush(out) == 0 && !ferror(out)
               ? STATUS_OK
               : err_set(err, STATUS_IO, "cannot write the page: %s", strerror(errno));
}
