/* bench_count.c: see bench_count.h. Reads are random over all memory of an H200, so nearly all miss
 * the first level and half of them the second. The result is the processor time of counting alone.
 */
#include "clients/lab/whatif/bench_count.h"

#include "base/clock.h"
#include "base/rng.h"
#include "clients/lab/exit_status.h"
#include "gpu/probe.h"
#include "gpu/sim/sim_mmu.h"
#include "gpu/sim/sim_profiles.h"

#include <stdio.h>
#include <stdlib.h>

enum { LOADS = 1 << 20, ROUNDS = 16 };

/* Draws loads of the SMs in turn, or of one group of SMs after another. */
static void draw_loads(struct sim_load *loads, const struct sim_desc *d, bool by_group,
                       struct rng *rng)
{
    const struct sim_level *last = &d->levels[d->level_count - 1];
    const uint32_t each = LOADS / last->instance_count + 1;
    uint32_t sm = 0;
    for (uint32_t i = 0; i < LOADS; i++) {
        do {
            sm = sm + 1 == d->sm_count ? 0 : sm + 1;
        } while (by_group && last->instance_of_sm[sm] != i / each);
        loads[i] = (struct sim_load){
            rng_below(rng, d->memory_bytes / PROBE_LINE_BYTES) * PROBE_LINE_BYTES, sm};
    }
}

static void time_counting(struct sim_mmu *mmu, const struct sim_desc *d, bool by_group,
                          struct sim_load *loads, uint8_t *missed)
{
    struct rng rng = {1};
    nsec_t spent = 0;
    uint64_t misses[2] = {0};
    for (uint32_t round = 0; round < ROUNDS; round++) {
        draw_loads(loads, d, by_group, &rng);
        const nsec_t start = clock_thread();
        sim_mmu_count(mmu, loads, LOADS, missed);
        spent += clock_thread() - start;
        for (uint32_t i = 0; i < LOADS; i++) {
            misses[0] += missed[i] > 0;
            misses[1] += missed[i] > 1;
        }
    }
    const double all = (double)LOADS * ROUNDS;
    printf("count, %-19s %6.1f M accesses/s  %5.1f %% miss level 1, %4.1f %% level 2\n",
           by_group ? "group after group" : "SMs in turn", all / (double)spent * 1e3,
           100 * (double)misses[0] / all, 100 * (double)misses[1] / all);
}

int bench_count(void)
{
    struct err err = {0};
    struct sim_desc d;
    struct sim_load *loads = malloc(LOADS * sizeof *loads);
    uint8_t *missed = malloc(LOADS);
    struct sim_mmu *mmu = NULL;
    int result = LAB_ERROR;

    if (sim_profiles_parse("h200", &d, &err) != STATUS_OK) {
        (void)fprintf(stderr, "reach-lab bench: %s\n", err.text);
        goto out;
    }
    mmu = sim_mmu_new(&d);
    if (!loads || !missed || !mmu) {
        (void)fprintf(stderr, "reach-lab bench: cannot allocate the benchmark: out of memory\n");
        goto out;
    }
    time_counting(mmu, &d, false, loads, missed);
    time_counting(mmu, &d, true, loads, missed);
    result = LAB_OK;
out:
    sim_mmu_free(mmu);
    free(missed);
    free(loads);
    return result;
}
