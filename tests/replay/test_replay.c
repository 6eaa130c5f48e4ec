/* test_replay.c: analyzes recorded measurements again and compares the fingerprints with committed
 * ones.
 *
 * A recording is the output of `reachd --measure DEPTH --export DIR`: a folder with
 * observations-DEPTH.jsonl, or this file as .jsonl.xz. Each recording under tests/replay/ and
 * docs/measurements/ is a case of its own. The fingerprint must equal
 * tests/replay/golden/FOLDER-DEPTH.json to the last digit. UPDATE_GOLDEN=1 writes this file anew;
 * review its changes before you commit it. Observations whose name contains "-failed" have no
 * golden file, and their analysis must return the status disturbed.
 */
#include "tests/unit/support/as_json.h"

#include "analysis/analysis.h"
#include "analysis/drift.h"
#include "analysis/levels/levels.h"
#include "batch/export.h"
#include "fingerprint/fingerprint_check.h"
#include "fingerprint/fingerprint_json.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_RECORDINGS = 256, PATH_BYTES = 512, QUICK_PROBES = 10 };

static const char *const roots[] = {"tests/replay", "docs/measurements"};
static const char golden_dir[] = "tests/replay/golden";

struct recording {
    char path[PATH_BYTES];
    char name[PATH_BYTES]; /* FOLDER-DEPTH */
    bool failed;           /* the recording gives no fingerprint */
};

static struct recording recordings[MOST_RECORDINGS];
static size_t recording_count;

/* ---- the recordings ---- */

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text);
    return n >= strlen(end) && strcmp(text + n - strlen(end), end) == 0;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct recording *)a)->path, ((const struct recording *)b)->path);
}

static void add_recording(const char *root, const char *folder, const char *file)
{
    static const char prefix[] = "observations-";
    struct recording *r = &recordings[recording_count];
    const bool is_one = strncmp(file, prefix, strlen(prefix)) == 0 &&
                        (ends_with(file, ".jsonl") || ends_with(file, ".jsonl.xz"));
    if (!is_one || recording_count == MOST_RECORDINGS)
        return;
    const char *depth = file + strlen(prefix);
    const int n = snprintf(r->path, PATH_BYTES, "%s/%s/%s", root, folder, file);
    const int m = snprintf(r->name, PATH_BYTES, "%s-%.*s", folder, (int)strcspn(depth, "."), depth);
    r->failed = strstr(file, "-failed.") != NULL;
    recording_count += n > 0 && n < PATH_BYTES && m > 0 && m < PATH_BYTES;
}

static void list_folder(const char *root, const char *folder)
{
    char path[PATH_BYTES];
    if (folder[0] == '.' || snprintf(path, sizeof path, "%s/%s", root, folder) >= PATH_BYTES)
        return;
    DIR *dir = opendir(path);
    const struct dirent *entry;
    while (dir && (entry = readdir(dir)))
        add_recording(root, folder, entry->d_name);
    if (dir)
        closedir(dir);
}

static void list_recordings(void)
{
    for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++) {
        DIR *dir = opendir(roots[i]);
        const struct dirent *entry;
        while (dir && (entry = readdir(dir)))
            list_folder(roots[i], entry->d_name);
        if (dir)
            closedir(dir);
    }
    qsort(recordings, recording_count, sizeof recordings[0], by_path);
}

/* ---- analysis ---- */

/* Paths are files of this repository. The function still checks that they consist of letters,
 * digits, dots and dashes. */
static FILE *open_recording(const char *path, bool *is_pipe)
{
    char command[PATH_BYTES + 16];
    *is_pipe = ends_with(path, ".xz");
    if (!*is_pipe)
        return fopen(path, "re");
    if (path[strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789./_-")])
        return NULL;
    (void)snprintf(command, sizeof command, "xz -dc %s", path);
    return popen(command, "re");
}

/* A quick check is as short as the beginning of a measurement. Clock and link must not seem slower
 * there than in the whole measurement. */
static void check_drift(const char *path, const struct observation_set *set,
                        const struct fingerprint *fp)
{
    const size_t count = set->count < QUICK_PROBES ? set->count : QUICK_PROBES;
    const struct observation_set beginning = {
        .limits = set->limits, .items = set->items, .count = count};
    struct drift drift;

    drift_find(fp, &beginning, &drift);
    if (drift_is_any(&drift))
        fail_msg("%s: %s%s", path, drift.speed, drift.link);
}

/* Beside other processes, a sweep with an unexplained rise does not count (levels.h). The sweeps of
 * a quiet GPU have none, so the same walks lead to the same levels there. */
static void check_levels_beside(const char *path, struct observation_set *set)
{
    struct level_estimate alone[LEVELS_MAX] = {{0}};
    struct level_estimate beside[LEVELS_MAX] = {{0}};
    const uint32_t others = set->others;

    set->others = 0;
    const uint32_t count = levels_estimate(set, alone);
    set->others = 1;
    assert_true(observation_set_is_shared(set));
    const uint32_t again = levels_estimate(set, beside);
    set->others = others;
    if (again != count)
        fail_msg("%s: %u levels, and %u beside other processes", path, count, again);
    for (uint32_t k = 0; k < count; k++)
        assert_int_equal(beside[k].lo_pages, alone[k].lo_pages);
}

/* Derives the fingerprint from a recording, or returns the reason why there is none. */
static enum status try_to_conclude(const char *path, struct fingerprint *out, struct err *err)
{
    struct observation_set set = {0};
    enum depth depth = DEPTH_QUICK;
    bool is_pipe = false;
    FILE *in = open_recording(path, &is_pipe);

    if (!in)
        fail_msg("cannot open %s", path);
    enum status status = export_read_observations(in, &set, &depth, err);
    const int closed = is_pipe ? pclose(in) : fclose(in);
    if (closed != 0)
        fail_msg("cannot read %s", path);
    if (status == STATUS_OK)
        status = analysis_derive(&set, depth, out, err);
    if (status == STATUS_OK)
        status = fingerprint_check(out, err);
    if (status == STATUS_OK)
        check_drift(path, &set, out);
    if (status == STATUS_OK)
        check_levels_beside(path, &set);
    observation_set_free(&set);
    return status;
}

/* Returns the fingerprint of a recording as JSON. */
static json_t *conclude(const char *path)
{
    struct fingerprint *fp = calloc(1, sizeof *fp);
    struct err err = {0};

    assert_non_null(fp);
    if (try_to_conclude(path, fp, &err) != STATUS_OK)
        fail_msg("%s: %s", path, err.text);
    json_t *json = AS_JSON(fingerprint_write, fp, NULL);
    assert_non_null(json);
    /* The id is a hash of all other fields, so each change of a field would also change it. */
    (void)json_object_del(json, "id");
    free(fp);
    return json;
}

/* Prints the first line that differs, from both documents. */
static void show_difference(const json_t *was, const json_t *is)
{
    char *a = json_dumps(was, JSON_INDENT(1) | JSON_SORT_KEYS);
    char *b = json_dumps(is, JSON_INDENT(1) | JSON_SORT_KEYS);
    size_t start = 0;
    assert_true(a && b);
    for (size_t i = 0; a[i] && a[i] == b[i]; i++)
        start = a[i] == '\n' ? i + 1 : start;
    print_message("# golden:   %.*s\n# now:      %.*s\n", (int)strcspn(a + start, "\n"), a + start,
                  (int)strcspn(b + start, "\n"), b + start);
    free(a);
    free(b);
}

/* Analyzes a recording twice, because the result must not depend on an earlier analysis. */
static void concludes_as_before(void **state)
{
    const struct recording *r = *state;
    char golden[PATH_BYTES * 2];
    json_error_t error;
    const char *update = getenv("UPDATE_GOLDEN");
    json_t *now = conclude(r->path);
    json_t *again = conclude(r->path);

    assert_true(json_equal(now, again));
    json_decref(again);
    (void)snprintf(golden, sizeof golden, "%s/%s.json", golden_dir, r->name);
    if (update && *update) {
        struct json_writer t;

        (void)mkdir(golden_dir, 0755);
        FILE *out = fopen(golden, "we");
        assert_non_null(out);
        json_writer_begin(&t, 0);
        t.indent = 1;
        json_writer_value(&t, NULL, now);
        assert_int_equal(json_writer_print(&t, out, NULL), STATUS_OK);
        assert_int_equal(fclose(out), 0);
        print_message("# wrote %s\n", golden);
    }
    json_t *was = json_load_file(golden, 0, &error);
    if (!was)
        fail_msg("%s: %s; UPDATE_GOLDEN=1 writes it", golden, error.text);
    const bool same = json_equal(was, now);
    if (!same)
        show_difference(was, now);
    json_decref(was);
    json_decref(now);
    if (!same)
        fail_msg("%s does not lead to %s any more", r->path, golden);
}

static void ends_as_disturbed(void **state)
{
    const struct recording *r = *state;
    struct fingerprint *fp = calloc(1, sizeof *fp);
    struct err err = {0};

    assert_non_null(fp);
    assert_int_equal(try_to_conclude(r->path, fp, &err), STATUS_DISTURBED);
    assert_int_equal(fp->conditions.verdict, VERDICT_DISTURBED);
    free(fp);
}

static bool is_recorded(const char *golden)
{
    for (size_t i = 0; i < recording_count; i++) {
        const size_t n = strlen(recordings[i].name);
        if (!recordings[i].failed && strncmp(golden, recordings[i].name, n) == 0 &&
            strcmp(golden + n, ".json") == 0)
            return true;
    }
    return false;
}

/* Each expected fingerprint has a recording, and at least one recording is expected to fail. */
static void each_fingerprint_has_a_recording(void **state)
{
    size_t fingerprints = 0;
    size_t failed = 0;
    const struct dirent *entry;
    DIR *dir = opendir(golden_dir);

    (void)state;
    assert_non_null(dir);
    while ((entry = readdir(dir))) {
        if (entry->d_name[0] == '.')
            continue;
        fingerprints++;
        if (!is_recorded(entry->d_name))
            fail_msg("%s/%s has no recording", golden_dir, entry->d_name);
    }
    closedir(dir);
    for (size_t i = 0; i < recording_count; i++)
        failed += recordings[i].failed;
    assert_int_equal(fingerprints + failed, recording_count);
    assert_true(fingerprints > 0 && failed > 0);
}

int main(void)
{
    static struct CMUnitTest tests[MOST_RECORDINGS + 1];
    size_t n = 0;
    list_recordings();
    for (size_t i = 0; i < recording_count; i++)
        tests[n++] = (struct CMUnitTest){.name = recordings[i].path,
                                         .test_func = recordings[i].failed ? ends_as_disturbed
                                                                           : concludes_as_before,
                                         .initial_state = &recordings[i]};
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(each_fingerprint_has_a_recording);
    return _cmocka_run_group_tests("replay", tests, n, NULL, NULL) ? EXIT_FAILURE : EXIT_SUCCESS;
}
