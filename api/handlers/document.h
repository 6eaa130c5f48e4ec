/* document.h: a rendered body with its ETag, which several answers may share. Used by one thread at
 * a time.
 *
 * Documents are counted: document_new and its like return a reference, which is the caller's;
 * document_free gives it back. The server attaches the finished responses of its HTTP library to a
 * document, so that the next answer from it makes none.
 */
#ifndef REACH_API_HANDLERS_DOCUMENT_H
#define REACH_API_HANDLERS_DOCUMENT_H

#include "base/json_writer.h"

#include <stddef.h>
#include <stdint.h>

enum { DOCUMENT_ETAG_BYTES = 40 };

struct document {
    uint32_t holders;
    char etag[DOCUMENT_ETAG_BYTES]; /* with its quotes; "": none */
    const char *content_type;       /* static */
    const char *text;
    size_t bytes;
    char *owned;                      /* the text, if this document is to free it */
    void *responses;                  /* the server's; NULL: none yet */
    void (*release)(void *responses); /* NULL without responses */
};

/* Ends a text and makes it a document. `tag` is its ETag without quotes; NULL: a hash of its bytes;
 * "": none. NULL without memory, or if the writer has failed. */
struct document *document_new(struct json_writer *t, const char *tag);
/* The same from a text that is never freed. */
struct document *document_new_static(const char *content_type, const char *text, size_t bytes);
/* The same from a finished text from malloc: JSON, or of another type. */
struct document *document_new_text(char *take, size_t bytes, const char *tag);
struct document *document_new_typed(const char *content_type, char *take, size_t bytes,
                                    const char *tag);
/* One more reference. */
struct document *document_hold(struct document *document);
/* NULL is fine. */
void document_free(struct document *take);

#endif
