/* sim_profiles.h: simulated GPUs by name, for example k80 and h200. Each is a description like in
 * sim_desc.h, with the source of every number in it. */
#pragma once

#include "gpu/sim/sim_desc.h"

enum sim_evidence {
    SIM_PUBLISHED = 0, /* published in a paper or a data sheet */
    SIM_MEASURED,      /* measured on hardware by this project */
    SIM_GUESS          /* made up to complete the model; not to be quoted */
};

/* The source of one field's value, or of a part of it. */
struct sim_source {
    const char *field; /* "l2", or "l2.sets" for one option of it, or several: "noise latency" */
    enum sim_evidence evidence;
    const char *text;
};

struct sim_profile {
    const char *name;
    const char *description; /* for sim_desc_parse */
    const struct sim_source *sources;
    uint32_t source_count;
};

/* Returns all profiles, in the order of their age. */
const struct sim_profile *sim_profiles(uint32_t *out_count);
/* Returns the profile with this name, or NULL if there is none. */
const struct sim_profile *sim_profile_find(const char *name);

/* Parses the text of a user: a profile's name, a profile's name and fields that replace its own
 * ("h200 noise=none seed=3"), or a whole description. Returns STATUS_NOT_FOUND for an unknown name,
 * with the list of names, or the errors of sim_desc_parse. */
enum status sim_profiles_parse(const char *text, struct sim_desc *out, struct err *err);
