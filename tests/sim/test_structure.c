/* test_structure.c: sets, ways, replacement and fill of simulated GPUs, against their own models:
 * right, or not sure, and never wrong.
 *
 * REACH_SEED=N runs the random GPU N alone, REACH_COUNT=N so many of them.
 */
#include "base/units.h"
#include "gpu/sim/sim_profiles.h"
#include "tests/sim/random_gpu.h"
#include "tests/sim/sim_measure.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANDOM_GPUS = 24, TEXT_BYTES = 8192 };

struct take {
    struct sim_measure m;
    struct sim_desc desc;
};

static struct take *measure(const char *text)
{
    struct take *t = calloc(1, sizeof *t);
    struct err err = {0};
    assert_non_null(t);
    if (sim_profiles_parse(text, &t->desc, &err) != STATUS_OK)
        fail_msg("%s: %s", text, err.text);
    if (sim_measure(text, DEPTH_FULL, NULL, NULL, &t->m) != STATUS_OK)
        print_message("# %s\n", t->m.err.text);
    return t;
}

static void put_away(struct take *t)
{
    sim_measure_free(&t->m);
    free(t);
}

/* The level of the model that this one is: the same entry, the same cost. NULL where none is. */
static const struct sim_level *model_of(const struct sim_desc *d, const struct tlb_level *l)
{
    const struct sim_level *found = NULL;
    for (uint32_t k = 0; k < d->level_count; k++) {
        const struct sim_level *s = &d->levels[k];
        if (!IS_KNOWN(l->entry_bytes) || l->entry_bytes.v * s->sectors != s->entry_bytes ||
            !IS_KNOWN(l->entries) ||
            fabs((double)l->entries.v / s->sectors - s->entries) > s->entries / 4.0 ||
            fabs(l->miss_penalty_cycles.v - s->miss_cycles) > fmax(3, s->miss_cycles / 8.0))
            continue;
        if (found)
            return NULL;
        found = s;
    }
    return found;
}

static uint32_t sets_with(const struct sim_level *s, uint32_t ways)
{
    uint32_t sets = 0;
    for (uint32_t i = 0; i < s->run_count; i++)
        sets += s->runs[i].ways == ways ? s->runs[i].count : 0;
    return sets;
}

/* Are the sets found just those of the model? */
static bool same_sets(const struct sim_level *s, const struct tlb_level *l)
{
    uint32_t sets = 0;
    for (uint32_t i = 0; i < s->run_count; i++)
        sets += s->runs[i].count;
    if (l->sets.v != sets)
        return false;
    for (uint32_t i = 0; i < l->run_count; i++)
        if (sets_with(s, l->runs[i].ways) != l->runs[i].sets)
            return false;
    return true;
}

struct tally {
    uint32_t levels, sets, replacements, fills, matched, wrong;
};

static void check_level(const char *text, const struct sim_level *s, const struct tlb_level *l,
                        struct tally *tally)
{
    tally->matched += 1;
    if (IS_KNOWN(l->sets)) {
        tally->sets += 1;
        if (!same_sets(s, l))
            tally->wrong++, print_error("WRONG level %u: %u sets, %u of %u ways\n%s", l->level,
                                        l->sets.v, l->runs[0].sets, l->runs[0].ways, text);
    }
    if (IS_KNOWN(l->victim_entries) && l->victim_entries.v != 0)
        tally->wrong++, print_error("WRONG level %u: %u victim entries for %u\n%s", l->level,
                                    l->victim_entries.v, 0, text);
    if (l->replacement != REPLACEMENT_UNKNOWN) {
        tally->replacements += 1;
        if ((l->replacement == REPLACEMENT_LRU) != (s->policy == SIM_LRU))
            tally->wrong++, print_error("WRONG level %u: replacement %s\n%s", l->level,
                                        replacement_name(l->replacement), text);
    }
    if (l->fill != FILL_UNKNOWN) {
        tally->fills += 1;
        if ((l->fill == FILL_PARTS) != (s->sectors > 1))
            tally->wrong++,
                print_error("WRONG level %u: filled %s\n%s", l->level, fill_name(l->fill), text);
    }
    if (IS_KNOWN(l->tag_bytes) && l->tag_bytes.v != s->entry_bytes)
        tally->wrong++, print_error("WRONG level %u: an entry of %llu\n%s", l->level,
                                    (unsigned long long)l->tag_bytes.v, text);
}

static void check_all(const char *text, struct tally *tally)
{
    struct take *t = measure(text);
    for (uint32_t k = 0; k < t->m.fp.level_count; k++) {
        const struct sim_level *s = model_of(&t->desc, &t->m.fp.levels[k]);
        tally->levels += 1;
        if (s)
            check_level(text, s, &t->m.fp.levels[k], tally);
    }
    put_away(t);
}

static void random_gpus_are_right_or_not_sure(void **state)
{
    (void)state;
    const char *seed_text = getenv("REACH_SEED");
    const char *count_text = getenv("REACH_COUNT");
    const uint64_t first = seed_text ? strtoull(seed_text, NULL, 10) : 1;
    const uint64_t count = seed_text    ? 1
                           : count_text ? strtoull(count_text, NULL, 10)
                                        : RANDOM_GPUS;
    static char text[TEXT_BYTES];
    struct tally tally = {0};

    for (uint64_t seed = first; seed < first + count; seed++) {
        const struct random_gpu_class class = {.random_victims = seed % 2 == 0, .most_levels = 3};
        random_gpu(seed, &class, text, sizeof text);
        print_message("# REACH_SEED=%llu\n", (unsigned long long)seed);
        check_all(text, &tally);
    }
    if (tally.wrong > 0)
        fail_msg("%u numbers are wrong", tally.wrong);
    print_message("# %u levels, %u as modelled; known: sets of %u, replacement of %u, fill of %u\n",
                  tally.levels, tally.matched, tally.sets, tally.replacements, tally.fills);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_gpus_are_right_or_not_sure),
    };
    return cmocka_run_group_tests_name("structure of a level", tests, NULL, NULL) ? EXIT_FAILURE
                                                                                  : EXIT_SUCCESS;
}
