/* compare.h: is this chip normal? Places each number of a fingerprint among the numbers of its kind
 * of chips (reference.h), by the rule of outlier.h. Pure; any thread. */
#ifndef REACH_COMPARE_COMPARE_H
#define REACH_COMPARE_COMPARE_H

#include "compare/metrics.h"
#include "compare/reference.h"

#include "base/json_writer.h"

enum compare_verdict {
    COMPARE_NORMAL = 0,
    COMPARE_ODD,
    COMPARE_TOO_FEW,      /* chips that have this number, or of this kind */
    COMPARE_NOT_JUDGED,   /* of a number: metrics_is_judged has the rule */
    COMPARE_UNKNOWN_KIND, /* of a chip: the reference has none like it */
};
/* "normal", "odd", "too-few", "not-judged", "unknown-kind". */
const char *compare_verdict_name(enum compare_verdict v);

struct compared {
    char name[METRIC_NAME_BYTES]; /* of metrics.h */
    enum compare_verdict verdict;
    /* One of them; the other is NULL. */
    const struct reference_number *number;
    const struct reference_property *property;
    double value;  /* of a number */
    bool bounded;  /* it was judged: outside of low and high it is odd */
    bool borrowed; /* with a spread of other kinds */
    double low;
    double high;
    char text[METRIC_NAME_BYTES]; /* of a property */
};

/* In the sentence of a chip that was compared with no set at all. */
#define COMPARE_NO_REFERENCE "there is no reference set"

struct comparison {
    enum compare_verdict verdict;         /* of the chip */
    const struct reference_kind *kind;    /* NULL: unknown */
    char map[FINGERPRINT_MAP_HASH_BYTES]; /* "": no groups are known */
    uint32_t chips_with_map;
    uint32_t judged; /* rows that are normal or odd */
    uint32_t odd;
    uint32_t borrowed;  /* of the judged ones */
    char sentence[512]; /* all of it in plain words */
    uint32_t count;
    uint32_t room;
    bool no_memory;
    struct compared *rows; /* owned; in the order of the fingerprint, properties first */
};

/* `reference` NULL: every kind is unknown. The result borrows from it. STATUS_NO_MEMORY. In any
 * case `out` is to be given to comparison_free. */
enum status comparison_make(const struct reference *reference, const struct fingerprint *fp,
                            struct comparison *out, struct err *err);
void comparison_free(struct comparison *take);

/* Writes its members into an open object:
 *
 *     "verdict": "odd", "sentence": "..", "odd": ["throughput.plateau_gbps"],
 *     "kind": {"name", "compute_capability", "sm_count", "memory_bytes", "chips"} or null,
 *     "rule": {"least_chips", "least_borrowing", "deviations", "share"}, "judged": 170,
 *     "map": {"name", "chips"} or null,
 *     "properties": [{"name", "value", "usual", "have", "chips", "verdict"}],
 *     "numbers": [{"name", "value", "chips", "least", "median", "most", "deviations", "low",
 *                  "high", "borrowed", "verdict"}]
 *
 * "chips" to "deviations" are of the reference alone, "low" and "high" the bounds of what is
 * normal. "deviations" is the distance from the median in robust deviations, null if there is no
 * deviation.
 */
void comparison_write(struct json_writer *t, const struct comparison *c);

#endif
