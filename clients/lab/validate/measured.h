/* measured.h: reads files of a folder like docs/measurements, and counts targets. */
#ifndef REACH_CLIENTS_LAB_VALIDATE_MEASURED_H
#define REACH_CLIENTS_LAB_VALIDATE_MEASURED_H

#include "base/status.h"
#include "fingerprint/fingerprint.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>

enum { MEASURED_PATH_BYTES = 512 };

struct measured_tally {
    uint32_t reproduced, not_reproduced, left_out;
    bool failed; /* a file could not be read, or memory was missing */
};

/* The exit status of a check. */
int measured_exit(const struct measured_tally *t);

/* Reads fingerprint-full.json of a GPU or, if it has none, fingerprint-memory.json, which has all
 * parts of full. False if neither can be read; `err` has the reason if one is not valid. */
bool measured_fingerprint(const char *folder, const char *name, struct fingerprint *out,
                          struct err *err);

/* Opens the raw observations of a GPU, unpacked. NULL if there are none. Close it with pclose. */
FILE *measured_observations(const char *folder, const char *name);

/* The names in a folder that begin with `prefix`, in alphabetical order; free each and the list.
 * Returns their number. If there is none, reports it on stderr and returns 0. */
int measured_names(const char *folder, const char *prefix, struct dirent ***out);

#endif
