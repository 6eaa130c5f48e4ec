/* document.h: a rendered body with its ETag, which several answers may share. Only one thread at a
 * time may use a document.
 *
 * Documents are reference-counted: a constructor returns a reference that the caller owns, and
 * document_free releases that reference. The server attaches the finished responses of its HTTP
 * library to a document, so that the next answer reuses them.
 */
#pragma once

#include "base/json_writer.h"

#include <stddef.h>
#include <stdint.h>

enum { DOCUMENT_ETAG_BYTES = 40 };

struct document {
    uint32_t holders;
    char etag[DOCUMENT_ETAG_BYTES]; /* with its quotes; "" if there is none */
    const char *content_type;       /* static */
    const char *text;
    size_t bytes;
    char *owned;     /* the text if this document frees it */
    void *responses; /* finished responses of the server; NULL before the first answer */
    void (*release)(void *responses); /* frees the responses; NULL if there are none */
};

/* Ends a text and makes it a document. `tag` is its ETag without quotes. NULL means a hash of its
 * bytes, "" means no tag. Returns NULL if memory runs out or the writer has failed. */
struct document *document_new(struct json_writer *t, const char *tag);
/* Makes a document of a text that is never freed. */
struct document *document_new_static(const char *content_type, const char *text, size_t bytes);
/* Make a document of a finished text from malloc, which is JSON or of another type. */
struct document *document_new_text(char *take, size_t bytes, const char *tag);
struct document *document_new_typed(const char *content_type, char *take, size_t bytes,
                                    const char *tag);
/* Adds a reference. */
struct document *document_hold(struct document *document);
/* Releases a reference. NULL is allowed. */
void document_free(struct document *take);
