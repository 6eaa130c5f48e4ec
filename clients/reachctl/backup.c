/* backup.c: reachctl backup copies the state file, with or without a running daemon.
 *
 * The daemon takes no part. SQLite allows the file to be read concurrently, so no request waits for
 * the copy. No route can make the daemon write to a path, and the permission to read the state file
 * is the permission to copy it. */
#include "clients/reachctl/client.h"

#include "store/store.h"
#include "store/store_path.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

enum exit_code command_backup(struct client *client, const struct options *options)
{
    char path[PATH_MAX];
    const char *const state = options->state ? options->state : path;
    struct err err = {0};
    uint64_t rows = 0;
    enum status s;

    (void)client; /* this command needs no daemon */
    store_default_path(path, sizeof path);
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
        printf("%s: %llu rows, no errors\n", options->operand, (unsigned long long)rows);
    return EXIT_DONE;
}
