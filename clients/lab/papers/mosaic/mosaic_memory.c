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

#ifdef __SSE2__
#include <emmintrin.h>
#endif

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

/* The ways of each set, the youngest first. */
struct tags {
    uint32_t *line;  /* line + 1, or 0 if the way is empty */
    uint32_t *ready; /* cycle of the line's arrival; runs are shorter than 2^32 cycles */
};

struct mosaic_memory {
    struct tags l1, l2; /* owned */
    uint64_t l2_free[L2_BANKS];
    uint32_t open_row[MOSAIC_CHANNELS][BANKS];
    uint64_t bus_free[MOSAIC_CHANNELS]; /* in sixteenths */
};

static bool new_tags(struct tags *t, size_t count)
{
    t->line = calloc(count, sizeof *t->line);
    t->ready = calloc(count, sizeof *t->ready);
    return t->line && t->ready;
}

static void free_tags(struct tags *t)
{
    free(t->ready);
    free(t->line);
}

struct mosaic_memory *mosaic_memory_new(uint32_t cores)
{
    struct mosaic_memory *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    const bool l1 = new_tags(&m->l1, (size_t)cores * L1_SETS * L1_WAYS);
    const bool l2 = new_tags(&m->l2, (size_t)L2_SETS * L2_WAYS);
    if (!l1 || !l2) {
        mosaic_memory_free(m);
        return NULL;
    }
    return m;
}

void mosaic_memory_free(struct mosaic_memory *take)
{
    if (!take)
        return;
    free_tags(&take->l1);
    free_tags(&take->l2);
    free(take);
}

static uint32_t hash_line(uint32_t line)
{
    line ^= line >> 15;
    line *= 0x85ebca6bu;
    return line ^ line >> 13;
}

/* Makes a line the youngest of its set. Returns whether it was present or already requested;
 * ready[0] is then the cycle of its arrival. `ways` is a multiple of 4. */
static bool touch_line(uint32_t *line, uint32_t *ready, uint32_t ways, uint32_t tag)
{
#ifdef __SSE2__
    static const uint32_t behind[4][4] = {{0, ~0u, ~0u, ~0u}, {0, 0, ~0u, ~0u}, {0, 0, 0, ~0u}};
    const __m128i wanted = _mm_set1_epi32((int)tag);
    __m128i line_before = _mm_cvtsi32_si128((int)tag);
    __m128i ready_before = _mm_setzero_si128();
    for (uint32_t i = 0; i < ways; i += 4) {
        const __m128i lines = _mm_loadu_si128((const void *)(line + i));
        const __m128i times = _mm_loadu_si128((const void *)(ready + i));
        const __m128i equal = _mm_cmpeq_epi32(lines, wanted);
        const uint32_t found = (uint32_t)_mm_movemask_ps(_mm_castsi128_ps(equal));
        __m128i lines_now = _mm_or_si128(_mm_slli_si128(lines, 4), line_before);
        __m128i times_now = _mm_or_si128(_mm_slli_si128(times, 4), ready_before);
        if (found != 0) {
            const uint32_t at = (uint32_t)__builtin_ctz(found);
            const uint32_t arrives = ready[i + at];
            const __m128i stay = _mm_loadu_si128((const void *)behind[at]);
            lines_now = _mm_or_si128(_mm_and_si128(stay, lines), _mm_andnot_si128(stay, lines_now));
            times_now = _mm_or_si128(_mm_and_si128(stay, times), _mm_andnot_si128(stay, times_now));
            _mm_storeu_si128((void *)(line + i), lines_now);
            _mm_storeu_si128((void *)(ready + i), times_now);
            ready[0] = arrives;
            return true;
        }
        _mm_storeu_si128((void *)(line + i), lines_now);
        _mm_storeu_si128((void *)(ready + i), times_now);
        line_before = _mm_srli_si128(lines, 12);
        ready_before = _mm_srli_si128(times, 12);
    }
    return false;
#else
    uint32_t at = 0;
    while (at < ways - 1 && line[at] != tag)
        at++;
    const bool hit = line[at] == tag;
    const uint32_t arrives = ready[at];
    for (; at > 0; at--) {
        line[at] = line[at - 1];
        ready[at] = ready[at - 1];
    }
    line[0] = tag;
    ready[0] = arrives;
    return hit;
#endif
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
    const size_t set = (size_t)(hash_line(line) % L2_SETS) * L2_WAYS;
    uint64_t *free_at = &m->l2_free[line / 2 % MOSAIC_CHANNELS * 2 + line % 2];
    const uint64_t start = max(now + QUEUE_CYCLES, *free_at);
    *free_at = start + 1;
    if (touch_line(m->l2.line + set, m->l2.ready + set, L2_WAYS, line + 1))
        return max(start + L2_CYCLES, m->l2.ready[set]);
    const uint64_t at = read_dram(m, line, start + L2_CYCLES);
    m->l2.ready[set] = (uint32_t)at;
    return at;
}

uint64_t mosaic_memory_read(struct mosaic_memory *m, uint32_t core, uint32_t line, uint64_t now)
{
    const size_t set = ((size_t)core * L1_SETS + hash_line(line) % L1_SETS) * L1_WAYS;
    if (touch_line(m->l1.line + set, m->l1.ready + set, L1_WAYS, line + 1))
        return max(now + L1_CYCLES, m->l1.ready[set]);
    const uint64_t at =
        mosaic_memory_walk(m, line, now + L1_CYCLES + CROSSBAR_CYCLES) + CROSSBAR_CYCLES;
    m->l1.ready[set] = (uint32_t)at;
    return at;
}
