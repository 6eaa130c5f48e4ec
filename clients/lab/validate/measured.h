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
    bool failed; /* a file could not be read, or memory ran out */
};

/* Returns the exit status of a check. */
int measured_exit(const struct measured_tally *t);

/* Reads fingerprint-full.json of a GPU, or fingerprint-memory.json if the first file does not
 * exist. Both files have all parts of depth full. Returns false if neither file can be read. `err`
 * contains the reason if a file is invalid. */
bool measured_fingerprint(const char *folder, const char *name, struct fingerprint *out,
                          struct err *err);

/* Opens the raw observations of a GPU, unpacked. Returns NULL if there are no observations. Close
 * the stream with pclose. */
FILE *measured_observations(const char *folder, const char *name);

/* Lists the names in a folder that begin with `prefix`, in alphabetical order. Returns their
 * number. If no name begins with the prefix, reports that on stderr and returns 0. The caller frees
 * each entry and the list. */
int measured_names(const char *folder, const char *prefix, struct dirent ***out);

#endif
