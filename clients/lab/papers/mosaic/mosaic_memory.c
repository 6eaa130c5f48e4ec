/* mosaic_memory.c: see mosaic_memory.h. Each core has an L1 of 16 KB. The L2 has 2 MB in 6
 * partitions of 2 banks, and DRAM has 6 channels of 8 banks. The paper gives the sizes, ways and
 * cycles of both caches.
 *
 * The released simulator gives the other numbers. The queue of a partition takes 85 cycles before
 * its L2 and 30 before DRAM. GDDR5 takes 12 memory clocks to precharge, to open and to read, and
 * transfers 4 bytes four times per clock. The cycles of the crossbar are chosen. The queue is long
 * and serves ready requests first, so rows cost latency, but no bandwidth. */
#include "clients/lab/papers/mosaic/mosaic_memory.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    L1_WAYS = 4,
    L1_SETS = 16 * 1024 / MOSAIC_LINE_BYTES / L1_WAYS,
    L1_CYCLES = 1,
    L2_WAYS = 16,
    L2_SETS = 2 * 1024 * 1024 / MOSAIC_LINE_BYTES / L2_WAYS,
    L2_BANKS = 2 * MOSAIC_CHANNELS,
    L2_CYCLES = 10,
    QUEUE_CYCLES = 85,
    CROSSBAR_CYCLES = 10, /* one way */
    BANKS = 8,
    ROW_LINES = 2048 / MOSAIC_LINE_BYTES,
    DRAM_CYCLES = 30,
    ROW_HIT_CYCLES = 7,   /* 12 clocks of 1674 MHz in cycles of 1020 MHz */
    ROW_MISS_CYCLES = 22, /* 36 */
    SIXTEENTHS = 16,
    BUS_SIXTEENTHS = 78 /* 128 bytes at 4 x 4 x 1674 MHz in sixteenths of a cycle */
};

/* The ways of a set, the youngest first. */
struct set {
    uint32_t line[L2_WAYS];  /* line + 1, or 0 if the way is empty */
    uint32_t ready[L2_WAYS]; /* cycle of the line's arrival; runs are shorter than 2^32 cycles */
};

struct mosaic_memory {
    uint64_t l2_free[L2_BANKS];
    uint32_t open_row[MOSAIC_CHANNELS][BANKS];
    uint64_t bus_free[MOSAIC_CHANNELS]; /* in sixteenths */
    struct set l2[L2_SETS];
    struct l1_set {
        uint32_t line[L1_WAYS], ready[L1_WAYS];
    } l1[][L1_SETS]; /* of each core */
};

struct mosaic_memory *mosaic_memory_new(uint32_t cores)
{
    const struct mosaic_memory *m;
    return calloc(1, sizeof *m + cores * sizeof m->l1[0]);
}

void mosaic_memory_free(struct mosaic_memory *take)
{
    free(take);
}

static uint32_t hash_line(uint32_t line)
{
    line ^= line >> 15;
    line *= 0x85ebca6bu;
    return line ^ line >> 13;
}

/* Makes a line the youngest of its set. Returns whether it was present or already requested;
 * ready[0] is then the cycle of its arrival. */
static bool touch_line(uint32_t *line, uint32_t *ready, uint32_t ways, uint32_t tag)
{
    uint32_t at = 0;
    while (at < ways - 1 && line[at] != tag)
        at++;
    const bool hit = line[at] == tag;
    const uint32_t arrives = ready[at];
    memmove(line + 1, line, at * sizeof *line);
    memmove(ready + 1, ready, at * sizeof *ready);
    line[0] = tag;
    ready[0] = arrives;
    return hit;
}

static uint64_t max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Reads a line from DRAM. Adjacent lines are in different channels, and the lines of a row are in
 * one bank. */
static uint64_t read_dram(struct mosaic_memory *m, uint32_t line, uint64_t now)
{
    const uint32_t channel = line / 2 % MOSAIC_CHANNELS;
    const uint32_t row = line / 2 / MOSAIC_CHANNELS / (ROW_LINES / 2);
    const uint32_t bank = hash_line(row) % BANKS;
    const bool open = m->open_row[channel][bank] == row + 1;
    const uint64_t data = now + (open ? ROW_HIT_CYCLES : ROW_MISS_CYCLES);
    m->open_row[channel][bank] = row + 1;
    m->bus_free[channel] = max(m->bus_free[channel], data * SIXTEENTHS) + BUS_SIXTEENTHS;
    return m->bus_free[channel] / SIXTEENTHS + DRAM_CYCLES;
}

uint64_t mosaic_memory_walk(struct mosaic_memory *m, uint32_t line, uint64_t now)
{
    struct set *set = &m->l2[hash_line(line) % L2_SETS];
    uint64_t *free_at = &m->l2_free[line / 2 % MOSAIC_CHANNELS * 2 + line % 2];
    const uint64_t start = max(now + QUEUE_CYCLES, *free_at);
    *free_at = start + 1;
    if (touch_line(set->line, set->ready, L2_WAYS, line + 1))
        return max(start + L2_CYCLES, set->ready[0]);
    const uint64_t at = read_dram(m, line, start + L2_CYCLES);
    set->ready[0] = (uint32_t)at;
    return at;
}

uint64_t mosaic_memory_read(struct mosaic_memory *m, uint32_t core, uint32_t line, uint64_t now)
{
    struct l1_set *set = &m->l1[core][hash_line(line) % L1_SETS];
    if (touch_line(set->line, set->ready, L1_WAYS, line + 1))
        return max(now + L1_CYCLES, set->ready[0]);
    const uint64_t at =
        mosaic_memory_walk(m, line, now + L1_CYCLES + CROSSBAR_CYCLES) + CROSSBAR_CYCLES;
    set->ready[0] = (uint32_t)at;
    return at;
}
