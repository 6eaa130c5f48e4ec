/* whatif_rows.h: converts the walks of one question into a row of the answer. Only what-if includes
 * this header. */
#pragma once

#include "clients/lab/whatif/whatif_context.h"

/* Adds a row from the memory time and the walks of all accesses. */
struct whatif_row *whatif_add_row(struct whatif_context *c, enum whatif_question question,
                                  double value, double memory_ns, double walks);
/* Adds a row without a number; `why` is copied. */
struct whatif_row *whatif_add_unknown_row(struct whatif_context *c, enum whatif_question question,
                                          const char *why);

/* Returns the time of a part of the work in ns, if the share `scattered` of the frames is
 * scattered. It is the longer of memory time and translation time, and somewhat longer if the job
 * is atomic-bound. */
double whatif_time_ns(const struct whatif_context *c, double memory_ns, double walks,
                      double scattered);

/* Returns the share of scattered frames in the options, or 0 if they give no share. */
double whatif_scattered_share(const struct whatif_context *c);
/* Returns the share in the options. If they give no share, returns 1 if the cost of a scattered
 * miss is known, and 0 otherwise. */
double whatif_worst_scattered_share(const struct whatif_context *c);

/* Returns the memory time of all accesses and of one reading of the input, in ns. */
double whatif_memory_ns(const struct whatif_context *c);

/* Sets ns, ns_at_worst and gbps of a row from the times of all accesses, in ns. */
void whatif_set_times(const struct whatif_context *c, struct whatif_row *r, double ns,
                      double ns_at_worst);
