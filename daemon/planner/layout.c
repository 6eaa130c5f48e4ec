/* layout.c: computes bounds at rows, and the bytes that stay in a TLB.
 *
 * The margin follows from two bounds. L bytes at any base touch at most ceil(L / entry) + 1
 * entries. The sum of n rounded lengths exceeds their rounded sum by at most n - 1 entries. So n
 * parts with S bytes in total touch at most ceil(S / entry) + 2n - 1 entries. A part is longer than
 * its share by less than a row, and the last part by less than two rows.
 */
#include "planner/layout.h"

#include "planner/heats.h"

#include <math.h>
#include <stdbool.h>

typedef unsigned __int128 wide;

enum { STEPS = 200, HEATS = 24 };

/* COOLER is the share of pages of one heat. With 24 heats of this share, the misses are within 2 %
 * of those of a continuous distribution. EXACT is the share of the reach, or of hits, at which the
 * search for the time that fills the TLB ends. */
static const double COOLER = 0.29;
static const double EXACT = 1 - 1e-12;

struct layout layout_single(uint64_t bytes)
{
    return (struct layout){.count = 1, .of = {{.bytes = bytes, .row_bytes = 1, .touches = 1}}};
}

static bool is_touched(const struct layout *l, uint32_t i)
{
    return l->of[i].touches > 0;
}

uint64_t layout_bytes(const struct layout *l)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < l->count; i++)
        sum += l->of[i].bytes;
    return sum;
}

uint64_t layout_touched_bytes(const struct layout *l)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < l->count; i++)
        sum += is_touched(l, i) ? l->of[i].bytes : 0;
    return sum;
}

uint64_t layout_alignment_bytes(const struct layout *l, uint64_t entry_bytes)
{
    uint32_t touched = 0;
    uint64_t rows = 0;

    for (uint32_t i = 0; i < l->count; i++) {
        touched += is_touched(l, i);
        if (is_touched(l, i) && l->of[i].row_bytes > 1)
            rows += 2 * l->of[i].row_bytes;
    }
    return rows + (touched > 1 ? 2 * (uint64_t)(touched - 1) * entry_bytes : 0);
}

uint64_t layout_bound(const struct layout *l, uint32_t i, uint64_t position)
{
    const struct layout_allocation *a = &l->of[i];
    const uint64_t touched = layout_touched_bytes(l);

    if (position >= touched)
        return a->bytes;
    return (uint64_t)((wide)position * (a->bytes / a->row_bytes) / touched) * a->row_bytes;
}

struct layout_range layout_part(const struct layout *l, uint32_t i, uint64_t from, uint64_t to)
{
    const uint64_t first = from > 0 ? layout_bound(l, i, from) : 0;

    return (struct layout_range){first, layout_bound(l, i, to) - first};
}

struct layout_range layout_parts(const struct layout *l, uint64_t from, uint64_t to)
{
    struct layout_range sum = {0, 0};

    for (uint32_t i = 0; i < l->count; i++) {
        const struct layout_range part = layout_part(l, i, from, to);
        sum.first_byte += part.first_byte;
        sum.length_bytes += part.length_bytes;
    }
    return sum;
}

/* Returns the bytes that are in the TLB after `time` items have touched the allocations at random.
 * Each allocation counts with its size times `scale`. The share of accesses that miss is written to
 * `*out_missed`. */
static double resident(const struct layout *l, const struct heat *heats, uint32_t heat_count,
                       double scale, double time, double *out_missed)
{
    double bytes = 0;
    double touches = 0;
    double missed = 0;

    for (uint32_t i = 0; i < l->count; i++) {
        const double of = (double)l->of[i].bytes * scale;
        if (!is_touched(l, i))
            continue;
        touches += l->of[i].touches;
        for (uint32_t k = 0; k < heat_count; k++) {
            const double each = l->of[i].touches * heats[k].accesses;
            const double gone = exp(-each / (of * heats[k].items) * time);
            bytes += of * heats[k].items * (1 - gone);
            missed += each * gone;
        }
    }
    *out_missed = missed / touches;
    return bytes;
}

double layout_effective_bytes(const struct layout *l, double concentration, uint64_t reach_bytes,
                              uint64_t bytes)
{
    const double scale = (double)bytes / (double)layout_touched_bytes(l);
    const double reach = (double)reach_bytes;
    struct heat heats[HEATS];
    uint32_t heat_count;
    double touches = 0;
    double missed = 1;
    double in_tlb = 0;
    double time = 0;
    double even;
    uint32_t touched = 0;

    for (uint32_t i = 0; i < l->count; i++) {
        touched += is_touched(l, i);
        touches += l->of[i].touches;
    }
    if ((touched == 1 && !(concentration > 0)) || reach_bytes == 0 || bytes <= reach_bytes)
        return (double)bytes;
    heat_count = heats_divide(concentration, COOLER, 0, HEATS, heats);
    /* Newton's method. The bytes in the TLB grow by the misses, which become fewer, so no step goes
     * beyond the time at which the TLB is full. Without misses, the TLB never fills. */
    for (int i = 0; i < STEPS && missed > 1 - EXACT && in_tlb < reach * EXACT; i++) {
        time += (reach - in_tlb) / (missed * touches);
        in_tlb = resident(l, heats, heat_count, scale, time, &missed);
    }
    even = missed < 1 ? reach / (1 - missed) : (double)bytes;
    return fmin(even, (double)bytes);
}
