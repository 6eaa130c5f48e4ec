/* report_numbers.h: what the reports about numbers share. */
#ifndef REACH_CLIENTS_FLEET_REPORT_NUMBERS_H
#define REACH_CLIENTS_FLEET_REPORT_NUMBERS_H

#include "clients/fleet/gather.h"
#include "clients/fleet/report_private.h"

/* All numbers of the GPUs of one kind, brought to quartiles. */
enum status report_gather_kind(struct report *r, const struct report_kind *kind, struct gather *g,
                               struct err *err);

/* How far `v` is from `median` in robust deviations; INFINITY where all others agree. */
double report_deviations(double v, double median, double mad);
/* Is it further than chance and `share` of `scale` allow? */
bool report_is_far(double v, double median, double mad, double scale);

/* The lines of a structure that differ from what most of the fleet has. */
enum { REPORT_MAX_LINES = 160 };
struct majority_line {
    char name[NUMBER_NAME_BYTES];
    char value[NUMBER_NAME_BYTES];
    uint64_t lead;  /* while it is looked for */
    uint64_t have;  /* GPUs that have this value, */
    uint64_t known; /* of those that know one */
};
struct majority {
    struct majority_line lines[REPORT_MAX_LINES];
    uint32_t count;
    int64_t usual; /* a structure in which no line differs; the one with the most GPUs, 0: none */
    uint64_t usual_gpus;
};
/* What more than half of the GPUs of this kind have, of those that know it. */
enum status report_majority(struct report *r, const struct report_kind *kind, struct majority *out,
                            struct err *err);
/* The line of that name, where more than half of at least REPORT_MIN_FLEET GPUs have one value;
 * NULL where there is none. */
const struct majority_line *report_majority_line(const struct majority *m, const char *name);

#endif
