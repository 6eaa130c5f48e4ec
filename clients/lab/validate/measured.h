/* measured.h: reads files of a folder like docs/measurements, and counts targets. */
#pragma once

#include "base/status.h"
#include "clients/lab/trace/unpack.h"
#include "fingerprint/fingerprint.h"

#include <stdbool.h>

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

/* Opens the raw observations of a GPU. Returns false if there are none. */
bool measured_observations(const char *folder, const char *name, struct unpack *out);

/* Calls `check` for each name in a folder that begins with `prefix`, in alphabetical order. If no
 * name begins with the prefix, reports that on stderr and returns false. */
typedef void measured_check(const char *folder, const char *name, struct measured_tally *tally);
bool measured_each(const char *folder, const char *prefix, measured_check *check,
                   struct measured_tally *tally);
