/* test_sim_desc.c: descriptions are read and written back exactly. An invalid description is
 * refused, and the error contains its place. Every profile is a valid description. */
#include "base/rng.h"
#include "base/units.h"
#include "gpu/sim/sim_desc.h"
#include "gpu/sim/sim_profiles.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

static const char designs_example[] =
    "sms=13 l1=16@128K/sm l2=65@2M/0,5:1,6:2,7,10:3,8,11:4,9,12 l3=1032@2M/gpu memory=12G";

static void reads_the_example(void **state)
{
    (void)state;
    struct sim_desc d;
    struct err err = {0};
    if (sim_desc_parse(designs_example, NULL, &d, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    assert_int_equal(d.sm_count, 13);
    assert_int_equal(d.memory_bytes, 12 * GIB);
    assert_int_equal(d.level_count, 3);
    assert_int_equal(d.levels[0].instance_count, 13);
    assert_int_equal(d.levels[0].entries, 16);
    assert_int_equal(d.levels[0].entry_bytes, 128 * KIB);
    assert_int_equal(d.levels[1].instance_count, 5);
    assert_int_equal(d.levels[1].instance_of_sm[12], 4);
    assert_int_equal(d.levels[1].instance_of_sm[5], 0);
    assert_int_equal(d.levels[2].instance_count, 1);
    assert_int_equal(d.levels[2].walkers, 1);
    assert_int_equal(sim_desc_range(&d), 48 * GIB);
}

static void reads_every_field(void **state)
{
    (void)state;
    struct sim_desc d;
    struct err err = {0};
    const char *text = "name=Toy-1 cc=8.6 sms=6 smids=0-2,8,10,12 memory=16G l2cache=6M range=32G "
                       "granule=64K clock=1410000 latency=200 spread=7 noise=uniform:2.5 "
                       "outliers=0.01@4000 l1=24@64K/2;policy=random;sectors=4;sets=8x2+4x2;miss=11"
                       " l2=512@2M/0,1,12:2,8,10;sets=8x64;hash=xor;miss=120;miss_ns=1.5;walkers=3 "
                       "plateau=700.5 sm_gbps=20 read_noise=0.01 seed=99";
    if (sim_desc_parse(text, NULL, &d, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    assert_string_equal(d.name, "Toy-1");
    assert_int_equal(d.cc_major * 10 + d.cc_minor, 86);
    assert_int_equal(d.sm_ids[5], 12);
    assert_int_equal(d.range_bytes, 32 * GIB);
    assert_int_equal(d.granule_bytes, 64 * KIB);
    assert_int_equal(d.clock_khz, 1410000);
    assert_int_equal(d.noise, SIM_NOISE_UNIFORM);
    assert_true(d.noise_cycles == 2.5 && d.outlier_share == 0.01 && d.outlier_cycles == 4000);
    assert_int_equal(d.levels[0].policy, SIM_RANDOM);
    assert_int_equal(d.levels[0].sectors, 4);
    assert_int_equal(d.levels[0].run_count, 2);
    assert_int_equal(d.levels[0].runs[1].ways, 4);
    assert_int_equal(d.levels[0].instance_of_sm[5], 2);
    assert_int_equal(d.levels[1].hash, SIM_HASH_XOR);
    assert_int_equal(d.levels[1].instance_of_sm[5], 0);
    assert_int_equal(d.levels[1].walkers, 3);
    assert_true(d.levels[1].miss_ns == 1.5 && d.plateau_gbps == 700.5);
    assert_int_equal(d.seed, 99);
}

static void refuses_with_the_place(void **state)
{
    static const struct {
        const char *text;
        const char *says;
    } bad[] = {
        {"", "sms="},
        {"sms=4 l1=4@2M/sm", "memory="},
        {"sms=4 memory=1G", "l1="},
        {"sms=0 memory=1G l1=4@2M/sm", "at least one SM"},
        {"sms=513 memory=1G l1=4@2M/sm", "too large"},
        {"sms=4 sms=4 memory=1G l1=4@2M/sm", "repeated"},
        {"sms=4 memory=1G l2=4@2M/sm", "previous level"},
        {"memory=1G l1=4@2M/sm sms=4", "sms="},
        {"sms=4 memory=1G l1=4@2M", "sharing"},
        {"sms=4 memory=1G l1=0@2M/sm", "at least one entry"},
        {"sms=4 memory=1G l1=4@2Q/sm", "4K"},
        {"sms=4 memory=1G l1=4@2M,sm", "sharing"},
        {"sms=4 memory=1G l1=4@1K/sm", "4K"},
        {"sms=4 memory=1G l1=4@2M/0", "at least one SM"},
        {"sms=4 memory=1G l1=4@2M/0,1:2", "every SM must be in a group"},
        {"sms=4 memory=1G l1=4@2M/0,1:1,2,3", "one group only"},
        {"sms=4 memory=1G l1=4@2M/0,1:2,3,4", "not an SM"},
        {"sms=4 memory=1G l1=4@2M/3-0", "reversed"},
        {"sms=4 memory=1G l1=4@2M/sm;sets=3", "add up"},
        {"sms=4 memory=1G l1=4@2M/sm;sets=2x0", "at least one way"},
        {"sms=4 memory=1G l1=6@2M/sm;sets=2x3;hash=xor", "power of two"},
        {"sms=4 memory=1G l1=4@2M/sm;sectors=0", "sectors"},
        {"sms=4 memory=1G l1=4@2M/sm;recent=1;policy=random", "recent"},
        {"sms=4 memory=1G l1=4@2M/sm;recent=1;sectors=2", "recent"},
        {"sms=4 memory=1G l1=64@2M/sm;recent=1", "recent"},
        {"sms=4 memory=1G l1=4@2M/sm;walkers=0", "walker"},
        {"sms=4 memory=1G l1=4@2M/sm;policy=mru", "unknown option"},
        {"sms=4 memory=1G l1=4@2M/sm;policy=cycle:5", "a set lacks"},
        {"sms=4 memory=1G l1=4@2M/sm;policy=cycle:0", "from 1"},
        {"sms=4 memory=1G l1=64@2M/sm;policy=cycle:5", "a set lacks"},
        {"sms=4 memory=1G l1=8@2M/sm;sets=2x4;block=3", "block="},
        {"sms=4 memory=1G l1=8@2M/sm;sets=2x4;block=2;hash=xor", "block="},
        {"sms=4 memory=1G l1=4@2M/sm sides=100@5", "multiple of 128"},
        {"sms=4 memory=1G l1=4@2M/sm sides=4K", "@<cycles>"},
        {"sms=4 memory=1G l1=4@2M/sm sides=4K@9 far_side=3-4", "not an SM"},
        {"sms=4 memory=1G l1=4@2M/sm shared=29,32x4+2", "expected cycles"},
        {"sms=4 memory=1G l1=4@2M/sm shared=0,32x4+2,128,64K/48K", "must have cycles"},
        {"sms=4 memory=1G l1=4@2M/sm shared=29,32x6+2,128,64K/48K", "banks of"},
        {"sms=4 memory=1G l1=4@2M/sm shared=29,32x4+2,128,48K/64K",
         "at most the shared memory of an SM"},
        {"sms=4 memory=1G l1=4@2M/sm clusters=1,9/3,20", "at least two"},
        {"sms=4 memory=1G l1=4@2M/sm clusters=17,9/3,20", "clusters"},
        {"sms=4 memory=1G l1=4@2M/sm gpc=0-2", "every SM must be in a group"},
        {"sms=4 memory=1G l1=4@2M/sms", "unexpected text"},
        {"sms=4 memory=1G l1=4@2M/sm colour=red", "unknown field"},
        {"sms=4 memory=1G l1=4@2M/sm noise=pink", "gauss"},
        {"sms=4 memory=1G l1=4@2M/sm noise=gauss:-1", "negative"},
        {"sms=4 memory=1G l1=4@2M/sm noise=gauss:nan", "number"},
        {"sms=4 memory=1G l1=4@2M/sm outliers=1.5@3", "too large"},
        {"sms=4 memory=1G l1=4@2M/sm cc=9", "cc=9.0"},
        {"sms=4 memory=1G l1=4@2M/sm name=a/b", "unexpected text"},
        {"sms=4 memory=1G l1=4@2M/sm name=", "a name of"},
        {"sms=4 memory=1G range=512M l1=4@2M/sm", "range="},
        {"sms=4 memory=32T l1=4@2M/sm", "16T"},
        {"sms=4 memory=16T l1=4@4K/sm", "too small"},
        {"sms=512 memory=1G l1=65536@2M/sm", "four million"},
        {"sms=4 smids=0-2 memory=1G l1=4@2M/sm", "one SM for each"},
        {"smids=0-2 sms=3 memory=1G l1=4@2M/sm", "before smids="},
        {"sms=4 memory=1G l1=4@2M/sm neighbor=0@5", "at least one load"},
        {"sms=4 memory=1G l1=4@2M/sm neighbor=5", "@<cycles>"},
        {"sms=4 memory=1G l1=4@2M/sm reclock=5@11", "too large"},
        {"sms=2 smids=5,4 memory=1G l1=4@2M/sm", "ascend"},
        {"sms=2 smids=5,512 memory=1G l1=4@2M/sm", "too large"},
        {"sms=4 memory=99999999999999999999 l1=4@2M/sm", "memory="},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct sim_desc d;
        struct err err = {0};
        enum status s = sim_desc_parse(bad[i].text, NULL, &d, &err);
        if (s != STATUS_INVALID_ARGUMENT || !strstr(err.text, bad[i].says))
            fail_msg("\"%s\": status %d, %s", bad[i].text, (int)s, err.text);
    }
}

static void says_where_it_stopped(void **state)
{
    (void)state;
    struct sim_desc d;
    struct err err = {0};
    assert_int_equal(sim_desc_parse("sms=4 memory=1G l1=4@2M/sm;mist=9", NULL, &d, &err),
                     STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "at character 28 (\"mist=9\")"));
    assert_non_null(strstr(err.text, "l1=4@2M/sm;mist=9"));
}

static double random_f64(struct rng *rng, double scale)
{
    return rng_below(rng, 4) == 0 ? (double)rng_below(rng, 100) : scale * rng_unit(rng);
}

static void random_sharing(struct rng *rng, uint32_t sms, struct sim_level *l)
{
    uint16_t renamed[REACH_MAX_SMS];
    uint32_t groups = 1 + (uint32_t)rng_below(rng, sms);
    uint32_t style = (uint32_t)rng_below(rng, 3);
    memset(renamed, 0xff, sizeof renamed);
    for (uint32_t i = 0; i < sms; i++) {
        uint32_t g = style == 0 ? (uint32_t)rng_below(rng, groups) : style == 1 ? i / groups : 0;
        if (renamed[g] == 0xffff)
            renamed[g] = (uint16_t)l->instance_count++;
        l->instance_of_sm[i] = renamed[g];
    }
}

static void random_level(struct rng *rng, uint32_t sms, struct sim_level *l)
{
    random_sharing(rng, sms, l);
    l->sectors = (uint32_t)1 << rng_below(rng, 6);
    l->entry_bytes = (uint64_t)l->sectors * 4096 * (1 + rng_below(rng, 5000));
    l->run_count = 1 + (uint32_t)rng_below(rng, SIM_MAX_RUNS);
    for (uint32_t r = 0; r < l->run_count; r++) {
        l->runs[r].ways = 1 + 8 * r + (uint32_t)rng_below(rng, 8);
        l->runs[r].count = (uint32_t)1 << rng_below(rng, 4);
        l->entries += l->runs[r].ways * l->runs[r].count;
    }
    l->policy = (enum sim_policy)rng_below(rng, SIM_CYCLE + 1);
    for (uint32_t i = 0; l->policy == SIM_CYCLE && i < 3; i++)
        l->cycle[l->cycle_count++] = (uint8_t)(1 + rng_below(rng, l->runs[0].ways));
    l->hash = l->run_count == 1 && rng_below(rng, 2) ? SIM_HASH_XOR
              : rng_below(rng, 2)                    ? SIM_HASH_SKEW
                                                     : SIM_HASH_MOD;
    if (l->run_count == 1 && l->hash == SIM_HASH_MOD && rng_below(rng, 2))
        l->block = (uint32_t)1 << rng_below(rng, 4);
    if (l->policy == SIM_LRU && l->sectors == 1)
        l->recent = (uint32_t)rng_below(rng, 4);
    l->miss_cycles = (uint32_t)rng_below(rng, 1000);
    l->miss_ns = rng_below(rng, 2) ? random_f64(rng, 30) : 0;
    l->walkers = 1 + (uint32_t)rng_below(rng, 4);
}

/* Makes any valid description. The struct is zeroed first, with its padding, so that its bytes can
 * be compared. */
static void random_desc(struct rng *rng, struct sim_desc *d)
{
    memset(d, 0, sizeof *d);
    if (rng_below(rng, 2))
        (void)snprintf(d->name, sizeof d->name, "gpu-%llu_x.y", (unsigned long long)rng_next(rng));
    d->sm_count = 1 + (uint32_t)rng_below(rng, rng_below(rng, 4) ? 20 : REACH_MAX_SMS);
    uint32_t gaps = rng_below(rng, 2) ? REACH_MAX_SMS - d->sm_count : 0;
    for (uint32_t i = 0, id = 0; i < d->sm_count; i++, id++) {
        uint32_t skip = (uint32_t)rng_below(rng, 2 + gaps / 8) % (gaps + 1);
        gaps -= skip;
        id += skip;
        d->sm_ids[i] = (uint16_t)id;
    }
    d->memory_bytes = 1 + rng_below(rng, 200 * GIB);
    d->range_bytes = rng_below(rng, 2) ? d->memory_bytes + rng_below(rng, 10 * GIB) : 0;
    d->l2_cache_bytes = rng_below(rng, 2) ? rng_below(rng, 100 * MIB) : 0;
    d->granule_bytes = rng_below(rng, 2) ? rng_below(rng, 4 * MIB) : 0;
    if (rng_below(rng, 2)) {
        d->frame_bytes = 1 + rng_below(rng, 64 * MIB);
        d->scattered_factor = 1 + random_f64(rng, 3);
    }
    if (rng_below(rng, 2)) {
        d->side_granule_bytes = 128 * (1 + rng_below(rng, 100));
        d->far_cycles = (uint32_t)rng_below(rng, 1000);
        for (uint32_t i = 0; i < d->sm_count; i++)
            d->side_of_sm[i] = (uint16_t)rng_below(rng, 2);
    }
    d->noise = (enum sim_noise)rng_below(rng, 3);
    d->noise_cycles = d->noise == SIM_NOISE_NONE ? 0 : random_f64(rng, 10);
    d->outlier_share = rng_below(rng, 2) ? rng_unit(rng) : 0;
    d->outlier_cycles = (uint32_t)rng_below(rng, 3000);
    d->plateau_gbps = random_f64(rng, 5000);
    d->sm_gbps = rng_below(rng, 2) ? random_f64(rng, 50) : 0;
    d->read_noise = rng_unit(rng);
    d->seed = rng_next(rng);
    d->cc_major = (uint32_t)rng_below(rng, 13);
    d->cc_minor = (uint32_t)rng_below(rng, 10);
    d->clock_khz = (uint32_t)rng_below(rng, 2000000);
    d->latency_cycles = (uint32_t)rng_below(rng, 1000);
    d->spread_cycles = (uint32_t)rng_below(rng, 50);
    if (rng_below(rng, 2)) {
        (void)snprintf(d->uuid, sizeof d->uuid, "SIM-%u", (unsigned)rng_below(rng, 1000));
        (void)snprintf(d->driver, sizeof d->driver, "580.%u", (unsigned)rng_below(rng, 1000));
        d->neighbor_loads = 1 + (uint32_t)rng_below(rng, 1000000);
        d->neighbor_cycles = (uint32_t)rng_below(rng, 1000000);
        d->reclock_loads = 1 + (uint32_t)rng_below(rng, 1000000);
        d->reclock_factor = rng_unit(rng);
        d->coupled = rng_unit(rng);
    }
    d->level_count = 1 + (uint32_t)rng_below(rng, SIM_MAX_LEVELS);
    for (uint32_t i = 0; i < d->level_count; i++)
        random_level(rng, d->sm_count, &d->levels[i]);
}

static void what_is_printed_is_read_back(void **state)
{
    (void)state;
    struct rng rng = {(uint64_t)time(NULL)};
    print_message("seed %llu\n", (unsigned long long)rng.state);
    for (int i = 0; i < 2000; i++) {
        static char text[SIM_DESC_TEXT_BYTES];
        static struct sim_desc x, y;
        struct err err = {0};
        random_desc(&rng, &x);
        sim_desc_print(&x, text, sizeof text);
        if (sim_desc_parse(text, NULL, &y, &err) != STATUS_OK)
            fail_msg("round %d: %s\n%s", i, err.text, text);
        if (memcmp(&x, &y, sizeof x) != 0)
            fail_msg("round %d: %s", i, text);
    }
}

static void damaged_text_never_crashes(void **state)
{
    (void)state;
    struct rng rng = {(uint64_t)time(NULL)};
    print_message("seed %llu\n", (unsigned long long)rng.state);
    const struct sim_profile *k80 = sim_profile_find("k80");
    static const char letters[] = "0123456789=:,;@/+x-. lsmgpukMGT";
    for (int i = 0; i < 20000; i++) {
        char text[1024];
        struct sim_desc d;
        struct err err = {0};
        (void)snprintf(text, sizeof text, "%s", k80->description);
        for (uint64_t n = 1 + rng_below(&rng, 4); n > 0; n--)
            text[rng_below(&rng, strlen(text))] = letters[rng_below(&rng, sizeof letters - 1)];
        if (sim_desc_parse(text, NULL, &d, &err) != STATUS_OK)
            assert_int_equal(err.status, STATUS_INVALID_ARGUMENT);
    }
}

static void profiles_describe_what_is_published(void **state)
{
    (void)state;
    uint32_t n = 0;
    const struct sim_profile *all = sim_profiles(&n);
    assert_int_equal(n, 8);
    for (uint32_t i = 0; i < n; i++) {
        struct sim_desc d;
        struct err err = {0};
        if (sim_profiles_parse(all[i].name, &d, &err) != STATUS_OK)
            fail_msg("%s: %s", all[i].name, err.text);
        assert_true(all[i].source_count > 0);
        for (uint32_t k = 0; k < all[i].source_count; k++) {
            const struct sim_source *s = &all[i].sources[k];
            if (s->evidence != SIM_GUESS && s->text[0] == '\0')
                fail_msg("%s: %s is %s, but where?", all[i].name, s->field,
                         s->evidence == SIM_PUBLISHED ? "published" : "measured");
        }
    }
    struct sim_desc k80;
    assert_int_equal(sim_profiles_parse("k80", &k80, NULL), STATUS_OK);
    assert_int_equal(k80.sm_count, 13);
    assert_int_equal(k80.levels[0].entries * k80.levels[0].entry_bytes, 2 * MIB);
    assert_int_equal(k80.levels[1].entries * k80.levels[1].entry_bytes, 130 * MIB);
    assert_int_equal(k80.levels[2].entries * k80.levels[2].entry_bytes, 2064 * MIB);
    assert_int_equal(
        k80.levels[0].miss_cycles + k80.levels[1].miss_cycles + k80.levels[2].miss_cycles, 241);
    struct sim_desc a100;
    assert_int_equal(sim_profiles_parse("a100-80g", &a100, NULL), STATUS_OK);
    assert_int_equal(a100.levels[1].instance_count, 14);
    assert_int_equal(a100.levels[1].entries * a100.levels[1].entry_bytes, 64 * GIB);
}

/* Returns whether one of the words of `fields` begins with this name. */
static bool names_field(const char *fields, const char *name, size_t length)
{
    while (*fields && strncmp(fields, name, length) != 0) {
        fields += strcspn(fields, " ");
        fields += strspn(fields, " ");
    }
    return *fields != '\0';
}

/* Each field that a description sets has a row with the source of its value. */
static void profiles_name_the_source_of_each_field(void **state)
{
    (void)state;
    uint32_t n = 0;
    const struct sim_profile *all = sim_profiles(&n);
    for (uint32_t i = 0; i < n; i++) {
        const char *p = all[i].description;
        while (*p) {
            size_t length = strcspn(p, "=");
            bool found = strncmp(p, "name", length) == 0 || strncmp(p, "cc", length) == 0;
            for (uint32_t k = 0; k < all[i].source_count && !found; k++)
                found = names_field(all[i].sources[k].field, p, length);
            if (!found)
                fail_msg("%s says nothing of %.*s", all[i].name, (int)length, p);
            p += strcspn(p, " ");
            p += strspn(p, " ");
        }
    }
}

static void a_profile_can_be_changed(void **state)
{
    (void)state;
    struct sim_desc d;
    struct err err = {0};
    assert_int_equal(sim_profiles_parse("h200 noise=none seed=3 l2=8@2M/gpu", &d, NULL), STATUS_OK);
    assert_int_equal(d.noise, SIM_NOISE_NONE);
    assert_int_equal(d.seed, 3);
    assert_int_equal(d.sm_count, 132);
    assert_int_equal(d.levels[1].entries, 8);
    assert_int_equal(sim_profiles_parse("k80 sms=4 l1=8@2M/sm", &d, NULL), STATUS_OK);
    assert_int_equal(d.level_count, 1);
    assert_int_equal(d.memory_bytes, 12 * GIB);
    assert_int_equal(sim_profiles_parse("k80 sms=4", &d, &err), STATUS_INVALID_ARGUMENT);
    assert_int_equal(sim_profiles_parse("h300", &d, &err), STATUS_NOT_FOUND);
    assert_non_null(strstr(err.text, "a100-80g"));
    assert_int_equal(sim_profiles_parse("  ", &d, &err), STATUS_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_the_example),
        cmocka_unit_test(reads_every_field),
        cmocka_unit_test(refuses_with_the_place),
        cmocka_unit_test(says_where_it_stopped),
        cmocka_unit_test(what_is_printed_is_read_back),
        cmocka_unit_test(damaged_text_never_crashes),
        cmocka_unit_test(profiles_describe_what_is_published),
        cmocka_unit_test(profiles_name_the_source_of_each_field),
        cmocka_unit_test(a_profile_can_be_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
