/* page_tables.c: see page_tables.h. First loads are compared with all others by their ranks
 * (Mann and Whitney), because memory answers in two modes with a long tail. The tail would
 * distort means. */
#include "analysis/caches/page_tables.h"

#include "base/assert.h"
#include "base/stats.h"
#include "base/units.h"

#include <math.h>
#include <stdlib.h>

#define SURE_Z 6.0 /* least excess of a rank sum, in standard errors; hundreds are compared */
#define ALIKE  0.5
/* least excess of a first load, as a share of a load; less is a period of the memory itself */
#define LEAST_LONGER 0.03

enum { LEAST_FIRSTS = 12, LEAST_REGIONS = 8, PHASES = 16 };

struct kept {
    uint64_t at;
    uint32_t cycles;
    double rank;
};

static int by_cycles(const void *a, const void *b)
{
    const struct kept *const x = a;
    const struct kept *const y = b;

    return x->cycles != y->cycles ? (x->cycles > y->cycles) - (x->cycles < y->cycles)
                                  : (x->at > y->at) - (x->at < y->at);
}

static int by_place(const void *a, const void *b)
{
    const struct kept *const x = a;
    const struct kept *const y = b;

    return (x->at > y->at) - (x->at < y->at);
}

/* Loads with the same cycles share their mean rank. */
static void rank(struct kept *k, uint32_t n)
{
    qsort(k, n, sizeof *k, by_cycles);
    for (uint32_t i = 0; i < n;) {
        uint32_t end = i;
        while (end < n && k[end].cycles == k[i].cycles)
            end++;
        for (uint32_t j = i; j < end; j++)
            k[j].rank = (i + end - 1) / 2.0;
        i = end;
    }
    qsort(k, n, sizeof *k, by_place);
}

static bool is_first(const struct kept *k, uint32_t i, uint64_t bytes, uint64_t phase)
{
    return (k[i].at + phase) / bytes != (k[i - 1].at + phase) / bytes;
}

/* Returns how many standard errors the ranks of the first loads are above the ranks of the
 * others. */
static double z_of(const struct kept *k, uint32_t n, uint64_t bytes, uint64_t phase,
                   uint32_t *out_firsts)
{
    double sum = 0;
    uint32_t firsts = 0;

    for (uint32_t i = 1; i < n; i++) {
        const bool first = is_first(k, i, bytes, phase);
        firsts += first;
        sum += first ? k[i].rank : 0;
    }
    *out_firsts = firsts;
    const double rest = (double)n - firsts;
    if (firsts < LEAST_FIRSTS || rest < LEAST_FIRSTS)
        return 0;
    return (sum - firsts * (n - 1) / 2.0) / sqrt(firsts * rest * (n + 1) / 12.0);
}

/* Returns how many cycles longer the first loads take. Uses the quantiles beside the middle,
 * because two modes of memory may meet in the middle. */
static double longer_by(const struct kept *k, uint32_t n, uint64_t bytes, uint64_t phase)
{
    static const double quantiles[] = {0.1, 0.2, 0.3, 0.7, 0.8, 0.9};
    enum { QUANTILES = sizeof quantiles / sizeof quantiles[0] };
    uint32_t *const loads[2] = {malloc(n * sizeof(uint32_t)), malloc(n * sizeof(uint32_t))};
    uint32_t count[2] = {0, 0};
    double sum = 0;

    for (uint32_t i = 1; loads[0] && loads[1] && i < n; i++) {
        const bool is = is_first(k, i, bytes, phase);
        loads[is][count[is]++] = k[i].cycles;
    }
    for (uint32_t q = 0; q < QUANTILES && count[0] > 0 && count[1] > 0; q++)
        sum += stats_quantile_u32(loads[1], count[1], quantiles[q]) -
               stats_quantile_u32(loads[0], count[0], quantiles[q]);
    free(loads[0]);
    free(loads[1]);
    return sum / QUANTILES;
}

/* Returns whether the first loads of every second stretch are as slow as the first loads of the
 * others. If so, a stretch is twice as long, but has too few first loads to be found by itself. */
static bool is_whole_stretch(const struct kept *k, uint32_t n, uint64_t bytes, uint64_t phase)
{
    const double even = longer_by(k, n, 2 * bytes, phase);
    const double odd = longer_by(k, n, 2 * bytes, phase + bytes);

    return fmin(even, odd) >= ALIKE * fmax(even, odd);
}

void page_tables_find(const uint32_t *loads, uint32_t count, uint64_t stride_bytes,
                      double threshold, struct page_tables *out)
{
    struct kept *const k = calloc(count > 0 ? count : 1, sizeof *k);
    uint64_t best_bytes = 0;
    uint64_t best_phase = 0;
    double best = 0;
    uint32_t n = 0;

    REACH_ASSERT(count <= PAGE_TABLES_MOST && stride_bytes > 0);
    *out = (struct page_tables){.finding = PAGE_TABLES_UNSURE};
    for (uint32_t i = 0; k && i < count; i++)
        if (loads[i] > threshold)
            k[n++] = (struct kept){.at = i * stride_bytes, .cycles = loads[i]};
    if (n < count / 2 || n == 0) {
        free(k);
        return;
    }
    rank(k, n);
    uint64_t bytes = 4 * MIB;
    while (bytes < 2 * stride_bytes)
        bytes *= 2;
    for (; bytes * LEAST_REGIONS <= count * stride_bytes; bytes *= 2) {
        for (uint32_t phase = 0; phase < PHASES; phase++) {
            uint32_t firsts = 0;
            const double z = z_of(k, n, bytes, bytes / PHASES * phase, &firsts);
            if (z <= best)
                continue;
            best = z;
            best_bytes = bytes;
            best_phase = bytes / PHASES * phase;
            out->loads = firsts;
        }
    }
    out->finding = PAGE_TABLES_NONE;
    out->margin = 1 - best / SURE_Z;
    if (best >= SURE_Z && best_bytes > 0) {
        const uint32_t middle = n / 2;
        out->cycles = longer_by(k, n, best_bytes, best_phase);
        out->finding = out->cycles >= LEAST_LONGER * k[middle].cycles &&
                               is_whole_stretch(k, n, best_bytes, best_phase)
                           ? PAGE_TABLES_FOUND
                           : PAGE_TABLES_UNSURE;
        out->margin = 1 - SURE_Z / best;
    }
    free(k);
}
