/* json_reader.c: decodes every document. Documents come from another process, from a file that may
 * be damaged, or from a person; so nothing is trusted and nothing is converted silently.
 */
#include "base/json_reader.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>

void json_reader_begin(struct json_reader *in, const json_t *json, const char *path,
                       enum json_reader_mode mode, enum status fault, struct err *err)
{
    *in = (struct json_reader){.object = json, .mode = mode, .fault = fault, .err = err};
    (void)snprintf(in->path, sizeof(in->path), "%s", path);
    if (!json_is_object(json))
        in->status = err_set(err, fault, "%s is not an object", path[0] ? path : "the document");
}

void json_reader_begin_inside(struct json_reader *in, const struct json_reader *outer,
                              const json_t *json, const char *name, int index)
{
    char path[JSON_READER_PATH_BYTES];
    const char *const dot = outer->path[0] ? "." : "";
    int n;

    if (index < 0)
        n = snprintf(path, sizeof(path), "%s%s%s", outer->path, dot, name);
    else
        n = snprintf(path, sizeof(path), "%s%s%s[%d]", outer->path, dot, name, index);
    if (n < 0 || (size_t)n >= sizeof(path)) /* the path is for messages only, so it may be cut */
        path[sizeof(path) - 1] = '\0';
    json_reader_begin(in, json, path, outer->mode, outer->fault, outer->err);
}

void json_reader_fail(struct json_reader *in, const char *name, const char *format, ...)
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

void json_reader_absorb(struct json_reader *in, enum status inner)
{
    if (in->status == STATUS_OK)
        in->status = inner;
}

bool json_reader_ok(const struct json_reader *in)
{
    return in->status == STATUS_OK;
}

/* Returns the field, or NULL if the reader has failed before or the field is missing. A missing
 * field is a failure in strict mode. */
static const json_t *find_field(struct json_reader *in, const char *name)
{
    const json_t *value;

    if (in->status != STATUS_OK)
        return NULL;
    if (in->known_count == JSON_READER_MAX_FIELDS) {
        in->status =
            err_set(in->err, STATUS_INTERNAL, "cannot read more than %d fields of one object",
                    JSON_READER_MAX_FIELDS);
        return NULL;
    }
    in->known[in->known_count++] = name;
    value = json_object_get(in->object, name);
    if (!value && in->mode == JSON_READER_STRICT)
        json_reader_fail(in, name, "missing");
    return value;
}

static bool is_integer(const json_t *value, uint64_t max)
{
    return json_is_integer(value) && json_integer_value(value) >= 0 &&
           (uint64_t)json_integer_value(value) <= max;
}

void json_reader_u64(struct json_reader *in, const char *name, uint64_t *out)
{
    const json_t *const value = find_field(in, name);

    if (value && is_integer(value, INT64_MAX))
        *out = (uint64_t)json_integer_value(value);
    else if (value)
        json_reader_fail(in, name, "must be an integer, 0 or more");
}

void json_reader_u32(struct json_reader *in, const char *name, uint32_t max, uint32_t *out)
{
    const json_t *const value = find_field(in, name);

    if (value && is_integer(value, max))
        *out = (uint32_t)json_integer_value(value);
    else if (value)
        json_reader_fail(in, name, "must be an integer from 0 to %u", max);
}

void json_reader_bool(struct json_reader *in, const char *name, bool *out)
{
    const json_t *const value = find_field(in, name);

    if (!value)
        return;
    if (!json_is_boolean(value))
        json_reader_fail(in, name, "must be true or false");
    else
        *out = json_is_true(value);
}

static void copy_text(struct json_reader *in, const char *name, const json_t *value, char *out,
                      size_t out_size)
{
    if (!json_is_string(value))
        json_reader_fail(in, name, "must be a string");
    else if (json_string_length(value) >= out_size)
        json_reader_fail(in, name, "is longer than %zu bytes", out_size - 1);
    else
        memcpy(out, json_string_value(value), json_string_length(value) + 1);
}

void json_reader_text(struct json_reader *in, const char *name, char *out, size_t out_size)
{
    const json_t *const value = find_field(in, name);

    if (value)
        copy_text(in, name, value, out, out_size);
}

void json_reader_text_or_null(struct json_reader *in, const char *name, char *out, size_t out_size)
{
    const json_t *const value = find_field(in, name);

    if (!value)
        return;
    if (json_is_null(value))
        out[0] = '\0';
    else
        copy_text(in, name, value, out, out_size);
}

const char *json_reader_word(struct json_reader *in, const char *name)
{
    const json_t *const value = find_field(in, name);

    if (value && !json_is_string(value))
        json_reader_fail(in, name, "must be a string");
    return json_string_value(value);
}

void json_reader_time(struct json_reader *in, const char *name, int64_t *out)
{
    const char *const text = json_reader_word(in, name);
    const int64_t seconds = clock_parse_rfc3339(text);

    if (!text)
        return;
    if (seconds < 0)
        json_reader_fail(in, name, "must be a time like 2026-11-20T22:51:20Z");
    else
        *out = seconds;
}

/* Finds a number that may be absent. Returns false if both the field and its reason are missing, or
 * if the field is neither a number without a reason nor null. `*out` is NULL if the number is
 * absent; `*known` and `*reason` then have the reason. */
static bool find_maybe(struct json_reader *in, const char *name, const json_t **out,
                       enum known *known, enum reason *reason)
{
    char field[REASON_FIELD_BYTES];
    const json_t *const value = find_field(in, name);
    const json_t *const why = json_object_get(in->object, reason_field(name, field));
    const bool absent = value ? json_is_null(value) : json_is_string(why);

    if (value && why) /* in strict mode the reason is not an unknown field */
        in->reasons |= (uint64_t)1 << (in->known_count - 1);
    *known = absent ? MAYBE_UNKNOWN : MAYBE_KNOWN;
    *reason = absent ? REASON_NOT_MEASURED : REASON_NONE;
    *out = absent ? NULL : value;
    if (absent && json_is_string(why))
        reason_parse(json_string_value(why), known, reason);
    if (value && (absent ? why && !json_is_string(why) : why || !json_is_number(value)))
        json_reader_fail(in, name, "must be a number without a reason, or null and a reason");
    return (value || absent) && json_reader_ok(in);
}

/* Reads an integer up to `max`; `wrong` completes the message about any other value. */
static bool read_maybe(struct json_reader *in, const char *name, uint64_t max, const char *wrong,
                       struct maybe_u64 *out)
{
    const json_t *value;

    if (!find_maybe(in, name, &value, &out->known, &out->reason))
        return false;
    out->v = (uint64_t)json_integer_value(value);
    if (value && !is_integer(value, max))
        json_reader_fail(in, name, "must be an integer%s, or null and a reason", wrong);
    return json_reader_ok(in);
}

void json_reader_u32_maybe(struct json_reader *in, const char *name, struct maybe_u32 *out)
{
    struct maybe_u64 m;

    if (read_maybe(in, name, UINT32_MAX, " from 0 to 4294967295", &m))
        *out = (struct maybe_u32){m.known, m.reason, (uint32_t)m.v};
}

void json_reader_u64_maybe(struct json_reader *in, const char *name, struct maybe_u64 *out)
{
    struct maybe_u64 m;

    if (read_maybe(in, name, INT64_MAX, ", 0 or more", &m))
        *out = m;
}

void json_reader_f64_maybe(struct json_reader *in, const char *name, struct maybe_f64 *out)
{
    const json_t *value;
    struct maybe_f64 m;

    if (!find_maybe(in, name, &value, &m.known, &m.reason))
        return;
    m.v = json_number_value(value);
    *out = m;
}

const json_t *json_reader_object(struct json_reader *in, const char *name)
{
    const json_t *const value = find_field(in, name);

    if (value && !json_is_object(value)) {
        json_reader_fail(in, name, "must be an object");
        return NULL;
    }
    return value;
}

const json_t *json_reader_array(struct json_reader *in, const char *name, size_t max_count)
{
    const json_t *const value = find_field(in, name);

    if (!value)
        return NULL;
    if (!json_is_array(value))
        json_reader_fail(in, name, "must be an array");
    else if (json_array_size(value) > max_count)
        json_reader_fail(in, name, "has more than %zu elements", max_count);
    return json_reader_ok(in) ? value : NULL;
}

uint32_t json_reader_u16_array(struct json_reader *in, const char *name, uint32_t max_count,
                               uint32_t max, uint32_t null_is, uint16_t *out)
{
    const json_t *const array = json_reader_array(in, name, max_count);
    const uint32_t count = (uint32_t)json_array_size(array);

    if (max > UINT16_MAX)
        max = UINT16_MAX;
    for (uint32_t i = 0; i < count; i++) {
        const json_t *const value = json_array_get(array, i);

        if (json_is_null(value) && null_is <= UINT16_MAX) {
            out[i] = (uint16_t)null_is;
        } else if (is_integer(value, max)) {
            out[i] = (uint16_t)json_integer_value(value);
        } else {
            json_reader_fail(in, name, "element %u must be an integer from 0 to %u", i, max);
            return 0;
        }
    }
    return count;
}

/* Returns whether `key` was read, either as a field or as the reason of an absent number. */
static bool is_known(const struct json_reader *in, const char *key)
{
    for (uint32_t i = 0; i < in->known_count; i++) {
        const size_t n = strlen(in->known[i]);
        if (strncmp(key, in->known[i], n) == 0 &&
            (key[n] == '\0' || ((in->reasons >> i & 1) != 0 && strcmp(key + n, "_reason") == 0)))
            return true;
    }
    return false;
}

enum status json_reader_end(struct json_reader *in)
{
    const char *key;
    json_t *value;

    if (in->status != STATUS_OK || in->mode == JSON_READER_LENIENT)
        return in->status;
    if (in->mode == JSON_READER_STRICT &&
        json_object_size(in->object) == in->known_count + (size_t)__builtin_popcountll(in->reasons))
        return STATUS_OK;
    /* jansson needs a mutable object to walk, and does not change it. */
    json_object_foreach((json_t *)(uintptr_t)in->object, key, value)
    {
        (void)value;
        if (!is_known(in, key)) {
            json_reader_fail(in, key, "unknown");
            break;
        }
    }
    return in->status;
}
