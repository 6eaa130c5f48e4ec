/* migrations.h: schema/db/NNNN_*.sql as the build embeds them. Migration i (from 0) leads from
 * user_version i to i + 1. A migration that has been released is never changed. */
#ifndef REACH_STORE_MIGRATIONS_H
#define REACH_STORE_MIGRATIONS_H

#include "base/status.h"

#include <sqlite3.h>
#include <stdint.h>

extern const char *const store_migrations[];
extern const unsigned store_migration_count;

/* Migrates a database of ours from `version` (0: it is empty) to the newest schema. What a failed
 * step would have changed stays as it was. */
enum status store_migrate(sqlite3 *db, int64_t version, struct err *err);

#endif
