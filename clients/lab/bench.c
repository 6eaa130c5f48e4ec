/* bench.c: how fast the counting engine is. Reads at random over all memory of an H200, so nearly
 * every one misses the first level and half of them the second. Only counting is timed, by the
 * processor time of this thread; the reads are made before.
 */
#include "base/rng.h"
#include "clients/lab/lab.h"
#include "gpu/probe.h"
#include "gpu/sim/sim_mmu.h"
#include "gpu/sim/sim_profiles.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LOADS = 1 << 20, ROUNDS = 16 };

static double seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* The SMs in turn, or group after group: the loads of one instance of the last level together. */
static void fill(struct sim_load *loads, const struct sim_desc *d, bool by_group, struct rng *rng)
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

static void measure(struct sim_mmu *mmu, const struct sim_desc *d, bool by_group,
                    struct sim_load *loads, uint8_t *missed)
{
    struct rng rng = {1};
    double spent = 0;
    uint64_t misses[2] = {0};
    for (uint32_t round = 0; round < ROUNDS; round++) {
        fill(loads, d, by_group, &rng);
        const double start = seconds();
        sim_mmu_count(mmu, loads, LOADS, missed);
        spent += seconds() - start;
        for (uint32_t i = 0; i < LOADS; i++) {
            misses[0] += missed[i] > 0;
            misses[1] += missed[i] > 1;
        }
    }
    const double all = (double)LOADS * ROUNDS;
    printf("count, %-19s %6.1f M accesses/s  %5.1f %% miss level 1, %4.1f %% level 2\n",
           by_group ? "group after group" : "SMs in turn", all / spent * 1e-6,
           100 * (double)misses[0] / all, 100 * (double)misses[1] / all);
}

int lab_bench(void)
{
    struct err err = {0};
    struct sim_desc d;
    struct sim_load *loads = malloc(LOADS * sizeof *loads);
    uint8_t *missed = malloc(LOADS);
    struct sim_mmu *mmu = NULL;
    int result = LAB_ERROR;

    if (sim_profiles_parse("h200", &d, &err) != STATUS_OK) {
        (void)fprintf(stderr, "reach-lab: %s\n", err.text);
        goto out;
    }
    mmu = sim_mmu_new(&d);
    if (!loads || !missed || !mmu) {
        (void)fprintf(stderr, "reach-lab: no memory for the benchmark\n");
        goto out;
    }
    measure(mmu, &d, false, loads, missed);
    measure(mmu, &d, true, loads, missed);
    result = lab_bench_timed();
out:
    sim_mmu_free(mmu);
    free(missed);
    free(loads);
    return result;
}
