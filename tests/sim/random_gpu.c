/* random_gpu.c: see random_gpu.h. */
#include "tests/sim/random_gpu.h"

#include "types/identity.h"
#include "base/rng.h"
#include "base/units.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    MOST_GROUPS = 32,
    FEWEST_SMS = 8,
    MOST_SMS = 160,
    MOST_ENTRIES = 4096,
    MOST_RANGE_GIB = 32 * 1024
};

struct writer {
    char *out;
    size_t size;
    size_t used;
    struct rng rng;
    uint32_t sm_count;
    uint16_t sm_ids[MOST_SMS];
    uint32_t instance_count; /* number of instances of the level written last, or of SMs before the
                                first level */
    uint32_t instance_of[MOST_SMS];
};

static void put(struct writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct writer *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(w->out + w->used, w->size - w->used, format, args);
    va_end(args);
    if (n > 0)
        w->used += (size_t)n;
}

/* Returns a uniform number in lo..hi. */
static uint64_t between(struct writer *w, uint64_t lo, uint64_t hi)
{
    return lo + rng_below(&w->rng, hi - lo + 1);
}

static bool chance(struct writer *w, double p)
{
    return rng_unit(&w->rng) < p;
}

/* Returns a log-uniform number: the ranges 16..32 and 1024..2048 have the same probability. */
static uint32_t log_between(struct writer *w, uint32_t lo, uint32_t hi)
{
    uint32_t octaves = 0;
    while (lo << (octaves + 1) <= hi)
        octaves++;
    const uint32_t from = lo << between(w, 0, octaves);
    return (uint32_t)between(w, from, from * 2 - 1 < hi ? from * 2 - 1 : hi);
}

/* Writes SM ids in order, with gaps on every other GPU. */
static void put_sms(struct writer *w)
{
    const bool gaps = chance(w, 0.5);
    uint16_t id = 0;
    w->sm_count = (uint32_t)between(w, FEWEST_SMS, MOST_SMS);
    put(w, "sms=%u smids=", w->sm_count);
    for (uint32_t i = 0; i < w->sm_count; i++) {
        id = (uint16_t)(id + (gaps && chance(w, 0.1) ? between(w, 2, 3) : i > 0));
        w->sm_ids[i] = id;
        put(w, "%s%u", i > 0 ? "," : "", id);
        w->instance_of[i] = i;
    }
    w->instance_count = w->sm_count;
}

/* Makes groups of unequal size. Each instance of the nearer level is in a random group, and each
 * group has at least one instance. */
static void draw_groups(struct writer *w, uint32_t groups)
{
    uint32_t group_of[MOST_SMS];
    for (uint32_t i = 0; i < w->instance_count; i++)
        group_of[i] = i < groups ? i : (uint32_t)between(w, 0, groups - 1);
    for (uint32_t i = w->instance_count - 1; i > 0; i--) {
        const uint64_t k = between(w, 0, i);
        const uint32_t swap = group_of[i];
        group_of[i] = group_of[k];
        group_of[k] = swap;
    }
    for (uint32_t i = 0; i < w->sm_count; i++)
        w->instance_of[i] = group_of[w->instance_of[i]];
    w->instance_count = groups;
}

static void put_groups(struct writer *w)
{
    for (uint32_t g = 0; g < w->instance_count; g++) {
        bool first = true;
        if (g > 0)
            put(w, ":");
        for (uint32_t i = 0; i < w->sm_count; i++) {
            if (w->instance_of[i] != g)
                continue;
            put(w, "%s%u", first ? "" : ",", w->sm_ids[i]);
            first = false;
        }
    }
}

/* A level is private, shared by all SMs, or shared by groups. Behind a shared level all levels are
 * shared, because a shared instance sends the requests of its whole group. */
static void put_sharing(struct writer *w, uint32_t level)
{
    const double sharing = rng_unit(&w->rng);
    const uint32_t most = w->instance_count / 2 < MOST_GROUPS ? w->instance_count / 2 : MOST_GROUPS;
    if (w->instance_count == w->sm_count && sharing < (level == 1 ? 0.5 : 0.25)) {
        put(w, "sm");
    } else if (most < 2 || sharing < (level == 1 ? 0.55 : 0.45)) {
        put(w, "gpu");
        draw_groups(w, 1);
    } else {
        draw_groups(w, (uint32_t)between(w, 2, most));
        put_groups(w);
    }
}

/* Sets of `ways` entries, and perhaps one wider set before them. */
struct sets {
    uint32_t first_ways; /* number of ways of the first set; 0 means that all sets have the same
                            number */
    uint32_t ways;
    uint32_t count;
};

static uint32_t entries_of(const struct sets *s)
{
    return s->first_ways + s->ways * s->count;
}

static struct sets draw_sets(struct writer *w, uint32_t about)
{
    static const uint32_t usual_ways[] = {2, 4, 6, 8, 16};
    struct sets s = {.ways = about, .count = 1};
    const double kind = rng_unit(&w->rng);
    if (kind < 0.3)
        return s;
    s.ways = usual_ways[between(w, 0, 4)];
    s.ways = s.ways * 2 <= about ? s.ways : 1 + about / 4;
    s.count = about / s.ways;
    if (kind < 0.6) /* rounds the number of sets down to a power of two */
        while (s.count & (s.count - 1))
            s.count &= s.count - 1;
    else if (kind < 0.8)
        s.first_ways = s.ways + (uint32_t)between(w, 1, s.ways * 2);
    return s;
}

static void put_sets(struct writer *w, const struct sets *s)
{
    const bool power = s->first_ways == 0 && s->count > 1 && (s->count & (s->count - 1)) == 0;
    if (s->first_ways > 0)
        put(w, ";sets=%u+%ux%u", s->first_ways, s->ways, s->count);
    else
        put(w, ";sets=%ux%u", s->ways, s->count);
    if (power && chance(w, 0.5))
        put(w, ";hash=xor");
    else if (chance(w, 0.3))
        put(w, ";hash=skew");
}

static uint64_t put_level(struct writer *w, const struct random_gpu_class *class, uint32_t level,
                          uint32_t about, uint64_t entry_bytes)
{
    const struct sets sets = draw_sets(w, about);
    put(w, " l%u=%u@%lluK/", level, entries_of(&sets), (unsigned long long)entry_bytes >> 10);
    put_sharing(w, level);
    put(w, ";miss=%u", log_between(w, 8, 500));
    put_sets(w, &sets);
    if (class->random_victims && chance(w, 0.6))
        put(w, ";policy=random");
    return entries_of(&sets) * entry_bytes;
}

void random_gpu(uint64_t seed, const struct random_gpu_class *class, char *out, size_t out_size)
{
    struct writer w = {.out = out, .size = out_size, .rng = {.state = seed}};
    static const uint32_t granules[] = {64, 128, 512, 2048};
    uint64_t entry = (uint64_t)64 << 10 << between(&w, 0, 5);
    uint32_t about = log_between(&w, 8, 128);
    const uint32_t levels = (uint32_t)between(&w, 1, class->most_levels);
    uint64_t reach = 0;

    put_sms(&w);
    put(&w, " memory=64M l2cache=4M latency=%u spread=%u granule=%uK seed=%u",
        (unsigned)between(&w, 150, 400), (unsigned)between(&w, 0, 50), granules[between(&w, 0, 3)],
        (unsigned)between(&w, 1, 1000000));
    put(&w, " noise=%s:%.1f outliers=%.4f@500", chance(&w, 0.7) ? "gauss" : "uniform",
        rng_unit(&w.rng) * 5, rng_unit(&w.rng) * 0.01);
    for (uint32_t k = 1; k <= levels; k++) {
        if (k > 1) {
            /* The next level usually holds many more entries. Sometimes it only holds more bytes.
             */
            entry <<= between(&w, 0, 5);
            about = chance(&w, 0.85) ? about * log_between(&w, 2, 50)
                                     : (uint32_t)(reach * log_between(&w, 2, 50) / entry);
            about = about < 8 ? 8 : about > MOST_ENTRIES ? MOST_ENTRIES : about;
        }
        reach = put_level(&w, class, k, about, entry);
    }
    /* The memory has any size from the minimum for the outermost level to a terabyte. */
    const uint64_t range =
        chance(&w, 0.5) ? reach * between(&w, 12, 80) / 10 : GIB << between(&w, 3, 10);
    const uint64_t most = (uint64_t)MOST_RANGE_GIB * GIB;
    put(&w, " range=%lluM",
        (unsigned long long)(range < GIB    ? GIB
                             : range > most ? most
                                            : range) /
            MIB);
}
