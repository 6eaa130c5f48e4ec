/* alloc_fail.h: the n-th allocation of this program fails, alone or with all later ones. Include
 * this header in one file of a test program, because it defines malloc and related functions.
 *
 * Without a sanitizer, malloc, calloc and realloc themselves are replaced. A sanitizer needs these
 * functions, so the linker wraps the calls of this program instead (mk/variant.mk). The allocations
 * of SQLite and jansson then fail through hooks of these libraries. Any thread may allocate. One
 * thread starts and stops the failures, while the others are idle or their allocations do not
 * matter.
 */
#pragma once

#include "base/json_load.h"

#include <errno.h>
#include <jansson.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

static struct {
    atomic_bool armed;
    atomic_bool persistent;
    _Atomic uint64_t fail_at; /* from 1 */
    _Atomic uint64_t calls;   /* since alloc_fail_begin */
    _Atomic uint64_t failures;
} alloc_fail;

static bool none_left(void)
{
    if (!atomic_load(&alloc_fail.armed))
        return false;
    const uint64_t call = atomic_fetch_add(&alloc_fail.calls, 1) + 1;
    const uint64_t at = atomic_load(&alloc_fail.fail_at);

    if (call != at && !(atomic_load(&alloc_fail.persistent) && call > at))
        return false;
    atomic_fetch_add(&alloc_fail.failures, 1);
    errno = ENOMEM;
    return true;
}

/* Makes the n-th allocation from now on fail. */
static void alloc_fail_begin(uint64_t n)
{
    alloc_fail.fail_at = n;
    alloc_fail.calls = alloc_fail.failures = 0;
    alloc_fail.armed = true;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *p, size_t size);

void *__wrap_malloc(size_t size)
{
    return none_left() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return none_left() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *p, size_t size)
{
    return none_left() ? NULL : __real_realloc(p, size);
}

static sqlite3_mem_methods real_sqlite;

static void *short_malloc(int size)
{
    return none_left() ? NULL : real_sqlite.xMalloc(size);
}

static void *short_realloc(void *p, int size)
{
    return none_left() ? NULL : real_sqlite.xRealloc(p, size);
}

static void *short_json(size_t size)
{
    if (!none_left())
        return __real_malloc(size);
    json_load_note_failure();
    return NULL;
}

/* Call this before the first use of SQLite and jansson. */
static void alloc_fail_install(void)
{
    sqlite3_mem_methods methods;

    if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real_sqlite) != SQLITE_OK)
        abort();
    methods = real_sqlite;
    methods.xMalloc = short_malloc;
    methods.xRealloc = short_realloc;
    if (sqlite3_config(SQLITE_CONFIG_MALLOC, &methods) != SQLITE_OK)
        abort();
    json_set_alloc_funcs(short_json, free);
}

#else

/* The functions of the C library, under the names for programs that replace them. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *p, size_t size);

void *malloc(size_t size)
{
    return none_left() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return none_left() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *p, size_t size)
{
    return none_left() ? NULL : __libc_realloc(p, size);
}

static void alloc_fail_install(void)
{
}

#endif
