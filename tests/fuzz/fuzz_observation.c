/* fuzz_observation.c: reads any bytes as the output of a worker. Each line has an observation, a
 * GPU, its limits or a probe. An accepted line must be written again in the same words. */
#include "tests/unit/support/as_json.h"

#include "fuzz.h"

#include "observe/observe.h"
#include "worker/jsonl.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The text of an accepted observation, read again, gives the same text. */
static void again(const struct observation *o)
{
    json_t *const first = AS_JSON(observation_write, o);
    struct observation back = {0};
    json_t *second;

    REACH_ASSERT(first);
    REACH_ASSERT(observation_from_json(first, &back, NULL) == STATUS_OK);
    second = AS_JSON(observation_write, &back);
    REACH_ASSERT(json_equal(first, second));
    json_decref(first);
    json_decref(second);
    observation_free(&back);
}

/* Parses a line without its array of numbers. The result must be valid or invalid like before. */
static void in_parts(const char *line, size_t length, bool good)
{
    struct observation_values values = {.numbers = NULL};
    struct observation o = {0};
    struct err err = {0};
    char why[200] = "";
    char *const copy = calloc(1, length + 1);
    json_t *json;

    REACH_ASSERT(copy);
    memcpy(copy, line, length);
    REACH_ASSERT(observation_take_values(copy, &length, &values, &err) == STATUS_OK);
    json = jsonl_parse(copy, length, why, sizeof(why));
    REACH_ASSERT(json);
    REACH_ASSERT((observation_from_parts(json, &values, &o, &err) == STATUS_OK) == good);
    observation_free(&o);
    json_decref(json);
    free(copy);
}

static void one_line(const char *line, size_t length)
{
    struct observation o = {0};
    struct probe_spec spec;
    struct gpu_identity gpu;
    struct gpu_limits limits;
    struct err err = {0};
    char why[200] = "";
    json_t *const json = jsonl_parse(line, length, why, sizeof(why));

    if (!json) {
        REACH_ASSERT(why[0] != '\0');
        return;
    }
    const bool good = observation_from_json(json, &o, &err) == STATUS_OK;

    in_parts(line, length, good);
    if (good) {
        again(&o);
        observation_free(&o);
    } else {
        REACH_ASSERT(err.text[0] != '\0');
    }
    (void)probe_spec_from_json(json, &spec, &err);
    (void)gpu_identity_from_json(json, &gpu, &err);
    (void)gpu_limits_from_json(json, &limits, &err);
    json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    const struct jsonl_wait wait = {.until = JSONL_NO_DEADLINE, .wake_fd = -1};
    struct jsonl_reader reader = {0};
    size_t length = 0;
    char *line = NULL;

    if (fd < 0)
        fd = memfd_create("fuzz", MFD_CLOEXEC);
    REACH_ASSERT(fd >= 0 && ftruncate(fd, 0) == 0);
    REACH_ASSERT(pwrite(fd, data, size, 0) == (ssize_t)size && lseek(fd, 0, SEEK_SET) == 0);
    reader.fd = fd;
    while (jsonl_read(&reader, &wait, &line, &length) == JSONL_DONE)
        one_line(line, length);
    jsonl_reader_free(&reader);
    return 0;
}
