/* drift.h: finds out whether a GPU has become slower since its fingerprint was measured. A quick
 * check (measure.h) makes the probes of check.h and the probe of this file. The functions are pure.
 *
 *   clock    the highest SM clock after any probe, whether the probe was disturbed or not. Hardware
 *            that limits its clocks disturbs every probe, and is the reason of a slow clock.
 *   speed    random reads of device memory within the reach, of all SMs
 *   link     the PCIe link, compared with the link at best, else with the link of the fingerprint
 *
 * A clock or a speed has drifted if it is more than DRIFT_SHARE below the fingerprint.
 */
#pragma once

#include "fingerprint/link.h"
#include "observe/observe.h"

/* Two measurements of a healthy chip differ by less. It is the share of daemon/compare/outlier.h,
 * which counts the errors of this limit. */
#define DRIFT_SHARE 0.05

struct drift {
    char speed[VERDICT_MESSAGE_BYTES]; /* sentence about clock or speed; "" means no drift */
    char link[LINK_TEXT_BYTES];        /* sentence about the link; "" means no drift */
};

/* Makes the probe of the speed. Returns false if the fingerprint has no speed, or if the region
 * does not fit the limits. */
bool drift_speed_test(const struct fingerprint *fp, const struct gpu_limits *limits,
                      struct probe_spec *out);

/* Returns whether there is any drift. */
bool drift_is_any(const struct drift *d);

/* Keeps only what two looks have found, one after the other. */
void drift_confirm(const struct drift *before, struct drift *io);

/* Compares all observations of a quick check, clean and excluded, with the fingerprint. */
void drift_find(const struct fingerprint *fp, const struct observation_set *set, struct drift *out);
