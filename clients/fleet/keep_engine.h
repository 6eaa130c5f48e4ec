/* keep_engine.h: what SQLite and PostgreSQL each do for keep.c, and nothing that they do alike.
 *
 * A statement is kept prepared where its text is one of ours: a text that stays where it is.
 * Placeholders are $1, $2, ...; a parameter that is NULL is null.
 */
#ifndef REACH_CLIENTS_FLEET_KEEP_ENGINE_H
#define REACH_CLIENTS_FLEET_KEEP_ENGINE_H

#include "clients/fleet/keep.h"

struct fleet_engine {
    const char *name; /* "SQLite" */
    enum status (*open)(const char *where, void **out, struct err *err);
    void (*close)(void *take);
    /* Statements with no parameters, apart by ";". */
    enum status (*exec)(void *engine, const char *sql, struct err *err);
    /* One statement. `kept`: the text is a constant, and will come again. No other call of this
     * engine while `row` runs. `row` may be NULL. */
    enum status (*query)(void *engine, const char *sql, bool kept, int parameter_count,
                         const char *const *parameters, fleet_row_fn *row, void *self,
                         struct err *err);
    const char *begin_write;  /* begins a transaction that no other writer runs beside */
    const char *begin_read;   /* begins one that sees one state to its end */
    const char *after_survey; /* outside a transaction, to help the reports; NULL: nothing */
};

extern const struct fleet_engine fleet_sqlite;
extern const struct fleet_engine fleet_postgres; /* open: STATUS_NOT_SUPPORTED without libpq */

/* schema/fleet/NNNN_*.sql as the build embeds them. Migration i (from 0) leads from version i to
 * i + 1. One that has been released is never changed. */
extern const char *const fleet_migrations[];
extern const unsigned fleet_migration_count;

#endif
