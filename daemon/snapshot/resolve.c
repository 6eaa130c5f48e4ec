/* resolve.c: finds the GPU of a name, or the reason why there is none. */
#include "snapshot/snapshot.h"

#include <stdlib.h>
#include <string.h>

#define LIST_HINT "List the GPUs: GET /v1/gpus, or reachctl gpus."

static bool is_number(const char *text)
{
    return *text && strlen(text) <= 4 && text[strspn(text, "0123456789")] == '\0';
}

/* Returns whether the driver shows the GPU as a whole, so that nvidia-smi and Slurm count it. */
static bool is_counted(const struct snapshot_gpu *gpu)
{
    return gpu->state != GPU_STATE_LOST &&
           (!gpu->identity.mig || identity_is_divided(&gpu->identity));
}

/* Finds a GPU by the number that nvidia-smi and Slurm use, which count only GPUs that the driver
 * shows. */
static const struct snapshot_gpu *find_counted(const struct snapshot *s, const char *name,
                                               struct err *err)
{
    unsigned long left = strtoul(name, NULL, 10);
    uint32_t count = 0;

    for (uint32_t i = 0; is_number(name) && i < s->gpu_count; i++) {
        if (!is_counted(&s->gpus[i]))
            continue;
        count++;
        if (left-- == 0)
            return &s->gpus[i];
    }
    err_set_hint(err, STATUS_NOT_FOUND, LIST_HINT,
                 "there is no GPU number \"%.20s\": the driver shows %u", name, count);
    return NULL;
}

/* Finds a GPU by the number that CUDA uses if CUDA_DEVICE_ORDER is not set. CUDA counts from the
 * fastest GPU, so the number is certain only if all are alike. */
static const struct snapshot_gpu *find_by_speed(const struct snapshot *s, const char *name,
                                                struct err *err)
{
    const struct snapshot_gpu *first = NULL;

    for (uint32_t i = 0; i < s->gpu_count; i++) {
        const struct snapshot_gpu *const gpu = &s->gpus[i];
        if (!is_counted(gpu))
            continue;
        if (first && strcmp(first->identity.name, gpu->identity.name) != 0) {
            err_set_hint(
                err, STATUS_NOT_FOUND,
                "Set CUDA_DEVICE_ORDER=PCI_BUS_ID in the job, or name GPUs by their UUIDs.",
                "number %.20s does not name one GPU: this node has %.60s and %.60s, which "
                "CUDA numbers by speed unless CUDA_DEVICE_ORDER is PCI_BUS_ID",
                name, first->identity.name, gpu->identity.name);
            return NULL;
        }
        first = first ? first : gpu;
    }
    return find_counted(s, name, err);
}

/* Finds a GPU by the beginning of its UUID, as CUDA_VISIBLE_DEVICES allows. Returns NULL without an
 * error if no UUID begins with the text. */
static const struct snapshot_gpu *find_prefix(const struct snapshot *s, const char *name,
                                              struct err *err)
{
    const struct snapshot_gpu *found = NULL;

    for (uint32_t i = 0; i < s->gpu_count; i++) {
        const struct snapshot_gpu *const gpu = &s->gpus[i];
        if (!identity_is_prefix(name, gpu->identity.uuid))
            continue;
        if (found) {
            err_set_hint(err, STATUS_NOT_FOUND, "Write more of the UUID.",
                         "\"%.63s\" is the beginning of several UUIDs: %s and %s", name,
                         found->identity.uuid, gpu->identity.uuid);
            return NULL;
        }
        found = gpu;
    }
    return found;
}

const struct snapshot_gpu *snapshot_resolve(const struct snapshot *s, const char *name,
                                            struct err *err)
{
    const struct snapshot_gpu *gpu = snapshot_find(s, name);

    err->status = STATUS_OK;
    if (gpu || s->gpu_count == 0)
        return gpu;
    if (strncmp(name, "pci:", 4) == 0)
        return find_counted(s, name + 4, err);
    if (strncmp(name, "cuda:", 5) == 0)
        return find_by_speed(s, name + 5, err);
    gpu = find_prefix(s, name, err);
    if (!gpu && err->status == STATUS_OK)
        err_set_hint(
            err, STATUS_NOT_FOUND, LIST_HINT,
            "there is no GPU \"%.80s\": name one by its UUID, or by its index from 0 to %u", name,
            s->gpu_count - 1);
    return gpu;
}
