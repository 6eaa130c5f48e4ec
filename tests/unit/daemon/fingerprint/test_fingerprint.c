/* test_fingerprint.c: a fingerprint that is written as JSON and read back keeps its values and its
 * id. The check refuses every value that breaks an invariant. */
#include "tests/unit/support/as_json.h"
#include "tests/unit/support/any_fingerprint.h"
#include "base/rng.h"
#include "base/units.h"
#include "fingerprint/fingerprint.h"
#include "fingerprint/fingerprint_check.h"
#include "fingerprint/fingerprint_json.h"
#include "fingerprint/fingerprint_read.h"
#include "tests/share.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROUND_TRIPS = 400, SANITIZED_ROUND_TRIPS = 100 };
enum { SPOILINGS = 3000, SANITIZED_SPOILINGS = 800, SPOILINGS_EACH = 5 };

/* compares two structs of evidence */
#define SAME_EVIDENCE(a, b)                                                                        \
    same_evidence((const struct evidence *)&(a), (const struct evidence *)&(b),                    \
                  sizeof(a) / sizeof(struct evidence))

static void same_evidence(const struct evidence *a, const struct evidence *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(a[i].method, b[i].method);
        assert_int_equal(a[i].repeats, b[i].repeats);
        assert_true(!(a[i].margin < b[i].margin) && !(a[i].margin > b[i].margin));
    }
}

static void same_evidence_everywhere(const struct fingerprint *a, const struct fingerprint *b)
{
    for (uint32_t i = 0; i < a->level_count; i++)
        SAME_EVIDENCE(a->levels[i].evidence, b->levels[i].evidence);
    SAME_EVIDENCE(a->topology.evidence, b->topology.evidence);
    for (uint32_t g = 0; g < a->topology.partition.group_count; g++)
        SAME_EVIDENCE(a->topology.groups[g].evidence, b->topology.groups[g].evidence);
    SAME_EVIDENCE(a->throughput.evidence, b->throughput.evidence);
    for (uint32_t i = 0; i < a->throughput.curve_count; i++)
        SAME_EVIDENCE(a->throughput.curve[i].evidence, b->throughput.curve[i].evidence);
    for (uint32_t i = 0; i < a->throughput.rate_count; i++) {
        const struct access_rate *const r = &a->throughput.rates[i];
        const struct access_rate *const q = &b->throughput.rates[i];
        SAME_EVIDENCE(r->evidence, q->evidence);
        for (uint32_t k = 0; k < r->point_count; k++)
            SAME_EVIDENCE(r->points[k].evidence, q->points[k].evidence);
    }
}

static void same_f64(struct maybe_f64 a, struct maybe_f64 b)
{
    assert_int_equal(a.known, b.known);
    assert_int_equal(a.reason, b.reason);
    assert_true(!(a.v < b.v) && !(a.v > b.v));
}

static void same_rates(const struct throughput *a, const struct throughput *b)
{
    assert_int_equal(a->rate_count, b->rate_count);
    for (uint32_t i = 0; i < a->rate_count; i++) {
        const struct access_rate *const r = &a->rates[i];
        const struct access_rate *const q = &b->rates[i];
        assert_int_equal(r->access, q->access);
        assert_int_equal(r->transaction_bytes, q->transaction_bytes);
        same_f64(r->plateau_gbps, q->plateau_gbps);
        assert_int_equal(r->point_count, q->point_count);
        for (uint32_t k = 0; k < r->point_count; k++) {
            assert_true(r->points[k].region_bytes == q->points[k].region_bytes);
            same_f64(r->points[k].naive_gbps, q->points[k].naive_gbps);
            same_f64(r->points[k].by_group_gbps, q->points[k].by_group_gbps);
        }
    }
}

/* Converts the value to text and back, like the store does. */
static json_t *through_text(json_t *take)
{
    char *const text = json_dumps(take, JSON_COMPACT);
    json_t *again;

    assert_non_null(text);
    again = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(again);
    free(text);
    json_decref(take);
    return again;
}

static void test_round_trip(void **state)
{
    struct rng r = {.state = 1120};

    (void)state;
    print_message("seed %llu\n", (unsigned long long)r.state);
    for (uint32_t i = 0; i < test_share(ROUND_TRIPS, SANITIZED_ROUND_TRIPS); i++) {
        struct fingerprint a;
        struct fingerprint b;
        struct err err = {0};
        char id_a[FINGERPRINT_ID_BYTES];
        char id_b[FINGERPRINT_ID_BYTES];
        json_t *json;

        any_fingerprint(&r, &a);
        if (fingerprint_check(&a, &err) != STATUS_OK)
            fail_msg("%s", err.text);
        json = through_text(AS_JSON(fingerprint_write, &a, NULL));
        memset(&b, 0xa5, sizeof(b));
        if (fingerprint_from_json(json, &b, &err) != STATUS_OK)
            fail_msg("%s", err.text);
        assert_int_equal(fingerprint_id(&a, id_a, NULL), STATUS_OK);
        assert_int_equal(fingerprint_id(&b, id_b, NULL), STATUS_OK);
        assert_string_equal(id_a, id_b);
        assert_string_equal(json_string_value(json_object_get(json, "id")), id_a);
        assert_true(fingerprint_structure_hash(&a) == fingerprint_structure_hash(&b));
        assert_memory_equal(a.topology.partition.group_of_sm, b.topology.partition.group_of_sm,
                            sizeof(a.topology.partition.group_of_sm));
        same_evidence_everywhere(&a, &b);
        same_rates(&a.throughput, &b.throughput);
        assert_int_equal(a.topology.disabled.listed, b.topology.disabled.listed);
        assert_memory_equal(a.topology.disabled.candidates, b.topology.disabled.candidates,
                            sizeof(a.topology.disabled.candidates));
        assert_string_equal(a.topology.disabled.signature, b.topology.disabled.signature);
        assert_memory_equal(a.conditions.notes, b.conditions.notes, sizeof(a.conditions.notes));
        json_decref(json);
    }
}

/* Changes or drops one leaf of the document, at any place. */
static void change_leaf(struct rng *r, json_t *json)
{
    const char *key;
    json_t *value;
    size_t pick;

    if (json_is_array(json) && json_array_size(json) > 0) {
        const size_t i = (size_t)rng_below(r, json_array_size(json));
        json_t *const inner = json_array_get(json, i);
        if (json_is_object(inner) || json_is_array(inner))
            change_leaf(r, inner);
        else
            json_array_set_new(json, i, json_integer((json_int_t)rng_below(r, 1000)));
        return;
    }
    if (!json_is_object(json) || json_object_size(json) == 0)
        return;
    pick = (size_t)rng_below(r, json_object_size(json));
    json_object_foreach(json, key, value)
    {
        if (pick-- > 0)
            continue;
        if (json_is_object(value) || json_is_array(value))
            change_leaf(r, value);
        else if (rng_below(r, 3) == 0)
            json_object_del(json, key);
        else if (rng_below(r, 2))
            json_object_set_new(json, key, json_integer((json_int_t)(rng_next(r) >> 2)));
        else
            json_object_set_new(json, key, json_string("x"));
        return;
    }
}

/* A damaged document is refused with an error message, or gives a fingerprint that passes its
 * check. In make check, a document is damaged in several places, one at a time. */
static void test_spoilt(void **state)
{
    struct rng r = {.state = 4711};
    const uint32_t spoilings = test_share(SPOILINGS, SANITIZED_SPOILINGS);
    json_t *whole = NULL;
    uint32_t refused = 0;

    (void)state;
    print_message("seed %llu\n", (unsigned long long)r.state);
    for (uint32_t i = 0; i < spoilings; i++) {
        struct fingerprint a;
        struct fingerprint b;
        struct err err = {0};
        json_t *json;
        enum status s;

        if (i % test_part(1, SPOILINGS_EACH, SPOILINGS_EACH) == 0) {
            any_fingerprint(&r, &a);
            json_decref(whole);
            whole = AS_JSON(fingerprint_write, &a, NULL);
        }
        json = json_deep_copy(whole);
        change_leaf(&r, json);
        s = fingerprint_from_json(json, &b, &err);
        if (s == STATUS_OK) {
            assert_int_equal(fingerprint_check(&b, &err), STATUS_OK);
        } else {
            assert_int_equal(s, STATUS_CORRUPT);
            assert_true(strlen(err.text) > 10);
            refused++;
        }
        json_decref(json);
    }
    json_decref(whole);
    assert_in_range(refused, spoilings / 4, spoilings);
}

/* A small valid fingerprint: three SMs in two groups, and one level. */
static void small(struct fingerprint *fp)
{
    fingerprint_init(fp);
    (void)snprintf(fp->gpu.uuid, sizeof(fp->gpu.uuid), "SIM-1");
    fp->gpu.sm_count = 3;
    fp->gpu.origin = ORIGIN_SIMULATED;
    fp->level_count = 1;
    fp->levels[0].level = 1;
    fp->levels[0].entry_bytes = KNOWN_U64(2 * MIB);
    fp->levels[0].reach_bytes = KNOWN_U64(64 * MIB);
    fp->levels[0].onset_bytes = KNOWN_U64(66 * MIB);
    fp->levels[0].saturation_bytes = KNOWN_U64(70 * MIB);
    fp->topology.partition.group_count = 2;
    fp->topology.partition.group_of_sm[0] = 0;
    fp->topology.partition.group_of_sm[1] = 1;
    fp->topology.partition.group_of_sm[2] = 0;
    fp->topology.groups[0].sm_count = 2;
    fp->topology.groups[1].sm_count = 1;
    fp->topology.nominal_group_sms = KNOWN_U32(2);
    fp->topology.full_sm_count = KNOWN_U32(4);
    fp->topology.disabled = (struct disabled_sms){
        .sm_count = KNOWN_U32(1),
        .unit_sms = KNOWN_U32(1),
        .lost_groups = KNOWN_U32(0),
        .signature = "2x2/3",
        .candidate_count = KNOWN_U32(2),
        .listed = 2,
        .candidates = {{3}, {1}},
    };
    fp->throughput.curve_count = 2;
    fp->throughput.curve[0].region_bytes = GIB;
    fp->throughput.curve[1].region_bytes = 2 * GIB;
    fp->throughput.rate_count = 2;
    fp->throughput.rates[0].access = ACCESS_READ;
    fp->throughput.rates[0].transaction_bytes = 32;
    fp->throughput.rates[0].point_count = 2;
    fp->throughput.rates[0].points[0].region_bytes = GIB;
    fp->throughput.rates[0].points[1].region_bytes = 2 * GIB;
    fp->throughput.rates[0].points[1].by_group_gbps = KNOWN_F64(5);
    fp->throughput.rates[1].access = ACCESS_WRITE;
    fp->throughput.rates[1].transaction_bytes = 32;
    fp->throughput.rates[1].plateau_gbps = KNOWN_F64(7);
}

static void expect_corrupt(const struct fingerprint *fp, const char *named)
{
    struct err err = {0};

    assert_int_equal(fingerprint_check(fp, &err), STATUS_CORRUPT);
    if (!strstr(err.text, named))
        fail_msg("\"%s\" does not name %s", err.text, named);
}

/* The variable is static, because a sanitizer gives each expansion of the macro its own place on
 * the stack. */
#define EXPECT_CORRUPT(change, named)                                                              \
    do {                                                                                           \
        static struct fingerprint fp;                                                              \
        small(&fp);                                                                                \
        change;                                                                                    \
        expect_corrupt(&fp, named);                                                                \
    } while (0)

static void test_check(void **state)
{
    struct fingerprint ok;

    (void)state;
    small(&ok);
    assert_int_equal(fingerprint_check(&ok, NULL), STATUS_OK);
    EXPECT_CORRUPT(fp.level_count = FINGERPRINT_MAX_LEVELS + 1, "tlb.levels");
    EXPECT_CORRUPT(fp.levels[0].level = 0, "levels[0].level");
    EXPECT_CORRUPT(fp.levels[0].entries.v = 3, "levels[0].entries");
    EXPECT_CORRUPT(fp.levels[0].reach_bytes.v = MIB, "levels[0].reach_bytes");
    EXPECT_CORRUPT(fp.levels[0].saturation_bytes.v = 65 * MIB, "levels[0].saturation_bytes");
    EXPECT_CORRUPT(fp.levels[0].onset_bytes.v = UINT64_MAX, "levels[0].onset_bytes");
    EXPECT_CORRUPT(fp.levels[0].miss_penalty_cycles = KNOWN_F64(NAN), "miss_penalty_cycles");
    EXPECT_CORRUPT(fp.levels[0].miss_penalty_cycles = KNOWN_F64(-1.0), "miss_penalty_cycles");
    EXPECT_CORRUPT(fp.levels[0].miss_penalty_cycles.v = 1.0, "miss_penalty_cycles");
    EXPECT_CORRUPT(fp.levels[0].confidence = KNOWN_F64(1.5), "levels[0].confidence");
    EXPECT_CORRUPT(fp.levels[0].ways = NOT_OBSERVABLE_U32(REASON_NONE), "ways");
    EXPECT_CORRUPT(fp.levels[0].ways.known = (enum known)7, "ways");
    EXPECT_CORRUPT(fp.levels[0].ways.reason = REASON_COUNT, "ways");
    EXPECT_CORRUPT(fp.levels[0].entry_bytes.reason = REASON_NO_CONTRAST, "entry_bytes");
    EXPECT_CORRUPT(fp.levels[0].shared_by = (enum shared_by)9, "shared_by");
    EXPECT_CORRUPT(fp.levels[0].replacement = (enum replacement)9, "replacement");
    EXPECT_CORRUPT((fp.level_count = 2, fp.levels[1].level = 1), "levels[1].level");
    EXPECT_CORRUPT(
        (fp.level_count = 2, fp.levels[1].level = 2, fp.levels[1].reach_bytes = KNOWN_U64(MIB)),
        "levels[1].reach_bytes");
    EXPECT_CORRUPT(fp.levels[0].evidence.sets = evidence_make(EVIDENCE_TRACES, 3, 0.5),
                   "levels[0].sets");
    EXPECT_CORRUPT(fp.levels[0].evidence.reach_bytes.repeats = 1, "levels[0].reach_bytes");
    EXPECT_CORRUPT(fp.topology.groups[1].evidence.random_read_gbps =
                       evidence_make(EVIDENCE_RANDOM_READS, 3, 1),
                   "groups[1].random_read_gbps");
    EXPECT_CORRUPT(fp.throughput.curve[1].evidence.by_sm_gbps.margin = 2, "curve[1].by_sm_gbps");
    EXPECT_CORRUPT(fp.topology.partition.group_of_sm[0] = 1, "lowest SM");
    EXPECT_CORRUPT(fp.topology.partition.group_of_sm[5] = 2, "lowest SM");
    EXPECT_CORRUPT(fp.topology.partition.group_of_sm[5] = 1, "more SMs than");
    EXPECT_CORRUPT(fp.topology.partition.group_of_sm[1] = FINGERPRINT_NO_GROUP, "without SMs");
    EXPECT_CORRUPT(fp.topology.partition.group_count = REACH_MAX_GROUPS + 1, "groups");
    EXPECT_CORRUPT(fp.topology.groups[1].sm_count = 2, "groups[1].sm_count");
    EXPECT_CORRUPT(fp.topology.confidence = KNOWN_F64(INFINITY), "topology.confidence");
    EXPECT_CORRUPT(fp.topology.disabled.sm_count.v = 2, "disabled.sm_count");
    EXPECT_CORRUPT(fp.topology.full_sm_count = UNKNOWN_U32(REASON_IRREGULAR), "disabled.sm_count");
    EXPECT_CORRUPT(fp.topology.full_sm_count.v = 2, "disabled.sm_count");
    EXPECT_CORRUPT(fp.topology.disabled.candidate_count.v = 1, "disabled.candidates");
    EXPECT_CORRUPT(fp.topology.disabled.listed = FINGERPRINT_MAX_CANDIDATES + 1,
                   "disabled.candidates");
    EXPECT_CORRUPT(fp.topology.disabled.candidates[0][0] = 4, "disabled.candidates");
    EXPECT_CORRUPT(fp.topology.disabled.candidates[0][0] = 1, "disabled.candidates");
    EXPECT_CORRUPT(fp.topology.disabled.sm_count = UNKNOWN_U32(REASON_IRREGULAR),
                   "disabled.candidates");
    EXPECT_CORRUPT(memset(fp.topology.disabled.signature, 'x', FINGERPRINT_SIGNATURE_BYTES),
                   "disabled.signature");
    EXPECT_CORRUPT(fp.windows.recommended_bytes.v = 1, "windows.recommended_bytes");
    EXPECT_CORRUPT((fp.windows.reach_bytes = KNOWN_U64(1), fp.windows.entry_bytes = KNOWN_U64(2)),
                   "windows.reach_bytes");
    EXPECT_CORRUPT(
        (fp.windows.reach_bytes = KNOWN_U64(1), fp.windows.recommended_bytes = KNOWN_U64(2)),
        "windows.recommended_bytes");
    EXPECT_CORRUPT(fp.throughput.curve_count = FINGERPRINT_MAX_CURVE + 1, "throughput.curve");
    EXPECT_CORRUPT(fp.throughput.curve[1].region_bytes = GIB, "curve[1].region_bytes");
    EXPECT_CORRUPT(fp.conditions.note_count = FINGERPRINT_MAX_NOTES + 1, "conditions.notes");
    EXPECT_CORRUPT((fp.conditions.note_count = 1, memset(fp.conditions.notes[0], 'x', 160)),
                   "notes");
    EXPECT_CORRUPT(memset(fp.conditions.arena, 'x', sizeof(fp.conditions.arena)), "arena");
    EXPECT_CORRUPT(fp.conditions.verdict = (enum verdict)3, "verdict");
    EXPECT_CORRUPT(memset(fp.gpu.uuid, 'x', sizeof(fp.gpu.uuid)), "gpu.uuid");
    EXPECT_CORRUPT(fp.gpu.sm_count = REACH_MAX_SMS + 1, "gpu.sm_count");
    EXPECT_CORRUPT(fp.gpu.origin = (enum origin)3, "gpu.origin");
    EXPECT_CORRUPT(fp.depth = DEPTH_COUNT, "depth");
    EXPECT_CORRUPT(fp.taken_at = -1, "taken_at");
}

static void test_check_rates(void **state)
{
    (void)state;
    EXPECT_CORRUPT(fp.throughput.rate_count = FINGERPRINT_MAX_RATES + 1, "throughput.rates");
    EXPECT_CORRUPT(fp.throughput.rates[1].access = ACCESS_COUNT, "rates[1].access");
    EXPECT_CORRUPT(fp.throughput.rates[0].transaction_bytes = 0, "rates[0].transaction_bytes");
    EXPECT_CORRUPT(fp.throughput.rates[0].transaction_bytes = 128, "rates[0].transaction_bytes");
    EXPECT_CORRUPT(fp.throughput.rates[1].access = ACCESS_READ, "rates[1].transaction_bytes");
    EXPECT_CORRUPT(fp.throughput.rates[0].access = ACCESS_WRITE, "rates[1].transaction_bytes");
    EXPECT_CORRUPT((fp.throughput.rates[0].access = ACCESS_WRITE,
                    fp.throughput.rates[0].transaction_bytes = 64),
                   "rates[1].transaction_bytes");
    EXPECT_CORRUPT(fp.throughput.rates[1].plateau_gbps.v = -1, "rates[1].plateau_gbps");
    EXPECT_CORRUPT(fp.throughput.rates[0].evidence.plateau_gbps =
                       evidence_make(EVIDENCE_RANDOM_READS, 3, 1),
                   "rates[0].plateau_gbps");
}

static void test_check_rate_points(void **state)
{
    (void)state;
    EXPECT_CORRUPT(fp.throughput.rates[1].point_count = FINGERPRINT_MAX_RATE_POINTS + 1,
                   "rates[1].points");
    EXPECT_CORRUPT(fp.throughput.rates[0].points[1].region_bytes = GIB,
                   "rates[0].points[1].region_bytes");
    EXPECT_CORRUPT(fp.throughput.rates[0].points[0].naive_gbps.v = 1,
                   "rates[0].points[0].naive_gbps");
    EXPECT_CORRUPT(fp.throughput.rates[0].points[0].by_group_gbps = KNOWN_F64(1),
                   "rates[0].points[0].by_group_gbps");
    EXPECT_CORRUPT(fp.throughput.rates[0].points[1].evidence.naive_gbps =
                       evidence_make(EVIDENCE_RANDOM_READS, 3, 1),
                   "rates[0].points[1].naive_gbps");
}

/* A document without the list of rates gives a fingerprint without rates, and not with an empty
 * list. */
static void test_check_contiguity(void **state)
{
    (void)state;
    EXPECT_CORRUPT(fp.contiguity.frame_bytes = KNOWN_U64(0), "contiguity.frame_bytes");
    EXPECT_CORRUPT(fp.contiguity.contiguous_miss_ns = KNOWN_F64(0), "contiguous_miss_ns");
    EXPECT_CORRUPT(fp.contiguity.scattered_miss_ns.v = 1, "contiguity.scattered_miss_ns");
    EXPECT_CORRUPT((fp.contiguity.contiguous_miss_ns = KNOWN_F64(2),
                    fp.contiguity.scattered_miss_ns = KNOWN_F64(1)),
                   "contiguity.scattered_miss_ns");
}

static void all_caches(struct fingerprint *fp)
{
    fp->cache_count = CACHE_KIND_COUNT;
    for (uint32_t k = 0; k < CACHE_KIND_COUNT; k++)
        fp->caches[k].kind = (enum cache_kind)k;
}

static void test_check_caches(void **state)
{
    (void)state;
    EXPECT_CORRUPT(fp.cache_count = 1, "caches");
    EXPECT_CORRUPT(fp.cache_count = CACHE_KIND_COUNT + 1, "caches");
    EXPECT_CORRUPT(fp.cache_count = CACHE_KIND_COUNT, "caches[1].kind");
    EXPECT_CORRUPT((fp.cache_count = CACHE_KIND_COUNT, fp.caches[0].line_bytes = KNOWN_U64(32),
                    fp.caches[0].sector_bytes = KNOWN_U64(64)),
                   "caches[0].sector_bytes");
    EXPECT_CORRUPT((all_caches(&fp), fp.caches[0].ways = KNOWN_U32(4)), "caches[0].ways");
    EXPECT_CORRUPT(fp.latency.far_cycles = KNOWN_F64(800), "latency.far_cycles");
}

/* A value that was not measured is not in the document, so new kinds of values do not change the
 * ids of older documents. */
static void test_check_l2(void **state)
{
    (void)state;
    EXPECT_CORRUPT(fp.l2.sides = KNOWN_U32(2), "l2.");
    EXPECT_CORRUPT(fp.l2.granule_bytes = KNOWN_U64(4096), "l2.granule_bytes");
    EXPECT_CORRUPT(fp.l2.atomic_far_cycles = KNOWN_F64(1), "l2.atomic");
    EXPECT_CORRUPT((fp.l2.sides = KNOWN_U32(2), fp.l2.granule_bytes = KNOWN_U64(4096),
                    fp.l2.atomic_near_cycles = KNOWN_F64(2), fp.l2.atomic_far_cycles = KNOWN_F64(1),
                    fp.l2.side_of_sm.group_count = 2, fp.l2.side_of_sm.group_of_sm[0] = 0,
                    fp.l2.side_of_sm.group_of_sm[1] = 1),
                   "l2.atomic_far_cycles");
}

static void test_check_shared(void **state)
{
    (void)state;
    EXPECT_CORRUPT(fp.shared.banks = KNOWN_U32(32), "shared.bank_bytes");
    EXPECT_CORRUPT((fp.shared.width_count = 2, fp.shared.widths[0].width_bytes = 8,
                    fp.shared.widths[1].width_bytes = 4),
                   "shared.widths");
    EXPECT_CORRUPT((fp.shared.stride_count = 1, fp.shared.strides[0].passes = KNOWN_U32(2)),
                   "shared.strides");
    EXPECT_CORRUPT(fp.clusters.largest = KNOWN_U32(1), "clusters.largest");
    EXPECT_CORRUPT(fp.clusters.gpcs = KNOWN_U32(1), "clusters.sms");
    EXPECT_CORRUPT((fp.clusters.size_count = 1, fp.clusters.sizes[0].sms = 2,
                    fp.clusters.sizes[0].clusters = KNOWN_U32(2),
                    fp.clusters.sizes[0].usable_sms = KNOWN_U32(3)),
                   "clusters.sizes");
    EXPECT_CORRUPT(fp.parallelism.loads_short = KNOWN_U32(8), "parallelism.loads_enough");
    EXPECT_CORRUPT(fp.parallelism.surface_count = 1, "parallelism.surface");
    EXPECT_CORRUPT(fp.parallelism.by_sms_count = 1, "parallelism.by_sms");
}

static void test_no_contiguity(void **state)
{
    struct fingerprint fp;
    json_t *json;

    (void)state;
    small(&fp);
    json = AS_JSON(fingerprint_write, &fp, NULL);
    assert_null(json_object_get(json, "contiguity"));
    json_decref(json);
    fp.contiguity.frame_bytes = UNKNOWN_U64(REASON_NO_CONTRAST);
    json = AS_JSON(fingerprint_write, &fp, NULL);
    assert_non_null(json_object_get(json, "contiguity"));
    json_decref(json);
}

static void test_no_rates(void **state)
{
    struct fingerprint fp;
    json_t *json;

    (void)state;
    small(&fp);
    fp.throughput.rate_count = 0;
    json = AS_JSON(fingerprint_write, &fp, NULL);
    assert_non_null(json);
    assert_null(json_object_get(json_object_get(json, "throughput"), "rates"));
    assert_null(json_object_get(json_object_get(json, "conditions"), "host_memory_bytes"));
    json_decref(json);
    fp.throughput.rate_count = FINGERPRINT_MAX_RATES + 1;
    assert_null(AS_JSON(fingerprint_write, &fp, NULL));
    fp.throughput.rate_count = 1;
    fp.throughput.rates[0].access = ACCESS_COUNT;
    assert_null(AS_JSON(fingerprint_write, &fp, NULL));
}

static void test_knows_nothing(void **state)
{
    struct fingerprint fp;
    struct fingerprint zero;
    struct fingerprint from_empty;
    char a[FINGERPRINT_ID_BYTES];
    char b[FINGERPRINT_ID_BYTES];
    json_t *json = json_object();

    (void)state;
    fingerprint_init(&fp);
    memset(&zero, 0, sizeof(zero));
    assert_int_equal(fingerprint_check(&fp, NULL), STATUS_OK);
    assert_int_equal(fingerprint_check(&zero, NULL), STATUS_OK);
    assert_int_equal(fingerprint_id(&fp, a, NULL), STATUS_OK);
    assert_int_equal(fingerprint_id(&zero, b, NULL), STATUS_OK);
    assert_string_equal(a, b); /* an absent reason means "not measured" */
    assert_int_equal(strlen(a), FINGERPRINT_ID_BYTES - 2);
    assert_memory_equal(a, "fp", 2);

    assert_int_equal(fingerprint_from_json(json, &from_empty, NULL), STATUS_OK);
    assert_int_equal(fingerprint_id(&from_empty, b, NULL), STATUS_OK);
    assert_string_equal(a, b); /* missing fields stay unknown */
    json_decref(json);
}

static void test_newer_release(void **state)
{
    struct fingerprint fp;
    struct fingerprint again;
    json_t *json;

    (void)state;
    small(&fp);
    json = AS_JSON(fingerprint_write, &fp, NULL);
    json_object_set_new(json, "forecast", json_string("sunny"));
    json_object_set_new(json_object_get(json, "windows"), "shape", json_array());
    json_object_set_new(json_object_get(json, "windows"), "reach_bytes_reason",
                        json_string("a-reason-of-tomorrow"));
    assert_int_equal(fingerprint_from_json(json, &again, NULL), STATUS_OK);
    assert_int_equal(again.windows.reach_bytes.known, MAYBE_UNKNOWN);
    assert_int_equal(again.windows.reach_bytes.reason, REASON_NOT_MEASURED);
    json_decref(json);
}

/* The origin decides whether a number may be cited, so all parts of a document must have the same
 * origin. */
static void test_origin_agrees(void **state)
{
    struct fingerprint fp;
    struct fingerprint again;
    struct err err = {0};
    json_t *json;

    (void)state;
    small(&fp);
    json = AS_JSON(fingerprint_write, &fp, NULL);
    assert_string_equal(json_string_value(json_object_get(json, "origin")), "simulated");
    json_object_set_new(json, "origin", json_string("measured"));
    assert_int_equal(fingerprint_from_json(json, &again, &err), STATUS_CORRUPT);
    assert_non_null(strstr(err.text, "origin"));
    json_decref(json);
}

static void test_layout(void **state)
{
    struct fingerprint fp;
    json_t *json;
    json_t *topology;
    json_t *disabled;
    json_t *lost;
    json_t *level;

    (void)state;
    small(&fp);
    fp.levels[0].shared_by = SHARED_GROUP;
    fp.levels[0].sharing = fp.topology.partition;
    fp.levels[0].entries = NOT_OBSERVABLE_U32(REASON_BEYOND_MEMORY);
    json = AS_JSON(fingerprint_write, &fp, NULL);
    topology = json_object_get(json, "topology");
    level = json_array_get(json_object_get(json_object_get(json, "tlb"), "levels"), 0);
    assert_string_equal(json_object_iter_key(json_object_iter(json)), "id");
    assert_true(
        json_equal(json_object_get(json_array_get(json_object_get(topology, "groups"), 0), "sms"),
                   json_array_get(json_object_get(level, "groups"), 0)));
    assert_int_equal(json_array_size(json_object_get(level, "groups")), 2);
    assert_string_equal(json_string_value(json_object_get(level, "shared_by")), "group");
    disabled = json_object_get(topology, "disabled");
    assert_int_equal(json_integer_value(json_object_get(disabled, "sm_count")), 1);
    assert_string_equal(json_string_value(json_object_get(disabled, "signature")), "2x2/3");
    assert_int_equal(json_array_size(json_object_get(disabled, "candidates")), 2);
    lost = json_object_get(disabled, "by_group");
    assert_int_equal(json_array_size(lost), 1);
    lost = json_array_get(lost, 0);
    assert_int_equal(json_integer_value(json_object_get(lost, "group")), 1);
    assert_int_equal(json_integer_value(json_object_get(lost, "sms")), 1);
    assert_true(json_is_null(json_object_get(level, "entries")));
    assert_string_equal(json_string_value(json_object_get(level, "entries_reason")),
                        "not-observable: beyond-memory");
    assert_string_equal(json_string_value(json_object_get(json, "taken_at")),
                        "1970-01-01T00:00:00Z");
    json_decref(json);
}

/* Noise does not change the structure of the chip, but a moved SM does. */
static void test_structure_hash(void **state)
{
    struct fingerprint a;
    struct fingerprint b;

    (void)state;
    small(&a);
    b = a;
    b.taken_at = 99;
    b.duration_ms = 5;
    b.levels[0].miss_penalty_cycles = KNOWN_F64(301.25);
    b.levels[0].confidence = KNOWN_F64(0.5);
    b.throughput.plateau_gbps = KNOWN_F64(1234.5);
    b.throughput.rates[1].plateau_gbps = KNOWN_F64(8);
    b.throughput.rate_count = 2;
    b.topology.groups[0].random_read_gbps = KNOWN_F64(9.0);
    b.topology.confidence = KNOWN_F64(0.75);
    b.conditions.sm_clock_khz = KNOWN_U32(1980000);
    (void)snprintf(b.gpu.driver_version, sizeof(b.gpu.driver_version), "999");
    b.levels[0].sets = KNOWN_U32(
        1); /* sets are not part of the structure, because only depth full requests them */
    b.levels[0].replacement = REPLACEMENT_LRU;
    assert_true(fingerprint_structure_hash(&a) == fingerprint_structure_hash(&b));
    b.topology.partition.group_of_sm[2] = 1;
    assert_false(fingerprint_structure_hash(&a) == fingerprint_structure_hash(&b));
    b = a;
    b.topology.disabled.signature[0] = '3';
    assert_false(fingerprint_structure_hash(&a) == fingerprint_structure_hash(&b));
    b = a;
    b.levels[0].entry_bytes.v *= 2;
    assert_false(fingerprint_structure_hash(&a) == fingerprint_structure_hash(&b));
    b = a;
    b.gpu.uuid[4] = '2';
    assert_false(fingerprint_structure_hash(&a) == fingerprint_structure_hash(&b));
    b = a;
    b.gpu.origin = ORIGIN_MEASURED;
    assert_false(fingerprint_structure_hash(&a) == fingerprint_structure_hash(&b));
}

static void test_names(void **state)
{
    enum depth d = DEPTH_QUICK;
    enum access access = ACCESS_READ;

    (void)state;
    for (int a = ACCESS_READ; a < ACCESS_COUNT; a++) {
        assert_true(access_from_name(access_name((enum access)a), &access));
        assert_int_equal(access, a);
    }
    assert_string_equal(access_name(ACCESS_WRITE), "write");
    assert_false(access_from_name("reads", &access));
    assert_false(access_from_name(NULL, &access));
    assert_true(depth_from_name("matrix", &d));
    assert_int_equal(d, DEPTH_MATRIX);
    assert_false(depth_from_name("deepest", &d));
    assert_false(depth_from_name("", &d));
    assert_int_equal(d, DEPTH_MATRIX);
    assert_string_equal(depth_name(DEPTH_FULL), "full");
    assert_string_equal(verdict_name(VERDICT_UNUSABLE), "unusable");
    assert_string_equal(shared_by_name(SHARED_GPU), "gpu");
    assert_string_equal(replacement_name(REPLACEMENT_NOT_LRU), "not-lru");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_spoilt),
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_knows_nothing),
        cmocka_unit_test(test_newer_release),
        cmocka_unit_test(test_origin_agrees),
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_structure_hash),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_check_rates),
        cmocka_unit_test(test_check_rate_points),
        cmocka_unit_test(test_check_contiguity),
        cmocka_unit_test(test_check_l2),
        cmocka_unit_test(test_check_caches),
        cmocka_unit_test(test_check_shared),
        cmocka_unit_test(test_no_contiguity),
        cmocka_unit_test(test_no_rates),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
