/* diagnose.h: the host side of the example diagnose: the fingerprint of the GPU, and the planner's
 * prediction for a diagnosis. Call it from one thread. */
#pragma once

#include "clients/c/reach.h"
#include "clients/cuda/reach_diagnose.h"

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Fills the numbers of the options from the GPU's fingerprint; missing numbers stay 0. */
enum reach_status diagnose_numbers(struct reach *reach, const char *gpu,
                                   struct reach_diagnose_options *out, struct reach_error *error);

/* Prints "naive 1224 GB/s; best windows, 4070 GB/s" for the planner's answer, or the reason if
 * there is none. The planner covers device memory only. */
void diagnose_print_plan(FILE *out, struct reach *reach, const char *gpu,
                         const struct reach_diagnosis *found);

/* Prints one line of JSON: the name of the case, the diagnosis, and the number of words that have
 * changed. */
void diagnose_print_json(FILE *out, const char *name, const struct reach_diagnosis *found,
                         uint64_t changed);

#ifdef __cplusplus
}
#endif
