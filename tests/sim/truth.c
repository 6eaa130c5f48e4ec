/* truth.c: see truth.h.
 *
 * To find the onset, the model is walked without noise at a stride of one entry. A bisection starts
 * between a footprint that never misses and a footprint that does. The onset is not always the
 * number of entries. Pages that stay in a nearer level cause no requests to a farther level. A hash
 * may overfill one set before the others are full.
 */
#include "tests/sim/truth.h"

#include "analysis/levels/levels.h"
#include "base/units.h"
#include "gpu/sim/sim_mmu.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WARM_LAPS = 3,
    FEWEST_PAGES = 4,         /* a sweep cannot detect an onset below this number */
    MOST_PAGES_AN_ENTRY = 16, /* one miss in this number of loads can be detected */
    SMALLEST_PENALTY = 3
};

#define ALL        0.9999 /* share of the possible misses that counts as all */
#define ALMOST_ALL 0.95

/* A walk of the first SM over pages that are `stride` apart. */
struct walker {
    struct sim_mmu *mmu;
    uint64_t range_bytes;
    uint64_t stride;
    uint32_t most; /* largest number of pages to be tested */
};

/* Returns how many loads of one lap over `pages` pages missed level `k`. */
static uint32_t misses(const struct walker *w, uint32_t k, uint32_t pages)
{
    uint32_t count = 0;
    sim_mmu_flush(w->mmu);
    for (uint32_t lap = 0; lap <= WARM_LAPS; lap++)
        for (uint64_t i = 0; i < pages; i++) {
            uint32_t missed = sim_mmu_access(w->mmu, 0, i * w->stride);
            count += lap == WARM_LAPS && missed > k;
        }
    return count;
}

/* Returns the smallest number of pages at which more than `share` of the loads miss level k.
 * Returns 0 if no tested number has this property. */
static uint32_t fewest(const struct walker *w, uint32_t k, double share)
{
    uint32_t lo = 0;
    uint32_t hi = w->most;
    if (hi == 0 || misses(w, k, hi) <= share * hi)
        return 0;
    while (hi - lo > 1) {
        uint32_t middle = lo + (hi - lo) / 2;
        if (misses(w, k, middle) > share * middle)
            hi = middle;
        else
            lo = middle;
    }
    return hi;
}

static void set_stride(struct walker *w, uint64_t stride, uint64_t most)
{
    const uint64_t pages = w->range_bytes / stride;
    w->stride = stride;
    w->most = (uint32_t)(most < pages ? most : pages);
}

static void sharing_of(const struct sim_desc *d, const struct sim_level *l, struct truth_level *out)
{
    out->shared_by = l->instance_count == 1             ? SHARED_GPU
                     : l->instance_count == d->sm_count ? SHARED_SM
                                                        : SHARED_GROUP;
    for (uint32_t id = 0; id < REACH_MAX_SMS; id++)
        out->sharing.group_of_sm[id] = FINGERPRINT_NO_GROUP;
    out->sharing.group_count = l->instance_count;
    for (uint32_t i = 0; i < d->sm_count; i++)
        out->sharing.group_of_sm[d->sm_ids[i]] = l->instance_of_sm[i];
}

static void level_of(struct walker *w, const struct sim_desc *d, uint32_t k,
                     struct truth_level *out)
{
    const struct sim_level *l = &d->levels[k];
    *out = (struct truth_level){.entry_bytes = l->entry_bytes,
                                .penalty_cycles = l->miss_cycles,
                                .least_cycles = l->miss_cycles,
                                .lru = l->policy == SIM_LRU};
    sharing_of(d, l, out);
    set_stride(w, l->entry_bytes, (uint64_t)l->entries * 4 + 64);
    /* If victims are random, the capacity of a set counts, because the misses begin late. */
    const uint32_t onset = fewest(w, k, 0);
    out->fits = out->lru ? (onset ? onset - 1 : 0) : l->entries;
    out->nearly = fewest(w, k, ALMOST_ALL);
    out->saturated = fewest(w, k, ALL);
}

/* Returns whether level k is distinct at this stride. It must begin to miss at twice the pages at
 * which the nearer level always misses. It must always miss at half of the pages at which the
 * farther level begins to miss. */
static bool apart_at(struct walker *w, const struct sim_desc *d, uint32_t k, uint64_t stride)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < d->level_count; i++)
        most = d->levels[i].entries > most ? d->levels[i].entries : most;
    while (stride * 2 <= d->levels[k].entry_bytes / MOST_PAGES_AN_ENTRY)
        stride *= 2;
    const uint64_t times = d->levels[k].entry_bytes / stride;
    set_stride(w, stride, 3ull * most * (times ? times : 1));
    const double share = times > 1 ? 1.0 / (double)times : 1;
    const uint32_t first = fewest(w, k, 0);
    const uint32_t last = fewest(w, k, ALL * share);
    if (first < FEWEST_PAGES || last == 0 || 2 * last > w->range_bytes / stride)
        return false;
    if (k > 0) {
        const uint64_t near_times = d->levels[k - 1].entry_bytes / stride;
        const double near_share = near_times > 1 ? 1.0 / (double)near_times : 1;
        const uint32_t near_last = fewest(w, k - 1, ALL * near_share);
        if (near_last == 0 || first < 2 * near_last)
            return false;
    }
    return k + 1 == d->level_count ||
           misses(w, k + 1, 2 * last < w->most ? 2 * last : w->most) == 0;
}

/* With random victims, a nearer level keeps pages that vary, and a level behind it gets no requests
 * for these pages. */
static void find_fits_alone(const struct sim_desc *desc, struct truth *out)
{
    struct sim_desc strict = *desc;
    for (uint32_t k = 0; k < strict.level_count; k++)
        strict.levels[k].policy = SIM_LRU;
    struct walker w = {.mmu = sim_mmu_new(&strict), .range_bytes = sim_desc_range(desc)};
    if (!w.mmu)
        abort();
    for (uint32_t k = 0; k < desc->level_count; k++) {
        set_stride(&w, desc->levels[k].entry_bytes, (uint64_t)desc->levels[k].entries * 4 + 64);
        const uint32_t onset = fewest(&w, k, 0);
        out->levels[k].fits_alone = out->levels[k].lru && onset ? onset - 1 : out->levels[k].fits;
    }
    sim_mmu_free(w.mmu);
}

void truth_of(const struct sim_desc *desc, struct truth *out)
{
    struct walker w = {.mmu = sim_mmu_new(desc), .range_bytes = sim_desc_range(desc)};
    const struct gpu_limits limits = {.range_bytes = w.range_bytes,
                                      .granule_bytes =
                                          desc->granule_bytes ? desc->granule_bytes : 2 * MIB};
    *out = (struct truth){.level_count = desc->level_count};
    if (!w.mmu)
        abort();
    for (uint32_t k = 0; k < desc->level_count; k++) {
        struct truth_level *l = &out->levels[k];
        level_of(&w, desc, k, l);
        l->steady = l->lru && (k == 0 || out->levels[k - 1].steady);
        l->apart = l->penalty_cycles >= SMALLEST_PENALTY && apart_at(&w, desc, k, l->entry_bytes) &&
                   apart_at(&w, desc, k, levels_sweep_stride(&limits));
    }
    find_fits_alone(desc, out);
    for (uint32_t k = 0; k < desc->level_count; k++) {
        struct truth_level *l = &out->levels[k];
        l->most_cycles = l->penalty_cycles;
        if (k > 0 && !(l->apart && l[-1].apart))
            l->most_cycles += l[-1].penalty_cycles;
        if (k + 1 < desc->level_count && !(l->apart && l[1].apart))
            l->most_cycles += l[1].penalty_cycles;
    }
    sim_mmu_free(w.mmu);
}

/* ---- comparison ---- */

enum answer { ANSWER_RIGHT, ANSWER_NOT_SURE, ANSWER_WRONG };

static void note(struct truth_score *s, enum answer answer, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void note(struct truth_score *s, enum answer answer, const char *format, ...)
{
    const size_t used = strlen(s->text);
    va_list args;
    s->right += answer == ANSWER_RIGHT;
    s->not_sure += answer == ANSWER_NOT_SURE;
    s->wrong += answer == ANSWER_WRONG;
    if (answer == ANSWER_RIGHT)
        return;
    va_start(args, format);
    (void)vsnprintf(s->text + used, sizeof s->text - used, format, args);
    va_end(args);
    const size_t now = strlen(s->text);
    (void)snprintf(s->text + now, sizeof s->text - now, "%s\n",
                   answer == ANSWER_WRONG ? ": WRONG" : ": not sure");
}

static enum answer judge(bool known, bool right)
{
    return !known ? ANSWER_NOT_SURE : right ? ANSWER_RIGHT : ANSWER_WRONG;
}

/* Onsets of random victims come late, because near the onset only one load in hundreds misses. */
static bool entries_right(const struct truth_level *t, uint32_t entries)
{
    const uint32_t late = t->lru ? 1 : t->fits / 20 + 1;
    const uint32_t least = t->fits < t->fits_alone ? t->fits : t->fits_alone;
    const uint32_t most = t->fits < t->fits_alone ? t->fits_alone : t->fits;
    return entries + 1 >= least && entries <= most + late;
}

static bool saturation_right(const struct truth_level *t, uint64_t bytes)
{
    const double pages = (double)bytes / (double)t->entry_bytes;
    /* If a nearer level has random victims, a page sometimes hits there. */
    const double slack = t->steady ? 1.0 / 64 : 1.0 / 12;
    return t->nearly > 0 && pages >= t->nearly * (1 - slack) - 1 &&
           (t->saturated == 0 || pages <= t->saturated * (1 + slack) + 1);
}

static bool penalty_right(const struct truth_level *t, double cycles)
{
    return cycles >= t->least_cycles - fmax(2, t->least_cycles / 20) &&
           cycles <= t->most_cycles + fmax(2, t->most_cycles / 20);
}

static void compare_level(const struct truth_level *t, const struct tlb_level *l,
                          struct truth_score *s)
{
    note(s, judge(IS_KNOWN(l->entry_bytes), l->entry_bytes.v == t->entry_bytes),
         "  level %u: entry %llu for %llu KiB", l->level,
         (unsigned long long)l->entry_bytes.v >> 10, (unsigned long long)t->entry_bytes >> 10);
    note(s, judge(IS_KNOWN(l->entries), entries_right(t, l->entries.v)),
         "  level %u: %u for %u entries (%s) %s", l->level, l->entries.v, t->fits,
         t->lru ? "lru" : "random", reason_slug(l->entries.reason));
    note(s, judge(IS_KNOWN(l->miss_penalty_cycles), penalty_right(t, l->miss_penalty_cycles.v)),
         "  level %u: %.1f for %.1f cycles", l->level, l->miss_penalty_cycles.v, t->penalty_cycles);
    if (t->lru)
        note(s, judge(IS_KNOWN(l->saturation_bytes), saturation_right(t, l->saturation_bytes.v)),
             "  level %u: saturates at %.1f, not in %u..%u", l->level,
             (double)l->saturation_bytes.v / (double)t->entry_bytes, t->nearly, t->saturated);
    note(s,
         judge(l->shared_by != SHARED_UNKNOWN,
               l->shared_by == t->shared_by &&
                   (t->shared_by != SHARED_GROUP ||
                    memcmp(&l->sharing, &t->sharing, sizeof t->sharing) == 0)),
         "  level %u: shared by %s (%u groups) for %s (%u)", l->level, shared_by_name(l->shared_by),
         l->sharing.group_count, shared_by_name(t->shared_by), t->sharing.group_count);
}

/* Matches the found levels, starting at `found`, with the described levels, starting at `next`. The
 * matching keeps the order and has the smallest error. */
static void match(const struct truth *t, const struct fingerprint *fp, uint32_t found,
                  uint32_t next, const struct truth_score *so_far, struct truth_score *best)
{
    struct truth_score s = *so_far;
    if (found == fp->level_count || next == t->level_count) {
        for (uint32_t j = found; j < fp->level_count; j++)
            note(&s, ANSWER_WRONG, "  level %u: there is no such level", fp->levels[j].level);
        for (uint32_t k = next; k < t->level_count; k++)
            if (t->levels[k].apart)
                note(&s, ANSWER_NOT_SURE, "  level %u of the model was not seen", k + 1);
        if (best->right == UINT32_MAX || s.wrong < best->wrong ||
            (s.wrong == best->wrong && s.not_sure < best->not_sure))
            *best = s;
        return;
    }
    compare_level(&t->levels[next], &fp->levels[found], &s);
    match(t, fp, found + 1, next + 1, &s, best);
    s = *so_far;
    if (t->levels[next].apart)
        note(&s, ANSWER_NOT_SURE, "  level %u of the model was not seen", next + 1);
    match(t, fp, found, next + 1, &s, best);
}

/* The expected windows follow from the level that the fingerprint names. */
static void compare_windows(const struct fingerprint *fp, struct truth_score *s)
{
    const uint32_t n = fp->topology.level.v;
    if (!IS_KNOWN(fp->topology.level)) {
        if (IS_KNOWN(fp->windows.reach_bytes))
            note(s, ANSWER_WRONG, "  windows without a level");
        return;
    }
    const struct tlb_level *l = &fp->levels[n - 1];
    bool outermost = l->shared_by == SHARED_GROUP || l->shared_by == SHARED_SM;
    for (uint32_t k = n; k < fp->level_count; k++)
        outermost = outermost && fp->levels[k].shared_by != SHARED_GROUP;
    note(s, judge(true, outermost), "  windows by level %u", n);
    note(s,
         judge(IS_KNOWN(fp->windows.reach_bytes),
               fp->windows.reach_bytes.v == l->reach_bytes.v &&
                   fp->windows.recommended_bytes.v + l->entry_bytes.v == l->reach_bytes.v),
         "  windows of %llu", (unsigned long long)fp->windows.reach_bytes.v);
}

void truth_compare(const struct truth *truth, const struct fingerprint *fp, struct truth_score *out)
{
    const struct truth_score none = {0};
    *out = (struct truth_score){.right = UINT32_MAX};
    match(truth, fp, 0, 0, &none, out);
    compare_windows(fp, out);
}
