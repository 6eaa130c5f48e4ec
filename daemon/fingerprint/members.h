/* members.h: the tables of the members of a fingerprint (member.h). The tables are constant. */
#pragma once

#include "fingerprint/fingerprint.h"
#include "fingerprint/member.h"

extern const struct object fingerprint_object, level_object, cache_object, latency_object,
    memory_object, source_object;
