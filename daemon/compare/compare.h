/* compare.h: checks whether a chip is normal. It places each number of a fingerprint among the
 * numbers of chips of its kind (reference.h), by the rule of outlier.h. The functions are pure and
 * may be called on any thread. */
#pragma once

#include "compare/metrics.h"
#include "compare/reference.h"

#include "base/json_writer.h"
#include "fingerprint/link.h"

enum compare_verdict {
    COMPARE_NORMAL = 0,
    COMPARE_ODD,
    COMPARE_TOO_FEW,      /* too few chips are of this kind or have this number */
    COMPARE_NOT_JUDGED,   /* metrics_is_judged excludes the number */
    COMPARE_UNKNOWN_KIND, /* the reference does not have the kind of the chip */
};
/* "normal", "odd", "too-few", "not-judged", "unknown-kind". */
const char *compare_verdict_name(enum compare_verdict v);

struct compared {
    char name[METRIC_NAME_BYTES]; /* of metrics.h */
    enum compare_verdict verdict;
    /* The reference for a number or for a property; the other pointer is NULL. */
    const struct reference_number *number;
    const struct reference_property *property;
    double value;  /* the value of a number */
    bool bounded;  /* the number was judged; it is odd if it is outside of low..high */
    bool borrowed; /* the spread comes from other kinds */
    double low;
    double high;
    char text[METRIC_NAME_BYTES]; /* the value of a property */
};

/* The text in `sentence` if a chip was compared without a reference set. */
#define COMPARE_NO_REFERENCE "there is no reference set"

struct comparison {
    enum compare_verdict verdict;         /* the verdict on the chip */
    const struct reference_kind *kind;    /* kind of the chip; NULL if unknown */
    char map[FINGERPRINT_MAP_HASH_BYTES]; /* name of the group map; "" if no groups are known */
    uint32_t chips_with_map;
    uint32_t judged; /* number of rows that are normal or odd */
    uint32_t odd;
    uint32_t borrowed;  /* number of judged rows with a borrowed spread */
    char sentence[512]; /* the result in one or two sentences */
    /* The link of the chip at best is its own reference, so a slow link is odd among any chips. The
     * cause is a sentence without a capital letter and a full stop, or "". */
    char cause[LINK_TEXT_BYTES];
    bool low_generation; /* odd without a row, like few_lanes */
    bool few_lanes;
    uint32_t count;
    uint32_t room;
    bool no_memory;
    struct compared *rows; /* owned; properties first, then numbers */
};

/* Compares `fp` with `reference`. If `reference` is NULL, every kind is unknown. The result has
 * pointers into `reference`. Returns STATUS_NO_MEMORY if memory runs out. In any case `out` must be
 * given to comparison_free. */
enum status comparison_make(const struct reference *reference, const struct fingerprint *fp,
                            struct comparison *out, struct err *err);
void comparison_free(struct comparison *take);

/* Writes the comparison as members of an open object:
 *
 *     "verdict": "odd", "sentence": "..", "cause": null, "odd": ["throughput.plateau_gbps"],
 *     "kind": {"name", "compute_capability", "sm_count", "memory_bytes", "chips"} or null,
 *     "rule": {"least_chips", "least_borrowing", "deviations", "share"}, "judged": 170,
 *     "map": {"name", "chips"} or null,
 *     "properties": [{"name", "value", "usual", "have", "chips", "verdict"}],
 *     "numbers": [{"name", "value", "chips", "least", "median", "most", "deviations", "low",
 *                  "high", "borrowed", "verdict"}]
 *
 * "chips", "least", "median" and "most" describe the reference without this chip. "deviations" is
 * the distance from the median in robust deviations; null if the deviation is 0. "low" and "high"
 * are the bounds of the normal range.
 */
void comparison_write(struct json_writer *t, const struct comparison *c);
