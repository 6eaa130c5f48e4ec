/* topology_read.h: the field "topology" of a fingerprint's document. */
#ifndef REACH_FINGERPRINT_TOPOLOGY_READ_H
#define REACH_FINGERPRINT_TOPOLOGY_READ_H

#include "base/json_reader.h"
#include "fingerprint/fingerprint.h"

/* What is missing stays as it is. */
void topology_read(struct json_reader *outer, struct topology *out);
/* Puts the SMs of one array into `group`. An SM in two groups is a failure. */
void topology_read_sms(struct json_reader *in, const json_t *array, uint32_t group,
                       struct sm_partition *out);

#endif
