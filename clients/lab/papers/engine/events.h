/* events.h: a binary heap of events (time, code). Events of the same time leave in the order of
 * their codes, so runs repeat. Times are cycles of the cores. Only one thread may use a heap at a
 * time. */
#pragma once

#include "base/assert.h"

#include <stdbool.h>
#include <stdint.h>

enum { LAB_MOST_EVENTS = 192 };

struct lab_event {
    uint64_t at;
    uint64_t code; /* defined by the owner */
};

/* A zeroed structure is an empty heap. */
struct lab_events {
    uint32_t count;
    struct lab_event heap[LAB_MOST_EVENTS];
};

static inline bool lab_event_before(const struct lab_event *a, const struct lab_event *b)
{
    return a->at != b->at ? a->at < b->at : a->code < b->code;
}

/* The heap must have room for one more event. */
static inline void lab_events_push(struct lab_events *e, uint64_t at, uint64_t code)
{
    const struct lab_event new = {at, code};
    REACH_ASSERT(e->count < LAB_MOST_EVENTS);
    uint32_t i = e->count++;
    for (uint32_t parent; i > 0; i = parent) {
        parent = (i - 1) / 2;
        if (!lab_event_before(&new, &e->heap[parent]))
            break;
        e->heap[i] = e->heap[parent];
    }
    e->heap[i] = new;
}

/* The heap must not be empty. */
static inline struct lab_event lab_events_pop(struct lab_events *e)
{
    const struct lab_event first = e->heap[0];
    const struct lab_event last = e->heap[--e->count];
    uint32_t i = 0;
    for (uint32_t child = 1; child < e->count; child = 2 * i + 1) {
        if (child + 1 < e->count && lab_event_before(&e->heap[child + 1], &e->heap[child]))
            child++;
        if (!lab_event_before(&e->heap[child], &last))
            break;
        e->heap[i] = e->heap[child];
        i = child;
    }
    e->heap[i] = last;
    return first;
}
