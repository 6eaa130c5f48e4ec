/* json_load.h: parses JSON completely or fails, even if memory runs out. If its buffer cannot grow,
 * jansson 2.14 omits a character of a name, a text or a number, and reports no error (load.c,
 * lex_save). So jansson's allocations are watched from the start of the program. The module is for
 * the daemon only: a library must not change how its program allocates. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* Parses like json_loadb with JSON_REJECT_DUPLICATES; `why` may be NULL. The caller owns the value.
 * Returns NULL if the text is not JSON, or if json_load_was_short(). */
json_t *json_load_whole(const char *text, size_t bytes, json_error_t *why);
/* Returns whether memory ran out during the last json_load_whole of this thread. */
bool json_load_was_short(void);
/* Records that an allocation of this thread has failed, for a test that replaces jansson's
 * allocator. */
void json_load_note_failure(void);
