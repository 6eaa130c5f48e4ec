/* whatif_parts.h: what whatif.c and its questions share. Private to them. */
#ifndef REACH_CLIENTS_LAB_WHATIF_PARTS_H
#define REACH_CLIENTS_LAB_WHATIF_PARTS_H

#include "clients/lab/flight.h"
#include "clients/lab/stream.h"
#include "clients/lab/whatif.h"

struct asking {
    const struct fingerprint *fp;
    const struct trace *trace;
    const struct whatif_options *options;
    struct whatif_answer *out;
    struct sim_desc machine;
    bool flies; /* the fingerprint tells how long misses are under way */
    bool waits; /* the job states its own limit, and waits for the results of its atomics */
    struct flight flight;
    struct stream stream;             /* as it is */
    double memory_ns[STREAM_CLASSES]; /* of a line; 0: the trace has none */
    double all_memory_ns;             /* of the trace */
    double read_ns;                   /* to read the input of all of it once */
    double add_ns;                    /* to add to its output once more */
    uint64_t walks;                   /* as it is */
    struct strategy_answer *plan;     /* NULL: there is none, and no_plan says why */
    struct err no_plan;
};

/* Adds a row; with the time of all accesses in memory, and the walks of all. */
struct whatif_row *whatif_add(struct asking *a, enum whatif_question question, double value,
                              double memory_ns, double walks);
struct whatif_row *whatif_add_unknown(struct asking *a, enum whatif_question question,
                                      const char *why);

/* The time of a part of the work, in ns: the busier of memory and translation. `scattered`: share
 * of the frames. */
double whatif_time(const struct asking *a, double memory_ns, double walks, double scattered);

/* The share of scattered frames that was told, or none; and of the worst case: what was told, or
 * all of them, as far as their price was measured. */
double whatif_told(const struct asking *a);
double whatif_worst(const struct asking *a);

static inline const struct flight *whatif_flight(const struct asking *a)
{
    return a->flies ? &a->flight : NULL;
}

/* The accesses and one reading of the input. */
static inline double whatif_memory(const struct asking *a)
{
    return a->all_memory_ns + a->read_ns;
}

/* Sets the times of all accesses, in ns, and what follows from them. */
void whatif_set_times(const struct asking *a, struct whatif_row *r, double ns, double ns_at_worst);

/* In whatif_place.c: what the planner would do. */
enum status whatif_scopes(struct asking *a, struct err *err);
enum status whatif_windows(struct asking *a, struct err *err);

#endif
