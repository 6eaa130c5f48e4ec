/* find.h: finds the library of NVIDIA's Sanitizer API, which is loaded from the user's installation
 * and never shipped. The functions read files and the environment, and have no global state. */
#pragma once

#include "base/status.h"

#include <limits.h>

#define FIND_SANITIZER_NAME "libsanitizer-public.so"

/* Writes the absolute path of the library to `out`. `named` is a library or its folder; if `named`
 * is NULL, the environment variable REACH_SANITIZER replaces it. Without a name, CUDA toolkits are
 * searched first, and then the Python environments of this process and of `program`: a path, or a
 * name in PATH. Returns STATUS_NOT_FOUND if there is no library. */
enum status find_sanitizer(const char *named, const char *program, char out[PATH_MAX],
                           struct err *err);

/* Writes the absolute path of the library that is loaded into the program. The library lies beside
 * this program or in one of the folders of an installation; the environment variable
 * REACH_PROFILE_LIBRARY names another library. Returns STATUS_NOT_FOUND if there is no library. */
enum status find_injected(char out[PATH_MAX], struct err *err);

/* Writes the path that execvp(3) would run for `program`. Symbolic links are kept, because the
 * Python of a virtual environment is a link. Returns STATUS_NOT_FOUND if there is no executable. */
enum status find_program(const char *program, char out[PATH_MAX], struct err *err);
