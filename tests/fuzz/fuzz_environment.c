/* fuzz_environment.c: reads any text as the variable in the environment of a job.
 * After an even first byte the text is used unchanged. After an odd one the text gets a correct
 * check, so that its fields are read, too. A value that is read holds its invariants, can be
 * planned from, and reads back as itself. */
#include "fuzz.h"

#include "base/hash.h"
#include "fingerprint/fingerprint_check.h"
#include "planner/job_env.h"
#include "planner/placement.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fingerprint fp;
static struct fingerprint second;
static char text[JOB_ENV_TEXT_BYTES];

static void use(const char *id)
{
    const struct placement_request request = {.bytes = 100 << 20, .fingerprint_id = id};
    static struct placement_answer answer;
    char again[FINGERPRINT_ID_BYTES];
    struct err err;
    char *written;

    REACH_ASSERT(fingerprint_check(&fp, &err) == STATUS_OK);
    (void)placement_plan(&fp, &request, &answer, &err);
    written = job_env_text(&fp, id, &err);
    REACH_ASSERT(written != NULL);
    REACH_ASSERT(job_env_read(written, &second, again, &err) == STATUS_OK);
    REACH_ASSERT(strcmp(id, again) == 0);
    REACH_ASSERT(fingerprint_structure_hash(&fp) == fingerprint_structure_hash(&second));
    free(written);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char id[FINGERPRINT_ID_BYTES];
    struct err err = {0};

    if (size == 0 || size > JOB_ENV_TEXT_BYTES - 64)
        return 0;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    if (data[0] & 1)
        snprintf(text + strlen(text), 64, ",\"check\":\"%016" PRIx64 "\"}",
                 hash_bytes(HASH_START, text, strlen(text)));
    if (job_env_read(text, &fp, id, &err) == STATUS_OK)
        use(id);
    else
        REACH_ASSERT(err.text[0] != '\0');
    return 0;
}
