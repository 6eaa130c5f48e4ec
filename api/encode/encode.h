/* encode.h: makes JSON documents of values. Each function writes one value (base/json_writer.h) or
 * returns a text. The functions are pure and may be called on any thread. */
#pragma once

#include "api/decode/planner_call.h"
#include "snapshot/snapshot.h"

#include <jansson.h>

struct json_writer;

/* Writes {"discovery", "gpus": [..], "source_error"}, each GPU like encode_gpu. A non-NULL
 * `daemon_version` is written first, and each GPU then has its "fingerprint" (null if there is
 * none) instead of links. */
void encode_gpus(struct json_writer *t, const struct snapshot *s, const char *daemon_version);
void encode_gpu(struct json_writer *t, const struct snapshot_gpu *gpu, uint32_t index);
void encode_node(struct json_writer *t, const struct snapshot *s, const char *hostname,
                 const char *daemon_version);
/* Writes the list of GPUs of /readyz. A nonzero `now` (wall clock, seconds) adds the age of each
 * fingerprint. */
void encode_states(struct json_writer *t, const char *name, const struct snapshot *s, int64_t now);

/* Returns the answer of the planner as a text from malloc, owned by the caller. (encode_planner.c)
 */
char *encode_planner_call(const struct snapshot_gpu *gpu, const struct planner_call *call,
                          size_t *out_bytes);
/* Return the facts of each kind of memory and the choices for an allocation, also as texts from
 * malloc. (encode_memory.c) */
char *encode_memory_facts(const struct snapshot_gpu *gpu, size_t *out_bytes);
char *encode_memory_choices(const struct snapshot_gpu *gpu, const struct memory_call *call,
                            size_t *out_bytes);
/* Writes the members about the level that holds a working set. (encode_fit.c) */
void encode_fit(struct json_writer *t, const struct fit_call *call);
/* Returns the facts of the caches, also as a text from malloc. (encode_caches.c) */
char *encode_caches(const struct snapshot_gpu *gpu, size_t *out_bytes);
/* Begins one of these documents, with the members about the fingerprint that the answer rests on.
 * `room` is an estimate of the length of the document in bytes. */
void encode_begin(struct json_writer *t, const struct snapshot_gpu *gpu, size_t room);
/* libreach uses the next three declarations too. This function writes the time of the speed
 * measurement (RFC 3339) to `out`, or "" if no speeds were measured. Returns `out`. */
enum { ENCODE_TIME_BYTES = 32 };
const char *encode_speeds_taken_at(const struct fingerprint *fp, char *out);
/* The largest number of scopes in the list "scopes", which is null if there are more passes. */
enum { ENCODE_MAX_SCOPES = 256 };

/* Returns an observation as a table for spreadsheets, from malloc, owned by the caller. Returns
 * NULL if memory runs out, or if the document was not written by observation_write. (encode_csv.c)
 */
char *encode_csv(const json_t *observation, size_t *out_bytes);

/* Writes {"slug", "text", "next_step"}, or null for STATUS_OK. */
void encode_err(struct json_writer *t, const char *name, const struct err *err);
