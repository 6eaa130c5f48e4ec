/* db.h: the results of surveys, in SQLite or PostgreSQL. The tables and all queries are in
 * schema/fleet.
 *
 * A survey queries many hosts; each responds with its GPUs and their fingerprints, or fails. The
 * answers wait in temporary tables until all hosts have responded or failed, because a GPU that two
 * hosts report counts for neither. Then one transaction stores all of them, with statements over
 * all rows at a time. An aborted survey stores nothing.
 *
 * Only one thread may use a database at a time. */
#pragma once

#include "clients/fleet/host_answer.h"

#include "base/clock.h"

struct fleet_db;

/* Opens a path, or postgresql://... (or postgres://...). Creates the tables if there are none.
 * Returns STATUS_CONFLICT if the tables have another version, and STATUS_NOT_SUPPORTED if this
 * build has no libpq. */
enum status fleet_open(const char *where, struct fleet_db **out, struct err *err);
/* Opens a database for reports. The call creates and changes nothing, not even a file beside the
 * database. Returns STATUS_NOT_FOUND if the file does not exist or contains no survey,
 * STATUS_CONFLICT if another version created the tables, and the errors of sqlite_read_open. */
enum status fleet_open_to_read(const char *where, struct fleet_db **out, struct err *err);
void fleet_close(struct fleet_db *take);

/* The outcome of a host. fleet_outcome_name returns its word, which is stable in the database and
 * in reports. */
enum fleet_outcome {
    FLEET_ANSWERED = 0, /* the answer is complete and consistent */
    FLEET_UNCHANGED,    /* the host reports no change since its last answer */
    FLEET_NO_NAME,      /* the name cannot be resolved */
    FLEET_REFUSED,      /* connection refused, or no route */
    FLEET_TIMEOUT,
    FLEET_TLS_ERROR,    /* the certificate, or the name in it, is not valid */
    FLEET_TOO_LARGE,    /* the answer exceeds the limit */
    FLEET_BAD_RESPONSE, /* the response is not a valid response of reachd */
    FLEET_ERROR,        /* an HTTP error: 401, 500, ... */
    FLEET_INCONSISTENT, /* the answer contradicts itself or another host, for example with a UUID of
                           that host */
    FLEET_OUTCOME_COUNT
};
const char *
fleet_outcome_name(enum fleet_outcome outcome); /* Returns a static name, such as "no-name". */
/* Returns false if no outcome has that name; `*out` is then unchanged. */
bool fleet_outcome_from_name(const char *name, enum fleet_outcome *out);

enum { FLEET_ETAG_BYTES = 128 };

struct fleet_host {
    const char *name; /* host:port, or a URL */
    enum fleet_outcome outcome;
    const char *detail; /* a sentence about the failure, or "" */
    const char *etag;   /* ETag for the next request, or "" */
    uint32_t attempts;
    uint64_t received_bytes;
    uint32_t elapsed_ms;
};

/* The result of a survey. */
struct fleet_survey {
    int64_t number; /* from 1 */
    uint32_t elapsed_ms;
    uint32_t gpu_count;        /* number of counted GPUs, including GPUs of unchanged hosts */
    uint32_t conflict_count;   /* number of UUIDs that several hosts report */
    uint32_t new_fingerprints; /* number of fingerprints that were not stored before */
};

enum status fleet_survey_begin(struct fleet_db *db, struct err *err);
/* Adds a host, once per survey. `place` is its position in the list of hosts, from 1, and orders
 * the reports. `answer` contains its GPUs if the host answered, and is otherwise NULL. An unchanged
 * host has the GPUs of its last answer. */
enum status fleet_survey_add(struct fleet_db *db, uint32_t place, const struct fleet_host *host,
                             struct host_answer *answer, struct err *err);
/* Stores the survey. `at` is its date in RFC 3339, UTC; `began` is its start on the monotonic
 * clock. */
enum status fleet_survey_end(struct fleet_db *db, const char *at, nsec_t began,
                             struct fleet_survey *out, struct err *err);
void fleet_survey_abort(struct fleet_db *db);

/* Reads the ETag of the last answer of `host` to out_etag[FLEET_ETAG_BYTES]; "" if there is none.
 */
enum status fleet_last_etag(struct fleet_db *db, const char *host, char *out_etag, struct err *err);

/* Runs a query, which is the same for both engines. Placeholders are $1, $2, ...; parameters are
 * texts, and NULL means null. Rows arrive one by one, so memory does not grow with their number. A
 * column is a text, or NULL if it is null. If the callback does not return STATUS_OK, the query
 * ends with its status. */
typedef enum status fleet_row_fn(void *self, const char *const *values, struct err *err);
enum status fleet_query(struct fleet_db *db, const char *sql, int parameter_count,
                        const char *const *parameters, fleet_row_fn *row, void *self,
                        struct err *err);
