/* report_costs.h: what a plan that was made on one chip costs on another chip of its model, whose
 * SMs form other groups. */
#ifndef REACH_CLIENTS_FLEET_REPORT_COSTS_H
#define REACH_CLIENTS_FLEET_REPORT_COSTS_H

#include "clients/fleet/report_out.h"

/* Prints a table: of each kind, each pair of its five most common maps. `survey` and `model` as in
 * the scripts of reports. */
enum status report_costs(struct fleet_db *db, const char *survey, const char *model,
                         struct report_out *to, struct err *err);

#endif
