/* next_step.c: selects the next step by the depth that was measured, then by the reason why a
 * number is absent. */
#include "planner/next_step.h"

#include <stdio.h>
#include <string.h>

/* For other kinds of memory, depth matrix measures the same as depth full. */
static bool covers(enum depth had, enum depth needed)
{
    return needed == DEPTH_MEMORY ? had == DEPTH_MEMORY : had >= needed;
}

const char *next_step(const struct fingerprint *fp, enum depth had, enum depth needed,
                      enum reason why)
{
    if (fp->gpu.origin == ORIGIN_IMPORTED)
        return "Measure the GPU with reachd (reachctl measure): an import cannot determine the "
               "number.";
    if (!covers(had, needed))
        return needed == DEPTH_MEMORY
                   ? "Measure with depth memory: POST /v1/gpus/{gpu}/measurements with "
                     "{\"depth\": \"memory\"}, or reachctl measure --depth memory."
                   : "Measure with depth full: POST /v1/gpus/{gpu}/measurements with "
                     "{\"depth\": \"full\"}, or reachctl measure --depth full.";
    switch (why) {
    case REASON_NO_DEVICE_MEMORY:
        return "Free memory of the GPU, then measure again with the same depth.";
    case REASON_NO_HOST_MEMORY:
        return "Free memory of the host, or raise the host-memory-limit of reachd, then measure "
               "again with the same depth.";
    case REASON_NOT_PERMITTED:
        return "Raise the limit that the notes of the fingerprint name, then measure again.";
    case REASON_NOT_MEASURED:
    case REASON_DISAGREEMENT:
    case REASON_TOO_LITTLE_DATA:
    case REASON_IRREGULAR:
        return "This depth did not find the number: measure again when no other job runs on the "
               "GPU.";
    default:
        return "There is nothing to do: this GPU or its driver does not show the property.";
    }
}

const char *next_step_full(const struct fingerprint *fp, enum reason why)
{
    return next_step(fp, fp->depth, DEPTH_FULL, why);
}

void next_step_append(const struct fingerprint *fp, struct maybe_f64 number, char *text,
                      size_t room)
{
    const size_t used = strlen(text);

    if (!IS_KNOWN(number))
        snprintf(text + used, room - used, " %s", next_step_full(fp, number.reason));
}
