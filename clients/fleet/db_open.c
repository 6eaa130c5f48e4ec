/* db_open.c: opens the tables of the fleet, and closes them. See db.h. */
#include "clients/fleet/db_engine.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SCHEMA_VERSION = 2 };

static enum status create_tables(struct fleet_db *db, struct err *err)
{
    char version[FLEET_INTEGER_BYTES];
    enum status s = db->engine->exec(db->connection, db->engine->tables, err);

    if (s == STATUS_OK)
        s = db->engine->exec(db->connection, fleet_sql_tables, err);
    if (s == STATUS_OK)
        s = fleet_run(db, "INSERT INTO fleet_schema (version) VALUES ($1)",
                      FLEET_VALUES(fleet_integer_text(SCHEMA_VERSION, version)), NULL, NULL, err);
    return s;
}

/* Writes nothing where the tables exist: a report needs no more than to read. */
static enum status check_tables(struct fleet_db *db, struct err *err)
{
    static const char version_of[] = "SELECT version FROM fleet_schema";
    int64_t version = 0;
    enum status s;

    if (fleet_run_integer(db, version_of, 0, NULL, &version, NULL) == STATUS_OK &&
        version == SCHEMA_VERSION)
        return STATUS_OK;
    s = db->engine->exec(db->connection, db->engine->begin_write, err);
    if (s != STATUS_OK)
        return s;
    s = db->engine->exec(db->connection,
                         "CREATE TABLE IF NOT EXISTS fleet_schema (version INTEGER NOT NULL)", err);
    if (s == STATUS_OK)
        s = fleet_run_integer(db, version_of, 0, NULL, &version, err);
    if (s == STATUS_OK && version == 0)
        s = create_tables(db, err);
    else if (s == STATUS_OK && version != SCHEMA_VERSION)
        s = err_set(err, STATUS_CONFLICT,
                    "the database of surveys has version %" PRId64 "; this release uses version %d",
                    version, SCHEMA_VERSION);
    return fleet_end_write(db, s, err);
}

static bool is_postgres(const char *where)
{
    return strncmp(where, "postgresql://", 13) == 0 || strncmp(where, "postgres://", 11) == 0;
}

enum status fleet_open(const char *where, struct fleet_db **out, struct err *err)
{
    struct fleet_db *db = calloc(1, sizeof(*db));
    enum status s;

    *out = NULL;
    if (!db)
        return err_set(err, STATUS_NO_MEMORY, "no memory for a database");
    db->engine = is_postgres(where) ? &fleet_postgres : &fleet_sqlite;
    s = db->engine->open(where, &db->connection, err);
    if (s == STATUS_OK)
        s = check_tables(db, err);
    if (s != STATUS_OK) {
        fleet_close(db);
        return s;
    }
    *out = db;
    return STATUS_OK;
}

void fleet_close(struct fleet_db *take)
{
    if (!take)
        return;
    fleet_survey_abort(take);
    if (take->connection)
        take->engine->close(take->connection);
    free(take);
}
