/* store_migrate.c: brings an older file to the newest schema, one transaction for each step. */
#include "store/migrations.h"

#include "base/log.h"
#include "store/store_file.h"
#include "store/store_sql.h"

#include <stdio.h>

enum { STATEMENT_BYTES = 96 };

/* Makes one transaction with a migration, its number and the application id in the header. */
static enum status migrate_once(sqlite3 *db, unsigned from, struct err *err)
{
    char statement[STATEMENT_BYTES];
    enum status s;

    (void)snprintf(statement, sizeof(statement), "PRAGMA user_version = %u", from + 1);
    s = store_sql_begin(db, err);
    if (s != STATUS_OK)
        return s;
    s = store_sql_exec(db, store_migrations[from], err);
    if (s == STATUS_OK)
        s = store_sql_exec(db, statement, err);
    (void)snprintf(statement, sizeof(statement), "PRAGMA application_id = %u",
                   STORE_FILE_APPLICATION_ID);
    if (s == STATUS_OK)
        s = store_sql_exec(db, statement, err);
    return store_sql_end(db, s, err);
}

/* Renames the columns of checksums in files of schemas 3 and 4 that have other names for them. */
static enum status rename_columns(sqlite3 *db, struct err *err)
{
    static const char old[] = "SELECT count(*) FROM pragma_table_info('run') WHERE name = 'seal'";
    static const char renames[] = "ALTER TABLE run RENAME COLUMN seal TO checksum;"
                                  "ALTER TABLE observation RENAME COLUMN seal TO checksum;"
                                  "ALTER TABLE damage RENAME COLUMN seal TO checksum;";
    int64_t found = 0;
    enum status s = store_sql_number(db, old, &found, err);

    if (s == STATUS_OK && found > 0)
        s = store_sql_begin(db, err);
    if (s != STATUS_OK || found == 0)
        return s;
    return store_sql_end(db, store_sql_exec(db, renames, err), err);
}

enum status store_migrate(sqlite3 *db, int64_t version, struct err *err)
{
    enum status s = STATUS_OK;

    if (version == 3 || version == 4)
        s = rename_columns(db, err);

    for (unsigned v = (unsigned)version; s == STATUS_OK && v < store_migration_count; v++) {
        s = migrate_once(db, v, err);
        if (s == STATUS_OK && version > 0)
            log_info("state file: schema %u", v + 1);
    }
    return s;
}
