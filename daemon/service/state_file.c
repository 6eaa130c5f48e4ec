/* state_file.c: see state_file.h. */
#include "service/state_file.h"

#include "base/log.h"

#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Creates the directory of `path`, one level; an existing one is fine. */
static void state_file_make_directory(const char *path)
{
    char *copy = strdup(path);

    if (copy && mkdir(dirname(copy), 0755) < 0 && errno != EEXIST)
        log_warning("cannot make the state directory of %s: %s", path, strerror(errno));
    free(copy);
}

enum status state_file_open(const struct config *config, struct store **out, struct err *err)
{
    const bool in_memory = strcmp(config->state, ":memory:") == 0;
    /* A daemon that serves can wait for the disk; one measurement cannot. */
    const bool degraded = config->mode == CONFIG_SERVE && !config->state_fallback_memory;

    if (!in_memory && (config->demo || !config->state_given))
        state_file_make_directory(config->state);
    enum status status = degraded ? store_open_degraded(config->state, out, err)
                                  : store_open(config->state, out, err);

    if (status && !in_memory && config->state_fallback_memory) {
        log_warning("%s; using memory instead: what is measured now is lost at the end",
                    err ? err->text : "the state file cannot be used");
        status = store_open(":memory:", out, err);
    }
    return status;
}
