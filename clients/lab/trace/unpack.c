/* unpack.c: see unpack.h. */
#include "clients/lab/trace/unpack.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>

enum { PATH_BYTES = 4096, SHELL_NOT_FOUND = 127 };

struct unpacker {
    const char *suffix, *program, *package;
};

static const struct unpacker *find_unpacker(const char *path)
{
    static const struct unpacker known[] = {
        {".xz", "xz", "xz-utils"}, {".zst", "zstd", "zstd"}, {".gz", "gzip", "gzip"}};
    const size_t length = strlen(path);

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const size_t end = strlen(known[i].suffix);
        if (length >= end && strcmp(path + length - end, known[i].suffix) == 0)
            return &known[i];
    }
    return NULL;
}

enum status unpack_open(const char *path, struct unpack *out, struct err *err)
{
    char command[PATH_BYTES + 32];

    *out = (struct unpack){.in = fopen(path, "re"), .with = find_unpacker(path)};
    if (!out->in)
        return err_set(err, STATUS_IO, "cannot open %s: %s", path, strerror(errno));
    if (!out->with)
        return STATUS_OK;
    (void)fclose(out->in);
    out->in = NULL;
    if (strchr(path, '\'') || strlen(path) >= PATH_BYTES)
        return err_set(err, STATUS_INVALID_ARGUMENT,
                       "cannot unpack %s: the name has a quote or is too long", path);
    (void)snprintf(command, sizeof command, "%s -dc -- '%s'", out->with->program, path);
    out->in = popen(command, "re");
    return out->in
               ? STATUS_OK
               : err_set(err, STATUS_IO, "cannot run %s: %s", out->with->program, strerror(errno));
}

enum status unpack_close(struct unpack *u, enum status s, struct err *err)
{
    int ended;

    if (!u->with) {
        (void)fclose(u->in);
        return s;
    }
    ended = pclose(u->in);
    if (WIFEXITED(ended) && WEXITSTATUS(ended) == SHELL_NOT_FOUND)
        return err_set(err, STATUS_NOT_SUPPORTED,
                       "%s is not installed: install the package %s, or unpack the file first",
                       u->with->program, u->with->package);
    if (WIFEXITED(ended) && ended != 0)
        return err_set(err, STATUS_CORRUPT, "%s failed: the file is damaged or truncated",
                       u->with->program);
    return s;
}
