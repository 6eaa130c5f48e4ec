/* sim_run.c: CHASE, ROUND and PAIRS on the model of a GPU. See sim_machine.h.
 *
 * What runs at the same time on a GPU is interleaved here load by load, in turns of the SMs, as in
 * a grid that starts together. Timed loads carry the noise of the description; TLBs keep their
 * state between probes.
 */
#include "gpu/sim/sim_parts.h"

static uint32_t position_of(const struct sim_machine *m, uint16_t sm_id)
{
    return probe_sm_position(m->desc.sm_ids, m->desc.sm_count, sm_id);
}

static void run_chase(struct sim_machine *m, const struct probe_spec *spec, uint64_t va,
                      uint32_t *values)
{
    uint32_t sm = position_of(m, spec->sms[0]);
    for (uint32_t p = 0; p < spec->point_count; p++) {
        uint64_t pages = spec->points[p];
        for (uint32_t lap = 0; lap < spec->warm_laps; lap++) {
            for (uint64_t i = 0; i < pages; i++)
                sim_machine_load(m, sm, va + i * spec->stride_bytes);
        }
        uint64_t page = 0;
        for (uint32_t i = 0; i < spec->samples; i++) {
            *values++ = sim_machine_timed_load(m, sm, va + page * spec->stride_bytes);
            page = page + 1 == pages ? 0 : page + 1;
        }
    }
}

/* SM `sm` alone walks pages first..first+count-1, `laps` times. */
static void walk(struct sim_machine *m, const struct probe_spec *spec, uint64_t va, uint32_t sm,
                 uint64_t first, uint64_t count, uint32_t laps)
{
    for (uint32_t lap = 0; lap < laps; lap++) {
        for (uint64_t i = first; i < first + count; i++)
            sim_machine_load(m, sm, va + i * spec->stride_bytes);
    }
}

/* Every SM loads all slices once, each from its own slice on. So an SM ends with the slice of the
 * one before it, which then may still hit a level that the two share: what flush_pages are for. */
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

/* All walk the same further pages, before and after. */
static void flush_all(struct sim_machine *m, const struct probe_spec *spec, uint64_t va)
{
    uint64_t first = (uint64_t)m->desc.sm_count * spec->slice_pages;
    for (uint64_t page = first; page < first + spec->flush_pages; page++) {
        for (uint32_t sm = 0; sm < m->desc.sm_count; sm++)
            sim_machine_load(m, sm, va + page * spec->stride_bytes);
    }
}

static void run_round(struct sim_machine *m, const struct probe_spec *spec, uint64_t va,
                      uint32_t *values)
{
    uint32_t sms = m->desc.sm_count;
    uint32_t slice = spec->slice_pages;
    uint64_t primed = (uint64_t)sms * slice + spec->flush_pages;
    uint32_t pivot = position_of(m, spec->sms[0]);
    for (uint32_t half = 0; half < 2 * spec->repeats; half++) {
        flush_all(m, spec, va);
        prime_all(m, spec, va);
        flush_all(m, spec, va);
        if (half % 2 == 1)
            walk(m, spec, va, pivot, primed, spec->thrash_pages, spec->warm_laps);
        for (uint32_t i = 0; i < slice; i++) {
            for (uint32_t sm = 0; sm < sms; sm++) {
                uint64_t page = (uint64_t)sm * slice + i;
                values[(size_t)sm * slice + i] =
                    sim_machine_timed_load(m, sm, va + page * spec->stride_bytes);
            }
        }
        values += (size_t)sms * slice;
    }
}

static void time_slice(struct sim_machine *m, const struct probe_spec *spec, uint64_t va,
                       uint32_t sm, uint32_t *values)
{
    for (uint32_t i = 0; i < spec->slice_pages; i++)
        values[i] = sim_machine_timed_load(m, sm, va + i * spec->stride_bytes);
}

static void run_pairs(struct sim_machine *m, const struct probe_spec *spec, uint64_t va,
                      uint32_t *values)
{
    uint32_t sms = m->desc.sm_count;
    uint32_t slice = spec->slice_pages;
    uint32_t primed = slice + spec->flush_pages;
    size_t half = (size_t)sms * slice;
    for (uint32_t p = 0; p < spec->sm_count; p++) {
        uint32_t pivot = position_of(m, spec->sms[p]);
        for (uint32_t sm = 0; sm < sms; sm++) {
            uint32_t *control = values + (size_t)sm * slice;
            walk(m, spec, va, sm, slice, spec->flush_pages, 1);
            walk(m, spec, va, sm, 0, primed, 1);
            time_slice(m, spec, va, sm, control);
            walk(m, spec, va, sm, slice, spec->flush_pages, 1);
            walk(m, spec, va, sm, 0, primed, 1);
            walk(m, spec, va, pivot, primed, spec->thrash_pages, spec->warm_laps);
            time_slice(m, spec, va, sm, control + half);
        }
        values += 2 * half;
    }
}

enum status sim_machine_run(struct sim_machine *m, const struct probe_spec *spec, uint64_t va,
                            uint32_t *values, struct err *err)
{
    const uint64_t base = va + spec->base_bytes;
    for (uint32_t i = 0;
         i < spec->sm_count && spec->kind != PROBE_READ && spec->kind != PROBE_FLIGHT; i++) {
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
    else if (spec->kind == PROBE_SPREAD)
        sim_spread_run(m, spec, values);
    else if (spec->kind == PROBE_CACHE)
        return sim_cache_run(m, spec, base, values)
                   ? STATUS_OK
                   : err_set(err, STATUS_NO_MEMORY, "no memory for a simulated cache");
    else if (spec->kind == PROBE_SHARED)
        sim_shared_run(m, spec, values);
    else if (spec->kind == PROBE_PEER)
        sim_peer_run(m, spec, values);
    else if (spec->kind == PROBE_FLIGHT)
        sim_flight_run(m, spec, base, values);
    else
        sim_read_run(m, spec, base, values);
    return STATUS_OK;
}
