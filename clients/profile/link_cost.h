/* link_cost.h: predicts the time of the accesses of a launch to host memory and to peers, and the
 * time that other kinds of host memory would take. Only launch_cost.c includes this header. */
#pragma once

#include "clients/profile/costing.h"

/* Adds the times of the link, the misses and the options. Returns the errors of
 * access_pattern_read, and STATUS_INCONCLUSIVE if the fingerprint does not describe the memory. */
enum status link_cost_predict(struct costing *c, struct err *err);
