/* hostlist.h: Slurm's host list expressions, as SLURM_JOB_NODELIST and sinfo write them.
 *
 *     n[001-256]          n001 n002 .. n256: as many digits as the lower bound has
 *     a[1-3,7]b[01-02]    a1b01 a1b02 a2b01 .. a7b02
 *     login,n[1-2]        login n1 n2
 */
#ifndef REACH_CLIENTS_FLEET_HOSTLIST_H
#define REACH_CLIENTS_FLEET_HOSTLIST_H

#include "base/status.h"

#include <stdint.h>

/* Called with each host; other than STATUS_OK ends it with that. */
typedef enum status hostlist_fn(void *self, const char *host, struct err *err);

/* In the order of Slurm: the last bracket varies fastest. STATUS_INVALID_ARGUMENT: what is wrong
 * with the expression; STATUS_FULL: it has more than `most` hosts. Then nothing was called. */
enum status hostlist_expand(const char *expression, uint64_t most, hostlist_fn *each, void *self,
                            struct err *err);

#endif
