/* sectored.c: see sectored.h. */
#include "analysis/structure/sectored.h"

#include "analysis/levels/sweep.h"
#include "analysis/structure/sets.h"

enum {
    BELOW_SAMPLES = 2048,
    WARM_LAPS = 1,
    MOST_PARTS = 64, /* largest number of positions within an entry that are distinguished */
    FEWEST_PAGES = 8 /* fewest pages of a level that is walked at twice the stride */
};

/* The largest share of misses in a walk that fits, and the least share in a walk that does not. */
#define NONE_SHARE 0.05
#define SOME_SHARE 0.2

/* Returns the number of loads per entry in the walk at a shorter stride. It is a power of two, or 0
 * if an entry is one page or less. */
static uint64_t sectors_below(const struct observation_set *set, const struct level_estimate *level)
{
    const uint64_t page = set->limits.granule_bytes;
    uint64_t stride = page;

    if (page == 0 || level->entry_bytes % page != 0 || level->entry_bytes < 2 * page)
        return 0;
    while (level->entry_bytes / stride > MOST_PARTS)
        stride *= 2;
    return level->entry_bytes % stride == 0 ? level->entry_bytes / stride : 0;
}

/* Finds the observation of this walk, or requests it. */
static const struct observation *find_or_ask(const struct observation_set *set,
                                             const struct trace_ask *ask,
                                             struct sectored_estimate *out)
{
    uint32_t point = 0;
    const struct observation *o = trace_find(set, ask, &point);

    if (!o && ask->pages * ask->stride_bytes <= set->limits.range_bytes)
        out->asks[out->ask_count++] = *ask;
    return o;
}

/* Compares the median latency by position within an entry. If a miss fills the rest of the entry,
 * one position stands out by the penalty. The nearest level with shorter entries adds its own
 * steps, so the slowest of the other positions counts. Returns the difference as a multiple of the
 * penalty. */
static double one_position_misses(const struct observation *o, uint64_t parts, double penalty)
{
    const uint32_t *row = observation_chase(o, 0);
    double most = 0;
    double next = 0;

    for (uint32_t j = 0; j < parts; j++) {
        if (j >= o->spec.samples)
            return 0;
        const double median = sweep_page_median(row, o->spec.samples, parts, j);
        next = median > most ? most : median > next ? median : next;
        most = median > most ? median : most;
    }
    return (most - next) / penalty;
}

enum below { BELOW_PENDING, BELOW_WHOLE, BELOW_UNSURE, BELOW_NOT_APPLICABLE };

static enum below ask_below(const struct observation_set *set, const struct level_estimate *level,
                            struct sectored_estimate *out)
{
    const uint64_t parts = sectors_below(set, level);
    const uint64_t full = level->sat_hi_pages ? level->sat_hi_pages : level->lo_pages;
    const struct observation *o;

    if (parts == 0)
        return BELOW_NOT_APPLICABLE;
    const struct trace_ask ask = {.stride_bytes = level->entry_bytes / parts,
                                  .pages = (full + full / 4 + 2) * parts,
                                  .control_pages = level->lo_pages * parts / 2,
                                  .samples = BELOW_SAMPLES,
                                  .warm_laps = WARM_LAPS};
    if (ask.pages * ask.stride_bytes > set->limits.range_bytes)
        return BELOW_UNSURE;
    o = find_or_ask(set, &ask, out);
    if (!o)
        return BELOW_PENDING;
    const double apart = one_position_misses(o, parts, level->penalty_cycles);
    out->fill_evidence =
        evidence_make(EVIDENCE_STRIDES, o->spec.samples / parts, (apart - 0.5) / 0.5);
    return apart > 0.5 ? BELOW_WHOLE : BELOW_UNSURE;
}

enum above { ABOVE_PENDING, ABOVE_AS_MANY, ABOVE_FEWER, ABOVE_UNSURE };

/* Returns the number of pages that no nearer level holds, or 0 if it is not known. */
static uint64_t beyond_nearer(const struct structure *s, uint32_t k)
{
    uint64_t most = 1;
    for (uint32_t j = 0; j < k; j++) {
        if (s->levels[j].sat_hi_pages == 0)
            return 0;
        most = s->levels[j].sat_hi_pages > most ? s->levels[j].sat_hi_pages : most;
    }
    return most;
}

/* Finds whether three quarters of the pages still fit at twice the stride. They are compared with
 * fewer pages, which must also miss the nearer levels. */
static enum above ask_above(const struct observation_set *set, const struct structure *s,
                            uint32_t k, struct sectored_estimate *out)
{
    const struct level_estimate *level = &s->levels[k];
    const uint64_t nearer = beyond_nearer(s, k);
    const uint64_t half = level->lo_pages * 3 / 8;
    const struct trace_ask ask = {.stride_bytes = level->entry_bytes * 2,
                                  .pages = level->lo_pages * 3 / 4,
                                  .control_pages = half > nearer ? half : nearer,
                                  .samples = BELOW_SAMPLES,
                                  .warm_laps = WARM_LAPS};
    const struct observation *o;

    if (nearer == 0 || level->lo_pages < FEWEST_PAGES || ask.control_pages >= level->lo_pages / 2 ||
        ask.pages * ask.stride_bytes > set->limits.range_bytes)
        return ABOVE_UNSURE;
    o = find_or_ask(set, &ask, out);
    if (!o)
        return ABOVE_PENDING;
    const double share = sweep_share_above(o, 0, trace_threshold(o, level->penalty_cycles));
    out->pages_evidence = evidence_make(
        EVIDENCE_STRIDES, o->spec.samples / ask.pages,
        share < NONE_SHARE ? 1 - share / NONE_SHARE : (share - SOME_SHARE) / (1 - SOME_SHARE));
    return share < NONE_SHARE ? ABOVE_AS_MANY : share > SOME_SHARE ? ABOVE_FEWER : ABOVE_UNSURE;
}

enum neighbors { NEIGHBORS_UNSURE, NEIGHBORS_APART, NEIGHBORS_TOGETHER };

static bool blocks_are_uniform(const struct trace *t, uint64_t pages, uint32_t block)
{
    for (uint32_t i = 0; i + block <= pages; i += block)
        for (uint32_t j = 1; j < block; j++)
            if (trace_bit(t->missed, i) != trace_bit(t->missed, i + j))
                return false;
    return true;
}

/* Finds whether pages 2 i and 2 i + 1 always behave alike in the first cycle that misses.
 * `out_block` is the number of pages that leave together. It is 0 if all pages leave together,
 * because the number is then unknown. */
static enum neighbors ask_neighbors(const struct observation_set *set,
                                    const struct level_estimate *level, uint32_t *out_block,
                                    struct evidence *out_evidence)
{
    const uint64_t lo = level->lo_pages;
    const struct trace_ask first = {.stride_bytes = level->entry_bytes,
                                    .pages = lo + 1,
                                    .control_pages = sets_control_pages(level)};
    struct trace t;

    if (lo + 1 > TRACE_MAX_PAGES)
        return NEIGHBORS_UNSURE;
    trace_read(set, &first, level->penalty_cycles, &t);
    if (t.attempts == 0 || t.unsure_pages > 0 || t.missed_pages < 3)
        return NEIGHBORS_UNSURE;
    *out_block = 0;
    *out_evidence = evidence_make(EVIDENCE_STRIDES, t.laps, t.margin);
    if (t.missed_pages == lo + 1)
        return NEIGHBORS_TOGETHER;
    uint32_t together = 0;
    uint32_t apart = 0;
    for (uint32_t i = 0; i + 1 < lo; i += 2) {
        const bool a = trace_bit(t.missed, i);
        const bool b = trace_bit(t.missed, i + 1);
        together += a && b;
        apart += a != b;
    }
    if (together == 0)
        return NEIGHBORS_APART;
    if (apart > 0)
        return NEIGHBORS_UNSURE;
    *out_block = 2;
    while (*out_block * 2 <= lo && blocks_are_uniform(&t, lo, *out_block * 2))
        *out_block *= 2;
    return NEIGHBORS_TOGETHER;
}

static void derive_sectored(const struct observation_set *set, const struct level_estimate *level,
                            uint32_t block, struct sectored_estimate *out)
{
    const uint64_t page = set->limits.granule_bytes;

    out->fill = FILL_PARTS;
    if (block == 0) {
        out->tag_bytes = UNKNOWN_U64(REASON_NO_CONTRAST);
        out->entry_pages = UNKNOWN_U32(REASON_NO_CONTRAST);
        return;
    }
    out->tag_bytes = KNOWN_U64(level->entry_bytes * block);
    if (page > 0 && out->tag_bytes.v % page == 0)
        out->entry_pages = KNOWN_U32((uint32_t)(out->tag_bytes.v / page));
}

void sectored_estimate(const struct observation_set *set, const struct structure *s, uint32_t k,
                       struct sectored_estimate *out)
{
    const struct level_estimate *level = &s->levels[k];
    const uint64_t page = set->limits.granule_bytes;
    struct evidence traced;
    uint32_t block = 0;

    *out = (struct sectored_estimate){.fill = FILL_UNKNOWN,
                                      .entry_pages = UNKNOWN_U32(REASON_TOO_LITTLE_DATA),
                                      .tag_bytes = UNKNOWN_U64(REASON_TOO_LITTLE_DATA)};
    if (!level->entry_known || level->lo_pages == 0 || level->hi_pages == 0)
        return;
    for (uint32_t j = 0; j < k; j++)
        if (!s->levels[j].entry_known || s->levels[j].entry_bytes > level->entry_bytes)
            return;
    const enum below below = ask_below(set, level, out);
    const enum above above = ask_above(set, s, k, out);
    if (below == BELOW_PENDING || above == ABOVE_PENDING)
        return;
    const enum neighbors neighbors = ask_neighbors(set, level, &block, &traced);
    if (above == ABOVE_FEWER && neighbors != NEIGHBORS_UNSURE)
        out->pages_evidence = evidence_weaker(out->pages_evidence, traced);
    if (above == ABOVE_FEWER && neighbors == NEIGHBORS_TOGETHER) {
        out->fill_evidence = out->pages_evidence;
        derive_sectored(set, level, block, out);
        return;
    }
    if (above != ABOVE_AS_MANY && !(above == ABOVE_FEWER && neighbors == NEIGHBORS_APART))
        return;
    out->tag_bytes = UNKNOWN_U64(REASON_NOT_APPLICABLE);
    if (page > 0 && level->entry_bytes % page == 0)
        out->entry_pages = KNOWN_U32((uint32_t)(level->entry_bytes / page));
    else
        out->entry_pages = UNKNOWN_U32(REASON_NOT_APPLICABLE);
    if (below != BELOW_WHOLE)
        return;
    out->fill = FILL_WHOLE;
    out->fill_evidence = evidence_weaker(out->fill_evidence, out->pages_evidence);
}
