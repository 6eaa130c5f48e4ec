/* check_schedule.h: the times of the quick checks of a GPU (check-every). The functions are pure;
 * times are on the monotonic clock. */
#pragma once

#include "base/clock.h"

/* The pause after a check is at least this number of times as long as the check has used the
 * GPU. */
enum { CHECK_SCHEDULE_REST = 1000 };

/* Returns the time of the first check of GPU `index` of `count` GPUs. The GPUs of a node share
 * links and power, so they are checked one after the other. */
static inline nsec_t check_schedule_first(nsec_t now, nsec_t every, uint32_t index, uint32_t count)
{
    return now + every / (count > 0 ? count : 1) * (index % (count > 0 ? count : 1) + 1);
}

/* Returns the time of the check after one that has used the GPU for `gpu_ns`. */
static inline nsec_t check_schedule_next(nsec_t now, nsec_t every, nsec_t gpu_ns)
{
    const nsec_t rest = CHECK_SCHEDULE_REST * gpu_ns;

    return now + (every > rest ? every : rest);
}
