/* report_out.c: see report_out.h. A table for people needs to know how wide its columns are: its
 * first rows are held back for that, and a cell that is wider later on shifts the rest of its line.
 */
#include "clients/fleet/report_out.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HELD_ROWS = 300, NUMBER_BYTES = 64 };

struct report_out {
    FILE *out;
    enum fleet_format format;
    const struct report_table *table; /* the current one */
    int columns;
    uint64_t rows;   /* of this table */
    uint32_t tables; /* so far */
    bool no_memory;
    /* Rows held back for a terminal: their cells, each ended by a null byte. */
    FILE *held;
    char *held_text;
    size_t held_bytes;
    bool numeric[REPORT_MAX_COLUMNS]; /* aligned to the right */
    int widths[REPORT_MAX_COLUMNS];
};

/* ---- texts ---- */

/* Bytes of a UTF-8 character that changes the direction of what follows or cannot be seen:
 * controls, U+0080 to U+009F, U+200B to U+200F, U+2028 to U+202E, U+2060 to U+206F, U+FEFF; 0 for
 * any other. Texts of the database are valid UTF-8. */
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

/* Invisible characters as \x1b, after `slash`; a character of `special` by `put_special`. */
static void put_visible(FILE *out, const char *text, const char *slash, const char *special,
                        void (*put_special)(FILE *out, char c))
{
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        const size_t n = invisible_bytes(s);
        if (n == 0 && put_special && strchr(special, *s))
            put_special(out, (char)*s);
        else if (n == 0)
            fputc(*s, out);
        for (size_t i = 0; i < n; i++)
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
    fputs(c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : "&quot;", out);
}

static void put_markup(FILE *out, char c)
{
    if (c == '<' || c == '&')
        put_entity(out, c);
    else
        fprintf(out, "\\%c", c);
}

/* Markup that Markdown would act on, and HTML in it. */
static void put_markdown(FILE *out, const char *text)
{
    put_visible(out, text, "\\\\", "<&|`*_[]\\~", put_markup);
}

void report_put_xml(FILE *out, const char *text)
{
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        const bool non_character =
            s[0] == 0xef && s[1] == 0xbf && s[2] >= 0xbe; /* U+FFFE, U+FFFF */
        const size_t n = non_character ? 3 : invisible_bytes(s);
        if (n > 0)
            fputc('?', out);
        else if (strchr("<>&\"", *s))
            put_entity(out, (char)*s);
        else
            fputc(*s, out);
        s += n > 0 ? n : 1;
    }
}

/* RFC 4180. A text that a spreadsheet would take for a formula gets a quote before it. */
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
    json_t *const value = json_string(text);

    (void)json_dumpf(value, out, JSON_ENCODE_ANY);
    json_decref(value);
}

static void put_text(FILE *out, enum fleet_format format, const char *text)
{
    static void (*const put[FLEET_FORMAT_COUNT])(FILE * out, const char *text) = {
        [FLEET_FORMAT_TABLE] = put_terminal,
        [FLEET_FORMAT_JSON] = put_json,
        [FLEET_FORMAT_CSV] = put_csv,
        [FLEET_FORMAT_MARKDOWN] = put_markdown};

    put[format](out, text);
}

/* ---- cells ---- */

static bool is_for_people(enum fleet_format format)
{
    return format == FLEET_FORMAT_TABLE || format == FLEET_FORMAT_MARKDOWN;
}

/* As few digits as give the number back exactly. */
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

static void put_cell(FILE *out, enum fleet_format format, const struct cell *c)
{
    if (c->kind == CELL_TEXT)
        put_text(out, format, c->text);
    else if (c->kind == CELL_NONE)
        fputs(is_for_people(format) ? "-" : format == FLEET_FORMAT_JSON ? "null" : "", out);
    else if (!is_for_people(format))
        put_exact(out, c->v);
    else if (c->kind == CELL_PERCENT)
        fprintf(out, "%.1f%%", c->v);
    else if (c->kind == CELL_COUNT || (floor(c->v) == c->v && fabs(c->v) < 1e15))
        fprintf(out, "%.0f", c->v);
    else
        fprintf(out, "%.6g", c->v);
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
    const int missing = r->widths[column] - width_of(text);
    const int pad = missing > 0 ? missing : 0;

    if (r->numeric[column])
        fprintf(r->out, "%*s%s", pad, "", text);
    else
        fprintf(r->out, "%s%*s", text, column == r->columns - 1 ? 0 : pad, "");
    fputs(column == r->columns - 1 ? "\n" : "  ", r->out);
}

/* Calls `cell` with each text that is held. */
static void visit_held(struct report_out *r,
                       void (*cell)(struct report_out *r, int column, const char *text))
{
    const char *at = r->held_text;

    for (int column = 0; at < r->held_text + r->held_bytes; column = (column + 1) % r->columns) {
        cell(r, column, at);
        at += strlen(at) + 1;
    }
}

static void widen(struct report_out *r, int column, const char *text)
{
    const int width = width_of(text);

    if (width > r->widths[column])
        r->widths[column] = width;
}

/* Prints the rows that are held, and above the first ones the names of the columns. */
static void print_held(struct report_out *r)
{
    if (!r->held || fclose(r->held) != 0) {
        r->no_memory = true;
    } else {
        if (r->rows <= HELD_ROWS) {
            visit_held(r, widen);
            for (int c = 0; c < r->columns; c++)
                put_aligned(r, c, r->table->columns[c]);
        }
        visit_held(r, put_aligned);
    }
    free(r->held_text);
    r->held_text = NULL;
    r->held = NULL;
}

static void hold_row(struct report_out *r, const struct cell *cells)
{
    if (!r->held)
        r->held = open_memstream(&r->held_text, &r->held_bytes);
    for (int c = 0; r->held && c < r->columns; c++) {
        put_cell(r->held, r->format, &cells[c]);
        fputc('\0', r->held);
        if (r->rows <= HELD_ROWS && cells[c].kind > CELL_TEXT)
            r->numeric[c] = true;
    }
    if (!r->held || r->rows >= HELD_ROWS)
        print_held(r);
}

/* ---- the interface ---- */

struct report_out *report_out_new(enum fleet_format format, FILE *out)
{
    struct report_out *const r = calloc(1, sizeof(*r));

    if (r)
        *r = (struct report_out){.out = out, .format = format};
    return r;
}

void report_out_free(struct report_out *take)
{
    if (take->held)
        (void)fclose(take->held);
    free(take->held_text);
    free(take);
}

void report_begin(struct report_out *r, const struct report_head *head)
{
    const bool mixed = head->simulated && head->measured;

    if (r->format == FLEET_FORMAT_JSON) {
        fprintf(r->out, "{\"survey\": %" PRId64 ", \"at\": ", head->survey);
        put_json(r->out, head->at);
        fprintf(r->out, ", \"hosts\": %" PRId64 ", \"gpus\": %" PRId64 ", \"simulated\": \"%s\"",
                head->hosts, head->gpus,
                !head->simulated ? "none"
                : mixed          ? "some"
                                 : "all");
    } else if (is_for_people(r->format)) {
        fprintf(r->out, "%s %" PRId64 " of ",
                r->format == FLEET_FORMAT_MARKDOWN ? "# Survey" : "survey", head->survey);
        put_text(r->out, r->format, head->at);
        fprintf(r->out, ": %" PRId64 " GPUs of %" PRId64 " hosts%s\n", head->gpus, head->hosts,
                !head->simulated ? ""
                : mixed          ? ", some simulated, counted apart"
                                 : ", all simulated");
    }
}

/* What each column's name stands between. */
static void put_columns(struct report_out *r, const char *before, const char *between,
                        const char *after)
{
    for (int c = 0; c < r->columns; c++)
        fprintf(r->out, "%s%s", c ? between : before, r->table->columns[c]);
    fputs(after, r->out);
}

void report_table_begin(struct report_out *r, const struct report_table *table)
{
    r->table = table;
    r->rows = 0;
    memset(r->numeric, 0, sizeof(r->numeric));
    for (r->columns = 0; r->columns < REPORT_MAX_COLUMNS && table->columns[r->columns];) {
        r->widths[r->columns] = width_of(table->columns[r->columns]);
        r->columns++;
    }
    if (r->format == FLEET_FORMAT_TABLE) {
        fprintf(r->out, "\n%s\n", table->title);
    } else if (r->format == FLEET_FORMAT_MARKDOWN) {
        fprintf(r->out, "\n## %s\n\n", table->title);
        put_columns(r, "| ", " | ", " |\n|");
        for (int c = 0; c < r->columns; c++)
            fputs(" --- |", r->out);
        fputc('\n', r->out);
    } else if (r->format == FLEET_FORMAT_CSV) {
        fputs(r->tables > 0 ? "\n\"report\",\"part\"" : "\"report\",\"part\"", r->out);
        put_columns(r, ",\"", "\",\"", "\"\n");
    } else {
        fprintf(r->out, ",\n \"%s%s%s\": {\"rows\": [", table->name, table->part[0] ? "_" : "",
                table->part);
    }
    r->tables++;
}

void report_row(struct report_out *r, const struct cell *cells, bool for_people)
{
    if (for_people && !is_for_people(r->format))
        return;
    r->rows++;
    if (r->format == FLEET_FORMAT_TABLE) {
        hold_row(r, cells);
        return;
    }
    if (r->format == FLEET_FORMAT_JSON)
        fputs(r->rows > 1 ? ",\n  {" : "\n  {", r->out);
    else if (r->format == FLEET_FORMAT_CSV)
        fprintf(r->out, "\"%s\",\"%s\"", r->table->name, r->table->part);
    for (int c = 0; c < r->columns; c++) {
        if (r->format == FLEET_FORMAT_JSON)
            fprintf(r->out, "%s\"%s\":", c ? "," : "", r->table->columns[c]);
        else
            fputs(r->format == FLEET_FORMAT_CSV ? "," : c ? " | " : "| ", r->out);
        put_cell(r->out, r->format, &cells[c]);
    }
    fputs(r->format == FLEET_FORMAT_JSON  ? "}"
          : r->format == FLEET_FORMAT_CSV ? "\n"
                                          : " |\n",
          r->out);
}

void report_table_end(struct report_out *r, const char *note, const char *more)
{
    const bool json = r->format == FLEET_FORMAT_JSON;
    const bool markdown = r->format == FLEET_FORMAT_MARKDOWN;
    const char *const notes[] = {note, more};

    if (r->format == FLEET_FORMAT_TABLE && r->rows == 0)
        fputs("  none\n", r->out);
    else if (r->held)
        print_held(r);
    if (json)
        fputs("\n ], \"notes\": [", r->out);
    for (int i = 0; i < 2 && r->format != FLEET_FORMAT_CSV; i++) {
        if (!notes[i])
            continue;
        fputs(!json ? markdown ? "\n" : "  " : i > 0 && note ? ", " : "", r->out);
        put_text(r->out, r->format, notes[i]);
        fputs(json ? "" : "\n", r->out);
    }
    if (json)
        fputs("]}", r->out);
}

enum status report_end(struct report_out *r, struct err *err)
{
    if (r->format == FLEET_FORMAT_JSON)
        fputs("}\n", r->out);
    if (r->no_memory)
        return err_set(err, STATUS_NO_MEMORY, "no memory for a report");
    if (fflush(r->out) != 0 || ferror(r->out))
        return err_set(err, STATUS_IO, "cannot write the report");
    return STATUS_OK;
}
