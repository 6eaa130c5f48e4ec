/* json_in.c: the decoder of every document. Documents come from another process, from a file that
 * may have rotted, or from a person; so nothing is taken on trust and nothing is converted
 * silently. */
#include "base/json_in.h"

#include "base/clock.h"
#include "base/maybe_json.h"

#include <stdio.h>
#include <string.h>

void json_in_begin(struct json_in *in, const json_t *json, const char *path, enum json_in_mode mode,
                   enum status fault, struct err *err)
{
    *in = (struct json_in){.object = json, .mode = mode, .fault = fault, .err = err};
    (void)snprintf(in->path, sizeof(in->path), "%s", path);
    if (!json_is_object(json))
        in->status = err_set(err, fault, "%s is not an object", path[0] ? path : "the document");
}

void json_in_begin_inside(struct json_in *in, const struct json_in *outer, const json_t *json,
                          const char *name, int index)
{
    char path[JSON_IN_PATH_BYTES];
    const char *const dot = outer->path[0] ? "." : "";
    int n;

    if (index < 0)
        n = snprintf(path, sizeof(path), "%s%s%s", outer->path, dot, name);
    else
        n = snprintf(path, sizeof(path), "%s%s%s[%d]", outer->path, dot, name, index);
    if (n < 0 || (size_t)n >= sizeof(path)) /* the path is for sentences: what fits is enough */
        path[sizeof(path) - 1] = '\0';
    json_in_begin(in, json, path, outer->mode, outer->fault, outer->err);
}

void json_in_fail(struct json_in *in, const char *name, const char *format, ...)
{
    char what[192];
    va_list args;

    if (in->status != STATUS_OK)
        return;
    va_start(args, format);
    if (vsnprintf(what, sizeof(what), format, args) < 0)
        what[0] = '\0';
    va_end(args);
    in->status = err_set(in->err, in->fault, "field %s%s%s: %s", in->path, in->path[0] ? "." : "",
                         name, what);
}

void json_in_absorb(struct json_in *in, enum status inner)
{
    if (in->status == STATUS_OK)
        in->status = inner;
}

bool json_in_ok(const struct json_in *in)
{
    return in->status == STATUS_OK;
}

/* The field, or NULL: failed before, or missing (which is a failure in strict mode). */
static const json_t *take(struct json_in *in, const char *name)
{
    const json_t *value;

    if (in->status != STATUS_OK)
        return NULL;
    if (in->known_count == JSON_IN_MAX_FIELDS) {
        in->status = err_set(in->err, STATUS_INTERNAL, "more than %d fields are read of one object",
                             JSON_IN_MAX_FIELDS);
        return NULL;
    }
    in->known[in->known_count++] = name;
    value = json_object_get(in->object, name);
    if (!value && in->mode == JSON_IN_STRICT)
        json_in_fail(in, name, "missing");
    return value;
}

void json_in_u64(struct json_in *in, const char *name, uint64_t *out)
{
    const json_t *const value = take(in, name);

    if (!value)
        return;
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        json_in_fail(in, name, "must be an integer, 0 or more");
    else
        *out = (uint64_t)json_integer_value(value);
}

void json_in_u32(struct json_in *in, const char *name, uint32_t max, uint32_t *out)
{
    const json_t *const value = take(in, name);

    if (!value)
        return;
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        json_integer_value(value) > (json_int_t)max)
        json_in_fail(in, name, "must be an integer from 0 to %u", max);
    else
        *out = (uint32_t)json_integer_value(value);
}

void json_in_bool(struct json_in *in, const char *name, bool *out)
{
    const json_t *const value = take(in, name);

    if (!value)
        return;
    if (!json_is_boolean(value))
        json_in_fail(in, name, "must be true or false");
    else
        *out = json_is_true(value);
}

static void copy_text(struct json_in *in, const char *name, const json_t *value, char *out,
                      size_t out_size)
{
    if (!json_is_string(value))
        json_in_fail(in, name, "must be a text");
    else if (json_string_length(value) >= out_size)
        json_in_fail(in, name, "is longer than %zu bytes", out_size - 1);
    else
        memcpy(out, json_string_value(value), json_string_length(value) + 1);
}

void json_in_text(struct json_in *in, const char *name, char *out, size_t out_size)
{
    const json_t *const value = take(in, name);

    if (value)
        copy_text(in, name, value, out, out_size);
}

void json_in_text_or_null(struct json_in *in, const char *name, char *out, size_t out_size)
{
    const json_t *const value = take(in, name);

    if (!value)
        return;
    if (json_is_null(value))
        out[0] = '\0';
    else
        copy_text(in, name, value, out, out_size);
}

const char *json_in_word(struct json_in *in, const char *name)
{
    const json_t *const value = take(in, name);

    if (value && !json_is_string(value))
        json_in_fail(in, name, "must be a text");
    return json_string_value(value);
}

void json_in_time(struct json_in *in, const char *name, int64_t *out)
{
    const char *const text = json_in_word(in, name);
    const int64_t seconds = clock_parse_rfc3339(text);

    if (!text)
        return;
    if (seconds < 0)
        json_in_fail(in, name, "must be a time like 2026-11-20T22:51:20Z");
    else
        *out = seconds;
}

/* Books the reason beside an absent number, so that strict mode does not take it for unknown. */
static bool take_maybe(struct json_in *in, const char *name)
{
    char field[MAYBE_JSON_NAME_BYTES];

    if (!take(in, name))
        return false;
    maybe_json_reason_name(name, field, sizeof(field));
    if (json_object_get(in->object, field))
        in->reasons |= (uint64_t)1 << (in->known_count - 1);
    return true;
}

void json_in_u32_maybe(struct json_in *in, const char *name, struct maybe_u32 *out)
{
    if (take_maybe(in, name) && !maybe_json_get_u32(in->object, name, out))
        json_in_fail(in, name, "must be an integer from 0 to %u, or null and a reason", UINT32_MAX);
}

void json_in_u64_maybe(struct json_in *in, const char *name, struct maybe_u64 *out)
{
    if (take_maybe(in, name) && !maybe_json_get_u64(in->object, name, out))
        json_in_fail(in, name, "must be an integer, 0 or more, or null and a reason");
}

void json_in_f64_maybe(struct json_in *in, const char *name, struct maybe_f64 *out)
{
    if (take_maybe(in, name) && !maybe_json_get_f64(in->object, name, out))
        json_in_fail(in, name, "must be a number, or null and a reason");
}

const json_t *json_in_object(struct json_in *in, const char *name)
{
    const json_t *const value = take(in, name);

    if (value && !json_is_object(value)) {
        json_in_fail(in, name, "must be an object");
        return NULL;
    }
    return value;
}

const json_t *json_in_array(struct json_in *in, const char *name, size_t max_count)
{
    const json_t *const value = take(in, name);

    if (!value)
        return NULL;
    if (!json_is_array(value))
        json_in_fail(in, name, "must be an array");
    else if (json_array_size(value) > max_count)
        json_in_fail(in, name, "has more than %zu elements", max_count);
    return json_in_ok(in) ? value : NULL;
}

uint32_t json_in_u16_array(struct json_in *in, const char *name, uint32_t max_count, uint32_t max,
                           uint32_t null_is, uint16_t *out)
{
    const json_t *const array = json_in_array(in, name, max_count);
    const uint32_t count = (uint32_t)json_array_size(array);

    if (max > UINT16_MAX)
        max = UINT16_MAX;
    for (uint32_t i = 0; i < count; i++) {
        const json_t *const value = json_array_get(array, i);
        const json_int_t v = json_integer_value(value);
        if (json_is_null(value) && null_is <= UINT16_MAX) {
            out[i] = (uint16_t)null_is;
            continue;
        }
        if (!json_is_integer(value) || v < 0 || v > (json_int_t)max) {
            json_in_fail(in, name, "element %u must be an integer from 0 to %u", i, max);
            return 0;
        }
        out[i] = (uint16_t)v;
    }
    return count;
}

/* Is `key` a field that was asked for, or the reason of an absent number that was? */
static bool is_known(const struct json_in *in, const char *key)
{
    for (uint32_t i = 0; i < in->known_count; i++) {
        const size_t n = strlen(in->known[i]);
        if (strncmp(key, in->known[i], n) == 0 &&
            (key[n] == '\0' || ((in->reasons >> i & 1) != 0 && strcmp(key + n, "_reason") == 0)))
            return true;
    }
    return false;
}

enum status json_in_end(struct json_in *in)
{
    const char *key;
    json_t *value;

    if (in->status != STATUS_OK || in->mode == JSON_IN_LENIENT)
        return in->status;
    if (json_object_size(in->object) == in->known_count + (size_t)__builtin_popcountll(in->reasons))
        return STATUS_OK;
    /* jansson wants a mutable object to walk, and does not change it. */
    json_object_foreach((json_t *)(uintptr_t)in->object, key, value)
    {
        (void)value;
        if (!is_known(in, key)) {
            json_in_fail(in, key, "unknown");
            break;
        }
    }
    return in->status;
}
