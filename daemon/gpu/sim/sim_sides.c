/* sim_sides.c: runs SIDES on the model of a GPU. Each granule of memory and each SM is on one of
 * two sides of the L2. An atomic on the other side takes longer. On either side the distance of a
 * line depends on its slice.
 *
 * If two SMs work at the same time, the model runs them in turn, page by page.
 */
#include "gpu/sim/sim_parts.h"

uint32_t sim_fixed(uint64_t seed, uint64_t what, uint32_t bound)
{
    struct rng r = {.state = seed ^ (what * 0x9e3779b97f4a7c15u)};
    (void)rng_next(&r);
    return (uint32_t)rng_below(&r, bound);
}

uint32_t sim_slice_cycles(const struct sim_machine *m, uint64_t va)
{
    return sim_fixed(m->desc.seed, va / PROBE_LINE_BYTES, m->desc.spread_cycles + 1);
}

uint32_t sim_side_cycles(const struct sim_machine *m, uint32_t sm, uint64_t va)
{
    const struct sim_desc *d = &m->desc;

    if (d->side_granule_bytes == 0)
        return 0;
    return sim_fixed(d->seed, va / d->side_granule_bytes, 2) == d->side_of_sm[sm] ? 0
                                                                                  : d->far_cycles;
}

static uint32_t extra_cycles(const struct sim_machine *m, uint32_t sm, uint64_t va)
{
    return sim_slice_cycles(m, va) + sim_side_cycles(m, sm, va);
}

void sim_sides_run(struct sim_machine *m, const struct probe_spec *spec, uint64_t va,
                   uint32_t *values)
{
    for (uint32_t lap = 0; lap < spec->warm_laps + spec->repeats; lap++) {
        for (uint32_t k = 0; k < spec->samples; k++) {
            for (uint32_t i = 0; i < spec->sm_count; i++) {
                const uint64_t first = (uint64_t)i * spec->samples / spec->sm_count;
                const uint64_t page = (first + k) % spec->samples;
                const uint64_t at = va + page * spec->stride_bytes;
                const uint32_t sm =
                    probe_sm_position(m->desc.sm_ids, m->desc.sm_count, spec->sms[i]);
                if (lap < spec->warm_laps)
                    sim_machine_load(m, sm, at);
                else
                    values[(size_t)i * spec->samples + page] =
                        sim_machine_timed_load(m, sm, at) + extra_cycles(m, sm, at);
            }
        }
        if (lap >= spec->warm_laps)
            values += (size_t)spec->sm_count * spec->samples;
    }
}
