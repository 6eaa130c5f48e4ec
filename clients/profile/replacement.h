/* replacement.h: the functions of reach.torch that replace whole operators of PyTorch. */
#pragma once

#include "clients/profile/recording.h"

/* Returns the function that replaces the kernel's operator, or NULL if none is known. */
const char *replacement_find(const struct recording_kernel *k);

/* Returns whether that function does all work of the kernel. The kernels of a backward pass also do
 * other work, such as sorting the indices. */
bool replacement_is_whole(const struct recording_kernel *k);
