/* whatif_place.h: what-if rows of the scopes and the windows that the planner chooses. Only what-if
 * includes this header. */
#pragma once

#include "clients/lab/whatif/whatif_context.h"

/* Each function adds one row. Returns STATUS_NO_MEMORY if out of memory. */
enum status whatif_add_scopes(struct whatif_context *c, struct err *err);
enum status whatif_add_windows(struct whatif_context *c, struct err *err);
