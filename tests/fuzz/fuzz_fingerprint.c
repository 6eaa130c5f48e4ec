/* fuzz_fingerprint.c: reads any bytes as a fingerprint in JSON. An accepted
 * fingerprint holds its invariants and has the same name when it is read again. */
#include "tests/unit/support/as_json.h"

#include "fuzz.h"

#include "fingerprint/fingerprint.h"
#include "fingerprint/fingerprint_check.h"
#include "fingerprint/fingerprint_json.h"
#include "fingerprint/fingerprint_read.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static struct fingerprint fp;
static struct fingerprint back;

static void same_name(void)
{
    json_t *const json = AS_JSON(fingerprint_write, &fp, NULL);
    char first[FINGERPRINT_ID_BYTES];
    char second[FINGERPRINT_ID_BYTES];

    REACH_ASSERT(json);
    REACH_ASSERT(fingerprint_from_json(json, &back, NULL) == STATUS_OK);
    REACH_ASSERT(fingerprint_id(&fp, first, NULL) == STATUS_OK);
    REACH_ASSERT(fingerprint_id(&back, second, NULL) == STATUS_OK);
    REACH_ASSERT(strcmp(first, second) == 0);
    json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = {0};
    json_t *const json =
        json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, &(json_error_t){0});

    if (!json)
        return 0;
    if (fingerprint_from_json(json, &fp, &err) == STATUS_OK) {
        REACH_ASSERT(fingerprint_check(&fp, &err) == STATUS_OK);
        same_name();
    } else {
        REACH_ASSERT(err.text[0] != '\0');
    }
    json_decref(json);
    return 0;
}
