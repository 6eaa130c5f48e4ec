/* report_costs.h: the cost of a plan of one chip on another chip of its model, whose SMs form other
 * groups. */
#pragma once

#include "clients/fleet/report_out.h"

/* Prints a table with each pair of the five most common maps of each kind. `survey` and `model` are
 * the parameters $1 and $2 of the script. */
enum status report_costs(struct fleet_db *db, const char *survey, const char *model,
                         struct report_out *to, struct err *err);
