/* process.h: the state that all handles of a process share: one lock for their pools and caches,
 * and the ids of requests. A fork takes the lock first. So in a child the lock is free and the
 * guarded data are consistent. */
#pragma once

#include <stdint.h>

enum { PROCESS_ID_BYTES = 17 };

/* Call this before any other function of this header. It may be repeated. */
void process_start(void);

/* The lock is held briefly, never during I/O. */
void process_lock(void);
void process_unlock(void);

/* Returns the number of forks between the process that loaded the library and this one. */
uint32_t process_generation(void);

/* Writes a new id for X-Request-Id, 16 hexadecimal digits. Ids are unique within a process and
 * begin at a random number. `out` needs PROCESS_ID_BYTES. */
void process_request_id(char *out);
