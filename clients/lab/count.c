/* count.c: how often random reads miss. The SMs take turns, so each instance of a level sees its
 * own in the order of a grid that starts together.
 */
#include "base/rng.h"
#include "clients/lab/lab.h"
#include "gpu/probe.h"
#include "gpu/sim/sim_mmu.h"

enum {
    BATCH_LOADS = 1024,
    WARM_TIMES = 8,         /* entries of each instance: all but e^-8 of what fits is then there */
    COUNTED_LOADS = 1 << 20 /* a share of 0.1 is then right to 0.3 % of it */
};

static const uint64_t SPLITMIX_STEP = 0x9e3779b97f4a7c15u;

struct counter {
    const struct sim_desc *machine;
    const struct lab_reads *reads;
    struct sim_mmu *mmu;
    struct rng rng;
    uint32_t next_sm;
    uint64_t walked, scattered;
};

static bool is_scattered(const struct lab_reads *reads, uint64_t va)
{
    struct rng of_frame;
    if (!(reads->scattered_share > 0))
        return false;
    of_frame.state = reads->seed + SPLITMIX_STEP * (va / reads->frame_bytes);
    return rng_unit(&of_frame) < reads->scattered_share;
}

static void count_batch(struct counter *c)
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

enum status lab_count_reads(const struct sim_desc *machine, const struct lab_reads *reads,
                            struct lab_misses *out, struct err *err)
{
    struct counter c = {.machine = machine, .reads = reads, .rng = {reads->seed}};
    struct sim_desc wide = *machine;
    wide.range_bytes = reads->region_bytes;
    c.mmu = sim_mmu_new(&wide);
    if (!c.mmu)
        return err_set(err, STATUS_NO_MEMORY, "no memory for the simulated TLBs");
    for (uint64_t at = 0; at < warm_loads(machine); at += BATCH_LOADS)
        count_batch(&c);
    c.walked = 0;
    c.scattered = 0;
    for (uint32_t at = 0; at < COUNTED_LOADS; at += BATCH_LOADS)
        count_batch(&c);
    *out =
        (struct lab_misses){(double)c.walked / COUNTED_LOADS, (double)c.scattered / COUNTED_LOADS};
    sim_mmu_free(c.mmu);
    return STATUS_OK;
}
