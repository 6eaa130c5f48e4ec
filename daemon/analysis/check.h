/* check.h: compares a stored fingerprint with this chip. The functions are pure. Their input is the
 * fingerprint, the identity of the GPU now, and a handful of observations. Their result is that the
 * fingerprint is still true, changed or unsure.
 *
 * The campaign (campaign/verify_probes.h) and the verdict share these definitions:
 *
 *   level     a CHASE of four points at a stride of one entry: well within the entries, the most
 *             pages that fit, somewhat more, and a quarter beyond saturation. The first two must
 *             hit, and the last must miss by about the stored penalty. A level is probed if its
 *             entries, saturation and penalty are known.
 *   sharing   a ROUND of the window level or, if its slices do not fit, rows of PAIRS. The group of
 *             the pivot must be evicted and no other SM, by the votes and odds of sharing.h. The
 *             group is probed if the sizes of all nearer levels are known too.
 */
#pragma once

#include "fingerprint/fingerprint.h"
#include "observe/observe.h"

enum check_result {
    CHECK_HOLDS = 0,
    CHECK_UNSURE, /* the evidence is too weak either way */
    CHECK_CHANGED
};
/* Returns "still true", "cannot say" or "changed". */
const char *check_result_name(enum check_result r);

struct check {
    enum check_result result;
    char message[VERDICT_MESSAGE_BYTES]; /* first message of the worst result; terminated */
    uint32_t moved_sms; /* number of SMs that were found in another group than before */
    uint32_t looked_at; /* number of levels and groups that were compared */
};

/* Compares the identity, without a probe: UUID, serial, driver, MIG, SMs, memory. Fields that one
 * side does not report are skipped. */
void check_identity(const struct gpu_identity *then, const struct gpu_identity *now,
                    struct check *out);

/* Makes the probe of level `k` (an index) of the fingerprint. Returns false if the fingerprint does
 * not determine enough of the level. */
bool check_level_test(const struct fingerprint *fp, uint32_t k, const struct gpu_limits *limits,
                      uint16_t sm, struct probe_spec *out);
/* Makes the probe of the group of SM `pivot`. Returns false if this SM has no group, or if the
 * pages do not fit the level. */
bool check_sharing_test(const struct fingerprint *fp, const struct gpu_limits *limits,
                        uint16_t pivot, struct probe_spec *out);

/* Derives the verdict from the observations; observations of other probes are skipped. */
void check_observations(const struct fingerprint *fp, const struct observation_set *set,
                        struct check *out);
