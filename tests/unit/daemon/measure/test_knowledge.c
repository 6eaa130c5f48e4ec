/* test_knowledge.c: a measurement is merged with the known fingerprint, replaces that fingerprint,
 * or must be repeated. */
#include "base/log.h"
#include "base/units.h"
#include "measure/knowledge.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static struct fingerprint known, out;
static struct knowledge k;

/* Makes a fingerprint of one level with this number of entries of 2 MiB; 0 means that the reach of
 * the level was not found. */
static struct fingerprint measured(uint32_t entries)
{
    struct fingerprint fp;

    fingerprint_init(&fp);
    fp.gpu = (struct gpu_identity){.uuid = "GPU-1", .sm_count = 8, .memory_bytes = GIB};
    fp.level_count = 1;
    fp.levels[0].level = 1;
    fp.beyond.probed_bytes = GIB;
    if (entries > 0) {
        fp.levels[0].entry_bytes = KNOWN_U64(2 * MIB);
        fp.levels[0].reach_bytes = KNOWN_U64(entries * 2 * MIB);
        fp.levels[0].onset_bytes = KNOWN_U64((entries + 1) * 2 * MIB);
    }
    return fp;
}

static int setup(void **state)
{
    (void)state;
    known = measured(16);
    known.throughput.plateau_gbps = KNOWN_F64(100);
    k = (struct knowledge){.known = &known};
    log_set_level(LOG_LEVEL_ERROR);
    return 0;
}

static enum status join(const struct fingerprint *fp)
{
    return knowledge_join(&k, fp, true, &out, NULL);
}

static void the_first_is_taken(void **state)
{
    const struct fingerprint fp = measured(16);

    (void)state;
    k.known = NULL;
    assert_int_equal(join(&fp), STATUS_OK);
    assert_string_equal(out.measurement_id, "");
}

static void one_that_says_nothing_is_inconclusive(void **state)
{
    const struct fingerprint fp = measured(0);

    (void)state;
    for (int i = 0; i < 4; i++) /* the fingerprint with the known reach is served */
        assert_int_equal(join(&fp), STATUS_INCONCLUSIVE);
    k.known = NULL;
    assert_int_equal(join(&fp), STATUS_INCONCLUSIVE);
}

/* If two undisturbed measurements in a row find no reach, the reach of this GPU cannot be measured,
 * and the result is accepted. */
static void no_reach_twice_is_an_answer(void **state)
{
    struct fingerprint fp = measured(0), other = measured(0);
    const struct fingerprint good = measured(16);

    (void)state;
    k.known = NULL;
    fp.levels[0].entry_bytes = KNOWN_U64(2 * MIB);
    other.levels[0].entry_bytes = KNOWN_U64(4 * MIB);
    fp.caches[CACHE_L1].size_bytes = KNOWN_U64(16384);
    fp.cache_count = CACHE_KIND_COUNT;
    assert_int_equal(join(&fp), STATUS_INCONCLUSIVE);
    assert_int_equal(join(&fp), STATUS_OK);
    assert_int_equal(out.caches[CACHE_L1].size_bytes.v, 16384);
    assert_false(IS_KNOWN(out.levels[0].reach_bytes));
    /* The second measurement is inconclusive if it has another entry size or another number of
     * levels. It is also inconclusive if a measurement under load was between the two. */
    k.unsettled = false;
    assert_int_equal(join(&fp), STATUS_INCONCLUSIVE);
    assert_int_equal(join(&other), STATUS_INCONCLUSIVE);
    other = fp;
    other.level_count = 2;
    other.levels[1] = (struct tlb_level){.level = 2};
    assert_int_equal(join(&fp), STATUS_INCONCLUSIVE);
    assert_int_equal(join(&other), STATUS_INCONCLUSIVE);
    assert_int_equal(join(&fp), STATUS_INCONCLUSIVE);
    assert_int_equal(knowledge_join(&k, &fp, false, &out, NULL), STATUS_INCONCLUSIVE);
    assert_int_equal(join(&fp), STATUS_INCONCLUSIVE);
    /* A reach that is found is accepted immediately. A later measurement without a reach does not
     * replace it. */
    assert_int_equal(join(&good), STATUS_OK);
    assert_int_equal(join(&fp), STATUS_INCONCLUSIVE);
    k.known = &good;
    for (int i = 0; i < 4; i++)
        assert_int_equal(join(&fp), STATUS_INCONCLUSIVE);
}

static void one_that_agrees_is_merged(void **state)
{
    const struct fingerprint fp = measured(16);

    (void)state;
    assert_int_equal(join(&fp), STATUS_OK);
    assert_true(IS_KNOWN(out.throughput.plateau_gbps));
    assert_string_not_equal(out.measurement_id, "");
}

static void a_contradiction_needs_a_second_one(void **state)
{
    const struct fingerprint first = measured(32), second = measured(32);

    (void)state;
    assert_int_equal(join(&first), STATUS_DISTURBED);
    assert_int_equal(join(&second), STATUS_OK);
    assert_int_equal(out.levels[0].reach_bytes.v, 64 * MIB);
    assert_false(IS_KNOWN(out.throughput.plateau_gbps));
    assert_string_not_equal(out.dropped.id, "");
}

static void another_contradiction_confirms_nothing(void **state)
{
    const struct fingerprint first = measured(32), second = measured(64), third = measured(64);

    (void)state;
    assert_int_equal(join(&first), STATUS_DISTURBED);
    assert_int_equal(join(&second), STATUS_DISTURBED);
    assert_int_equal(join(&third), STATUS_OK);
}

static void agreement_clears_a_suspicion(void **state)
{
    const struct fingerprint odd = measured(32), good = measured(16);

    (void)state;
    assert_int_equal(join(&odd), STATUS_DISTURBED);
    assert_int_equal(join(&good), STATUS_OK);
    assert_string_equal(out.dropped.id, "");
    assert_true(IS_KNOWN(out.throughput.plateau_gbps));
}

static void what_a_check_doubts_falls_at_once(void **state)
{
    const struct fingerprint fp = measured(32);

    (void)state;
    k.doubted = true;
    assert_int_equal(join(&fp), STATUS_OK);
    assert_string_not_equal(out.dropped.id, "");
}

/* In this case from a simulation, two measurements beside a load have the same wrong groups. */
static void beside_a_load_nothing_is_replaced(void **state)
{
    const struct fingerprint fp = measured(32);

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(knowledge_join(&k, &fp, false, &out, NULL), STATUS_DISTURBED);
    assert_false(k.suspected);
    k.doubted = true;
    assert_int_equal(knowledge_join(&k, &fp, false, &out, NULL), STATUS_OK);
}

/* In this case from a simulation, two measurements beside a load have an additional level, and both
 * lack its onset. */
static void two_open_levels_confirm_nothing(void **state)
{
    struct fingerprint fp = measured(16);

    (void)state;
    fp.level_count = 2;
    fp.levels[1].level = 2;
    for (int i = 0; i < 4; i++)
        assert_int_equal(join(&fp), STATUS_DISTURBED);
}

/* Makes a fingerprint of two complete levels. The SMs form `groups` groups. */
static struct fingerprint two_levels(uint32_t entries, uint32_t groups)
{
    struct fingerprint fp = measured(16);

    fp.depth = DEPTH_FULL;
    fp.level_count = 2;
    fp.levels[1] = measured(entries).levels[0];
    fp.levels[1].level = 2;
    fp.levels[0].shared_by = SHARED_SM;
    fp.levels[1].shared_by = SHARED_GROUP;
    fp.levels[1].sharing.group_count = groups;
    for (uint32_t sm = 0; sm < fp.gpu.sm_count; sm++)
        fp.levels[1].sharing.group_of_sm[sm] = (uint16_t)(sm % groups);
    return fp;
}

/* A first start beside other work served results without level 2, whose windows level is level 1.
 * Two measurements that find level 2 alike replace them beside the same work. */
static void beside_a_load_a_hidden_level_is_added(void **state)
{
    const struct fingerprint fp = two_levels(64, 2), other = two_levels(64, 4);
    struct fingerprint open = two_levels(64, 2);

    (void)state;
    known.depth = DEPTH_QUICK;
    known.beyond.probed_bytes = GIB;
    assert_int_equal(knowledge_join(&k, &fp, false, &out, NULL), STATUS_DISTURBED);
    assert_int_equal(knowledge_join(&k, &other, false, &out, NULL), STATUS_DISTURBED);
    assert_int_equal(knowledge_join(&k, &fp, false, &out, NULL), STATUS_DISTURBED);
    assert_int_equal(knowledge_join(&k, &fp, false, &out, NULL), STATUS_OK);
    assert_int_equal(out.level_count, 2);
    /* A level that is not complete is not enough, nor is a level that a full measurement did not
     * find. */
    open.levels[1].shared_by = SHARED_UNKNOWN;
    k = (struct knowledge){.known = &known};
    for (int i = 0; i < 3; i++)
        assert_int_equal(knowledge_join(&k, &open, false, &out, NULL), STATUS_DISTURBED);
    known.depth = DEPTH_FULL;
    for (int i = 0; i < 3; i++)
        assert_int_equal(knowledge_join(&k, &fp, false, &out, NULL), STATUS_DISTURBED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_first_is_taken, setup),
        cmocka_unit_test_setup(one_that_says_nothing_is_inconclusive, setup),
        cmocka_unit_test_setup(no_reach_twice_is_an_answer, setup),
        cmocka_unit_test_setup(one_that_agrees_is_merged, setup),
        cmocka_unit_test_setup(a_contradiction_needs_a_second_one, setup),
        cmocka_unit_test_setup(another_contradiction_confirms_nothing, setup),
        cmocka_unit_test_setup(agreement_clears_a_suspicion, setup),
        cmocka_unit_test_setup(what_a_check_doubts_falls_at_once, setup),
        cmocka_unit_test_setup(beside_a_load_nothing_is_replaced, setup),
        cmocka_unit_test_setup(two_open_levels_confirm_nothing, setup),
        cmocka_unit_test_setup(beside_a_load_a_hidden_level_is_added, setup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
