/* times.h: the time of a measurement by activity, for the log.
 *
 * The times of the daemon and of its worker overlap: while a probe runs, the daemon stores the
 * previous answer. The GPU works during a probe's time minus its time for memory. These are plain
 * counters for one thread.
 */
#pragma once

#include "base/clock.h"
#include "observe/observe.h"

/* Number of rows: one for each kind of probe, one for READ over runs, then one for each kind of
 * memory except the device's own. */
enum { MEASURE_TIMES_ROWS = PROBE_KIND_COUNT + 1 + MEMORY_KIND_COUNT };

struct measure_times {
    nsec_t open_ns;   /* starting the worker and opening the GPU */
    nsec_t probe_ns;  /* all steps of the campaign */
    nsec_t derive_ns; /* deriving, merging and storing the fingerprint */
    nsec_t close_ns;  /* ending the worker */
    /* Parts of probe_ns. */
    nsec_t choose_ns; /* choices of the campaign */
    nsec_t store_ns;  /* storing observations */
    nsec_t await_ns;  /* waiting for answers and reading them */
    uint32_t steps;   /* steps of the campaign */
    struct measure_times_row {
        uint32_t probes;
        nsec_t device_ns; /* launches and copies */
        struct probe_time time;
    } rows[MEASURE_TIMES_ROWS];
};

/* Counts an answer, clean or not. */
void measure_times_add(struct measure_times *t, const struct observation *o);
/* Writes the table at the level debug: a line for each row that has probes, a line with their sum,
 * and a line for the daemon. `uuid` names the GPU. */
void measure_times_log(const struct measure_times *t, const char *uuid);
