/* backend.h: what the API needs from the rest of the daemon besides a snapshot. main.c fills it in,
 * so that the API includes neither the store nor the pipeline and can be tested without both.
 *
 * Every slot is required and may be called from several threads at once; none may wait for a
 * measurement. Those that read the database (history, fingerprint_at, observations, observation)
 * are called from readers alone (db_thread.h), the others must not wait for the disk. Documents are
 * JSON values that the callee makes and the caller owns.
 */
#ifndef REACH_API_BACKEND_H
#define REACH_API_BACKEND_H

#include "fingerprint/fingerprint.h"

#include <jansson.h>

/* How the inside of the daemon is. */
struct api_condition {
    uint64_t jobs_queued;
    uint64_t jobs_running;
    uint64_t jobs_done; /* since the start, these two */
    uint64_t jobs_failed;
    struct err database;    /* STATUS_OK: what is measured can be kept */
    uint64_t failed_writes; /* of the database, since the start, and the next two */
    uint64_t damaged_rows;  /* dropped because they failed their check */
    uint64_t moved_aside;   /* files that could not be used */
};

struct api_backend {
    void *self; /* handed back as the first argument of every slot */

    /* Queues a measurement: {"id":"job-1", ...} as in job(). STATUS_FULL, STATUS_NOT_FOUND. */
    enum status (*submit)(void *self, const char *uuid, enum depth depth, json_t **out_job,
                          struct err *err);
    /* {"id","gpu","kind","depth","state","fraction","sentence","queued_at","started_at","ended_at",
     *  "fingerprint_id","error"}; STATUS_NOT_FOUND. */
    enum status (*job)(void *self, const char *id, json_t **out_job, struct err *err);
    /* Ends a job early; the job as it is then. STATUS_NOT_FOUND, STATUS_CONFLICT: it has ended. */
    enum status (*cancel)(void *self, const char *id, json_t **out_job, struct err *err);
    /* {"fingerprints":[{"id","run","depth","origin","taken_at","duration_ms"}..],"next":N|null};
     * `before` is the "next" of the page before, 0 at first. limit is 1..1000. */
    enum status (*history)(void *self, const char *uuid, int64_t before, uint32_t limit,
                           json_t **out_page, struct err *err);
    /* An older fingerprint. */
    enum status (*fingerprint_at)(void *self, const char *uuid, const char *id,
                                  struct fingerprint *out, struct err *err);
    /* {"observations":[{"id","run","kind","started_at","duration_ns","value_count","verdict"}..],"next":..};
     * run 0: of all runs. */
    enum status (*observations)(void *self, const char *uuid, int64_t run, int64_t before,
                                uint32_t limit, json_t **out_page, struct err *err);
    /* One observation, whole, as observation_to_json writes it plus "id" and "run". */
    enum status (*observation)(void *self, const char *uuid, int64_t id, json_t **out,
                               struct err *err);
    /* Waits for nothing. */
    void (*condition)(void *self, struct api_condition *out);
};

#endif
