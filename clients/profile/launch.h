/* launch.h: runs a program with libreach-profile.so, and waits for its end. One thread uses it. */
#pragma once

#include "base/status.h"

/* The environment of the program. Strings are borrowed. */
struct launch {
    const char *injected;  /* path of libreach-profile.so; NULL runs the program without it */
    const char *sanitizer; /* path of the Sanitizer library */
    const char *folder;    /* absolute path of the folder for recordings */
    const char *seconds;   /* limits of the recording; NULL means the default of the library */
    const char *launches;
    const char *skip;
};

/* Runs `argv`, which ends with NULL, and waits until it ends. Signals that ask this process to end
 * are forwarded to the program. `out_status` gets the status of waitpid(2). Returns
 * STATUS_NOT_FOUND, STATUS_NOT_PERMITTED or STATUS_IO if the program was not started. */
enum status launch_run(char *const argv[], const struct launch *launch, int *out_status,
                       struct err *err);

/* Converts a status of waitpid(2) to an exit status: the status of the program, or 128 and the
 * number of the signal that has killed it. */
int launch_exit_status(int wait_status);

/* Returns why another tool, such as Nsight, would be loaded into the program, or NULL if none
 * would. A program can have one such tool. The text is static. */
const char *launch_other_tool(void);
