/* sim_run.c: runs CHASE, ROUND and PAIRS on the model of a GPU. See sim_machine.h.
 *
 * Concurrent work of a GPU is interleaved here load by load, in turns of the SMs, like in a grid
 * that starts together. Timed loads carry the noise of the description; TLBs keep their state
 * between probes.
 */
#include "gpu/sim/sim_parts.h"
#include "kernels/abi.h"

#include <math.h>
#include <string.h>

static uint32_t position_of(const struct sim_machine *m, uint16_t sm_id)
{
    return probe_sm_position(m->desc.sm_ids, m->desc.sm_count, sm_id);
}

/* Returns the cycles of a hit at the present clock: at least 1, like those of a load. */
static uint32_t time_reference(const struct sim_machine *m)
{
    const double cycles = m->desc.latency_cycles * sim_machine_load_factor(m);
    return cycles < 1 ? 1 : (uint32_t)lround(cycles);
}

/* This function and the next are those of the kernels. A simulated clock may change by any factor,
 * but a load always takes a cycle, because 0 stands for a value that was lost. */
static bool is_other_clock(uint32_t now, uint32_t first)
{
    return (now > first ? now - first : first - now) * REACH_REFERENCE_SLACK > first;
}

static void scale_to_first(struct sim_machine *m, uint32_t now, uint32_t *values, uint32_t count)
{
    m->reference = m->reference ? m->reference : now;
    for (uint32_t i = 0; i < count && is_other_clock(now, m->reference); i++) {
        const uint64_t scaled = ((uint64_t)values[i] * m->reference + now / 2) / now;
        values[i] = scaled > 0 ? (uint32_t)scaled : 1;
    }
}

/* Walks one stretch of a point like the kernel: `loads` untimed loads from page `from` on, then
 * timed loads from number `k` on. Returns the number of timed loads when the neighbor interrupts
 * it. */
static uint32_t walk_and_time(struct sim_machine *m, const struct probe_spec *spec, uint64_t va,
                              uint64_t pages, uint64_t loads, uint64_t from, uint32_t k,
                              uint32_t *values)
{
    const uint32_t sm = position_of(m, spec->sms[0]);
    const uint64_t away = m->away;
    uint64_t page = from;
    for (uint64_t i = 0; i < loads && m->away == away; i++) {
        sim_machine_load(m, sm, va + page * spec->stride_bytes);
        page = page + 1 == pages ? 0 : page + 1;
    }
    for (; k < spec->samples && m->away == away; k++) {
        values[k] = sim_machine_timed_load(m, sm, va + page * spec->stride_bytes);
        if (m->away != away)
            break;
        page = page + 1 == pages ? 0 : page + 1;
    }
    return k;
}

/* Runs one point. After an interruption the whole point begins again, up to REACH_WHOLE_AGAIN
 * times. Then the walk warms up and continues with the first missing load, like in reach_chase. A
 * point during which the clock changes begins again, too. */
static void run_point(struct sim_machine *m, const struct probe_spec *spec, uint64_t va,
                      uint64_t pages, uint32_t *values)
{
    uint32_t k = 0;
    uint32_t futile = 0;
    uint32_t reclocked = 0;
    for (uint32_t turns = 0; k < spec->samples && futile < REACH_MOST_FUTILE; turns++) {
        const uint32_t laps = turns && spec->warm_laps == 1 ? 2 : spec->warm_laps;
        const uint32_t first = turns > REACH_WHOLE_AGAIN && spec->warm_laps ? k : 0;
        const uint32_t now = time_reference(m);
        const uint32_t timed =
            walk_and_time(m, spec, va, pages, pages * laps, first % pages, first, values);
        futile = timed > first ? 0 : futile + 1;
        if (probe_has_reference(spec))
            scale_to_first(m, now, values + first, timed - first);
        k = timed;
        m->interruptions += k < spec->samples;
        if (k == spec->samples && probe_has_reference(spec) && reclocked < REACH_WHOLE_AGAIN &&
            is_other_clock(time_reference(m), now)) {
            k = 0;
            reclocked++;
        }
    }
    if (k < spec->samples)
        memset(values, 0, spec->samples * sizeof *values);
}

static void run_chase(struct sim_machine *m, const struct probe_spec *spec, uint64_t va,
                      uint32_t *values)
{
    for (uint32_t p = 0; p < spec->point_count; p++)
        run_point(m, spec, va, spec->points[p], values + (size_t)p * spec->samples);
}

/* Lets SM `sm` alone walk pages first..first+count-1, `laps` times. */
static void walk(struct sim_machine *m, const struct probe_spec *spec, uint64_t va, uint32_t sm,
                 uint64_t first, uint64_t count, uint32_t laps)
{
    for (uint32_t lap = 0; lap < laps; lap++) {
        for (uint64_t i = first; i < first + count; i++)
            sim_machine_load(m, sm, va + i * spec->stride_bytes);
    }
}

/* Lets every SM load all slices once, starting at its own slice. So an SM ends with the slice of
 * the SM before it, which may still hit a level that the two share. flush_pages prevent that. */
static void prime_all(struct sim_machine *m, const struct probe_spec *spec, uint64_t va)
{
    uint32_t sms = m->desc.sm_count;
    uint64_t pages = (uint64_t)sms * spec->slice_pages;
    for (uint64_t i = 0; i < pages; i++) {
        uint64_t page = i;
        for (uint32_t sm = 0; sm < sms; sm++) {
            sim_machine_load(m, sm, va + page * spec->stride_bytes);
            page += spec->slice_pages;
            page -= page >= pages ? pages : 0;
        }
    }
}

/* Lets all SMs walk the flush_pages behind the slices, before and after priming. */
static void flush_all(struct sim_machine *m, const struct probe_spec *spec, uint64_t va)
{
    uint64_t first = (uint64_t)m->desc.sm_count * spec->slice_pages;
    for (uint64_t page = first; page < first + spec->flush_pages; page++) {
        for (uint32_t sm = 0; sm < m->desc.sm_count; sm++)
            sim_machine_load(m, sm, va + page * spec->stride_bytes);
    }
}

/* Runs one repeat of a round: without and with thrashing. */
static void run_repeat(struct sim_machine *m, const struct probe_spec *spec, uint64_t va,
                       uint32_t *values)
{
    uint32_t sms = m->desc.sm_count;
    uint32_t slice = spec->slice_pages;
    uint64_t primed = (uint64_t)sms * slice + spec->flush_pages;
    uint32_t pivot = position_of(m, spec->sms[0]);
    for (uint32_t half = 0; half < 2; half++) {
        sim_machine_overlap(m, sms * SIM_LANES);
        flush_all(m, spec, va);
        prime_all(m, spec, va);
        flush_all(m, spec, va);
        sim_machine_overlap(m, SIM_LANES);
        if (half == 1)
            walk(m, spec, va, pivot, primed, spec->thrash_pages, spec->warm_laps);
        sim_machine_overlap(m, sms);
        for (uint32_t i = 0; i < slice; i++) {
            for (uint32_t sm = 0; sm < sms; sm++) {
                uint64_t page = (uint64_t)sm * slice + i;
                values[(size_t)sm * slice + i] =
                    sim_machine_timed_load(m, sm, va + page * spec->stride_bytes);
            }
        }
        scale_to_first(m, time_reference(m), values, sms * slice);
        values += (size_t)sms * slice;
    }
}

/* Returns whether the attempt that began at turn `away` of the neighbor was interrupted. The values
 * of an interrupted attempt are lost. Counts interruptions. */
static bool was_interrupted(struct sim_machine *m, uint64_t away)
{
    m->interruptions += m->away != away;
    return m->away != away;
}

static void run_round(struct sim_machine *m, const struct probe_spec *spec, uint64_t va,
                      uint32_t *values)
{
    const size_t count = (size_t)2 * m->desc.sm_count * spec->slice_pages;
    for (uint32_t repeat = 0; repeat < spec->repeats; repeat++, values += count) {
        bool interrupted = true;
        for (uint32_t tries = 0; interrupted && tries <= REACH_MOST_FUTILE; tries++) {
            const uint64_t away = m->away;
            run_repeat(m, spec, va, values);
            interrupted = was_interrupted(m, away);
        }
        if (interrupted)
            memset(values, 0, count * sizeof *values);
    }
}

static void time_slice(struct sim_machine *m, const struct probe_spec *spec, uint64_t va,
                       uint32_t sm, uint32_t *values)
{
    sim_machine_overlap(m, 1);
    for (uint32_t i = 0; i < spec->slice_pages; i++)
        values[i] = sim_machine_timed_load(m, sm, va + i * spec->stride_bytes);
    scale_to_first(m, time_reference(m), values, spec->slice_pages);
}

/* Times SM `sm` against the pivot, without and with thrashing. */
static void run_pair(struct sim_machine *m, const struct probe_spec *spec, uint64_t va,
                     uint32_t pivot, uint32_t sm, uint32_t *control, uint32_t *after)
{
    const uint32_t slice = spec->slice_pages;
    const uint32_t primed = slice + spec->flush_pages;
    m->reference = 0;
    sim_machine_overlap(m, SIM_LANES);
    walk(m, spec, va, sm, slice, spec->flush_pages, 1);
    walk(m, spec, va, sm, 0, primed, 1);
    time_slice(m, spec, va, sm, control);
    sim_machine_overlap(m, SIM_LANES);
    walk(m, spec, va, sm, slice, spec->flush_pages, 1);
    walk(m, spec, va, sm, 0, primed, 1);
    walk(m, spec, va, pivot, primed, spec->thrash_pages, spec->warm_laps);
    time_slice(m, spec, va, sm, after);
}

static void run_pairs(struct sim_machine *m, const struct probe_spec *spec, uint64_t va,
                      uint32_t *values)
{
    const uint32_t sms = m->desc.sm_count;
    const uint32_t slice = spec->slice_pages;
    const size_t half = (size_t)sms * slice;
    for (uint32_t p = 0; p < spec->sm_count; p++, values += 2 * half) {
        const uint32_t pivot = position_of(m, spec->sms[p]);
        for (uint32_t sm = 0; sm < sms; sm++) {
            uint32_t *control = values + (size_t)sm * slice;
            bool interrupted = true;
            for (uint32_t tries = 0; interrupted && tries <= REACH_MOST_FUTILE; tries++) {
                const uint64_t away = m->away;
                run_pair(m, spec, va, pivot, sm, control, control + half);
                interrupted = was_interrupted(m, away);
            }
            for (uint32_t i = 0; interrupted && i < slice; i++)
                control[i] = control[half + i] = 0;
        }
    }
}

enum status sim_machine_run(struct sim_machine *m, const struct probe_spec *spec, uint64_t va,
                            uint32_t *values, struct err *err)
{
    const uint64_t base = va + spec->base_bytes;
    m->interruptions = 0;
    m->reference = 0;
    sim_machine_overlap(m, 1);
    for (uint32_t i = 0;
         i < spec->sm_count && spec->kind != PROBE_READ && spec->kind != PROBE_CONCURRENCY; i++) {
        if (position_of(m, spec->sms[i]) == m->desc.sm_count)
            return err_set(err, STATUS_INVALID_ARGUMENT, "probe: this GPU has no SM with id %u",
                           spec->sms[i]);
    }
    if (spec->kind == PROBE_CHASE)
        run_chase(m, spec, base, values);
    else if (spec->kind == PROBE_ROUND)
        run_round(m, spec, base, values);
    else if (spec->kind == PROBE_PAIRS)
        run_pairs(m, spec, base, values);
    else if (spec->kind == PROBE_SIDES)
        sim_sides_run(m, spec, base, values);
    else if (spec->kind == PROBE_WORKING_SET_READ)
        sim_working_set_read_run(m, spec, values);
    else if (spec->kind == PROBE_CACHE)
        return sim_cache_run(m, spec, base, values) ? STATUS_OK
                                                    : err_no_memory(err, "a simulated cache");
    else if (spec->kind == PROBE_SHARED)
        sim_shared_run(m, spec, values);
    else if (spec->kind == PROBE_PEER)
        sim_peer_run(m, spec, values);
    else if (spec->kind == PROBE_CONCURRENCY)
        sim_concurrency_run(m, spec, base, values);
    else
        sim_read_run(m, spec, base, values);
    return STATUS_OK;
}
