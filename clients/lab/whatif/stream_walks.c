/* stream_walks.c: see stream_walks.h. */
#include "clients/lab/whatif/stream_walks.h"

#include "gpu/sim/sim_mmu.h"

#include <stdlib.h>

enum { BATCH_LOADS = 4096 };

struct batch {
    struct sim_mmu *mmu;
    uint32_t level_count, count;
    uint64_t walks;
    struct sim_load loads[BATCH_LOADS];
    uint8_t missed[BATCH_LOADS];
};

static void count_batch(struct batch *b)
{
    sim_mmu_count(b->mmu, b->loads, b->count, b->missed);
    for (uint32_t i = 0; i < b->count; i++)
        b->walks += b->missed[i] == b->level_count;
    b->count = 0;
}

static uint64_t count_part(struct batch *b, const struct stream *s, size_t from, size_t to)
{
    b->walks = 0;
    for (size_t i = from; i < to; i++) {
        if (s->classes[i] & STREAM_SHARED)
            continue;
        b->loads[b->count++] = (struct sim_load){stream_address(s, i), s->sms[i]};
        if (b->count == BATCH_LOADS)
            count_batch(b);
    }
    count_batch(b);
    return b->walks;
}

static enum status run_part(struct batch *b, const struct stream *s, const struct sim_desc *machine,
                            const struct miss_queue *queue, const size_t part[2], uint64_t *walks,
                            struct err *err)
{
    if (queue)
        return miss_queue_count(queue, machine, b->mmu, s, part[0], part[1], walks, err);
    *walks = count_part(b, s, part[0], part[1]);
    return STATUS_OK;
}

enum status stream_walks_count(const struct stream *s, const struct sim_desc *machine,
                               const struct miss_queue *queue, bool cold, const size_t *ends,
                               uint32_t parts, uint64_t *walks, struct err *err)
{
    struct batch *b = calloc(1, sizeof *b);
    struct sim_desc *wide = malloc(sizeof *wide);
    enum status status = STATUS_OK;
    if (b && wide) {
        *wide = *machine;
        wide->range_bytes = s->range_bytes;
        b->level_count = machine->level_count;
        b->mmu = sim_mmu_new(wide);
    }
    if (!b || !b->mmu)
        status =
            err_set(err, STATUS_NO_MEMORY, "cannot allocate the simulated TLBs: out of memory");
    for (uint32_t i = 0; b && status == STATUS_OK && i < parts; i++) {
        const size_t part[2] = {i > 0 ? ends[i - 1] : 0, ends[i]};
        if (!cold)
            status = run_part(b, s, machine, queue, part, &walks[i], err);
        if (status == STATUS_OK)
            status = run_part(b, s, machine, queue, part, &walks[i], err);
    }
    if (b)
        sim_mmu_free(b->mmu);
    free(wide);
    free(b);
    return status;
}
