/* test_sim_desc.c: the fields of a description are read. An invalid description is refused, and the
 * error contains its place. Every profile is a valid description. */
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
    const char *text =
        "name=Toy-1 cc=8.6 sms=6 smids=0-2,8,10,12 memory=16G l2cache=6M range=32G "
        "granule=64K clock=1410000 latency=200 spread=7 noise=uniform:2.5 "
        "outliers=0.01@4000 l1=24@64K/2;policy=random;sectors=4;sets=8x2+4x2;miss=11"
        " l2=512@2M/0,1,12:2,8,10;sets=8x64;hash=xor;miss=120;miss_ns=1.5;walkers=3 "
        "plateau=700.5 sm_gbps=20 read_noise=0.01 seed=99 uuid=SIM-1 serial=7 driver=580.1 "
        "frame=32M@1.87 sides=4K@195 far_side=10,12 data_l1=124K@33000 data_l2=60M@9300 "
        "l1d=192@128;sets=4x48;miss=150 array=256K const=16@64;miss=100 const_hit=17 "
        "clock_pair=8 l2fill=64 l2line=128 l2keeps=2 memory_miss=440 tail=0.09@400 "
        "page_tables=512M@300 shared=29,32x4+2,128,228K/227K clusters=16,200/33,22 "
        "gpc=0-2:8,10,12 memory_ns=450 neighbor=30000@500000 neighbor_pages=200 "
        "neighbor_level=2 reclock=50000@0.74 coupled=0.9 pcie=5@16 domains=2@3 "
        "link=3@8 host_memory=64G host_nodes=2@20 peer=not-permitted "
        "host-pinned=51.3/4@2075,64K,2048+100,8192+350,24";
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
    assert_string_equal(d.uuid, "SIM-1");
    assert_true(d.frame_bytes == 32 * MIB && d.scattered_factor == 1.87);
    assert_true(d.side_granule_bytes == 4 * KIB && d.far_cycles == 195);
    assert_true(!d.side_of_sm[3] && d.side_of_sm[4] && d.side_of_sm[5] && d.gpc_of_sm[5] == 1);
    assert_true(d.data_l1_bytes == 124 * KIB && d.data_l1_gbps == 33000);
    assert_true(d.data_l2_bytes == 60 * MIB && d.data_l2_gbps == 9300);
    assert_true(d.l1d.entries == 192 && d.l1d.runs[0].ways == 4 && d.l1d.miss_cycles == 150);
    assert_true(d.constant.entry_bytes == 64 && d.constant_cycles == 17 && d.clock_cycles == 8);
    assert_true(d.l2_fill_bytes == 64 && d.l2_line_bytes == 128 && d.memory_cycles == 440);
    assert_true(d.l2_keeps == SIM_L2_KEEPS_YOUNG && d.tail_share == 0.09 && d.tail_cycles == 400);
    assert_true(d.page_table_bytes == 512 * MIB && d.page_table_cycles == 300);
    assert_true(d.shared.banks == 32 && d.shared.conflict_cycles == 2 &&
                d.shared.sm_bytes == 228 * KIB && d.shared.block_bytes == 227 * KIB);
    assert_true(d.clusters.largest == 16 && d.clusters.own_cycles == 33 && d.memory_ns == 450);
    assert_true(d.neighbor_loads == 30000 && d.neighbor_cycles == 500000 &&
                d.neighbor_pages == 200 && d.neighbor_level == 2);
    assert_true(d.reclock_loads == 50000 && d.reclock_factor == 0.74 && d.coupled == 0.9);
    assert_true(d.pcie_generation == 5 && d.pcie_lanes == 16 && d.link_lanes == 8);
    assert_true(d.domains == 2 && d.domain_sms == 3 && d.host_memory_bytes == 64 * GIB);
    assert_true(d.host_nodes == 2 && d.far_node_gbps == 20);
    assert_int_equal(d.kinds[MEMORY_PEER].refused, REASON_NOT_PERMITTED);
    assert_true(d.kinds[MEMORY_HOST_PINNED].gbps == 51.3 &&
                d.kinds[MEMORY_HOST_PINNED].gpu_miss_cycles == 350 &&
                d.kinds[MEMORY_HOST_PINNED].miss_ns == 24);
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

static void profiles_have_what_is_published(void **state)
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

/* Returns whether docs/simulated-gpus.md has a row with `field` in a section about this profile. */
static bool names_field(const char *page, const char *profile, const char *field, int length)
{
    char name[64], code[64];
    bool found = false;
    (void)snprintf(name, sizeof name, " %s", profile);
    (void)snprintf(code, sizeof code, "`%.*s", length, field);
    for (const char *section = strstr(page, "\n## "); section && !found;) {
        const char *const next = strstr(section + 1, "\n## ");
        const char *const heading = strstr(section, name);
        const char *at = strchr(section + 1, '\n');
        while (heading && heading < at && !found && (at = strstr(at + 1, code)) &&
               (!next || at < next))
            found = strchr("`.", at[strlen(code)]) != NULL;
        section = next;
    }
    return found;
}

/* Each field that a description sets has a row, and each published or measured value a source. */
static void the_page_has_the_source_of_each_field(void **state)
{
    static char page[1 << 16];
    FILE *const file = fopen("docs/simulated-gpus.md", "re");
    uint32_t n = 0;
    (void)state;
    assert_non_null(file);
    assert_true(fread(page, 1, sizeof page - 1, file) > 1000);
    assert_int_equal(fclose(file), 0);
    assert_null(strstr(page, "| published |  |"));
    assert_null(strstr(page, "| measured |  |"));
    const struct sim_profile *all = sim_profiles(&n);
    assert_false(names_field(page, "k80", "l2fill", 6));
    for (uint32_t i = 0; i < n; i++) {
        for (const char *p = all[i].description; *p; p += strcspn(p, " "), p += strspn(p, " ")) {
            const int length = (int)strcspn(p, "=");
            if (strncmp(p, "name=", 5) != 0 && strncmp(p, "cc=", 3) != 0 &&
                !names_field(page, all[i].name, p, length))
                fail_msg("%s says nothing of %.*s", all[i].name, length, p);
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
        cmocka_unit_test(damaged_text_never_crashes),
        cmocka_unit_test(profiles_have_what_is_published),
        cmocka_unit_test(the_page_has_the_source_of_each_field),
        cmocka_unit_test(a_profile_can_be_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
