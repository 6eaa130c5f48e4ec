/* migrations.h: schema/db/NNNN_*.sql as the build embeds them. Migration i (from 0) leads from
 * user_version i to i + 1. A migration that has been released is never changed. */
#ifndef REACH_STORE_MIGRATIONS_H
#define REACH_STORE_MIGRATIONS_H

extern const char *const store_migrations[];
extern const unsigned store_migration_count;

#endif
