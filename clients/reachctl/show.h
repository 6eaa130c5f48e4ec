/* show.h: a fingerprint on one screen. */
#ifndef REACHCTL_SHOW_H
#define REACHCTL_SHOW_H

#include <jansson.h>

/* Prints the document of GET /v1/gpus/{gpu}/fingerprint to stdout. */
void show_fingerprint(const json_t *fp);

/* Prints its "memory": a table of kinds, less those that were not measured. */
void show_memory(const json_t *memory);

/* Prints the evidence of each of its numbers as a table. */
void show_evidence(const json_t *fp);

#endif
