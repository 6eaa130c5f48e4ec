/* sim_machine.c: runs one load of a simulated GPU, with its translation, its noise, and the effects
 * of other processes. */
#include "gpu/sim/sim_machine.h"

#include "gpu/sim/sim_parts.h"
#include "kernels/abi.h"

#include <math.h>
#include <stdlib.h>

enum { GAUSS_PAIRS = 6 };

double sim_gauss(struct rng *rng)
{
    /* The sum of twelve uniform numbers has variance 1; tails beyond 6 do not matter. */
    double sum = 0;
    for (int i = 0; i < GAUSS_PAIRS; i++) {
        uint64_t bits = rng_next(rng);
        sum += (double)(uint32_t)bits * 0x1p-32 + (double)(uint32_t)(bits >> 32) * 0x1p-32;
    }
    return sum - GAUSS_PAIRS;
}

/* Returns the number of loads until the neighbor's next turn. */
static uint32_t next_turn(struct sim_machine *m)
{
    return 1 + (uint32_t)rng_below(&m->others, (uint64_t)m->desc.neighbor_loads * 2 + 1);
}

struct sim_machine *sim_machine_new(const struct sim_desc *desc)
{
    struct sim_machine *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->desc = *desc;
    m->mmu = sim_mmu_new(desc);
    if (!m->mmu) {
        free(m);
        return NULL;
    }
    m->rng.state = desc->seed;
    for (uint32_t i = 0; i < desc->sm_count; i++)
        m->far_cycles[i] = (uint32_t)rng_below(&m->rng, (uint64_t)desc->spread_cycles + 1);
    m->others.state = desc->seed + 1;
    m->loads_to_turn = next_turn(m);
    m->loads_to_reclock = desc->reclock_loads;
    m->clock = 1;
    return m;
}

void sim_machine_free(struct sim_machine *take)
{
    if (!take)
        return;
    sim_mmu_free(take->mmu);
    free(take);
}

double sim_machine_clock_factor(const struct sim_machine *m)
{
    return m->clock;
}

double sim_machine_load_factor(const struct sim_machine *m)
{
    return m->desc.coupled + (1 - m->desc.coupled) * m->clock;
}

uint32_t sim_machine_interruptions(const struct sim_machine *m)
{
    return m->interruptions;
}

static void count_pending(struct sim_machine *m)
{
    uint8_t missed[SIM_PENDING_LOADS];
    sim_mmu_count(m->mmu, m->pending, m->pending_count, missed);
    m->pending_count = 0;
}

void sim_machine_overlap(struct sim_machine *m, uint32_t loads)
{
    m->side_by_side = loads;
    m->sides = 0;
}

/* Takes the neighbor's turn: its pages replace all translations, or some of them. */
static void evict(struct sim_machine *m)
{
    if (m->desc.neighbor_pages == 0)
        sim_mmu_flush(m->mmu);
    else
        sim_mmu_evict(m->mmu, m->desc.sm_count, m->desc.neighbor_pages, m->desc.neighbor_level,
                      rng_next(&m->others));
}

/* Applies the effects of other processes on the GPU. */
static uint32_t let_others(struct sim_machine *m)
{
    if (m->desc.reclock_loads > 0 && --m->loads_to_reclock == 0) {
        m->clock = 1 + (m->desc.reclock_factor - 1) * rng_unit(&m->others);
        m->loads_to_reclock = m->desc.reclock_loads;
    }
    if (m->desc.neighbor_loads == 0 || ++m->sides < m->side_by_side)
        return 0;
    m->sides = 0;
    if (--m->loads_to_turn > 0)
        return 0;
    m->loads_to_turn = next_turn(m);
    m->turns += 1;
    m->away += m->desc.neighbor_cycles > REACH_AWAY_CYCLES;
    count_pending(m);
    evict(m);
    return m->desc.neighbor_cycles;
}

uint32_t sim_machine_access(struct sim_machine *m, uint32_t sm, uint64_t va, uint32_t *away_cycles)
{
    const uint32_t away = let_others(m);
    if (away_cycles)
        *away_cycles = away;
    count_pending(m);
    return sim_mmu_access(m->mmu, sm, va);
}

void sim_machine_load(struct sim_machine *m, uint32_t sm, uint64_t va)
{
    (void)let_others(m);
    m->pending[m->pending_count++] = (struct sim_load){va, sm};
    if (m->pending_count == SIM_PENDING_LOADS)
        count_pending(m);
}

void sim_machine_count(struct sim_machine *m, const struct sim_load *loads, uint32_t count,
                       uint8_t *out_missed)
{
    if (m->desc.neighbor_loads == 0 && m->desc.reclock_loads == 0) {
        count_pending(m);
        sim_mmu_count(m->mmu, loads, count, out_missed);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        out_missed[i] = (uint8_t)sim_machine_access(m, loads[i].sm, loads[i].va, NULL);
}

uint32_t sim_machine_timed_load(struct sim_machine *m, uint32_t sm, uint64_t va)
{
    uint32_t away = 0;
    uint32_t missed = sim_machine_access(m, sm, va, &away);
    return sim_machine_noisy(m, (double)sim_mmu_cycles(m->mmu, missed) + m->far_cycles[sm], away);
}

double sim_machine_scatter(struct sim_machine *m, double cycles)
{
    const struct sim_desc *d = &m->desc;
    if (d->noise == SIM_NOISE_GAUSS)
        cycles += d->noise_cycles * sim_gauss(&m->rng);
    else if (d->noise == SIM_NOISE_UNIFORM)
        cycles += d->noise_cycles * (2 * rng_unit(&m->rng) - 1);
    if (d->outlier_share > 0 && rng_unit(&m->rng) < d->outlier_share)
        cycles += d->outlier_cycles * rng_unit(&m->rng);
    return cycles;
}

uint32_t sim_machine_noisy(struct sim_machine *m, double cycles, uint32_t away)
{
    cycles = sim_machine_scatter(m, cycles) * sim_machine_load_factor(m) + away;
    return cycles < 1 ? 1 : (uint32_t)lround(cycles);
}
