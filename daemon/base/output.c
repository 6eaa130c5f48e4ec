/* output.c: see output.h. A long output may have failed before its end. Then fflush has nothing
 * left to report, and only the error mark of the stream shows it. */
#include "base/output.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum status output_end(struct err *err)
{
    if (fflush(stdout) != 0)
        return err_set(err, STATUS_IO, "cannot write the output: %s", strerror(errno));
    if (ferror(stdout))
        return err_set(err, STATUS_IO, "cannot write all of the output");
    return STATUS_OK;
}

int output_exit(const char *program, int exit_status, int failed)
{
    struct err err = {0};

    if (output_end(&err) == STATUS_OK)
        return exit_status;
    (void)fprintf(stderr, "%s: %s\n", program, err.text);
    return failed;
}
