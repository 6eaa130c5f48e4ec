/* sim_working_set_read.c: runs WORKING_SET_READ on the model of a GPU. It computes the part of a
 * set that stays in each cache, and the throughput that follows.
 *
 * Random accesses of a set of W bytes hit a cache that keeps C of these bytes C / W of the time.
 * Caches and memory work at the same time, so the slowest of them determines the throughput:
 *
 *     ns a byte = max(1 / L1, missed in L1 / L2, missed in both / memory)
 *
 * If SMs of both sides of an L2 read a line, each side keeps a copy. So all of a set that every SM
 * reads (same) is copied. If each SM reads a part alone (own), half of the granules are copied,
 * because they are far. For example, random reads of 512 bytes over 96 MiB reach 6.4 TB/s on an
 * H200 with an L2 of 60 MiB. Near reads reach 9.2 TB/s.
 */
#include "gpu/sim/sim_parts.h"

#include <math.h>

static double missed(double kept_bytes, double set_bytes)
{
    return kept_bytes >= set_bytes ? 0 : 1 - kept_bytes / set_bytes;
}

/* Returns the throughput of all SMs in GB/s. */
static double gbps_of(const struct sim_desc *d, const struct probe_spec *spec, uint64_t set_bytes)
{
    static const double copies[SET_READ_COUNT] = {
        [SET_READ_SAME] = 2, [SET_READ_OWN] = 1.5, [SET_READ_NEAR] = 1};
    const double set = (double)set_bytes;
    const double of_sm = spec->set_read == SET_READ_OWN ? set / d->sm_count : set;
    const double kept =
        (double)d->data_l2_bytes /
        (d->side_granule_bytes > 0 ? copies[spec->set_read] : copies[SET_READ_NEAR]);
    const double beyond_l1 = missed((double)d->data_l1_bytes, of_sm);
    const double beyond_l2 = beyond_l1 * missed(kept, set);
    double ns = beyond_l2 / d->plateau_gbps;

    if (d->data_l2_gbps > 0)
        ns = fmax(ns, beyond_l1 / d->data_l2_gbps);
    if (d->data_l1_gbps > 0)
        ns = fmax(ns, 1 / d->data_l1_gbps);
    return ns > 0 ? 1 / ns : d->plateau_gbps;
}

void sim_working_set_read_run(struct sim_machine *m, const struct probe_spec *spec,
                              uint32_t *values)
{
    const struct sim_desc *d = &m->desc;

    m->rng.state ^= (uint64_t)spec->seed << 32;
    for (uint32_t k = 0; k < spec->point_count * spec->repeats; k++) {
        const double gbps = gbps_of(d, spec, spec->points[k / spec->repeats]);
        const double ns = spec->duration_us * 1e3;

        *values++ = (uint32_t)ns;
        for (uint32_t i = 0; i < d->sm_count; i++) {
            const double noise = 1 + d->read_noise * sim_gauss(&m->rng);
            const double accesses = gbps / d->sm_count * ns / probe_access_bytes(spec) * noise;
            *values++ = accesses > 0 ? (uint32_t)lround(accesses) : 0;
        }
    }
}
