/* test_import_chips.c: imports files of GPUs that do not exist. Each conclusion must be right or
 * "not sure". REACH_SEED repeats a run. Each GPU has a seed of its own, which is printed on
 * failure. */
#include "tests/unit/support/bench_files.h"
#include "tests/unit/support/paper_gpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHIPS = 150, MAX_MIB = 990000 /* the benchmark prints exponents from 10^6 on */ };

/* Number of conclusions over all chips. This count is needed because an import without any
 * conclusion passes every other check. */
struct tally {
    uint32_t levels, seen, entries, sharing;
};

/* Makes the files of a search for this level. */
static void look_for(struct bench_gpu *gpu, uint32_t k, struct rng *rng, struct bench_files *files)
{
    const struct bench_level *const l = &gpu->levels[k];
    const uint64_t reach = l->entry_kib * bench_level_entries(gpu, k);
    const uint64_t all = l->entry_kib * ((uint64_t)l->sets * (l->first_ways + 2));
    const uint64_t wide = rng_below(rng, 3) == 0 ? 2 : 1;
    const uint64_t longest = l->entry_kib * 2 * wide;
    uint64_t from = reach / 1024 * (40 + rng_below(rng, 50)) / 100;
    uint64_t to = (all * 2 * wide + all / 2) / 1024 + longest / 256 + 1;

    if (from * 1024 < longest)
        from = (longest + 1023) / 1024;
    if (to > MAX_MIB || (to - from) * 1024 / (l->entry_kib / 2) > 12000)
        return;
    bench_curves(gpu, from, to, l->entry_kib / 2, longest, files);
    if (gpu->sm_count > 1 && rng_below(rng, 5) > 0)
        bench_sharing(gpu, l->entry_kib, bench_level_entries(gpu, k), files);
}

/* Makes the files of a search without any hint. */
static void look_anywhere(struct bench_gpu *gpu, struct rng *rng, struct bench_files *files)
{
    const uint64_t stride = 32ULL << rng_below(rng, 9);
    const uint64_t rows = 20 + rng_below(rng, 800);
    const uint64_t from = stride * 4 / 1024 + 1 + rng_below(rng, 64);

    bench_curves(gpu, from, from + stride * rows / 1024 + stride / 128 + 1, stride, stride * 4,
                 files);
}

static bool near(double told, double is, const struct bench_gpu *gpu)
{
    return fabs(told - is) <= 2.5 + 2 * gpu->noise_cycles + 0.1 * is;
}

static bool same_groups(const struct bench_gpu *gpu, uint32_t k, const struct sm_partition *p)
{
    const uint16_t *const of = gpu->levels[k].group_of_sm;
    for (uint32_t i = 0; i < gpu->sm_count; i++) {
        for (uint32_t j = 0; j < i; j++) {
            if ((of[i] == of[j]) != (p->group_of_sm[i] == p->group_of_sm[j]))
                return false;
        }
    }
    return true;
}

static bool sharing_is_right(const struct bench_gpu *gpu, uint32_t k, const struct tlb_level *told)
{
    const uint16_t *const of = gpu->levels[k].group_of_sm;
    bool alone = true;
    bool together = true;

    for (uint32_t i = 0; i < gpu->sm_count; i++) {
        for (uint32_t j = 0; j < i; j++) {
            alone = alone && of[i] != of[j];
            together = together && of[i] == of[j];
        }
    }
    switch (told->shared_by) {
    case SHARED_UNKNOWN:
        return true;
    case SHARED_SM:
        return alone;
    case SHARED_GPU:
        return together;
    case SHARED_GROUP:
        return !alone && !together && same_groups(gpu, k, &told->sharing);
    }
    return false;
}

/* Returns whether the walk at this footprint is as slow as possible, within the noise. */
static bool is_full(const struct bench_gpu *gpu, uint32_t k, uint64_t bytes)
{
    const struct bench_level *const l = &gpu->levels[k];
    double most = gpu->hit_cycles;
    for (uint32_t i = 0; i <= k; i++)
        most += gpu->levels[i].penalty_cycles;
    return bench_mean(gpu, l->entry_kib, bytes / 1024 / l->entry_kib) >=
           most - fmax(3 + 5 * gpu->noise_cycles, 0.12 * l->penalty_cycles);
}

/* Returns NULL if the found level can be the GPU's level k, otherwise the name of the field that
 * differs. */
static const char *why_not(const struct bench_gpu *gpu, uint32_t k, const struct tlb_level *told)
{
    const struct bench_level *const l = &gpu->levels[k];
    const uint32_t entries = bench_level_entries(gpu, k);
    const uint64_t entry_bytes = l->entry_kib * 1024;

    if (IS_KNOWN(told->entry_bytes) && told->entry_bytes.v != entry_bytes)
        return "entry_bytes";
    if (IS_KNOWN(told->miss_penalty_cycles) &&
        !near(told->miss_penalty_cycles.v, l->penalty_cycles, gpu))
        return "miss_penalty_cycles";
    if (IS_KNOWN(told->entries) && told->entries.v != entries)
        return "entries";
    if (IS_KNOWN(told->reach_bytes) && told->reach_bytes.v != entries * entry_bytes)
        return "reach_bytes";
    if (IS_KNOWN(told->onset_bytes) && told->onset_bytes.v != (entries + 1) * entry_bytes)
        return "onset_bytes";
    if (IS_KNOWN(told->saturation_bytes) && !is_full(gpu, k, told->saturation_bytes.v))
        return "saturation_bytes";
    if (!sharing_is_right(gpu, k, told))
        return "shared_by";
    return NULL;
}

static void describe(const struct bench_gpu *gpu, const struct fingerprint *fp)
{
    print_message("noise %.1f, outliers %.2f, base %llu KiB\n", gpu->noise_cycles,
                  gpu->outlier_share, (unsigned long long)gpu->base_kib);
    for (uint32_t k = 0; k < gpu->level_count; k++)
        print_message("  is:   %u entries of %llu KiB (%u x %u, first %u%s), %.1f cycles\n",
                      bench_level_entries(gpu, k), (unsigned long long)gpu->levels[k].entry_kib,
                      gpu->levels[k].sets, gpu->levels[k].ways, gpu->levels[k].first_ways,
                      gpu->levels[k].plain_index ? ", plain" : "", gpu->levels[k].penalty_cycles);
    for (uint32_t k = 0; k < fp->level_count; k++)
        print_message("  told: %u entries of %llu KiB, onset %llu KiB, full %llu KiB, %.1f cycles, "
                      "%s\n",
                      fp->levels[k].entries.v,
                      (unsigned long long)fp->levels[k].entry_bytes.v / 1024,
                      (unsigned long long)fp->levels[k].onset_bytes.v / 1024,
                      (unsigned long long)fp->levels[k].saturation_bytes.v / 1024,
                      fp->levels[k].miss_penalty_cycles.v, shared_by_name(fp->levels[k].shared_by));
    for (uint32_t i = 0; i < gpu->sm_count; i++) {
        print_message("  SM %u:", i);
        for (uint32_t k = 0; k < gpu->level_count; k++)
            print_message(" %u", gpu->levels[k].group_of_sm[i]);
        for (uint32_t k = 0; k < fp->level_count; k++)
            print_message(" (%u)", fp->levels[k].sharing.group_of_sm[i]);
        print_message("\n");
    }
    for (uint32_t i = 0; i < fp->conditions.note_count; i++)
        print_message("  note: %s\n", fp->conditions.notes[i]);
}

/* Each level that is found must be a level of the GPU, in the same order. */
static void check(const struct bench_gpu *gpu, const struct fingerprint *fp, uint64_t seed,
                  struct tally *tally)
{
    uint32_t next = 0;

    for (uint32_t t = 0; t < fp->level_count; t++) {
        const struct tlb_level *const told = &fp->levels[t];
        const char *first_reason = "no level left";
        uint32_t k = next;
        for (; k < gpu->level_count; k++) {
            const char *const reason = why_not(gpu, k, told);
            if (!reason)
                break;
            if (k == next)
                first_reason = reason;
        }
        if (k == gpu->level_count) {
            describe(gpu, fp);
            fail_msg("chip of seed %llu: level %u is wrong: %s", (unsigned long long)seed, t + 1,
                     first_reason);
        }
        next = k + 1;
        tally->seen += 1;
        tally->entries += IS_KNOWN(told->entries);
        tally->sharing += told->shared_by != SHARED_UNKNOWN;
    }
    tally->levels += gpu->level_count;
}

static void expect_method(bool known, struct evidence e, enum evidence_method method)
{
    assert_int_equal(e.method, known ? method : EVIDENCE_NONE);
}

/* Each known number has the files as its evidence. */
static void check_evidence(const struct fingerprint *fp)
{
    for (uint32_t k = 0; k < fp->level_count; k++) {
        const struct tlb_level *const l = &fp->levels[k];
        const struct level_evidence *const e = &l->evidence;
        expect_method(IS_KNOWN(l->entry_bytes), e->entry_bytes, EVIDENCE_MEAN_CURVES);
        expect_method(IS_KNOWN(l->reach_bytes), e->reach_bytes, EVIDENCE_MEAN_CURVES);
        expect_method(IS_KNOWN(l->saturation_bytes), e->saturation_bytes, EVIDENCE_MEAN_CURVES);
        expect_method(IS_KNOWN(l->miss_penalty_cycles), e->miss_penalty_cycles,
                      EVIDENCE_MEAN_CURVES);
        expect_method(l->shared_by != SHARED_UNKNOWN, e->shared_by, EVIDENCE_MEAN_PAIRS);
    }
}

static void one_chip(uint64_t seed, bool anywhere, struct tally *tally)
{
    static const struct import_options options = {.imported_at = 1};
    struct rng rng = {.state = seed};
    struct bench_files files = {0};
    struct observation_set set;
    struct fingerprint *const fp = calloc(1, sizeof *fp);
    struct bench_gpu gpu;
    struct err err = {0};

    assert_non_null(fp);
    bench_gpu_random(&rng, &gpu);
    for (uint32_t k = 0; k < gpu.level_count && !anywhere; k++)
        look_for(&gpu, k, &rng, &files);
    for (uint64_t i = anywhere ? 1 + rng_below(&rng, 3) : 0; i > 0; i--)
        look_anywhere(&gpu, &rng, &files);
    if (files.count > 0) {
        if (import_derive(files.files, files.count, &options, &set, fp, &err) != STATUS_OK)
            fail_msg("chip of seed %llu: %s", (unsigned long long)seed, err.text);
        assert_int_equal(fp->gpu.origin, ORIGIN_IMPORTED);
        check(&gpu, fp, seed, tally);
        check_evidence(fp);
        observation_set_free(&set);
    }
    bench_files_free(&files);
    free(fp);
}

static void chips_looked_at_well(void **state)
{
    struct rng rng = {.state = paper_seed("chips looked at well", 20170611)};
    struct tally tally = {0};

    (void)state;
    for (int i = 0; i < CHIPS; i++)
        one_chip(rng_next(&rng), false, &tally);
    print_message("# of %u levels %u seen, %u with entries, %u with sharing\n", tally.levels,
                  tally.seen, tally.entries, tally.sharing);
    assert_true(tally.seen * 2 > tally.levels);
    assert_true(tally.entries * 20 > tally.levels);
    assert_true(tally.sharing * 4 > tally.levels);
}

static void chips_looked_at_anywhere(void **state)
{
    struct rng rng = {.state = paper_seed("chips looked at anywhere", 20170612)};
    struct tally tally = {0};

    (void)state;
    for (int i = 0; i < CHIPS; i++)
        one_chip(rng_next(&rng), true, &tally);
    print_message("# of %u levels %u seen, %u with entries\n", tally.levels, tally.seen,
                  tally.entries);
    assert_true(tally.levels > CHIPS);
}

/* Repeats the chip with the seed in REACH_CHIP, with and without hints for the search. */
static void one_chip_again(void **state)
{
    const char *const text = getenv("REACH_CHIP");
    struct tally tally = {0};

    (void)state;
    if (!text)
        skip();
    one_chip(strtoull(text, NULL, 0), false, &tally);
    one_chip(strtoull(text, NULL, 0), true, &tally);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_chip_again),
        cmocka_unit_test(chips_looked_at_well),
        cmocka_unit_test(chips_looked_at_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
