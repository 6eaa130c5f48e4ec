/* unpack.h: opens a file that may be compressed (.xz, .zst or .gz). The unpacking program runs in
 * parallel with the reader. */
#pragma once

#include "base/status.h"

#include <stdio.h>

struct unpack {
    FILE *in;
    const struct unpacker *with; /* NULL if the file is not compressed */
};

/* Returns STATUS_IO if the file or the program cannot be opened. Returns STATUS_INVALID_ARGUMENT if
 * the name of a compressed file contains a quote or is too long. */
enum status unpack_open(const char *path, struct unpack *out, struct err *err);

/* Closes the file. `s` and `err` are the result of reading it. Returns STATUS_NOT_SUPPORTED if the
 * program is not installed, STATUS_CORRUPT if the program failed, and `s` otherwise. */
enum status unpack_close(struct unpack *u, enum status s, struct err *err);
