/* whatif_context.h: the state of one what-if computation. Only whatif.c, whatif_rows.c and
 * whatif_place.c include this header. */
#pragma once

#include "clients/lab/whatif/miss_queue.h"
#include "clients/lab/whatif/stream.h"
#include "clients/lab/whatif/whatif_answer.h"
#include "base/status.h"
#include "fingerprint/fingerprint.h"

struct whatif_context {
    const struct fingerprint *fp;
    const struct trace *trace;
    const struct whatif_options *options;
    struct whatif_answer *out;
    struct whatif_shared *shared; /* own_shared, or the counts of the options */
    struct whatif_shared own_shared;
    struct sim_desc machine;
    struct sim_desc data_cache;
    bool has_data_cache;  /* data_cache is valid */
    bool models_inflight; /* miss_queue is valid: the fingerprint has the latency of misses */
    bool atomic_bound;    /* the job gives its own speed and waits for the results of atomics */
    struct miss_queue miss_queue;
    struct stream stream;             /* stream of the unchanged job */
    double memory_ns[STREAM_CLASSES]; /* time of a line; 0 if the trace has no line of the class */
    double all_memory_ns;             /* memory time of all accesses */
    double read_ns;                   /* time to read the input of all accesses once */
    double add_ns;                    /* time to add to the output of all accesses once more */
    uint64_t walks;                   /* walks of the unchanged job */
    struct strategy_answer *plan; /* NULL if the planner has no plan; no_plan contains the reason */
    struct err no_plan;
};

/* Returns the miss queue, or NULL if misses have no latency. */
static inline const struct miss_queue *whatif_miss_queue(const struct whatif_context *c)
{
    return c->models_inflight ? &c->miss_queue : NULL;
}
