/* trace_load.h: a trace while it is read. Private to trace.c and trace_regions.c. */
#ifndef REACH_CLIENTS_LAB_TRACE_LOAD_H
#define REACH_CLIENTS_LAB_TRACE_LOAD_H

#include "clients/lab/trace.h"

/* An open hash table of numbers, each with an index. Slot 0 of a key is none. */
struct number_set {
    uint32_t count, room; /* room: a power of two, or 0 */
    uint64_t *keys;       /* by index */
    uint32_t *slots;      /* index + 1 */
};

/* The index of `key`, a new one if it is not there. UINT32_MAX: no memory. */
uint32_t number_set_add(struct number_set *s, uint64_t key);
void number_set_free(struct number_set *take);

/* Sorts the chunks, moves `lines` (addresses) together to t->units, sets range and regions. */
enum status trace_move(struct trace *t, struct number_set *chunks, uint64_t *lines,
                       const struct rlt_allocation *allocations, uint32_t allocation_count,
                       struct err *err);

#endif
