/* measurement.h: the state of one measurement, for its caller. */
#pragma once

#include "base/status.h"
#include "fingerprint/fingerprint.h"

enum measurement_state {
    MEASUREMENT_QUEUED = 0,
    MEASUREMENT_RUNNING,
    MEASUREMENT_DONE,
    MEASUREMENT_FAILED
};
const char *measurement_state_name(enum measurement_state s);

/* A check verifies whether the stored fingerprint is still valid (verify.c). */
enum measurement_kind { MEASUREMENT_NEW = 0, MEASUREMENT_CHECK };
const char *measurement_kind_name(enum measurement_kind k); /* "measure", "check" */

struct measurement {
    char id[24]; /* "m-17" */
    char uuid[64];
    enum measurement_kind kind;
    enum depth depth; /* depth of a measurement */
    enum measurement_state state;
    double progress;   /* 0..1 */
    char message[160]; /* the current activity, or the reason for the end */
    int64_t queued_at; /* wall clock in seconds; 0 means not yet */
    int64_t started_at;
    int64_t ended_at;
    char fingerprint_id[FINGERPRINT_ID_BYTES]; /* id of the fingerprint that is served since the
                                                  end; set if done */
    char measured_id[FINGERPRINT_ID_BYTES]; /* id of the fingerprint of this measurement alone; set
                                               if done */
    struct err error;                       /* set if failed */
};

static inline bool measurement_is_ended(const struct measurement *m)
{
    return m->state == MEASUREMENT_DONE || m->state == MEASUREMENT_FAILED;
}

/* The number of measurements by state; ended measurements are counted since the start. */
struct measurement_counts {
    uint64_t queued;
    uint64_t running;
    uint64_t done;
    uint64_t failed;
};
