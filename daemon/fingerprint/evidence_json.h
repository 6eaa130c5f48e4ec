/* evidence_json.h: evidence as the object "evidence" beside the numbers that it is about. */
#ifndef REACH_FINGERPRINT_EVIDENCE_JSON_H
#define REACH_FINGERPRINT_EVIDENCE_JSON_H

#include "base/json_reader.h"
#include "base/json_builder.h"
#include "fingerprint/evidence.h"

/* One field for each that there is, under its number's name. */
void evidence_write(struct json_builder *o, const char *const *names, const struct evidence *e,
                    uint32_t count);
/* What is missing stays as it is. */
void evidence_read(struct json_reader *in, const char *const *names, struct evidence *out,
                   uint32_t count);

#endif
