/* test_diagnose_numbers.c: the host side of the example diagnose, with an exported fingerprint. The
 * tests check the numbers that it reads from the fingerprint, the planner's answer, and the lines
 * of JSON. */
#include "clients/examples/diagnose.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* The fingerprint of an H200, measured on 2026-11-22 at depth memory. This depth does not measure
 * contiguity. */
#define FINGERPRINT "file:docs/measurements/nvidia-h200-89d5a7b7-2026-11-22/fingerprint-memory.json"

static struct reach *source;

static int open_source(void **state)
{
    (void)state;
    return reach_open(FINGERPRINT, &source, NULL) == REACH_OK ? 0 : -1;
}

static int close_source(void **state)
{
    (void)state;
    reach_close(source);
    return 0;
}

static void numbers_by_kind(void **state)
{
    (void)state;
    struct reach_diagnose_options o = {.size = sizeof o};
    assert_int_equal(diagnose_numbers(source, "0", &o, NULL), REACH_OK);
    assert_int_equal(o.reach_bytes[REACH_MEMORY_DEVICE], 68753031168);
    assert_int_equal(o.reach_bytes[REACH_MEMORY_HOST_PINNED], 671088640);
    assert_int_equal(o.reach_bytes[REACH_MEMORY_HOST_REGISTERED], 637534208);
    assert_int_equal(o.reach_bytes[REACH_MEMORY_MANAGED_DEVICE], 0); /* not observable */
    assert_true(o.frame_bytes == 0 && o.miss_ns.contiguous == 0 && o.miss_ns.scattered == 0);
    assert_int_not_equal(diagnose_numbers(source, "7", &o, NULL), REACH_OK);
}

/* Returns the output of `print`, which the caller frees. */
static char *plan_of(const struct reach_diagnosis *found)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    assert_non_null(out);
    diagnose_print_plan(out, source, "0", found);
    (void)fclose(out);
    return text;
}

static void the_planner_answers_for_device_memory(void **state)
{
    (void)state;
    struct reach_diagnosis found = {.memory = REACH_MEMORY_DEVICE, .bytes = (uint64_t)100 << 30};
    char *text = plan_of(&found);
    assert_string_equal(text,
                        "planner: naive 1134 GB/s; best windows, 4027 GB/s (3.55 times naive)\n");
    free(text);
    found.contiguous = (struct reach_finding){.known = true, .value = 0.5};
    text = plan_of(&found);
    assert_string_equal(text, "planner: naive unknown; best windows, 4027 GB/s\n");
    free(text);
    found.bytes = (uint64_t)900 << 30;
    text = plan_of(&found);
    assert_string_equal(
        text,
        "planner: 900 GiB are more than the 139.8 GiB of memory that this GPU has. Request at most "
        "that size. GET /v1/gpus/{gpu}/memory and reachctl memory list every kind of memory.\n");
    free(text);
    found.memory = REACH_MEMORY_HOST_PINNED;
    text = plan_of(&found);
    assert_string_equal(text, "");
    free(text);
}

static void a_line_of_json(void **state)
{
    (void)state;
    struct reach_diagnosis found = {.memory = REACH_MEMORY_PEER, .bytes = 4096, .ns = 2500000};
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    found.out_of_reach = (struct reach_finding){.known = true, .value = 1, .reason = ""};
    found.compressible = found.read_gbps = found.part_gbps = found.reach_bytes = found.entry_bytes =
        found.contiguous = found.contiguous_gbps = found.gain =
            (struct reach_finding){.reason = "so"};
    diagnose_print_json(out, "peer", &found, 3);
    (void)fclose(out);
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    assert_string_equal(json_string_value(json_object_get(json, "memory")), "peer");
    assert_int_equal(json_integer_value(json_object_get(json, "changed_words")), 3);
    assert_true(json_number_value(json_object_get(json, "ms")) == 2.5);
    assert_true(
        json_number_value(json_object_get(json_object_get(json, "out_of_reach"), "value")) == 1);
    assert_true(json_is_null(json_object_get(json_object_get(json, "gain"), "value")));
    json_decref(json);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_by_kind),
        cmocka_unit_test(the_planner_answers_for_device_memory),
        cmocka_unit_test(a_line_of_json),
    };
    return cmocka_run_group_tests(tests, open_source, close_source);
}
