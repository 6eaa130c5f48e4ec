/* test_compare.c: compares a chip with others. The reference tables are compared with a naive
 * count, on random chips. Each number of a real chip is changed in turn and is then the only odd
 * one. A shared file contains no text of the fingerprint except the name of the model. TEST_SEED
 * repeats a run. */
#include "base/rng.h"
#include "base/stats.h"
#include "base/units.h"
#include "compare/compare.h"
#include "compare/outlier.h"
#include "compare/share.h"
#include "fingerprint/fingerprint_read.h"
#include "fingerprint/members.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MEASURED "docs/measurements/nvidia-h200-"
#define CANARY   "canary"

enum { CHIPS = 11, MAX_VALUES = 1024, PATH = 512 };

static struct fingerprint real; /* the fingerprint of an H200 with every kind of memory */
static char folder[] = "/tmp/reach-compare-XXXXXX";

/* ---- helpers ---- */

static void load(const char *path, struct fingerprint *out)
{
    json_t *const json = json_load_file(path, 0, NULL);
    struct err err = {.text = "no such file"};

    if (!json || fingerprint_from_json(json, out, &err) != STATUS_OK)
        fail_msg("%s: %s", path, err.text);
    json_decref(json);
}

/* The values of a fingerprint, by name. */
struct values {
    uint32_t count;
    struct {
        char name[METRIC_NAME_BYTES];
        char text[METRIC_NAME_BYTES];
        double v;
    } of[MAX_VALUES];
};

static void keep(void *self, const char *name, enum known known, double v, const char *text)
{
    struct values *const out = self;

    if (known != MAYBE_KNOWN)
        return;
    assert_true(out->count < MAX_VALUES);
    (void)snprintf(out->of[out->count].name, METRIC_NAME_BYTES, "%s", name);
    (void)snprintf(out->of[out->count].text, METRIC_NAME_BYTES, "%s", text ? text : "");
    out->of[out->count++].v = v;
}

static void values_of(const struct fingerprint *fp, struct values *out)
{
    out->count = 0;
    structure_visit(fp, keep, out);
    metrics_visit(fp, keep, out);
}

/* Returns the index of the name in `v`, or -1 if `v` does not contain it. */
static int place_of(const struct values *v, const char *name)
{
    for (uint32_t i = 0; i < v->count; i++) {
        if (strcmp(v->of[i].name, name) == 0)
            return (int)i;
    }
    return -1;
}

static void share_into(const char *to, const struct fingerprint *fp)
{
    char file[SHARE_FILE_BYTES];
    char path[PATH];
    struct err err;
    char *text;
    size_t bytes;
    FILE *out;

    assert_int_equal(share_make(fp, &text, &bytes, file, &err), STATUS_OK);
    (void)snprintf(path, sizeof(path), "%s/%s", to, file);
    out = fopen(path, "w");
    assert_non_null(out);
    assert_int_equal(fwrite(text, 1, bytes, out), bytes);
    assert_int_equal(fclose(out), 0);
    free(text);
}

static void empty(const char *of)
{
    char path[PATH];
    struct dirent *entry;
    DIR *const dir = opendir(of);

    assert_non_null(dir);
    while ((entry = readdir(dir))) {
        (void)snprintf(path, sizeof(path), "%s/%s", of, entry->d_name);
        if (entry->d_name[0] != '.')
            assert_int_equal(unlink(path), 0);
    }
    closedir(dir);
}

/* Returns `v` with a noise of some thousandths. */
static double about(struct rng *r, double v)
{
    return v * (1 + 0.002 * (rng_unit(r) - rng_unit(r)));
}

/* Makes a chip like the real one, with other throughputs. */
static void vary(struct rng *r, struct fingerprint *fp, uint32_t number)
{
    *fp = real;
    fp->taken_at += number; /* the files always differ, because plateaus are random */
    fp->throughput.plateau_gbps.v = about(r, real.throughput.plateau_gbps.v);
    fp->throughput.whole_memory_gbps.v = about(r, real.throughput.whole_memory_gbps.v);
}

static struct reference *reference_of(const struct fingerprint *chips, uint32_t count)
{
    struct reference *r;
    struct err err = {.text = ""};

    empty(folder);
    for (uint32_t i = 0; i < count; i++)
        share_into(folder, &chips[i]);
    if (reference_load(folder, &r, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    return r;
}

static int set_up(void **state)
{
    (void)state;
    load(MEASURED "2ea0ea17-2026-11-22/fingerprint-memory.json", &real);
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    empty(folder);
    return rmdir(folder);
}

/* ---- the tables ---- */

static const struct reference_number *number_of(const struct reference_kind *k, const char *name)
{
    for (uint32_t i = 0; i < k->number_count; i++) {
        if (strcmp(k->numbers[i].name, name) == 0)
            return &k->numbers[i];
    }
    return NULL;
}

static void tables_are_the_naive_count(void **state)
{
    struct fingerprint *const chips = calloc(CHIPS, sizeof(*chips));
    struct rng r = {.state = 20261122};
    double plateaus[CHIPS];

    (void)state;
    assert_non_null(chips);
    for (uint32_t i = 0; i < CHIPS; i++) {
        vary(&r, &chips[i], i);
        plateaus[i] = chips[i].throughput.plateau_gbps.v;
    }
    struct reference *const reference = reference_of(chips, CHIPS);
    assert_int_equal(reference->kind_count, 1);
    const struct reference_kind *const k = reference_find_kind(reference, &real.gpu);
    assert_ptr_equal(k, &reference->kinds[0]);
    assert_int_equal(k->chips, CHIPS);
    const struct reference_number *const n = number_of(k, "throughput.plateau_gbps");
    assert_non_null(n);
    assert_int_equal(n->chips, CHIPS);
    assert_true(n->least == stats_quantile_f64(plateaus, CHIPS, 0));
    assert_true(n->median == stats_median_f64(plateaus, CHIPS));
    assert_true(n->most == stats_quantile_f64(plateaus, CHIPS, 1));
    assert_true(n->deviation == stats_mad_f64(plateaus, CHIPS));
    for (uint32_t i = 0; i < k->property_count; i++)
        assert_int_equal(k->properties[i].have, k->properties[i].chips);
    print_message("a kind with %u numbers and %u properties: %zu bytes\n", k->number_count,
                  k->property_count, reference->bytes);
    reference_free(reference);
    free(chips);
}

static void another_kind_is_unknown(void **state)
{
    struct reference *const reference = reference_of(&real, 1);
    struct gpu_identity gpu = real.gpu;

    (void)state;
    assert_non_null(reference_find_kind(reference, &gpu));
    gpu.memory_bytes +=
        gpu.memory_bytes / 100; /* a driver reserves about this share of the memory */
    assert_non_null(reference_find_kind(reference, &gpu));
    gpu.memory_bytes = real.gpu.memory_bytes / 2;
    assert_null(reference_find_kind(reference, &gpu));
    gpu = real.gpu;
    gpu.sm_count++;
    assert_null(reference_find_kind(reference, &gpu));
    gpu = real.gpu;
    gpu.compute_minor++;
    assert_null(reference_find_kind(reference, &gpu));
    gpu = real.gpu;
    strcpy(gpu.name, "NVIDIA H200 NVL");
    assert_null(reference_find_kind(reference, &gpu));
    assert_null(reference_find_kind(NULL, &real.gpu));
    reference_free(reference);
}

/* ---- verdicts ---- */

/* Compares the result of comparison_make with the rule, except for the verdict, which the caller
 * checks. */
static enum compare_verdict compare(const struct reference *reference, const struct fingerprint *fp,
                                    uint32_t *out_odd)
{
    struct comparison c;
    struct err err;
    enum compare_verdict verdict;

    assert_int_equal(comparison_make(reference, fp, &c, &err), STATUS_OK);
    verdict = c.verdict;
    *out_odd = c.odd;
    assert_true(strlen(c.sentence) > 0);
    comparison_free(&c);
    return verdict;
}

static void too_few_are_not_compared(void **state)
{
    struct fingerprint *const chips = calloc(OUTLIER_LEAST_CHIPS, sizeof(*chips));
    struct rng r = {.state = 7};
    struct fingerprint odd;
    uint32_t n;

    (void)state;
    assert_non_null(chips);
    for (uint32_t i = 0; i < OUTLIER_LEAST_CHIPS; i++)
        vary(&r, &chips[i], i);
    odd = real;
    odd.throughput.plateau_gbps.v *= 3;
    struct reference *reference = reference_of(chips, OUTLIER_LEAST_CHIPS - 2);
    assert_int_equal(compare(reference, &odd, &n), COMPARE_TOO_FEW);
    reference_free(reference);
    reference = reference_of(
        chips, OUTLIER_LEAST_CHIPS - 1); /* there are enough chips together with the chip itself */
    assert_int_equal(compare(reference, &odd, &n), COMPARE_ODD);
    assert_int_equal(n, 1);
    reference_free(reference);
    assert_int_equal(compare(NULL, &odd, &n), COMPARE_UNKNOWN_KIND);
    free(chips);
}

/* Three chips of a kind are judged with the spread of a kind of eleven chips, for the numbers that
 * both kinds have. */
static void few_chips_borrow_the_spread(void **state)
{
    struct fingerprint *const chips = calloc(CHIPS + 2, sizeof(*chips));
    struct rng r = {.state = 11};
    struct fingerprint one;
    uint32_t n;

    (void)state;
    assert_non_null(chips);
    for (uint32_t i = 0; i < CHIPS + 2; i++)
        vary(&r, &chips[i], i);
    for (uint32_t i = CHIPS; i < CHIPS + 2; i++)
        strcpy(chips[i].gpu.name, "Another");
    one = chips[CHIPS];
    one.throughput.plateau_gbps.v = real.throughput.plateau_gbps.v;
    struct reference *const reference = reference_of(chips, CHIPS + 2);
    assert_int_equal(compare(reference, &one, &n), COMPARE_NORMAL);
    one.throughput.plateau_gbps.v *= 0.9;
    assert_int_equal(compare(reference, &one, &n), COMPARE_ODD);
    assert_int_equal(n, 1);
    reference_free(reference);
    struct reference *const alone = reference_of(&chips[CHIPS], 2);
    assert_int_equal(compare(alone, &one, &n), COMPARE_TOO_FEW);
    reference_free(alone);
    free(chips);
}

/* A single class means that no second class was certain. One group with a small deviation is enough
 * for this result. */
static void a_single_class_is_no_number(void **state)
{
    static struct values v;
    struct fingerprint fp = real;

    (void)state;
    fp.topology.penalty_classes = KNOWN_U32(2);
    values_of(&fp, &v);
    assert_true(place_of(&v, "topology.penalty_classes") >= 0);
    fp.topology.penalty_classes = KNOWN_U32(1);
    values_of(&fp, &v);
    assert_true(place_of(&v, "topology.penalty_classes") < 0);
}

/* Beyond the reach of host memory, throughput falls with the number of bytes, and depth full
 * reads fewer bytes. */
static void beyond_the_reach_is_compared_with_as_much(void **state)
{
    static struct values v;
    struct fingerprint fp = real;
    struct memory_facts *pinned = NULL;

    (void)state;
    for (uint32_t i = 0; i < fp.memory_count && !pinned; i++)
        pinned = fp.memory[i].kind == MEMORY_HOST_PINNED ? &fp.memory[i] : NULL;
    assert_non_null(pinned);
    assert_int_equal(pinned->probed_bytes.v, 16 * GIB);
    values_of(&fp, &v);
    assert_true(place_of(&v, "memory[host-pinned][16G].beyond_gbps") >= 0);
    assert_true(place_of(&v, "memory[host-pinned].plateau_gbps") >= 0);
    pinned->probed_bytes = KNOWN_U64(768 * MIB);
    values_of(&fp, &v);
    assert_true(place_of(&v, "memory[host-pinned][16G].beyond_gbps") < 0);
    assert_true(place_of(&v, "memory[host-pinned][768M].beyond_gbps") >= 0);
}

/* ---- each number in turn ---- */

static struct reference *alike; /* eleven chips like the real one, with other throughputs */
static uint32_t doctored_count;

/* Checks the comparison of a changed chip. Exactly the judged values that differ from the real chip
 * must be odd. */
static void check_doctored(const struct fingerprint *fp, const char *what)
{
    static struct values before, after;
    struct comparison c;
    struct err err;
    uint32_t changed = 0;

    values_of(&real, &before);
    values_of(fp, &after);
    assert_int_equal(comparison_make(alike, fp, &c, &err), STATUS_OK);
    for (uint32_t i = 0; i < c.count; i++) {
        const struct compared *const row = &c.rows[i];
        const int was = place_of(&before, row->name);
        const int is = place_of(&after, row->name);
        assert_true(is >= 0 && was >= 0);
        /* All chips have the numbers of the real one, so there is no deviation. The lowest number
         * of the groups changes a little if the number of its group is changed. */
        const bool differs =
            row->property ? strcmp(before.of[was].text, after.of[is].text) != 0
                          : fabs(before.of[was].v - after.of[is].v) > 0.05 * before.of[was].v;
        const bool judged = row->property || metrics_is_judged(row->name);
        if ((row->verdict == COMPARE_ODD) != (differs && judged))
            fail_msg("%s doctored: %s is %s", what, row->name, compare_verdict_name(row->verdict));
        changed += differs && judged;
    }
    assert_int_equal(c.odd, changed);
    assert_int_equal(c.verdict, changed > 0 ? COMPARE_ODD : COMPARE_NORMAL);
    doctored_count += changed > 0;
    comparison_free(&c);
}

/* Changes each known number of the object at `base`, which is inside `fp`, in turn. */
static void doctor(struct fingerprint *fp, const struct object *o, char *base)
{
    for (const struct member *m = o->members; m < o->members + o->count; m++) {
        char *const at = base + m->offset;
        const struct member_state s = member_state(m, base);
        const bool known =
            m->type >= MEMBER_U32_MAYBE && m->type <= MEMBER_F64_MAYBE && s.known == MAYBE_KNOWN;
        struct maybe_f64 real_number;
        struct maybe_u64 number;
        struct maybe_u32 small;
        if (m->type == MEMBER_OBJECT)
            doctor(fp, m->object, at);
        for (uint32_t i = 0; m->type == MEMBER_LIST && i < member_count(m, base); i++)
            doctor(fp, m->object, at + i * m->object->size);
        if (!known)
            continue;
        memcpy(&real_number, at, m->type == MEMBER_U32_MAYBE ? sizeof(small) : sizeof(real_number));
        memcpy(&number, &real_number, sizeof(number));
        memcpy(&small, &real_number, sizeof(small));
        if (m->type == MEMBER_F64_MAYBE)
            ((struct maybe_f64 *)(void *)at)->v = 3 * real_number.v + 100;
        else if (m->type == MEMBER_U64_MAYBE)
            ((struct maybe_u64 *)(void *)at)->v = 3 * number.v + 100;
        else
            ((struct maybe_u32 *)(void *)at)->v = 3 * small.v + 100;
        check_doctored(fp, m->name);
        memcpy(at, &real_number, m->type == MEMBER_U32_MAYBE ? sizeof(small) : sizeof(real_number));
    }
}

static void a_doctored_number_alone_is_odd(void **state)
{
    struct fingerprint *const chips = calloc(CHIPS, sizeof(*chips));
    struct fingerprint *const fp = malloc(sizeof(*fp));
    struct rng r = {.state = 42};

    (void)state;
    assert_true(chips && fp);
    for (uint32_t i = 0; i < CHIPS; i++)
        vary(&r, &chips[i], i);
    alike = reference_of(chips, CHIPS);
    *fp = real;
    check_doctored(fp, "nothing");
    assert_int_equal(doctored_count, 0);
    doctor(fp, &fingerprint_object, (char *)fp);
    print_message("%u numbers doctored in turn\n", doctored_count);
    assert_true(doctored_count > 200);
    reference_free(alike);
    free(fp);
    free(chips);
}

/* ---- texts in shared files ---- */

static void plant(char *text, size_t size)
{
    (void)snprintf(text, size, "%s", CANARY);
}

/* Writes the marker text into every text of the fingerprint that its tables describe. */
static void plant_texts(const struct object *o, char *base)
{
    for (const struct member *m = o->members; m < o->members + o->count; m++) {
        char *const at = base + m->offset;
        if (m->type == MEMBER_OBJECT)
            plant_texts(m->object, at);
        for (uint32_t i = 0; m->type == MEMBER_LIST && i < m->max_count; i++)
            plant_texts(m->object, at + i * m->object->size);
        if (m->type == MEMBER_TEXT)
            plant(at, m->size);
    }
}

static void plant_all(struct fingerprint *fp)
{
    plant_texts(&fingerprint_object, (char *)fp);
    plant(fp->gpu.uuid, sizeof(fp->gpu.uuid));
    plant(fp->gpu.name, sizeof(fp->gpu.name));
    plant(fp->gpu.serial, sizeof(fp->gpu.serial));
    plant(fp->gpu.pci_bus_id, sizeof(fp->gpu.pci_bus_id));
    plant(fp->gpu.driver_version, sizeof(fp->gpu.driver_version));
    plant(fp->gpu.cuda_version, sizeof(fp->gpu.cuda_version));
    plant(fp->measurement_id, sizeof(fp->measurement_id));
    plant(fp->dropped_reason, sizeof(fp->dropped_reason));
    for (size_t i = 0; i < FINGERPRINT_MAX_NOTES; i++)
        plant(fp->conditions.notes[i], sizeof(fp->conditions.notes[i]));
    fp->conditions.note_count = FINGERPRINT_MAX_NOTES;
}

static uint32_t occurrences(const char *text, const char *of)
{
    uint32_t n = 0;

    for (const char *at = text; (at = strstr(at, of)); at++)
        n++;
    return n;
}

/* Checks that every member of the document is expected, and that its texts are constants of this
 * program. */
static void check_members(const json_t *json, const struct fingerprint *fp)
{
    static const char *const expected[] = {"format", "gpu",        "depth",  "measured_on",
                                           "map",    "properties", "numbers"};
    static struct values values;
    const char *name;
    json_t *v;
    size_t i = 0;

    json_object_foreach((json_t *)(uintptr_t)json, name, v)
    {
        assert_true(i < sizeof(expected) / sizeof(*expected));
        assert_string_equal(name, expected[i++]);
    }
    assert_int_equal(json_object_size(json_object_get(json, "gpu")), 4);
    values_of(fp, &values);
    json_object_foreach(json_object_get(json, "numbers"), name, v)
    {
        const int at = place_of(&values, name);
        assert_true(json_is_number(v) && at >= 0 && json_number_value(v) == values.of[at].v);
    }
    json_object_foreach(json_object_get(json, "properties"), name, v)
    {
        const int at = place_of(&values, name);
        assert_true(at >= 0);
        assert_string_equal(json_string_value(v), values.of[at].text);
    }
}

/* A link at a quarter of its speed is the cause, whether the kind of the chip is known or not. */
static void a_slow_link_is_named_as_the_cause(void **state)
{
    static const char cause[] =
        "Odd because the PCIe link is generation 3 x16; the GPU and its slot support generation 5 "
        "x16. Unknown kind";
    struct fingerprint *const fp = malloc(sizeof(*fp));
    struct comparison c;
    struct err err;

    (void)state;
    assert_non_null(fp);
    *fp = real;
    fp->conditions.pcie_generation = KNOWN_U32(5);
    fp->conditions.pcie_generation_used = KNOWN_U32(5);
    fp->conditions.pcie_lanes = fp->conditions.pcie_lanes_supported = KNOWN_U32(16);
    assert_int_equal(comparison_make(NULL, fp, &c, &err), STATUS_OK);
    assert_int_equal(c.verdict, COMPARE_UNKNOWN_KIND);
    assert_string_equal(c.cause, "");
    assert_false(c.low_generation || c.few_lanes);
    comparison_free(&c);
    fp->conditions.pcie_generation_used = KNOWN_U32(3);
    assert_int_equal(comparison_make(NULL, fp, &c, &err), STATUS_OK);
    assert_int_equal(c.verdict, COMPARE_ODD);
    assert_memory_equal(c.sentence, cause, strlen(cause));
    assert_true(c.low_generation && !c.few_lanes);
    comparison_free(&c);
    fp->conditions.pcie_generation_used = KNOWN_U32(5);
    fp->conditions.pcie_lanes = KNOWN_U32(4);
    assert_int_equal(comparison_make(NULL, fp, &c, &err), STATUS_OK);
    assert_true(!c.low_generation && c.few_lanes);
    comparison_free(&c);
    free(fp);
}

static void a_shared_file_is_anonymous(void **state)
{
    struct fingerprint fp = real;
    char file[SHARE_FILE_BYTES];
    struct err err;
    char *text;
    size_t bytes;
    json_t *json;

    (void)state;
    plant_all(&fp);
    fp.taken_at = 1795392000 + 12345; /* 2026-11-22T20:25:45Z */
    assert_int_equal(share_make(&fp, &text, &bytes, file, &err), STATUS_OK);
    assert_int_equal(occurrences(text, CANARY), 1);
    json = json_loads(text, 0, NULL);
    assert_non_null(json);
    assert_string_equal(json_string_value(json_object_get(json_object_get(json, "gpu"), "name")),
                        CANARY);
    assert_int_equal(strlen(json_string_value(json_object_get(json, "measured_on"))),
                     strlen("2026-11-22"));
    check_members(json, &fp);
    assert_memory_equal(file, CANARY "-", strlen(CANARY "-"));
    json_decref(json);
    free(text);
    fp.gpu.origin = ORIGIN_SIMULATED;
    assert_int_equal(share_make(&fp, &text, &bytes, file, &err), STATUS_NOT_APPLICABLE);
    assert_null(text);
}

/* ---- wrong files ---- */

static void wrong_files_are_refused(void **state)
{
    static const char *const wrong[] = {
        "",
        "{",
        "[]",
        "{\"format\":\"reachd-share-1\"}",
        "{\"format\":\"reachd-share-2\"}",
        "{\"format\":\"reachd-share-1\",\"gpu\":{\"name\":\"x\",\"compute_capability\":\"9.0\","
        "\"sm_count\":1,\"memory_bytes\":1},\"properties\":{},\"numbers\":{\"a\":\"text\"}}",
        "{\"format\":\"reachd-share-1\",\"gpu\":{\"name\":\"x\",\"compute_capability\":\"9.0\","
        "\"sm_count\":-1,\"memory_bytes\":1},\"properties\":{},\"numbers\":{}}"};
    struct reference *r;
    struct err err;
    char path[PATH];

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        empty(folder);
        (void)snprintf(path, sizeof(path), "%s/wrong.json", folder);
        FILE *const out = fopen(path, "w");
        assert_non_null(out);
        fputs(wrong[i], out);
        assert_int_equal(fclose(out), 0);
        assert_int_equal(reference_load(folder, &r, &err), STATUS_CORRUPT);
        assert_null(r);
        assert_non_null(strstr(err.text, "wrong.json"));
    }
    empty(folder);
    assert_int_equal(reference_load(folder, &r, &err), STATUS_OK); /* none yet */
    assert_int_equal(r->kind_count, 0);
    reference_free(r);
    assert_int_equal(reference_load("/nowhere/at/all", &r, &err), STATUS_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_are_the_naive_count),
        cmocka_unit_test(another_kind_is_unknown),
        cmocka_unit_test(too_few_are_not_compared),
        cmocka_unit_test(few_chips_borrow_the_spread),
        cmocka_unit_test(a_single_class_is_no_number),
        cmocka_unit_test(beyond_the_reach_is_compared_with_as_much),
        cmocka_unit_test(a_doctored_number_alone_is_odd),
        cmocka_unit_test(a_slow_link_is_named_as_the_cause),
        cmocka_unit_test(a_shared_file_is_anonymous),
        cmocka_unit_test(wrong_files_are_refused),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
