/* maybe_json.c: the one place that knows how an absent number looks in JSON. */
#include "base/maybe_json.h"

#include <stdio.h>
#include <string.h>

#define NOT_OBSERVABLE_PREFIX "not-observable: "

char *maybe_json_reason_name(const char *name, char *out, size_t out_size)
{
    snprintf(out, out_size, "%s_reason", name);
    return out;
}

char *maybe_json_reason(enum known known, enum reason reason, char *out, size_t out_size)
{
    const enum reason r = reason == REASON_NONE ? REASON_NOT_MEASURED : reason;
    const char *const prefix = known == MAYBE_NOT_OBSERVABLE ? NOT_OBSERVABLE_PREFIX : "";

    out[0] = '\0';
    if (known == MAYBE_KNOWN)
        return out;
    snprintf(out, out_size, "%s%s", prefix, reason_slug(r));
    return out;
}

static int set_absent(json_t *object, const char *name, enum known known, enum reason reason)
{
    char field[MAYBE_JSON_NAME_BYTES];
    char text[MAYBE_JSON_REASON_BYTES];

    maybe_json_reason_name(name, field, sizeof(field));
    maybe_json_reason(known, reason, text, sizeof(text));
    if (json_object_set_new(object, name, json_null()) != 0)
        return -1;
    return json_object_set_new(object, field, json_string(text));
}

int maybe_json_set_u64(json_t *object, const char *name, struct maybe_u64 m)
{
    if (!IS_KNOWN(m))
        return set_absent(object, name, m.known, m.reason);
    if (m.v > INT64_MAX)
        return -1;
    return json_object_set_new(object, name, json_integer((json_int_t)m.v));
}

int maybe_json_set_u32(json_t *object, const char *name, struct maybe_u32 m)
{
    const struct maybe_u64 wide = {.known = m.known, .reason = m.reason, .v = m.v};

    return maybe_json_set_u64(object, name, wide);
}

int maybe_json_set_f64(json_t *object, const char *name, struct maybe_f64 m)
{
    if (!IS_KNOWN(m))
        return set_absent(object, name, m.known, m.reason);
    return json_object_set_new(object, name, json_real(m.v)); /* refuses what is not finite */
}

/* What is known about the field without looking at its number. False: it makes no sense. */
static bool get_state(const json_t *object, const char *name, enum known *known,
                      enum reason *reason)
{
    char field[MAYBE_JSON_NAME_BYTES];
    const json_t *const value = json_object_get(object, name);
    const json_t *why;
    const char *slug;

    maybe_json_reason_name(name, field, sizeof(field));
    why = json_object_get(object, field);
    if (value && !json_is_null(value)) {
        *known = MAYBE_KNOWN;
        *reason = REASON_NONE;
        return json_is_number(value) && !why;
    }
    *known = MAYBE_UNKNOWN;
    *reason = REASON_NOT_MEASURED;
    if (!why)
        return true;
    slug = json_string_value(why);
    if (!slug)
        return false;
    if (strncmp(slug, NOT_OBSERVABLE_PREFIX, strlen(NOT_OBSERVABLE_PREFIX)) == 0) {
        *known = MAYBE_NOT_OBSERVABLE;
        slug += strlen(NOT_OBSERVABLE_PREFIX);
    }
    *reason = reason_from_slug(slug);
    return true;
}

bool maybe_json_get_u64(const json_t *object, const char *name, struct maybe_u64 *out)
{
    struct maybe_u64 m = {0};

    if (!get_state(object, name, &m.known, &m.reason))
        return false;
    if (IS_KNOWN(m)) {
        const json_t *const value = json_object_get(object, name);
        if (!json_is_integer(value) || json_integer_value(value) < 0)
            return false;
        m.v = (uint64_t)json_integer_value(value);
    }
    *out = m;
    return true;
}

bool maybe_json_get_u32(const json_t *object, const char *name, struct maybe_u32 *out)
{
    struct maybe_u64 wide;

    if (!maybe_json_get_u64(object, name, &wide) || wide.v > UINT32_MAX)
        return false;
    *out = (struct maybe_u32){.known = wide.known, .reason = wide.reason, .v = (uint32_t)wide.v};
    return true;
}

bool maybe_json_get_f64(const json_t *object, const char *name, struct maybe_f64 *out)
{
    struct maybe_f64 m = {0};

    if (!get_state(object, name, &m.known, &m.reason))
        return false;
    if (IS_KNOWN(m))
        m.v = json_number_value(json_object_get(object, name));
    *out = m;
    return true;
}
