/* demo.h: what `make run` adds: a GPU in any case, and lines to try. */
#ifndef REACH_SERVICE_DEMO_H
#define REACH_SERVICE_DEMO_H

#include "service/listen.h"
#include "snapshot/snapshot.h"

#include <stdbool.h>

/* The profile that stands in where there is no GPU. */
#define DEMO_PROFILE "h200"

/* Says that a simulated GPU stands in, and why. */
void demo_explain(const struct err *why);
/* Has every GPU got a fingerprint, or failed to get one? */
bool demo_is_ready(const struct snapshot *s);
/* Prints the address and three requests to try. */
void demo_announce(const struct listen_set *sockets, const struct snapshot *s);

#endif
