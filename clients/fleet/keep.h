/* keep.h: what surveys of a fleet found, kept in SQLite or PostgreSQL.
 *
 * A survey asks many hosts; each answers with its GPUs and their fingerprints, or does not. Kept
 * are the survey, the outcome of every host, which GPU sat in which slot of it, and each
 * fingerprint once, by its id. So a second survey in which nothing changed adds only a row a GPU,
 * and reports are queries over what is there.
 *
 * One thread at a time. All calls of one survey stand in one transaction, from fleet_survey_begin
 * to fleet_survey_end: a survey that is broken off leaves nothing.
 */
#ifndef REACH_CLIENTS_FLEET_KEEP_H
#define REACH_CLIENTS_FLEET_KEEP_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fleet_db;

/* A path, or postgresql://... (postgres:// too). Makes the tables where there are none.
 * STATUS_CONFLICT: made by a newer version. STATUS_NOT_SUPPORTED: built without libpq. */
enum status fleet_open(const char *where, struct fleet_db **out, struct err *err);
void fleet_close(struct fleet_db *take);

/* How a host ended. Stable words in the database and in reports: fleet_outcome_name. */
enum fleet_outcome {
    FLEET_ANSWERED = 0, /* whole, and believed */
    FLEET_UNCHANGED,    /* answered that nothing changed since the survey before */
    FLEET_NO_NAME,      /* the name is not known */
    FLEET_REFUSED,      /* nobody listens, or no way there */
    FLEET_TIMEOUT,      /* took longer than it may */
    FLEET_UNTRUSTED,    /* its certificate, or its name, is not what it should be */
    FLEET_TOO_LARGE,    /* answered more than a daemon would */
    FLEET_GARBAGE,      /* answered something that is no answer of a daemon */
    FLEET_ERROR,        /* answered with an error: 401, 500, ... */
    FLEET_LIED, /* well-formed, but contradicts itself or others, e.g. a UUID of another host */
    FLEET_OUTCOME_COUNT
};
const char *fleet_outcome_name(enum fleet_outcome outcome); /* static; "answered", "no-name", ... */

struct fleet_host {
    const char *name; /* as it was asked: host:port, or a URL */
    enum fleet_outcome outcome;
    const char *detail;         /* one sentence; "" */
    const char *etag;           /* to be sent next time; "" */
    const char *daemon_version; /* "" where it is not known */
    uint32_t gpu_count;
    uint32_t attempts;
    uint64_t received_bytes;
    uint32_t elapsed_ms;
};

/* A GPU in a slot of a host. */
struct fleet_gpu {
    uint32_t slot; /* the daemon's index of it */
    const char *uuid;
    const char *serial;         /* "" where it is not reported */
    const char *model;          /* the GPU's name */
    const char *state;          /* the daemon's word: "ready", "lost", ... */
    const char *fingerprint_id; /* "" : it has none */
    /* The fingerprint as the daemon rendered it, JSON, terminated; NULL where one with this id is
     * kept already (fleet_has_fingerprint). Read once, its numbers go into columns. */
    const char *fingerprint_json;
    /* FLEET_LIED: another host claims this GPU too. It is kept and does not count; the other GPUs
     * of the host do. */
    bool disputed;
};

/* `at` is RFC 3339, UTC. `*out_survey` numbers surveys from 1. */
enum status fleet_survey_begin(struct fleet_db *db, const char *at, int64_t *out_survey,
                               struct err *err);
/* Keeps one host with its GPUs, all or nothing. STATUS_CORRUPT: a fingerprint is none; nothing of
 * the host is kept, and the survey goes on. FLEET_UNCHANGED: `gpus` is NULL, its GPUs are those of
 * its last answer. */
enum status fleet_keep_host(struct fleet_db *db, int64_t survey, const struct fleet_host *host,
                            const struct fleet_gpu *gpus, struct err *err);
enum status fleet_survey_end(struct fleet_db *db, int64_t survey, uint32_t elapsed_ms,
                             struct err *err);
/* Leaves nothing of it. */
void fleet_survey_abort(struct fleet_db *db);

/* The ETag that `host` sent when it last answered; "" where there is none. `out_etag` has room for
 * 128. */
enum status fleet_last_etag(struct fleet_db *db, const char *host, char *out_etag, struct err *err);
enum status fleet_has_fingerprint(struct fleet_db *db, const char *fingerprint_id, bool *out,
                                  struct err *err);

/* One query for both engines: placeholders are $1, $2, ...; parameters are texts. Rows come one by
 * one, so memory does not grow with their number; a column is text, NULL where it is null. A
 * callback that returns other than STATUS_OK ends the query with that. */
typedef enum status fleet_row_fn(void *self, int columns, const char *const *values,
                                 struct err *err);
enum status fleet_query(struct fleet_db *db, const char *sql, int parameter_count,
                        const char *const *parameters, fleet_row_fn *row, void *self,
                        struct err *err);

#endif
