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

enum { HOSTLIST_MOST_PARTS = 8, HOSTLIST_MOST_RANGES = 4096, HOSTLIST_MOST_DIGITS = 12 };

/* Called with each host; other than STATUS_OK ends it with that. */
typedef enum status hostlist_fn(void *self, const char *host, struct err *err);

/* In the order of Slurm: the last bracket runs fastest. STATUS_INVALID_ARGUMENT: it is no such
 * expression, with what is wrong; STATUS_FULL: it has more than `most` hosts, and nothing was
 * called. */
enum status hostlist_expand(const char *expression, uint64_t most, hostlist_fn *each, void *self,
                            struct err *err);

#endif
