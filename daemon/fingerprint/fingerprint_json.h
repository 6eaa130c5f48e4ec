/* fingerprint_json.h: what the files of this layer share about the JSON form. */
#ifndef REACH_FINGERPRINT_FINGERPRINT_JSON_H
#define REACH_FINGERPRINT_FINGERPRINT_JSON_H

#include "fingerprint/fingerprint.h"

/* Everything but the id; new reference, NULL without memory. */
json_t *fingerprint_json_body(const struct fingerprint *fp);
/* The id of a body; false without memory. */
bool fingerprint_json_id(const json_t *body, char *out);
/* The text that the id is the hash of, from malloc, and the id; NULL without memory. */
char *fingerprint_json_text(const json_t *body, char *out_id);

/* False where the name is none of them; `*out` is then untouched. */
bool shared_by_from_name(const char *name, enum shared_by *out);
bool replacement_from_name(const char *name, enum replacement *out);
bool finding_from_name(const char *name, enum finding *out);
bool slow_cause_from_name(const char *name, enum slow_cause *out);
bool fill_from_name(const char *name, enum fill *out);

#endif
