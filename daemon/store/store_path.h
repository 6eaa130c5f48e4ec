/* store_path.h: finds the path of the database if no option names one. */
#pragma once

#include <stddef.h>

/* Writes /var/lib/reachd/reachd.db for root and the owner of that directory, else reachd/reachd.db
 * in XDG_STATE_HOME or ~/.local/state. */
void store_default_path(char *out, size_t out_size);
