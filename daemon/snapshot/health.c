/* health.c: see health.h. */
#include "snapshot/health.h"

#include "fingerprint/link.h"
#include "types/name_of.h"

NAME_FUNCTION(health_kind_name, enum health_kind, [HEALTH_GPUS_MISSING] = "gpus-missing",
              [HEALTH_GPU_LOST] = "gpu-lost", [HEALTH_GPU_FAILED] = "gpu-failed",
              [HEALTH_LINK_DEGRADED] = "link-degraded", [HEALTH_GPU_DRIFT] = "gpu-drift")

static bool is_present(const struct snapshot_gpu *gpu)
{
    return gpu->state != GPU_STATE_LOST && !gpu->unidentified;
}

bool health_is_counted(const struct snapshot *s)
{
    return !s->discovering && !s->stored_only;
}

uint32_t health_count_found(const struct snapshot *s)
{
    uint32_t found = 0;

    for (uint32_t i = 0; i < s->gpu_count; i++) {
        uint32_t k = 0;

        while (k < i && !(is_present(&s->gpus[k]) &&
                          identity_is_same_address(&s->gpus[k].identity, &s->gpus[i].identity)))
            k++;
        found += is_present(&s->gpus[i]) && k == i;
    }
    return found;
}

uint32_t health_count_missing(const struct snapshot *s)
{
    const uint32_t found = health_count_found(s);

    return health_is_counted(s) && found < s->expected_gpus ? s->expected_gpus - found : 0;
}

/* Returns whether the driver or the hardware is the cause of an error. A GPU that is in use or has
 * too little free memory works. */
static bool is_fault(enum status status)
{
    return status == STATUS_GPU_LOST || status == STATUS_GPU_FAULT || status == STATUS_GPU_HUNG;
}

/* Returns the kind of problem of a GPU, or HEALTH_KINDS if the GPU has none. */
static enum health_kind classify(const struct snapshot_gpu *gpu)
{
    if (gpu->unidentified || is_fault(gpu->last_error.status))
        return HEALTH_GPU_FAILED;
    return gpu->state == GPU_STATE_LOST ? HEALTH_GPU_LOST : HEALTH_KINDS;
}

/* Visits what a quick check has found since the fingerprint was measured. Without such a check, the
 * fingerprint has the link. */
static uint32_t visit_drift(const struct snapshot_gpu *gpu, health_fn *visit, void *self)
{
    const bool checked = gpu->check.checked_at >= gpu->fingerprint.taken_at;
    char link[LINK_TEXT_BYTES] = "";
    uint32_t count = 0;
    struct err why;

    if (!gpu->has_fingerprint || !is_present(gpu))
        return 0;
    if (checked ? gpu->check.link[0] != '\0' : link_is_slow(&gpu->fingerprint.conditions, link)) {
        err_set_hint(&why, STATUS_CONFLICT,
                     "Reseat the GPU and its riser, compare the slot and the settings of the BIOS "
                     "with other nodes, then measure again: reachctl measure.",
                     "%s", checked ? gpu->check.link : link);
        visit(self, HEALTH_LINK_DEGRADED, gpu, &why);
        count++;
    }
    if (checked && gpu->check.drift[0]) {
        err_set_hint(&why, STATUS_CONFLICT,
                     "Compare power, cooling and clocks with nvidia-smi -q. If the change is "
                     "intended, measure again: reachctl measure --depth full.",
                     "%s", gpu->check.drift);
        visit(self, HEALTH_GPU_DRIFT, gpu, &why);
        count++;
    }
    return count;
}

uint32_t health_visit(const struct snapshot *s, health_fn *visit, void *self)
{
    const uint32_t missing = health_count_missing(s);
    const bool reason = s->source_error.status != STATUS_OK;
    uint32_t count = missing > 0;
    struct err why;

    if (missing > 0) {
        err_set_hint(&why, STATUS_NOT_FOUND,
                     "Look at nvidia-smi and at the kernel log, and reset or replace the missing "
                     "GPU. SIGHUP makes reachd look again.",
                     "%u of %u expected GPUs were found%s%.250s", s->expected_gpus - missing,
                     s->expected_gpus, reason ? ": " : "", reason ? s->source_error.text : "");
        visit(self, HEALTH_GPUS_MISSING, NULL, &why);
    }
    for (uint32_t i = 0; i < s->gpu_count && health_is_counted(s); i++) {
        const enum health_kind kind = classify(&s->gpus[i]);

        if (kind != HEALTH_KINDS) {
            visit(self, kind, &s->gpus[i], &s->gpus[i].last_error);
            count++;
        }
        count += visit_drift(&s->gpus[i], visit, self);
    }
    return count;
}
