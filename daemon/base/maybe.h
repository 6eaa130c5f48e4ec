/* maybe.h: numbers that may be absent, with the reason.
 *
 * A number is known, unknown (not measured, or the evidence was too weak) or not observable
 * (measured, and the hardware gives no signal: a reach beyond the memory, for example). There are
 * no magic values: if `known` is not MAYBE_KNOWN, `v` is 0 and has no meaning. In JSON:
 *
 *     known            "x": 65
 *     unknown          "x": null, "x_reason": "not-measured"
 *     not observable   "x": null, "x_reason": "not-observable: beyond-memory"
 */
#pragma once

#include <stdint.h>

enum known {
    MAYBE_UNKNOWN = 0, /* a zeroed struct is unknown */
    MAYBE_KNOWN,
    MAYBE_NOT_OBSERVABLE,
};

/* The reason why a number is absent. The set of reasons is closed (reason_from_slug). */
enum reason {
    REASON_NONE = 0,         /* the number is known */
    REASON_NOT_MEASURED,     /* the measurement did not include the number */
    REASON_BEYOND_MEMORY,    /* a larger range than could be probed would be needed */
    REASON_NO_CONTRAST,      /* hit and miss cannot be distinguished */
    REASON_DISAGREEMENT,     /* repeats or methods contradict each other */
    REASON_TOO_LITTLE_DATA,  /* not enough samples, or not enough points around the step */
    REASON_NO_DEVICE_MEMORY, /* the probe needs more free device memory than there was */
    REASON_NOT_APPLICABLE,   /* the number has no meaning here */
    REASON_NOT_REPORTED,     /* the driver does not report the number */
    REASON_IRREGULAR,      /* the hardware follows no pattern that was found in the time allowed */
    REASON_NO_TRACE,       /* the hardware shows no effect in anything that can be measured */
    REASON_NOT_SUPPORTED,  /* the driver or the hardware lacks a needed function */
    REASON_NOT_PERMITTED,  /* a limit of the process or of the system forbids the probe */
    REASON_NO_HOST_MEMORY, /* more host memory was needed than there was or was allowed */
    REASON_COUNT
};

/* Returns the stable slug of a reason for JSON ("beyond-memory"), or "" for REASON_NONE. */
const char *reason_slug(enum reason r);
/* Returns the reason with this slug, or REASON_NOT_MEASURED if there is none. */
enum reason reason_from_slug(const char *slug);

enum { REASON_TEXT_BYTES = 48, REASON_FIELD_BYTES = 64 };
/* Writes the reason in its JSON form to `out` (REASON_TEXT_BYTES): "beyond-memory", or
 * "not-observable: beyond-memory". REASON_NONE is written like REASON_NOT_MEASURED. Returns
 * `out`. */
char *reason_text(enum known known, enum reason reason, char *out);
/* Parses that text. A reason of a newer release is read as not measured. */
void reason_parse(const char *text, enum known *out_known, enum reason *out_reason);
/* Writes "x_reason" for the field "x" to `out` (REASON_FIELD_BYTES). Returns `out`. */
char *reason_field(const char *name, char *out);

struct maybe_u32 {
    enum known known;
    enum reason reason;
    uint32_t v;
};
struct maybe_u64 {
    enum known known;
    enum reason reason;
    uint64_t v;
};
struct maybe_f64 {
    enum known known;
    enum reason reason;
    double v;
};

/* clang-format would spread each macro over four lines. */
/* clang-format off */
#define KNOWN(x)                {.known = MAYBE_KNOWN, .reason = REASON_NONE, .v = (x)}
#define UNKNOWN(why)            {.known = MAYBE_UNKNOWN, .reason = (why), .v = 0}
#define NOT_OBSERVABLE(why)     {.known = MAYBE_NOT_OBSERVABLE, .reason = (why), .v = 0}
/* clang-format on */
#define KNOWN_U32(x)            ((struct maybe_u32)KNOWN(x))
#define KNOWN_U64(x)            ((struct maybe_u64)KNOWN(x))
#define KNOWN_F64(x)            ((struct maybe_f64)KNOWN(x))
#define UNKNOWN_U32(why)        ((struct maybe_u32)UNKNOWN(why))
#define UNKNOWN_U64(why)        ((struct maybe_u64)UNKNOWN(why))
#define UNKNOWN_F64(why)        ((struct maybe_f64)UNKNOWN(why))
#define NOT_OBSERVABLE_U32(why) ((struct maybe_u32)NOT_OBSERVABLE(why))
#define NOT_OBSERVABLE_U64(why) ((struct maybe_u64)NOT_OBSERVABLE(why))
#define NOT_OBSERVABLE_F64(why) ((struct maybe_f64)NOT_OBSERVABLE(why))
#define IS_KNOWN(m)             ((m).known == MAYBE_KNOWN)

/* Keeps the larger of two numbers in `*io`. If neither is known, `*io` gets the reason of `now`. */
static inline void maybe_u32_raise(struct maybe_u32 *io, struct maybe_u32 now)
{
    if (!IS_KNOWN(*io) || (IS_KNOWN(now) && now.v > io->v))
        *io = now;
}
