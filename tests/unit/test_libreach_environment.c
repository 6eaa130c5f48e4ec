/* test_libreach_environment.c: libreach on what a scheduler put into the environment: it answers
 * from there where the GPU is the right one, asks the daemon where not, and takes nothing that
 * reachd did not write. */
#include "clients/c/reach.h"
#include "tests/unit/placement_fixture.h"
#include "tests/unit/stub_daemon.h"

#include "base/units.h"
#include "placement/handout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GPU_A "GPU-00000000-0000-0000-0000-00000000000a"
#define GPU_B "GPU-00000000-0000-0000-0000-00000000000b"
#define OTHER "GPU-00000000-0000-0000-0000-00000000000c"

static const char ID[] = "fp0123456789abcdef";
static struct fingerprint fp;
static struct reach *reach;
static struct reach_error why;

static void put(const char *name, const char *uuid)
{
    static char line[HANDOUT_LINE_BYTES];
    struct err err;

    placement_make_large(&fp);
    (void)snprintf(fp.gpu.uuid, sizeof(fp.gpu.uuid), "%s", uuid);
    (void)snprintf(fp.gpu.name, sizeof(fp.gpu.name), "A chip");
    fp.gpu.memory_bytes = 137 * GIB;
    assert_int_equal(handout_line(&fp, ID, line, &err), STATUS_OK);
    assert_int_equal(setenv(name, line, 1), 0);
}

static int set_up(void **state)
{
    (void)state;
    unsetenv("REACHD_URL");
    put("REACH_JOB_0", GPU_A);
    put("REACH_JOB_2", GPU_B); /* GPU 1 was never measured */
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    reach_close(reach);
    reach = NULL;
    unsetenv("REACH_JOB_0");
    unsetenv("REACH_JOB_2");
    unsetenv("REACHD_URL");
    return 0;
}

static void open_as(const char *where)
{
    if (reach_open(where, &reach, &why) != REACH_OK)
        fail_msg("%s", why.text);
}

static enum reach_status ask(const char *gpu, uint64_t bytes, struct reach_placement **out)
{
    const struct reach_placement_request request = {.bytes = bytes};

    return reach_ask_placement(reach, gpu, &request, out, &why);
}

static void check_answer(const char *gpu, const char *uuid)
{
    struct reach_placement *p = NULL;
    uint64_t covered = 0;

    if (ask(gpu, 100 * GIB, &p) != REACH_OK || !p) {
        fail_msg("%s", why.text);
        return;
    }
    assert_string_equal(p->basis.gpu_uuid, uuid);
    assert_string_equal(p->basis.fingerprint_id, ID);
    assert_true(p->basis.offline);
    assert_int_equal(reach_basis_check(&p->basis, uuid, &why), REACH_OK);
    assert_int_equal(p->windows.window_count, 2);
    for (uint32_t w = 0; w < p->windows.window_count; w++)
        covered += p->windows.window[w].length_bytes;
    assert_true(covered == 100 * GIB);
    assert_int_equal(p->windows.sm_slots, 132);
    reach_free(p);
}

static void refused(const char *gpu, enum reach_status wanted)
{
    struct reach_placement *p = (struct reach_placement *)&why; /* must be overwritten */
    const enum reach_status got = ask(gpu, GIB, &p);

    if (got != wanted)
        fail_msg("%s and not %s: %s", reach_status_name(got), reach_status_name(wanted), why.text);
    assert_null(p);
    assert_true(why.text[0] != '\0');
}

/* ---- nobody but the environment ---- */

static void test_alone(void **state)
{
    (void)state;
    open_as("env:");
    check_answer("0", GPU_A);
    check_answer(GPU_A, GPU_A);
    check_answer("gpu-00000000-0000-0000-0000-00000000000B", GPU_B);
    check_answer("2", GPU_B);
    refused("1", REACH_NOT_FOUND);
    refused("99999999", REACH_NOT_FOUND);
    refused(OTHER, REACH_WRONG_GPU);
    refused("a b", REACH_INVALID_ARGUMENT);
}

static void test_gpus_and_fingerprint(void **state)
{
    struct reach_fingerprint *known = NULL;
    struct reach_gpus *gpus = NULL;

    (void)state;
    open_as("env:");
    assert_int_equal(reach_ask_gpus(reach, &gpus, &why), REACH_OK);
    assert_int_equal(gpus->count, 2);
    assert_int_equal(gpus->gpu[1].index, 2);
    assert_string_equal(gpus->gpu[1].uuid, GPU_B);
    assert_int_equal(reach_ask_fingerprint(reach, "0", &known, &why), REACH_OK);
    assert_string_equal(known->name, "A chip");
    assert_true(known->reach_bytes.known && known->reach_bytes.value == 64.0 * (double)GIB);
    assert_int_equal(known->group_count, 8);
    assert_int_equal(reach_confirm(reach, &known->basis, &why), REACH_NOT_SUPPORTED);
    reach_free(gpus);
    reach_free(known);
}

static void test_every_other_question(void **state)
{
    const struct reach_scope_request scope = {.bytes = 100 * GIB};
    const struct reach_job job = {.bytes = 100 * GIB};
    const struct reach_split_request split = {.job_count = 2,
                                              .jobs = {{.bytes = GIB}, {.bytes = GIB}}};
    const struct reach_explain_request explain = {.bytes = GIB, .seen_gbps = 1};
    struct reach_scope *s = NULL;
    struct reach_plan *p = NULL;
    struct reach_split *parts = NULL;
    struct reach_explanation *e = NULL;

    (void)state;
    open_as("env:");
    assert_int_equal(reach_ask_scope(reach, "0", &scope, &s, &why), REACH_OK);
    assert_int_equal(s->passes, 2);
    assert_int_equal(reach_ask_plan(reach, "0", &job, &p, &why), REACH_OK);
    assert_int_equal(reach_plan_check(p, GPU_A, &why), REACH_OK);
    assert_int_equal(reach_ask_split(reach, "0", &split, &parts, &why), REACH_OK);
    assert_string_equal(parts->basis.fingerprint_id, ID);
    assert_int_equal(reach_ask_explain(reach, "0", &explain, &e, &why), REACH_OK);
    assert_string_equal(e->basis.fingerprint_id, ID);
    reach_free(s);
    reach_free(p);
    reach_free(parts);
    reach_free(e);
}

static void test_alone_without_any(void **state)
{
    (void)state;
    tear_down(state);
    assert_int_equal(reach_open("env:", &reach, &why), REACH_NOT_FOUND);
    assert_null(reach);
    setenv("REACH_JOB_0", "", 1);
    assert_int_equal(reach_open("env:", &reach, &why), REACH_NOT_FOUND);
    setenv("REACH_JOB_0", "v1 gpu=x", 1);
    assert_int_equal(reach_open("env:", &reach, &why), REACH_CORRUPT);
    assert_non_null(strstr(why.text, "REACH_JOB_0"));
    setenv("REACH_JOB_0", "v2 gpu=x", 1);
    assert_int_equal(reach_open("env:", &reach, &why), REACH_CORRUPT);
    assert_int_equal(reach_open("env:x", &reach, &why), REACH_INVALID_ARGUMENT);
    assert_null(reach);
}

/* ---- and a daemon ---- */

static struct stub_reply says(void *cls, const char *target)
{
    (void)target;
    return (struct stub_reply){.body = cls};
}

static char from_daemon[] =
    "{\"gpu\":\"" OTHER "\",\"fingerprint_id\":\"fp00000000000000dd\","
    "\"fingerprint_stale\":false,\"origin\":\"simulated\",\"bytes\":1073741824,"
    "\"advice\":\"nothing-to-do\",\"window_count\":1,\"windows\":[{\"index\":0,"
    "\"first_byte\":0,\"length_bytes\":1073741824,\"sm_count\":1,\"group_count\":1}],"
    "\"window_of_sm\":[0],\"margin_bytes\":1,\"with_gbps\":1,\"without_gbps\":1,"
    "\"reason\":\"r\"}";

static void test_daemon_for_the_rest(void **state)
{
    struct reach_placement *p = NULL;
    struct stub_daemon stub;

    (void)state;
    stub_start(&stub, says, from_daemon);
    setenv("REACHD_URL", stub.where, 1);
    open_as(NULL);
    check_answer(GPU_A, GPU_A);
    check_answer(GPU_B, GPU_B);
    assert_int_equal(atomic_load(&stub.requests), 0);
    assert_int_equal(ask(OTHER, GIB, &p), REACH_OK);
    assert_string_equal(p->basis.fingerprint_id, "fp00000000000000dd");
    assert_false(p->basis.offline);
    reach_free(p);
    /* The daemon's numbers are not the job's. */
    assert_int_equal(ask("0", GIB, &p), REACH_OK);
    assert_string_equal(p->basis.gpu_uuid, OTHER);
    reach_free(p);
    assert_int_equal(atomic_load(&stub.requests), 2);
    reach_close(reach);
    /* Who names somebody asks him alone. */
    open_as(stub.where);
    refused(GPU_A, REACH_WRONG_GPU);
    stub_stop(&stub);
}

/* Whether it still holds is for the daemon to say. */
static void test_confirm_asks(void **state)
{
    static char replaced[] =
        "{\"index\":0,\"uuid\":\"" GPU_A "\",\"name\":\"n\",\"origin\":\"simulated\","
        "\"state\":\"ready\",\"sm_count\":132,\"memory_bytes\":1,\"mig\":false,"
        "\"fingerprint_id\":\"fp00000000000000dd\",\"fingerprint_stale\":false}";
    struct reach_placement *p = NULL;
    struct stub_daemon stub;

    (void)state;
    stub_start(&stub, says, replaced);
    setenv("REACHD_URL", stub.where, 1);
    open_as("");
    assert_int_equal(ask(GPU_A, GIB, &p), REACH_OK);
    assert_int_equal(reach_confirm(reach, &p->basis, &why), REACH_STALE);
    reach_free(p);
    stub_stop(&stub);
}

static void test_made_up_is_passed_over(void **state)
{
    struct stub_daemon stub;
    char *line = getenv("REACH_JOB_0");

    (void)state;
    line[strlen(line) / 2] ^= 1;
    stub_start(&stub, says, from_daemon);
    setenv("REACHD_URL", stub.where, 1);
    open_as(NULL);
    refused(GPU_A, REACH_WRONG_GPU); /* the daemon was asked, and answers for another */
    assert_int_equal(atomic_load(&stub.requests), 1);
    check_answer(GPU_B, GPU_B);
    stub_stop(&stub);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_alone),
        CASE(test_gpus_and_fingerprint),
        CASE(test_every_other_question),
        CASE(test_alone_without_any),
        CASE(test_daemon_for_the_rest),
        CASE(test_confirm_asks),
        CASE(test_made_up_is_passed_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
