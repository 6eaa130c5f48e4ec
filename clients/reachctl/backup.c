/* backup.c: reachctl backup: a copy of the state file, while the daemon works or without one.
 *
 * The daemon is not asked. The file is read beside it, as SQLite allows, so no request has to wait
 * for megabytes, no route can make the daemon write to a path, and who may read the state file may
 * copy it: the permission of the file is the permission to copy.
 */
#include "clients/reachctl/client.h"

#include "store/store.h"

#include <stdio.h>
#include <unistd.h>

enum exit_code command_backup(struct client *client, const struct options *options)
{
    const char *const state = options->state ? options->state : "/var/lib/reachd/reachd.db";
    struct err err = {0};
    uint64_t rows = 0;
    enum status s;

    (void)client; /* nobody is asked */
    s = store_backup(state, options->operand, &rows, &err);
    if (s != STATUS_OK) {
        if (s == STATUS_NOT_FOUND)
            err.hint = "Name the daemon's database with --state.";
        if (s == STATUS_CONFLICT && access(options->operand, F_OK) == 0)
            err.hint = "Name a file that does not exist yet.";
        return client_print_error(&err);
    }
    if (options->json)
        printf("{\"rows\": %llu}\n", (unsigned long long)rows);
    else
        printf("%s: %llu rows, all of them good\n", options->operand, (unsigned long long)rows);
    return EXIT_DONE;
}
