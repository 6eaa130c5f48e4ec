/* encode_csv.c: writes one line for each value of an observation: its position and the value.
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
 * A table has one header line and one line per value (RFC 4180, except that a line ends in a plain
 * line feed). The functions read the JSON document and not the struct, so that the API does not
 * depend on probes. The member "shape" has the lengths of the axes; "probe" and "sm_ids" have the
 * numbers of the positions.
 */
#include "api/encode/encode.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_AXES = 4 };

struct table {
    const json_t *names[MAX_AXES]; /* numbers of the positions on each axis; NULL means indices */
    const json_t *values;
    size_t axes[MAX_AXES];
    size_t axis_count;
};

struct kind {
    const char *name;
    const char *header;
    size_t axis_count;
    const char *names[MAX_AXES]; /* names of these lists: "sm_ids", or a list of "probe" */
    bool is_read;                /* each row of values begins with its time */
};

static long long at(const json_t *array, size_t i)
{
    return json_integer_value(json_array_get(array, i));
}

static long long name_of(const struct table *t, size_t axis, size_t i)
{
    return t->names[axis] ? at(t->names[axis], i) : (long long)i;
}

/* Writes a line for each value: its position on each axis, and the value. */
static void write_cells(FILE *out, const struct table *t)
{
    for (size_t i = 0; i < json_array_size(t->values); i++) {
        size_t place[MAX_AXES] = {0};
        size_t rest = i;
        for (size_t a = t->axis_count; a-- > 0; rest /= t->axes[a])
            place[a] = rest % t->axes[a];
        for (size_t a = 0; a < t->axis_count; a++)
            fprintf(out, "%lld,", name_of(t, a, place[a]));
        fprintf(out, "%lld\n", at(t->values, i));
    }
}

/* Column 0 of a row is the time, the others are the lines of each SM. */
static void write_read(FILE *out, const struct table *t)
{
    for (size_t p = 0; p < t->axes[0]; p++) {
        for (size_t r = 0; r < t->axes[1]; r++) {
            size_t row = (p * t->axes[1] + r) * t->axes[2];
            for (size_t sm = 1; sm < t->axes[2]; sm++)
                fprintf(out, "%lld,%zu,%lld,%lld,%lld\n", name_of(t, 0, p), r,
                        name_of(t, 2, sm - 1), at(t->values, row), at(t->values, row + sm));
        }
    }
}

static const struct kind kinds[] = {
    {"chase", "pages,sample,cycles\n", 2, {"points"}, false},
    {"round", "repeat,thrashed,sm,slice_page,cycles\n", 4, {[2] = "sm_ids"}, false},
    {"pairs", "pivot_sm,thrashed,sm,slice_page,cycles\n", 4, {"sms", [2] = "sm_ids"}, false},
    {"read", "region_bytes,repeat,sm,elapsed_ns,lines\n", 3, {"points", [2] = "sm_ids"}, true},
    {"sides", "repeat,sm,page,cycles\n", 3, {[1] = "sms"}, false},
    {"cache", "elements,sample,cycles\n", 2, {"points"}, false},
    {"spread", "set_bytes,repeat,sm,elapsed_ns,reads\n", 3, {"points", [2] = "sm_ids"}, true},
    {"shared", "repeat,sm,point,cycles\n", 3, {[1] = "sms"}, false},
    {"peer", "repeat,row,column,value\n", 3, {NULL}, false},
    {"in-flight", "point,repeat,sm,elapsed_ns,lines\n", 3, {"points", [2] = "sm_ids"}, true},
};

static const struct kind *find_kind(const char *name)
{
    for (size_t i = 0; name && i < sizeof(kinds) / sizeof(*kinds); i++) {
        if (strcmp(name, kinds[i].name) == 0)
            return &kinds[i];
    }
    return NULL;
}

/* Reads the axes and checks that their product is the number of values. The first axis is empty if
 * there is no value, because a kind of memory is not available. */
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
    if (t->axis_count > 0 && json_array_size(t->values) == 0)
        t->axes[0] = product = 0;
    return product == json_array_size(t->values) ? 0 : -1;
}

char *encode_csv(const json_t *observation, size_t *out_bytes)
{
    const json_t *probe = json_object_get(observation, "probe");
    const struct kind *kind = find_kind(json_string_value(json_object_get(probe, "kind")));
    struct table t = {.values = json_object_get(observation, "values")};
    char *text = NULL;
    FILE *out;

    if (!kind || read_shape(json_object_get(observation, "shape"), &t) != 0 ||
        t.axis_count != kind->axis_count)
        return NULL;
    for (size_t a = 0; a < kind->axis_count; a++) {
        if (kind->names[a])
            t.names[a] = json_object_get(
                strcmp(kind->names[a], "sm_ids") == 0 ? observation : probe, kind->names[a]);
    }
    out = open_memstream(&text, out_bytes);
    if (!out)
        return NULL;
    fputs(kind->header, out);
    (kind->is_read ? write_read : write_cells)(out, &t);
    if (fclose(out) != 0) { /* memory ran out while writing */
        free(text);
        return NULL;
    }
    return text;
}
