/* survey_db.c: see survey_db.h. */
#include "clients/reachctl/survey_db.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Each folder on the way to a file. */
static enum status make_folders(const char *path, struct err *err)
{
    char folder[PATH_MAX];

    snprintf(folder, sizeof(folder), "%s", path);
    for (char *at = strchr(folder + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        if (mkdir(folder, 0755) != 0 && errno != EEXIST)
            return err_set(err, STATUS_IO, "cannot make %.200s: %s", folder, strerror(errno));
        *at = '/';
    }
    return STATUS_OK;
}

static enum status default_path(char *out, size_t size, struct err *err)
{
    const char *const data = getenv("XDG_DATA_HOME");
    const char *const home = getenv("HOME");
    int n;

    if (data && *data == '/')
        n = snprintf(out, size, "%s/reachd/fleet.db", data);
    else if (home && *home == '/')
        n = snprintf(out, size, "%s/.local/share/reachd/fleet.db", home);
    else
        return err_set(err, STATUS_INVALID_ARGUMENT,
                       "there is no home directory: say with --db where to keep surveys");
    return n > 0 && (size_t)n < size ? make_folders(out, err)
                                     : err_set(err, STATUS_INVALID_ARGUMENT,
                                               "the path of the home directory is too long");
}

enum status survey_db_open(const char *where, struct fleet_db **out, struct err *err)
{
    char path[PATH_MAX];
    enum status s;

    *out = NULL;
    if (!where)
        where = getenv("REACHD_FLEET_DB");
    if (where && *where)
        return fleet_open(where, out, err);
    s = default_path(path, sizeof(path), err);
    return s == STATUS_OK ? fleet_open(path, out, err) : s;
}
