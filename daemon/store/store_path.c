/* store_path.c: see store_path.h. Root and the user of the service use the directory of the system.
 * Other users use the state directory of the XDG base directory specification, because they cannot
 * write to the directory of the system. */
#include "store/store_path.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SYSTEM_FOLDER "/var/lib/reachd"
#define FILE_NAME     "reachd.db"

static bool has_system_folder(void)
{
    struct stat st;

    return geteuid() == 0 || (stat(SYSTEM_FOLDER, &st) == 0 && st.st_uid == geteuid());
}

void store_default_path(char *out, size_t out_size)
{
    const char *const state = getenv("XDG_STATE_HOME");
    const char *const home = getenv("HOME");
    int n = -1;

    if (!has_system_folder() && state && state[0] == '/')
        n = snprintf(out, out_size, "%s/reachd/" FILE_NAME, state);
    else if (!has_system_folder() && home && home[0] == '/')
        n = snprintf(out, out_size, "%s/.local/state/reachd/" FILE_NAME, home);
    if (n < 0 || (size_t)n >= out_size)
        (void)snprintf(out, out_size, SYSTEM_FOLDER "/" FILE_NAME);
}
