/* backend.h: the functions of the daemon that the API needs besides a snapshot. daemon/service
 * provides them, so the API does not depend on the store or daemon/measure and is tested without
 * them.
 *
 * Every function is required and may be called from several threads at once; none may wait for a
 * measurement. The functions that use the database (history, fingerprint_at, observations,
 * observation, forget) are called only from a db_thread (db_thread.h). The others must not wait for
 * the disk. Functions that write into `out` write one value; after a failure the value may be
 * incomplete.
 */
#pragma once

#include "base/json_writer.h"
#include "base/status.h"
#include "fingerprint/fingerprint.h"

#include <jansson.h>

/* Numbers of results. */
struct api_results {
    uint64_t fingerprints;
    uint64_t observations;
};

/* The state of measurements and of the database. */
struct api_health {
    uint64_t measurements_queued;
    uint64_t measurements_running;
    uint64_t measurements_done; /* counted since the start, like the next member */
    uint64_t measurements_failed;
    struct err database;          /* why the database cannot be written; STATUS_OK if it can */
    int64_t database_error_since; /* wall clock, seconds; 0 if there was no error */
    struct api_results unwritten; /* kept in memory until the database can be written */
    struct api_results dropped;   /* dropped since the start, for lack of memory */
    uint64_t failed_writes;       /* failed writes of the database since the start */
    uint64_t damaged_rows; /* rows dropped since the start, because they failed their check */
    uint64_t quarantined;  /* files since the start that could not be used */
};

/* A measurement that was queued or cancelled. */
struct api_measurement {
    char id[24];
    bool is_running;
};

struct api_backend {
    void *self; /* the first argument of every function */

    /* Queues a measurement and writes it like measurement(). Returns STATUS_FULL or
     * STATUS_NOT_FOUND on failure.
     */
    enum status (*submit)(void *self, const char *uuid, enum depth depth, struct json_writer *out,
                          struct api_measurement *out_measurement, struct err *err);
    /* Writes {"id","gpu","kind","depth","state","progress","message","queued_at","started_at",
     * "ended_at","fingerprint_id","measured_id","error"}. Returns STATUS_NOT_FOUND if the
     * measurement does not exist. */
    enum status (*measurement)(void *self, const char *id, struct json_writer *out,
                               struct err *err);
    /* Ends a measurement early and writes its new state. Returns STATUS_NOT_FOUND if the
     * measurement does not exist, STATUS_CONFLICT if it has ended. */
    enum status (*cancel)(void *self, const char *id, struct json_writer *out,
                          struct api_measurement *out_measurement, struct err *err);
    /* Deletes all stored data of a GPU that the driver does not list, and no longer lists the GPU.
     * Returns STATUS_NOT_FOUND if the GPU does not exist, STATUS_CONFLICT if it is not lost. */
    enum status (*forget)(void *self, const char *uuid, struct err *err);
    /* Writes {"fingerprints":[{"id","served":["id"..],"run","depth","origin","taken_at",
     * "duration_ms"}..],"next":N|null}. `before` is the "next" of the previous page, or 0 for the
     * first page. `limit` is 1 to 1000. */
    enum status (*history)(void *self, const char *uuid, int64_t before, uint32_t limit,
                           struct json_writer *out, struct err *err);
    /* Writes an older fingerprint under the requested id, even if the hash of the fields known here
     * differs. Returns STATUS_NOT_FOUND if the fingerprint does not exist. */
    enum status (*fingerprint_at)(void *self, const char *uuid, const char *id,
                                  struct fingerprint *out, struct err *err);
    /* Writes {"observations":[{"id","run","kind","started_at","duration_ns","value_count",
     * "verdict"}..],"next":..}. `run` is 0 for all runs. */
    enum status (*observations)(void *self, const char *uuid, int64_t run, int64_t before,
                                uint32_t limit, struct json_writer *out, struct err *err);
    /* Returns one complete observation in the form of observation_write plus "id" and "run". The
     * caller owns it. */
    enum status (*observation)(void *self, const char *uuid, int64_t id, json_t **out,
                               struct err *err);
    /* Compares the chip of this fingerprint with others of its kind. Writes the members of the
     * answer (comparison_write of compare/compare.h) into an open object. Returns STATUS_NO_MEMORY
     * if memory runs out. Never waits.
     */
    enum status (*compare)(void *self, const struct fingerprint *fp, struct json_writer *out,
                           struct err *err);
    /* Never waits. */
    void (*health)(void *self, struct api_health *out);
};
