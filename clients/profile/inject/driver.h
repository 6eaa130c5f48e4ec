/* driver.h: asks the CUDA driver, which the program has loaded, about GPUs and memory. Only the
 * thread of the writer calls the functions, because a callback must not call the driver. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Returns the visible GPUs as a JSON list, which the caller frees. Returns NULL without a driver.
 */
char *driver_describe_gpus(void);

/* Adds the allocations of touched pages that no callback has reported, and finds the location of
 * managed memory and the touched registered memory in huge pages (memory.h). `context` is the
 * CUcontext of the launch; `pages` are sorted page numbers (abi.h). */
void driver_locate(void *context, const uint64_t *pages, size_t count);
