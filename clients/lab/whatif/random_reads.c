/* random_reads.c: see random_reads.h. The SMs take turns, like the SMs of a grid whose blocks start
 * together.
 */
#include "clients/lab/whatif/random_reads.h"

#include "base/rng.h"
#include "gpu/probe.h"
#include "gpu/sim/sim_mmu.h"

enum {
    BATCH_LOADS = 1024,
    WARM_TIMES = 8,         /* reads per entry, which leave e^-8 of the entries empty */
    COUNTED_LOADS = 1 << 20 /* gives a standard error of 0.3 % for a share of 0.1 */
};

static const uint64_t SPLITMIX_STEP = 0x9e3779b97f4a7c15u;

struct reads_counter {
    const struct sim_desc *machine;
    const struct random_reads *reads;
    struct sim_mmu *mmu;
    struct rng rng;
    uint32_t next_sm;
    uint64_t walked, scattered;
};

static bool is_scattered(const struct random_reads *reads, uint64_t va)
{
    struct rng of_frame;
    if (!(reads->scattered_share > 0))
        return false;
    of_frame.state = reads->seed + SPLITMIX_STEP * (va / reads->frame_bytes);
    return rng_unit(&of_frame) < reads->scattered_share;
}

static void count_batch(struct reads_counter *c)
{
    struct sim_load loads[BATCH_LOADS];
    uint8_t missed[BATCH_LOADS];
    for (uint32_t i = 0; i < BATCH_LOADS; i++) {
        const uint64_t line = rng_below(&c->rng, c->reads->region_bytes / PROBE_LINE_BYTES);
        loads[i] = (struct sim_load){line * PROBE_LINE_BYTES, c->next_sm};
        c->next_sm = c->next_sm + 1 == c->machine->sm_count ? 0 : c->next_sm + 1;
    }
    sim_mmu_count(c->mmu, loads, BATCH_LOADS, missed);
    for (uint32_t i = 0; i < BATCH_LOADS; i++) {
        if (missed[i] < c->machine->level_count)
            continue;
        c->walked++;
        c->scattered += is_scattered(c->reads, loads[i].va);
    }
}

static uint64_t warm_loads(const struct sim_desc *machine)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < machine->level_count; i++) {
        const struct sim_level *l = &machine->levels[i];
        const uint64_t loads = (uint64_t)WARM_TIMES * l->entries * l->instance_count;
        most = loads > most ? loads : most;
    }
    return most;
}

enum status random_reads_count(const struct sim_desc *machine, const struct random_reads *reads,
                               struct random_reads_misses *out, struct err *err)
{
    struct reads_counter c = {.machine = machine, .reads = reads, .rng = {reads->seed}};
    struct sim_desc wide = *machine;
    wide.range_bytes = reads->region_bytes;
    c.mmu = sim_mmu_new(&wide);
    if (!c.mmu)
        return err_set(err, STATUS_NO_MEMORY, "cannot allocate the simulated TLBs: out of memory");
    for (uint64_t at = 0; at < warm_loads(machine); at += BATCH_LOADS)
        count_batch(&c);
    c.walked = 0;
    c.scattered = 0;
    for (uint32_t at = 0; at < COUNTED_LOADS; at += BATCH_LOADS)
        count_batch(&c);
    *out = (struct random_reads_misses){(double)c.walked / COUNTED_LOADS,
                                        (double)c.scattered / COUNTED_LOADS};
    sim_mmu_free(c.mmu);
    return STATUS_OK;
}

enum status random_reads_share(const struct sim_desc *machine, const struct random_reads *reads,
                               double *walked, struct err *err)
{
    struct random_reads_misses m = {.walked = *walked};
    const enum status s = *walked > 0 ? STATUS_OK : random_reads_count(machine, reads, &m, err);
    if (s == STATUS_OK)
        *walked = m.walked;
    return s;
}
