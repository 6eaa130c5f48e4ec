/* remote.h: puts a question to the daemon, within the deadline, and decides what of an answer may
 * be given out: nothing from a stale fingerprint, and nothing from before the daemon went away, but
 * to those who take it. Any thread. */
#ifndef REACH_CLIENT_REMOTE_H
#define REACH_CLIENT_REMOTE_H

#include "clients/c/answer.h"

/* One call of the public interface. A function that gives NULL has left its failure in `status`. */
struct remote_call {
    struct reach *reach;
    uint64_t end_ms;
    unsigned accept;
    enum reach_status status;
    struct reach_error *error;
};

struct remote_call remote_begin(struct reach *reach, struct reach_error *error);

/* GET, read anew. The caller owns the answer (free). */
void *remote_ask_fresh(struct remote_call *call, const char *path, answer_fn *read, size_t bytes);

/* GET of an answer that begins with its basis, from what is kept where the daemon confirms it.
 * `gpu` is what the caller asked about. The caller owns the answer (reach_free). */
void *remote_ask(struct remote_call *call, const char *path, const char *gpu, answer_fn *read,
                 size_t bytes);

/* The two that need the state of the GPU too, which alone says whether a fingerprint is stale. */
struct reach_fingerprint *remote_fingerprint(struct remote_call *call, const char *gpu);
enum reach_status remote_confirm(struct remote_call *call, const struct reach_basis *basis);

#endif
