/* fingerprints.c: see fingerprints.h. */
#include "clients/profile/fingerprints.h"

#include "base/text.h"
#include "fingerprint/fingerprint_read.h"
#include "clients/c/reach.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ANSWERS = 64, WHY_BYTES = 512, TARGET_BYTES = 128 };

/* The fingerprint of one GPU, or the reason why it is missing. */
struct found {
    char uuid[RECORDING_UUID_BYTES];
    struct fingerprint *fp;
    char why[WHY_BYTES];
};

struct fingerprints {
    bool from_files;
    struct reach *reach; /* NULL until the daemon is asked */
    uint32_t count;
    struct found found[MAX_ANSWERS];
};

/* ---- files ---- */

static enum status read_file(const char *path, struct found *out, struct err *err)
{
    json_error_t why;
    json_t *const json = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
    enum status s;

    if (!json)
        return err_set(
            err, json_error_code(&why) == json_error_cannot_open_file ? STATUS_IO : STATUS_CORRUPT,
            "cannot read the fingerprint %s: %s", path, why.text);
    out->fp = malloc(sizeof(*out->fp));
    s = out->fp ? fingerprint_from_json(json, out->fp, err) : err_no_memory(err, "a fingerprint");
    json_decref(json);
    if (s != STATUS_OK)
        return err_prefix(err, "%s", path);
    (void)snprintf(out->uuid, sizeof(out->uuid), "%.63s", out->fp->gpu.uuid);
    return STATUS_OK;
}

enum status fingerprints_open(const char *const *files, uint32_t count, struct fingerprints **out,
                              struct err *err)
{
    struct fingerprints *f = calloc(1, sizeof(*f));
    enum status s = f ? STATUS_OK : err_no_memory(err, "the fingerprints");

    for (uint32_t i = 0; f && s == STATUS_OK && i < count; i++) {
        if (f->count == MAX_ANSWERS)
            s = err_set(err, STATUS_INVALID_ARGUMENT, "at most %d fingerprints can be given",
                        MAX_ANSWERS);
        else
            s = read_file(files[i], &f->found[f->count++], err);
    }
    if (f)
        f->from_files = count > 0;
    if (s != STATUS_OK) {
        fingerprints_close(f);
        f = NULL;
    }
    *out = f;
    return s;
}

void fingerprints_close(struct fingerprints *take)
{
    for (uint32_t i = 0; take && i < take->count; i++)
        free(take->found[i].fp);
    if (take)
        reach_close(take->reach);
    free(take);
}

/* ---- the daemon ---- */

/* Sets `fp`, or leaves it NULL and sets the reason. */
static void parse_answer(const char *body, struct found *out)
{
    struct err err = {0};
    json_t *const json = json_loads(body, 0, NULL);

    out->fp = json ? malloc(sizeof(*out->fp)) : NULL;
    if (out->fp && fingerprint_from_json(json, out->fp, &err) != STATUS_OK) {
        free(out->fp);
        out->fp = NULL;
    }
    if (!out->fp)
        (void)snprintf(out->why, sizeof(out->why), "the answer of reachd cannot be read: %.300s",
                       err.text);
    json_decref(json);
}

/* The variables of a job have only a part of a fingerprint, so they are not used. */
static void ask_daemon(struct fingerprints *f, struct found *out)
{
    const char *const url = getenv("REACHD_URL");
    struct reach_error error = {0};
    char target[TARGET_BYTES];
    char *body = NULL;

    (void)snprintf(target, sizeof(target), "/v1/gpus/%s/fingerprint", out->uuid);
    if ((f->reach || reach_open(url && url[0] ? url : "daemon:", &f->reach, &error) == REACH_OK) &&
        reach_get(f->reach, target, &body, &error) == REACH_OK)
        parse_answer(body, out);
    else
        (void)snprintf(out->why, sizeof(out->why),
                       "no fingerprint of this GPU is known (give a file by --fingerprint): %.300s",
                       error.text);
    reach_free(body);
}

/* ---- both ---- */

/* Returns whether a UUID can be a part of a path. */
static bool is_plain(const char *uuid)
{
    return uuid[0] != '\0' &&
           strspn(uuid, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") ==
               strlen(uuid);
}

const struct fingerprint *fingerprints_find(void *context, const struct recording_gpu *gpu,
                                            const char **out_why)
{
    struct fingerprints *const f = context;
    struct found *found;

    *out_why = "";
    for (uint32_t i = 0; i < f->count; i++) {
        if (strcmp(f->found[i].uuid, gpu->uuid) == 0) {
            *out_why = f->found[i].why;
            return f->found[i].fp;
        }
    }
    if (f->count == MAX_ANSWERS || f->from_files) {
        *out_why = "no given fingerprint has the UUID of this GPU";
        return NULL;
    }
    found = &f->found[f->count++];
    (void)snprintf(found->uuid, sizeof(found->uuid), "%s", gpu->uuid);
    if (is_plain(gpu->uuid))
        ask_daemon(f, found);
    else
        (void)snprintf(found->why, sizeof(found->why), "the recording has no UUID of this GPU");
    text_sanitize(found->why);
    *out_why = found->why;
    return found->fp;
}
