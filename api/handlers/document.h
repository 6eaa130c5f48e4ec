/* document.h: a rendered body with its ETag, which many answers share. Used by one thread at a
 * time.
 *
 * Documents count who holds them: document_new and its like make one that the caller holds,
 * document_free lets go. The server attaches the finished responses of its HTTP library to a
 * document, so that the next answer from it builds none.
 */
#ifndef REACH_API_DOCUMENT_H
#define REACH_API_DOCUMENT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

enum { DOCUMENT_ETAG_BYTES = 40 };

struct document {
    uint32_t holders;
    char etag[DOCUMENT_ETAG_BYTES]; /* with its quotes */
    const char *content_type;       /* static */
    const char *text;
    size_t bytes;
    char *owned;                      /* the text, where this document is to free it */
    void *responses;                  /* the server's; NULL: none yet */
    void (*release)(void *responses); /* NULL without responses */
};

/* Renders a document. `tag` is its ETag without quotes; NULL: made of its bytes. Takes the value.
 * NULL without memory or value. */
struct document *document_new(json_t *take, const char *tag);
/* The same from a text that outlives everything. */
struct document *document_new_static(const char *content_type, const char *text, size_t bytes);
/* The same from a finished text from malloc: JSON, or of another type. */
struct document *document_new_text(char *take, size_t bytes, const char *tag);
struct document *document_new_typed(const char *content_type, char *take, size_t bytes,
                                    const char *tag);
void document_hold(struct document *document);
/* NULL is fine. */
void document_free(struct document *take);

/* The ETag of these bytes, with its quotes; `etag` needs DOCUMENT_ETAG_BYTES. */
void document_tag(const char *body, size_t bytes, char *etag);

#endif
