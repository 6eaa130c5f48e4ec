/* memory_trim.h: returns unused pages to the kernel after a large object is freed. Any thread may
 * call the two functions. They do nothing with a sanitizer. AddressSanitizer replaces malloc, so
 * glibc's malloc is not initialized. Two threads that trim at once while glibc's malloc initializes
 * crash in it. */
#pragma once

#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* The least part of the stack below the caller that is kept: frames of signal handlers and of this
 * call. */
enum { MEMORY_TRIM_STACK_KEPT = 64 << 10 };

static inline void memory_trim(void)
{
#ifndef __SANITIZE_ADDRESS__
    malloc_trim(0);
#endif
}

/* Returns the end of the pages below `used` that may be freed. The kernel rounds the end of a range
 * up to a whole page, which may be longer than MEMORY_TRIM_STACK_KEPT. */
static inline uintptr_t memory_trim_end(uintptr_t used, uintptr_t page_bytes)
{
    return (used - MEMORY_TRIM_STACK_KEPT) / page_bytes * page_bytes;
}

/* Frees the pages of the calling thread's stack below its present frames. The main thread must not
 * call it, because the stack of the main thread grows. */
static inline void memory_trim_stack(void)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    pthread_attr_t attributes;
    void *lowest = NULL;
    size_t bytes = 0;

    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return;
    const uintptr_t end = memory_trim_end((uintptr_t)&attributes, (uintptr_t)sysconf(_SC_PAGESIZE));
    if (pthread_attr_getstack(&attributes, &lowest, &bytes) == 0 && end > (uintptr_t)lowest)
        (void)madvise(lowest, end - (uintptr_t)lowest, MADV_DONTNEED);
    pthread_attr_destroy(&attributes);
#endif
}
