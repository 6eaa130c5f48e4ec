/* replay.c: main of a fuzz target without libFuzzer. It runs each input of its corpus, and some
 * damaged copies, so that `make check` repeats every past finding.
 *
 *     fuzz_NAME [FILE...]     runs FILE, by default the files of tests/fuzz/corpus/NAME
 */
#include "base/log.h"
#include "base/rng.h"
#include "fuzz.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COPIES = 12, MAX_FLIPS = 8, PATH_BYTES = 512 };

/* Reads the whole file. Exits if it cannot be read, because then nothing was tested. */
static uint8_t *read_file(const char *path, size_t *out_size)
{
    FILE *const f = fopen(path, "rb");
    uint8_t *data = NULL;
    long size = -1;

    if (f && fseek(f, 0, SEEK_END) == 0)
        size = ftell(f);
    if (size >= 0 && fseek(f, 0, SEEK_SET) == 0)
        data = malloc((size_t)size + 1);
    if (!data || fread(data, 1, (size_t)size, f) != (size_t)size) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(1);
    }
    fclose(f);
    *out_size = (size_t)size;
    return data;
}

/* A separate block lets a sanitizer detect a read past the end. */
static void run(const uint8_t *data, size_t size)
{
    uint8_t *const copy = malloc(size ? size : 1);

    REACH_ASSERT(copy);
    memcpy(copy, data, size);
    REACH_ASSERT(LLVMFuzzerTestOneInput(copy, size) == 0);
    free(copy);
}

static void run_damaged(const uint8_t *data, size_t size, struct rng *r)
{
    uint8_t *const copy = malloc(size ? size : 1);

    REACH_ASSERT(copy);
    for (int i = 0; i < COPIES && size > 0; i++) {
        const size_t length = i % 4 == 0 ? (size_t)rng_below(r, size) : size;

        memcpy(copy, data, size);
        for (uint64_t flips = 1 + rng_below(r, MAX_FLIPS); flips > 0 && length > 0; flips--)
            copy[rng_below(r, length)] ^= (uint8_t)(1U << rng_below(r, 8));
        run(copy, length);
    }
    free(copy);
}

/* Runs one case. Its name is printed first, so that a crash shows which input it was. */
static void one_case(int number, const char *path)
{
    struct rng r = {.state = 20261121};
    size_t size = 0;
    uint8_t *const data = read_file(path, &size);

    printf("# %s, seed %" PRIu64 "\n", path, r.state);
    fflush(stdout);
    run(data, size);
    run_damaged(data, size, &r);
    free(data);
    printf("ok %d - %s\n", number, path);
}

static int visible(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

int main(int argc, char **argv)
{
    const char *const marker = strrchr(argv[0], '/');
    const char *const name = marker ? marker + 1 : argv[0];
    struct dirent **entries = NULL;
    char path[PATH_BYTES];
    int count;

    log_set_level(LOG_LEVEL_ERROR);
    REACH_ASSERT(strncmp(name, "fuzz_", strlen("fuzz_")) == 0);
    run((const uint8_t *)"", 0);
    if (argc > 1) {
        for (int i = 1; i < argc; i++)
            one_case(i, argv[i]);
        printf("1..%d\n", argc - 1);
        return 0;
    }
    (void)snprintf(path, sizeof(path), "tests/fuzz/corpus/%s", name + strlen("fuzz_"));
    count = scandir(path, &entries, visible, alphasort);
    REACH_ASSERT(count > 0); /* a target without inputs tests nothing */
    for (int i = 0; i < count; i++) {
        (void)snprintf(path, sizeof(path), "tests/fuzz/corpus/%s/%.255s", name + strlen("fuzz_"),
                       entries[i]->d_name);
        one_case(i + 1, path);
        free(entries[i]);
    }
    free(entries);
    printf("1..%d\n", count);
    return 0;
}
