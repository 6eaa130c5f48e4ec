/* replacement.h: the functions of reach.torch that replace whole operators of PyTorch. */
#ifndef REACH_CLIENTS_PROFILE_REPLACEMENT_H
#define REACH_CLIENTS_PROFILE_REPLACEMENT_H

#include "clients/profile/recording.h"

/* Returns the function that does all work of the kernel's operator, or NULL if none is known. */
const char *replacement_find(const struct recording_kernel *k);

#endif
