/* memory_trim.h: gives pages that malloc keeps back to the kernel, after something large is freed.
 * Any thread. Nothing with AddressSanitizer: it replaces malloc, so glibc's own has not been set
 * up, and two threads that trim at once while it sets itself up crash in it. */
#ifndef REACH_BASE_MEMORY_TRIM_H
#define REACH_BASE_MEMORY_TRIM_H

#include <malloc.h>

static inline void memory_trim(void)
{
#ifndef __SANITIZE_ADDRESS__
    malloc_trim(0);
#endif
}

#endif
