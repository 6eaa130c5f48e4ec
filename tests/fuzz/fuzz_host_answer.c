/* fuzz_host_answer.c: reads any bytes as the answer of a host to a survey. The first byte selects
 * whether the ids are corrected first. Without the correction no changed fingerprint passes the
 * check of its hash. An accepted answer can be shown, and has no contradictions. */
#include "fuzz.h"

#include "clients/fleet/host_answer.h"
#include "fingerprint/fingerprint.h"
#include "fingerprint/fingerprint_json.h"

#include <string.h>
#include <strings.h>

/* Gives every fingerprint the id that matches its content. */
static void mend(json_t *document)
{
    size_t i;
    json_t *gpu;

    json_array_foreach(json_object_get(document, "gpus"), i, gpu)
    {
        json_t *const fingerprint = json_object_get(gpu, "fingerprint");
        char id[FINGERPRINT_ID_BYTES];
        char *text;
        if (!json_is_object(fingerprint))
            continue;
        json_object_del(fingerprint, "id");
        text = fingerprint_json_text(fingerprint, id);
        if (!text)
            continue;
        free(text);
        json_object_set_new(fingerprint, "id", json_string(id));
        json_object_set_new(gpu, "fingerprint_id", json_string(id));
    }
}

static void check_line(const char *text)
{
    for (; *text != '\0'; text++)
        REACH_ASSERT((unsigned char)*text >= ' ' && *text != 0x7f);
}

static void check(const struct host_answer *answer)
{
    REACH_ASSERT(answer->gpu_count <= REACH_MAX_GPUS);
    check_line(answer->daemon_version);
    for (uint32_t i = 0; i < answer->gpu_count; i++) {
        const struct host_answer_gpu *const gpu = &answer->gpus[i];
        REACH_ASSERT(gpu->slot < REACH_MAX_GPUS && gpu->uuid[0] && gpu->model[0] && gpu->state[0]);
        REACH_ASSERT((gpu->fingerprint != NULL) == (gpu->fingerprint_id[0] != '\0'));
        check_line(gpu->uuid);
        check_line(gpu->serial);
        check_line(gpu->model);
        check_line(gpu->state);
        for (uint32_t k = 0; k < i; k++)
            REACH_ASSERT(strcasecmp(answer->gpus[k].uuid, gpu->uuid) != 0 &&
                         answer->gpus[k].slot != gpu->slot);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct host_answer answer;
    struct err err = {0};
    json_t *document;
    enum status s;

    if (size == 0)
        return 0;
    document = json_loadb((const char *)data + 1, size - 1, JSON_REJECT_DUPLICATES, NULL);
    if (document && data[0] == 'm')
        mend(document);
    s = host_answer_read(document, &answer, &err);
    REACH_ASSERT(s == STATUS_OK || s == STATUS_PROTOCOL || s == STATUS_CONFLICT);
    REACH_ASSERT(s == STATUS_OK || (err.status == s && err.text[0] != '\0'));
    if (s == STATUS_OK)
        check(&answer);
    host_answer_free(&answer);
    json_decref(document);
    return 0;
}
