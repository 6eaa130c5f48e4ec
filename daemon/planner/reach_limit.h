/* reach_limit.h: reads the reach of an SM group and the speed of random reads from a fingerprint.
 * All answers start from these numbers. The functions are pure and may be called on any thread. */
#pragma once

#include "base/status.h"
#include "fingerprint/fingerprint.h"

struct reach_limit {
    char fingerprint_id[FINGERPRINT_ID_BYTES];
    bool observed; /* true if there is a limit that costs speed; if false, the sizes below are 0 */
    uint64_t reach_bytes; /* reach of one group */
    uint64_t entry_bytes;
    uint64_t usable_bytes; /* length of the longest range that fits at any alignment: the reach less
                              one entry */
};

/* Returns STATUS_INVALID_ARGUMENT if `bytes` is not from 1 to PLACEMENT_MAX_BYTES, and
 * STATUS_NOT_APPLICABLE if the fingerprint cannot be used. Copies `id` to `out_id`, of
 * FINGERPRINT_ID_BYTES. If `id` is NULL, the id of the fingerprint is computed. */
enum status reach_limit_begin(const struct fingerprint *fp, uint64_t bytes, const char *id,
                              char *out_id, struct err *err);

/* Returns STATUS_TOO_MANY_BYTES if the GPU's own memory is known to be smaller than `bytes`. */
enum status reach_limit_check_device(const struct fingerprint *fp, uint64_t bytes, struct err *err);

/* Makes the checks of reach_limit_begin and reach_limit_check_device, and reads the limit. Returns
 * their errors, and STATUS_NOT_APPLICABLE if the reach is unknown. */
enum status reach_limit_read(const struct fingerprint *fp, uint64_t bytes, const char *id,
                             struct reach_limit *out, struct err *err);

/* Returns the part of a reach that another range of `reserve_bytes` uses at any alignment: whole
 * entries, and one more entry. The part is 0 for 0 bytes. */
uint64_t reach_limit_taken(uint64_t entry_bytes, uint64_t reserve_bytes);

/* Subtracts the reserve from usable_bytes. Returns STATUS_INVALID_ARGUMENT if the reserve is above
 * PLACEMENT_MAX_BYTES, and STATUS_NOT_APPLICABLE if no usable bytes remain. */
enum status reach_limit_reserve(struct reach_limit *limit, uint64_t reserve_bytes, struct err *err);

/* Subtracts the margin of layout_alignment_bytes from usable_bytes. Returns STATUS_NOT_APPLICABLE
 * if no usable bytes remain. */
enum status reach_limit_alignment(struct reach_limit *limit, uint64_t alignment_bytes,
                                  struct err *err);

/* Returns the length of the scope of one pass: the usable bytes. If reads within the reach of a
 * wider level keep half of their speed, the scope is that reach less one entry. */
uint64_t reach_limit_scope_bytes(const struct fingerprint *fp, const struct reach_limit *limit);

enum predict_column { PREDICT_NAIVE = 0, PREDICT_BY_GROUP };

/* Returns the GB/s of random 128-byte reads over `bytes`, by the curve. The result is unknown, with
 * the reason, if no curve was measured or the curve does not cover the size. */
struct maybe_f64 predict_gbps(const struct throughput *t, enum predict_column column,
                              uint64_t bytes);
