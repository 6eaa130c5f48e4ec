/* encode_csv.c: one line for each value of an observation, after its position.
 *
 *   kind    columns
 *   chase   pages,sample,cycles
 *   round   repeat,thrashed,sm,slice_page,cycles
 *   pairs   pivot_sm,thrashed,sm,slice_page,cycles
 *   read    region_bytes,repeat,sm,elapsed_ns,lines (or accesses, if the probe names a kind)
 *   sides   repeat,sm,page,cycles
 *   cache   elements,sample,cycles
 *   spread  set_bytes,repeat,sm,elapsed_ns,reads
 *   shared  repeat,sm,point,cycles
 *   peer    repeat,row,column,value, in the order of gpu/probe.h
 *   in-flight  point,repeat,sm,elapsed_ns,lines
 *
 * One header line, one line per value (RFC 4180, except for plain line feeds). The JSON document is
 * read and not the struct, so that the API does not depend on probes. The lengths of the axes are
 * in "shape", the names of their positions in "probe" and "sm_ids".
 */
#include "api/encode/encode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_AXES = 4 };

struct table {
    const json_t *names; /* first axis: points, pivots, or SMs of sides; NULL means its index */
    const json_t *sms;
    const json_t *values;
    size_t axes[MAX_AXES];
    size_t axis_count;
};

struct kind {
    const char *name;
    const char *header;
    size_t axis_count;
    const char *first_axis; /* field of "probe" that names its positions; NULL means its index */
    void (*write)(FILE *out, const struct table *t);
};

static long long at(const json_t *array, size_t i)
{
    return json_integer_value(json_array_get(array, i));
}

static long long first_name(const struct table *t, size_t i)
{
    return t->names ? at(t->names, i) : (long long)i;
}

/* CHASE [point][sample]; ROUND and PAIRS [repeat or pivot][half][sm][slice page]. */
static void write_cells(FILE *out, const struct table *t)
{
    for (size_t i = 0; i < json_array_size(t->values); i++) {
        size_t place[MAX_AXES] = {0};
        size_t rest = i;
        for (size_t a = t->axis_count; a-- > 0; rest /= t->axes[a])
            place[a] = rest % t->axes[a];
        fprintf(out, "%lld", first_name(t, place[0]));
        for (size_t a = 1; a < t->axis_count; a++)
            fprintf(out, ",%lld", a == 2 ? at(t->sms, place[a]) : (long long)place[a]);
        fprintf(out, ",%lld\n", at(t->values, i));
    }
}

/* Column 0 of a row is the time, the others are the lines of each SM. */
static void write_read(FILE *out, const struct table *t)
{
    for (size_t p = 0; p < t->axes[0]; p++) {
        for (size_t r = 0; r < t->axes[1]; r++) {
            size_t row = (p * t->axes[1] + r) * t->axes[2];
            for (size_t sm = 1; sm < t->axes[2]; sm++)
                fprintf(out, "%lld,%zu,%lld,%lld,%lld\n", first_name(t, p), r, at(t->sms, sm - 1),
                        at(t->values, row), at(t->values, row + sm));
        }
    }
}

/* [repeat][sm of the probe][page]. */
static void write_sides(FILE *out, const struct table *t)
{
    const size_t sms = t->axes[1];
    const size_t pages = t->axes[2];

    for (size_t i = 0; i < json_array_size(t->values); i++)
        fprintf(out, "%zu,%lld,%zu,%lld\n", i / pages / sms, first_name(t, i / pages % sms),
                i % pages, at(t->values, i));
}

/* [repeat][row][column]. */
static void write_peer(FILE *out, const struct table *t)
{
    const size_t rows = t->axes[1];
    const size_t columns = t->axes[2];

    for (size_t i = 0; i < json_array_size(t->values); i++)
        fprintf(out, "%zu,%zu,%zu,%lld\n", i / columns / rows, i / columns % rows, i % columns,
                at(t->values, i));
}

static const struct kind kinds[] = {
    {"chase", "pages,sample,cycles\n", 2, "points", write_cells},
    {"round", "repeat,thrashed,sm,slice_page,cycles\n", 4, NULL, write_cells},
    {"pairs", "pivot_sm,thrashed,sm,slice_page,cycles\n", 4, "sms", write_cells},
    {"read", "region_bytes,repeat,sm,elapsed_ns,lines\n", 3, "points", write_read},
    {"sides", "repeat,sm,page,cycles\n", 3, "sms", write_sides},
    {"cache", "elements,sample,cycles\n", 2, "points", write_cells},
    {"spread", "set_bytes,repeat,sm,elapsed_ns,reads\n", 3, "points", write_read},
    {"shared", "repeat,sm,point,cycles\n", 3, "sms", write_sides},
    {"peer", "repeat,row,column,value\n", 3, NULL, write_peer},
    {"in-flight", "point,repeat,sm,elapsed_ns,lines\n", 3, "points", write_read},
};

static const struct kind *find_kind(const char *name)
{
    for (size_t i = 0; name && i < sizeof(kinds) / sizeof(*kinds); i++) {
        if (strcmp(name, kinds[i].name) == 0)
            return &kinds[i];
    }
    return NULL;
}

/* Reads the axes and checks that their product is the number of values. */
static int read_shape(const json_t *shape, struct table *t)
{
    size_t product = 1;

    t->axis_count = json_array_size(shape);
    if (t->axis_count > MAX_AXES)
        return -1;
    for (size_t i = 0; i < t->axis_count; i++) {
        long long length = at(shape, i);
        if (length < 0 || __builtin_mul_overflow(product, (size_t)length, &product))
            return -1;
        t->axes[i] = (size_t)length;
    }
    return product == json_array_size(t->values) ? 0 : -1;
}

char *encode_csv(const json_t *observation, size_t *out_bytes)
{
    const json_t *probe = json_object_get(observation, "probe");
    const struct kind *kind = find_kind(json_string_value(json_object_get(probe, "kind")));
    struct table t = {.sms = json_object_get(observation, "sm_ids"),
                      .values = json_object_get(observation, "values")};
    char *text = NULL;
    FILE *out;

    if (!kind || read_shape(json_object_get(observation, "shape"), &t) != 0 ||
        t.axis_count != kind->axis_count)
        return NULL;
    if (kind->first_axis)
        t.names = json_object_get(probe, kind->first_axis);
    out = open_memstream(&text, out_bytes);
    if (!out)
        return NULL;
    fputs(kind->header, out);
    kind->write(out, &t);
    if (fclose(out) != 0) { /* memory ran out while writing */
        free(text);
        return NULL;
    }
    return text;
}
