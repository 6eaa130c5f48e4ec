/* test_fleet_keep.c: what a survey found is there afterwards, once; what lies is refused whole; a
 * survey that is broken off leaves nothing. On SQLite, and on PostgreSQL where REACH_FLEET_DB says
 * where. */
#include "fleet_fixture.h"

#include "clients/fleet/keep_numbers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define AT "2026-11-21T12:00:00Z"

static int64_t begin(struct fleet_db *db)
{
    int64_t survey = 0;
    struct err err = {0};

    if (fleet_survey_begin(db, AT, &survey, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    return survey;
}

static void end(struct fleet_db *db, int64_t survey)
{
    struct err err = {0};

    if (fleet_survey_end(db, survey, 7, &err) != STATUS_OK)
        fail_msg("%s", err.text);
}

/* Keeps a host that answered with these chips. */
static enum status keep_chips(struct fleet_db *db, int64_t survey, const char *name,
                              const struct fingerprint *chips, uint32_t count, struct err *err)
{
    struct fleet_host host = fleet_fixture_host(name, FLEET_ANSWERED, count);
    struct fleet_gpu gpus[8];
    enum status s;

    host.etag = "\"e1\"";
    for (uint32_t i = 0; i < count; i++)
        gpus[i] = fleet_fixture_gpu(i, &chips[i]);
    s = fleet_keep_host(db, survey, &host, gpus, err);
    for (uint32_t i = 0; i < count; i++)
        fleet_fixture_gpu_free(&gpus[i]);
    return s;
}

static void must_keep(struct fleet_db *db, int64_t survey, const char *name,
                      const struct fingerprint *chips, uint32_t count)
{
    struct err err = {0};

    if (keep_chips(db, survey, name, chips, count, &err) != STATUS_OK)
        fail_msg("%s", err.text);
}

static void test_two_surveys(void **state)
{
    struct fleet_db *db = fleet_fixture_fresh();
    struct fleet_host same = fleet_fixture_host("a:1", FLEET_UNCHANGED, 0);
    struct fingerprint *const fp = calloc(2, sizeof(*fp));
    char id[FINGERPRINT_ID_BYTES];
    char etag[128];
    bool has = true;
    struct err err = {0};
    int64_t survey;

    (void)state;
    fleet_fixture_chip(&fp[0], "GPU-1", "K80", ORIGIN_SIMULATED, 10, 11, 1000);
    fleet_fixture_chip(&fp[1], "GPU-2", "K80", ORIGIN_SIMULATED, 10, 13, 1000);
    assert_int_equal(fingerprint_id(&fp[0], id, NULL), STATUS_OK);
    survey = begin(db);
    assert_int_equal(survey, 1);
    assert_int_equal(fleet_has_fingerprint(db, id, &has, &err), STATUS_OK);
    assert_false(has);
    must_keep(db, survey, "a:1", fp, 2);
    end(db, survey);
    fleet_close(db);

    db = fleet_fixture_again();
    assert_int_equal(fleet_has_fingerprint(db, id, &has, &err), STATUS_OK);
    assert_true(has);
    assert_int_equal(fleet_last_etag(db, "a:1", etag, &err), STATUS_OK);
    assert_string_equal(etag, "\"e1\"");
    assert_int_equal(fleet_last_etag(db, "b:1", etag, &err), STATUS_OK);
    assert_string_equal(etag, "");
    survey = begin(db);
    assert_int_equal(survey, 2);
    assert_int_equal(fleet_keep_host(db, survey, &same, NULL, &err), STATUS_OK);
    end(db, survey);
    /* A row a GPU, and nothing else. */
    assert_int_equal(fleet_fixture_number(db, "SELECT COUNT(*) FROM fleet_sighting"), 4);
    assert_int_equal(fleet_fixture_number(db, "SELECT COUNT(*) FROM fleet_fingerprint"), 2);
    assert_int_equal(fleet_fixture_number(db, "SELECT COUNT(*) FROM fleet_document"), 2);
    assert_int_equal(fleet_fixture_number(db, "SELECT COUNT(*) FROM fleet_structure"), 1);
    assert_int_equal(fleet_fixture_number(db, "SELECT COUNT(*) FROM fleet_gpu"), 2);
    assert_int_equal(
        fleet_fixture_number(db, "SELECT COUNT(*) FROM fleet_sighting WHERE survey = 2 AND "
                                 "counted = 1 AND was_survey = 1 AND was_slot = slot"),
        2);
    assert_int_equal(fleet_last_etag(db, "a:1", etag, &err), STATUS_OK);
    assert_string_equal(etag, "\"e1\"");
    fleet_close(db);
    free(fp);
}

/* What was measured comes back to the last bit. */
struct seen {
    struct number_cell cells[1024];
    uint32_t count;
};

static enum status read_cells(void *self, int columns, const char *const *values, struct err *err)
{
    struct seen *const seen = self;
    const char *at = values[0];

    (void)columns;
    (void)err;
    while (numbers_get(&at, &seen->cells[seen->count]))
        seen->count++;
    assert_string_equal(at, "");
    return STATUS_OK;
}

struct wanted {
    const struct seen *seen;
    uint32_t at;
};

static void compare_number(void *self, const char *name, enum known known, double v)
{
    struct wanted *const w = self;
    const struct number_cell *const cell = &w->seen->cells[w->at++];

    if (cell->known != known || memcmp(&cell->v, &v, sizeof(v)) != 0)
        fail_msg("%s: %d %a, not %d %a", name, (int)cell->known, cell->v, (int)known, v);
}

static void test_numbers(void **state)
{
    struct fleet_db *const db = fleet_fixture_fresh();
    struct fingerprint *const fp = calloc(1, sizeof(*fp));
    struct seen *const seen = calloc(1, sizeof(*seen));
    struct wanted wanted = {.seen = seen};
    struct err err = {0};
    int64_t survey = begin(db);

    (void)state;
    fleet_fixture_chip(fp, "GPU-1", "K80", ORIGIN_MEASURED, 5, 10, 1000);
    fp->throughput.whole_memory_gbps = KNOWN_F64(0.1 + 0.2);
    fp->levels[1].saturation_bytes = (struct maybe_u64)NOT_OBSERVABLE(REASON_BEYOND_MEMORY);
    must_keep(db, survey, "a:1", fp, 1);
    end(db, survey);
    assert_int_equal(
        fleet_query(db, "SELECT cells FROM fleet_numbers", 0, NULL, read_cells, seen, &err),
        STATUS_OK);
    numbers_visit(fp, compare_number, &wanted);
    assert_int_equal(wanted.at, seen->count);
    assert_true(seen->count > 30);
    fleet_close(db);
    free(seen);
    free(fp);
}

static void test_broken_off(void **state)
{
    struct fleet_db *db = fleet_fixture_fresh();
    struct fingerprint *const fp = calloc(1, sizeof(*fp));
    int64_t survey = begin(db);

    (void)state;
    fleet_fixture_chip(fp, "GPU-1", "K80", ORIGIN_MEASURED, 5, 10, 1000);
    must_keep(db, survey, "a:1", fp, 1);
    fleet_survey_abort(db);
    assert_int_equal(fleet_fixture_number(db, "SELECT COUNT(*) FROM fleet_survey"), 0);
    assert_int_equal(fleet_fixture_number(db, "SELECT COUNT(*) FROM fleet_number"), 0);
    survey = begin(db); /* and it goes on as if nothing had been */
    must_keep(db, survey, "a:1", fp, 1);
    fleet_close(db); /* without an end: broken off too */
    db = fleet_fixture_again();
    assert_int_equal(fleet_fixture_number(db, "SELECT COUNT(*) FROM fleet_sighting"), 0);
    assert_int_equal(fleet_fixture_number(db, "SELECT COUNT(*) FROM fleet_host"), 0);
    fleet_close(db);
    free(fp);
}

/* What a host says that lies: the whole host is refused and the survey goes on. */
static void test_lies(void **state)
{
    struct fleet_db *const db = fleet_fixture_fresh();
    struct fleet_host host = fleet_fixture_host("liar:1", FLEET_ANSWERED, 2);
    struct fingerprint *const fp = calloc(2, sizeof(*fp));
    struct fleet_gpu gpus[2];
    struct err err = {0};
    int64_t survey = begin(db);

    (void)state;
    fleet_fixture_chip(&fp[0], "GPU-1", "K80", ORIGIN_MEASURED, 10, 11, 1000);
    fleet_fixture_chip(&fp[1], "GPU-2", "K80", ORIGIN_MEASURED, 10, 11, 1000);
    for (int lie = 0; lie < 8; lie++) {
        for (uint32_t i = 0; i < 2; i++)
            gpus[i] = fleet_fixture_gpu(i, &fp[i]);
        struct fleet_gpu told = gpus[1];
        switch (lie) {
        case 0: /* another GPU's fingerprint */
            told.uuid = "GPU-3";
            break;
        case 1:
            told.fingerprint_json = "{\"id\": 1}";
            break;
        case 2:
            told.fingerprint_json = "[[[[";
            break;
        case 3: /* named otherwise than its hash */
            told.fingerprint_id = "fp0123456789abcdef";
            break;
        case 4: /* never shown */
            told.fingerprint_id = "fp0123456789abcdef";
            told.fingerprint_json = NULL;
            break;
        case 5:
            told.uuid = "GPU-'; DROP TABLE fleet_gpu; --";
            break;
        case 6:
            told.slot = 0;
            break;
        default:
            told.uuid = "";
        }
        const struct fleet_gpu both[2] = {gpus[0], told};
        assert_int_equal(fleet_keep_host(db, survey, &host, both, &err), STATUS_CORRUPT);
        for (uint32_t i = 0; i < 2; i++)
            fleet_fixture_gpu_free(&gpus[i]);
        assert_int_equal(fleet_fixture_number(db, "SELECT COUNT(*) FROM fleet_sighting"), 0);
        assert_int_equal(fleet_fixture_number(db, "SELECT COUNT(*) FROM fleet_outcome"), 0);
    }
    host.outcome = FLEET_GARBAGE;
    assert_int_equal(fleet_keep_host(db, survey, &host, NULL, &err), STATUS_OK);
    assert_int_equal(fleet_keep_host(db, survey, &host, NULL, &err), STATUS_CONFLICT);
    must_keep(db, survey, "b:1", fp, 2);
    end(db, survey);
    assert_int_equal(fleet_fixture_number(db, "SELECT COUNT(*) FROM fleet_sighting"), 2);
    assert_int_equal(fleet_fixture_number(db, "SELECT COUNT(*) FROM fleet_outcome"), 2);
    fleet_close(db);
    free(fp);
}

/* A GPU that two hosts claim is kept of both and counts of none; their other GPUs count. */
static void test_disputed(void **state)
{
    struct fleet_db *const db = fleet_fixture_fresh();
    struct fleet_host host = fleet_fixture_host("a:1", FLEET_LIED, 2);
    struct fingerprint *const fp = calloc(2, sizeof(*fp));
    struct fleet_gpu gpus[2];
    struct err err = {0};
    int64_t survey = begin(db);

    (void)state;
    fleet_fixture_chip(&fp[0], "GPU-1", "K80", ORIGIN_MEASURED, 10, 11, 1000);
    fleet_fixture_chip(&fp[1], "GPU-2", "K80", ORIGIN_MEASURED, 10, 12, 1000);
    for (uint32_t i = 0; i < 2; i++)
        gpus[i] = fleet_fixture_gpu(i, &fp[i]);
    gpus[0].disputed = true;
    assert_int_equal(fleet_keep_host(db, survey, &host, gpus, &err), STATUS_OK);
    host.name = "b:1";
    host.gpu_count = 1;
    assert_int_equal(fleet_keep_host(db, survey, &host, gpus, &err), STATUS_OK);
    end(db, survey);
    assert_int_equal(fleet_fixture_number(db, "SELECT COUNT(*) FROM fleet_sighting"), 3);
    assert_int_equal(fleet_fixture_number(db, "SELECT SUM(counted) FROM fleet_sighting"), 1);
    assert_int_equal(fleet_fixture_number(db, "SELECT seen FROM fleet_gpu WHERE uuid = 'GPU-1'"),
                     0);
    assert_int_equal(fleet_fixture_number(db, "SELECT seen FROM fleet_gpu WHERE uuid = 'GPU-2'"),
                     survey);
    for (uint32_t i = 0; i < 2; i++)
        fleet_fixture_gpu_free(&gpus[i]);
    fleet_close(db);
    free(fp);
}

/* Texts that a host chooses stay texts. */
static void test_texts(void **state)
{
    struct fleet_db *const db = fleet_fixture_fresh();
    struct fleet_host host =
        fleet_fixture_host("a'); DROP TABLE fleet_host; --", FLEET_ANSWERED, 1);
    struct fleet_gpu gpu = {.slot = 3,
                            .uuid = "GPU-1",
                            .serial = "1\x1b[31m",
                            .model = "\xff\xfe K80 \xc3",
                            .state = "$1 ?1 :x",
                            .fingerprint_id = ""};
    struct err err = {0};
    int64_t survey = begin(db);
    char long_name[400];

    (void)state;
    host.detail = "line\none \x07";
    assert_int_equal(fleet_keep_host(db, survey, &host, &gpu, &err), STATUS_OK);
    memset(long_name, 'x', sizeof(long_name));
    long_name[sizeof(long_name) - 1] = '\0';
    host.name = long_name;
    assert_int_equal(fleet_keep_host(db, survey, &host, &gpu, &err), STATUS_INVALID_ARGUMENT);
    end(db, survey);
    assert_int_equal(fleet_fixture_number(db, "SELECT COUNT(*) FROM fleet_kind WHERE "
                                              "model = '?? K80 ?' AND origin = ''"),
                     1);
    assert_int_equal(fleet_fixture_number(db, "SELECT COUNT(*) FROM fleet_gpu WHERE "
                                              "serial = '1 [31m'"),
                     1);
    assert_int_equal(fleet_fixture_number(db, "SELECT COUNT(*) FROM fleet_sighting WHERE "
                                              "state = '$1 ?1 :x' AND slot = 3"),
                     1);
    assert_int_equal(fleet_fixture_number(db, "SELECT COUNT(*) FROM fleet_outcome WHERE "
                                              "detail = 'line one  '"),
                     1);
    fleet_close(db);
}

/* A GPU counts once; one that moved, changed slots or was swapped leaves its trace. */
static void test_boards(void **state)
{
    struct fleet_db *const db = fleet_fixture_fresh();
    struct fingerprint *const fp = calloc(3, sizeof(*fp));
    struct fleet_host same = fleet_fixture_host("b:1", FLEET_UNCHANGED, 0);
    struct err err = {0};
    int64_t survey = begin(db);

    (void)state;
    fleet_fixture_chip(&fp[0], "GPU-1", "K80", ORIGIN_MEASURED, 10, 11, 1000);
    fleet_fixture_chip(&fp[1], "GPU-2", "K80", ORIGIN_MEASURED, 10, 13, 1000);
    fleet_fixture_chip(&fp[2], "GPU-1", "K80", ORIGIN_MEASURED, 10, 11, 2000);
    must_keep(db, survey, "a:1", fp, 2);
    must_keep(db, survey, "b:1", &fp[0], 1); /* the same UUID */
    end(db, survey);
    assert_int_equal(fleet_fixture_number(db, "SELECT SUM(counted) FROM fleet_sighting"), 2);
    assert_int_equal(fleet_fixture_number(db, "SELECT MAX(host) FROM fleet_gpu"), 1);

    survey = begin(db); /* a is gone, so b's word counts: GPU-1 moved there */
    assert_int_equal(fleet_keep_host(db, survey, &same, NULL, &err), STATUS_OK);
    end(db, survey);
    assert_int_equal(fleet_fixture_number(db, "SELECT counted FROM fleet_sighting "
                                              "WHERE survey = 2 AND was_host <> host"),
                     1);

    survey = begin(db); /* and has a new fingerprint and a serial number */
    (void)snprintf(fp[2].gpu.serial, sizeof(fp[2].gpu.serial), "77");
    must_keep(db, survey, "b:1", &fp[2], 1);
    end(db, survey);
    assert_int_equal(fleet_fixture_number(db, "SELECT COUNT(*) FROM fleet_gpu"), 2);
    assert_int_equal(fleet_fixture_number(db,
                                          "SELECT COUNT(*) FROM fleet_sighting WHERE survey = 3 "
                                          "AND fingerprint <> was_fingerprint"),
                     1);

    survey = begin(db); /* another serial number: another board with that UUID */
    (void)snprintf(fp[2].gpu.serial, sizeof(fp[2].gpu.serial), "78");
    must_keep(db, survey, "b:1", &fp[2], 1);
    end(db, survey);
    assert_int_equal(
        fleet_fixture_number(db, "SELECT COUNT(*) FROM fleet_gpu WHERE uuid = 'GPU-1'"), 2);
    fleet_close(db);
    free(fp);
}

static void test_wrong_use(void **state)
{
    struct fleet_db *db = fleet_fixture_fresh();
    struct fleet_host host = fleet_fixture_host("a:1", FLEET_UNCHANGED, 0);
    struct err err = {0};
    int64_t survey;
    int64_t second;

    (void)state;
    assert_int_equal(fleet_keep_host(db, 1, &host, NULL, &err), STATUS_CONFLICT);
    assert_int_equal(fleet_survey_end(db, 1, 0, &err), STATUS_CONFLICT);
    survey = begin(db);
    assert_int_equal(fleet_survey_begin(db, AT, &second, &err), STATUS_CONFLICT);
    /* "Nothing changed" of one that never answered. */
    assert_int_equal(fleet_keep_host(db, survey, &host, NULL, &err), STATUS_CORRUPT);
    host.name = "";
    assert_int_equal(fleet_keep_host(db, survey, &host, NULL, &err), STATUS_INVALID_ARGUMENT);
    end(db, survey);
    assert_int_equal(fleet_query(db, "SELECT nonsense", 0, NULL, NULL, NULL, &err),
                     STATUS_INVALID_ARGUMENT);
    fleet_close(db);

    db = fleet_fixture_again();
    assert_int_equal(
        fleet_query(db, "UPDATE fleet_schema SET version = 99", 0, NULL, NULL, NULL, &err),
        STATUS_OK);
    fleet_close(db);
    assert_int_equal(fleet_open(fleet_fixture_where(), &db, &err), STATUS_CONFLICT);
    assert_null(db);
}

/* Somebody else's database, and what is none, keep every byte. SQLite's alone. */
static void test_foreign_file(void **state)
{
    static const char text[] = "this is a letter, not a database, and longer than a header is: "
                               "0123456789012345678901234567890123456789012345678901234567890";
    char name[] = "/tmp/reach-fleet-foreign-XXXXXX";
    char back[sizeof(text)] = "";
    struct fleet_db *db = NULL;
    struct err err = {0};
    FILE *file;

    (void)state;
    file = fdopen(mkstemp(name), "w");
    assert_non_null(file);
    assert_int_equal(fputs(text, file) >= 0, 1);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(fleet_open(name, &db, &err), STATUS_CORRUPT);
    assert_null(db);
    file = fopen(name, "re");
    assert_non_null(file);
    assert_int_equal(fread(back, 1, sizeof(back), file), sizeof(text) - 1);
    assert_int_equal(fclose(file), 0);
    assert_string_equal(back, text);
    (void)remove(name);
    assert_int_equal(fleet_open("/nowhere/at/all.db", &db, &err), STATUS_IO);
}

static int remove_files(void **state)
{
    (void)state;
    fleet_fixture_remove();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_surveys),  cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_broken_off),   cmocka_unit_test(test_lies),
        cmocka_unit_test(test_disputed),     cmocka_unit_test(test_texts),
        cmocka_unit_test(test_boards),       cmocka_unit_test(test_wrong_use),
        cmocka_unit_test(test_foreign_file),
    };

    return cmocka_run_group_tests_name("fleet_keep", tests, NULL, remove_files);
}
