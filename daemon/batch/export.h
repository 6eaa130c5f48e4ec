/* export.h: writes the results of one run to files for docs/measurements and tests/replay. The
 * formats are in docs/formats.md. */
#pragma once

#include "base/status.h"
#include "fingerprint/fingerprint.h"
#include "observe/observe.h"

#include <stdio.h>

enum { EXPORT_PATH_BYTES = 512 };

/* Makes DIR/<name>-<first 8 characters of the UUID>-<date>/ and writes its path to `out`. */
enum status export_folder(const char *dir, const struct gpu_identity *gpu, int64_t now, char *out,
                          size_t out_size, struct err *err);

/* Writes the observations of one run: a line about the run, then one line per observation. */
enum status export_observations(const char *path, const struct observation_set *set,
                                enum depth depth, struct err *err);
/* Reads the file that export_observations wrote. The caller owns `*out` (observation_set_free). */
enum status export_read_observations(FILE *in, struct observation_set *out, enum depth *depth,
                                     struct err *err);

/* Writes a finished text. */
enum status export_text(const char *path, const char *text, size_t bytes, struct err *err);
enum status export_fingerprint(const char *path, const struct fingerprint *fp, struct err *err);
/* Writes the fingerprint and its evidence as text (report_fingerprint). */
enum status export_table(const char *path, const struct fingerprint *fp, struct err *err);

/* Writes the document of a fingerprint, one value per line. Returns STATUS_NO_MEMORY or STATUS_IO
 * if that fails. */
enum status export_print(FILE *out, const struct fingerprint *fp, struct err *err);
