/* names.c: the names of the enumerations of this layer. They are part of the stored and served
 * formats.
 */
#include "types/access.h"
#include "types/identity.h"
#include "types/memory_kind.h"
#include "types/name_of.h"
#include "types/verdict.h"

NAME_FUNCTIONS(
    access,
    enum access, [ACCESS_READ] = "read", [ACCESS_ATOMIC] = "atomic", [ACCESS_WRITE] = "write")

NAME_FUNCTIONS(
    memory_kind,
    enum memory_kind, [MEMORY_DEVICE] = "device", [MEMORY_MANAGED_DEVICE] = "managed-device",
    [MEMORY_HOST_PINNED] = "host-pinned", [MEMORY_HOST_VIRTUAL] = "host-virtual",
    [MEMORY_MANAGED_HOST] = "managed-host", [MEMORY_HOST_REGISTERED] = "host-registered",
    [MEMORY_HOST_REGISTERED_HUGE] = "host-registered-huge",
    [MEMORY_HOST_PAGEABLE] = "host-pageable", [MEMORY_HOST_FILE] = "host-file",
    [MEMORY_HOST_GATHERED] = "host-gathered", [MEMORY_PEER] = "peer")

bool memory_kind_is_host(enum memory_kind kind)
{
    return kind >= MEMORY_HOST_PINNED && kind <= MEMORY_HOST_GATHERED;
}

NAME_FUNCTIONS(verdict, enum verdict, [VERDICT_CLEAN] = "clean", [VERDICT_DISTURBED] = "disturbed",
               [VERDICT_UNUSABLE] = "unusable")

/* A wrong origin would let a simulated number pass as a measured one, so there is no fallback. */
NAME_FUNCTIONS(origin, enum origin, [ORIGIN_MEASURED] = "measured",
               [ORIGIN_SIMULATED] = "simulated", [ORIGIN_IMPORTED] = "imported")
