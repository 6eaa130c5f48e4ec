/* db.h: what surveys of a fleet found, in SQLite or PostgreSQL. The tables and all queries are in
 * schema/fleet.
 *
 * A survey requests many hosts; each answers with its GPUs and their fingerprints, or does not. The
 * answers wait in temporary tables until all hosts have answered or failed, because a GPU that two
 * of them report counts for neither. Then all of them are stored in one transaction, by statements
 * over all rows at a time. An aborted survey leaves nothing.
 *
 * One thread at a time.
 */
#ifndef REACH_CLIENTS_FLEET_DB_H
#define REACH_CLIENTS_FLEET_DB_H

#include "clients/fleet/host_answer.h"

#include "base/clock.h"

struct fleet_db;

/* A path, or postgresql://... (postgres:// too). Creates the tables where there are none.
 * Those of the version before are upgraded, which needs the right to alter them.
 * STATUS_CONFLICT: created by another version. STATUS_NOT_SUPPORTED: built without libpq. */
enum status fleet_open(const char *where, struct fleet_db **out, struct err *err);
/* For reports: creates and changes nothing, also beside a file. STATUS_NOT_FOUND: there is no such
 * file, or no survey was ever stored in it. STATUS_CONFLICT: of another version. Errors of a file
 * as sqlite_read_open. */
enum status fleet_open_to_read(const char *where, struct fleet_db **out, struct err *err);
void fleet_close(struct fleet_db *take);

/* How a host ended. Stable words in the database and in reports: fleet_outcome_name. */
enum fleet_outcome {
    FLEET_ANSWERED = 0, /* complete and consistent */
    FLEET_UNCHANGED,    /* answered that nothing has changed since its last answer */
    FLEET_NO_NAME,      /* its name cannot be resolved */
    FLEET_REFUSED,      /* connection refused, or no route */
    FLEET_TIMEOUT,
    FLEET_TLS_ERROR,    /* its certificate, or the name in it, is not valid */
    FLEET_TOO_LARGE,    /* the answer exceeds the limit */
    FLEET_BAD_RESPONSE, /* not an answer of a daemon */
    FLEET_ERROR,        /* an HTTP error: 401, 500, ... */
    FLEET_INCONSISTENT, /* contradicts itself or another host, e.g. reports a UUID of another one */
    FLEET_OUTCOME_COUNT
};
const char *fleet_outcome_name(enum fleet_outcome outcome); /* static: "answered", "no-name", ... */
/* False if no outcome has that name; `*out` is then unchanged. */
bool fleet_outcome_from_name(const char *name, enum fleet_outcome *out);

enum { FLEET_ETAG_BYTES = 128 };

struct fleet_host {
    const char *name; /* as it was requested: host:port, or a URL */
    enum fleet_outcome outcome;
    const char *detail; /* one sentence; "" */
    const char *etag;   /* to send next time; "" */
    uint32_t attempts;
    uint64_t received_bytes;
    uint32_t elapsed_ms;
};

/* What became of a survey. */
struct fleet_survey {
    int64_t number; /* from 1 */
    uint32_t elapsed_ms;
    uint32_t gpu_count;        /* that count, those of unchanged hosts too */
    uint32_t conflict_count;   /* UUIDs that more than one host reports */
    uint32_t new_fingerprints; /* that were not stored yet */
};

enum status fleet_survey_begin(struct fleet_db *db, struct err *err);
/* Adds one host; each once. `place` is its own, from 1: the order of hosts and of what they report.
 * `answer` has its GPUs if it answered, and is NULL otherwise: the GPUs of an unchanged host are
 * those of its last answer. */
enum status fleet_survey_add(struct fleet_db *db, uint32_t place, const struct fleet_host *host,
                             struct host_answer *answer, struct err *err);
/* Stores it. `at` is RFC 3339, UTC; `began` is when it did, on the monotonic clock. */
enum status fleet_survey_end(struct fleet_db *db, const char *at, nsec_t began,
                             struct fleet_survey *out, struct err *err);
void fleet_survey_abort(struct fleet_db *db);

/* The ETag that `host` sent when it last answered; "" if there is none. `out_etag` has room for
 * FLEET_ETAG_BYTES. */
enum status fleet_last_etag(struct fleet_db *db, const char *host, char *out_etag, struct err *err);

/* One query for both engines: placeholders are $1, $2, ...; parameters are texts, NULL is null.
 * Rows come one by one, so memory does not grow with their number; a column is text, NULL if it
 * is null. A callback that returns other than STATUS_OK ends the query with that. */
typedef enum status fleet_row_fn(void *self, const char *const *values, struct err *err);
enum status fleet_query(struct fleet_db *db, const char *sql, int parameter_count,
                        const char *const *parameters, fleet_row_fn *row, void *self,
                        struct err *err);

#endif
