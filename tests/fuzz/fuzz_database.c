/* fuzz_database.c: a state file with any damage. Opening the file works or fails with a reason.
 * Values that are read hold their invariants. An opened file takes another run or fails with a
 * reason.
 *
 * The first byte selects the meaning of the other bytes:
 *   0  they are the whole file
 *   1  they change a good file; a change has three bytes of place and one byte of value
 *   2  they change the log beside a good file, which a killed daemon leaves behind
 *
 * Checksums are not secret, so a fuzzer can make valid ones. So this target only checks that no
 * error crashes the daemon. tests/unit/daemon/store/test_store_files.c checks with random damage
 * that no damaged data are served.
 */
#include "fuzz.h"

#include "fingerprint/fingerprint_check.h"
#include "tests/unit/support/store_fault.h"
#include "tests/unit/support/store_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RUNS = 3, ROWS = 8, PATCH_BYTES = 4 };
enum what { WHOLE = 0, CHANGED, CHANGED_LOG, WHAT_COUNT };

struct image {
    char *data;
    size_t size;
};
static struct {
    char *directory;
    char path[256];
    struct image closed; /* the file after a clean shutdown */
    struct image open;   /* the file and its log in the middle of a write */
    struct image log;
} good;

static void remove_directory(void)
{
    fixture_remove(good.directory);
}

static struct image take(const char *name)
{
    struct image image;

    image.data = fixture_read(fixture_path(good.directory, name), &image.size);
    REACH_ASSERT(image.data && image.size > 0);
    return image;
}

static void prepare(void)
{
    struct store *store = NULL;
    int64_t run = 0;

    store_fault.skip_syncs = true; /* waits for the disk would take most of the time */
    if (access("/dev/shm", W_OK) == 0)
        (void)setenv("TMPDIR", "/dev/shm", 0);
    good.directory = fixture_directory();
    REACH_ASSERT(atexit(remove_directory) == 0);
    (void)snprintf(good.path, sizeof(good.path), "%s", fixture_path(good.directory, "it"));
    REACH_ASSERT(store_open(good.path, &store, NULL) == STATUS_OK);
    for (uint32_t i = 1; i <= RUNS; i++)
        REACH_ASSERT(fixture_store_run(store, FIXTURE_UUID, i, 2, &run, NULL) == STATUS_OK);
    good.open = take("it");
    good.log = take("it-wal");
    store_close(store);
    good.closed = take("it");
}

static void write_changed(const char *name, const struct image *image, const uint8_t *patches,
                          size_t size)
{
    char *const copy = malloc(image->size);

    REACH_ASSERT(copy);
    memcpy(copy, image->data, image->size);
    for (; size >= PATCH_BYTES; size -= PATCH_BYTES, patches += PATCH_BYTES) {
        const size_t at = (size_t)patches[0] << 16 | (size_t)patches[1] << 8 | patches[2];

        copy[at % image->size] = (char)patches[3];
    }
    fixture_write(fixture_path(good.directory, name), copy, image->size);
    free(copy);
}

static void read_all(struct store *store)
{
    static struct fingerprint fp;
    struct store_fingerprint_row prints[ROWS];
    struct store_observation_row rows[ROWS];
    struct observation_set set;
    uint32_t count = 0;
    char *text = NULL;

    if (store_current_fingerprint(store, FIXTURE_UUID, &fp, NULL) == STATUS_OK)
        REACH_ASSERT(fingerprint_check(&fp, NULL) == STATUS_OK);
    if (store_list_fingerprints(store, FIXTURE_UUID, 0, prints, ROWS, &count, NULL) == STATUS_OK) {
        for (uint32_t i = 0; i < count; i++)
            (void)store_fingerprint(store, FIXTURE_UUID, prints[i].id, &fp, NULL);
    }
    if (store_list_observations(store, FIXTURE_UUID, 0, 0, rows, ROWS, &count, NULL) == STATUS_OK) {
        for (uint32_t i = 0; i < count; i++) {
            (void)store_observation_json(store, FIXTURE_UUID, rows[i].id, &text, NULL);
            free(text);
        }
    }
    for (int64_t run = 1; run <= RUNS; run++) {
        if (store_load_run(store, run, &set, NULL) == STATUS_OK)
            observation_set_free(&set);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct store *store = NULL;
    struct err err = {0};
    int64_t run = 0;

    if (!good.directory)
        prepare();
    if (size == 0)
        return 0;
    if (data[0] % WHAT_COUNT == CHANGED_LOG) {
        fixture_write(good.path, good.open.data, good.open.size);
        write_changed("it-wal", &good.log, data + 1, size - 1);
    } else if (data[0] % WHAT_COUNT == CHANGED) {
        write_changed("it", &good.closed, data + 1, size - 1);
    } else {
        fixture_write(good.path, data + 1, size - 1);
    }
    if (store_open(good.path, &store, &err) == STATUS_OK) {
        read_all(store);
        (void)fixture_store_run(store, FIXTURE_UUID, RUNS + 1, 1, &run, &err);
        store_close(store);
    } else {
        REACH_ASSERT(err.text[0] != '\0');
    }
    fixture_remove(strdup(good.directory));
    REACH_ASSERT(mkdir(good.directory, 0700) == 0);
    return 0;
}
