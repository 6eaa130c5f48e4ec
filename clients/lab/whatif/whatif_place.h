/* whatif_place.h: what-if rows of the scopes and the windows that the planner chooses. Only what-if
 * includes this header. */
#ifndef REACH_CLIENTS_LAB_WHATIF_WHATIF_PLACE_H
#define REACH_CLIENTS_LAB_WHATIF_WHATIF_PLACE_H

#include "clients/lab/whatif/whatif_context.h"

/* Each function adds one row. Returns STATUS_NO_MEMORY if out of memory. */
enum status whatif_add_scopes(struct whatif_context *c, struct err *err);
enum status whatif_add_windows(struct whatif_context *c, struct err *err);

#endif
