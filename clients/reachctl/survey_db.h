/* survey_db.h: where surveys are kept unless --db says otherwise. */
#ifndef REACHCTL_SURVEY_DB_H
#define REACHCTL_SURVEY_DB_H

#include "clients/fleet/db.h"

/* `where` is that of --db; NULL: the environment's REACHD_FLEET_DB, or fleet.db of reachd's folder
 * for the data of this user (XDG_DATA_HOME, else ~/.local/share), which is made. */
enum status survey_db_open(const char *where, struct fleet_db **out, struct err *err);

#endif
