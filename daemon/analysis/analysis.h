/* analysis.h: derives a fingerprint from observations. The functions are pure, without I/O, clock
 * or globals. The same observations give the same fingerprint on any machine. No decision depends
 * on the name of a GPU.
 *
 *   levels.c    TLB levels from footprint sweeps (Karnagel 2017, Mei 2016)
 *   sharing.c   SM groups from rounds, and from the pair matrix (Karnagel 2017)
 *   floorplan.c the full die and the missing parts of this chip (Karnagel 2017)
 *   throughput.c  plateau, curve and windows from random reads (Walker 2024)
 *   imported.c  the same results from imported means, by curve_levels.c and mean_sharing.c
 *   analysis.c  the whole fingerprint
 */
#pragma once

#include "base/status.h"
#include "fingerprint/fingerprint.h"
#include "observe/observe.h"

/* Derives the fingerprint from all of `set`. Values that the observations do not show are left
 * unknown, with the reason, and the function still returns STATUS_OK. Sets taken_at to the start of
 * the last observation and leaves duration_ms at 0. Returns STATUS_DISTURBED if the observations
 * contradict each other so that no group map can be trusted. Also returns STATUS_DISTURBED if a
 * level's entries or sharing are left open and probes were disturbed or other processes had the GPU
 * open. `*out` then contains everything that could be derived, with the verdict in its
 * conditions. */
enum status analysis_derive(const struct observation_set *set, enum depth depth,
                            struct fingerprint *out, struct err *err);
