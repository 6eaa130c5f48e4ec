/* db.c: opening, creating the tables, transactions and queries: what both engines do alike. */
#include "clients/fleet/db_engine.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PARAMETERS = 2 };

static const char *const outcome_names[FLEET_OUTCOME_COUNT] = {
    [FLEET_ANSWERED] = "answered",   [FLEET_UNCHANGED] = "unchanged",
    [FLEET_NO_NAME] = "no-name",     [FLEET_REFUSED] = "refused",
    [FLEET_TIMEOUT] = "timeout",     [FLEET_TLS_ERROR] = "tls-error",
    [FLEET_TOO_LARGE] = "too-large", [FLEET_BAD_RESPONSE] = "bad-response",
    [FLEET_ERROR] = "error",         [FLEET_INCONSISTENT] = "inconsistent",
};

const char *fleet_outcome_name(enum fleet_outcome outcome)
{
    return (unsigned)outcome < FLEET_OUTCOME_COUNT ? outcome_names[outcome] : "unknown";
}

enum fleet_outcome fleet_outcome_from_name(const char *name)
{
    int i = 0;

    while (i < FLEET_OUTCOME_COUNT && strcmp(name, outcome_names[i]) != 0)
        i++;
    return (enum fleet_outcome)i;
}

const char *fleet_integer_text(int64_t v, char *out)
{
    (void)snprintf(out, FLEET_INTEGER_BYTES, "%" PRId64, v);
    return out;
}

/* ---- queries ---- */

enum status fleet_run(struct fleet_db *db, const char *sql, int parameter_count,
                      const char *const *parameters, fleet_row_fn *row, void *self, struct err *err)
{
    return db->engine->query(db->connection, sql, true, parameter_count, parameters, row, self,
                             err);
}

enum status fleet_query(struct fleet_db *db, const char *sql, int parameter_count,
                        const char *const *parameters, fleet_row_fn *row, void *self,
                        struct err *err)
{
    return db->engine->query(db->connection, sql, false, parameter_count, parameters, row, self,
                             err);
}

struct first_integer {
    int64_t v;
    bool any_row;
};

static enum status read_integer(void *self, int columns, const char *const *values, struct err *err)
{
    struct first_integer *const n = self;

    (void)err;
    if (!n->any_row && columns > 0 && values[0])
        n->v = strtoll(values[0], NULL, 10);
    n->any_row = true;
    return STATUS_OK;
}

enum status fleet_run_integer(struct fleet_db *db, const char *sql, int parameter_count,
                              const char *const *parameters, int64_t *out, struct err *err)
{
    struct first_integer n = {.v = 0};
    const enum status s = fleet_run(db, sql, parameter_count, parameters, read_integer, &n, err);

    *out = n.v;
    return s;
}

/* Behind blank lines and lines of comment, which may speak of parameters. */
static const char *skip_comments(const char *sql)
{
    while (*sql == '\n' || strncmp(sql, "--", 2) == 0)
        sql += strcspn(sql, "\n") + (*sql != '\0');
    return sql;
}

enum status fleet_script(struct fleet_db *db, const char *sql, const char *first,
                         const char *second, fleet_row_fn *row, void *self, struct err *err)
{
    const char *const parameters[MAX_PARAMETERS] = {first, second};
    enum status s = STATUS_OK;

    for (const char *end; s == STATUS_OK && (end = strstr(sql, ";\n")); sql = end + 2) {
        sql = skip_comments(sql);
        char *const one = strndup(sql, (size_t)(end - sql));
        if (!one)
            return err_set(err, STATUS_NO_MEMORY, "no memory for a query");
        const int count = strstr(one, "$2") ? 2 : strstr(one, "$1") ? 1 : 0;
        s = fleet_query(db, one, count, parameters, row, self, err);
        free(one);
    }
    return s;
}

enum status fleet_end_write(struct fleet_db *db, enum status so_far, struct err *err)
{
    if (so_far == STATUS_OK)
        so_far = db->engine->exec(db->connection, "COMMIT", err);
    if (so_far != STATUS_OK)
        (void)db->engine->exec(db->connection, "ROLLBACK", NULL);
    return so_far;
}

/* ---- tables ---- */

/* ---- what is stored of a host ---- */

static enum status copy_etag(void *self, int columns, const char *const *values, struct err *err)
{
    (void)columns;
    (void)err;
    (void)snprintf(self, FLEET_ETAG_BYTES, "%s", values[0]);
    return STATUS_OK;
}

enum status fleet_last_etag(struct fleet_db *db, const char *host, char *out_etag, struct err *err)
{
    out_etag[0] = '\0';
    return fleet_run(db, "SELECT etag FROM fleet_host WHERE name = $1 AND answered > 0",
                     FLEET_VALUES(host), copy_etag, out_etag, err);
}

enum status fleet_has_fingerprint(struct fleet_db *db, const char *uuid, const char *fingerprint_id,
                                  bool *out, struct err *err)
{
    int64_t id = 0;
    const enum status s =
        fleet_run_integer(db, "SELECT id FROM fleet_fingerprint WHERE uuid = $1 AND name = $2",
                          FLEET_VALUES(uuid, fingerprint_id), &id, err);

    *out = id != 0;
    return s;
}
