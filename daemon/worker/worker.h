/* worker.h: the daemon's side of a measurement process. The other side is worker_main.c.
 *
 * A worker is this same binary, started again as `reachd --worker` with one end of a socket pair as
 * file descriptor 3. It opens one GPU, runs the probes it is sent, streams observations back and
 * exits, which releases context and memory. A sticky CUDA error, a hang or a crash costs one
 * worker.
 *
 * Messages are JSON texts, one per line. To the worker: {"do":"list"} {"do":"open","uuid":..}
 * {"do":"run","probe":{..}} {"do":"close"}; the first message is {"do":"options",..}. From it:
 * {"ok":"list","gpu":{..}} for each GPU, then {"ok":"list"};
 * {"ok":"open","gpu":{..},"limits":{..},"open_ns":..}
 * {"ok":"run","time":{..},"observation":{..}} {"ok":"close"} or {"error":"gpu-busy","text":".."}.
 *
 * One thread at a time per worker. Calls wait, at most as long as their deadline (`deadline_ns`:
 * from now), and can be woken early by another thread through `worker_cancel`. After a call that
 * ended out of step (deadline, cancellation, a broken message, a dead worker) every later one ends
 * with the same status; the worker can only be stopped.
 */
#ifndef REACH_WORKER_WORKER_H
#define REACH_WORKER_WORKER_H

#include "base/clock.h"
#include "gpu/gpu.h"
#include "observe/observe.h"

struct worker;

/* Starts the process; `executable` is normally "/proc/self/exe". The caller owns `*out`. */
enum status worker_start(const char *executable, const struct gpu_options *options,
                         struct worker **out, struct err *err);

/* Finds the GPUs of this node, without a context on any. `found` is called for each as soon as it
 * is identified, or cannot be. */
enum status worker_list(struct worker *w, nsec_t deadline_ns, gpu_found_fn *found, void *self,
                        struct err *err);

/* Opens one GPU in the worker. */
enum status worker_open(struct worker *w, const char *uuid, nsec_t deadline_ns,
                        struct gpu_identity *identity, struct gpu_limits *limits, struct err *err);

/* Runs one probe. On success the caller owns `*out`. STATUS_DEADLINE: the worker did not answer in
 * time; STATUS_GPU_LOST: it died. */
enum status worker_run(struct worker *w, const struct probe_spec *spec, nsec_t deadline_ns,
                       struct observation *out, struct err *err);

/* `worker_run` in two halves, so that the caller can store one observation while the worker runs
 * the next probe: worker_submit sends one, worker_await waits for the oldest observation. At most
 * WORKER_MAX_PENDING may be pending (asserted): the pipe holds no more for sure. */
enum { WORKER_MAX_PENDING = 2 };
enum status worker_submit(struct worker *w, const struct probe_spec *spec, nsec_t deadline_ns,
                          struct err *err);
enum status worker_await(struct worker *w, nsec_t deadline_ns, struct observation *out,
                         struct err *err);

/* The process, to be named in messages and killed in tests. */
int worker_pid(const struct worker *w);

/* Makes the call that waits in another thread, and every later one, end with STATUS_CANCELLED. */
void worker_cancel(struct worker *w);

/* How long to wait for a worker that may hang in the driver. */
struct worker_timeouts {
    nsec_t grace_ns;
    nsec_t stopping_ns;           /* instead, once `stopping` is true because the daemon stops */
    bool (*stopping)(void *self); /* NULL: never */
    void *self;
    bool may_kill; /* false: SIGKILL only if the daemon is stopping, for a process that is killed in
                      the middle of a driver call may freeze the GPU */
};
/* Closes the connection and waits for the worker to exit, then sends SIGTERM and waits as long
 * again, then SIGKILL. A worker that does not end is abandoned and logged (reap.h): its process id
 * is returned, else 0. NULL is fine. */
int worker_stop(struct worker *take, const struct worker_timeouts *timeouts);

/* The worker's main, in its own process: reads messages from `in_fd` and answers on `out_fd` until
 * the former is closed. Both are 3 if the daemon has started it, 0 and 1 if a person drives it
 * (`reachd --worker=stdio`). Returns the exit code. (worker_main.c) */
int worker_main(int in_fd, int out_fd);

#endif
