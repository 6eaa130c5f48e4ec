/* costing.h: the state of the prediction of one launch, and its result. Only the modules
 * that predict a launch use struct costing. */
#pragma once

#include "clients/profile/access_pattern.h"
#include "clients/lab/whatif/whatif_answer.h"
#include "fingerprint/fingerprint.h"
#include "planner/strategy.h"

#include <stdio.h>

enum access_order { ORDER_UNKNOWN = 0, ORDER_SEQUENTIAL, ORDER_RANDOM };

enum { LAUNCH_MAX_OPTIONS = 2 * MEMORY_KIND_COUNT + STRATEGY_ALL_COUNT };

/* Another way to make the accesses of the launch. */
struct cost_option {
    enum memory_kind kind;
    enum strategy strategy;
    double ns; /* predicted time of the launch */
};

/* All times are nanoseconds of the launch. Numbers of accesses are scaled from the trace to the
 * launch. */
struct launch_cost {
    enum access_order order[PLACE_COUNT];
    enum rlt_kind kind;    /* kind of most random accesses */
    bool has_random;       /* whether any class of accesses is at random */
    bool has_times;        /* whether the following members are set */
    double accesses;       /* random accesses; an access is a contiguous row of one warp */
    double misses;         /* random accesses that miss every level */
    double in_reach_ns;    /* predicted time without misses */
    double translation_ns; /* time of the misses alone */
    double predicted_ns;
    uint32_t option_count;
    struct cost_option options[LAUNCH_MAX_OPTIONS];
};

struct launch_context {
    const struct recording *recording;
    const struct place_map *map;
    const char *folder;           /* folder of the traces */
    const struct fingerprint *fp; /* NULL if there is none; times are then not set */
    const char *fingerprint_id;   /* NULL if it is not computed yet */
    struct whatif_shared *shared; /* may be NULL, as in whatif_options */
};

struct costing {
    const struct launch_context *context;
    const struct recording_launch *launch;
    const struct fingerprint *fp; /* NULL if there is none */
    struct launch_cost *out;
    FILE *trace;
    struct access_pattern pattern; /* the chosen classes are the subject of the functions below */
    double device_ns;              /* time of device memory */
    double link_ns;                /* time of the link */
    double link_in_reach_ns;       /* time of the link without misses */
    double scopes_ns, windows_ns;  /* times of these strategies in device memory; 0 means unknown */
};

/* Adds an option, unless its time is unknown (0). */
static inline void costing_add_option(struct costing *c, enum memory_kind kind,
                                      enum strategy strategy, double ns)
{
    if (ns > 0 && c->out->option_count < LAUNCH_MAX_OPTIONS)
        c->out->options[c->out->option_count++] = (struct cost_option){kind, strategy, ns};
}
