/* fingerprints.h: the fingerprints of the GPUs of a report, from files or from the daemon. One
 * thread may use a list at a time. */
#pragma once

#include "clients/profile/recording.h"
#include "fingerprint/fingerprint.h"

struct fingerprints;

/* Reads the files. If `count` is 0, fingerprints_find asks the daemon ($REACHD_URL). Returns
 * STATUS_IO or STATUS_CORRUPT if a file cannot be read, and STATUS_NO_MEMORY if out of memory. The
 * caller owns `*out`, which is NULL after an error. */
enum status fingerprints_open(const char *const *files, uint32_t count, struct fingerprints **out,
                              struct err *err);
void fingerprints_close(struct fingerprints *take);

/* Returns the fingerprint with the UUID of the GPU, or NULL. `*out_why` is then the reason, a part
 * of a sentence. Both are valid until fingerprints_close. `context` is a struct fingerprints. */
const struct fingerprint *fingerprints_find(void *context, const struct recording_gpu *gpu,
                                            const char **out_why);
