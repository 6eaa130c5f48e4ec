/* sim_mmu.c: levels of TLBs one behind the other. The result of a level depends only on the loads
 * that reach it and on their order. So groups of loads are counted level by level: all of them
 * touch the first level, then the loads that missed touch the second. Each load has the same result
 * as if the loads were run one by one. A level's loop is short and has no branch that depends on
 * hit or miss. */
#include "gpu/sim/sim_mmu.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

/* Loads of one pass. The indices of these loads fit into the first-level data cache of the
 * processor. */
enum { PASS_LOADS = 1024 };

struct sim_mmu {
    uint32_t level_count;
    uint64_t range_end;
    uint32_t cycles[SIM_MAX_LEVELS + 1];
    uint64_t entry_bytes[SIM_MAX_LEVELS];
    struct sim_tlb *levels[SIM_MAX_LEVELS]; /* owned */
};

uint32_t sim_mmu_access(struct sim_mmu *mmu, uint32_t sm, uint64_t va)
{
    REACH_ASSERT(va < mmu->range_end);
    for (uint32_t i = 0; i < mmu->level_count; i++) {
        if (sim_tlb_touch(mmu->levels[i], sm, va))
            return i;
    }
    return mmu->level_count;
}

static void count_part(struct sim_mmu *mmu, const struct sim_load *loads, uint32_t count,
                       uint8_t *out_missed)
{
    uint32_t which[PASS_LOADS];
    for (uint32_t i = 0; i < count; i++) {
        REACH_ASSERT(loads[i].va < mmu->range_end);
        which[i] = i;
    }
    memset(out_missed, 0, count);
    for (uint32_t level = 0; level < mmu->level_count && count > 0; level++) {
        count = sim_tlb_pass(mmu->levels[level], loads, which, count);
        for (uint32_t i = 0; i < count; i++)
            out_missed[which[i]]++;
    }
}

void sim_mmu_count(struct sim_mmu *mmu, const struct sim_load *loads, size_t count,
                   uint8_t *out_missed)
{
    for (size_t at = 0; at < count; at += PASS_LOADS) {
        const size_t left = count - at;
        count_part(mmu, loads + at, (uint32_t)(left < PASS_LOADS ? left : PASS_LOADS),
                   out_missed + at);
    }
}

uint32_t sim_mmu_cycles(const struct sim_mmu *mmu, uint32_t missed)
{
    REACH_ASSERT(missed <= mmu->level_count);
    return mmu->cycles[missed];
}

struct sim_mmu *sim_mmu_new(const struct sim_desc *desc)
{
    struct sim_mmu *mmu = calloc(1, sizeof *mmu);
    if (!mmu)
        return NULL;
    mmu->level_count = desc->level_count;
    mmu->range_end = sim_desc_range(desc);
    mmu->cycles[0] = desc->latency_cycles;
    for (uint32_t i = 0; i < desc->level_count; i++) {
        mmu->cycles[i + 1] = mmu->cycles[i] + desc->levels[i].miss_cycles;
        mmu->entry_bytes[i] = desc->levels[i].entry_bytes;
        mmu->levels[i] = sim_tlb_new(&desc->levels[i], desc->seed + i + 1);
        if (!mmu->levels[i]) {
            sim_mmu_free(mmu);
            return NULL;
        }
    }
    return mmu;
}

void sim_mmu_free(struct sim_mmu *take)
{
    if (!take)
        return;
    for (uint32_t i = 0; i < take->level_count; i++)
        sim_tlb_free(take->levels[i]);
    free(take);
}

void sim_mmu_flush(struct sim_mmu *mmu)
{
    for (uint32_t i = 0; i < mmu->level_count; i++)
        sim_tlb_flush(mmu->levels[i]);
}

void sim_mmu_evict(struct sim_mmu *mmu, uint32_t sms, uint32_t pages, uint32_t level,
                   uint64_t where)
{
    for (uint32_t i = 0; i < mmu->level_count; i++) {
        const uint64_t stride = mmu->entry_bytes[i];
        const uint64_t first = (mmu->range_end / stride + 1 + where % SIM_MAX_ENTRIES) * stride;
        for (uint32_t page = 0; (level == 0 || level == i + 1) && page < pages; page++) {
            for (uint32_t sm = 0; sm < sms; sm++)
                (void)sim_tlb_touch(mmu->levels[i], sm, first + page * stride);
        }
    }
}
