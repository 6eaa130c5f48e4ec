/* show.h: a fingerprint on one screen. */
#ifndef REACHCTL_SHOW_H
#define REACHCTL_SHOW_H

#include <jansson.h>

/* Prints the document that GET /v1/gpus/{gpu}/fingerprint gives to stdout. */
void show_fingerprint(const json_t *fp);

/* What each of its numbers rests on, as a table; a part of the above on request. */
void show_evidence(const json_t *fp);

#endif
