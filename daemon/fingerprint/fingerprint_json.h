/* fingerprint_json.h: the document of a fingerprint, without and with its id. Any thread. */
#ifndef REACH_FINGERPRINT_FINGERPRINT_JSON_H
#define REACH_FINGERPRINT_FINGERPRINT_JSON_H

#include "fingerprint/fingerprint.h"

/* Everything but the id; new reference, NULL without memory. */
json_t *fingerprint_json_body(const struct fingerprint *fp);
/* The id of a body; false without memory. */
bool fingerprint_json_id(const json_t *body, char *out);
/* The text that the id is the hash of, from malloc, and the id; NULL without memory. */
char *fingerprint_json_text(const json_t *body, char *out_id);

#endif
