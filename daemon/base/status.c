/* status.c: the table of all statuses, and the functions that fill a struct err.
 *
 * Clients see the table: the API and reachctl print slug, message and next step. So each next step
 * is an action that the reader can take, and slugs never change. */
#include "base/status.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES = sizeof(((struct err *)NULL)->text) };

static const struct status_info table[STATUS_COUNT] = {
    [STATUS_OK] = {"ok", "Done.", "Nothing to do."},
    [STATUS_INVALID_ARGUMENT] = {"invalid-argument",
                                 "The request asks for something that has no meaning.",
                                 "Correct the value that the detail names and try again."},
    [STATUS_TOO_MANY_BYTES] = {"too-many-bytes", "The request is for more memory than there is.",
                               "Ask for no more than the detail says there is."},
    [STATUS_NOT_FOUND] =
        {"not-found", "There is nothing under this name.",
         "Use the name of something that exists; the detail says which name is wrong."},
    [STATUS_NOT_APPLICABLE] = {"not-applicable", "It does not apply to this GPU or this request.",
                               "Nothing to do: this is an answer, not a failure."},
    [STATUS_NOT_OBSERVABLE] =
        {"not-observable", "It was looked for, and the hardware gives no signal.",
         "Nothing to do: this is an answer. A deeper measurement may look further."},
    [STATUS_NOT_SUPPORTED] =
        {"not-supported", "This GPU, driver or build cannot do it.",
         "The detail says what is missing: use a build, a release, a driver or "
         "a GPU that has it."},
    [STATUS_NOT_PERMITTED] = {"not-permitted", "The system does not permit it.",
                              "Raise the limit, or grant the permission, that the detail names."},
    [STATUS_NO_MEMORY] = {"no-memory", "The host has no memory left.",
                          "Free memory on this host, or raise the limit of the process, and try "
                          "again."},
    [STATUS_NO_DRIVER] = {"no-driver", "No NVIDIA driver, or the driver finds no device.",
                          "If nvidia-smi lists the GPU, check what hides it from this process: "
                          "CUDA_VISIBLE_DEVICES, the device files, a container. Otherwise install "
                          "the NVIDIA driver; without a GPU, use a simulated one."},
    [STATUS_DRIVER_TOO_OLD] = {"driver-too-old", "The NVIDIA driver is too old.",
                               "Install a driver at least as new as the detail says."},
    [STATUS_GPU_BUSY] = {"gpu-busy", "Another process holds the GPU.",
                         "Wait until the other process is done, or set the compute mode to "
                         "default, and measure again."},
    [STATUS_GPU_NO_MEMORY] = {"gpu-no-memory",
                              "The GPU has too little free memory for a useful probe.",
                              "Free memory on the GPU: what the detail says, and some hundred MiB "
                              "for a CUDA context. Then measure again."},
    [STATUS_GPU_LOST] = {"gpu-lost", "The GPU or its context is gone.",
                         "Look for Xid lines in the kernel log; measure again once nvidia-smi "
                         "lists the GPU."},
    [STATUS_GPU_FAULT] = {"gpu-fault", "A driver call or a kernel failed.",
                          "Measure again; if it fails again, report the detail together with the "
                          "driver version."},
    [STATUS_GPU_HUNG] =
        {"gpu-hung", "A call of the driver does not return.",
         "Look for Xid lines in the kernel log; do not kill the process that hangs, "
         "which may freeze the GPU; drain the node and reset or restart it."},
    [STATUS_DEADLINE] = {"deadline", "It took longer than it may.",
                         "Try again when the GPU is less busy; if nvidia-smi does not answer "
                         "either, look for Xid lines in the kernel log."},
    [STATUS_CANCELLED] = {"cancelled", "It was cancelled.",
                          "Start it again if it is still wanted."},
    [STATUS_DISTURBED] = {"disturbed", "The measurement contradicts itself.",
                          "Measure again when no other job runs on the GPU."},
    [STATUS_INCONCLUSIVE] = {"inconclusive", "The measurement found no answer.",
                             "Measure again when no other job runs on the GPU; if it fails again, "
                             "report the detail together with the GPU's name."},
    [STATUS_PROTOCOL] = {"protocol", "The peer sent an invalid message.",
                         "Check that both sides are reachd, and of the same release."},
    [STATUS_IO] = {"io", "Reading or writing failed.",
                   "Check that what the detail names exists and may be used by this process."},
    [STATUS_CORRUPT] = {"corrupt", "Stored data fails its check.",
                        "Move the damaged file away, keep it for a look, and begin with a new one "
                        "or a backup."},
    [STATUS_READ_ONLY] = {"read-only", "The state file cannot be written.",
                          "Give this process write access to the file and its directory, or name "
                          "another file."},
    [STATUS_FULL] = {"full", "There is no room left.",
                     "Make room for what the detail says and try again."},
    [STATUS_CONFLICT] = {"conflict", "Another instance holds it, or it changed meanwhile.",
                         "Wait until the other one has ended, or look at what is there now, and "
                         "try again."},
    [STATUS_NOT_READY] = {"not-ready", "It is not known yet.", "Ask again in a moment."},
    [STATUS_INTERNAL] = {"internal", "A bug in reachd.",
                         "Report it with the detail and the log around it."},
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
