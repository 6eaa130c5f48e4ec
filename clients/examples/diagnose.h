/* diagnose.h: the host side of the example diagnose: what reachd knows of the GPU, and what its
 * planner says of a diagnosis. One thread. */
#ifndef REACH_CLIENTS_EXAMPLES_DIAGNOSE_H
#define REACH_CLIENTS_EXAMPLES_DIAGNOSE_H

#include "clients/c/reach.h"
#include "clients/cuda/reach_diagnose.h"

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Fills the numbers of the options from the GPU's fingerprint; what it lacks stays 0. */
enum reach_status diagnose_numbers(struct reach *reach, const char *gpu,
                                   struct reach_diagnose_options *out, struct reach_error *error);

/* Prints "naive 1224 GB/s; best windows, 4070 GB/s" for the planner's answer, or why there is none.
 * Only device memory is the planner's. */
void diagnose_print_plan(FILE *out, struct reach *reach, const char *gpu,
                         const struct reach_diagnosis *found);

/* One line of JSON: the name of the case, the diagnosis, and how many words have changed. */
void diagnose_print_json(FILE *out, const char *name, const struct reach_diagnosis *found,
                         uint64_t changed);

#ifdef __cplusplus
}
#endif

#endif
