/* unpack.h: a file that may be compressed (.xz, .zst, .gz), read as a stream through the program
 * that unpacks it. */
#ifndef REACH_CLIENTS_LAB_UNPACK_H
#define REACH_CLIENTS_LAB_UNPACK_H

#include "base/status.h"

#include <stdio.h>

struct unpack {
    FILE *in;
    const struct unpacker *with; /* NULL: the file is plain */
};

/* STATUS_IO, STATUS_INVALID_ARGUMENT (a quote in the name). */
enum status unpack_open(const char *path, struct unpack *out, struct err *err);

/* Closes it. `s`, with `err`, is what reading came to. The result is STATUS_NOT_SUPPORTED if the
 * program is not installed, STATUS_CORRUPT if it failed, and otherwise `s`. */
enum status unpack_close(struct unpack *u, enum status s, struct err *err);

#endif
