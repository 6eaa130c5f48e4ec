/* access.h: what a job does to memory at random. Reads wait for data; an atomic waits for its
 * result and is carried out in the cache; a write waits for nothing. They move different amounts
 * of memory and occupy translation for different times, so speeds are measured kind by kind.
 */
#ifndef REACH_BASE_ACCESS_H
#define REACH_BASE_ACCESS_H

#include <stdbool.h>

enum access { ACCESS_READ = 0, ACCESS_ATOMIC, ACCESS_WRITE, ACCESS_COUNT };

/* "read", "atomic", "write". */
const char *access_name(enum access a);
/* False where none is called so (or `name` is NULL); `*out` is then untouched. */
bool access_from_name(const char *name, enum access *out);

#endif
