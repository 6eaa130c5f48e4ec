/* cache_line.c: see cache_line.h. There are two methods. In a cycle that is too long by a sector,
 * neighbors that miss are one line, or a block of lines in neighboring sets. If words are spread
 * wider and wider, misses vanish beyond the length of a line. The two methods fail in different
 * cases. */
#include "analysis/caches/cache_line.h"

#include <math.h>
#include <stdlib.h>

#define SPACED_LEAST 0.1 /* least share of loads that miss if every line is walked */
/* least share of the misses at the first distance, if more lines are walked than fit */
#define SPACED_SAME 0.5
#define SPACED_NONE 0.1

enum {
    MOST_SECTORS = 16, /* largest number of sectors of a line */
    SPACED_SAMPLES = 1024,
    SPACED_SECTOR = 32, /* in bytes; a multiple of eight words */
    SPACINGS = 6
};

/* A distance between words, in eighths of 2^k sectors, and the length of a footprint, in quarters
 * of the size that fits. If the distance is at most one line, the walked lines overflow the cache;
 * beyond it they fit. */
struct spacing {
    uint32_t eighths, quarters;
};

/* Returns the share of loads that miss in a walk over words of this spacing. Returns -1 if the walk
 * was requested. */
static double spaced_share(struct chase *c, struct spacing by, uint32_t k)
{
    const uint64_t footprint = c->sectors * c->sector_bytes / 4 * by.quarters;
    struct probe_spec spec = chase_spec(c, (c->sector_bytes << k) / 8 * by.eighths, SPACED_SAMPLES);
    const uint64_t n = footprint / spec.stride_bytes;

    spec.scattered = 1;
    walks_add_points(&spec, walks_evenly_covered(n > 1 ? n : 2), 1);
    const struct observation *const o = walks_find(c->w, &spec);
    return o ? chase_slow_share(o, 0, c->how.threshold) : -1;
}

/* Consider a distance of 11 eighths in twice the size that fits. Up to a distance of 11/8 of a
 * line, all or 8/11 of the lines of the footprint are walked. More lines are walked than fit, so a
 * large share of loads misses. With LRU all loads miss. With a random victim, the share m is 1 -
 * exp(-16/11 m) = 0.55 for 16/11 of the lines that fit. With all lines it is 0.80. At twice that
 * distance 4/11 of the lines are walked, 8/11 of those that fit. So misses vanish between 11/8 and
 * 11/4 of a line, at any place of the lines that miss. If misses become rare and do not vanish, the
 * function returns REASON_IRREGULAR, and `*out` is the length that no shorter line explains. The
 * reason is that a hash chooses the sets: 8/11 of the lines that fit overflow some sets (5 to 14 %
 * of the loads of an H100 missed). `*out` is 0 if no length is known. */
static enum reason line_of_spacing(struct chase *c, struct spacing by, uint64_t *out)
{
    double shares[SPACINGS];
    bool waiting = false;
    enum reason reason = REASON_NONE;
    uint32_t k = 0;

    *out = 0;
    if (c->sector_bytes % SPACED_SECTOR != 0)
        return REASON_NO_CONTRAST;
    for (uint32_t i = 0; i < SPACINGS; i++) {
        shares[i] = spaced_share(c, by, i);
        waiting = waiting || shares[i] < 0;
    }
    if (waiting)
        return REASON_NOT_MEASURED;
    while (k + 1 < SPACINGS && shares[k + 1] >= SPACED_SAME * shares[0])
        k++;
    if (shares[0] < SPACED_LEAST || k + 1 == SPACINGS)
        return REASON_NO_CONTRAST;
    *out = c->sector_bytes << k;
    for (uint32_t i = k + 1; i < SPACINGS; i++) {
        reason = shares[i] > SPACED_NONE * shares[0] ? REASON_IRREGULAR : reason;
        *out = shares[i] >= SPACED_SAME * shares[0] ? 0 : *out;
    }
    return reason;
}

/* Distances of 9 and 11 eighths are no multiple of two lines, so the words lie in all sets evenly.
 * They also do so if sets are chosen for blocks of lines. If the number of sets has a divisor in
 * common with the eighths, some sets get more words than others and overflow. With 9 eighths this
 * affects a third of 30 sets, with 11 half of 22 sets. So both distances must give the same length,
 * which is `*out`. */
static enum reason line_by_spacing(struct chase *c, uint64_t *out)
{
    uint64_t again = 0;
    const enum reason reason = line_of_spacing(c, (struct spacing){11, 8}, out);
    const enum reason other = line_of_spacing(c, (struct spacing){9, 7}, &again);

    if (reason == REASON_NOT_MEASURED || other == REASON_NOT_MEASURED)
        return REASON_NOT_MEASURED;
    if (*out != again) {
        *out = 0;
        return REASON_IRREGULAR;
    }
    return reason != REASON_NONE ? reason : other;
}

/* Finds whether a line is no longer than `line_bytes`. Some caches overflow before they are full,
 * because some sets get more lines than others. Then more lines stay than fit for certain, and the
 * misses of spread words vanish too early, at half the length of a line. But if a line were longer,
 * words less than twice `line_bytes` apart would walk all lines of the footprint and overflow the
 * cache. Words that crowd in some sets only add misses, so one of two distances is enough. */
static enum reason no_longer_line(struct chase *c, uint64_t line_bytes)
{
    static const uint32_t eighths[] = {8, 13, 15};
    enum { WALKS = sizeof eighths / sizeof eighths[0], QUARTERS = 5 };
    double shares[WALKS];
    bool waiting = false;
    uint32_t k = 0;

    while (c->sector_bytes << k < line_bytes)
        k++;
    for (uint32_t i = 0; i < WALKS; i++) {
        shares[i] = spaced_share(c, (struct spacing){eighths[i], QUARTERS}, i > 0 ? k : 0);
        waiting = waiting || shares[i] < 0;
    }
    if (waiting)
        return REASON_NOT_MEASURED;
    if (shares[0] < SPACED_LEAST)
        return REASON_NO_CONTRAST;
    return fmin(shares[1], shares[2]) <= SPACED_NONE * shares[0] ? REASON_NONE : REASON_IRREGULAR;
}

/* Returns the length of a run of neighboring sectors that miss: the length to which most missing
 * sectors belong. Returns 0 if no sector misses. */
static uint32_t usual_run(const struct walk_votes *v)
{
    uint32_t weights[MOST_SECTORS + 1] = {0};
    uint32_t run = 0;
    uint32_t best = 0;

    for (uint32_t i = 0; i <= v->elements; i++) {
        if (i < v->elements && walks_misses(v, i)) {
            run++;
            continue;
        }
        const uint32_t capped = run < MOST_SECTORS ? run : (uint32_t)MOST_SECTORS;
        weights[capped] += capped;
        run = 0;
    }
    for (uint32_t k = 1; k <= MOST_SECTORS; k++)
        best = weights[k] > weights[best] ? k : best;
    return weights[best] > 0 ? best : 0;
}

/* A footprint overflows when all of its sectors are walked. Finds whether it also overflows when
 * one sector of every `bytes` is walked. If so, a line has at least `bytes`. */
static enum reason tags_overflow(struct chase *c, uint64_t bytes, bool *out)
{
    const uint64_t n = c->misses_bytes / bytes;
    const uint64_t fits = c->sectors * c->sector_bytes / 2 / bytes;
    struct walk_votes *const v = malloc(2 * sizeof *v);
    struct probe_spec spec =
        chase_spec(c, bytes, (uint32_t)fmin(PROBE_MAX_SAMPLES, 4.0 * (double)n));
    const struct observation *o = NULL;
    enum reason reason = REASON_NOT_MEASURED;

    walks_add_points(&spec, fits ? fits : 1, CHASE_REPEATS);
    walks_add_points(&spec, n, CHASE_REPEATS);
    o = v ? walks_find(c->w, &spec) : NULL;
    if (o) {
        walks_votes(o, spec.points[0], &c->how, &v[0]);
        walks_votes(o, n, &c->how, &v[1]);
        const enum overflow over = walks_overflow(&v[1], &v[0]);
        reason = over == OVERFLOW_UNSURE ? REASON_NO_CONTRAST : REASON_NONE;
        *out = over == OVERFLOW_YES;
    }
    free(v);
    return reason;
}

/* Finds whether the whole footprint overflows when it is walked in order. If it does not, a part of
 * its sectors that fits proves nothing. */
static enum reason all_overflow(struct chase *c)
{
    bool over = false;
    const enum reason reason = tags_overflow(c, c->sector_bytes, &over);

    return reason == REASON_NONE && !over ? REASON_NO_CONTRAST : reason;
}

/* Finds the usual run in a cycle of n sectors. Returns false if the cycle was requested. */
static bool run_of(struct chase *c, uint64_t n, uint32_t *out)
{
    struct probe_spec spec =
        chase_spec(c, c->sector_bytes, (uint32_t)fmin(PROBE_MAX_SAMPLES, 4.0 * (double)n));
    struct walk_votes *const v = malloc(sizeof *v);

    walks_add_points(&spec, n, chase_repeats(n, spec.samples));
    const struct observation *const o = v ? walks_find(c->w, &spec) : NULL;
    if (o) {
        walks_votes(o, n, &c->how, v);
        *out = usual_run(v);
    }
    free(v);
    return o != NULL;
}

/* Sets `*bounded` if a longer line was ruled out; otherwise spacing or the sets must confirm it.
 * `*most` is the greatest possible length of a line, because the sectors of a line miss together.
 * It is 0 if it is not known. */
static enum reason line_by_neighbors(struct chase *c, bool *bounded, uint64_t *most)
{
    uint32_t run = 0;
    enum reason reason = REASON_NONE;

    *bounded = false;
    *most = 0;
    if (!run_of(c, c->sectors + 1, &run))
        return REASON_NOT_MEASURED;
    /* A set that overflows by one line may miss too seldom to be seen. But neighboring sets that
     * overflow together look like one line. With an even number of sets they also look like one to
     * walks of every second line. So only a line of one sector is certain. */
    const bool several = run == 0;
    if (several && !run_of(c, c->sectors + c->sectors / 16 + 1, &run))
        return REASON_NOT_MEASURED;
    if (run == 0)
        return REASON_IRREGULAR;
    c->line_bytes = c->sector_bytes;
    for (uint32_t k = 2; k <= run && reason == REASON_NONE; k *= 2) {
        const uint64_t bytes = k * c->sector_bytes;
        bool over = false;
        reason = tags_overflow(c, bytes, &over);
        if (reason == REASON_NONE && !over)
            reason = all_overflow(c);
        *bounded = reason == REASON_NONE && !over;
        if (reason != REASON_NONE || !over)
            break;
        c->line_bytes = bytes;
    }
    *most = *bounded ? c->line_bytes : run * c->sector_bytes;
    if (reason == REASON_NONE && several && (!*bounded || c->line_bytes > c->sector_bytes))
        reason = REASON_IRREGULAR;
    return reason;
}

/* Neighbors that miss are the best evidence, because they also give the sets. These neighbors are
 * ambiguous if sets follow no rule, or if other lines miss in each run. Then the spacing decides,
 * or both together: one gives the shortest line, the other the longest. If the two contradict each
 * other, only the sets can decide. */
enum reason cache_line_find(struct chase *c)
{
    bool bounded = false;
    uint64_t spaced = 0;
    uint64_t most = 0;
    const enum reason reason = line_by_neighbors(c, &bounded, &most);

    if (reason == REASON_NOT_MEASURED)
        return reason;
    enum reason other = line_by_spacing(c, &spaced);
    if (spaced > 0 && spaced == most && other == REASON_IRREGULAR)
        other = REASON_NONE;
    else if (other == REASON_NONE && reason != REASON_NONE && spaced != most)
        other = no_longer_line(c, spaced);
    if (other == REASON_NOT_MEASURED)
        return other;
    if (other == REASON_NONE && reason != REASON_NONE)
        c->line_bytes = spaced;
    if (other == REASON_NONE ? spaced == c->line_bytes : reason == REASON_NONE && bounded)
        chase_set_line(c);
    return other == REASON_NONE ? REASON_NONE : reason;
}
