/* topology_chip.h: a chip inside an hwloc topology.
 *
 * What hwloc calls a Group is a set of CPUs, and SMs are none. What may hang anywhere and bear any
 * name is a Misc object, so windows and SM groups are those, below the object of their GPU; what is
 * known of each is in its infos, whose names begin with "Reach".
 */
#ifndef REACHCTL_TOPOLOGY_CHIP_H
#define REACHCTL_TOPOLOGY_CHIP_H

#include "clients/reachctl/chip.h"

#include "base/status.h"

#include <hwloc.h>

/* Tells `device` what the chip is and hangs its windows and groups below it. Errors:
 * STATUS_NO_MEMORY; some of it is then there. */
enum status topology_chip_add(hwloc_topology_t topology, hwloc_obj_t device,
                              const struct chip *chip, struct err *err);

/* The Misc object of that GPU that is there already, or NULL. */
hwloc_obj_t topology_chip_find(hwloc_topology_t topology, const char *uuid);
/* How many GPUs are there already. */
uint32_t topology_chip_count(hwloc_topology_t topology);

#endif
