/* show_evidence.c: reachctl show --evidence: what each number of a fingerprint rests on. */
#include "clients/reachctl/show.h"

#include "clients/reachctl/text.h"

/* One row for each piece of evidence of one object; `of` says which object. */
static void add_rows(struct text_table *t, const char *of, const json_t *object)
{
    const char *name;
    json_t *one;

    json_object_foreach(json_object_get(object, "evidence"), name, one)
    {
        char(*cells)[TEXT_CELL_BYTES] = text_table_row(t);
        snprintf(cells[0], TEXT_CELL_BYTES, "%s", of);
        snprintf(cells[1], TEXT_CELL_BYTES, "%s", name);
        text_word(one, "method", cells[2]);
        text_count(one, "repeats", cells[3]);
        text_real(one, "margin", 3, "", cells[4]);
    }
}

/* The same for all objects of an array, which are called by one of their fields. */
static void add_array(struct text_table *t, const char *what, const char *field, bool is_size,
                      const json_t *array)
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
        add_array(t, access, "region_bytes", true, json_object_get(rate, "points"));
    }
}

void show_evidence(const json_t *fp)
{
    const json_t *topology = json_object_get(fp, "topology");
    const json_t *throughput = json_object_get(fp, "throughput");
    struct text_table t;

    puts("\nevidence (margin: 0 at the threshold, 1 as far from it as can be)");
    text_table_begin(&t, "of|number|method|>repeats|>margin");
    add_array(&t, "level", "level", false, json_object_get(json_object_get(fp, "tlb"), "levels"));
    add_rows(&t, "SM groups", topology);
    add_array(&t, "group", "id", false, json_object_get(topology, "groups"));
    add_rows(&t, "throughput", throughput);
    add_array(&t, "region", "region_bytes", true, json_object_get(throughput, "curve"));
    add_rates(&t, json_object_get(throughput, "rates"));
    text_table_end(&t, stdout);
}
