/* json_builder.c: one flag instead of one check per field. jansson treats NULL values as failures
 * and releases what it is given either way, so nothing leaks before json_builder_end. */
#include "base/json_builder.h"

#include "base/clock.h"
#include "base/json_writer.h"

#include <stdlib.h>
#include <string.h>

enum { RFC3339_BYTES = 21, FIRST_ROOM = 4096 };

void json_builder_begin(struct json_builder *o)
{
    *o = (struct json_builder){.object = json_object()};
    o->failed = !o->object;
}

void json_builder_value(struct json_builder *o, const char *name, json_t *take)
{
    if (o->failed)
        json_decref(take);
    else
        o->failed = json_object_set_new(o->object, name, take) != 0;
}

void json_builder_u64(struct json_builder *o, const char *name, uint64_t v)
{
    json_builder_value(o, name, v > INT64_MAX ? NULL : json_integer((json_int_t)v));
}

void json_builder_real(struct json_builder *o, const char *name, double v)
{
    json_builder_value(o, name, json_real(v));
}

void json_builder_bool(struct json_builder *o, const char *name, bool v)
{
    json_builder_value(o, name, json_boolean(v));
}

json_t *json_new_text(const char *v)
{
    const size_t n = strlen(v);
    json_t *text = json_stringn(v, n); /* NULL for bad UTF-8, too */
    char *ascii;

    if (text)
        return text;
    ascii = strdup(v);
    if (!ascii)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)ascii[i] >= 0x80)
            ascii[i] = '?';
    }
    text = json_stringn(ascii, n);
    free(ascii);
    return text;
}

void json_builder_text(struct json_builder *o, const char *name, const char *v)
{
    json_builder_value(o, name, json_new_text(v));
}

void json_builder_text_or_null(struct json_builder *o, const char *name, const char *v)
{
    json_builder_value(o, name, v[0] ? json_new_text(v) : json_null());
}

void json_builder_time(struct json_builder *o, const char *name, int64_t wall_seconds)
{
    char text[RFC3339_BYTES];

    if (wall_seconds < 0 || wall_seconds > CLOCK_LAST_SECOND)
        o->failed = true;
    else
        json_builder_text(o, name, clock_rfc3339(wall_seconds, text, sizeof(text)));
}

static void append_absent(struct json_builder *o, const char *name, enum known known,
                          enum reason reason)
{
    char field[REASON_FIELD_BYTES];
    char text[REASON_TEXT_BYTES];

    json_builder_value(o, name, json_null());
    json_builder_value(o, reason_field(name, field), json_string(reason_text(known, reason, text)));
}

void json_builder_u64_maybe(struct json_builder *o, const char *name, struct maybe_u64 v)
{
    if (IS_KNOWN(v))
        json_builder_u64(o, name, v.v);
    else
        append_absent(o, name, v.known, v.reason);
}

void json_builder_u32_maybe(struct json_builder *o, const char *name, struct maybe_u32 v)
{
    json_builder_u64_maybe(o, name, (struct maybe_u64){v.known, v.reason, v.v});
}

void json_builder_f64_maybe(struct json_builder *o, const char *name, struct maybe_f64 v)
{
    if (IS_KNOWN(v))
        json_builder_real(o, name, v.v);
    else
        append_absent(o, name, v.known, v.reason);
}

json_t *json_builder_end(struct json_builder *o)
{
    json_t *const object = o->object;

    o->object = NULL;
    if (!o->failed)
        return object;
    json_decref(object);
    return NULL;
}

bool json_builder_append(json_t **array, json_t *take)
{
    if (!*array) {
        json_decref(take);
        return false;
    }
    if (json_array_append_new(*array, take) == 0)
        return true;
    json_decref(*array);
    *array = NULL;
    return false;
}

static char *render(const json_t *json, uint32_t indent, size_t *out_bytes)
{
    struct json_writer t;

    *out_bytes = 0;
    if (!json)
        return NULL;
    json_writer_begin(&t, FIRST_ROOM);
    t.indent = indent;
    json_writer_value(&t, NULL, json);
    return json_writer_end(&t, out_bytes);
}

char *json_render(const json_t *json, size_t *out_bytes)
{
    char *const text = render(json, 0, out_bytes);
    char *const fitting = text ? realloc(text, *out_bytes + 1) : NULL; /* some are kept for long */

    return fitting ? fitting : text;
}

int json_print(const json_t *json, uint32_t indent, FILE *out)
{
    size_t bytes;
    char *const text = render(json, indent, &bytes);
    const int result = text && fwrite(text, 1, bytes, out) == bytes ? 0 : -1;

    free(text);
    return result;
}
