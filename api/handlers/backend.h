/* backend.h: what the API needs from the rest of the daemon besides a snapshot. daemon/service
 * fills it in, so that the API includes neither the store nor daemon/measure and is tested without
 * both.
 *
 * Every function is required and may be called from several threads at once; none may wait for a
 * measurement. Those that use the database (history, fingerprint_at, observations, observation,
 * forget) are called only from a db_thread (db_thread.h); the others must not wait for the disk.
 * Those that write into `out` write one value; after a failure it may be a part of one.
 */
#ifndef REACH_API_HANDLERS_BACKEND_H
#define REACH_API_HANDLERS_BACKEND_H

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
    uint64_t measurements_done; /* since the start, as the next */
    uint64_t measurements_failed;
    struct err database;          /* STATUS_OK: it can be written */
    int64_t database_error_since; /* wall clock, seconds; 0 without an error */
    struct api_results unwritten; /* kept in memory until the database can be written */
    struct api_results dropped;   /* since the start, for lack of memory, as the next three */
    uint64_t failed_writes;       /* of the database */
    uint64_t damaged_rows;        /* dropped because they failed their check */
    uint64_t quarantined;         /* files that could not be used */
};

/* Of a measurement that was queued or cancelled. */
struct api_measurement {
    char id[24];
    bool is_running;
};

struct api_backend {
    void *self; /* the first argument of every function */

    /* Queues a measurement, which it writes as measurement() does. STATUS_FULL, STATUS_NOT_FOUND.
     */
    enum status (*submit)(void *self, const char *uuid, enum depth depth, struct json_writer *out,
                          struct api_measurement *out_measurement, struct err *err);
    /* {"id","gpu","kind","depth","state","progress","message","queued_at","started_at","ended_at",
     *  "fingerprint_id","measured_id","error"}; STATUS_NOT_FOUND. */
    enum status (*measurement)(void *self, const char *id, struct json_writer *out,
                               struct err *err);
    /* Ends a measurement early, and writes it as it is then. STATUS_NOT_FOUND, STATUS_CONFLICT: it
     * has ended. */
    enum status (*cancel)(void *self, const char *id, struct json_writer *out,
                          struct api_measurement *out_measurement, struct err *err);
    /* Deletes all that is stored about a GPU that the driver does not show, and no longer lists it.
     * STATUS_NOT_FOUND, STATUS_CONFLICT: it is not lost. */
    enum status (*forget)(void *self, const char *uuid, struct err *err);
    /* {"fingerprints":[{"id","served":["id"..],"run","depth","origin","taken_at","duration_ms"}..],
     *  "next":N|null}; `before` is the "next" of the previous page, 0 at first. limit is 1..1000.
     */
    enum status (*history)(void *self, const char *uuid, int64_t before, uint32_t limit,
                           struct json_writer *out, struct err *err);
    /* An older fingerprint; its id is the one that was asked for, whatever the hash of the fields
     * known here. STATUS_NOT_FOUND. */
    enum status (*fingerprint_at)(void *self, const char *uuid, const char *id,
                                  struct fingerprint *out, struct err *err);
    /* {"observations":[{"id","run","kind","started_at","duration_ns","value_count","verdict"}..],"next":..};
     * run 0: of all runs. */
    enum status (*observations)(void *self, const char *uuid, int64_t run, int64_t before,
                                uint32_t limit, struct json_writer *out, struct err *err);
    /* One observation, whole, as observation_write writes it plus "id" and "run". The caller owns
     * it. */
    enum status (*observation)(void *self, const char *uuid, int64_t id, json_t **out,
                               struct err *err);
    /* Is the chip of this fingerprint normal? Writes the members of the answer
     * (comparison_write of compare/compare.h) into an open object. STATUS_NO_MEMORY. Never waits.
     */
    enum status (*compare)(void *self, const struct fingerprint *fp, struct json_writer *out,
                           struct err *err);
    /* Never waits. */
    void (*health)(void *self, struct api_health *out);
};

#endif
