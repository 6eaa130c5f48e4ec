/* options.h: reads the options of the commands about traces from the front of their arguments. */
#pragma once

#include "clients/lab/trace/trace.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct option_list {
    int argc; /* number of remaining arguments */
    char **argv;
    const char *command; /* name of the command in messages */
    bool failed;         /* an error was reported on stderr */
};

/* Each function removes its option from the front and returns true. Returns false after an error,
 * or if the first argument is not this option. */
bool option_text(struct option_list *l, const char *name, const char **out);
bool option_flag(struct option_list *l, const char *name);
bool option_bytes(struct option_list *l, const char *name, uint64_t *out);
bool option_count(struct option_list *l, const char *name, uint64_t *out);
bool option_real(struct option_list *l, const char *name, double *out);

/* Reports an unknown option, or a number of arguments that differs from `wanted`. Returns whether
 * there was no error. */
bool option_end(struct option_list *l, int wanted);

/* Opens a file, or returns stdin for "-". A compressed file (unpack.h) is unpacked to a temporary
 * file. Returns NULL after an error and reports the error. */
FILE *option_open_file(struct option_list *l, const char *path);

/* Loads a trace from a file or from stdin. Returns false after an error and reports the error. Free
 * `out` with trace_free in every case. */
bool option_load_trace(struct option_list *l, const char *path, struct trace *out);
