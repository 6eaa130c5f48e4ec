/* text.c: fields of a JSON document as text (text.h). */
#include "clients/reachctl/text.h"

#include "batch/report.h"
#include "base/format_size.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELD_BYTES = 1024, SPEC_BYTES = 64 };

static const char NOT_OBSERVABLE_PREFIX[] = "not-observable: ";

/* Writes the reason why a number is null: the field NAME_reason. */
static void put_absent(const json_t *object, const char *name, char *out)
{
    const size_t prefix = sizeof(NOT_OBSERVABLE_PREFIX) - 1;
    char field[SPEC_BYTES + 8];
    const char *why;

    snprintf(field, sizeof(field), "%s_reason", name);
    why = json_string_value(json_object_get(object, field));
    if (!why)
        why = "not-reported";
    if (strcmp(why, "not-applicable") == 0)
        snprintf(out, FIELD_BYTES, "-"); /* the number has no meaning here */
    else if (strncmp(why, NOT_OBSERVABLE_PREFIX, prefix) == 0)
        snprintf(out, FIELD_BYTES, "not observable (%.60s)", why + prefix);
    else
        snprintf(out, FIELD_BYTES, "not sure (%.60s)", why);
}

/* Writes one value, the member `name` of `object`. */
static void put_value(const json_t *object, const char *name, const json_t *value,
                      const char *format, char *out)
{
    const char *word = json_string_value(value);
    const bool integer = json_is_integer(value);

    if (*format == '-') {
        if (integer && json_integer_value(value) == 0)
            snprintf(out, FIELD_BYTES, "-");
        else
            put_value(object, name, value, format + 1, out);
    } else if (*format == '\0')
        snprintf(out, FIELD_BYTES, "%s", word && *word ? word : "-");
    else if (*format == 'd' && integer)
        snprintf(out, FIELD_BYTES, "%lld", (long long)json_integer_value(value));
    else if (*format == 'B' && integer && json_integer_value(value) >= 0)
        format_size((uint64_t)json_integer_value(value), out);
    else if (*format == 'y')
        snprintf(out, FIELD_BYTES, "%s", json_is_true(value) ? "yes" : "no");
    else if (*format == 'n')
        snprintf(out, FIELD_BYTES, "%zu", json_array_size(value));
    else if (*format == 'r')
        report_put_ranges(value, out, FIELD_BYTES);
    else if (*format >= '0' && *format <= '9' && json_is_number(value))
        snprintf(out, FIELD_BYTES, "%.*f%s", *format - '0', json_number_value(value), format + 1);
    else
        put_absent(object, name, out);
}

static const json_t *get_member(const json_t *object, const char *name)
{
    return json_is_array(object) ? json_array_get(object, strtoul(name, NULL, 10))
                                 : json_object_get(object, name);
}

/* Writes the field that has these `length` characters between its braces. */
static void put_field(const json_t *object, size_t row, const char *spec, int length, char *out)
{
    char path[SPEC_BYTES];
    char *name = path;
    char *format = path + snprintf(path, sizeof(path), "%.*s", length, spec);
    bool optional;

    if (strcmp(path, "#") == 0) {
        snprintf(out, FIELD_BYTES, "%zu", row);
        return;
    }
    if (strchr(path, ':')) {
        format = strchr(path, ':');
        *format++ = '\0';
    }
    optional = path[strlen(path) - 1] == '?';
    if (optional)
        path[strlen(path) - 1] = '\0';
    for (char *dot; (dot = strchr(name, '.')); name = dot + 1) {
        *dot = '\0';
        object = get_member(object, name);
    }
    if (optional && !get_member(object, name))
        out[0] = '\0';
    else
        put_value(object, name, get_member(object, name), format, out);
}

static char *expand_template(const json_t *object, size_t row, const char *template, char *out,
                             size_t out_size)
{
    size_t at = 0;

    out[0] = '\0';
    while (*template && at < out_size) {
        const size_t text = strcspn(template, "{");
        char field[FIELD_BYTES] = "";
        at += (size_t)snprintf(out + at, out_size - at, "%.*s", (int)text, template);
        template += text;
        if (*template == '{') {
            const size_t length = strcspn(template, "}");
            put_field(object, row, template + 1, (int)length - 1, field);
            template += length + 1;
        }
        if (at < out_size)
            at += (size_t)snprintf(out + at, out_size - at, "%s", field);
    }
    return out;
}

char *text_expand(const json_t *object, const char *template, char *out, size_t out_size)
{
    return expand_template(object, 0, template, out, out_size);
}

void text_print(const json_t *object, const char *template)
{
    char line[TEXT_LINE_BYTES];

    fputs(text_expand(object, template, line, sizeof(line)), stdout);
}

/* ---- tables ---- */

struct column {
    bool right;
    char title[TEXT_CELL_BYTES];
    char cell[TEXT_CELL_BYTES]; /* template */
    int width;
};

/* Returns the number of columns. */
static int parse_columns(const char *text, struct column *out)
{
    int count = 0;

    for (bool more = true; more && count < TEXT_MAX_COLUMNS; count++) {
        struct column *c = &out[count];
        const size_t length = strcspn(text, "|");
        const size_t title = strcspn(text, "{");
        const bool right = *text == '>';
        snprintf(c->title, sizeof(c->title), "%.*s", (int)title - 1 - right, text + right);
        snprintf(c->cell, sizeof(c->cell), "%.*s", (int)(length - title), text + title);
        c->right = right;
        c->width = (int)strlen(c->title);
        more = text[length] == '|';
        text += length + more;
    }
    return count;
}

static void print_cell(const struct column *c, const char *text, bool last)
{
    /* The last column has no blanks behind it if it is left-aligned. */
    printf("%*s%s", c->right ? c->width : last ? 0 : -c->width, text, last ? "\n" : "  ");
}

void text_table(const json_t *rows, const char *columns)
{
    struct column all[TEXT_MAX_COLUMNS];
    const int count = parse_columns(columns, all);
    char text[TEXT_CELL_BYTES];
    size_t i;
    json_t *row;

    json_array_foreach(rows, i, row)
    {
        for (int c = 0; c < count; c++) {
            const int width = (int)strlen(expand_template(row, i, all[c].cell, text, sizeof(text)));
            all[c].width = width > all[c].width ? width : all[c].width;
        }
    }
    for (int c = 0; c < count; c++)
        print_cell(&all[c], all[c].title, c + 1 == count);
    json_array_foreach(rows, i, row)
    {
        for (int c = 0; c < count; c++)
            print_cell(&all[c], expand_template(row, i, all[c].cell, text, sizeof(text)),
                       c + 1 == count);
    }
}
