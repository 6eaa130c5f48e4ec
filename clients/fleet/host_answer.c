/* host_answer.c: see host_answer.h. */
#include "clients/fleet/host_answer.h"

#include "base/json_reader.h"
#include "base/text.h"
#include "fingerprint/fingerprint.h"
#include "fingerprint/fingerprint_json.h"
#include "fingerprint/fingerprint_read.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The characters of a UUID or a state. A UUID of MIG can contain a slash. */
static bool is_word(const char *text)
{
    const size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789-_./:");

    return n > 0 && text[n] == '\0';
}

/* The id is the hash of all other members, including members that a newer daemon has added. */
static enum status check_id(struct host_answer_gpu *gpu, json_t *fingerprint, struct err *err)
{
    const char *const listed = json_string_value(json_object_get(fingerprint, "id"));
    char id[FINGERPRINT_ID_BYTES] = "";
    json_t *body;

    if (!listed || strcmp(listed, gpu->fingerprint_id) != 0)
        return err_set(err, STATUS_CONFLICT,
                       "the id of the fingerprint of %s differs from the listed id", gpu->uuid);
    body = json_copy(fingerprint); /* shallow */
    json_object_del(body, "id");
    gpu->text = body ? fingerprint_json_text(body, id) : NULL;
    json_decref(body);
    if (!gpu->text)
        return err_set(err, STATUS_NO_MEMORY, "cannot check a fingerprint: out of memory");
    if (strlen(gpu->text) > HOST_ANSWER_MAX_FINGERPRINT_BYTES)
        return err_set(err, STATUS_PROTOCOL, "the fingerprint of %s exceeds %d bytes", gpu->uuid,
                       HOST_ANSWER_MAX_FINGERPRINT_BYTES);
    if (strcmp(id, gpu->fingerprint_id) != 0)
        return err_set(err, STATUS_CONFLICT,
                       "the id of the fingerprint of %s is not the hash of its content", gpu->uuid);
    return STATUS_OK;
}

/* Reads the fingerprint, which must belong to this GPU. */
static enum status check_content(struct host_answer_gpu *gpu, const json_t *fingerprint,
                                 struct err *err)
{
    const char *const uuid =
        json_string_value(json_object_get(json_object_get(fingerprint, "gpu"), "uuid"));
    enum status s;

    if (!uuid || strcasecmp(uuid, gpu->uuid) != 0)
        return err_set(err, STATUS_CONFLICT,
                       "the fingerprint listed with %s belongs to another GPU", gpu->uuid);
    gpu->fingerprint = malloc(sizeof(*gpu->fingerprint));
    if (!gpu->fingerprint)
        return err_set(err, STATUS_NO_MEMORY, "cannot check a fingerprint: out of memory");
    s = fingerprint_from_json(fingerprint, gpu->fingerprint, err);
    if (s == STATUS_OK)
        return s;
    err_prefix(err, "the fingerprint of %s", gpu->uuid);
    if (err)
        err->status = STATUS_PROTOCOL;
    return STATUS_PROTOCOL;
}

/* Reads the fields of one GPU and checks their form. */
static enum status read_fields(const json_t *json, uint32_t i, struct host_answer_gpu *out,
                               struct err *err)
{
    struct json_reader in;
    enum status s;

    *out = (struct host_answer_gpu){.slot = i};
    json_reader_begin(&in, json, "gpus", JSON_READER_LENIENT, STATUS_PROTOCOL, err);
    json_reader_u32(&in, "index", REACH_MAX_GPUS - 1, &out->slot);
    json_reader_text(&in, "uuid", out->uuid, sizeof(out->uuid));
    json_reader_text_or_null(&in, "serial", out->serial, sizeof(out->serial));
    json_reader_text(&in, "name", out->model, sizeof(out->model));
    json_reader_text(&in, "state", out->state, sizeof(out->state));
    json_reader_text_or_null(&in, "fingerprint_id", out->fingerprint_id,
                             sizeof(out->fingerprint_id));
    s = json_reader_end(&in);
    text_sanitize(out->serial);
    text_sanitize(out->model);
    if (s == STATUS_OK && (!is_word(out->uuid) || !is_word(out->state) || !out->model[0]))
        s = err_set(err, STATUS_PROTOCOL, "GPU %u lacks a UUID, a name or a state", i);
    if (s == STATUS_OK && out->fingerprint_id[0] && !fingerprint_is_id(out->fingerprint_id))
        s = err_set(err, STATUS_PROTOCOL, "the fingerprint id of GPU %u is not valid", i);
    return s;
}

static enum status read_gpu(const json_t *json, uint32_t i, struct host_answer_gpu *out,
                            struct err *err)
{
    json_t *const fingerprint = json_object_get(json, "fingerprint");
    enum status s = read_fields(json, i, out, err);

    if (s != STATUS_OK)
        return s;
    if (json_is_object(fingerprint) != (out->fingerprint_id[0] != '\0'))
        return err_set(err, STATUS_CONFLICT,
                       "%s lists a fingerprint without an id, or an id without a fingerprint",
                       out->uuid);
    if (!out->fingerprint_id[0])
        return STATUS_OK;
    s = check_id(out, fingerprint, err);
    return s == STATUS_OK ? check_content(out, fingerprint, err) : s;
}

/* Checks that no earlier GPU has the UUID or the slot of this one. */
static enum status check_unique(const struct host_answer *answer, uint32_t i, struct err *err)
{
    for (uint32_t k = 0; k < i; k++) {
        if (strcasecmp(answer->gpus[k].uuid, answer->gpus[i].uuid) == 0)
            return err_set(err, STATUS_CONFLICT, "%s is listed twice", answer->gpus[i].uuid);
        if (answer->gpus[k].slot == answer->gpus[i].slot)
            return err_set(err, STATUS_CONFLICT, "two GPUs are in slot %u", answer->gpus[i].slot);
    }
    return STATUS_OK;
}

enum status host_answer_read(const json_t *document, struct host_answer *out, struct err *err)
{
    const json_t *const gpus = json_object_get(document, "gpus");
    const char *const version = json_string_value(json_object_get(document, "daemon_version"));
    enum status s = STATUS_OK;

    *out = (struct host_answer){.gpu_count = 0};
    if (!json_is_array(gpus))
        return err_set(err, STATUS_PROTOCOL, "the answer has no list of GPUs");
    if (json_array_size(gpus) > REACH_MAX_GPUS)
        return err_set(err, STATUS_PROTOCOL, "the answer lists %zu GPUs, a node has at most %d",
                       json_array_size(gpus), REACH_MAX_GPUS);
    if (version && strlen(version) < sizeof(out->daemon_version)) {
        strcpy(out->daemon_version, version);
        text_sanitize(out->daemon_version);
    }
    for (uint32_t i = 0; s == STATUS_OK && i < json_array_size(gpus); i++) {
        out->gpu_count = i + 1;
        s = read_gpu(json_array_get(gpus, i), i, &out->gpus[i], err);
        if (s == STATUS_OK)
            s = check_unique(out, i, err);
    }
    return s;
}

void host_answer_free(struct host_answer *take)
{
    for (uint32_t i = 0; i < take->gpu_count; i++) {
        free(take->gpus[i].fingerprint);
        free(take->gpus[i].text);
    }
    take->gpu_count = 0;
}
