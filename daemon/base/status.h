/* status.h: the one error domain of the project.
 *
 * Every call that can fail returns `enum status` and takes, as its last argument, a `struct err *`
 * that may be NULL. On failure the callee fills it with one sentence for a person. Numbers of
 * other domains (CUresult, SQLite codes, errno) appear inside that sentence and are never
 * returned. STATUS_OK is 0; nothing else about the values is promised.
 *
 *     if (!f) return err_set(err, STATUS_IO, "cannot open %s: %s", path, strerror(errno));
 *
 * Most failures of one status have the same next step, which is in the table. A failure that needs
 * another hint carries its own (err_set_hint), so that a hint always fits the request.
 *
 * "Nothing to measure" (STATUS_NOT_APPLICABLE) and "the hardware gives no signal"
 * (STATUS_NOT_OBSERVABLE) are answers, kept apart from every failure.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>

enum status {
    STATUS_OK = 0,
    STATUS_INVALID_ARGUMENT, /* the request has no meaning */
    STATUS_TOO_MANY_BYTES,   /* the request is for more memory than there is */
    STATUS_NOT_FOUND,
    STATUS_NOT_APPLICABLE, /* the request does not apply here; not a failure */
    STATUS_NOT_OBSERVABLE, /* measured, and the hardware gives no signal */
    STATUS_NOT_SUPPORTED,  /* this GPU, driver or build lacks the function */
    STATUS_NOT_PERMITTED,  /* a limit of the process or of the system forbids the call */
    STATUS_NO_MEMORY,      /* host memory ran out */
    STATUS_NO_DRIVER,      /* there is no libcuda.so.1, or the driver finds no device */
    STATUS_DRIVER_TOO_OLD,
    STATUS_GPU_BUSY,      /* the compute mode, or another process, excludes this process */
    STATUS_GPU_NO_MEMORY, /* not enough free memory on the device for a useful probe */
    STATUS_GPU_LOST,      /* the device or its context is gone; only a new process helps */
    STATUS_GPU_FAULT,     /* a driver call or kernel failed */
    STATUS_GPU_HUNG,      /* a driver call does not return, and its process does not end */
    STATUS_DEADLINE,      /* the call took longer than it may */
    STATUS_CANCELLED,
    STATUS_DISTURBED,    /* the measurement contradicts itself; measure again */
    STATUS_INCONCLUSIVE, /* the measurement found no answer; measure again */
    STATUS_PROTOCOL,     /* unexpected message from a peer */
    STATUS_IO,
    STATUS_CORRUPT,   /* stored data fails its check */
    STATUS_READ_ONLY, /* the state file cannot be written */
    STATUS_FULL,      /* a disk, a queue or a table has no room */
    STATUS_CONFLICT,  /* another instance holds the object, or has changed it */
    STATUS_NOT_READY, /* the answer is not known yet */
    STATUS_INTERNAL,  /* a bug in reachd */
    STATUS_COUNT
};

/* One failure, as a message to a person. It is a plain value, which is copied by assignment. */
struct err {
    enum status status;
    const char *field; /* static: the parameter of the request to blame; NULL if there is none */
    const char *hint;  /* static: the next step; NULL means the hint of the status */
    char text[400];    /* one sentence, no newline, always terminated */
};

/* Properties of every failure of one status. The strings are static and never NULL. */
struct status_info {
    const char *slug;      /* stable, lower case with dashes: "gpu-busy" */
    unsigned http_status;  /* status code of the API (RFC 9110) */
    int exit_code;         /* exit status of reachd (sysexits.h), by which a service manager decides
                              whether to restart it. The argument that is invalid there is a valid
                              option that cannot be satisfied. */
    const char *message;   /* a description of the status */
    const char *next_step; /* a next step that fits every source of this status */
};

/* Describes `s`; an unknown value is described as STATUS_INTERNAL. */
const struct status_info *status_info(enum status s);

/* Returns the status with this slug, or STATUS_INTERNAL if no status has it. */
enum status status_from_slug(const char *slug);

/* Fills `*err` (if not NULL) and returns `s`, so that a failing call can `return err_set(...)`. */
enum status err_set(struct err *err, enum status s, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Does the same as err_set, and names the parameter to blame. */
enum status err_set_field(struct err *err, enum status s, const char *field, const char *format,
                          ...) __attribute__((format(printf, 4, 5)));

/* Does the same as err_set, with a hint: a static string with the next step. */
enum status err_set_hint(struct err *err, enum status s, const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Fills `*err` with "cannot allocate ...: out of memory" and returns STATUS_NO_MEMORY. */
enum status err_no_memory(struct err *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Returns the next step, which is never NULL: the error's own hint, or the hint of its status. */
const char *err_next_step(const struct err *err);

/* Puts "context: " before the existing text and returns the status of the err. */
enum status err_prefix(struct err *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
