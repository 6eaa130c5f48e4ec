/* json_load.c: see json_load.h. A counter per thread counts the failed allocations of jansson; a
 * value is thrown away if the counter has changed during its decoding. */
#include "base/json_load.h"

#include <stdio.h>
#include <stdlib.h>

static _Thread_local unsigned long failures;
static _Thread_local bool was_short;

void json_load_note_failure(void)
{
    failures++;
}

bool json_load_was_short(void)
{
    return was_short;
}

static void *watched_malloc(size_t bytes)
{
    void *p = malloc(bytes);

    if (!p)
        json_load_note_failure();
    return p;
}

/* Runs before any other use of jansson and before there are threads. */
__attribute__((constructor)) static void watch_allocations(void)
{
    json_set_alloc_funcs(watched_malloc, free);
}

json_t *json_load_whole(const char *text, size_t bytes, json_error_t *why)
{
    const unsigned long before = failures;
    json_t *json = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, why);

    was_short = failures != before;
    if (!was_short)
        return json;
    json_decref(json);
    if (why)
        snprintf(why->text, sizeof(why->text), "cannot parse the document: out of memory");
    return NULL;
}
