/* test_sim_mmu.c: the fast model gives the result of the plainest model for every access, and has
 * the patterns of the papers. */
#include "base/rng.h"
#include "base/units.h"
#include "gpu/sim/sim_mmu.h"
#include "gpu/sim/sim_profiles.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t seed(void)
{
    const char *given = getenv("TEST_SEED");
    const uint64_t s = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    print_message("TEST_SEED=%llu\n", (unsigned long long)s);
    return s;
}

static struct sim_desc described(const char *text)
{
    struct sim_desc d;
    struct err err = {0};
    if (sim_profiles_parse(text, &d, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    return d;
}

static struct sim_mmu *mmu_of(const char *text)
{
    struct sim_desc d = described(text);
    struct sim_mmu *mmu = sim_mmu_new(&d);
    assert_non_null(mmu);
    return mmu;
}

/* Returns the number of misses of level `level` in the third lap of a cyclic walk by SM `sm`. */
static uint32_t lap_misses(struct sim_mmu *mmu, uint32_t sm, uint64_t stride, uint32_t pages,
                           uint32_t level)
{
    uint32_t misses = 0;
    for (int lap = 0; lap < 3; lap++) {
        misses = 0;
        for (uint32_t i = 0; i < pages; i++)
            misses += sim_mmu_access(mmu, sm, i * stride) > level;
    }
    return misses;
}

/* ---- the plainest model: an unordered list of entries with the time of their last use ---- */

enum { PLAIN_ENTRIES = 512, PLAIN_INSTANCES = 8, PLAIN_LOADS = 30000 };

struct plain_level {
    uint64_t entry[PLAIN_INSTANCES][PLAIN_ENTRIES];
    uint64_t sectors[PLAIN_INSTANCES][PLAIN_ENTRIES];
    uint64_t used_at[PLAIN_INSTANCES]
                    [PLAIN_ENTRIES]; /* time of the last use; 0 if the place is empty */
    uint32_t set[PLAIN_INSTANCES][PLAIN_ENTRIES];
};

/* Pages are assigned to the sets in turn, while a set has ways left. */
static uint32_t plain_deal(const uint32_t *set_ways, uint32_t sets, uint64_t turn)
{
    for (uint32_t round = 0;; round++) {
        for (uint32_t set = 0; set < sets; set++) {
            if (round < set_ways[set] && turn-- == 0)
                return set;
        }
    }
}

/* The page number is cut into pieces with the length of a set number. The pieces are added without
 * carry. */
static uint32_t plain_fold(uint32_t sets, uint64_t entry)
{
    uint32_t bits = 0;
    uint32_t set = 0;
    while ((1u << bits) < sets)
        bits++;
    for (uint32_t bit = 0; sets > 1 && bit < 40; bit++)
        set ^= (uint32_t)(entry >> bit & 1) << bit % bits;
    return set;
}

static uint32_t plain_set(const struct sim_level *l, uint64_t entry, uint32_t *ways)
{
    uint32_t set_ways[PLAIN_ENTRIES] = {0};
    uint32_t sets = 0;
    for (uint32_t r = 0; r < l->run_count; r++) {
        for (uint32_t i = 0; i < l->runs[r].count; i++)
            set_ways[sets++] = l->runs[r].ways;
    }
    uint64_t skew = l->hash == SIM_HASH_SKEW ? entry / l->entries : 0;
    uint32_t set = l->hash == SIM_HASH_XOR
                       ? plain_fold(sets, entry)
                       : plain_deal(set_ways, sets, (entry + skew) % l->entries);
    *ways = set_ways[set];
    return set;
}

static bool plain_touch(struct plain_level *p, const struct sim_level *l, uint32_t sm, uint64_t va,
                        uint64_t now)
{
    uint32_t k = l->instance_of_sm[sm];
    uint64_t entry = va / l->entry_bytes;
    uint64_t bit = (uint64_t)1 << (va % l->entry_bytes / (l->entry_bytes / l->sectors));
    uint32_t ways;
    uint32_t set = plain_set(l, entry, &ways);
    uint32_t resident = 0;
    uint32_t oldest = PLAIN_ENTRIES;
    uint32_t empty = PLAIN_ENTRIES;
    for (uint32_t i = 0; i < PLAIN_ENTRIES; i++) {
        if (p->used_at[k][i] == 0) {
            empty = empty == PLAIN_ENTRIES ? i : empty;
            continue;
        }
        if (p->set[k][i] != set)
            continue;
        if (p->entry[k][i] == entry) {
            bool hit = p->sectors[k][i] & bit;
            p->sectors[k][i] |= bit;
            p->used_at[k][i] = now;
            return hit;
        }
        resident++;
        if (oldest == PLAIN_ENTRIES || p->used_at[k][i] < p->used_at[k][oldest])
            oldest = i;
    }
    uint32_t slot = resident == ways ? oldest : empty;
    p->entry[k][slot] = entry;
    p->sectors[k][slot] = bit;
    p->used_at[k][slot] = now;
    p->set[k][slot] = set;
    return false;
}

/* If the loads are divided into random pieces, and each piece is counted in one call, the misses
 * are the same. */
static void counts_the_same(const struct sim_desc *d, const struct sim_load *loads,
                            const uint8_t *missed, size_t count, struct rng *rng)
{
    struct sim_mmu *mmu = sim_mmu_new(d);
    uint8_t *counted = calloc(count, 1);
    assert_non_null(mmu);
    assert_non_null(counted);
    for (size_t at = 0; at < count;) {
        size_t part = 1 + rng_below(rng, rng_below(rng, 2) ? 5000 : 20);
        part = part < count - at ? part : count - at;
        sim_mmu_count(mmu, loads + at, part, counted + at);
        at += part;
    }
    assert_memory_equal(counted, missed, count);
    free(counted);
    sim_mmu_free(mmu);
}

static void equals_the_plainest_model(void **state)
{
    static const char *const texts[] = {
        "sms=4 memory=1G l1=16@64K/sm l2=65@2M/2;sets=17+8x6 l3=200@2M/gpu;sets=8x25;hash=skew",
        "sms=6 memory=1G l1=4@64K/2;sectors=4 l2=48@512K/0,3:1,2,4:5;sectors=8;sets=6x8",
        "sms=3 memory=1G l1=8@96K/sm l2=64@1M/gpu;sets=4x16;hash=xor l3=100@3M/gpu",
        "sms=2 memory=1G l1=100@128K/sm;sectors=2 l2=130@1M/gpu;sets=40+45x2",
        "sms=1 memory=1G l1=1@64K/sm l2=33@1M/sm;sets=33 l3=256@2M/sm;sets=32x8;hash=xor",
    };
    (void)state;
    static struct sim_load loads[PLAIN_LOADS];
    static uint8_t misses[PLAIN_LOADS];
    struct rng rng = {seed()};
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        struct sim_desc d = described(texts[t]);
        struct sim_mmu *mmu = sim_mmu_new(&d);
        struct plain_level *plain = calloc(SIM_MAX_LEVELS, sizeof *plain);
        assert_non_null(mmu);
        assert_non_null(plain);
        for (uint64_t now = 1; now <= PLAIN_LOADS; now++) {
            uint32_t sm = (uint32_t)rng_below(&rng, d.sm_count);
            /* Half of the loads are near an earlier load, so that every level has hits. */
            uint64_t span = rng_below(&rng, 2) ? GIB : (uint64_t)1 << (18 + rng_below(&rng, 11));
            uint64_t va = rng_below(&rng, span);
            uint32_t missed = sim_mmu_access(mmu, sm, va);
            uint32_t plainly = 0;
            while (plainly < d.level_count &&
                   !plain_touch(&plain[plainly], &d.levels[plainly], sm, va, now))
                plainly++;
            if (missed != plainly)
                fail_msg("\"%s\", access %llu: %u levels missed, plainly %u", texts[t],
                         (unsigned long long)now, missed, plainly);
            loads[now - 1] = (struct sim_load){va, sm};
            misses[now - 1] = (uint8_t)missed;
        }
        counts_the_same(&d, loads, misses, PLAIN_LOADS, &rng);
        free(plain);
        sim_mmu_free(mmu);
    }
}

/* ---- any one level: a list of entries for each set, newest first ---- */

enum { LIST_WAYS = 64, LIST_SETS = 64, LIST_LOADS = 3000, LIST_CASES = 150 };

struct list {
    uint64_t entry[LIST_WAYS + 1];
    uint64_t sectors[LIST_WAYS + 1];
    uint32_t count;
};

static void list_insert(struct list *s, uint32_t at, uint64_t entry, uint64_t sectors)
{
    for (uint32_t i = s->count++; i > at; i--) {
        s->entry[i] = s->entry[i - 1];
        s->sectors[i] = s->sectors[i - 1];
    }
    s->entry[at] = entry;
    s->sectors[at] = sectors;
}

static void list_remove(struct list *s, uint32_t at)
{
    s->count--;
    for (uint32_t i = at; i < s->count; i++) {
        s->entry[i] = s->entry[i + 1];
        s->sectors[i] = s->sectors[i + 1];
    }
}

static uint32_t list_find(const struct list *s, uint64_t entry)
{
    uint32_t i = 0;
    while (i < s->count && s->entry[i] != entry)
        i++;
    return i;
}

/* Moves the translation to the newest place of the list. */
static void list_renew(struct list *s, uint32_t at)
{
    const uint64_t entry = s->entry[at];
    const uint64_t sectors = s->sectors[at];
    list_remove(s, at);
    list_insert(s, 0, entry, sectors);
}

/* Makes room in a full set and inserts the translation. */
static void list_fill(struct list *s, const struct sim_level *l, uint32_t ways, struct rng *rng,
                      uint64_t entry, uint64_t bit)
{
    if (l->policy == SIM_RANDOM && s->count == ways) {
        const uint32_t slot = (uint32_t)rng_below(rng, ways);
        s->entry[slot] = entry;
        s->sectors[slot] = bit;
        return;
    }
    list_insert(s, l->policy == SIM_RANDOM ? s->count : 0, entry, bit);
    if (s->count > ways)
        list_remove(s, ways);
}

/* Returns whether the translation hits, in its set or among the recent entries. The recent entries
 * are also in order of use. */
static bool list_touch(struct list *s, struct list *recent, const struct sim_level *l,
                       uint32_t ways, struct rng *rng, uint64_t entry, uint64_t bit)
{
    const uint32_t at = list_find(s, entry);
    const uint32_t held = list_find(recent, entry);
    const bool is_recent = held < recent->count;
    if (is_recent)
        list_renew(recent, held);
    if (at < s->count) {
        const bool hit = s->sectors[at] & bit;
        s->sectors[at] |= bit;
        if (l->policy == SIM_LRU)
            list_renew(s, at);
        return hit;
    }
    if (is_recent)
        return true;
    list_fill(s, l, ways, rng, entry, bit);
    list_insert(recent, 0, entry, 0);
    if (recent->count > l->recent)
        list_remove(recent, l->recent);
    return false;
}

static struct sim_desc random_level(struct rng *rng, char *text, size_t text_bytes)
{
    static const char *const sharing[] = {"sm", "gpu", "2", "0,3:1,2,4:5"};
    static const char *const policies[] = {"lru", "lru", "fifo", "random"};
    static const uint32_t vector_ways[] = {8, 16};
    const bool vector = rng_below(rng, 2);
    const bool xor = rng_below(rng, 3) == 0;
    const uint32_t sets = xor? 2u << rng_below(rng, 4) : 1 + (uint32_t)rng_below(rng, 14);
    const uint32_t ways =
        vector ? vector_ways[rng_below(rng, 2)] : 1 + (uint32_t)rng_below(rng, LIST_WAYS - 1);
    const uint32_t wider = xor || vector ? 0 : (uint32_t)rng_below(rng, 3);
    const char *policy = policies[rng_below(rng, 4)];
    const uint32_t sectors = rng_below(rng, 4) == 0 ? 1u << rng_below(rng, 4) : 1;
    const uint32_t most = strcmp(policy, "lru") == 0 && sectors == 1 && ways <= 31 ? 20 : 1;
    char more[32] = "";
    if (wider > 0)
        (void)snprintf(more, sizeof more, "%ux%u+", ways + 1, wider);
    (void)snprintf(text, text_bytes,
                   "sms=6 memory=1G seed=%u l1=%u@192K/%s;policy=%s;hash=%s;sets=%s%ux%u;"
                   "sectors=%u;recent=%u",
                   (unsigned)rng_below(rng, 1000), sets * ways + wider * (ways + 1),
                   sharing[rng_below(rng, 4)], policy,
                   xor                 ? "xor"
                   : rng_below(rng, 2) ? "mod"
                                       : "skew",
                   more, ways, sets, sectors, (unsigned)rng_below(rng, most));
    return described(text);
}

static void any_level_equals_a_list(void **state)
{
    (void)state;
    struct rng rng = {seed()};
    struct list *sets = calloc(PLAIN_INSTANCES * LIST_SETS, sizeof *sets);
    assert_non_null(sets);
    for (uint32_t n = 0; n < LIST_CASES; n++) {
        static struct sim_load loads[LIST_LOADS];
        static uint8_t misses[LIST_LOADS];
        char text[256];
        const struct sim_desc d = random_level(&rng, text, sizeof text);
        const struct sim_level *l = &d.levels[0];
        struct list recent[PLAIN_INSTANCES];
        struct rng chooses = {d.seed + 1};
        struct sim_mmu *mmu = sim_mmu_new(&d);
        assert_non_null(mmu);
        memset(sets, 0, PLAIN_INSTANCES * LIST_SETS * sizeof *sets);
        memset(recent, 0, sizeof recent);
        for (uint32_t i = 0; i < LIST_LOADS; i++) {
            const uint64_t span = l->entry_bytes * l->entries;
            const uint64_t va = rng_below(&rng, rng_below(&rng, 2) ? 2 * span : span / 4 + 1);
            const uint32_t sm = (uint32_t)rng_below(&rng, d.sm_count);
            const uint32_t k = l->instance_of_sm[sm];
            const uint64_t bit = (uint64_t)1 << va % l->entry_bytes / (l->entry_bytes / l->sectors);
            uint32_t ways;
            const uint32_t set = plain_set(l, va / l->entry_bytes, &ways);
            const bool hit = list_touch(&sets[k * LIST_SETS + set], &recent[k], l, ways, &chooses,
                                        va / l->entry_bytes, bit);
            loads[i] = (struct sim_load){va, sm};
            misses[i] = !hit;
            if (sim_mmu_access(mmu, sm, va) != misses[i])
                fail_msg("\"%s\", load %u: %s", text, i, hit ? "should hit" : "should miss");
        }
        counts_the_same(&d, loads, misses, LIST_LOADS, &rng);
        sim_mmu_free(mmu);
    }
    free(sets);
}

/* Mei 2016, figure 8: one set of 17 ways and six sets of 8 ways overflow one after the other. A set
 * of w ways with one page too many misses w + 1 times in each lap. */
static void unequal_sets_overflow_one_by_one(void **state)
{
    (void)state;
    struct sim_mmu *mmu = mmu_of("k80");
    assert_int_equal(lap_misses(mmu, 0, 2 * MIB, 65, 1), 0);
    assert_int_equal(lap_misses(mmu, 0, 2 * MIB, 66, 1), 18);
    for (uint32_t more = 1; more <= 6; more++)
        assert_int_equal(lap_misses(mmu, 0, 2 * MIB, 66 + more, 1), 18 + 9 * more);
    assert_int_equal(lap_misses(mmu, 0, 2 * MIB, 100, 1), 100);
    sim_mmu_free(mmu);
}

/* The values are from Karnagel 2017, table 2. The public raw data saturates at 2320 MB, which is
 * 1160 pages. */
static void k80_levels_begin_where_published(void **state)
{
    (void)state;
    struct sim_mmu *mmu = mmu_of("k80");
    assert_int_equal(lap_misses(mmu, 3, 128 * KIB, 16, 0), 0);
    assert_int_equal(lap_misses(mmu, 3, 128 * KIB, 17, 0), 17);
    assert_int_equal(lap_misses(mmu, 3, 2 * MIB, 1032, 2), 0);
    assert_in_range(lap_misses(mmu, 3, 2 * MIB, 1033, 2), 1, 20);
    assert_int_equal(lap_misses(mmu, 3, 4 * MIB, 65, 1), 0);
    assert_int_equal(lap_misses(mmu, 3, 4 * MIB, 72, 1), 72);
    assert_int_equal(lap_misses(mmu, 3, 4 * MIB, 1032, 2), 0);
    assert_in_range(lap_misses(mmu, 3, 4 * MIB, 1033, 2), 1, 20);
    assert_true(lap_misses(mmu, 3, 2 * MIB, 1159, 2) < 1159);
    assert_int_equal(lap_misses(mmu, 3, 2 * MIB, 1160, 2), 1160);
    assert_int_equal(sim_mmu_cycles(mmu, 0), 241);
    assert_int_equal(sim_mmu_cycles(mmu, 3), 241 + 9 + 55 + 177);
    sim_mmu_free(mmu);
}

/* At half the stride, half of the loads miss, beginning at the same footprint. At twice the stride,
 * misses begin at twice the footprint (Karnagel 2017, figure 2). */
static void three_strides_show_the_boundary(void **state)
{
    (void)state;
    struct sim_mmu *mmu = mmu_of("sms=1 memory=4G l1=64@2M/sm");
    assert_int_equal(lap_misses(mmu, 0, 2 * MIB, 64, 0), 0);
    assert_int_equal(lap_misses(mmu, 0, 2 * MIB, 65, 0), 65);
    assert_int_equal(lap_misses(mmu, 0, MIB, 128, 0), 0);
    assert_int_equal(lap_misses(mmu, 0, MIB, 130, 0), 65);
    assert_int_equal(lap_misses(mmu, 0, 4 * MIB, 64, 0), 0);
    assert_int_equal(lap_misses(mmu, 0, 4 * MIB, 65, 0), 65);
    sim_mmu_free(mmu);
}

static void only_sharers_evict(void **state)
{
    (void)state;
    struct sim_desc d = described("sms=6 memory=4G l1=32@2M/0,3:1,4,5:2");
    struct sim_mmu *mmu = sim_mmu_new(&d);
    for (uint32_t pivot = 0; pivot < 6; pivot++) {
        for (uint32_t sm = 0; sm < 6; sm++) {
            for (uint64_t i = 0; i < 4; i++)
                (void)sim_mmu_access(mmu, sm, i * 2 * MIB);
            for (uint64_t i = 4; i < 40; i++)
                (void)sim_mmu_access(mmu, pivot, i * 2 * MIB);
            bool shared = d.levels[0].instance_of_sm[pivot] == d.levels[0].instance_of_sm[sm];
            assert_int_equal(sim_mmu_access(mmu, sm, 0) > 0, shared);
        }
    }
    sim_mmu_free(mmu);
}

static void a_sector_misses_without_evicting(void **state)
{
    (void)state;
    struct sim_mmu *mmu = mmu_of("sms=1 memory=4G l1=4@2M/sm;sectors=16");
    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(sim_mmu_access(mmu, 0, i * 2 * MIB), 1);
    assert_int_equal(sim_mmu_access(mmu, 0, 3 * 128 * KIB), 1);
    assert_int_equal(sim_mmu_access(mmu, 0, 3 * 128 * KIB + 64), 0);
    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(sim_mmu_access(mmu, 0, i * 2 * MIB), 0);
    sim_mmu_free(mmu);
}

/* Of random loads from n pages, the share e/n hits a level with e entries, for any policy and for
 * sets of any width. */
static void random_loads_hit_reach_over_region(void **state)
{
    static const char *const texts[] = {
        "sms=1 memory=8G l1=1024@2M/sm",
        "sms=1 memory=8G l1=1024@2M/sm;policy=random",
        "sms=1 memory=8G l1=1024@2M/sm;policy=random;sets=16x64",
        "sms=1 memory=8G l1=1024@2M/sm;sets=16x64;hash=xor",
    };
    enum { PAGES = 2048, LOADS = 40000 };
    (void)state;
    struct rng rng = {12345};
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        struct sim_mmu *mmu = mmu_of(texts[t]);
        uint32_t hits = 0;
        for (int i = -LOADS; i < LOADS; i++) {
            uint32_t missed = sim_mmu_access(mmu, 0, rng_below(&rng, PAGES) * 2 * MIB);
            hits += i >= 0 && missed == 0;
        }
        assert_true(fabs((double)hits / LOADS - 0.5) < 0.03);
        sim_mmu_free(mmu);
    }
}

/* In a cyclic walk that exceeds a level with random victims, some loads miss, and not all. */
static void random_policy_shows_in_a_cycle(void **state)
{
    (void)state;
    struct sim_mmu *mmu = mmu_of("sms=1 memory=4G l1=16@2M/sm;policy=random");
    assert_int_equal(lap_misses(mmu, 0, 2 * MIB, 16, 0), 0);
    uint32_t misses = 0;
    for (int i = 0; i < 50; i++)
        misses += lap_misses(mmu, 0, 2 * MIB, 18, 0);
    assert_true(misses > 0 && misses < 50 * 18 * 8 / 10);
    sim_mmu_free(mmu);
}

static void a_flush_forgets_everything(void **state)
{
    (void)state;
    struct sim_mmu *mmu =
        mmu_of("sms=2 memory=4G l1=8@2M/sm l2=64@2M/gpu;sectors=2 l3=100@4M/gpu;sets=50x2");
    for (int i = 0; i < 2; i++) {
        for (uint64_t page = 0; page < 40; page++)
            assert_int_equal(sim_mmu_access(mmu, 0, page * 4 * MIB), 3);
        assert_int_equal(sim_mmu_access(mmu, 1, 0), 1);
        sim_mmu_flush(mmu);
    }
    sim_mmu_free(mmu);
}

/* A level has eight sets of eight ways, and a buffer of recent entries beside the sets. An
 * overflowing set has nine pages. If the buffer holds all pages of the overflowing sets, nothing
 * misses. If one more set overflows, all pages of the overflowing sets miss in every lap. A buffer
 * of 16 looks like one more entry behind the sets, like on an H200. */
static void sets_overflow_into_those_that_missed_last(void **state)
{
    (void)state;
    static const uint32_t kept[] = {8, 9, 16, 17, 18, 26, 27};
    for (size_t n = 0; n < sizeof kept / sizeof kept[0]; n++) {
        char text[96];
        (void)snprintf(text, sizeof text, "sms=1 memory=1G l1=64@2M/sm;miss=50;sets=8x8;recent=%u",
                       kept[n]);
        for (uint32_t over = 0; over <= 8; over++) {
            struct sim_mmu *mmu = mmu_of(text);
            const uint32_t misses = lap_misses(mmu, 0, 2 * MIB, 64 + over, 0);
            assert_int_equal(misses, over * 9 <= kept[n] ? 0 : over * 9);
            sim_mmu_flush(mmu);
            assert_int_equal(sim_mmu_access(mmu, 0, 0), 1);
            sim_mmu_free(mmu);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_the_plainest_model),
        cmocka_unit_test(any_level_equals_a_list),
        cmocka_unit_test(unequal_sets_overflow_one_by_one),
        cmocka_unit_test(k80_levels_begin_where_published),
        cmocka_unit_test(three_strides_show_the_boundary),
        cmocka_unit_test(only_sharers_evict),
        cmocka_unit_test(a_sector_misses_without_evicting),
        cmocka_unit_test(random_loads_hit_reach_over_region),
        cmocka_unit_test(random_policy_shows_in_a_cycle),
        cmocka_unit_test(sets_overflow_into_those_that_missed_last),
        cmocka_unit_test(a_flush_forgets_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
