/* migrations.h: schema/db/NNNN_*.sql as the build embeds them. Migration i (from 0) changes
 * user_version i to i + 1. A migration that has been released is never changed. */
#pragma once

#include "base/status.h"

#include <sqlite3.h>
#include <stdint.h>

extern const char *const store_migrations[];
extern const unsigned store_migration_count;

/* Migrates a database of reachd from `version` (0 means empty) to the newest schema. A failed step
 * leaves the database as it was before that step. */
enum status store_migrate(sqlite3 *db, int64_t version, struct err *err);
