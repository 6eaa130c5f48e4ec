/* kept.h: the answers that the daemon gave last, with their ETags, so that an unchanged one costs
 * it a 304 and us no parsing. An entry is given out only where the daemon confirms its tag, or
 * where the caller takes kept answers and no daemon answers.
 *
 * What is kept of one GPU is always of one fingerprint: an answer from another one, or with another
 * word on whether it is stale, throws the older ones away. Every answer begins with its struct
 * reach_basis. Any thread. */
#ifndef REACH_CLIENT_KEPT_H
#define REACH_CLIENT_KEPT_H

#include "clients/c/handle.h"
#include "clients/c/http.h"

struct kept;

struct kept *kept_new(void); /* NULL without memory */
void kept_free(struct kept *take);

/* The tag of the answer to this path, "" where there is none. `out` needs WIRE_TAG_BYTES. */
void kept_tag(struct kept *kept, const char *path, char *out);

/* A copy of the answer to this path, for reach_free; NULL where there is none, or no memory. With a
 * `tag` only the answer with that tag, which is thereby confirmed at `now_ms`; with NULL any, and
 * the copy is marked as kept. */
void *kept_copy(struct kept *kept, const char *path, const char *tag, uint64_t now_ms);

/* Copies the answer. One that cannot be kept for want of memory is not, and nobody minds. */
void kept_put(struct kept *kept, const char *path, const char *tag, const void *answer,
              size_t bytes);

/* The daemon now says something else to this path. */
void kept_drop(struct kept *kept, const char *path);

/* The daemon now says this of a GPU: older answers from another fingerprint go. */
void kept_learn(struct kept *kept, const struct reach_basis *basis);

#endif
