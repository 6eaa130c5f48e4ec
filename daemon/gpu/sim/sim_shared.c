/* sim_shared.c: SHARED and PEER on the model of a GPU: shared memory and clusters.
 *
 * In shared memory, consecutive words of bank_bytes lie in consecutive banks, and one pass serves
 * one word of each bank. If all lanes together need more than one pass can give, they are served in
 * parts. For example, 32 banks of 4 bytes serve a load of 8 bytes for each lane in two halves of
 * the warp. A part takes one pass for each word that it needs from its busiest bank. A load alone
 * takes latency_cycles, and conflict_cycles more for each pass after the first; loads in flight
 * together take turns at bytes_per_cycle.
 *
 * In each launch, every GPC gives its SMs to clusters in another order, two by two with neighboring
 * ids. The rest of a GPC stays idle.
 */
#include "gpu/sim/sim_parts.h"
#include "gpu/sim/sim_text.h"

#include <math.h>
#include <string.h>

enum { WARP = 32 };

/* ---- SHARED ---- */

/* Returns the largest number of different words of one bank that lanes first..first + lanes - 1
 * need. */
static uint32_t most_words(const struct sim_shared *s, uint32_t first, uint32_t lanes,
                           uint32_t width, uint64_t stride)
{
    uint64_t words[WARP * SIM_MAX_BANK_BYTES];
    uint32_t per_bank[SIM_MAX_BANKS] = {0};
    uint32_t count = 0;
    uint32_t most = 0;

    for (uint32_t lane = first; lane < first + lanes; lane++) {
        const uint64_t from = lane * stride / s->bank_bytes;
        const uint64_t last = (lane * stride + width - 1) / s->bank_bytes;
        for (uint64_t word = from; word <= last; word++) {
            uint32_t k = 0;
            while (k < count && words[k] != word)
                k++;
            if (k < count)
                continue;
            words[count++] = word;
            const uint32_t here = ++per_bank[word % s->banks];
            most = here > most ? here : most;
        }
    }
    return most;
}

/* Returns the number of passes of one load of a warp. */
static uint32_t passes(const struct sim_shared *s, uint32_t width, uint64_t stride)
{
    const uint32_t at_once = s->banks * s->bank_bytes / width;
    const uint32_t lanes = at_once < 1 ? 1 : at_once < WARP ? at_once : WARP;
    uint32_t sum = 0;

    for (uint32_t first = 0; first < WARP; first += lanes)
        sum += most_words(s, first, lanes < WARP - first ? lanes : WARP - first, width, stride);
    return sum;
}

static uint32_t noisy(struct sim_machine *m, double cycles)
{
    cycles = sim_machine_scatter(m, cycles);
    return cycles < 1 ? 1 : (uint32_t)lround(cycles);
}

void sim_shared_run(struct sim_machine *m, const struct probe_spec *spec, uint32_t *values)
{
    const struct sim_shared *const s = &m->desc.shared;
    const uint32_t width = spec->transaction_bytes;
    const double rounds = (double)spec->samples / spec->in_flight;
    const uint32_t least = passes(s, width, width);

    for (uint32_t i = 0; i < spec->repeats * spec->sm_count; i++) {
        for (uint32_t p = 0; p < spec->point_count; p++) {
            const uint32_t n = passes(s, width, spec->points[p]);
            const double alone = s->latency_cycles + (n - 1) * s->conflict_cycles;
            const double turns = (double)spec->warps * spec->in_flight * WARP * width * n / least /
                                 s->bytes_per_cycle;
            *values++ = noisy(m, rounds * fmax(alone, turns));
        }
    }
}

/* ---- PEER ---- */

/* Lists the SMs of one GPC by position, with the pairs in another order each time. Returns their
 * number. */
static uint32_t shuffle_gpc(struct sim_machine *m, uint16_t gpc, uint16_t *out)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < m->desc.sm_count; i++)
        if (m->desc.gpc_of_sm[i] == gpc)
            out[n++] = (uint16_t)i;
    for (uint32_t pair = n / 2; pair > 1; pair--) {
        const uint32_t other = (uint32_t)rng_below(&m->rng, pair);
        uint16_t held[2];
        memcpy(held, out + (size_t)2 * other, sizeof held);
        memcpy(out + (size_t)2 * other, out + (size_t)2 * (pair - 1), sizeof held);
        memcpy(out + (size_t)2 * (pair - 1), held, sizeof held);
    }
    return n;
}

static void fill_row(struct sim_machine *m, const struct probe_spec *spec, uint32_t cluster,
                     uint32_t rank, uint32_t *row)
{
    const struct sim_clusters *const c = &m->desc.clusters;

    row[0] = cluster;
    row[1] = rank;
    for (uint32_t k = 0; k < spec->cluster_sms; k++) {
        const uint32_t each = k == rank ? c->own_cycles : c->latency_cycles;
        row[2 + k] = noisy(m, (double)each * spec->samples);
    }
    row[2 + spec->cluster_sms] = noisy(m, PROBE_RING_BYTES / c->bytes_per_cycle);
}

void sim_peer_run(struct sim_machine *m, const struct probe_spec *spec, uint32_t *values)
{
    const uint32_t columns = probe_peer_columns(spec);
    const uint32_t gpcs = sim_sharing_count(&m->desc, m->desc.gpc_of_sm);

    for (uint32_t r = 0; r < spec->repeats; r++) {
        uint32_t cluster = 0;
        memset(values, 0, (size_t)(1 + m->desc.sm_count) * columns * sizeof *values);
        for (uint16_t g = 0; g < gpcs; g++) {
            uint16_t sms[REACH_MAX_SMS] = {0};
            const uint32_t whole = shuffle_gpc(m, g, sms) / spec->cluster_sms * spec->cluster_sms;
            for (uint32_t i = 0; i < whole; i++)
                fill_row(m, spec, cluster + 1 + i / spec->cluster_sms, i % spec->cluster_sms,
                         values + (size_t)(1 + sms[i]) * columns);
            cluster += whole / spec->cluster_sms;
        }
        values[0] = values[1] = cluster;
        values += (size_t)(1 + m->desc.sm_count) * columns;
    }
}
