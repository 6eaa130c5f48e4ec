/* token.c: reads a small secret. It refuses an empty file, a file with two lines, and a file that
 * every user can read. See token.h. */
#include "service/token.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TOKEN_OTHERS = S_IRWXO };

/* Reads the text of the file without the line feed at its end. One byte more than allowed is read,
 * so that a longer text is noticed. */
static enum status token_read(int fd, const char *path, char out[TOKEN_BYTES], struct err *err)
{
    char text[TOKEN_MAX_CHARS + 2];
    ssize_t got = read(fd, text, sizeof text);

    if (got < 0)
        return err_set(err, STATUS_IO, "cannot read the token in %s: %s", path, strerror(errno));
    size_t length = (size_t)got;

    if (length > 0 && text[length - 1] == '\n')
        length--;
    for (size_t i = 0; i < length; i++) {
        if (text[i] <= ' ' || text[i] > '~')
            return err_set(err, STATUS_INVALID_ARGUMENT,
                           "the token in %s must contain only visible ASCII characters", path);
    }
    if (length < TOKEN_MIN_CHARS || length > TOKEN_MAX_CHARS)
        return err_set(err, STATUS_INVALID_ARGUMENT,
                       "the token in %s must have %d to %d characters", path, TOKEN_MIN_CHARS,
                       TOKEN_MAX_CHARS);
    memcpy(out, text, length);
    out[length] = '\0';
    return STATUS_OK;
}

enum status token_load(const char *path, char out[TOKEN_BYTES], struct err *err)
{
    const char *folder = getenv("CREDENTIALS_DIRECTORY");
    char credential[PATH_MAX];
    bool given = path != NULL;
    struct stat st;

    memset(out, 0, TOKEN_BYTES);
    if (!given && !folder)
        return STATUS_OK;
    if (!given) {
        snprintf(credential, sizeof credential, "%s/%s", folder, TOKEN_CREDENTIAL);
        path = credential;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

    if (fd < 0 && !given && errno == ENOENT)
        return STATUS_OK;
    if (fd < 0 || fstat(fd, &st) < 0) {
        int error = errno;

        if (fd >= 0)
            close(fd);
        return err_set(err, error == ENOENT ? STATUS_INVALID_ARGUMENT : STATUS_IO,
                       "cannot open the token file %s: %s", path, strerror(error));
    }
    enum status status =
        st.st_mode & TOKEN_OTHERS
            ? err_set(
                  err, STATUS_INVALID_ARGUMENT,
                  "every user may open the token file %s; restrict the file with chmod o=", path)
            : token_read(fd, path, out, err);

    close(fd);
    return status;
}
