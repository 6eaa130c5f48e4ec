/* reach_limit.h: the reach of an SM group and the speed of random reads, from a fingerprint, in the
 * form that all answers start from. The functions are pure and may be called on any thread. */
#ifndef REACH_PLANNER_REACH_LIMIT_H
#define REACH_PLANNER_REACH_LIMIT_H

#include "base/status.h"
#include "fingerprint/fingerprint.h"

struct reach_limit {
    char fingerprint_id[FINGERPRINT_ID_BYTES];
    bool observed;        /* if false, no limit that costs speed was seen; other members are 0 */
    uint64_t reach_bytes; /* reach of one group */
    uint64_t entry_bytes;
    uint64_t usable_bytes; /* longest range with a base of any alignment: reach less one entry */
};

/* Checks that `bytes` are from 1 to PLACEMENT_MAX_BYTES (STATUS_INVALID_ARGUMENT) and that the
 * fingerprint can be used (STATUS_NOT_APPLICABLE). Copies `id` to `out_id`, of
 * FINGERPRINT_ID_BYTES. If `id` is NULL, the id of the fingerprint is computed. */
enum status reach_limit_begin(const struct fingerprint *fp, uint64_t bytes, const char *id,
                              char *out_id, struct err *err);

/* Returns STATUS_TOO_MANY_BYTES if this GPU's own memory is known to be smaller. */
enum status reach_limit_check_device(const struct fingerprint *fp, uint64_t bytes, struct err *err);

/* Makes both checks and reads the limit. Errors are theirs, and STATUS_NOT_APPLICABLE for an
 * unknown reach. */
enum status reach_limit_read(const struct fingerprint *fp, uint64_t bytes, const char *id,
                             struct reach_limit *out, struct err *err);

/* The part of a reach that another range of `reserve_bytes` uses at any alignment: whole entries,
 * and one more. 0 bytes use nothing. */
uint64_t reach_limit_taken(uint64_t entry_bytes, uint64_t reserve_bytes);

/* Subtracts the reserve from usable_bytes. Returns STATUS_INVALID_ARGUMENT if it is above
 * PLACEMENT_MAX_BYTES, and STATUS_NOT_APPLICABLE if nothing is left. */
enum status reach_limit_reserve(struct reach_limit *limit, uint64_t reserve_bytes, struct err *err);

/* Subtracts a margin (layout_alignment_bytes). Returns STATUS_NOT_APPLICABLE if nothing is left. */
enum status reach_limit_alignment(struct reach_limit *limit, uint64_t alignment_bytes,
                                  struct err *err);

/* The scope of one pass: the reach of one group. If a wider level was measured to cost less than
 * half of the speed of reads, the scope is that level's reach less one entry. */
uint64_t reach_limit_scope_bytes(const struct fingerprint *fp, const struct reach_limit *limit);

enum predict_column { PREDICT_NAIVE = 0, PREDICT_BY_GROUP };

/* GB/s of random 128-byte reads over `bytes`, by the curve. Unknown, with the reason, if no curve
 * was measured or the curve does not cover the size. */
struct maybe_f64 predict_gbps(const struct throughput *t, enum predict_column column,
                              uint64_t bytes);

#endif
