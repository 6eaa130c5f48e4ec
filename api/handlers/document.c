/* document.c: see document.h. */
#include "api/handlers/document.h"

#include "base/hash.h"

#include <stdio.h>
#include <stdlib.h>

static const char JSON_TYPE[] = "application/json";

/* `etag` needs DOCUMENT_ETAG_BYTES. Two different bodies have the same tag by chance once in 2^64.
 */
static void hash_tag(const char *body, size_t bytes, char *etag)
{
    static const char digits[] = "0123456789abcdef";
    const uint64_t h = hash_quick(body, bytes);

    for (int i = 0; i < 16; i++)
        etag[1 + i] = digits[h >> (60 - 4 * i) & 15];
    etag[0] = etag[17] = '"';
    etag[18] = '\0';
}

static struct document *make(const char *content_type, const char *text, size_t bytes,
                             const char *tag)
{
    struct document *d = calloc(1, sizeof(*d));

    if (!d)
        return NULL;
    d->holders = 1;
    d->content_type = content_type;
    d->text = text;
    d->bytes = bytes;
    if (!tag)
        hash_tag(text, bytes, d->etag);
    else if (*tag)
        snprintf(d->etag, sizeof(d->etag), "\"%.32s\"", tag);
    return d;
}

struct document *document_new_typed(const char *content_type, char *take, size_t bytes,
                                    const char *tag)
{
    struct document *d = take ? make(content_type, take, bytes, tag) : NULL;

    if (d)
        d->owned = take;
    else
        free(take);
    return d;
}

struct document *document_new_text(char *take, size_t bytes, const char *tag)
{
    return document_new_typed(JSON_TYPE, take, bytes, tag);
}

struct document *document_new(struct json_writer *t, const char *tag)
{
    size_t bytes = 0;
    char *const text = json_writer_end(t, &bytes);
    char *const fitting = text ? realloc(text, bytes + 1) : NULL; /* some texts stay for hours */

    return document_new_text(fitting ? fitting : text, bytes, tag);
}

struct document *document_new_static(const char *content_type, const char *text, size_t bytes)
{
    return make(content_type, text, bytes, NULL);
}

struct document *document_hold(struct document *document)
{
    document->holders++;
    return document;
}

void document_free(struct document *take)
{
    if (!take || --take->holders > 0)
        return;
    if (take->release)
        take->release(take->responses);
    free(take->owned);
    free(take);
}
