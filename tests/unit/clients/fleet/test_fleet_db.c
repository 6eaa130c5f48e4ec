/* test_fleet_db.c: the results of a survey are stored once, an inconsistent host is rejected as a
 * whole, and an aborted survey leaves nothing. The tests run on SQLite, and on PostgreSQL if
 * REACH_FLEET_DB contains an address. */
#include "tests/unit/support/fleet_fixture.h"

#include "compare/metrics.h"
#include "fingerprint/fingerprint_json.h"

#include <linux/magic.h>
#include <math.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cmocka.h>

#define AT "2026-11-21T12:00:00Z"

static void begin(struct fleet_db *db)
{
    struct err err = {0};

    if (fleet_survey_begin(db, &err) != STATUS_OK)
        fail_msg("%s", err.text);
}

/* Adds a host that answered with these chips. */
static enum status add_chips(struct fleet_db *db, uint32_t place, const char *name,
                             const struct fingerprint *chips, uint32_t count, struct err *err)
{
    struct fleet_host host = fleet_fixture_host(name, FLEET_ANSWERED);
    json_t *const gpus = json_array();

    host.etag = "\"e1\"";
    for (uint32_t i = 0; i < count; i++)
        json_array_append_new(gpus, fleet_fixture_gpu(i, &chips[i]));
    return fleet_fixture_add(db, place, &host, gpus, err);
}

static void must_add(struct fleet_db *db, uint32_t place, const char *name,
                     const struct fingerprint *chips, uint32_t count)
{
    struct err err = {0};

    if (add_chips(db, place, name, chips, count, &err) != STATUS_OK)
        fail_msg("%s", err.text);
}

static int64_t number(struct fleet_db *db, const char *sql)
{
    return fleet_fixture_number(db, sql);
}

static void test_two_surveys(void **state)
{
    struct fleet_db *db = fleet_fixture_fresh();
    struct fleet_host same = fleet_fixture_host("a:1", FLEET_UNCHANGED);
    struct fingerprint *const fp = calloc(2, sizeof(*fp));
    char id[FINGERPRINT_ID_BYTES];
    char etag[FLEET_ETAG_BYTES];
    char sql[160];
    struct err err = {0};
    struct fleet_survey survey;

    (void)state;
    fleet_fixture_chip(&fp[0], "GPU-1", "K80", ORIGIN_SIMULATED, 10, 11, 1000);
    fleet_fixture_chip(&fp[1], "GPU-2", "K80", ORIGIN_SIMULATED, 10, 13, 1000);
    assert_int_equal(fingerprint_id(&fp[0], id, NULL), STATUS_OK);
    begin(db);
    must_add(db, 1, "a:1", fp, 2);
    survey = fleet_fixture_end(db);
    assert_int_equal(survey.number, 1);
    assert_int_equal(survey.gpu_count, 2);
    assert_int_equal(survey.new_fingerprints, 2);
    fleet_close(db);

    db = fleet_fixture_again();
    (void)snprintf(sql, sizeof(sql),
                   "SELECT COUNT(*) FROM fleet_fingerprint WHERE uuid = 'GPU-1' AND name = '%s'",
                   id);
    assert_int_equal(number(db, sql), 1);
    assert_int_equal(fleet_last_etag(db, "a:1", etag, &err), STATUS_OK);
    assert_string_equal(etag, "\"e1\"");
    assert_int_equal(fleet_last_etag(db, "b:1", etag, &err), STATUS_OK);
    assert_string_equal(etag, "");
    begin(db);
    assert_int_equal(fleet_survey_add(db, 1, &same, NULL, &err), STATUS_OK);
    survey = fleet_fixture_end(db);
    assert_int_equal(survey.number, 2);
    assert_int_equal(survey.gpu_count, 2);
    assert_int_equal(survey.new_fingerprints, 0);
    /* Each GPU has one new row, and no other row is added, because the quartiles of the previous
     * survey are used. */
    assert_int_equal(number(db, "SELECT COUNT(*) FROM fleet_sighting"), 4);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM fleet_fingerprint"), 2);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM fleet_document"), 2);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM fleet_structure"), 1);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM fleet_gpu"), 2);
    assert_int_equal(number(db, "SELECT quartiles FROM fleet_survey WHERE id = 2"), 1);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM fleet_quartiles WHERE survey = 2"), 0);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM fleet_sighting WHERE survey = 2 AND "
                                "counted = 1 AND was_survey = 1 AND was_slot = slot"),
                     2);
    assert_int_equal(fleet_last_etag(db, "a:1", etag, &err), STATUS_OK);
    assert_string_equal(etag, "\"e1\"");
    fleet_close(db);
    free(fp);
}

/* An answer has a fingerprint that is already stored and a new one. Only the new one is stored. */
static void test_known_fingerprint(void **state)
{
    struct fleet_db *const db = fleet_fixture_fresh();
    struct fingerprint *const fp = calloc(2, sizeof(*fp));

    (void)state;
    fleet_fixture_chip(&fp[0], "GPU-1", "K80", ORIGIN_SIMULATED, 10, 11, 1000);
    fleet_fixture_chip(&fp[1], "GPU-2", "K80", ORIGIN_SIMULATED, 10, 13, 1000);
    begin(db);
    must_add(db, 1, "a:1", fp, 1);
    (void)fleet_fixture_end(db);
    begin(db);
    must_add(db, 1, "a:1", fp, 2);
    assert_int_equal(fleet_fixture_end(db).new_fingerprints, 1);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM fleet_fingerprint"), 2);
    assert_int_equal(number(db, "SELECT COUNT(DISTINCT fingerprint) FROM fleet_metric"), 2);
    begin(db); /* the fingerprint comes from another host */
    must_add(db, 1, "b:1", fp, 2);
    assert_int_equal(fleet_fixture_end(db).new_fingerprints, 0);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM fleet_fingerprint"), 2);
    fleet_close(db);
    free(fp);
}

/* A hand-written SQL query returns measured values exactly, to the last bit. */
struct wanted {
    struct fleet_db *db;
    uint32_t count;
};

struct found {
    bool any;
    double v;
    char absent[32];
};

static enum status read_metric(void *self, const char *const *values, struct err *err)
{
    struct found *const found = self;

    (void)err;
    assert_false(found->any);
    found->any = true;
    found->v = values[0] ? strtod(values[0], NULL) : 0;
    (void)snprintf(found->absent, sizeof(found->absent), "%s", values[1] ? values[1] : "");
    return STATUS_OK;
}

static void compare_metric(void *self, const char *name, enum known known, double v,
                           const char *text)
{
    static const char *const absent[] = {
        [MAYBE_UNKNOWN] = "unknown", [MAYBE_KNOWN] = "", [MAYBE_NOT_OBSERVABLE] = "not_observable"};
    struct wanted *const w = self;
    struct found found = {.any = false};
    const char *const parameters[] = {name};
    struct err err = {0};

    (void)text;
    assert_int_equal(fleet_query(w->db,
                                 "SELECT value, absent FROM fleet_metrics "
                                 "WHERE gpu = 'GPU-1' AND taken_at = 1000 AND name = $1",
                                 1, parameters, read_metric, &found, &err),
                     STATUS_OK);
    if (!found.any || strcmp(found.absent, absent[known]) != 0 ||
        memcmp(&found.v, &v, sizeof(v)) != 0)
        fail_msg("%s: %s %a, not %d %a", name, found.absent, found.v, (int)known, v);
    w->count++;
}

/* The statement that stores a series has the same list of metrics as metrics.h. */
static enum status check_judged(void *self, const char *const *values, struct err *err)
{
    (void)self;
    (void)err;
    if ((strcmp(values[1], "1") == 0) != metrics_is_judged(values[0]))
        fail_msg("%s: judged is %s", values[0], values[1]);
    if ((strcmp(values[2], "1") == 0) != metrics_is_tracked(values[0]))
        fail_msg("%s: tracked is %s", values[0], values[2]);
    return STATUS_OK;
}

static void test_metrics(void **state)
{
    struct err err = {0};
    struct fleet_db *const db = fleet_fixture_fresh();
    struct fingerprint *const fp = calloc(1, sizeof(*fp));
    struct wanted wanted = {.db = db};

    (void)state;
    begin(db);
    fleet_fixture_chip(fp, "GPU-1", "K80", ORIGIN_MEASURED, 5, 10, 1000);
    fp->throughput.whole_memory_gbps = KNOWN_F64(0.1 + 0.2);
    fp->levels[1].saturation_bytes = (struct maybe_u64)NOT_OBSERVABLE(REASON_BEYOND_MEMORY);
    must_add(db, 1, "a:1", fp, 1);
    (void)fleet_fixture_end(db);
    metrics_visit(fp, compare_metric, &wanted);
    assert_int_equal(wanted.count, number(db, "SELECT COUNT(*) FROM fleet_metric"));
    assert_true(wanted.count > 30);
    assert_int_equal(fleet_query(db, "SELECT name, judged, tracked FROM fleet_series", 0, NULL,
                                 check_judged, NULL, &err),
                     STATUS_OK);
    /* This metric compares a GPU with itself, and not with others. */
    assert_int_equal(number(db, "SELECT COUNT(*) FROM fleet_series WHERE judged < tracked AND "
                                "name = 'tlb.levels[2].miss_penalty_cycles'"),
                     1);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM fleet_series WHERE judged <> tracked"), 1);
    fleet_close(db);
    free(fp);
}

/* Values whose differences or ratios overflow or underflow count as unknown. The survey
 * continues. */
static void test_extreme_values(void **state)
{
    static const double extremes[] = {1e308, -1e308, 1e-308, 0, 5e-324, 1e100, 1e99, 1e-99};
    struct fleet_db *const db = fleet_fixture_fresh();
    struct fingerprint *const fp = calloc(1, sizeof(*fp));
    char uuid[16];
    char name[16];

    (void)state;
    for (uint32_t turn = 0; turn < 2; turn++) {
        begin(db);
        for (uint32_t i = 0; i < 16; i++) {
            (void)snprintf(uuid, sizeof(uuid), "GPU-%u", i);
            (void)snprintf(name, sizeof(name), "h%u:1", i);
            fleet_fixture_chip(fp, uuid, "K80", ORIGIN_MEASURED, 5, 10, 1000 + turn);
            fp->levels[1].miss_penalty_cycles = KNOWN_F64(fabs(extremes[(i + 3 * turn) % 8]));
            must_add(db, i + 1, name, fp, 1);
        }
        assert_int_equal(fleet_fixture_end(db).gpu_count, 16);
    }
    fleet_close(db);
    free(fp);
}

static void test_aborted(void **state)
{
    struct fleet_db *db = fleet_fixture_fresh();
    struct fingerprint *const fp = calloc(1, sizeof(*fp));

    (void)state;
    fleet_fixture_chip(fp, "GPU-1", "K80", ORIGIN_MEASURED, 5, 10, 1000);
    begin(db);
    must_add(db, 1, "a:1", fp, 1);
    fleet_survey_abort(db);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM fleet_survey"), 0);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM fleet_series"), 0);
    begin(db); /* the survey continues like without the error */
    must_add(db, 1, "a:1", fp, 1);
    assert_int_equal(fleet_fixture_end(db).gpu_count, 1);
    begin(db);
    must_add(db, 1, "b:1", fp, 1);
    fleet_close(db); /* this survey has no end, so it is aborted too */
    db = fleet_fixture_again();
    assert_int_equal(number(db, "SELECT COUNT(*) FROM fleet_sighting"), 1);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM fleet_host"), 1);
    fleet_close(db);
    free(fp);
}

/* Each answer contradicts itself or is no answer. No row of the host is added, and the survey
 * continues. test_host_answer.c tests every kind of contradiction. */
static void test_inconsistent_answers(void **state)
{
    struct fleet_db *const db = fleet_fixture_fresh();
    struct fleet_host host = fleet_fixture_host("liar:1", FLEET_ANSWERED);
    struct fingerprint *const fp = calloc(2, sizeof(*fp));
    struct err err = {0};

    (void)state;
    begin(db);
    fleet_fixture_chip(&fp[0], "GPU-1", "K80", ORIGIN_MEASURED, 10, 11, 1000);
    fleet_fixture_chip(&fp[1], "GPU-2", "K80", ORIGIN_MEASURED, 10, 11, 1000);
    for (int lie = 0; lie < 6; lie++) {
        json_t *const told = fleet_fixture_gpu(1, &fp[1]);
        json_t *const gpus = json_pack("[o, o]", fleet_fixture_gpu(0, &fp[0]), told);
        switch (lie) {
        case 0: /* the fingerprint belongs to another GPU */
            json_object_set_new(told, "uuid", json_string("GPU-3"));
            break;
        case 1:
            json_object_set_new(told, "fingerprint", json_pack("{s:i}", "id", 1));
            break;
        case 2: /* the id differs from the hash */
            json_object_set_new(told, "fingerprint_id", json_string("fp0123456789abcdef"));
            break;
        case 3:
            json_object_set_new(told, "uuid", json_string("GPU-'; DROP TABLE fleet_gpu; --"));
            break;
        case 4:
            json_object_set_new(told, "index", json_integer(0));
            break;
        default:
            json_object_set_new(told, "uuid", json_string(""));
        }
        assert_int_not_equal(fleet_fixture_add(db, 1, &host, gpus, &err), STATUS_OK);
    }
    host.outcome = FLEET_BAD_RESPONSE;
    assert_int_equal(fleet_survey_add(db, 1, &host, NULL, &err), STATUS_OK);
    must_add(db, 2, "b:1", fp, 2);
    assert_int_equal(fleet_fixture_end(db).gpu_count, 2);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM fleet_sighting"), 2);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM fleet_outcome"), 2);
    fleet_close(db);
    free(fp);
}

/* If two hosts report the same GPU, the GPU is stored for both hosts and counts for neither. The
 * other GPUs of the hosts count. */
static void test_uuid_conflict(void **state)
{
    struct fleet_db *const db = fleet_fixture_fresh();
    struct fingerprint *const fp = calloc(3, sizeof(*fp));
    struct fleet_survey survey;

    (void)state;
    fleet_fixture_chip(&fp[0], "GPU-1", "K80", ORIGIN_MEASURED, 10, 11, 1000);
    fleet_fixture_chip(&fp[1], "GPU-2", "K80", ORIGIN_MEASURED, 10, 12, 1000);
    fleet_fixture_chip(&fp[2], "gpu-1", "K80", ORIGIN_MEASURED, 10, 12, 1000);
    begin(db);
    must_add(db, 1, "a:1", fp, 2);
    must_add(db, 2, "b:1", &fp[2], 1); /* the same UUID in another spelling */
    survey = fleet_fixture_end(db);
    assert_int_equal(survey.gpu_count, 1);
    assert_int_equal(survey.conflict_count, 1);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM fleet_sighting"), 3);
    assert_int_equal(number(db, "SELECT SUM(counted) FROM fleet_sighting"), 1);
    assert_int_equal(number(db, "SELECT seen FROM fleet_gpu WHERE uuid = 'GPU-1'"), 0);
    assert_int_equal(number(db, "SELECT seen FROM fleet_gpu WHERE uuid = 'GPU-2'"), survey.number);
    assert_int_equal(number(db,
                            "SELECT COUNT(*) FROM fleet_outcome WHERE outcome = 'inconsistent' "
                            "AND detail LIKE '%1 is reported by % too%two names of one daemon?'"),
                     2);
    begin(db); /* the host sends the same answer again, with one fingerprint */
    must_add(db, 1, "a:1", fp, 1);
    must_add(db, 2, "c:1", fp, 1);
    survey = fleet_fixture_end(db);
    assert_int_equal(survey.conflict_count, 1);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM fleet_fingerprint WHERE uuid = 'GPU-1'"), 1);
    fleet_close(db);
    free(fp);
}

/* A text that a host chooses is stored as text and never run as SQL. */
static void test_texts(void **state)
{
    struct fleet_db *const db = fleet_fixture_fresh();
    struct fleet_host host = fleet_fixture_host("a'); DROP TABLE fleet_host; --", FLEET_ANSWERED);
    struct err err = {0};
    char long_name[400];

    (void)state;
    begin(db);
    host.detail = "line\none \x07";
    assert_int_equal(
        fleet_fixture_add(db, 1, &host,
                          json_pack("[o]", fleet_fixture_gpu_without(3, "GPU-1", "1\x1b[31m",
                                                                     "\\N\t K80 $1 ?1 \\", "x:y")),
                          &err),
        STATUS_OK);
    memset(long_name, 'x', sizeof(long_name));
    long_name[sizeof(long_name) - 1] = '\0';
    host.name = long_name;
    host.outcome = FLEET_ERROR;
    assert_int_equal(fleet_survey_add(db, 2, &host, NULL, &err), STATUS_INVALID_ARGUMENT);
    (void)fleet_fixture_end(db);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM fleet_kind WHERE "
                                "model = '\\N  K80 $1 ?1 \\' AND origin = ''"),
                     1);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM fleet_gpu WHERE serial = '1 [31m'"), 1);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM fleet_sighting WHERE state = 'x:y' AND "
                                "slot = 3"),
                     1);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM fleet_outcome WHERE detail = 'line one  '"),
                     1);
    fleet_close(db);
}

/* The database records that a GPU moved, was measured again or was swapped. */
static void test_inventory(void **state)
{
    struct fleet_db *const db = fleet_fixture_fresh();
    struct fingerprint *const fp = calloc(3, sizeof(*fp));

    (void)state;
    fleet_fixture_chip(&fp[0], "GPU-1", "K80", ORIGIN_MEASURED, 10, 11, 1000);
    fleet_fixture_chip(&fp[1], "GPU-2", "K80", ORIGIN_MEASURED, 10, 13, 1000);
    fleet_fixture_chip(&fp[2], "GPU-1", "K80", ORIGIN_MEASURED, 10, 11, 2000);
    begin(db);
    must_add(db, 1, "a:1", fp, 2);
    (void)fleet_fixture_end(db);
    assert_int_equal(number(db, "SELECT SUM(counted) FROM fleet_sighting"), 2);
    assert_int_equal(number(db, "SELECT MAX(host) FROM fleet_gpu"), 1);

    begin(db); /* GPU-1 has moved to b */
    must_add(db, 1, "b:1", &fp[0], 1);
    (void)fleet_fixture_end(db);
    assert_int_equal(number(db, "SELECT counted FROM fleet_sighting "
                                "WHERE survey = 2 AND was_host <> host"),
                     1);

    begin(db); /* GPU-1 has a new fingerprint and a serial number */
    (void)snprintf(fp[2].gpu.serial, sizeof(fp[2].gpu.serial), "77");
    must_add(db, 1, "b:1", &fp[2], 1);
    (void)fleet_fixture_end(db);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM fleet_gpu"), 2);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM fleet_sighting WHERE survey = 3 "
                                "AND fingerprint <> was_fingerprint"),
                     1);

    begin(db); /* a GPU without a serial number counts as the same board */
    must_add(db, 1, "b:1", &fp[0], 1);
    (void)fleet_fixture_end(db);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM fleet_gpu"), 2);

    begin(db); /* another serial number means another board with that UUID */
    (void)snprintf(fp[2].gpu.serial, sizeof(fp[2].gpu.serial), "78");
    must_add(db, 1, "b:1", &fp[2], 1);
    (void)fleet_fixture_end(db);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM fleet_gpu WHERE uuid = 'GPU-1'"), 2);
    fleet_close(db);
    free(fp);
}

static void test_wrong_use(void **state)
{
    struct fleet_db *db = fleet_fixture_fresh();
    struct fleet_host host = fleet_fixture_host("a:1", FLEET_UNCHANGED);
    struct fleet_survey survey;
    struct err err = {0};

    (void)state;
    assert_int_equal(fleet_survey_add(db, 1, &host, NULL, &err), STATUS_CONFLICT);
    assert_int_equal(fleet_survey_end(db, AT, 0, &survey, &err), STATUS_CONFLICT);
    begin(db);
    assert_int_equal(fleet_survey_begin(db, &err), STATUS_CONFLICT);
    assert_int_equal(fleet_survey_add(db, 1, &host, NULL, &err), STATUS_OK);
    host.name = "";
    assert_int_equal(fleet_survey_add(db, 2, &host, NULL, &err), STATUS_INVALID_ARGUMENT);
    (void)fleet_fixture_end(db);
    /* The response "nothing has changed" is invalid from a host that never answered before. */
    assert_int_equal(
        number(db, "SELECT COUNT(*) FROM fleet_outcome WHERE outcome = 'bad-response'"), 1);
    assert_int_equal(fleet_query(db, "SELECT nonsense", 0, NULL, NULL, NULL, &err),
                     STATUS_INVALID_ARGUMENT);
    host.name = "b:1";
    host.outcome = FLEET_TIMEOUT;
    begin(db); /* a host appears twice, so no row of the survey is stored */
    assert_int_equal(fleet_survey_add(db, 1, &host, NULL, &err), STATUS_OK);
    assert_int_equal(fleet_survey_add(db, 2, &host, NULL, &err), STATUS_OK);
    assert_int_not_equal(fleet_survey_end(db, AT, 0, &survey, &err), STATUS_OK);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM fleet_survey"), 1);
    fleet_close(db);

    db = fleet_fixture_again();
    assert_int_equal(
        fleet_query(db, "UPDATE fleet_schema SET version = 99", 0, NULL, NULL, NULL, &err),
        STATUS_OK);
    fleet_close(db);
    assert_int_equal(fleet_open(fleet_fixture_where(), &db, &err), STATUS_CONFLICT);
    assert_null(db);
}

/* A database of another program, and a file that is not a database, keep every byte. Such files
 * exist only with SQLite. */
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

static bool on_network;

/* This function replaces statfs() of the C library. */
int statfs(const char *path, struct statfs *out)
{
    (void)path;
    *out = (struct statfs){.f_type = on_network ? NFS_SUPER_MAGIC : TMPFS_MAGIC};
    return 0;
}

/* Returns the result of a transaction of another process, which does not wait. */
static int write_beside(const char *path)
{
    sqlite3 *db = NULL;
    int rc = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL);

    rc = rc == SQLITE_OK ? sqlite3_exec(db, "BEGIN IMMEDIATE; ROLLBACK", NULL, NULL, NULL) : rc;
    sqlite3_close(db);
    return rc;
}

/* On a network file system no memory is shared, and the writer has the file for itself. */
static void test_two_hosts(void **state)
{
    char name[] = "/tmp/reach-fleet-network-XXXXXX";
    char shared[sizeof(name) + 4];
    struct fleet_db *db = NULL;
    struct err err = {0};

    (void)state;
    close(mkstemp(name));
    (void)snprintf(shared, sizeof(shared), "%s-shm", name);
    for (int network = 0; network < 2; network++) {
        on_network = network;
        assert_int_equal(fleet_open(name, &db, &err), STATUS_OK);
        assert_int_equal(access(shared, F_OK) == 0, !network);
        assert_int_equal(write_beside(name), network ? SQLITE_BUSY : SQLITE_OK);
        begin(db);
        fleet_fixture_end(db);
        fleet_close(db);
        assert_int_equal(fleet_open_to_read(name, &db, &err), STATUS_OK);
        assert_int_equal(number(db, "SELECT count(*) FROM fleet_survey"), 1 + network);
        fleet_close(db);
    }
    on_network = false;
    (void)remove(name);
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
        cmocka_unit_test(test_two_surveys),   cmocka_unit_test(test_known_fingerprint),
        cmocka_unit_test(test_metrics),       cmocka_unit_test(test_extreme_values),
        cmocka_unit_test(test_aborted),       cmocka_unit_test(test_inconsistent_answers),
        cmocka_unit_test(test_uuid_conflict), cmocka_unit_test(test_texts),
        cmocka_unit_test(test_inventory),     cmocka_unit_test(test_wrong_use),
        cmocka_unit_test(test_foreign_file),  cmocka_unit_test(test_two_hosts),
    };

    return cmocka_run_group_tests_name("fleet_db", tests, NULL, remove_files);
}
