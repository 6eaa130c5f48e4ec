/* status.c: the table of all statuses, and the functions that fill a struct err.
 *
 * Clients see the table: the API and reachctl print slug, message and next step. So each next step
 * is an action that the reader can take, and slugs never change. */
#include "base/status.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

enum { TEXT_BYTES = sizeof(((struct err *)NULL)->text) };

static const struct status_info table[STATUS_COUNT] = {
    [STATUS_OK] = {"ok", 200, EX_OK, "Done.", "Nothing to do."},
    [STATUS_INVALID_ARGUMENT] = {"invalid-argument", 400, EX_CONFIG,
                                 "The request has an invalid value.",
                                 "Correct the value that the detail names and try again."},
    [STATUS_TOO_MANY_BYTES] = {"too-many-bytes", 422, EXIT_FAILURE,
                               "The request is for more memory than the GPU or the node has.",
                               "Request at most the size in the detail."},
    [STATUS_NOT_FOUND] = {"not-found", 404, EXIT_FAILURE, "No object has this name.",
                          "Use a name that exists; the detail has the name that is wrong."},
    [STATUS_NOT_APPLICABLE] = {"not-applicable", 409, EXIT_FAILURE,
                               "The answer does not apply to this GPU or this request.",
                               "Nothing to do: this is an answer, not a failure."},
    [STATUS_NOT_OBSERVABLE] =
        {"not-observable", 500, EXIT_FAILURE, "The hardware shows no signal of the property.",
         "Nothing to do: this is an answer. A deeper measurement may look further."},
    [STATUS_NOT_SUPPORTED] =
        {"not-supported", 501, EX_UNAVAILABLE, "This GPU, driver or build lacks a feature.",
         "Use a build, a release, a driver or a GPU with the feature that the detail names."},
    [STATUS_NOT_PERMITTED] = {"not-permitted", 500, EXIT_FAILURE,
                              "The system does not permit the operation.",
                              "Raise the limit, or grant the permission, that the detail names."},
    [STATUS_NO_MEMORY] = {"no-memory", 503, EX_OSERR, "The host is out of memory.",
                          "Free memory on this host, or raise the limit of the process, and try "
                          "again."},
    [STATUS_NO_DRIVER] = {"no-driver", 503, EX_UNAVAILABLE,
                          "The NVIDIA driver is missing, or finds no device.",
                          "If nvidia-smi lists the GPU, check why this process has no access: "
                          "CUDA_VISIBLE_DEVICES, the device files, a container. Otherwise install "
                          "the NVIDIA driver; without a GPU, use a simulated one."},
    [STATUS_DRIVER_TOO_OLD] = {"driver-too-old", 500, EX_UNAVAILABLE,
                               "The NVIDIA driver is too old.",
                               "Install a driver at least as new as the detail says."},
    [STATUS_GPU_BUSY] = {"gpu-busy", 409, EX_UNAVAILABLE, "Another process holds the GPU.",
                         "Wait until the other process is done, or set the compute mode to "
                         "default, and measure again."},
    [STATUS_GPU_NO_MEMORY] = {"gpu-no-memory", 500, EXIT_FAILURE,
                              "The GPU has too little free memory for a useful probe.",
                              "Free the memory that the detail names on the GPU, and some hundred "
                              "MiB for a CUDA context. Then measure again."},
    [STATUS_GPU_LOST] = {"gpu-lost", 409, EX_UNAVAILABLE, "The GPU or its context is gone.",
                         "Look for Xid lines in the kernel log; measure again once nvidia-smi "
                         "lists the GPU."},
    [STATUS_GPU_FAULT] = {"gpu-fault", 500, EXIT_FAILURE, "A driver call or a kernel failed.",
                          "Measure again; if it fails again, report the detail together with the "
                          "driver version."},
    [STATUS_GPU_HUNG] =
        {"gpu-hung", 409, EX_UNAVAILABLE, "A call of the driver does not return.",
         "Look for Xid lines in the kernel log. Do not kill the process that hangs, which may "
         "freeze the GPU. Drain the node, then reset the GPU or restart the node."},
    [STATUS_DEADLINE] = {"deadline", 500, EXIT_FAILURE, "The operation exceeded its time limit.",
                         "Try again when the GPU is less busy; if nvidia-smi does not respond "
                         "either, look for Xid lines in the kernel log."},
    [STATUS_CANCELLED] = {"cancelled", 500, EXIT_FAILURE, "The operation was cancelled.",
                          "Start the operation again if its result is still needed."},
    [STATUS_DISTURBED] = {"disturbed", 500, EXIT_FAILURE, "The measurement contradicts itself.",
                          "Measure again when no other job runs on the GPU."},
    [STATUS_INCONCLUSIVE] = {"inconclusive", 500, EXIT_FAILURE, "The measurement found no answer.",
                             "Measure again when no other job runs on the GPU; if it fails again, "
                             "report the detail together with the GPU's name."},
    [STATUS_PROTOCOL] = {"protocol", 500, EX_DATAERR, "The peer sent an invalid message.",
                         "Check that both sides are reachd, and of the same release."},
    [STATUS_IO] = {"io", 500, EX_IOERR, "Reading or writing failed.",
                   "Check that the file that the detail names exists, and that this process may "
                   "use the file."},
    [STATUS_CORRUPT] = {"corrupt", 500, EX_DATAERR, "Stored data fails its check.",
                        "Move the damaged file away, keep the file for analysis, and begin with a "
                        "new file or a backup."},
    [STATUS_READ_ONLY] = {"read-only", 507, EX_CANTCREAT, "The state file cannot be written.",
                          "Give this process write access to the file and its directory, or name "
                          "another file."},
    [STATUS_FULL] = {"full", 503, EX_CANTCREAT, "There is no space left.",
                     "Free space as the detail says, and try again."},
    [STATUS_CONFLICT] =
        {"conflict", 409, EX_TEMPFAIL,
         "Another instance holds the object, or the object has changed.",
         "Wait until the other instance has ended, or read the current state, and try again."},
    [STATUS_NOT_READY] = {"not-ready", 503, EXIT_FAILURE, "The answer is not known yet.",
                          "Request it again in a moment."},
    [STATUS_INTERNAL] = {"internal", 500, EX_SOFTWARE, "This is a bug in reachd.",
                         "Report the bug with the detail and the log of that time."},
};

const struct status_info *status_info(enum status s)
{
    if ((unsigned)s >= STATUS_COUNT)
        s = STATUS_INTERNAL;
    return &table[s];
}

enum status status_from_slug(const char *slug)
{
    for (unsigned s = 0; slug && s < STATUS_COUNT; s++) {
        if (strcmp(slug, table[s].slug) == 0)
            return (enum status)s;
    }
    return STATUS_INTERNAL;
}

static void fill(struct err *err, enum status s, const char *field, const char *hint,
                 const char *format, va_list args)
{
    char text[TEXT_BYTES];

    if (!err)
        return;
    /* The text goes through a copy, because the arguments may point into err->text itself. */
    if (vsnprintf(text, sizeof(text), format, args) < 0)
        text[0] = '\0';
    text_sanitize(text);
    *err = (struct err){.status = s, .field = field, .hint = hint};
    memcpy(err->text, text, sizeof(text));
}

enum status err_set(struct err *err, enum status s, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fill(err, s, NULL, NULL, format, args);
    va_end(args);
    return s;
}

enum status err_set_field(struct err *err, enum status s, const char *field, const char *format,
                          ...)
{
    va_list args;

    va_start(args, format);
    fill(err, s, field, NULL, format, args);
    va_end(args);
    return s;
}

enum status err_set_hint(struct err *err, enum status s, const char *hint, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fill(err, s, NULL, hint, format, args);
    va_end(args);
    return s;
}

enum status err_no_memory(struct err *err, const char *format, ...)
{
    char what[TEXT_BYTES];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    return err_set(err, STATUS_NO_MEMORY, "cannot allocate %s: out of memory", what);
}

const char *err_next_step(const struct err *err)
{
    return err->hint ? err->hint : status_info(err->status)->next_step;
}

enum status err_prefix(struct err *err, const char *format, ...)
{
    char context[TEXT_BYTES];
    char text[2 * TEXT_BYTES + sizeof(": ")];
    va_list args;

    if (!err)
        return STATUS_INTERNAL;
    va_start(args, format);
    if (vsnprintf(context, sizeof(context), format, args) < 0)
        context[0] = '\0';
    va_end(args);
    (void)snprintf(text, sizeof(text), "%s: %s", context, err->text);
    text[TEXT_BYTES - 1] = '\0';
    text_sanitize(text);
    memcpy(err->text, text, TEXT_BYTES);
    return err->status;
}
