/* members.h: the tables of the members of a fingerprint (member.h). The tables are constant. */
#ifndef REACH_FINGERPRINT_MEMBERS_H
#define REACH_FINGERPRINT_MEMBERS_H

#include "fingerprint/fingerprint.h"
#include "fingerprint/member.h"

extern const struct object fingerprint_object, level_object, cache_object, latency_object,
    memory_object, source_object;

#endif
