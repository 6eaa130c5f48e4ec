/* nfd.c: reachctl nfd: labels of this node in a feature file of node feature discovery (NFD).
 *
 * A program of its own and not a thread of the daemon, because a label implies that the daemon
 * responds: if it hangs or is gone, its labels are not renewed and expire. It also keeps a
 * directory of the host out of the sandbox of a process that opens GPUs.
 *
 * NFD may read at any time. So the text is written to a file whose name begins with a dot, which
 * NFD ignores, and renamed when it is complete (NFD, customization guide, "Feature files").
 */
#include "clients/reachctl/client.h"
#include "clients/reachctl/labels.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char DEFAULT_DIR[] = "/etc/kubernetes/node-feature-discovery/features.d";
/* ".internal" is reserved for private use and will never be in the DNS. */
static const char DEFAULT_NAMESPACE[] = "reachd.internal";

enum {
    DEFAULT_EXPIRES_S = 180,
    EXPIRES_PERIODS = 3, /* so that one late answer costs no label */
    MAX_SECONDS = 86400,
    TIME_BYTES = 24,
    PATH_BYTES = 4096,
    MAX_FILE_BYTES = 65536, /* NFD ignores a larger one */
    LINE_BYTES = LABEL_NAMESPACE_BYTES + 2 * LABEL_BYTES + 2,
    HEAD_BYTES = 256,
};
_Static_assert((int)HEAD_BYTES + (int)LABELS_MAX * (int)LINE_BYTES <= (int)MAX_FILE_BYTES,
               "the largest file that can be written is one that NFD reads");

struct plan {
    const char *dir;
    const char *label_namespace;
    unsigned every_s; /* 0: once */
    unsigned expires_s;
};

/* Accepts a number from 1 to MAX_SECONDS; NULL leaves `*out` as it is. */
static bool read_seconds(const char *text, unsigned *out)
{
    char *end = NULL;
    unsigned long value;

    if (!text)
        return true;
    errno = 0;
    value = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || value < 1 || value > MAX_SECONDS)
        return false;
    *out = (unsigned)value;
    return true;
}

static enum exit_code read_plan(const struct options *options, struct plan *out)
{
    *out = (struct plan){.dir = options->dir ? options->dir : DEFAULT_DIR,
                         .label_namespace = options->label_namespace ? options->label_namespace
                                                                     : DEFAULT_NAMESPACE};
    if (!read_seconds(options->interval, &out->every_s) ||
        !read_seconds(options->ttl, &out->expires_s))
        return client_usage_error("--interval and --ttl are seconds, 1 to 86400", NULL);
    if (out->expires_s == 0)
        out->expires_s = out->every_s ? EXPIRES_PERIODS * out->every_s : DEFAULT_EXPIRES_S;
    if (out->expires_s <= out->every_s)
        return client_usage_error(
            "labels that expire before they are renewed come and go: --ttl must be "
            "more than --interval",
            NULL);
    if (!labels_namespace_good(out->label_namespace))
        return client_usage_error("--namespace is a DNS name in lower case", NULL);
    if (options->json)
        return client_usage_error("nfd writes no JSON; map --json does", NULL);
    return EXIT_DONE;
}

static void print_labels(const struct labels *labels, const struct plan *plan, FILE *out)
{
    char expiry[TIME_BYTES];

    clock_rfc3339(clock_wall_seconds() + plan->expires_s, expiry, sizeof(expiry));
    fprintf(out,
            "# Written by reachctl nfd, and renewed for as long as reachd answers.\n"
            "# +expiry-time=%s\n",
            expiry);
    labels_print(labels, plan->label_namespace, out);
}

/* Writes a new file whose name begins with a dot and renames it. */
static enum status replace_file(const struct labels *labels, const struct plan *plan,
                                struct err *err)
{
    char path[PATH_BYTES];
    char dotted[PATH_BYTES];
    const int length = snprintf(dotted, sizeof(dotted), "%s/.reachd.XXXXXX", plan->dir);
    enum status status = STATUS_OK;
    FILE *file = NULL;
    int fd = -1;

    if (length < 0 || length >= (int)sizeof(dotted))
        return err_set(err, STATUS_INVALID_ARGUMENT, "the name of the directory is too long");
    snprintf(path, sizeof(path), "%s/reachd", plan->dir);
    fd = mkostemp(dotted, O_CLOEXEC);
    if (fd < 0)
        return err_set(err, STATUS_IO, "cannot write in %.200s: %s", plan->dir, strerror(errno));
    file = fdopen(fd, "w");
    if (!file) {
        close(fd);
        status = err_set(err, STATUS_NO_MEMORY, "no memory");
        goto out;
    }
    print_labels(labels, plan, file);
    if (fflush(file) != 0 || ferror(file) || fchmod(fd, 0644) != 0 || fsync(fd) != 0)
        status = err_set(err, STATUS_IO, "cannot write %.200s: %s", dotted, strerror(errno));
    if (fclose(file) != 0 && status == STATUS_OK)
        status = err_set(err, STATUS_IO, "cannot write %.200s: %s", dotted, strerror(errno));
    if (status == STATUS_OK && rename(dotted, path) != 0)
        status = err_set(err, STATUS_IO, "cannot rename to %.200s: %s", path, strerror(errno));
out:
    if (status != STATUS_OK)
        unlink(dotted);
    return status;
}

/* Delays signals that end this program until the rename, so that no partial file remains. */
static enum status replace_whole(const struct labels *labels, const struct plan *plan,
                                 struct err *err)
{
    enum status status;
    sigset_t ends;
    sigset_t before;

    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGHUP);
    sigprocmask(SIG_BLOCK, &ends, &before);
    status = replace_file(labels, plan, err);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return status;
}

static enum exit_code renew(struct client *client, const struct plan *plan)
{
    struct client_answer answer;
    struct labels labels;
    struct err err = {0};
    enum status status;
    enum exit_code exit_code = client_get(client, "/v1/fingerprints", NULL, &answer);

    if (exit_code != EXIT_DONE)
        return exit_code;
    status = labels_read(answer.json, &labels, &err);
    client_answer_free(&answer);
    if (status == STATUS_OK && labels.skipped > 0)
        fprintf(stderr, "reachctl: %u GPUs are in no class, their fingerprints are invalid: %s\n",
                labels.skipped, labels.why.text);
    if (status == STATUS_OK && strcmp(plan->dir, "-") == 0)
        print_labels(&labels, plan, stdout);
    else if (status == STATUS_OK)
        status = replace_whole(&labels, plan, &err);
    if (status == STATUS_OK)
        return EXIT_DONE;
    fprintf(stderr, "reachctl: %s\n", err.text);
    return EXIT_FAILED;
}

enum exit_code command_nfd(struct client *client, const struct options *options)
{
    struct plan plan;
    enum exit_code exit_code = read_plan(options, &plan);

    if (exit_code != EXIT_DONE)
        return exit_code;
    exit_code = renew(client, &plan);
    /* A failure has been printed; the existing labels expire. */
    while (plan.every_s > 0) {
        const struct timespec pause = {.tv_sec = plan.every_s};
        fflush(stdout);
        nanosleep(&pause, NULL);
        renew(client, &plan);
    }
    return exit_code;
}
