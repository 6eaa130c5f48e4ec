/* answer_cache.h: the last answers of the daemon with their ETags, so that an unchanged one costs
 * it a 304. An entry is returned only if the daemon confirms its tag, or if the caller allows
 * cached answers and no daemon answers.
 *
 * The entries of one GPU are always of one fingerprint: an answer from another one, or one that
 * differs in whether it is stale, drops the older ones. Only answers that rest on a fingerprint are
 * kept. Any thread. */
#ifndef REACH_CLIENTS_C_ANSWER_CACHE_H
#define REACH_CLIENTS_C_ANSWER_CACHE_H

#include "clients/c/answer.h"
#include "clients/c/http.h"

struct answer_cache;

struct answer_cache *answer_cache_new(void); /* NULL without memory */
void answer_cache_free(struct answer_cache *take);

/* The tag of the answer to this target, "" if there is none. `out` needs HTTP_TAG_BYTES. */
void answer_cache_tag(struct answer_cache *cache, const char *target, char *out);

/* What was answered; the caller holds it. NULL if there is none. With a `tag` only the answer with
 * that tag, which is thereby confirmed at `*confirmed_ms`; with NULL any, and `*confirmed_ms` is
 * when it was. */
struct answer_content *answer_cache_get(struct answer_cache *cache, const char *target,
                                        const char *tag, uint64_t *confirmed_ms);

/* Holds the content of the answer. Without memory it is not kept, which is no failure. */
void answer_cache_put(struct answer_cache *cache, const char *target, const char *tag,
                      const struct reach_answer *answer);

/* The daemon now has another answer to this target. */
void answer_cache_drop(struct answer_cache *cache, const char *target);

/* The current fingerprint of a GPU: older answers from another one are dropped. */
void answer_cache_learn(struct answer_cache *cache, const struct reach_provenance *provenance);

#endif
