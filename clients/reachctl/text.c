/* text.c: numbers and tables for people. */
#include "clients/reachctl/text.h"

#include "planner/format_size.h"

#include <stdlib.h>
#include <string.h>

static const char NOT_OBSERVABLE_PREFIX[] = "not-observable: ";
_Static_assert((int)TEXT_CELL_BYTES >= (int)FORMAT_SIZE_BYTES, "a size fits a cell");

/* Why a number is not there, from the field beside it. */
static char *absent(const json_t *object, const char *name, char *out)
{
    const size_t prefix = sizeof(NOT_OBSERVABLE_PREFIX) - 1;
    char field[64];
    const char *why;

    snprintf(field, sizeof(field), "%s_reason", name);
    why = json_string_value(json_object_get(object, field));
    if (!why)
        why = "not-reported";
    if (strcmp(why, "not-applicable") == 0)
        snprintf(out, TEXT_CELL_BYTES, "-"); /* nobody is unsure: it has no meaning here */
    else if (strncmp(why, NOT_OBSERVABLE_PREFIX, prefix) == 0)
        snprintf(out, TEXT_CELL_BYTES, "not observable (%.60s)", why + prefix);
    else
        snprintf(out, TEXT_CELL_BYTES, "not sure (%.60s)", why);
    return out;
}

char *text_size(const json_t *object, const char *name, char *out)
{
    const json_t *value = json_object_get(object, name);

    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return absent(object, name, out);
    return format_size((uint64_t)json_integer_value(value), out);
}

char *text_count(const json_t *object, const char *name, char *out)
{
    const json_t *value = json_object_get(object, name);

    if (!json_is_integer(value))
        return absent(object, name, out);
    snprintf(out, TEXT_CELL_BYTES, "%lld", (long long)json_integer_value(value));
    return out;
}

char *text_real(const json_t *object, const char *name, int digits, const char *unit, char *out)
{
    const json_t *value = json_object_get(object, name);

    if (!json_is_number(value))
        return absent(object, name, out);
    snprintf(out, TEXT_CELL_BYTES, "%.*f%s%s", digits, json_number_value(value), *unit ? " " : "",
             unit);
    return out;
}

char *text_word(const json_t *object, const char *name, char *out)
{
    const char *word = json_string_value(json_object_get(object, name));

    snprintf(out, TEXT_CELL_BYTES, "%s", word && *word ? word : "-");
    return out;
}

char *text_ranges(const json_t *array, char *out, size_t out_size)
{
    enum { ROOM = 28 }; /* for one range and the dots */
    size_t at = 0;
    size_t n = json_array_size(array);

    out[0] = '\0';
    for (size_t i = 0; i < n;) {
        long long first = json_integer_value(json_array_get(array, i));
        long long last = first;
        while (++i < n && json_integer_value(json_array_get(array, i)) == last + 1)
            last++;
        if (at + ROOM > out_size) {
            snprintf(out + at, out_size - at, "...");
            break;
        }
        at += (size_t)snprintf(out + at, out_size - at, "%s%lld", at ? "," : "", first);
        if (last > first)
            at += (size_t)snprintf(out + at, out_size - at, "-%lld", last);
    }
    return out;
}

/* ---- tables ---- */

static char (*cell_row(const struct text_table *t, uint32_t row))[TEXT_CELL_BYTES]
{
    return (char(*)[TEXT_CELL_BYTES])(t->cells + (size_t)row * t->columns * TEXT_CELL_BYTES);
}

void text_table_begin(struct text_table *t, const char *head)
{
    char(*cells)[TEXT_CELL_BYTES];
    uint32_t column = 0;

    *t = (struct text_table){.columns = 1};
    for (const char *c = head; *c; c++)
        t->columns += *c == '|';
    cells = text_table_row(t);
    for (const char *at = head; column < t->columns; column++) {
        size_t length;
        t->right[column] = *at == '>';
        at += t->right[column];
        length = strcspn(at, "|");
        snprintf(cells[column], TEXT_CELL_BYTES, "%.*s", (int)length, at);
        at += length + (at[length] == '|');
    }
}

char (*text_table_row(struct text_table *t))[TEXT_CELL_BYTES]
{
    static char spare[TEXT_MAX_COLUMNS][TEXT_CELL_BYTES];
    const size_t row_bytes = (size_t)t->columns * TEXT_CELL_BYTES;
    char *grown = t->failed ? NULL : realloc(t->cells, (t->rows + 1) * row_bytes);

    if (!grown) {
        t->failed = true;
        return spare;
    }
    t->cells = grown;
    memset(grown + t->rows * row_bytes, 0, row_bytes);
    return cell_row(t, t->rows++);
}

static void print_row(const struct text_table *t, uint32_t row, const int *widths, FILE *out)
{
    char(*cells)[TEXT_CELL_BYTES] = cell_row(t, row);

    for (uint32_t c = 0; c < t->columns; c++) {
        const bool last = c + 1 == t->columns;
        if (t->right[c])
            fprintf(out, "%*s", widths[c], cells[c]);
        else if (last)
            fprintf(out, "%s", cells[c]); /* no blanks at the end of a line */
        else
            fprintf(out, "%-*s", widths[c], cells[c]);
        fputs(last ? "\n" : "  ", out);
    }
}

void text_table_end(struct text_table *t, FILE *out)
{
    int widths[TEXT_MAX_COLUMNS] = {0};

    for (uint32_t row = 0; row < t->rows; row++) {
        char(*cells)[TEXT_CELL_BYTES] = cell_row(t, row);
        for (uint32_t c = 0; c < t->columns; c++) {
            if ((int)strlen(cells[c]) > widths[c])
                widths[c] = (int)strlen(cells[c]);
        }
    }
    for (uint32_t row = 0; row < t->rows; row++)
        print_row(t, row, widths, out);
    if (t->failed)
        fputs("reachctl: no memory for the whole table\n", stderr);
    free(t->cells);
    *t = (struct text_table){.columns = 0};
}
