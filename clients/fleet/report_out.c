/* report_out.c: see report_out.h. Rows are printed as they come. A table for people needs to know
 * how wide its columns are: the first rows are held back for that, and what is wider later on
 * pushes the rest of its line. */
#include "clients/fleet/report_out.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { HELD_ROWS = 300, PEOPLE_BYTES = 1200, NOTE_BYTES = 400, MAX_NOTES = 8 };

const struct cell cell_none = {.kind = CELL_NONE};

struct report_out {
    FILE *out;
    enum fleet_format format;
    const struct report_table *table; /* the one that is open */
    int columns;
    uint64_t rows;   /* of this table */
    uint32_t tables; /* so far */
    bool no_memory;
    /* Held back, for people: texts, columns a row; right-aligned or not. */
    char **held;
    uint32_t held_count;
    bool numeric[REPORT_MAX_COLUMNS];
    int widths[REPORT_MAX_COLUMNS];
    bool let_go;
    char notes[MAX_NOTES][NOTE_BYTES];
    uint32_t note_count;
};

struct cell cell_text(const char *text)
{
    return (struct cell){.kind = text ? CELL_TEXT : CELL_NONE, .text = text};
}

struct cell cell_count(int64_t v)
{
    return (struct cell){.kind = CELL_COUNT, .v = (double)v};
}

/* ---- texts ---- */

/* Bytes of a UTF-8 character that changes the direction of what follows or cannot be seen: U+0080
 * to U+009F, U+200B to U+200F, U+2028 to U+202E, U+2060 to U+206F, U+FEFF; 0 for any other. What
 * comes from the database is valid UTF-8. */
static size_t invisible_bytes(const unsigned char *s)
{
    if (s[0] == 0xc2 && s[1] >= 0x80 && s[1] <= 0x9f)
        return 2;
    if (s[0] == 0xe2 && s[1] == 0x80 &&
        ((s[2] >= 0x8b && s[2] <= 0x8f) || (s[2] >= 0xa8 && s[2] <= 0xae)))
        return 3;
    if (s[0] == 0xe2 && s[1] == 0x81 && s[2] >= 0xa0 && s[2] <= 0xaf)
        return 3;
    return s[0] == 0xef && s[1] == 0xbb && s[2] == 0xbf ? 3 : 0;
}

char *report_escape(const char *text, char *out, size_t out_size)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t at = 0;

    while (*s && at + 5 < out_size) {
        const size_t odd = *s < ' ' || *s == 0x7f ? 1 : invisible_bytes(s);
        if (odd == 0) {
            out[at++] = (char)*s++;
            continue;
        }
        for (size_t i = 0; i < odd && at + 5 < out_size; i++)
            at += (size_t)snprintf(out + at, out_size - at, "\\x%02x", *s++);
    }
    out[at] = '\0';
    return out;
}

void report_put_xml(FILE *out, const char *text)
{
    for (const unsigned char *s = (const unsigned char *)text; *s; s++) {
        const size_t odd = invisible_bytes(s);
        if (odd > 0) {
            fputc('?', out);
            s += odd - 1;
        } else if (*s == '<') {
            fputs("&lt;", out);
        } else if (*s == '>') {
            fputs("&gt;", out);
        } else if (*s == '&') {
            fputs("&amp;", out);
        } else if (*s == '"') {
            fputs("&quot;", out);
        } else if (*s < ' ' || *s == 0x7f) {
            fputc('?', out);
        } else if (s[0] == 0xef && s[1] == 0xbf && s[2] >= 0xbe) {
            fputc('?', out); /* U+FFFE, U+FFFF */
            s += 2;
        } else {
            fputc(*s, out);
        }
    }
}

/* Markup that Markdown would act on, and HTML in it. */
static void put_markdown(FILE *out, const char *text)
{
    char clean[PEOPLE_BYTES];

    for (const char *s = report_escape(text, clean, sizeof(clean)); *s; s++) {
        if (*s == '<')
            fputs("&lt;", out);
        else if (*s == '&')
            fputs("&amp;", out);
        else if (strchr("|`*_[]\\~", *s))
            fprintf(out, "\\%c", *s);
        else
            fputc(*s, out);
    }
}

/* RFC 4180. A text that a spreadsheet would take for a formula gets a quote before it. */
static void put_csv(FILE *out, const char *text)
{
    const bool formula = text[0] && strchr("=+-@\t\r", text[0]);

    fputc('"', out);
    if (formula)
        fputc('\'', out);
    for (const char *s = text; *s; s++) {
        if (*s == '"')
            fputc('"', out);
        fputc(*s, out);
    }
    fputc('"', out);
}

/* A number with all its digits, and no more. */
static void exact(double v, char *out, size_t out_size)
{
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(out, out_size, "%.*g", digits, v);
        if (strtod(out, NULL) == v)
            return;
    }
}

/* For people. */
static void people(const struct cell *c, char *out, size_t out_size)
{
    switch (c->kind) {
    case CELL_TEXT:
        report_escape(c->text, out, out_size);
        return;
    case CELL_COUNT:
        (void)snprintf(out, out_size, "%.0f", c->v);
        return;
    case CELL_REAL:
        if (floor(c->v) == c->v && fabs(c->v) < 1e15)
            (void)snprintf(out, out_size, "%.0f", c->v);
        else
            (void)snprintf(out, out_size, "%.6g", c->v);
        return;
    case CELL_PERCENT:
        (void)snprintf(out, out_size, "%.1f%%", c->v);
        return;
    case CELL_NONE:
        break;
    }
    (void)snprintf(out, out_size, "-");
}

/* ---- a table for a terminal ---- */

/* Characters, not bytes. */
static int width_of(const char *text)
{
    int n = 0;

    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static void put_aligned(struct report_out *r, int column, const char *text)
{
    const int pad = r->widths[column] - width_of(text);

    if (column > 0)
        fputs("  ", r->out);
    if (r->numeric[column])
        fprintf(r->out, "%*s%s", pad > 0 ? pad : 0, "", text);
    else if (column == r->columns - 1)
        fputs(text, r->out);
    else
        fprintf(r->out, "%s%*s", text, pad > 0 ? pad : 0, "");
}

static void let_go(struct report_out *r)
{
    if (r->let_go || !r->table)
        return;
    r->let_go = true;
    for (int c = 0; c < r->columns; c++)
        put_aligned(r, c, r->table->columns[c]);
    fputc('\n', r->out);
    for (uint32_t i = 0; i < r->held_count; i++) {
        for (int c = 0; c < r->columns; c++) {
            char *const text = r->held[i * (uint32_t)r->columns + (uint32_t)c];
            put_aligned(r, c, text ? text : "");
            free(text);
        }
        fputc('\n', r->out);
    }
    r->held_count = 0;
}

static void table_row(struct report_out *r, const struct cell *cells)
{
    char text[PEOPLE_BYTES];

    if (r->held_count == HELD_ROWS)
        let_go(r);
    for (int c = 0; c < r->columns; c++) {
        people(&cells[c], text, sizeof(text));
        if (r->let_go) {
            put_aligned(r, c, text);
            continue;
        }
        if (cells[c].kind != CELL_TEXT && cells[c].kind != CELL_NONE)
            r->numeric[c] = true;
        if (width_of(text) > r->widths[c])
            r->widths[c] = width_of(text);
        char *const copy = strdup(text);
        r->no_memory = r->no_memory || !copy;
        r->held[r->held_count * (uint32_t)r->columns + (uint32_t)c] = copy;
    }
    if (r->let_go)
        fputc('\n', r->out);
    else
        r->held_count++;
}

/* ---- the others ---- */

static void markdown_row(struct report_out *r, const struct cell *cells)
{
    char text[PEOPLE_BYTES];

    fputc('|', r->out);
    for (int c = 0; c < r->columns; c++) {
        fputc(' ', r->out);
        if (cells[c].kind == CELL_TEXT) {
            put_markdown(r->out, cells[c].text);
        } else {
            people(&cells[c], text, sizeof(text));
            fputs(text, r->out);
        }
        fputs(" |", r->out);
    }
    fputc('\n', r->out);
}

static void csv_row(struct report_out *r, const struct cell *cells)
{
    char text[64];

    put_csv(r->out, r->table->name);
    if (r->table->part[0]) {
        fputc(',', r->out);
        put_csv(r->out, r->table->part);
    } else {
        fputs(",\"\"", r->out);
    }
    for (int c = 0; c < r->columns; c++) {
        fputc(',', r->out);
        if (cells[c].kind == CELL_TEXT) {
            put_csv(r->out, cells[c].text);
        } else if (cells[c].kind != CELL_NONE) {
            exact(cells[c].v, text, sizeof(text));
            fputs(text, r->out);
        }
    }
    fputc('\n', r->out);
}

static void put_json(struct report_out *r, const char *text)
{
    json_t *const value = json_string(text);

    if (!value || json_dumpf(value, r->out, JSON_ENCODE_ANY) != 0)
        r->no_memory = true;
    json_decref(value);
}

static void json_row(struct report_out *r, const struct cell *cells)
{
    char text[64];

    fputs(r->rows ? ",\n  {" : "\n  {", r->out);
    for (int c = 0; c < r->columns; c++) {
        fprintf(r->out, "%s\"%s\":", c ? "," : "", r->table->columns[c]);
        if (cells[c].kind == CELL_TEXT) {
            put_json(r, cells[c].text);
        } else if (cells[c].kind == CELL_NONE) {
            fputs("null", r->out);
        } else {
            exact(cells[c].v, text, sizeof(text));
            fputs(text, r->out);
        }
    }
    fputc('}', r->out);
}

/* ---- what is called ---- */

struct report_out *report_out_new(enum fleet_format format, FILE *out)
{
    struct report_out *const r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    r->out = out;
    r->format = format;
    r->held = calloc((size_t)HELD_ROWS * REPORT_MAX_COLUMNS, sizeof(*r->held));
    if (!r->held) {
        free(r);
        return NULL;
    }
    return r;
}

void report_out_free(struct report_out *take)
{
    if (!take)
        return;
    for (uint32_t i = 0; i < take->held_count * (uint32_t)take->columns; i++)
        free(take->held[i]);
    free(take->held);
    free(take);
}

static const char *origins(const struct report_head *head)
{
    if (head->simulated && head->measured)
        return "some simulated, counted apart";
    return head->simulated ? "all simulated" : "";
}

void report_begin(struct report_out *r, const struct report_head *head)
{
    const char *const origin = origins(head);

    switch (r->format) {
    case FLEET_FORMAT_JSON:
        fprintf(r->out, "{\"survey\": %" PRId64 ", \"at\": ", head->survey);
        put_json(r, head->at);
        fprintf(r->out, ", \"hosts\": %" PRId64 ", \"gpus\": %" PRId64 ", \"simulated\": \"%s\"",
                head->hosts, head->gpus,
                !head->simulated ? "none"
                : head->measured ? "some"
                                 : "all");
        break;
    case FLEET_FORMAT_MARKDOWN:
    case FLEET_FORMAT_TABLE:
        fputs(r->format == FLEET_FORMAT_MARKDOWN ? "# Survey " : "survey ", r->out);
        fprintf(r->out, "%" PRId64 " of ", head->survey);
        if (r->format == FLEET_FORMAT_MARKDOWN)
            put_markdown(r->out, head->at);
        else
            fputs(head->at, r->out);
        fprintf(r->out, ": %" PRId64 " GPUs of %" PRId64 " hosts%s%s\n", head->gpus, head->hosts,
                origin[0] ? ", " : "", origin);
        break;
    default:
        break;
    }
}

void report_table_begin(struct report_out *r, const struct report_table *table)
{
    r->table = table;
    r->rows = 0;
    r->note_count = 0;
    r->let_go = false;
    r->tables++;
    memset(r->numeric, 0, sizeof(r->numeric));
    for (r->columns = 0; r->columns < REPORT_MAX_COLUMNS && table->columns[r->columns];)
        r->columns++;
    for (int c = 0; c < r->columns; c++)
        r->widths[c] = width_of(table->columns[c]);
    switch (r->format) {
    case FLEET_FORMAT_TABLE:
        fprintf(r->out, "\n%s\n", table->title);
        break;
    case FLEET_FORMAT_MARKDOWN:
        fprintf(r->out, "\n## %s\n\n|", table->title);
        for (int c = 0; c < r->columns; c++)
            fprintf(r->out, " %s |", table->columns[c]);
        fputs("\n|", r->out);
        for (int c = 0; c < r->columns; c++)
            fputs(" --- |", r->out);
        fputc('\n', r->out);
        break;
    case FLEET_FORMAT_CSV:
        fprintf(r->out, "%s\"report\",\"part\"", r->tables > 1 ? "\n" : "");
        for (int c = 0; c < r->columns; c++)
            fprintf(r->out, ",\"%s\"", table->columns[c]);
        fputc('\n', r->out);
        break;
    default:
        fprintf(r->out, ",\n \"%s%s%s\": {\"rows\": [", table->name, table->part[0] ? "_" : "",
                table->part);
    }
}

void report_row(struct report_out *r, const struct cell *cells)
{
    switch (r->format) {
    case FLEET_FORMAT_TABLE:
        table_row(r, cells);
        break;
    case FLEET_FORMAT_MARKDOWN:
        markdown_row(r, cells);
        break;
    case FLEET_FORMAT_CSV:
        csv_row(r, cells);
        break;
    default:
        json_row(r, cells);
    }
    r->rows++;
}

void report_row_for_people(struct report_out *r, const struct cell *cells)
{
    if (r->format == FLEET_FORMAT_TABLE || r->format == FLEET_FORMAT_MARKDOWN)
        report_row(r, cells);
}

void report_note(struct report_out *r, const char *format, ...)
{
    va_list args;

    if (r->note_count == MAX_NOTES)
        return;
    va_start(args, format);
    (void)vsnprintf(r->notes[r->note_count++], NOTE_BYTES, format, args);
    va_end(args);
}

void report_table_end(struct report_out *r)
{
    char clean[NOTE_BYTES * 2];

    if (r->format == FLEET_FORMAT_TABLE) {
        if (r->rows == 0)
            fputs("  none\n", r->out);
        else
            let_go(r);
    }
    if (r->format == FLEET_FORMAT_JSON)
        fputs("\n ], \"notes\": [", r->out);
    for (uint32_t i = 0; i < r->note_count; i++) {
        if (r->format == FLEET_FORMAT_JSON) {
            fputs(i ? ", " : "", r->out);
            put_json(r, r->notes[i]);
        } else if (r->format == FLEET_FORMAT_MARKDOWN) {
            fputc('\n', r->out);
            put_markdown(r->out, r->notes[i]);
            fputc('\n', r->out);
        } else if (r->format == FLEET_FORMAT_TABLE) {
            fprintf(r->out, "  %s\n", report_escape(r->notes[i], clean, sizeof(clean)));
        }
    }
    if (r->format == FLEET_FORMAT_JSON)
        fputs("]}", r->out);
    r->table = NULL;
}

enum status report_end(struct report_out *r, struct err *err)
{
    if (r->format == FLEET_FORMAT_JSON)
        fputs("}\n", r->out);
    if (r->no_memory)
        return err_set(err, STATUS_NO_MEMORY, "no memory for a report");
    if (fflush(r->out) != 0 || ferror(r->out))
        return err_set(err, STATUS_IO, "the report cannot be written");
    return STATUS_OK;
}
