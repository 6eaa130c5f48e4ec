/* report.c: see report.h. An object is printed as a block of lines, one for each number, followed
 * by its lists. A list is a table with a row for each element. If its elements have more numbers
 * than fit side by side, it has a column for each element. */
#include "batch/report.h"

#include "fingerprint/fingerprint_json.h"
#include "fingerprint/members.h"
#include "base/format_size.h"

#include <stdlib.h>
#include <string.h>

enum { CELL_BYTES = 512, TITLE_BYTES = 128, MAX_COLUMNS = 9 };

/* The output file, and whether to print all lists. */
struct report {
    FILE *out;
    bool all;
};

static void print_object(const struct report *r, const char *title, const struct object *o,
                         const json_t *json);

/* ---- cells ---- */

static const char *reason_of(const json_t *object, const char *name)
{
    char field[REASON_FIELD_BYTES];
    const char *const reason =
        json_string_value(json_object_get(object, reason_field(name, field)));

    return reason ? reason : "not-measured";
}

/* Returns whether the reason is more than "not measured". */
static bool is_told(const json_t *object, const struct member *m)
{
    const json_t *const value = json_object_get(object, m->name);

    return value &&
           (!json_is_null(value) ||
            (member_is_maybe(m) && strcmp(reason_of(object, m->name), "not-measured") != 0));
}

static bool is_cell(const struct member *m)
{
    return m->name && (member_is_scalar(m) || m->type == MEMBER_INDEX ||
                       m->type == MEMBER_GROUP_SMS || m->type == MEMBER_TWO_GROUPS);
}

/* Writes "not sure (disagreement)", "not observable (beyond-memory)", or "-" if the number does not
 * apply here. */
static void put_absent(const json_t *object, const char *name, char *out)
{
    static const char not_observable[] = "not-observable: ";
    const char *const why = reason_of(object, name);
    const size_t prefix = sizeof(not_observable) - 1;

    if (strcmp(why, "not-applicable") == 0 || strcmp(why, "not-measured") == 0)
        (void)snprintf(out, CELL_BYTES, "-");
    else if (strncmp(why, not_observable, prefix) == 0)
        (void)snprintf(out, CELL_BYTES, "not observable (%s)", why + prefix);
    else
        (void)snprintf(out, CELL_BYTES, "not sure (%s)", why);
}

void report_put_ranges(const json_t *array, char *out, size_t out_size)
{
    enum { ROOM = 28 }; /* room for one range and the dots */
    const size_t count = json_array_size(array);
    size_t n = 0;

    out[0] = '\0';
    for (size_t i = 0; i < count && n + ROOM < out_size;) {
        const long long first = json_integer_value(json_array_get(array, i));
        long long last = first;

        while (++i < count && json_integer_value(json_array_get(array, i)) == last + 1)
            last++;
        n += (size_t)snprintf(out + n, out_size - n, last > first ? "%s%lld-%lld" : "%s%lld",
                              n > 0 ? "," : "", first, last);
        if (i < count && n + ROOM >= out_size)
            (void)snprintf(out + n, out_size - n, "...");
    }
}

static void put_real(const struct member *m, double v, char *out)
{
    const char *const unit = member_unit(m);
    const int digits = unit[0] == '\0' || strcmp(unit, "ns") == 0 ? 3 : 1;

    (void)snprintf(out, CELL_BYTES, "%.*f", digits, v);
}

/* Writes the value of a row in an object, or "" if the value is absent. */
static const char *put_cell(const struct member *m, const json_t *object, char *out)
{
    const json_t *const value = json_object_get(object, m->name);

    out[0] = '\0';
    if (json_is_null(value))
        put_absent(object, m->name, out);
    else if (json_is_string(value))
        (void)snprintf(out, CELL_BYTES, "%s", json_string_value(value));
    else if (json_is_array(value))
        report_put_ranges(value, out, CELL_BYTES);
    else if (json_is_integer(value) && strcmp(member_unit(m), "bytes") == 0)
        (void)format_size((uint64_t)json_integer_value(value), out);
    else if (json_is_integer(value))
        (void)snprintf(out, CELL_BYTES, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        put_real(m, json_real_value(value), out);
    return out;
}

/* Writes a heading such as "miss penalty in cycles". Sizes contain their unit, so their heading has
 * none. */
static const char *put_heading(const struct member *m, char *out)
{
    const char *const unit = member_unit(m);

    (void)member_label(m, out);
    if (unit[0] && strcmp(unit, "bytes") != 0 && strcmp(unit, out) != 0)
        (void)snprintf(out + strlen(out), TITLE_BYTES - strlen(out), " in %s", unit);
    return out;
}

/* Writes the key of an element for use in a sentence. Counts are written without a unit. */
static const char *put_key(const struct member *m, const json_t *element, char *out)
{
    if (m->type == MEMBER_U32)
        (void)snprintf(out, CELL_BYTES, "%lld",
                       (long long)json_integer_value(json_object_get(element, m->name)));
    return m->type == MEMBER_U32 ? out : put_cell(m, element, out);
}

/* Writes the introduction of an element of a list, without blanks and commas at its end. */
static const char *put_element(const struct member *list, const json_t *element, char *out)
{
    const char *const pattern = list->element ? list->element : "%";
    const struct member *m = NULL;
    char key[CELL_BYTES];
    size_t n = 0;

    out[0] = '\0';
    for (const char *c = pattern; *c && n < TITLE_BYTES; c++) {
        m = *c == '%' ? object_next_key(list->object, m) : m;
        if (*c == '%' && !m) /* the elements have no further key */
            break;
        n += (size_t)snprintf(out + n, TITLE_BYTES - n, "%.*s", *c == '%' ? TITLE_BYTES : 1,
                              *c == '%' ? put_key(m, element, key) : c);
    }
    while (n > 0 && n < TITLE_BYTES && strchr(" ,", out[n - 1]))
        out[--n] = '\0';
    return out;
}

/* ---- tables ---- */

static bool is_column(const struct member *m, const json_t *array)
{
    bool told = false;
    size_t i;
    const json_t *element;

    json_array_foreach(array, i, element)
    {
        told = told || is_told(element, m);
    }
    return told && is_cell(m);
}

static int width_of_column(const struct member *m, const json_t *array, const char *heading)
{
    size_t width = strlen(heading);
    char cell[CELL_BYTES];
    size_t i;
    const json_t *element;

    json_array_foreach(array, i, element)
    {
        const size_t n = strlen(put_cell(m, element, cell));
        width = n > width ? n : width;
    }
    return (int)width;
}

/* Prints the row of `element`, or the headings if it is NULL. */
static void print_row(const struct report *r, const struct object *o, const json_t *array,
                      const json_t *element)
{
    const char *gap = "  ";

    for (const struct member *m = o->members; m < o->members + o->count; m++) {
        char heading[TITLE_BYTES], cell[CELL_BYTES];

        if (!is_column(m, array))
            continue;
        const int width = width_of_column(m, array, put_heading(m, heading));
        const bool is_left = m->type == MEMBER_NAME || m->type == MEMBER_GROUP_SMS;
        fprintf(r->out, "%s%*s", gap, is_left ? -width : width,
                element ? put_cell(m, element, cell) : heading);
    }
    fputc('\n', r->out);
}

static void print_upright(const struct report *r, const struct object *o, const json_t *array)
{
    size_t i;
    const json_t *element;

    print_row(r, o, array, NULL);
    json_array_foreach(array, i, element)
    {
        print_row(r, o, array, element);
    }
}

/* Returns whether the element has any value besides its keys. */
static bool is_known(const struct object *o, const json_t *element)
{
    bool known = false;

    for (const struct member *m = o->members; m < o->members + o->count; m++)
        known = known || (!m->key && is_cell(m) && is_told(element, m));
    return known;
}

/* Returns the width of the column of one element, or of the headings if `element` is NULL. */
static int width_across(const struct member *list, const json_t *array, const json_t *element)
{
    const struct object *const o = list->object;
    char text[CELL_BYTES];
    size_t width = element ? strlen(put_element(list, element, text)) : 0;

    for (const struct member *m = o->members; m < o->members + o->count; m++) {
        const bool is_row = is_column(m, array) && !m->key;
        const size_t n =
            is_row ? strlen(element ? put_cell(m, element, text) : put_heading(m, text)) : 0;
        width = n > width ? n : width;
    }
    return (int)width;
}

/* Prints one row of a table that has a column for each element. The row contains a number of each
 * element, or the headings of the columns if `m` is NULL. */
static void print_across_line(const struct report *r, const struct member *list,
                              const json_t *array, const struct member *m)
{
    char text[CELL_BYTES] = "";
    size_t i;
    const json_t *element;

    if (m)
        (void)put_heading(m, text);
    fprintf(r->out, "  %-*s", width_across(list, array, NULL), text);
    json_array_foreach(array, i, element)
    {
        if (is_known(list->object, element))
            fprintf(r->out, "  %*s", width_across(list, array, element),
                    m ? put_cell(m, element, text) : put_element(list, element, text));
    }
    fputc('\n', r->out);
}

/* Prints a column for each element that has a known number. */
static void print_across(const struct report *r, const struct member *list, const json_t *array)
{
    const struct object *const o = list->object;

    print_across_line(r, list, array, NULL);
    for (const struct member *m = o->members; m < o->members + o->count; m++)
        if (is_column(m, array) && !m->key)
            print_across_line(r, list, array, m);
}

/* ---- arrays ---- */

static void print_list(const struct report *r, const char *title, const struct member *list,
                       const json_t *array)
{
    const struct object *const o = list->object;
    int columns = 0;
    size_t i;
    const json_t *element;

    if (json_array_size(array) == 0 || (list->is_long && !r->all))
        return;
    for (const struct member *m = o->members; m < o->members + o->count; m++)
        columns += is_column(m, array);
    fprintf(r->out, "\n%s\n", title);
    if (columns > MAX_COLUMNS)
        print_across(r, list, array);
    else
        print_upright(r, o, array);
    json_array_foreach(array, i, element)
    {
        for (const struct member *m = o->members; m < o->members + o->count; m++) {
            char of[TITLE_BYTES], inner[2 * TITLE_BYTES], label[MEMBER_LABEL_BYTES];

            (void)snprintf(inner, sizeof(inner), "%s, %s", put_element(list, element, of),
                           member_label(m, label));
            if (m->type == MEMBER_LIST)
                print_list(r, inner, m, json_object_get(element, m->name));
        }
    }
}

/* Prints a line for each group: its SMs, or its disabled SMs. */
static void print_arrays(const struct report *r, const struct member *m, const json_t *array)
{
    char label[MEMBER_LABEL_BYTES], text[CELL_BYTES];
    size_t i;
    const json_t *one;

    json_array_foreach(array, i, one)
    {
        if (json_is_object(one))
            (void)snprintf(text, sizeof(text), "%d SMs of group %d",
                           (int)json_integer_value(json_object_get(one, "sms")),
                           (int)json_integer_value(json_object_get(one, "group")));
        else if (json_is_string(one))
            (void)snprintf(text, sizeof(text), "%s", json_string_value(one));
        else
            report_put_ranges(one, text, sizeof(text));
        if (text[0])
            fprintf(r->out, "  %s %zu: %s\n", member_label(m, label), i, text);
    }
}

/* ---- objects ---- */

static int width_of_headings(const struct object *o, const json_t *json)
{
    int width = 0;

    for (const struct member *m = o->members; m < o->members + o->count; m++) {
        char heading[TITLE_BYTES];
        const int n = is_cell(m) && is_told(json, m) ? (int)strlen(put_heading(m, heading)) : 0;
        width = n > width ? n : width;
    }
    return width;
}

static void print_lines(const struct report *r, const struct object *o, const json_t *json)
{
    const int width = width_of_headings(o, json);

    for (const struct member *m = o->members; m < o->members + o->count; m++) {
        char heading[TITLE_BYTES], cell[CELL_BYTES];

        if (is_cell(m) && is_told(json, m))
            fprintf(r->out, "  %-*s  %s\n", width, put_heading(m, heading),
                    put_cell(m, json, cell));
        else if (m->name && m->type != MEMBER_OBJECT && m->type != MEMBER_LIST)
            print_arrays(r, m, json_object_get(json, m->name));
    }
}

/* Returns whether the object has numbers to print besides lists and objects. */
static bool has_lines(const struct object *o, const json_t *json)
{
    for (const struct member *m = o->members; m < o->members + o->count; m++)
        if (m->name && m->type != MEMBER_OBJECT && m->type != MEMBER_LIST &&
            (is_cell(m) ? is_told(json, m) : json_array_size(json_object_get(json, m->name)) > 0))
            return true;
    return false;
}

static void print_inside(const struct report *r, const struct member *m, const json_t *value)
{
    char label[MEMBER_LABEL_BYTES];

    if (m->type == MEMBER_OBJECT)
        print_object(r, member_label(m, label), m->object, value);
    else
        print_list(r, member_label(m, label), m, value);
}

static void print_object(const struct report *r, const char *title, const struct object *o,
                         const json_t *json)
{
    if (has_lines(o, json)) {
        fprintf(r->out, "\n%s\n", title);
        print_lines(r, o, json);
    }
    for (const struct member *m = o->members; m < o->members + o->count; m++)
        if (m->type == MEMBER_OBJECT || m->type == MEMBER_LIST)
            print_inside(r, m, json_object_get(json, m->name));
}

void report_print(FILE *out, const json_t *fp)
{
    const struct report r = {.out = out};
    const json_t *const gpu = json_object_get(fp, "gpu");
    const char *const origin = json_string_value(json_object_get(fp, "origin"));
    char memory[FORMAT_SIZE_BYTES], title[TITLE_BYTES];

    fprintf(out, "%s  %s\n%d SMs", json_string_value(json_object_get(gpu, "name")),
            json_string_value(json_object_get(gpu, "uuid")),
            (int)json_integer_value(json_object_get(gpu, "sm_count")));
    if (origin && strcmp(origin, "imported") == 0)
        fprintf(out, "; the files lack the memory size and the driver\n");
    else
        fprintf(
            out, ", %s, driver %s\n",
            format_size((uint64_t)json_integer_value(json_object_get(gpu, "memory_bytes")), memory),
            json_string_value(json_object_get(gpu, "driver_version")));
    if (origin && strcmp(origin, "measured") != 0)
        fprintf(out, "%s: not measured on this hardware\n", origin);
    (void)snprintf(title, sizeof(title), "fingerprint %s",
                   json_string_value(json_object_get(fp, "id")));
    print_object(&r, title, &fingerprint_object, fp);
}

void report_member(FILE *out, const char *name, const json_t *value, bool all)
{
    const struct report r = {.out = out, .all = all};

    print_inside(&r, object_member(&fingerprint_object, name), value);
}

/* Returns the first object of a fingerprint that has a number called `name`, or NULL if there is
 * none. */
static const struct member *find_object(const char *name)
{
    for (const struct member *m = fingerprint_object.members;
         m < fingerprint_object.members + fingerprint_object.count; m++)
        if (m->type == MEMBER_OBJECT && object_member(m->object, name))
            return m;
    return NULL;
}

void report_numbers(FILE *out, const json_t *object)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)object, name, value)
    {
        const struct member *const part = find_object(name);
        const struct member *const m = part ? object_member(part->object, name) : NULL;
        char label[MEMBER_LABEL_BYTES], heading[TITLE_BYTES], cell[CELL_BYTES];

        if (m && is_told(object, m))
            fprintf(out, "  %s, %s: %s\n", member_label(part, label), put_heading(m, heading),
                    put_cell(m, object, cell));
    }
}

/* ---- evidence ---- */

static void print_evidence(const struct report *r, const char *of, const json_t *evidence)
{
    const char *number;
    json_t *e;

    json_object_foreach((json_t *)(uintptr_t)evidence, number, e)
    {
        if (json_is_number(json_object_get(e, "margin")))
            fprintf(r->out, "%-28s  %-22s  %-16s  %7lld  %6.3f\n", of, number,
                    json_string_value(json_object_get(e, "method")),
                    (long long)json_integer_value(json_object_get(e, "repeats")),
                    json_number_value(json_object_get(e, "margin")));
    }
}

/* Returns the evidence of element `i`, from the columns beside its list. */
static json_t *element_evidence(const json_t *columns, size_t i)
{
    json_t *const all = json_object();
    const char *number, *part;
    json_t *column, *value;

    json_object_foreach((json_t *)(uintptr_t)columns, number, column)
    {
        json_t *const one = json_object();

        json_object_foreach(column, part, value)
        {
            (void)json_object_set(one, part,
                                  json_is_array(value) ? json_array_get(value, i) : value);
        }
        (void)json_object_set_new(all, number, one);
    }
    return all;
}

static void walk_evidence(const struct report *r, const char *of, const struct object *o,
                          const json_t *json);

static void walk_list_evidence(const struct report *r, const struct member *list,
                               const json_t *parent)
{
    const json_t *const columns = list->columns ? json_object_get(parent, list->columns) : NULL;
    size_t i;
    const json_t *element;

    json_array_foreach(json_object_get(parent, list->name), i, element)
    {
        json_t *const own = element_evidence(columns, i);
        char of[TITLE_BYTES];

        print_evidence(r, put_element(list, element, of), own);
        json_decref(own);
        walk_evidence(r, of, list->object, element);
    }
}

static void walk_evidence(const struct report *r, const char *of, const struct object *o,
                          const json_t *json)
{
    print_evidence(r, of, json_object_get(json, "evidence"));
    for (const struct member *m = o->members; m < o->members + o->count; m++) {
        char label[MEMBER_LABEL_BYTES];

        if (m->type == MEMBER_OBJECT)
            walk_evidence(r, member_label(m, label), m->object, json_object_get(json, m->name));
        else if (m->type == MEMBER_LIST)
            walk_list_evidence(r, m, json);
    }
}

void report_evidence(FILE *out, const json_t *fp)
{
    const struct report r = {.out = out};

    fprintf(
        out,
        "\nevidence (margin: 0 at the threshold, 1 at the largest distance from the threshold)\n");
    fprintf(out, "%-28s  %-22s  %-16s  %7s  %6s\n", "of", "number", "method", "repeats", "margin");
    walk_evidence(&r, "fingerprint", &fingerprint_object, fp);
}

enum status report_fingerprint(FILE *out, const struct fingerprint *fp, bool evidence,
                               struct err *err)
{
    struct json_writer t;
    size_t bytes = 0;
    char *text;
    json_t *json;

    json_writer_begin(&t, 0);
    fingerprint_write(&t, NULL, fp, NULL);
    text = json_writer_end(&t, &bytes);
    json = text ? json_loadb(text, bytes, 0, NULL) : NULL;
    free(text);
    if (!json)
        return err_no_memory(err, "a document");
    report_print(out, json);
    if (evidence)
        report_evidence(out, json);
    json_decref(json);
    return STATUS_OK;
}
