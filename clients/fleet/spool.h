/* spool.h: documents that wait, in an unnamed file, which is gone when the program is. */
#ifndef REACH_CLIENTS_FLEET_SPOOL_H
#define REACH_CLIENTS_FLEET_SPOOL_H

#include "base/status.h"

#include <jansson.h>
#include <stdint.h>

struct spool;

/* Where one lies; bytes 0: none. */
struct spool_place {
    uint64_t at;
    uint32_t bytes;
};

enum status spool_open(struct spool **out, struct err *err);
void spool_close(struct spool *take); /* NULL is fine */
/* As the daemon wrote it: compact JSON. */
enum status spool_put(struct spool *spool, const json_t *document, struct spool_place *out,
                      struct err *err);
/* The text, terminated; the caller frees it. */
enum status spool_get(struct spool *spool, const struct spool_place *place, char **out,
                      struct err *err);

#endif
