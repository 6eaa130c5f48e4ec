/* fetch.h: a fingerprint as a checked value, from the daemon or from a file. */
#ifndef REACHCTL_FETCH_H
#define REACHCTL_FETCH_H

#include "clients/reachctl/options.h"

#include "fingerprint/fingerprint.h"

struct client;

/* `which` is the id of one in the daemon's history, "current" (of the GPU that `options` name), or
 * the path of a file that the daemon has exported; a file needs no daemon. What cannot be had, or
 * is no fingerprint, is told on stderr. `out_id`, of FINGERPRINT_ID_BYTES or NULL, gets its id as
 * the daemon has given it; where a document has none, the id of the value. */
enum exit_code fetch_fingerprint(struct client *client, const struct options *options,
                                 const char *which, struct fingerprint *out, char *out_id);

/* The same of a document of the daemon, which is borrowed. `name` is for the complaint. */
enum exit_code fetch_read(const json_t *json, const char *name, struct fingerprint *out,
                          char *out_id);

#endif
