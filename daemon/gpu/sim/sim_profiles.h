/* sim_profiles.h: simulated GPUs by name, for example k80 and h200. Each is a description like in
 * sim_desc.h. docs/simulated-gpus.md has the source of every number in it. */
#pragma once

#include "gpu/sim/sim_desc.h"

struct sim_profile {
    const char *name;
    const char *description; /* for sim_desc_parse */
};

/* Returns all profiles, in the order of their age. */
const struct sim_profile *sim_profiles(uint32_t *out_count);
/* Returns the profile with this name, or NULL if there is none. */
const struct sim_profile *sim_profile_find(const char *name);

/* Parses the text of a user: a profile's name, a profile's name and fields that replace its own
 * ("h200 noise=none seed=3"), or a whole description. Returns STATUS_NOT_FOUND for an unknown name,
 * with the list of names, or the errors of sim_desc_parse. */
enum status sim_profiles_parse(const char *text, struct sim_desc *out, struct err *err);
