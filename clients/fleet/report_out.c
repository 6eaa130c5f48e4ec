/* report_out.c: see report_out.h. The first rows of a table for a terminal are held back to compute
 * the widths of its columns. A wider cell in a later row shifts the rest of its line. A page
 * contains the same tables, and its script adds pictures; without the script it is complete. */
#include "clients/fleet/report_out.h"

#include "base/json_writer.h"
#include "base/text.h"
#include "build/gen/fleet_page.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HELD_ROWS = 300, NUMBER_BYTES = 64 };

/* ---- texts ---- */

/* Returns the number of bytes of a UTF-8 character that is invisible or changes the direction of
 * the text, and 0 for any other character. These are controls, U+0080 to U+009F, U+200B to U+200F,
 * U+2028 to U+202E, U+2060 to U+206F, and U+FEFF. Texts of the database are valid UTF-8. */
static size_t invisible_bytes(const unsigned char *s)
{
    if (*s < ' ' || *s == 0x7f)
        return 1;
    if (s[0] == 0xc2 && s[1] >= 0x80 && s[1] <= 0x9f)
        return 2;
    if (s[0] == 0xe2 && s[1] == 0x80 &&
        ((s[2] >= 0x8b && s[2] <= 0x8f) || (s[2] >= 0xa8 && s[2] <= 0xae)))
        return 3;
    if (s[0] == 0xe2 && s[1] == 0x81 && s[2] >= 0xa0 && s[2] <= 0xaf)
        return 3;
    return s[0] == 0xef && s[1] == 0xbb && s[2] == 0xbf ? 3 : 0;
}

/* Writes a text. An invisible character becomes \x1b with `slash` as its backslash, or a question
 * mark if `slash` is NULL. `put_special` writes the characters of `special`. */
static void put_visible(FILE *out, const char *text, const char *slash, const char *special,
                        void (*put_special)(FILE *out, char c))
{
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        const size_t n = invisible_bytes(s);
        if (n == 0 && put_special && strchr(special, *s))
            put_special(out, (char)*s);
        else if (n == 0)
            fputc(*s, out);
        else if (!slash)
            fputc('?', out);
        for (size_t i = 0; slash && i < n; i++)
            fprintf(out, "%sx%02x", slash, s[i]);
        s += n > 0 ? n : 1;
    }
}

static void put_terminal(FILE *out, const char *text)
{
    put_visible(out, text, "\\", "", NULL);
}

static void put_entity(FILE *out, char c)
{
    text_put_xml(out, (char[]){c, '\0'});
}

static void put_markup(FILE *out, char c)
{
    if (c == '<' || c == '&')
        put_entity(out, c);
    else
        fprintf(out, "\\%c", c);
}

/* Escapes the markup of Markdown, and the HTML in it. */
static void put_markdown(FILE *out, const char *text)
{
    put_visible(out, text, "\\\\", "<&|`*_[]\\~", put_markup);
}

/* Writes a text or an attribute value. A character that XML forbids becomes a question mark. */
static void put_xml(FILE *out, const char *text)
{
    put_visible(out, text, NULL, "<>&\"", put_entity);
}

/* Writes a field by RFC 4180. A text that a spreadsheet would interpret as a formula gets a quote
 * before it. */
static void put_csv(FILE *out, const char *text)
{
    fputs(text[0] && strchr("=+-@\t\r", text[0]) ? "\"'" : "\"", out);
    for (const char *s = text; *s; s++) {
        if (*s == '"')
            fputc('"', out);
        fputc(*s, out);
    }
    fputc('"', out);
}

static void put_json(FILE *out, const char *text)
{
    struct json_writer t;
    size_t bytes;
    char *quoted;

    json_writer_begin(&t, 0);
    json_writer_text(&t, NULL, text);
    quoted = json_writer_end(&t, &bytes);
    if (quoted)
        (void)fwrite(quoted, 1, bytes - 1, out); /* without the line feed */
    free(quoted);
}

/* ---- cells and rows ---- */

static const struct style {
    void (*put_text)(FILE *out, const char *text);
    bool for_people;
    const char *none;    /* text of a cell without a value */
    const char *first;   /* text before the first cell */
    const char *between; /* text before the other cells */
    const char *end;     /* text after the cells of a row */
} styles[FLEET_FORMAT_COUNT] = {
    [FLEET_FORMAT_TABLE] = {put_terminal, true, "-", "", "\n", "\n"},
    [FLEET_FORMAT_JSON] = {put_json, false, "null", "", ",", "}"},
    [FLEET_FORMAT_CSV] = {put_csv, false, "", ",", ",", "\n"},
    [FLEET_FORMAT_MARKDOWN] = {put_markdown, true, "-", "| ", " | ", " |\n"},
    /* HTML needs no end tag of a cell or a row. */
    [FLEET_FORMAT_HTML] = {put_xml, true, "", "<tr><td>", "<td>", "\n"},
};

/* Writes the fewest digits that represent the same number. */
static void put_exact(FILE *out, double v)
{
    char text[NUMBER_BYTES];

    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, sizeof(text), "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            break;
    }
    fputs(text, out);
}

static void put_number(FILE *out, const struct style *style, char kind, double v)
{
    if (!style->for_people)
        put_exact(out, v);
    else if (kind == 'p')
        fprintf(out, "%.1f%%", v);
    else if (kind == 'c' || (floor(v) == v && fabs(v) < 1e15))
        fprintf(out, "%.0f", v);
    else
        fprintf(out, "%.6g", v);
}

/* Writes the cells of a row. */
static void put_row(struct report_out *r, FILE *out, const char *const *values)
{
    const struct style *const style = &styles[r->format];
    const struct report_table *const t = r->table;

    for (int c = 0; t->columns[c]; c++) {
        const bool is_any = t->kinds[c] == 'a';
        const bool is_text = t->kinds[c] == 't' || (is_any && values[0]);
        const char *const value = is_any && !is_text ? values[1] : values[0];
        fputs(c ? style->between : style->first, out);
        if (r->format == FLEET_FORMAT_JSON)
            fprintf(out, "\"%s\":", t->columns[c]);
        if (!value)
            fputs(style->none, out);
        else if (is_text)
            style->put_text(out, value);
        else
            put_number(out, style, t->kinds[c], strtod(value, NULL));
        r->numeric[c] |= value && !is_text && r->rows <= HELD_ROWS;
        values += is_any ? 2 : 1;
    }
    fputs(style->end, out);
}

/* ---- a table for a terminal ---- */

/* Returns the number of characters, not of bytes. */
static int text_width(const char *text)
{
    int n = 0;

    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static void put_aligned(struct report_out *r, int column, const char *text)
{
    const bool last = !r->table->columns[column + 1];
    const int missing = r->widths[column] - text_width(text);
    const int pad = missing > 0 ? missing : 0;

    if (r->numeric[column])
        fprintf(r->out, "%*s%s", pad, "", text);
    else
        fprintf(r->out, "%s%*s", text, last ? 0 : pad, "");
    fputs(last ? "\n" : "  ", r->out);
}

static void widen_column(struct report_out *r, int column, const char *text)
{
    const int width = text_width(text);

    if (width > r->widths[column])
        r->widths[column] = width;
}

/* Calls `cell` with the name of each column. */
static void visit_names(struct report_out *r,
                        void (*cell)(struct report_out *r, int column, const char *text))
{
    for (int c = 0; r->table->columns[c]; c++)
        cell(r, c, r->table->columns[c]);
}

/* Calls `cell` with each text that is held back. */
static void visit_held(struct report_out *r,
                       void (*cell)(struct report_out *r, int column, const char *text))
{
    int column = 0;

    for (char *at = r->held_text, *end; (end = strchr(at, '\n')); at = end + 1) {
        *end = '\0';
        cell(r, column++, at);
        *end = '\n';
        if (!r->table->columns[column])
            column = 0;
    }
}

/* Prints the rows that were held back. The names of the columns are above the first rows. */
static void print_held(struct report_out *r)
{
    if (!r->held || fclose(r->held) != 0) {
        r->no_memory = true;
    } else {
        if (r->rows <= HELD_ROWS) {
            visit_held(r, widen_column);
            visit_names(r, put_aligned);
        }
        visit_held(r, put_aligned);
    }
    free(r->held_text);
    r->held_text = NULL;
    r->held = NULL;
}

static const char *simulated_note(const struct report_head *head)
{
    return !head->simulated ? ""
           : head->measured ? "; simulated GPUs are counted separately"
                            : ", all simulated";
}

/* ---- a page ---- */

/* The style and the script are inside the page, and its policy allows nothing else. */
static void begin_page(FILE *out, const struct report_head *head)
{
    fprintf(out,
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
            "style-src 'sha256-%s'; script-src 'sha256-%s'; img-src data:; base-uri 'none'; "
            "form-action 'none'\">\n"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
            "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" "
            "href=\"data:,\">\n"
            "<title>Fleet survey %" PRId64 "</title>\n<style>%s</style>\n<header>\n"
            "<h1>Fleet survey %" PRId64 "</h1>\n<p>",
            fleet_page_css_hash, fleet_page_js_hash, head->survey, fleet_page_css, head->survey);
    put_xml(out, head->at);
    fprintf(out, ": %" PRId64 " GPUs of %" PRId64 " hosts%s.</p>\n</header>\n<main>\n", head->gpus,
            head->hosts, simulated_note(head));
}

/* ---- the interface ---- */

void report_begin(struct report_out *r, const struct report_head *head)
{
    if (r->format == FLEET_FORMAT_HTML) {
        begin_page(r->out, head);
    } else if (r->format == FLEET_FORMAT_JSON) {
        fprintf(r->out, "{\"survey\": %" PRId64 ", \"at\": ", head->survey);
        put_json(r->out, head->at);
        fprintf(r->out, ", \"hosts\": %" PRId64 ", \"gpus\": %" PRId64 ", \"simulated\": \"%s\"",
                head->hosts, head->gpus,
                !head->simulated ? "none"
                : head->measured ? "some"
                                 : "all");
    } else if (styles[r->format].for_people) {
        fprintf(r->out, "%s %" PRId64 " of ",
                r->format == FLEET_FORMAT_MARKDOWN ? "# Survey" : "survey", head->survey);
        styles[r->format].put_text(r->out, head->at);
        fprintf(r->out, ": %" PRId64 " GPUs of %" PRId64 " hosts%s\n", head->gpus, head->hosts,
                simulated_note(head));
    }
}

/* Writes a line with the name of each column, or with `instead`. */
static void put_columns(const struct report_out *r, const char *instead, const char *quote)
{
    const struct style *const style = &styles[r->format];

    for (int c = 0; r->table->columns[c]; c++)
        fprintf(r->out, "%s%s%s%s", c ? style->between : style->first, quote,
                instead ? instead : r->table->columns[c], quote);
    fputs(style->end, r->out);
}

void report_table_begin(struct report_out *r, const struct report_table *table)
{
    r->table = table;
    r->rows = 0;
    memset(r->numeric, 0, sizeof(r->numeric));
    memset(r->widths, 0, sizeof(r->widths));
    visit_names(r, widen_column);
    if (r->format == FLEET_FORMAT_TABLE) {
        fprintf(r->out, "\n%s\n", table->title);
    } else if (r->format == FLEET_FORMAT_HTML) {
        fprintf(r->out,
                "<section id=\"%s%s%s\">\n<h2>%s</h2>\n<div class=\"scroll\" tabindex=\"0\" "
                "role=\"region\" aria-label=\"%s\"><table>\n<thead><tr>",
                table->name, table->part[0] ? "-" : "", table->part, table->title, table->title);
        for (int c = 0; table->columns[c]; c++)
            fprintf(r->out, "<th scope=\"col\" data-kind=\"%c\">%s", table->kinds[c],
                    table->columns[c]);
        fputs("\n<tbody>\n", r->out);
    } else if (r->format == FLEET_FORMAT_MARKDOWN) {
        fprintf(r->out, "\n## %s\n\n", table->title);
        put_columns(r, NULL, "");
        put_columns(r, "---", "");
    } else if (r->format == FLEET_FORMAT_CSV) {
        fputs(r->tables > 0 ? "\n\"report\",\"part\"" : "\"report\",\"part\"", r->out);
        put_columns(r, NULL, "\"");
    } else {
        fprintf(r->out, ",\n \"%s%s%s\": {\"rows\": [", table->name, table->part[0] ? "_" : "",
                table->part);
    }
    r->tables++;
}

void report_row(struct report_out *r, const char *const *values, bool for_people)
{
    if (for_people && !styles[r->format].for_people)
        return;
    r->rows++;
    if (r->format == FLEET_FORMAT_TABLE) {
        if (!r->held)
            r->held = open_memstream(&r->held_text, &r->held_bytes);
        if (r->held)
            put_row(r, r->held, values);
        if (!r->held || r->rows >= HELD_ROWS)
            print_held(r);
        return;
    }
    if (r->format == FLEET_FORMAT_JSON)
        fputs(r->rows > 1 ? ",\n  {" : "\n  {", r->out);
    else if (r->format == FLEET_FORMAT_CSV)
        fprintf(r->out, "\"%s\",\"%s\"", r->table->name, r->table->part);
    put_row(r, r->out, values);
}

void report_table_end(struct report_out *r, const char *note, const char *more)
{
    const bool json = r->format == FLEET_FORMAT_JSON;
    const bool markdown = r->format == FLEET_FORMAT_MARKDOWN;
    const bool html = r->format == FLEET_FORMAT_HTML;
    const char *const notes[] = {note, more};

    if (r->format == FLEET_FORMAT_HTML)
        fputs(r->rows == 0 ? "</table></div>\n<p>none</p>\n" : "</table></div>\n", r->out);
    else if (r->format == FLEET_FORMAT_TABLE && r->rows == 0)
        fputs("  none\n", r->out);
    else if (r->held)
        print_held(r);
    if (json)
        fputs("\n ], \"notes\": [", r->out);
    for (int i = 0; i < 2 && r->format != FLEET_FORMAT_CSV; i++) {
        if (!notes[i])
            continue;
        fputs(json       ? i > 0 && note ? ", " : ""
              : markdown ? "\n"
              : html     ? "<p class=\"note\">"
                         : "  ",
              r->out);
        styles[r->format].put_text(r->out, notes[i]);
        fputs(json ? "" : "\n", r->out);
    }
    if (html)
        fputs("</section>\n", r->out);
    if (json)
        fputs("]}", r->out);
}

enum status report_end(struct report_out *r, enum status so_far, struct err *err)
{
    if (r->held) /* the table could not be read to its end */
        (void)fclose(r->held);
    free(r->held_text);
    if (so_far != STATUS_OK)
        return so_far;
    if (r->format == FLEET_FORMAT_JSON)
        fputs("}\n", r->out);
    else if (r->format == FLEET_FORMAT_HTML)
        fprintf(r->out, "</main>\n<script>%s</script>\n</html>\n", fleet_page_js);
    if (r->no_memory)
        return err_no_memory(err, "a report");
    if (fflush(r->out) != 0 || ferror(r->out))
        return err_set(err, STATUS_IO, "cannot write the report");
    return STATUS_OK;
}
