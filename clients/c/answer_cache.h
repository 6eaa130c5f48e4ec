/* answer_cache.h: the last answers of the daemon with their ETags, so that the daemon answers 304
 * if nothing changed. An entry is returned only if the daemon confirms its tag, or if the caller
 * allows cached answers and no daemon answers.
 *
 * All entries of one GPU belong to one fingerprint. An answer from another fingerprint, or with
 * another stale state, drops the older entries. Only answers that rest on a fingerprint are kept.
 * The functions may be called on any thread. */
#pragma once

#include "clients/c/answer.h"
#include "clients/c/http.h"

struct answer_cache;

struct answer_cache *answer_cache_new(void); /* returns NULL if memory runs out */
void answer_cache_free(struct answer_cache *take);

/* Copies the tag of the answer to this target, or "" if the cache has no such answer. `out` needs
 * HTTP_TAG_BYTES. */
void answer_cache_tag(struct answer_cache *cache, const char *target, char *out);

/* Returns the answer, with a reference for the caller, or NULL if the cache has none. With a `tag`,
 * returns only the answer with that tag and marks it as confirmed at `*confirmed_ms`. If `tag` is
 * NULL, returns any answer, and `*confirmed_ms` becomes the time of its confirmation. */
struct answer_content *answer_cache_get(struct answer_cache *cache, const char *target,
                                        const char *tag, uint64_t *confirmed_ms);

/* Keeps a reference to the content of the answer. If memory runs out, the answer is not kept; this
 * is not a failure. */
void answer_cache_put(struct answer_cache *cache, const char *target, const char *tag,
                      const struct reach_answer *answer);

/* Drops the answer to this target, because the daemon now has another. */
void answer_cache_drop(struct answer_cache *cache, const char *target);

/* Sets the current fingerprint of a GPU. Older answers from another fingerprint are dropped. */
void answer_cache_learn(struct answer_cache *cache, const struct reach_provenance *provenance);
