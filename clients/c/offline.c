/* offline.c: see offline.h. What the daemon writes into JSON and answer.c reads out of it is here
 * copied from one struct to the other; a test holds the two ways against each other. */
#include "clients/c/offline_parts.h"

#include "clients/c/answer.h"

#include "base/clock.h"
#include "placement/handout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert((int)REACH_SM_SLOTS == (int)REACH_MAX_SMS, "SMs of a table");
_Static_assert((int)REACH_WINDOW_SLOTS == (int)PLACEMENT_MAX_WINDOWS, "windows of a placement");
_Static_assert((int)REACH_GROUP_SLOTS == (int)REACH_MAX_GROUPS, "groups of a GPU");
_Static_assert((int)REACH_GPU_SLOTS == (int)REACH_MAX_GPUS, "GPUs of a node");
_Static_assert((int)REACH_READ == (int)ACCESS_READ && (int)REACH_ATOMIC == (int)ACCESS_ATOMIC,
               "kinds of access");

enum { MAX_FILE_BYTES = 16 << 20 };

/* ---- the file ---- */

/* All of it, owned; NULL and an error. Never waits: a pipe is refused. */
static char *read_file(const char *path, size_t *out_bytes, struct reach_error *error)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    size_t bytes = 0;
    char *text = NULL;
    struct stat st;
    ssize_t n = 1;

    if (fd < 0 || fstat(fd, &st) != 0) {
        fail_text(error, REACH_NOT_FOUND, "cannot open %s: %s", path, strerror(errno));
        goto out;
    }
    if (!S_ISREG(st.st_mode) || st.st_size > MAX_FILE_BYTES) {
        fail_text(error, REACH_CORRUPT, "%s is no fingerprint: %s", path,
                  S_ISREG(st.st_mode) ? "it is far too long" : "it is no file");
        goto out;
    }
    text = malloc((size_t)st.st_size + 1);
    if (!text) {
        fail_text(error, REACH_NO_MEMORY, "no memory to read %s", path);
        goto out;
    }
    while (bytes < (size_t)st.st_size && n > 0) {
        n = read(fd, text + bytes, (size_t)st.st_size - bytes);
        bytes += n > 0 ? (size_t)n : 0;
    }
    *out_bytes = bytes;
out:
    if (fd >= 0)
        close(fd);
    return text;
}

/* The id that the document gives itself: a newer release hashes fields that are dropped here. A
 * document without one gets the hash of what was read. */
static enum reach_status take_id(const json_t *json, const struct fingerprint *fp, char *out,
                                 struct reach_error *error)
{
    const char *id = json_string_value(json_object_get(json, "id"));

    if (id && strlen(id) == FINGERPRINT_ID_BYTES - 2 && strncmp(id, "fp", 2) == 0)
        memcpy(out, id, FINGERPRINT_ID_BYTES - 1);
    else if (fingerprint_id(fp, out, NULL) != STATUS_OK)
        return fail_with(error, REACH_NO_MEMORY, "no memory for the id of a fingerprint");
    return REACH_OK;
}

enum reach_status offline_new(const char *path, struct offline **out, struct reach_error *error)
{
    struct offline *offline = calloc(1, sizeof(*offline));
    enum reach_status status = REACH_OK;
    json_t *json = NULL;
    char *text = NULL;
    size_t bytes = 0;
    struct reach_error why = {.status = REACH_NO_MEMORY};
    struct err err;

    *out = NULL;
    if (!offline || !(offline->path = strdup(path))) {
        status = fail_with(error, REACH_NO_MEMORY, "no memory for a handle");
        goto out;
    }
    text = read_file(path, &bytes, &why);
    if (!text) {
        status = fail_with(error, why.status, "%s", why.text);
        goto out;
    }
    json = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL);
    if (!json) {
        status = fail_with(error, REACH_CORRUPT, "%s is no fingerprint: it is no JSON", path);
        goto out;
    }
    if (fingerprint_from_json(json, &offline->fingerprint, &err) != STATUS_OK) {
        status = fail_with(error, REACH_CORRUPT, "%s is no fingerprint: %s", path, err.text);
        goto out;
    }
    status = take_id(json, &offline->fingerprint, offline->id, error);
    if (status != REACH_OK)
        goto out;
    offline->read_ms = clock_monotonic() / NSEC_PER_MSEC;
    *out = offline;
    offline = NULL;
out:
    json_decref(json);
    free(text);
    offline_free(offline);
    return status;
}

enum reach_status offline_new_line(const char *name, const char *line, struct offline **out,
                                   struct reach_error *error)
{
    struct offline *offline = calloc(1, sizeof(*offline));
    enum reach_status status = REACH_OK;
    struct err err;

    *out = NULL;
    if (!offline || !(offline->path = strdup(name)))
        status = fail_with(error, REACH_NO_MEMORY, "no memory for a handle");
    else if (handout_read(line, &offline->fingerprint, offline->id, &err) != STATUS_OK)
        status = fail_with(error, REACH_CORRUPT, "%s is not what reachd wrote: %s", name, err.text);
    if (status == REACH_OK) {
        offline->read_ms = clock_monotonic() / NSEC_PER_MSEC;
        *out = offline;
    } else {
        offline_free(offline);
    }
    return status;
}

void offline_free(struct offline *take)
{
    if (!take)
        return;
    free(take->path);
    free(take);
}

enum reach_status offline_check_gpu(const struct offline *offline, const char *gpu,
                                    struct reach_error *error)
{
    const char *own = offline->fingerprint.gpu.uuid;

    if (strcmp(gpu, "0") == 0 || strcasecmp(gpu, own) == 0)
        return REACH_OK;
    if (gpu[strspn(gpu, "0123456789")] == '\0')
        return fail_with(error, REACH_NOT_FOUND, "there is no GPU %s: %s has one GPU, index 0", gpu,
                         offline->path);
    return fail_with(error, REACH_WRONG_GPU, "%s is the fingerprint of %s, not of %s",
                     offline->path, own, gpu);
}

enum reach_status offline_confirm(const struct offline *offline, const struct reach_basis *basis,
                                  struct reach_error *error)
{
    enum reach_status status = offline_check_gpu(offline, basis->gpu_uuid, error);
    struct offline *now = NULL;

    if (status == REACH_OK)
        status = offline_new(offline->path, &now, error);
    if (!now)
        return status;
    status = offline_check_gpu(now, basis->gpu_uuid, error);
    if (status == REACH_OK && strcmp(now->id, basis->fingerprint_id) != 0)
        status = fail_with(error, REACH_STALE,
                           "the answer rests on fingerprint %s, and %s now has %s: open it again",
                           basis->fingerprint_id, offline->path, now->id);
    offline_free(now);
    return status;
}

/* ---- answers ---- */

void offline_fill_text(char *out, size_t out_size, const char *text)
{
    snprintf(out, out_size, "%s", text);
}

void offline_fill_basis(const struct offline *offline, struct reach_basis *out)
{
    const struct gpu_identity *gpu = &offline->fingerprint.gpu;

    offline_fill_text(out->gpu_uuid, sizeof(out->gpu_uuid), gpu->uuid);
    offline_fill_text(out->fingerprint_id, sizeof(out->fingerprint_id), offline->id);
    offline_fill_text(out->origin, sizeof(out->origin), origin_name(gpu->origin));
    out->offline = true;
    out->confirmed_ms = offline->read_ms;
}

bool offline_is(const struct offline *offline, const char *uuid)
{
    return strcasecmp(uuid, offline->fingerprint.gpu.uuid) == 0;
}

void offline_gpus(const struct offline *offline, struct reach_gpus *out)
{
    const struct gpu_identity *gpu = &offline->fingerprint.gpu;
    struct reach_gpu *one = &out->gpu[out->count++];

    offline_fill_text(one->uuid, sizeof(one->uuid), gpu->uuid);
    offline_fill_text(one->name, sizeof(one->name), gpu->name);
    offline_fill_text(one->origin, sizeof(one->origin), origin_name(gpu->origin));
    offline_fill_text(one->state, sizeof(one->state), "offline");
    one->sm_count = gpu->sm_count;
    one->memory_bytes = gpu->memory_bytes;
    one->mig = gpu->mig;
    offline_fill_text(one->fingerprint_id, sizeof(one->fingerprint_id), offline->id);
}

static void describe(const struct fingerprint *fp, struct reach_fingerprint *out)
{
    const struct sm_partition *p = &fp->topology.partition;

    offline_fill_text(out->name, sizeof(out->name), fp->gpu.name);
    offline_fill_text(out->driver_version, sizeof(out->driver_version), fp->gpu.driver_version);
    offline_fill_text(out->depth, sizeof(out->depth), depth_name(fp->depth));
    clock_rfc3339(fp->taken_at, out->taken_at, sizeof(out->taken_at));
    out->sm_count = fp->gpu.sm_count;
    out->memory_bytes = fp->gpu.memory_bytes;
    out->reach_bytes = answer_size(fp->windows.reach_bytes);
    out->entry_bytes = answer_size(fp->windows.entry_bytes);
    out->recommended_bytes = answer_size(fp->windows.recommended_bytes);
    out->plateau_gbps = answer_number(fp->throughput.plateau_gbps);
    out->whole_memory_gbps = answer_number(fp->throughput.whole_memory_gbps);
    out->group_count = p->group_count;
    for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++) {
        const bool none = p->group_count == 0 || p->group_of_sm[sm] == FINGERPRINT_NO_GROUP;
        out->group_of_sm[sm] = none ? (int16_t)REACH_IDLE : (int16_t)p->group_of_sm[sm];
        if (!none)
            out->sm_slots = sm + 1;
    }
}

enum reach_status offline_fingerprint(const struct offline *offline, const void *request, void *out,
                                      struct reach_error *error)
{
    struct reach_fingerprint *fp = out;

    (void)request;
    (void)error;
    offline_fill_basis(offline, &fp->basis);
    describe(&offline->fingerprint, fp);
    return REACH_OK;
}

enum reach_status offline_describe(const json_t *json, struct reach_fingerprint *out,
                                   struct reach_error *error)
{
    struct offline *offline = calloc(1, sizeof(*offline)); /* too large for a stack */
    enum reach_status status = REACH_OK;
    struct err err;

    if (!offline)
        return fail_with(error, REACH_NO_MEMORY, "no memory to read a fingerprint");
    if (fingerprint_from_json(json, &offline->fingerprint, &err) != STATUS_OK) {
        status = fail_with(error, REACH_PROTOCOL, "the daemon's fingerprint makes no sense: %s",
                           err.text);
    } else {
        status = take_id(json, &offline->fingerprint, offline->id, error);
        offline_fill_basis(offline, &out->basis);
        describe(&offline->fingerprint, out);
        out->basis.offline = false;
    }
    offline_free(offline);
    return status;
}

enum reach_status offline_scope(const struct offline *offline, const void *request, void *out,
                                struct reach_error *error)
{
    const struct reach_scope_request *asked = request;
    struct reach_scope *scope = out;
    const struct scope_request question = {
        .bytes = asked->bytes, .access = (enum access)asked->access, .fingerprint_id = offline->id};
    struct scope_answer answer;
    struct err err;

    if (placement_scope(&offline->fingerprint, &question, &answer, &err) != STATUS_OK)
        return fail_with_err(error, &err);
    offline_fill_basis(offline, &scope->basis);
    scope->bytes = asked->bytes;
    offline_fill_text(scope->advice, sizeof(scope->advice), advice_name(answer.advice));
    scope->scope_bytes = answer.scope_bytes;
    scope->passes = answer.passes;
    scope->with_gbps = answer_figure(answer.with_gbps);
    scope->without_gbps = answer_figure(answer.without_gbps);
    offline_fill_text(scope->reason, sizeof(scope->reason), answer.reason);
    return REACH_OK;
}

void offline_fill_window(const struct placement_window *from, struct reach_window *out)
{
    out->first_byte = from->first_byte;
    out->length_bytes = from->length_bytes;
    out->sm_count = from->sm_count;
    out->group_count = from->group_count;
}

void offline_fill_windows(const struct placement_answer *answer, struct reach_windows *out)
{
    out->window_count = answer->window_count;
    for (uint32_t w = 0; w < answer->window_count; w++)
        offline_fill_window(&answer->windows[w], &out->window[w]);
    out->sm_slots = answer->sm_slots;
    for (uint32_t sm = 0; sm < answer->sm_slots; sm++) {
        const int16_t w = answer->window_of_sm[sm];
        out->window_of_sm[sm] = w < 0 ? (int16_t)REACH_IDLE : w;
    }
}

enum reach_status offline_placement(const struct offline *offline, const void *request, void *out,
                                    struct reach_error *error)
{
    const struct reach_placement_request *asked = request;
    struct reach_placement *placement = out;
    const struct placement_request question = {.bytes = asked->bytes,
                                               .windows = asked->windows,
                                               .granularity_bytes = asked->granularity_bytes,
                                               .fingerprint_id = offline->id};
    struct placement_answer answer;
    struct err err;

    if (placement_plan(&offline->fingerprint, &question, &answer, &err) != STATUS_OK)
        return fail_with_err(error, &err);
    offline_fill_basis(offline, &placement->basis);
    placement->bytes = asked->bytes;
    offline_fill_text(placement->advice, sizeof(placement->advice), advice_name(answer.advice));
    offline_fill_windows(&answer, &placement->windows);
    /* Without a limit, or without windows, there is nothing to keep a margin from. */
    placement->margin_bytes = answer.advice == ADVICE_NO_LIMIT_SEEN || answer.window_count == 0
                                  ? answer_size(UNKNOWN_U64(REASON_NOT_APPLICABLE))
                                  : answer_size(KNOWN_U64(answer.margin_bytes));
    placement->with_gbps = answer_figure(answer.with_gbps);
    placement->without_gbps = answer_figure(answer.without_gbps);
    offline_fill_text(placement->reason, sizeof(placement->reason), answer.reason);
    return REACH_OK;
}
