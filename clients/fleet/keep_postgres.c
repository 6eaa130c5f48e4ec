/* keep_postgres.c: surveys in PostgreSQL, through libpq. */
#include "clients/fleet/keep_engine.h"

static enum status open_engine(const char *where, void **out, struct err *err)
{
    (void)where;
    *out = NULL;
    return err_set(err, STATUS_NOT_SUPPORTED, "this build has no PostgreSQL");
}

const struct fleet_engine fleet_postgres = {.name = "PostgreSQL", .open = open_engine};
