/* test_store.c: stored data can be read back, damaged data is not returned, and files of other
 * programs stay unchanged. Faults in the middle of a write are in test_store_faults.c. */
#include "tests/unit/support/store_cases.h"
#include "fingerprint/fingerprint_json.h"
#include "tests/unit/support/store_fixture.h"

#include <pthread.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define OTHER_UUID "SIM-00000000-0000-0000-0000-000000000002"

enum { THREAD_RUNS = 15 };

/* Stores and reads all parts of a measurement, in memory or in a file. */
static void story(struct store *store)
{
    const struct gpu_identity gpu = fixture_gpu(FIXTURE_UUID);
    const struct gpu_limits limits = fixture_limits();
    struct observation_set set;
    struct fingerprint fp;
    struct fingerprint back;
    char id[FINGERPRINT_ID_BYTES];
    char back_id[FINGERPRINT_ID_BYTES];
    struct err err = {0};
    int64_t run = 0;
    int64_t observation = 0;
    char *text = NULL;

    assert_int_equal(store_current_fingerprint(store, FIXTURE_UUID, &back, &err), STATUS_NOT_FOUND);
    assert_int_equal(store_begin_run(store, &gpu, &limits, DEPTH_QUICK, 1700000000, &run, &err),
                     STATUS_OK);
    assert_true(run >= 1);
    for (uint32_t i = 0; i < 3; i++) {
        struct observation o = fixture_observation(i, 5);
        assert_int_equal(store_add_observation(store, run, &o, &observation, &err), STATUS_OK);
        observation_free(&o);
    }
    assert_int_equal(store_load_run(store, run, &set, &err), STATUS_OK);
    assert_int_equal(set.count, 3);
    assert_string_equal(set.gpu.uuid, FIXTURE_UUID);
    assert_int_equal(set.limits.granule_bytes, limits.granule_bytes);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(observation_chase(&set.items[i], 0)[4], 604 + i);
    observation_set_free(&set);

    assert_int_equal(store_observation_json(store, FIXTURE_UUID, observation, &text, &err),
                     STATUS_OK);
    assert_non_null(strstr(text, "\"kind\":\"chase\""));
    free(text);
    assert_int_equal(store_observation_json(store, OTHER_UUID, observation, &text, &err),
                     STATUS_NOT_FOUND);
    assert_null(text);

    fixture_fingerprint(FIXTURE_UUID, 1, &fp);
    assert_int_equal(store_finish_run(store, run, &fp, &fp, &err), STATUS_OK);
    assert_int_equal(store_current_fingerprint(store, FIXTURE_UUID, &back, &err), STATUS_OK);
    assert_int_equal(fingerprint_id(&fp, id, NULL), STATUS_OK);
    assert_int_equal(fingerprint_id(&back, back_id, NULL), STATUS_OK);
    assert_string_equal(id, back_id);
    assert_int_equal(store_fingerprint(store, FIXTURE_UUID, id, &back, &err), STATUS_OK);
    assert_int_equal(store_fingerprint(store, OTHER_UUID, id, &back, &err), STATUS_NOT_FOUND);
    assert_int_equal(store_fingerprint(store, FIXTURE_UUID, "fp0", &back, &err), STATUS_NOT_FOUND);
}

static void test_in_memory(void **state)
{
    struct store *const store = fixture_open(":memory:");

    (void)state;
    story(store);
    store_close(store);
    store_close(NULL);
}

static void test_in_a_file(void **state)
{
    const char *const path = fixture_path(*state, "state.db");
    struct store *store = fixture_open(path);
    struct fingerprint fp;
    struct err err = {0};

    story(store);
    store_close(store);
    store = fixture_open(path);
    assert_int_equal(store_current_fingerprint(store, FIXTURE_UUID, &fp, &err), STATUS_OK);
    assert_int_equal(fp.duration_ms, 1);
    store_close(store);
    store = fixture_open(path); /* the file is opened for the third time */
    store_close(store);
}

static void test_rules_of_runs(void **state)
{
    struct store *const store = fixture_open(":memory:");
    struct observation o = fixture_observation(0, 3);
    const struct err why = {.status = STATUS_GPU_BUSY, .text = "another program's"};
    struct fingerprint fp;
    struct err err = {0};
    int64_t first;
    int64_t second = 0;
    const struct gpu_identity gpu = fixture_gpu(FIXTURE_UUID);
    const struct gpu_limits limits = fixture_limits();

    (void)state;
    first = fixture_run(store, FIXTURE_UUID, 1, 1);
    fixture_fingerprint(FIXTURE_UUID, 2, &fp);
    assert_int_equal(store_add_observation(store, 99, &o, NULL, &err), STATUS_NOT_FOUND);
    assert_int_equal(store_add_observation(store, first, &o, NULL, &err), STATUS_CONFLICT);
    assert_int_equal(store_finish_run(store, first, &fp, &fp, &err), STATUS_CONFLICT);
    assert_int_equal(store_fail_run(store, first, &why, &err), STATUS_CONFLICT);
    assert_int_equal(store_fail_run(store, 99, &why, &err), STATUS_NOT_FOUND);

    assert_int_equal(store_begin_run(store, &gpu, &limits, DEPTH_FULL, 1, &second, &err),
                     STATUS_OK);
    assert_true(second > first);
    fixture_fingerprint(OTHER_UUID, 3, &fp);
    assert_int_equal(store_finish_run(store, second, &fp, &fp, &err), STATUS_INVALID_ARGUMENT);
    fixture_fingerprint(FIXTURE_UUID, 3, &fp);
    fp.topology.groups[0].sm_count = 3;
    assert_int_equal(store_finish_run(store, second, &fp, &fp, &err), STATUS_CORRUPT);
    assert_int_equal(store_add_observation(store, second, &o, NULL, &err), STATUS_OK);
    assert_int_equal(store_fail_run(store, second, &why, &err), STATUS_OK);
    assert_int_equal(store_fail_run(store, second, &why, &err), STATUS_CONFLICT);
    assert_int_equal(store_current_fingerprint(store, FIXTURE_UUID, &fp, &err), STATUS_OK);
    assert_int_equal(fp.duration_ms,
                     1); /* the current fingerprint is the one before the failed run */
    observation_free(&o);
    store_close(store);
}

static void test_paging(void **state)
{
    struct store *const store = fixture_open(":memory:");
    struct store_fingerprint_row prints[4];
    struct store_observation_row rows[4];
    struct err err = {0};
    uint32_t count = 0;
    int64_t before = 0;
    uint32_t seen = 0;

    (void)state;
    for (uint32_t i = 0; i < 10; i++)
        fixture_run(store, i % 5 == 4 ? OTHER_UUID : FIXTURE_UUID, i, 3);
    do {
        assert_int_equal(
            store_list_fingerprints(store, FIXTURE_UUID, before, prints, 3, &count, &err),
            STATUS_OK);
        for (uint32_t i = 0; i < count; i++) {
            assert_true(before == 0 || prints[i].run < before);
            assert_int_equal(prints[i].taken_at, 1700000000 + prints[i].run - 1);
            assert_int_equal(prints[i].depth, DEPTH_FULL);
            assert_int_equal(prints[i].origin, ORIGIN_SIMULATED);
            before = prints[i].run;
            seen++;
        }
    } while (count > 0);
    assert_int_equal(seen, 8);

    for (before = 0, seen = 0; seen < 100; seen += count, before = rows[count - 1].id) {
        assert_int_equal(
            store_list_observations(store, FIXTURE_UUID, 0, before, rows, 4, &count, &err),
            STATUS_OK);
        if (count == 0)
            break;
        assert_true(rows[0].id > rows[count - 1].id || count == 1);
    }
    assert_int_equal(seen, 24);
    assert_int_equal(store_list_observations(store, FIXTURE_UUID, 2, 0, rows, 4, &count, &err),
                     STATUS_OK);
    assert_int_equal(count, 3);
    assert_int_equal(rows[0].run, 2);
    assert_int_equal(rows[0].value_count, 40);
    assert_int_equal(rows[0].kind, PROBE_CHASE);
    assert_int_equal(store_list_observations(store, OTHER_UUID, 2, 0, rows, 4, &count, &err),
                     STATUS_OK);
    assert_int_equal(count, 0);
    store_close(store);
}

/* Observations that are not clean are read back as set aside, and are listed with their verdict. An
 * observation that another program changed is skipped. */
static void test_verdicts(void **state)
{
    const char *const path = fixture_path(*state, "state.db");
    struct store *store = fixture_open(path);
    const struct gpu_identity gpu = fixture_gpu(FIXTURE_UUID);
    const struct gpu_limits limits = fixture_limits();
    struct store_observation_row rows[4];
    struct observation_set set;
    struct err err = {0};
    uint32_t count = 0;
    int64_t run = 0;

    assert_int_equal(store_begin_run(store, &gpu, &limits, DEPTH_QUICK, 1, &run, &err), STATUS_OK);
    for (int v = VERDICT_CLEAN; v <= VERDICT_UNUSABLE; v++) {
        struct observation o = fixture_observation((uint32_t)v, 4);
        o.assessment.verdict = (enum verdict)v;
        snprintf(o.assessment.message, sizeof(o.assessment.message), "%s", v ? "why" : "");
        assert_int_equal(store_add_observation(store, run, &o, NULL, &err), STATUS_OK);
        observation_free(&o);
    }
    assert_int_equal(store_list_observations(store, FIXTURE_UUID, run, 0, rows, 4, &count, &err),
                     STATUS_OK);
    assert_int_equal(count, 3);
    assert_int_equal(rows[0].verdict, VERDICT_UNUSABLE);
    assert_int_equal(rows[2].verdict, VERDICT_CLEAN);
    assert_int_equal(store_load_run(store, run, &set, &err), STATUS_OK);
    assert_int_equal(set.count, 1);
    assert_int_equal(set.excluded.count, 2);
    assert_string_equal(set.excluded.items[0].assessment.message, "why");
    observation_set_free(&set);
    store_close(store);

    fixture_tamper(path, "UPDATE observation SET verdict = 'clean' WHERE verdict = 'disturbed'");
    store = fixture_open(path);
    assert_int_equal(store_list_observations(store, FIXTURE_UUID, run, 0, rows, 4, &count, &err),
                     STATUS_OK);
    assert_int_equal(count, 2);
    store_close(store);
}

enum { SERVED_RUNS = 6, SERVED_KEPT = 3 };

/* Stores a run whose measurement is served as another document. Writes the ids of both documents to
 * `ids`. */
static void serve_run(struct store *store, uint32_t n, char ids[2][FINGERPRINT_ID_BYTES])
{
    const struct gpu_identity gpu = fixture_gpu(FIXTURE_UUID);
    const struct gpu_limits limits = fixture_limits();
    struct fingerprint measured, known;
    int64_t run = 0;

    fixture_fingerprint(FIXTURE_UUID, n, &measured);
    assert_int_equal(fingerprint_id(&measured, ids[0], NULL), STATUS_OK);
    known = measured;
    fingerprint_set_measurement(&known, ids[0]);
    assert_int_equal(fingerprint_id(&known, ids[1], NULL), STATUS_OK);
    assert_int_equal(store_begin_run(store, &gpu, &limits, DEPTH_FULL, n, &run, NULL), STATUS_OK);
    assert_int_equal(store_finish_run(store, run, &measured, &known, NULL), STATUS_OK);
}

static void assert_found(struct store *store, const char *id, bool found)
{
    struct fingerprint fp;
    char back[FINGERPRINT_ID_BYTES];

    assert_int_equal(store_fingerprint(store, FIXTURE_UUID, id, &fp, NULL),
                     found ? STATUS_OK : STATUS_NOT_FOUND);
    if (!found)
        return;
    assert_int_equal(fingerprint_id(&fp, back, NULL), STATUS_OK);
    assert_string_equal(back, id);
}

/* Lists the documents served since `run`, newest first. Checks that there are `count` documents,
 * and writes their ids to `out`. */
static void list_served(struct store *store, int64_t run, uint32_t count,
                        char (*out)[FINGERPRINT_ID_BYTES])
{
    uint32_t found = 0;

    assert_int_equal(store_list_served(store, FIXTURE_UUID, run, out, 4, &found, NULL), STATUS_OK);
    assert_int_equal(found, count);
}

/* A served document can be found only as long as its run exists. */
static void test_served_documents(void **state)
{
    struct store *store = fixture_open(fixture_path(*state, "state.db"));
    struct store_limits limits = STORE_LIMITS_DEFAULT;
    char ids[SERVED_RUNS][2][FINGERPRINT_ID_BYTES], served[4][FINGERPRINT_ID_BYTES];
    bool recreated;

    limits.runs = SERVED_KEPT;
    for (uint32_t n = 0; n < SERVED_RUNS; n++)
        serve_run(store, n + 1, ids[n]);
    for (uint32_t n = 0; n < SERVED_RUNS; n++) {
        assert_found(store, ids[n][0], true);
        assert_found(store, ids[n][1], true);
        list_served(store, n + 1, 1, served);
        assert_string_equal(served[0], ids[n][1]);
    }
    store_set_limits(store, &limits);
    assert_int_equal(store_maintain(store, &recreated, NULL), STATUS_OK);
    for (uint32_t n = 0; n < SERVED_RUNS; n++) {
        assert_found(store, ids[n][0], n >= SERVED_RUNS - SERVED_KEPT);
        assert_found(store, ids[n][1], n >= SERVED_RUNS - SERVED_KEPT);
    }
    store_close(store);
}

/* Another release writes the known fingerprint in its own way. Both documents belong to one run. */
static void test_a_document_written_again(void **state)
{
    struct store *store = fixture_open(fixture_path(*state, "state.db"));
    char ids[2][FINGERPRINT_ID_BYTES], served[4][FINGERPRINT_ID_BYTES];
    struct fingerprint fp;

    serve_run(store, 1, ids);
    fixture_fingerprint(FIXTURE_UUID, 2, &fp);
    fingerprint_set_measurement(&fp, ids[1]);
    assert_int_equal(store_add_served(store, 1, &fp, NULL), STATUS_OK);
    list_served(store, 1, 2, served);
    assert_string_equal(served[1], ids[1]);
    assert_found(store, served[0], true);
    assert_int_equal(store_current_fingerprint(store, FIXTURE_UUID, &fp, NULL), STATUS_OK);
    assert_string_equal(fp.measurement_id, ids[1]);
    store_close(store);
}

static void test_rotten_rows(void **state)
{
    const char *const path = strdup(fixture_path(*state, "state.db"));
    struct store *store = fixture_open(path);
    struct store_fingerprint_row prints[8];
    struct store_observation_row rows[8];
    struct observation_set set;
    struct fingerprint fp;
    struct err err = {0};
    uint32_t count = 0;
    char *text = NULL;

    for (uint32_t i = 1; i <= 4; i++)
        fixture_run(store, FIXTURE_UUID, i, 2);
    store_close(store);
    fixture_tamper(path,
                   "DELETE FROM knowledge;"
                   "UPDATE fingerprint SET document = replace(document, '\"sm_count\":4', "
                   "'\"sm_count\":5') WHERE run = 4;"
                   "UPDATE fingerprint SET taken_at = 5 WHERE run = 3;"
                   "UPDATE observation SET document = replace(document, '640', '641') WHERE id = 3;"
                   "UPDATE observation SET kind = 'pairs' WHERE id = 4;"
                   "UPDATE observation SET document = 'x' WHERE id = 5;"
                   "UPDATE run SET document = replace(document, '9.0', '9.1') WHERE id = 4;");
    store = fixture_open(path);
    assert_int_equal(store_current_fingerprint(store, FIXTURE_UUID, &fp, &err), STATUS_OK);
    assert_int_equal(fp.duration_ms, 2); /* runs 4 and 3 are damaged */
    assert_int_equal(store_list_fingerprints(store, FIXTURE_UUID, 0, prints, 8, &count, &err),
                     STATUS_OK);
    assert_int_equal(count,
                     3); /* a listing reads no documents, so the listing still contains run 4 */
    assert_int_equal(prints[1].run, 2);
    assert_int_equal(store_fingerprint(store, FIXTURE_UUID, prints[0].id, &fp, &err),
                     STATUS_NOT_FOUND);
    assert_int_equal(store_list_observations(store, FIXTURE_UUID, 2, 0, rows, 8, &count, &err),
                     STATUS_OK);
    assert_int_equal(count, 1);
    assert_int_equal(store_observation_json(store, FIXTURE_UUID, 3, &text, &err), STATUS_CORRUPT);
    assert_int_equal(store_observation_json(store, FIXTURE_UUID, 4, &text, &err), STATUS_CORRUPT);
    assert_null(text);
    assert_int_equal(store_load_run(store, 2, &set, &err), STATUS_OK);
    assert_int_equal(set.count, 0);
    observation_set_free(&set);
    assert_int_equal(store_load_run(store, 3, &set, &err), STATUS_OK);
    assert_int_equal(set.count, 1);
    observation_set_free(&set);
    assert_int_equal(store_load_run(store, 4, &set, &err), STATUS_CORRUPT);
    assert_int_equal(store_load_run(store, 77, &set, &err), STATUS_NOT_FOUND);
    store_close(store);
    free((char *)(uintptr_t)path);
}

/* State that the threads share, because cmocka asserts only in the main thread. */
struct play {
    struct store *store;
    const char *uuid;
    uint32_t failures;
};

static void *writer(void *argument)
{
    struct play *const play = argument;
    int64_t run = 0;

    for (uint32_t i = 0; i < THREAD_RUNS; i++) {
        if (fixture_store_run(play->store, play->uuid, i + 1, 2, &run, NULL) != STATUS_OK)
            play->failures++;
    }
    return NULL;
}

static void *reader(void *argument)
{
    struct play *const play = argument;
    struct store_observation_row rows[8];
    struct fingerprint *const fp = malloc(sizeof(*fp));
    uint32_t last = 0;
    uint32_t count;

    for (uint32_t i = 0; fp && i < 10 * THREAD_RUNS; i++) {
        const enum status s = store_current_fingerprint(play->store, play->uuid, fp, NULL);
        if (s == STATUS_OK && fp->duration_ms < last)
            play->failures++; /* the fingerprint is older than the previous one */
        if (s == STATUS_OK)
            last = fp->duration_ms;
        else if (s != STATUS_NOT_FOUND)
            play->failures++;
        if (store_list_observations(play->store, play->uuid, 0, 0, rows, 8, &count, NULL) !=
            STATUS_OK)
            play->failures++;
    }
    free(fp);
    return NULL;
}

static void play_threads(struct store *store)
{
    struct play plays[4] = {{.store = store, .uuid = FIXTURE_UUID},
                            {.store = store, .uuid = OTHER_UUID},
                            {.store = store, .uuid = FIXTURE_UUID},
                            {.store = store, .uuid = OTHER_UUID}};
    pthread_t threads[4];

    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, i < 2 ? writer : reader, &plays[i]), 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(plays[i].failures, 0);
    }
    store_close(store);
}

static void test_threads(void **state)
{
    play_threads(fixture_open(fixture_path(*state, "state.db")));
    play_threads(fixture_open(":memory:"));
}

#define WITH_DIRECTORY(test)                                                                       \
    cmocka_unit_test_setup_teardown(test, fixture_set_up, fixture_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_memory),
        cmocka_unit_test(test_rules_of_runs),
        cmocka_unit_test(test_paging),
        WITH_DIRECTORY(test_in_a_file),
        WITH_DIRECTORY(test_verdicts),
        WITH_DIRECTORY(test_served_documents),
        WITH_DIRECTORY(test_a_document_written_again),
        WITH_DIRECTORY(test_rotten_rows),
        WITH_DIRECTORY(test_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
