/* options.h: reads the options of the commands about traces from the front of their arguments. */
#ifndef REACH_CLIENTS_LAB_TRACE_OPTIONS_H
#define REACH_CLIENTS_LAB_TRACE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct option_list {
    int argc; /* arguments that are left */
    char **argv;
    const char *command; /* for messages */
    bool failed;         /* an error was reported on stderr */
};

/* Each removes its option from the front and returns true, or returns false if another argument is
 * there or after an error. */
bool option_text(struct option_list *l, const char *name, const char **out);
bool option_flag(struct option_list *l, const char *name);
bool option_bytes(struct option_list *l, const char *name, uint64_t *out);
bool option_count(struct option_list *l, const char *name, uint64_t *out);
bool option_real(struct option_list *l, const char *name, double *out);

/* Reports an unknown option, or a number of arguments other than `wanted`. Returns true if there
 * was no error. */
bool option_end(struct option_list *l, int wanted);

/* Opens a file, or returns stdin for "-". NULL after an error, which is reported. */
FILE *option_open_file(const struct option_list *l, const char *path);

#endif
