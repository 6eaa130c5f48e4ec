/* kept_json.c: see kept_json.h. */
#include "fingerprint/kept_json.h"

#include <string.h>

static bool same_source(const struct fingerprint_source *a, const struct fingerprint_source *b)
{
    return strcmp(a->id, b->id) == 0 && a->depth == b->depth && a->taken_at == b->taken_at;
}

static void write_source(struct json_builder *o, const struct fingerprint_source *source)
{
    json_builder_text(o, "id", source->id);
    json_builder_text(o, "depth", depth_name(source->depth));
    json_builder_time(o, "taken_at", source->taken_at);
}

/* The parts from the same measurement as part `first`. */
static json_t *parts_to_json(const struct fingerprint *fp, uint32_t first)
{
    json_t *array = json_array();
    char name[PART_NAME_BYTES];

    for (uint32_t part = first; part < PART_COUNT; part++) {
        if (fp->kept[part].id[0] && same_source(&fp->kept[part], &fp->kept[first]) &&
            !json_builder_append(
                &array, json_new_text(fingerprint_part_name((enum fingerprint_part)part, name))))
            break;
    }
    return array;
}

/* Is part `part` the first one of its measurement? */
static bool is_first(const struct fingerprint *fp, uint32_t part)
{
    for (uint32_t before = 0; before < part; before++)
        if (same_source(&fp->kept[before], &fp->kept[part]))
            return false;
    return fp->kept[part].id[0] != '\0';
}

static json_t *kept_to_json(const struct fingerprint *fp)
{
    json_t *array = json_array();

    for (uint32_t part = 0; part < PART_COUNT; part++) {
        struct json_builder o;

        if (!is_first(fp, part))
            continue;
        json_builder_begin(&o);
        write_source(&o, &fp->kept[part]);
        json_builder_value(&o, "parts", parts_to_json(fp, part));
        if (!json_builder_append(&array, json_builder_end(&o)))
            break;
    }
    return array;
}

static json_t *dropped_to_json(const struct fingerprint *fp)
{
    struct json_builder o;

    json_builder_begin(&o);
    write_source(&o, &fp->dropped);
    json_builder_text(&o, "reason", fp->dropped_reason);
    return json_builder_end(&o);
}

void kept_write(struct json_builder *o, const struct fingerprint *fp)
{
    if (fp->measurement_id[0]) {
        json_builder_text(o, "measurement_id", fp->measurement_id);
        json_builder_value(o, "kept", kept_to_json(fp));
    }
    if (fp->dropped.id[0])
        json_builder_value(o, "dropped", dropped_to_json(fp));
}

static void read_source(struct json_reader *in, struct fingerprint_source *out)
{
    const char *depth;

    json_reader_text(in, "id", out->id, sizeof out->id);
    depth = json_reader_word(in, "depth");
    if (depth && !depth_from_name(depth, &out->depth))
        json_reader_fail(in, "depth", "must be quick, full or matrix");
    json_reader_time(in, "taken_at", &out->taken_at);
}

/* PART_COUNT if no part is called so. */
static uint32_t find_part(const char *name)
{
    char known[PART_NAME_BYTES];
    uint32_t part = 0;

    while (part < PART_COUNT &&
           strcmp(name, fingerprint_part_name((enum fingerprint_part)part, known)) != 0)
        part++;
    return part;
}

static void read_kept_element(struct json_reader *in, struct fingerprint *out)
{
    const json_t *const parts = json_reader_array(in, "parts", PART_COUNT);
    struct fingerprint_source source = {.id = ""};

    read_source(in, &source);
    for (size_t i = 0; i < json_array_size(parts); i++) {
        const char *const name = json_string_value(json_array_get(parts, i));
        const uint32_t part = name ? find_part(name) : (uint32_t)PART_COUNT;

        if (!name)
            json_reader_fail(in, "parts", "element %zu must be a text", i);
        else if (part < PART_COUNT)
            out->kept[part] = source;
    }
}

void kept_read(struct json_reader *in, struct fingerprint *out)
{
    const json_t *const kept = json_reader_array(in, "kept", PART_COUNT);
    const json_t *const dropped = json_reader_object(in, "dropped");
    struct json_reader inner;

    json_reader_text(in, "measurement_id", out->measurement_id, sizeof out->measurement_id);
    for (size_t i = 0; i < json_array_size(kept); i++) {
        json_reader_begin_inside(&inner, in, json_array_get(kept, i), "kept", (int)i);
        read_kept_element(&inner, out);
        json_reader_absorb(in, json_reader_end(&inner));
    }
    if (dropped) {
        json_reader_begin_inside(&inner, in, dropped, "dropped", -1);
        read_source(&inner, &out->dropped);
        json_reader_text(&inner, "reason", out->dropped_reason, sizeof out->dropped_reason);
        json_reader_absorb(in, json_reader_end(&inner));
    }
}
