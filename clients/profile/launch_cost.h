/* launch_cost.h: predicts the time of a recorded launch on a measured GPU, and the time that other
 * strategies and other kinds of memory would take.
 *
 * A launch takes as long as its busiest resource: memory of the device, translation, or the link to
 * other memory. What-if counts the misses of accesses at random in device memory. Accesses in order
 * miss so rarely that their misses do not count. Random accesses to host memory miss a table
 * whose entries together have the reach of that kind of memory.
 *
 * A launch is a part of a job that repeats it, so the TLBs are full when it begins. */
#ifndef REACH_CLIENTS_PROFILE_LAUNCH_COST_H
#define REACH_CLIENTS_PROFILE_LAUNCH_COST_H

#include "clients/profile/access_pattern.h"
#include "fingerprint/fingerprint.h"
#include "planner/strategy.h"

enum access_order { ORDER_UNKNOWN = 0, ORDER_SEQUENTIAL, ORDER_RANDOM };
const char *access_order_name(enum access_order order); /* "unknown", "in-order", "at-random" */

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
};

/* Reads the trace of the launch. Returns STATUS_IO if the trace cannot be opened, the errors of
 * access_pattern_read and whatif_ask, and STATUS_NOT_APPLICABLE if too many accesses are missing
 * from the trace. */
enum status launch_cost_predict(const struct launch_context *context,
                                const struct recording_launch *l, struct launch_cost *out,
                                struct err *err);

/* Writes the trace from which the misses in device memory are counted, or the whole trace if there
 * is no random access to device memory. Returns the errors of launch_cost_predict. */
enum status launch_cost_write_trace(const struct launch_context *context,
                                    const struct recording_launch *l, FILE *out, struct err *err);

#endif
