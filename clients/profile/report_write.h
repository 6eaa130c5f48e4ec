/* report_write.h: reads the recordings of a folder and the fingerprints of their GPUs, and writes
 * the report. */
#pragma once

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { REPORT_MAX_FINGERPRINTS = 64 };

struct report_request {
    const char *folder;                                /* has the recordings and their traces */
    const char *fingerprints[REPORT_MAX_FINGERPRINTS]; /* files; if there is none, the daemon is
                                                          asked */
    uint32_t fingerprint_count;
    bool json;          /* JSON instead of a table */
    const char *output; /* file for the table or the JSON; NULL means the standard error */
    const char *html;   /* file for an HTML page; NULL means no page */
    const char *trace;  /* file for the trace of the first kernel; NULL means no trace */
};

/* Writes the report. Returns STATUS_NOT_FOUND if the folder has no recording, STATUS_IO if a file
 * cannot be read or written, and the errors of recording_read. */
enum status report_write(const struct report_request *request, struct err *err);
