/* request.c: parses the request target strictly.
 *
 *     /v1/gpus/0/scope?bytes=80G  ->  segments v1 gpus 0 scope, params bytes=80G
 *
 * Each segment is decoded by itself, so an encoded slash does not separate segments. Dots have no
 * meaning: no file is opened by a name from a request, and ".." matches no route.
 */
#include "api/decode/request.h"

#include "base/text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = isxdigit((unsigned char)c) ? strchr(digits, tolower((unsigned char)c)) : NULL;

    return at ? (int)(at - digits) : -1;
}

/* The decoded text must be printable UTF-8. */
static enum status check_text(const char *text, struct err *err)
{
    while (*text) {
        const size_t bytes = text_character_bytes(text);
        if (bytes == 0)
            return err_set(err, STATUS_INVALID_ARGUMENT, "the request target is not UTF-8");
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            return err_set(err, STATUS_INVALID_ARGUMENT,
                           "the request target contains a control character");
        text += bytes;
    }
    return STATUS_OK;
}

/* Decodes `text` in place. `plus_is_blank` is true in queries, because HTML forms send a blank as
 * "+". */
static enum status decode_text(char *text, bool plus_is_blank, struct err *err)
{
    char *to = text;

    for (const char *from = text; *from; from++) {
        int high;
        int low;
        if (*from != '%') {
            *to++ = (char)(*from == '+' && plus_is_blank ? ' ' : *from);
            continue;
        }
        high = hex_digit(from[1]);
        low = high < 0 ? -1 : hex_digit(from[2]);
        if (low < 0)
            return err_set(err, STATUS_INVALID_ARGUMENT,
                           "a %% in the request target is not followed by two hexadecimal digits");
        if (high == 0 && low == 0)
            return err_set(err, STATUS_INVALID_ARGUMENT, "the request target contains %%00");
        *to++ = (char)(high * 16 + low);
        from += 2;
    }
    *to = '\0';
    return check_text(text, err);
}

/* Skips "http://host" of the absolute form, which RFC 9112 makes servers accept. */
static const char *skip_authority(const char *target)
{
    const char *rest;

    if (strncasecmp(target, "http://", 7) != 0)
        return target;
    rest = target + 7;
    rest += strcspn(rest, "/?#");
    return *rest == '/' ? rest : "/";
}

static enum status parse_path(struct request *out, char *path, struct err *err)
{
    char *next = path + 1;

    if (*next == '\0')
        return STATUS_OK; /* "/" */
    while (next) {
        char *segment = next;
        enum status s;
        next = strchr(segment, '/');
        if (next)
            *next++ = '\0';
        s = decode_text(segment, false, err);
        if (s != STATUS_OK)
            return s;
        /* A path deeper than any route matches nothing, so its further segments are dropped. */
        if (out->segment_count < REQUEST_MAX_SEGMENTS)
            out->segments[out->segment_count++] = segment;
    }
    return STATUS_OK;
}

static enum status add_param(struct request *out, char *name, char *value, struct err *err)
{
    enum status s = decode_text(name, true, err);

    if (s == STATUS_OK)
        s = decode_text(value, true, err);
    if (s != STATUS_OK)
        return s;
    if (request_param(out, name))
        return err_set(err, STATUS_INVALID_ARGUMENT, "the query parameter \"%.40s\" is repeated",
                       name);
    if (out->param_count == REQUEST_MAX_PARAMS)
        return err_set(err, STATUS_INVALID_ARGUMENT, "more than %d query parameters",
                       REQUEST_MAX_PARAMS);
    out->params[out->param_count++] = (struct request_param){.name = name, .value = value};
    return STATUS_OK;
}

static enum status parse_query(struct request *out, char *query, struct err *err)
{
    char *end = query + strlen(query); /* separate value for a parameter without "=" */
    char *next = query;

    while (next) {
        char *name = next;
        char *value;
        enum status s;
        next = strchr(name, '&');
        if (next)
            *next++ = '\0';
        if (*name == '\0')
            continue;
        value = strchr(name, '=');
        if (value)
            *value++ = '\0';
        s = add_param(out, name, value ? value : end, err);
        if (s != STATUS_OK)
            return s;
    }
    return STATUS_OK;
}

enum status request_parse(struct request *out, const char *target, struct err *err)
{
    const char *from = skip_authority(target);
    size_t path_bytes = strcspn(from, "?");
    char *query = NULL;
    enum status s;

    if (*from != '/')
        return err_set(err, STATUS_INVALID_ARGUMENT, "the request target is not a path");
    if (strchr(from, '#'))
        return err_set(err, STATUS_INVALID_ARGUMENT, "the request target contains a fragment");
    out->target = target;
    out->texts = strdup(from);
    if (!out->texts)
        return err_no_memory(err, "a request");
    if (out->texts[path_bytes] == '?') {
        out->texts[path_bytes] = '\0';
        query = out->texts + path_bytes + 1;
    }
    s = check_text(out->texts, err);
    if (s != STATUS_OK)
        return s;
    if (path_bytes < sizeof(out->instance))
        memcpy(out->instance, out->texts, path_bytes + 1);
    s = parse_path(out, out->texts, err);
    if (s == STATUS_OK && query)
        s = parse_query(out, query, err);
    return s;
}

const char *request_param(const struct request *request, const char *name)
{
    for (uint32_t i = 0; i < request->param_count; i++) {
        if (strcmp(request->params[i].name, name) == 0)
            return request->params[i].value;
    }
    return NULL;
}

void request_take_id(struct request *request, const char *given)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "0123456789-_.:";
    size_t length = given ? strspn(given, allowed) : 0;

    if (length == 0 || length >= REQUEST_ID_BYTES || given[length] != '\0')
        return;
    memcpy(request->trace, given, length + 1);
    request->trace_given = true;
}

void request_make_id(struct request *request, uint64_t number)
{
    static const char digits[] = "0123456789abcdef";

    if (request->trace[0])
        return;
    for (int i = 0; i < 16; i++)
        request->trace[i] = digits[number >> (60 - 4 * i) & 15];
    request->trace[16] = '\0';
}

enum status request_add_body(struct request *request, const char *data, size_t bytes)
{
    char *grown;

    if (request->body_too_large)
        return STATUS_OK;
    if (bytes > REQUEST_MAX_BODY_BYTES - request->body_bytes) {
        request->body_too_large = true;
        free(request->body);
        request->body = NULL;
        request->body_bytes = 0;
        return STATUS_OK;
    }
    grown = realloc(request->body, request->body_bytes + bytes);
    if (!grown)
        return STATUS_NO_MEMORY;
    memcpy(grown + request->body_bytes, data, bytes);
    request->body = grown;
    request->body_bytes += bytes;
    return STATUS_OK;
}

void request_clear(struct request *take)
{
    free(take->texts);
    free(take->body);
    take->texts = NULL;
    take->body = NULL;
}
