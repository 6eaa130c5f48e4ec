/* decode_body.c: decodes the only request body that this API reads.
 *
 * The text is scanned before jansson parses it. One pass refuses more than 16 levels of brackets or
 * more than 1024 values. These limits bound the cost of a hostile body. Malformed text, duplicate
 * keys, unknown keys and wrong types are refused with a JSON pointer (RFC 6901).
 */
#include "api/decode/decode.h"

#include "api/http_status.h"
#include "base/json_load.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* `pointer` may be the problem's own pointer, already filled. */
static bool blame_pointer(struct problem *p, const char *pointer, const char *detail)
{
    struct problem made = {.status = STATUS_INVALID_ARGUMENT,
                           .has_pointer = true,
                           .next_step =
                               "Send no body, or {\"depth\": \"quick\"}, with \"full\" or "
                               "\"matrix\" in place of \"quick\" for a longer measurement."};

    snprintf(made.pointer, sizeof(made.pointer), "%s", pointer);
    snprintf(made.detail, sizeof(made.detail), "%s", detail);
    *p = made;
    return false;
}

/* The default of curl -d, application/x-www-form-urlencoded, is accepted too. Such a body must also
 * be JSON. */
static bool accepts_type(const char *type)
{
    static const char *const known[] = {"application/json", "application/x-www-form-urlencoded"};

    for (size_t i = 0; type && i < sizeof(known) / sizeof(*known); i++) {
        size_t length = strlen(known[i]);
        if (strncasecmp(type, known[i], length) == 0 && strchr("; \t", type[length]))
            return true;
    }
    return type == NULL;
}

/* Returns whether the text is small and flat enough to be parsed, after one pass over the text. */
static bool is_modest(const char *text, size_t bytes)
{
    uint32_t depth = 0;
    uint32_t values = 0;
    bool in_text = false;

    for (size_t i = 0; i < bytes; i++) {
        char c = text[i];
        if (in_text) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_text = false;
            continue;
        }
        if (c == '"')
            in_text = true;
        if ((c == '{' || c == '[') && ++depth > DECODE_MAX_DEPTH)
            return false;
        if ((c == '}' || c == ']') && depth > 0)
            depth--;
        if (c == ',' && ++values > DECODE_MAX_VALUES)
            return false;
    }
    return true;
}

/* Writes the JSON pointer of a key, in which "~" and "/" become "~0" and "~1" (RFC 6901). */
static void pointer_to(const char *key, char *out)
{
    size_t at = 0;

    out[at++] = '/';
    for (; *key && at + 3 < PROBLEM_POINTER_BYTES; key++) {
        if (*key == '~' || *key == '/') {
            out[at++] = '~';
            out[at++] = *key == '~' ? '0' : '1';
        } else {
            out[at++] = *key;
        }
    }
    out[at] = '\0';
}

/* jansson names the duplicate key only in its message: duplicate object key near '"depth"'. */
static void pointer_to_duplicate(const char *message, char *out)
{
    const char *key = strstr(message, "'\"");
    const char *end = key ? strstr(key + 2, "\"'") : NULL;
    char name[PROBLEM_POINTER_BYTES];

    out[0] = '\0';
    if (!end || (size_t)(end - key) > sizeof(name))
        return;
    snprintf(name, sizeof(name), "%.*s", (int)(end - key - 2), key + 2);
    pointer_to(name, out);
}

static bool decode_depth_object(json_t *body, enum depth *out, struct problem *p)
{
    const json_t *depth = json_object_get(body, "depth");
    char pointer[PROBLEM_POINTER_BYTES];
    const char *key;
    json_t *value;

    if (!json_is_object(body))
        return blame_pointer(p, "", "the body must be a JSON object");
    json_object_foreach(body, key, value)
    {
        if (strcmp(key, "depth") == 0)
            continue;
        pointer_to(key, pointer);
        return blame_pointer(p, pointer, "there is no such field: only depth is known");
    }
    if (!depth)
        return true;
    if (!json_is_string(depth))
        return blame_pointer(p, "/depth", "depth must be a string");
    if (!depth_from_name(json_string_value(depth), out))
        return blame_pointer(p, "/depth", "depth must be quick, full, memory or matrix");
    return true;
}

static bool blame_type(struct problem *p)
{
    *p = (struct problem){.status = STATUS_INVALID_ARGUMENT,
                          .http_status = HTTP_UNSUPPORTED_MEDIA_TYPE,
                          .slug = "unsupported-media-type",
                          .title = "The body is of a type that this service does not read.",
                          .next_step = "Send the header Content-Type: application/json."};
    snprintf(p->detail, sizeof(p->detail), "the body must be application/json");
    return false;
}

static bool blame_syntax(struct problem *p, const json_error_t *error)
{
    char detail[sizeof(error->text) + 48];
    char pointer[PROBLEM_POINTER_BYTES] = "";

    if (json_error_code(error) == json_error_duplicate_key)
        pointer_to_duplicate(error->text, pointer);
    snprintf(detail, sizeof(detail), "line %d, column %d: %s", error->line, error->column,
             error->text);
    return blame_pointer(p, pointer, detail);
}

bool decode_depth_body(const struct request *request, enum depth *out, struct problem *out_problem)
{
    json_error_t error;
    json_t *body;
    bool ok;

    if (request->body_bytes == 0)
        return true;
    if (!accepts_type(request->content_type))
        return blame_type(out_problem);
    if (!is_modest(request->body, request->body_bytes))
        return blame_pointer(out_problem, "",
                             "the body is nested deeper, or has more values, than any request");
    body = json_load_whole(request->body, request->body_bytes, &error);
    if (!body && json_load_was_short()) {
        *out_problem = (struct problem){.status = STATUS_NO_MEMORY};
        snprintf(out_problem->detail, sizeof(out_problem->detail), "%s", error.text);
        return false;
    }
    if (!body)
        return blame_syntax(out_problem, &error);
    ok = decode_depth_object(body, out, out_problem);
    json_decref(body);
    return ok;
}
