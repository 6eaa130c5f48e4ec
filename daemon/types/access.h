/* access.h: kinds of random memory accesses of a job. Reads wait for data; an atomic waits for its
 * result and is carried out in the cache; a write waits for nothing. The kinds move different
 * amounts of memory and occupy translation for different times, so each is measured. */
#pragma once

#include <stdbool.h>

enum access { ACCESS_READ = 0, ACCESS_ATOMIC, ACCESS_WRITE, ACCESS_COUNT };

/* Returns "read", "atomic" or "write". */
const char *access_name(enum access a);
/* Returns false if no access has this name or `name` is NULL; `*out` is then unchanged. */
bool access_from_name(const char *name, enum access *out);
