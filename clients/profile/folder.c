/* folder.c: implements folder.h. */
#include "clients/profile/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum status make_named(const char *keep, char out[PATH_MAX], struct err *err)
{
    if (mkdir(keep, 0777) != 0 && errno != EEXIST)
        return err_set(err, STATUS_IO, "cannot make the folder %s: %s", keep, strerror(errno));
    if (!realpath(keep, out) || access(out, W_OK | X_OK) != 0)
        return err_set(err, STATUS_IO, "cannot write to %s: %s", keep, strerror(errno));
    if (folder_count_recordings(out) > 0)
        return err_set_hint(err, STATUS_CONFLICT, "name another folder, or delete its files",
                            "%s has the recordings of another run", keep);
    return STATUS_OK;
}

enum status folder_make(const char *keep, char out[PATH_MAX], struct err *err)
{
    const char *const base = getenv("TMPDIR");
    char path[PATH_MAX];

    if (keep)
        return make_named(keep, out, err);
    (void)snprintf(path, sizeof(path), "%s/reach-profile-XXXXXX", base && base[0] ? base : "/tmp");
    if (!mkdtemp(path) || !realpath(path, out))
        return err_set_hint(err, STATUS_IO, "set TMPDIR, or name a folder with --keep FOLDER",
                            "cannot make the folder %s: %s", path, strerror(errno));
    return STATUS_OK;
}

unsigned folder_count_recordings(const char *folder)
{
    DIR *const dir = opendir(folder);
    const struct dirent *entry;
    unsigned count = 0;

    if (!dir)
        return 0;
    while ((entry = readdir(dir)))
        count += fnmatch("recording-*.json", entry->d_name, 0) == 0;
    (void)closedir(dir);
    return count;
}

void folder_remove(const char *folder)
{
    DIR *const dir = opendir(folder);
    const struct dirent *entry;

    if (!dir)
        return;
    while ((entry = readdir(dir)))
        (void)unlinkat(dirfd(dir), entry->d_name, 0); /* this does not remove folders */
    (void)closedir(dir);
    (void)rmdir(folder);
}
