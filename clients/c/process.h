/* process.h: what all handles of a process share: one lock for their pools and caches, and the ids
 * of requests. A fork takes the lock first, so a child finds it free and what it guards whole. */
#ifndef REACH_CLIENTS_C_PROCESS_H
#define REACH_CLIENTS_C_PROCESS_H

#include <stdint.h>

enum { PROCESS_ID_BYTES = 17 };

/* Before any other function of this header; any number of times. */
void process_start(void);

/* Held for a moment only, never during I/O. */
void process_lock(void);
void process_unlock(void);

/* How many forks lie between the process that loaded the library and this one. */
uint32_t process_generation(void);

/* A new id for X-Request-Id, 16 hexadecimal digits. No two requests of one process have the same;
 * in another process they begin at a random number. `out` needs PROCESS_ID_BYTES. */
void process_request_id(char *out);

#endif
