/* json_load.h: from a text to JSON, whole or not at all, also where memory ends: jansson 2.14
 * leaves out a character of a name, a text or a number where its buffer cannot grow, and says
 * nothing (load.c, lex_save). So jansson's allocations are watched, from the start of the program
 * on. For the daemon: a library has no say in how its program allocates.
 */
#ifndef REACH_BASE_JSON_LOAD_H
#define REACH_BASE_JSON_LOAD_H

#include <jansson.h>
#include <stdbool.h>

/* As json_loadb with JSON_REJECT_DUPLICATES; `why` may be NULL. The caller owns the value. NULL:
 * it is no JSON, or json_load_was_short(). */
json_t *json_load_whole(const char *text, size_t bytes, json_error_t *why);
/* Was there too little memory for the last one of this thread? */
bool json_load_was_short(void);
/* For who replaces jansson's allocations with others (a test): one of this thread has failed. */
void json_load_note_failure(void);

#endif
