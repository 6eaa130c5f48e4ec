/* state_file.c: see state_file.h.
 *
 * A disk that fails, is full, or is not mounted yet may recover, so the daemon starts and waits for
 * it. Waiting does not help if this user can never make or read the file, or if a newer release
 * wrote it. In these cases the daemon does not start.
 */
#include "service/state_file.h"

#include "base/log.h"
#include "store/store_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool state_file_in_memory(const struct config *config)
{
    return strcmp(config->state, ":memory:") == 0;
}

/* Returns whether to make missing directories: yes for the default path and in a demo. */
static bool state_file_makes_directory(const struct config *config)
{
    return config->demo || !config->state_given;
}

/* Replaces `path` by the path of its directory. */
static void state_file_up(char path[PATH_MAX])
{
    char copy[PATH_MAX];

    snprintf(copy, sizeof copy, "%s", path);
    snprintf(path, PATH_MAX, "%s", dirname(copy));
}

/* Makes `path` and the directories above it. Existing directories are allowed. */
static enum status state_file_make_directory(char path[PATH_MAX], struct err *err)
{
    const mode_t mode = geteuid() == 0 ? 0755 : 0700;

    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, mode); /* the next call reports a missing directory */
        *slash = '/';
    }
    return mkdir(path, mode) == 0 || errno == EEXIST ? STATUS_OK
                                                     : store_file_fail(err, errno, "create", path);
}

/* Checks that this user may make or read the file. Only permanent refusals count: permissions and
 * paths that lead nowhere. */
static enum status state_file_check_access(const struct config *config, struct err *err)
{
    char path[PATH_MAX];
    const int n = snprintf(path, sizeof path, "%s", config->state);
    int mode = R_OK;

    if (n < 0 || (size_t)n >= sizeof path)
        return err_set(err, STATUS_INVALID_ARGUMENT, "the path of the state file is too long");
    while (faccessat(AT_FDCWD, path, F_OK, AT_EACCESS) < 0 && errno == ENOENT) {
        state_file_up(path);
        if (mode == (W_OK | X_OK) && !state_file_makes_directory(config))
            return STATUS_OK; /* the directory may be created later */
        mode = W_OK | X_OK;
    }
    const int error = faccessat(AT_FDCWD, path, mode, AT_EACCESS) == 0 ? 0 : errno;

    if (error != EACCES && error != EPERM && error != ENOTDIR && error != ELOOP &&
        error != ENAMETOOLONG)
        return STATUS_OK;
    return err_set(err, STATUS_READ_ONLY,
                   "cannot %s the state file %s: %s; name another file with --state, or use "
                   "--state :memory:",
                   mode == R_OK ? "read" : "create", config->state, strerror(error));
}

enum status state_file_check(const struct config *config, struct err *err)
{
    struct err why = {0};
    enum status status;

    if (state_file_in_memory(config))
        return STATUS_OK;
    status = state_file_check_access(config, err);
    if (status)
        return status;
    status = store_file_inspect(config->state, &why);
    /* The store can repair other defects of the file. */
    return status == STATUS_NOT_SUPPORTED || status == STATUS_INVALID_ARGUMENT
               ? err_set(err, status, "%s", why.text)
               : STATUS_OK;
}

/* Opens the file. Makes its directory if requested. */
static enum status state_file_open_path(const struct config *config, struct store **out,
                                        struct err *err)
{
    /* A running daemon can wait for the disk, but a single measurement cannot. */
    const bool degraded = config->mode == CONFIG_SERVE && !config->state_fallback_memory;
    char directory[PATH_MAX];
    struct err why = {0};
    enum status status = state_file_check(config, err);

    if (status)
        return status;
    if (!state_file_in_memory(config) && state_file_makes_directory(config)) {
        snprintf(directory, sizeof directory, "%s", config->state);
        state_file_up(directory);
        if (state_file_make_directory(directory, &why))
            log_warning("%s", why.text);
    }
    return degraded ? store_open_degraded(config->state, out, err)
                    : store_open(config->state, out, err);
}

enum status state_file_open(const struct config *config, struct store **out, struct err *err)
{
    struct err why = {0};
    enum status status = state_file_open_path(config, out, &why);

    if (status && !state_file_in_memory(config) && config->state_fallback_memory) {
        log_warning("%s; using memory instead: results will be lost when reachd exits", why.text);
        return store_open(":memory:", out, err);
    }
    return status ? err_set(err, status, "%s", why.text) : STATUS_OK;
}
