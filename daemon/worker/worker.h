/* worker.h: the daemon's side of a measurement process. The other side is worker_main.c.
 *
 * A worker is this same binary, started again as `reachd --worker` with one end of a socket pair as
 * file descriptor 3. It opens one GPU, runs the probes that it receives, sends observations back
 * and exits, which releases context and memory. A sticky CUDA error, a hang or a crash costs one
 * worker.
 *
 * Messages are JSON texts, one per line. To the worker: {"do":"list"} {"do":"open","uuid":..}
 * {"do":"run","probe":{..}} {"do":"close"}; the first message is {"do":"options",..}. From it:
 * {"ok":"list","gpu":{..}} for each GPU, then {"ok":"list"};
 * {"ok":"open","gpu":{..},"limits":{..},"open_ns":..}
 * {"ok":"run","time":{..},"observation":{..}} {"ok":"close"} or {"error":"gpu-busy","text":".."}.
 *
 * Only one thread at a time may use a worker. Calls wait until their deadline at most
 * (`deadline_ns` from now). Another thread can wake them early with `worker_cancel`. A deadline, a
 * cancellation, a broken message or the death of the worker puts the worker out of step. Every
 * later call then ends with that status, and the worker can only be stopped.
 */
#pragma once

#include "base/clock.h"
#include "gpu/gpu.h"
#include "observe/observe.h"

struct worker;

/* Starts the process; `executable` is normally "/proc/self/exe". The caller owns `*out`. */
enum status worker_start(const char *executable, const struct gpu_options *options,
                         struct worker **out, struct err *err);

/* Finds the GPUs of this node, without a context on any GPU. `found` is called for each GPU as soon
 * as it is identified, or the driver has failed to identify it. */
enum status worker_list(struct worker *w, nsec_t deadline_ns, gpu_found_fn *found, void *self,
                        struct err *err);

/* Opens one GPU in the worker. */
enum status worker_open(struct worker *w, const char *uuid, nsec_t deadline_ns,
                        struct gpu_identity *identity, struct gpu_limits *limits, struct err *err);

/* Runs one probe. On success the caller owns `*out`. Returns STATUS_DEADLINE if the worker did not
 * answer in time, STATUS_GPU_LOST if it died. */
enum status worker_run(struct worker *w, const struct probe_spec *spec, nsec_t deadline_ns,
                       struct observation *out, struct err *err);

/* These are two halves of `worker_run`, so that the caller can store one observation while the
 * worker runs the next probe. worker_submit sends a probe; worker_await waits for the oldest
 * observation. At most WORKER_MAX_PENDING may be pending (asserted), because the pipe might not
 * hold more. */
enum { WORKER_MAX_PENDING = 2 };
enum status worker_submit(struct worker *w, const struct probe_spec *spec, nsec_t deadline_ns,
                          struct err *err);
enum status worker_await(struct worker *w, nsec_t deadline_ns, struct observation *out,
                         struct err *err);

/* Returns the process id, to be named in messages and killed in tests. */
int worker_pid(const struct worker *w);

/* Makes the call that waits in another thread end with STATUS_CANCELLED, and every later call
 * too. */
void worker_cancel(struct worker *w);

/* Limits of the wait for a worker that may hang in the driver. */
struct worker_timeouts {
    nsec_t grace_ns;
    nsec_t stopping_ns;           /* replaces grace_ns once `stopping` returns true */
    bool (*stopping)(void *self); /* whether the daemon is stopping; NULL means never */
    void *self;
    bool may_kill; /* if false, SIGKILL is sent only if the daemon is stopping; killing a process in
                      the middle of a driver call may freeze the GPU */
};
/* Closes the connection and waits for the worker to exit. Then it sends SIGTERM and waits again,
 * then SIGKILL. A worker that does not end is abandoned and logged (reap.h). Returns the process id
 * of an abandoned worker, else 0. NULL is allowed. */
int worker_stop(struct worker *take, const struct worker_timeouts *timeouts);

/* The worker's main, in its own process: reads messages from `in_fd` and answers on `out_fd` until
 * the former is closed. Both descriptors are 3 if the daemon has started the worker. They are 0 and
 * 1 if a person drives it (`reachd --worker=stdio`). Returns the exit code. (worker_main.c) */
int worker_main(int in_fd, int out_fd);
