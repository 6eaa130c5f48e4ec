/* device_cost.h: predicts the time of the accesses of a launch to device memory. Only launch_cost.c
 * includes this header. */
#pragma once

#include "clients/profile/costing.h"

/* Chooses the random accesses to device memory. A class that stays in the L2 is not chosen. */
void device_cost_choose(struct costing *c);

/* Decides how often the chosen accesses are repeated before their misses are counted. Returns the
 * errors of access_pattern_read. */
enum status device_cost_plan_copy(const struct costing *c, struct access_copy *out,
                                  struct err *err);

/* Sets the times of device memory and of translation, and the misses. Returns the errors of
 * access_pattern_read and whatif_ask. */
enum status device_cost_predict(struct costing *c, struct err *err);
