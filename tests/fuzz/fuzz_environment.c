/* fuzz_environment.c: what stands in a job's environment, which anyone may have written. An even
 * first byte: the line as it is; an odd one: with a check that is true, so that the words are read
 * too. What is read holds its invariants, can be planned from, and reads back as itself. */
#include "fuzz.h"

#include "base/hash.h"
#include "planner/job_env.h"
#include "planner/placement.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct fingerprint fp;
static struct fingerprint second;
static char line[JOB_ENV_LINE_BYTES];

static void use(const char *id)
{
    const struct placement_request request = {.bytes = 100 << 20, .fingerprint_id = id};
    static struct placement_answer answer;
    char again[FINGERPRINT_ID_BYTES];
    struct err err;

    REACH_ASSERT(fingerprint_check(&fp, &err) == STATUS_OK);
    (void)placement_plan(&fp, &request, &answer, &err);
    REACH_ASSERT(job_env_line(&fp, id, line, &err) == STATUS_OK);
    REACH_ASSERT(job_env_read(line, &second, again, &err) == STATUS_OK);
    REACH_ASSERT(strcmp(id, again) == 0);
    REACH_ASSERT(fingerprint_structure_hash(&fp) == fingerprint_structure_hash(&second));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char id[FINGERPRINT_ID_BYTES];
    struct err err = {0};

    if (size == 0 || size > JOB_ENV_LINE_BYTES - 64)
        return 0;
    memcpy(line, data + 1, size - 1);
    line[size - 1] = '\0';
    if (data[0] & 1)
        snprintf(line + strlen(line), 64, " check=%016" PRIx64,
                 hash_bytes(HASH_START, line, strlen(line)));
    if (job_env_read(line, &fp, id, &err) == STATUS_OK)
        use(id);
    else
        REACH_ASSERT(err.text[0] != '\0');
    return 0;
}
