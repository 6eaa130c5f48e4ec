/* bench_files.c: see bench_files.h. */
#include "tests/unit/support/bench_files.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* State of one level while a walk grows page by page. */
struct counting {
    uint32_t in_set[BENCH_MAX_SETS];
    uint64_t entries; /* number of distinct entries that the walk touches */
    uint64_t lost;    /* number of these entries in sets that overflow */
    uint64_t last;    /* number of the last entry that was touched, plus one */
};

/* Returns the set of the `n`th entry. Each set gets one entry for each of its ways. */
static uint64_t spread(const struct bench_level *level, uint64_t n)
{
    const uint64_t others = level->sets - 1;
    const uint64_t place = n % (level->first_ways + others * level->ways);

    return place < level->first_ways ? 0 : 1 + (place - level->first_ways) % others;
}

static void count_page(const struct bench_level *level, uint64_t address_kib, struct counting *c)
{
    const uint64_t entry = address_kib / level->entry_kib;
    if (entry + 1 == c->last)
        return;
    c->last = entry + 1;
    const uint64_t set = level->plain_index ? entry % level->sets : spread(level, c->entries);
    const uint32_t ways = set == 0 ? level->first_ways : level->ways;
    c->entries += 1;
    c->in_set[set] += 1;
    if (c->in_set[set] == ways + 1)
        c->lost += ways + 1;
    else if (c->in_set[set] > ways)
        c->lost += 1;
}

static double mean_of(const struct bench_gpu *gpu, const struct counting *levels, uint64_t pages)
{
    double share = 1; /* share of loads that missed every nearer level */
    double mean = gpu->hit_cycles;

    for (uint32_t k = 0; k < gpu->level_count; k++) {
        share = fmin(share, (double)levels[k].lost / (double)pages);
        mean += share * gpu->levels[k].penalty_cycles;
    }
    return mean;
}

double bench_mean(const struct bench_gpu *gpu, uint64_t stride_kib, uint64_t pages)
{
    struct counting levels[BENCH_MAX_LEVELS] = {0};

    for (uint64_t p = 0; p < pages; p++) {
        for (uint32_t k = 0; k < gpu->level_count; k++)
            count_page(&gpu->levels[k], gpu->base_kib + p * stride_kib, &levels[k]);
    }
    return mean_of(gpu, levels, pages);
}

uint32_t bench_level_entries(const struct bench_gpu *gpu, uint32_t level)
{
    const struct bench_level *const l = &gpu->levels[level];
    struct counting c = {0};
    uint32_t pages = 0;

    while (c.lost == 0)
        count_page(l, gpu->base_kib + pages++ * l->entry_kib, &c);
    return pages - 1;
}

static double gauss(struct rng *rng)
{
    double sum = 0;
    for (int i = 0; i < 12; i++)
        sum += rng_unit(rng);
    return sum - 6;
}

/* Returns the number that the benchmark would print, rounded down to an integer. */
static unsigned long printed(struct bench_gpu *gpu, double cycles)
{
    cycles += gauss(&gpu->rng) * gpu->noise_cycles;
    if (rng_unit(&gpu->rng) < gpu->outlier_share)
        cycles += 40 * rng_unit(&gpu->rng);
    return (unsigned long)fmax(1, cycles);
}

/* A text that grows when lines are appended. */
struct text {
    char *at;
    size_t bytes, room;
};

static void put(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct text *t, const char *format, ...)
{
    va_list args;
    if (t->room - t->bytes < 256) {
        t->room = t->room ? t->room * 2 : 4096;
        t->at = realloc(t->at, t->room);
        if (!t->at)
            abort();
    }
    va_start(args, format);
    t->bytes += (size_t)vsnprintf(t->at + t->bytes, t->room - t->bytes, format, args);
    va_end(args);
}

static void add(struct bench_files *out, const char *name, const struct text *take)
{
    if (out->count == BENCH_MAX_FILES)
        abort();
    struct import_file *const file = &out->files[out->count];
    snprintf(out->names[out->count], sizeof out->names[0], "%s", name);
    /* Makes a copy of exact length, so that a sanitizer detects a read beyond the end. */
    char *const text = malloc(take->bytes ? take->bytes : 1);
    if (!text)
        abort();
    memcpy(text, take->at, take->bytes);
    free(take->at);
    *file = (struct import_file){out->names[out->count], text, take->bytes};
    out->count += 1;
}

void bench_curves(struct bench_gpu *gpu, uint64_t from_mib, uint64_t to_mib, uint64_t first_kib,
                  uint64_t last_kib, struct bench_files *out)
{
    const uint64_t from = from_mib * 1024 / last_kib * last_kib;
    const uint64_t rows = (to_mib * 1024 / last_kib * last_kib - from) / first_kib + 1;
    unsigned long *const values = calloc(rows * 24, sizeof *values);
    struct text t = {0};
    uint32_t columns = 0;
    char name[64];

    if (!values)
        abort();
    put(&t, "#Made-up GPU: cuda 9.1, reduction mode: avg\n#,");
    for (uint64_t s = first_kib; s <= last_kib; s *= 2, columns++) {
        struct counting levels[BENCH_MAX_LEVELS] = {0};
        const uint64_t most = (from + (rows - 1) * first_kib) / s;
        put(&t, "%llu,", (unsigned long long)s);
        for (uint64_t p = 1; p <= most; p++) {
            for (uint32_t k = 0; k < gpu->level_count; k++)
                count_page(&gpu->levels[k], gpu->base_kib + (p - 1) * s, &levels[k]);
            if (p * s >= from)
                values[(p * s - from) / first_kib * 24 + columns] =
                    printed(gpu, mean_of(gpu, levels, p));
        }
    }
    put(&t, "\n");
    for (uint64_t y = 0; y < rows; y++) {
        put(&t, "%g,", (double)(from + y * first_kib) / 1024);
        for (uint32_t c = 0; c < columns; c++) {
            if (values[y * 24 + c])
                put(&t, "%lu", values[y * 24 + c]);
            put(&t, ",");
        }
        put(&t, "\n");
    }
    free(values);
    snprintf(name, sizeof name, "TLB-Test-%llu-%llu-%llu-%llu.csv", (unsigned long long)from_mib,
             (unsigned long long)to_mib, (unsigned long long)first_kib,
             (unsigned long long)last_kib);
    add(out, name, &t);
}

/* Returns the share of the pages that SM i loses in one level. SM i walks its pages, SM k walks the
 * same number of other pages, and SM i walks its own pages again. */
static double lost_share(const struct bench_gpu *gpu, uint32_t level, uint64_t stride_kib,
                         uint32_t pages, bool shared)
{
    const struct bench_level *const l = &gpu->levels[level];
    struct counting c = {0};
    const uint32_t all = shared ? 2 * pages : pages;

    for (uint32_t p = 0; p < all; p++)
        count_page(l, gpu->base_kib + p * stride_kib, &c);
    return (double)c.lost / all;
}

void bench_sharing(struct bench_gpu *gpu, uint64_t stride_kib, uint32_t pages,
                   struct bench_files *out)
{
    struct text t = {0};
    char name[64];
    double low[BENCH_MAX_LEVELS];
    double high[BENCH_MAX_LEVELS];

    for (uint32_t l = 0; l < gpu->level_count; l++) {
        low[l] = lost_share(gpu, l, stride_kib, pages, false);
        high[l] = lost_share(gpu, l, stride_kib, pages, true);
    }
    put(&t, "#Made-up GPU: cuda 9.1\n, reduction mode: avg\n"
            "#----------- absolute values ---------------\n#   ");
    for (uint32_t i = 0; i < gpu->sm_count; i++)
        put(&t, "%03u ", i);
    put(&t, "\n");
    for (uint32_t i = 0; i < gpu->sm_count; i++) {
        const double distance = 20 * rng_unit(&gpu->rng);
        put(&t, "%03u ", i);
        for (uint32_t k = 0; k < gpu->sm_count; k++) {
            double mean = gpu->hit_cycles + gpu->sharing_offset;
            double share = 1;
            for (uint32_t l = 0; l < gpu->level_count; l++) {
                const uint16_t *const of = gpu->levels[l].group_of_sm;
                share = fmin(share, of[i] == of[k] ? high[l] : low[l]);
                mean += share * gpu->levels[l].penalty_cycles;
            }
            /* The distance of an SM from memory is the same in every test. */
            mean += (double)(i * 7 % 13) + 0 * distance;
            put(&t, "%lu ", printed(gpu, mean));
        }
        put(&t, "\n");
    }
    put(&t, "#----------- which SMs share TLB ---------------\n#  00\n00 .X  [1.5]\n");
    snprintf(name, sizeof name, "TLBsharing-%llu-%u.txt", (unsigned long long)stride_kib, pages);
    add(out, name, &t);
}

void bench_files_free(struct bench_files *take)
{
    for (size_t i = 0; i < take->count; i++) {
        char *text;
        memcpy(&text, &take->files[i].text, sizeof text);
        free(text);
    }
    take->count = 0;
}

/* Makes the level private, shared by groups of any sizes, or shared by the whole GPU. It is never
 * shared by fewer SMs than a nearer level. */
static void random_groups(struct rng *rng, struct bench_gpu *gpu, uint32_t level)
{
    uint16_t *const of = gpu->levels[level].group_of_sm;
    const uint64_t kind = rng_below(rng, 3);
    const uint32_t groups = 2 + (uint32_t)rng_below(rng, 5);

    for (uint32_t i = 0; i < gpu->sm_count; i++) {
        if (kind == 0)
            of[i] = (uint16_t)i;
        else if (kind == 1)
            of[i] = (uint16_t)rng_below(rng, groups);
        else
            of[i] = 0;
    }
}

static void random_level(struct rng *rng, uint64_t least_kib, uint64_t least_reach_kib,
                         struct bench_level *out)
{
    do {
        *out = (struct bench_level){.entry_kib = least_kib << rng_below(rng, 4)};
        out->sets = 1 + (uint32_t)rng_below(rng, rng_below(rng, 2) ? 8 : 130);
        out->ways = 2 + (uint32_t)rng_below(rng, 15);
        out->first_ways = out->ways + (rng_below(rng, 3) == 0 ? (uint32_t)rng_below(rng, 10) : 0);
    } while ((uint64_t)out->sets * out->ways < 8 || out->sets * out->ways > 1500 ||
             out->sets * out->ways * out->entry_kib < least_reach_kib);
    out->plain_index = rng_below(rng, 4) == 0 && out->first_ways == out->ways;
    out->penalty_cycles = rng_below(rng, 2) ? 6 + 20 * rng_unit(rng) : 20 + 300 * rng_unit(rng);
}

void bench_gpu_random(struct rng *rng, struct bench_gpu *out)
{
    static const double noises[] = {0, 0.2, 0.5, 1, 2, 5};
    uint64_t entry_kib = 64ULL << rng_below(rng, 6);
    uint64_t reach_kib = 0;
    uint32_t entries = 0;

    *out = (struct bench_gpu){.level_count = 1 + (uint32_t)rng_below(rng, BENCH_MAX_LEVELS)};
    out->hit_cycles = 150 + 300 * rng_unit(rng);
    out->noise_cycles = noises[rng_below(rng, sizeof noises / sizeof noises[0])];
    out->outlier_share = rng_below(rng, 2) ? 0 : 0.01;
    out->sm_count = 2 + (uint32_t)rng_below(rng, 60);
    out->sharing_offset = 60 * rng_unit(rng);
    for (uint32_t k = 0; k < out->level_count; k++) {
        struct bench_level *const l = &out->levels[k];
        uint32_t tries = 0;
        do {
            random_level(rng, entry_kib, 0, l);
        } while (
            (l->entry_kib * l->sets * l->ways < reach_kib * 2 || l->sets * l->ways < 2 * entries) &&
            ++tries < 1000);
        if (tries == 1000) {
            out->level_count = k;
            break;
        }
        entry_kib = l->entry_kib;
        entries = l->sets * (l->first_ways + 1);
        reach_kib = l->entry_kib * entries;
        random_groups(rng, out, k);
    }
    out->base_kib = rng_below(rng, 2) ? 0 : rng_below(rng, 64) * 64;
    out->rng.state = rng_next(rng);
}
