/* db_open.c: opens the database of surveys, and first converts it if it has version 1. */
#include "clients/fleet/db_engine.h"

enum status fleet_open(const char *where, struct fleet_db **out, struct err *err)
{
    bool oldest = false;
    enum status s = fleet_connect(where, false, out, &oldest, err);

    if (s == STATUS_OK || !oldest)
        return s;
    s = fleet_upgrade_version_1(where, err);
    return s == STATUS_OK ? fleet_connect(where, false, out, &oldest, err) : s;
}

enum status fleet_open_to_read(const char *where, struct fleet_db **out, struct err *err)
{
    bool oldest = false;

    return fleet_connect(where, true, out, &oldest, err);
}
