/* show_evidence.c: reachctl show --evidence: what each number of a fingerprint rests on. That of
 * the elements of a list stands in columns beside it (daemon/fingerprint/evidence_json.h), or
 * inside them, in fingerprints of before there were columns. */
#include "clients/reachctl/show.h"

#include "clients/reachctl/text.h"

static void add_row(struct text_table *t, const char *of, const char *name, const json_t *one)
{
    char(*cells)[TEXT_CELL_BYTES] = text_table_row(t);

    snprintf(cells[0], TEXT_CELL_BYTES, "%s", of);
    snprintf(cells[1], TEXT_CELL_BYTES, "%s", name);
    text_word(one, "method", cells[2]);
    text_count(one, "repeats", cells[3]);
    text_real(one, "margin", 3, "", cells[4]);
}

/* One row for each piece of evidence of one object; `of` says which object. */
static void add_rows(struct text_table *t, const char *of, const json_t *object)
{
    const char *name;
    json_t *one;

    json_object_foreach(json_object_get(object, "evidence"), name, one)
    {
        add_row(t, of, name, one);
    }
}

/* What one part of a column says of element i: borrowed; NULL where it says nothing. */
static json_t *entry(const json_t *column, const char *part, size_t i)
{
    json_t *const value = json_object_get(column, part);

    return json_is_array(value) ? json_array_get(value, i) : value;
}

/* The same rows for element i of a list, out of the columns beside it. */
static void add_from_columns(struct text_table *t, const char *of, json_t *columns, size_t i)
{
    static const char *const parts[] = {"method", "repeats", "margin"};
    const char *name;
    json_t *column;

    json_object_foreach(columns, name, column)
    {
        json_t *const one = json_object();
        for (size_t k = 0; k < sizeof(parts) / sizeof(parts[0]); k++)
            (void)json_object_set(one, parts[k], entry(column, parts[k], i));
        if (json_is_number(json_object_get(one, "margin")))
            add_row(t, of, name, one);
        json_decref(one);
    }
}

/* The same for all objects of an array, which are called by one of their fields. */
static void add_array(struct text_table *t, const char *what, const char *field, bool is_size,
                      const json_t *array, json_t *columns)
{
    size_t i;
    json_t *object;

    json_array_foreach(array, i, object)
    {
        char value[TEXT_CELL_BYTES];
        char of[TEXT_CELL_BYTES];
        if (is_size)
            text_size(object, field, value);
        else
            text_count(object, field, value);
        snprintf(of, sizeof(of), "%.20s %.40s", what, value);
        add_rows(t, of, object);
        add_from_columns(t, of, columns, i);
    }
}

static void add_rates(struct text_table *t, const json_t *rates)
{
    size_t i;
    json_t *rate;

    json_array_foreach(rates, i, rate)
    {
        char bytes[TEXT_CELL_BYTES];
        char access[TEXT_CELL_BYTES];
        char of[TEXT_CELL_BYTES];
        snprintf(of, sizeof(of), "%.20s of %.20s bytes", text_word(rate, "access", access),
                 text_count(rate, "transaction_bytes", bytes));
        add_rows(t, of, rate);
        add_array(t, access, "region_bytes", true, json_object_get(rate, "points"),
                  json_object_get(rate, "point_evidence"));
    }
}

void show_evidence(const json_t *fp)
{
    const json_t *topology = json_object_get(fp, "topology");
    const json_t *throughput = json_object_get(fp, "throughput");
    struct text_table t;

    puts("\nevidence (margin: 0 at the threshold, 1 as far from it as can be)");
    text_table_begin(&t, "of|number|method|>repeats|>margin");
    add_array(&t, "level", "level", false, json_object_get(json_object_get(fp, "tlb"), "levels"),
              NULL);
    add_rows(&t, "SM groups", topology);
    add_array(&t, "group", "id", false, json_object_get(topology, "groups"),
              json_object_get(topology, "group_evidence"));
    add_rows(&t, "throughput", throughput);
    add_array(&t, "region", "region_bytes", true, json_object_get(throughput, "curve"),
              json_object_get(throughput, "curve_evidence"));
    add_rates(&t, json_object_get(throughput, "rates"));
    text_table_end(&t, stdout);
}
