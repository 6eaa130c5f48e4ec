/* observation.c: manages the memory of observations, and finds values in their flat arrays.
 *
 * gpu/probe.h lists the axes of each kind; the last one is fastest. So value
 * [repeat][half][sm][page] of a ROUND of 132 SMs with slices of 8 pages lies at ((repeat * 2 +
 * half) * 132 + sm) * 8 + page.
 */
#include "observe/observe.h"

#include "base/assert.h"

#include <stdlib.h>

enum { HALVES = 2, FIRST_CAPACITY = 16 };

void observation_free(struct observation *take)
{
    probe_result_free(&take->result);
    *take = (struct observation){0};
}

/* Makes room for one more observation. */
static enum status grow(struct observation **items, size_t count, size_t *capacity, struct err *err)
{
    const size_t wanted = *capacity ? *capacity * 2 : FIRST_CAPACITY;
    struct observation *grown;

    if (count < *capacity)
        return STATUS_OK;
    grown = reallocarray(*items, wanted, sizeof(*grown));
    if (!grown)
        return err_no_memory(err, "%zu observations", wanted);
    *items = grown;
    *capacity = wanted;
    return STATUS_OK;
}

bool observation_set_is_shared(const struct observation_set *set)
{
    return set->disturbed > 0 || set->interrupted > 0 || set->others > 0;
}

enum status observation_set_add(struct observation_set *set, struct observation *take,
                                struct err *err)
{
    const bool clean = take->assessment.verdict == VERDICT_CLEAN;
    enum status s;

    s = clean ? grow(&set->items, set->count, &set->capacity, err)
              : grow(&set->excluded.items, set->excluded.count, &set->excluded.capacity, err);
    if (s != STATUS_OK) {
        observation_free(take);
        return s;
    }
    if (take->spec.memory == MEMORY_DEVICE && IS_KNOWN(take->result.conditions.interruptions))
        set->interrupted += take->result.conditions.interruptions.v;
    if (IS_KNOWN(take->result.conditions.other_processes) &&
        take->result.conditions.other_processes.v > set->others)
        set->others = take->result.conditions.other_processes.v;
    set->disturbed += !clean && take->spec.memory == MEMORY_DEVICE;
    if (clean)
        set->items[set->count++] = *take;
    else
        set->excluded.items[set->excluded.count++] = *take;
    *take = (struct observation){0};
    return STATUS_OK;
}

void observation_set_free(struct observation_set *take)
{
    for (size_t i = 0; i < take->count; i++)
        observation_free(&take->items[i]);
    for (size_t i = 0; i < take->excluded.count; i++)
        observation_free(&take->excluded.items[i]);
    free(take->items);
    free(take->excluded.items);
    *take = (struct observation_set){0};
}

const struct observation *observation_next(const struct observation_set *set,
                                           const struct observation *o, enum probe_kind kind)
{
    for (o = o ? o + 1 : set->items; o < set->items + set->count; o++)
        if (o->spec.kind == kind && o->spec.memory == MEMORY_DEVICE)
            return o;
    return NULL;
}

const struct observation *observation_next_same_memory(const struct observation_set *set,
                                                       const struct observation *o,
                                                       const struct probe_spec *spec)
{
    for (o = o ? o + 1 : set->items; o < set->items + set->count; o++)
        if (probe_same_memory(&o->spec, spec))
            return o;
    return NULL;
}

const uint32_t *observation_chase(const struct observation *o, uint32_t p)
{
    REACH_ASSERT((o->spec.kind == PROBE_CHASE || o->spec.kind == PROBE_CACHE) &&
                 p < o->spec.point_count);
    return o->result.values + (size_t)p * o->spec.samples;
}

/* ROUND and PAIRS have the same axes except for the first axis. */
static const uint32_t *slice(const struct observation *o, uint32_t outer, uint32_t half,
                             uint32_t sm)
{
    const size_t row = ((size_t)outer * HALVES + half) * o->result.sm_count + sm;

    REACH_ASSERT(half < HALVES && sm < o->result.sm_count);
    return o->result.values + row * o->spec.slice_pages;
}

const uint32_t *observation_round(const struct observation *o, uint32_t repeat, uint32_t half,
                                  uint32_t sm)
{
    REACH_ASSERT(o->spec.kind == PROBE_ROUND && repeat < o->spec.repeats);
    return slice(o, repeat, half, sm);
}

const uint32_t *observation_pair(const struct observation *o, uint32_t pivot, uint32_t half,
                                 uint32_t sm)
{
    REACH_ASSERT(o->spec.kind == PROBE_PAIRS && pivot < o->spec.sm_count);
    return slice(o, pivot, half, sm);
}

const uint32_t *observation_sides(const struct observation *o, uint32_t repeat, uint32_t sm)
{
    REACH_ASSERT(o->spec.kind == PROBE_SIDES && repeat < o->spec.repeats && sm < o->spec.sm_count);
    return o->result.values + ((size_t)repeat * o->spec.sm_count + sm) * o->spec.samples;
}

const uint32_t *observation_shared(const struct observation *o, uint32_t repeat, uint32_t sm)
{
    REACH_ASSERT(o->spec.kind == PROBE_SHARED && repeat < o->spec.repeats);
    REACH_ASSERT(sm < o->spec.sm_count);
    return o->result.values + ((size_t)repeat * o->spec.sm_count + sm) * o->spec.point_count;
}

const uint32_t *observation_peer(const struct observation *o, uint32_t repeat, uint32_t row)
{
    REACH_ASSERT(o->spec.kind == PROBE_PEER && repeat < o->spec.repeats);
    REACH_ASSERT(row <= o->result.sm_count);
    return o->result.values +
           ((size_t)repeat * (1 + o->result.sm_count) + row) * probe_peer_columns(&o->spec);
}

/* Column 0 is the time, followed by one column per SM. */
static const uint32_t *read_row(const struct observation *o, uint32_t p, uint32_t repeat)
{
    const size_t columns = (size_t)o->result.sm_count + 1;

    REACH_ASSERT(o->spec.kind == PROBE_READ || o->spec.kind == PROBE_CONCURRENCY ||
                 o->spec.kind == PROBE_WORKING_SET_READ);
    REACH_ASSERT(p < o->spec.point_count && repeat < o->spec.repeats);
    return o->result.values + ((size_t)p * o->spec.repeats + repeat) * columns;
}

/* Bytes per nanosecond are 10^9 bytes per second. A run that took no time has moved nothing. */
static double gbps(const struct observation *o, uint64_t accesses, uint32_t elapsed_ns)
{
    if (elapsed_ns == 0)
        return 0.0;
    return (double)accesses * probe_access_bytes(&o->spec) / (double)elapsed_ns;
}

double observation_read_gbps(const struct observation *o, uint32_t p, uint32_t repeat)
{
    const uint32_t *const row = read_row(o, p, repeat);
    uint64_t accesses = 0;

    for (uint32_t sm = 0; sm < o->result.sm_count; sm++)
        accesses += row[1 + sm];
    return gbps(o, accesses, row[0]);
}

uint32_t observation_read_ns(const struct observation *o, uint32_t p, uint32_t repeat)
{
    return read_row(o, p, repeat)[0];
}

double observation_read_sm_gbps(const struct observation *o, uint32_t p, uint32_t repeat,
                                uint32_t sm)
{
    const uint32_t *const row = read_row(o, p, repeat);

    REACH_ASSERT(sm < o->result.sm_count);
    return gbps(o, row[1 + sm], row[0]);
}

double observation_mean(const struct observation *o, uint32_t p)
{
    REACH_ASSERT(o->spec.kind == PROBE_MEANS && p < o->spec.point_count);
    return o->result.values[p] / (double)PROBE_MEAN_SCALE;
}

double observation_mean_pair(const struct observation *o, uint32_t sm, uint32_t other)
{
    REACH_ASSERT(o->spec.kind == PROBE_MEAN_PAIRS);
    REACH_ASSERT(sm < o->result.sm_count && other < o->result.sm_count);
    return o->result.values[(size_t)sm * o->result.sm_count + other] / (double)PROBE_MEAN_SCALE;
}
