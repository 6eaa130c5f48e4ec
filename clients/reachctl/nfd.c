/* nfd.c: reachctl nfd: labels of this node in a feature file of node feature discovery (NFD).
 *
 * A program of its own and not a thread of the daemon, because a label implies that the daemon
 * responds: if it hangs or is gone, its labels are not renewed and expire. It also keeps a
 * directory of the host out of the sandbox of a process that opens GPUs.
 *
 * NFD may read at any time. So the text is written to a file whose name begins with a dot, which
 * NFD ignores, and renamed when it is complete (NFD, customization guide, "Feature files").
 *
 * The labels are few, short, and only classes and hashes; the daemon has the details.
 * A name or a value has at most 63 letters, digits, '-', '_' and '.', and begins and ends with a
 * letter or a digit (Kubernetes, "Labels and Selectors"). Texts of the daemon are made to fit.
 *
 * A node has several GPUs, a label one value. So there are two labels for each property: one for
 * the node, "mixed" if its GPUs differ, and one per value with the number of GPUs that have it:
 *
 *     map=2d8cbf8bf97f        map.2d8cbf8bf97f=4
 */
#include "clients/reachctl/chip.h"
#include "clients/reachctl/client.h"
#include "clients/reachctl/node.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/units.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- labels ---- */

enum {
    /* each property once, and once per value; count, generation */
    LABELS_MAX = 5 * (1 + REACH_MAX_GPUS) + 2,
};

enum labels_property {
    LABELS_STATE,
    LABELS_ORIGIN,
    LABELS_CLASS,
    LABELS_MAP,
    LABELS_WINDOWS,
    LABELS_PROPERTIES
};

/* The words of one property and the number of GPUs with each. */
struct labels_tally {
    uint32_t count;
    struct {
        char word[NODE_WORD_BYTES];
        uint32_t gpus;
    } of[REACH_MAX_GPUS];
};

struct labels {
    size_t gpu_count;
    uint64_t generation; /* changes with any fingerprint, whatever the order of the GPUs */
    struct labels_tally tallies[LABELS_PROPERTIES];
    uint32_t skipped; /* invalid fingerprints; `why` has the reason of the last */
    struct err why;
};

static const char *const property_names[] = {
    [LABELS_STATE] = "state", [LABELS_ORIGIN] = "origin",   [LABELS_CLASS] = "topology-class",
    [LABELS_MAP] = "map",     [LABELS_WINDOWS] = "windows",
};

static bool is_alphanumeric(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Makes `text` a label of at most `room` - 1 characters: invalid characters become '-', and those
 * that may not begin or end a label are removed. */
static void clean(const char *text, char *out, size_t room)
{
    size_t length = 0;

    while (*text && !is_alphanumeric(*text))
        text++;
    for (; *text && length + 1 < room; text++)
        out[length++] = (char)(is_alphanumeric(*text) || strchr("-_.", *text) ? *text : '-');
    while (length > 0 && !is_alphanumeric(out[length - 1]))
        length--;
    out[length] = '\0';
    if (length == 0)
        snprintf(out, room, "unknown");
}

static void count_word(struct labels *labels, enum labels_property p, const char *text)
{
    /* Room for the property's name and a dot before it. */
    const size_t room = NODE_WORD_BYTES - strlen(property_names[p]) - 1;
    struct labels_tally *t = &labels->tallies[p];
    char word[NODE_WORD_BYTES];
    uint32_t i = 0;

    clean(text, word, room);
    while (i < t->count && strcmp(t->of[i].word, word) != 0)
        i++;
    if (i == t->count) {
        memcpy(t->of[i].word, word, sizeof(word));
        t->count++;
    }
    t->of[i].gpus++;
}

static void count_chip(struct labels *labels, const struct chip *chip)
{
    char word[NODE_WORD_BYTES];

    count_word(labels, LABELS_ORIGIN, origin_name(chip->fp.gpu.origin));
    node_class(chip, word);
    count_word(labels, LABELS_CLASS, word);
    node_map(chip, word);
    count_word(labels, LABELS_MAP, word);
    node_windows(chip, word);
    count_word(labels, LABELS_WINDOWS, word);
}

static enum status count_gpu(const json_t *gpu, struct labels *out, struct err *err)
{
    const char *state = json_string_value(json_object_get(gpu, "state"));
    const char *uuid = json_string_value(json_object_get(gpu, "uuid"));
    const char *id = json_string_value(json_object_get(gpu, "fingerprint_id"));
    struct chip *chip;

    if (!state || !uuid)
        return err_set(err, STATUS_PROTOCOL, "a GPU of the answer has no state or no UUID");
    count_word(out, LABELS_STATE, state);
    /* A sum, so that it does not depend on the order of the GPUs. */
    out->generation += hash_bytes(hash_bytes(HASH_START, uuid, strlen(uuid) + 1), id ? id : "",
                                  id ? strlen(id) : 0);
    if (!node_is_current(gpu, state))
        return STATUS_OK;
    chip = calloc(1, sizeof(*chip));
    if (!chip)
        return err_set(err, STATUS_NO_MEMORY, "no memory");
    if (fingerprint_from_json(json_object_get(gpu, "fingerprint"), &chip->fp, &out->why) ==
        STATUS_OK) {
        chip_derive(chip);
        count_chip(out, chip);
    } else {
        out->skipped++;
    }
    free(chip);
    return STATUS_OK;
}

/* Reads the response to GET /v1/fingerprints. A GPU that is lost, or whose fingerprint is stale or
 * invalid, counts by its state and in no class. */
static enum status labels_read(const json_t *document, struct labels *out, struct err *err)
{
    const json_t *gpus = json_object_get(document, "gpus");
    enum status status = STATUS_OK;

    *out = (struct labels){.gpu_count = json_array_size(gpus)};
    if (!json_is_array(gpus) || out->gpu_count > REACH_MAX_GPUS)
        return err_set(err, STATUS_PROTOCOL, "the answer has no list of at most %d GPUs",
                       REACH_MAX_GPUS);
    for (size_t i = 0; i < out->gpu_count && status == STATUS_OK; i++)
        status = count_gpu(json_array_get(gpus, i), out, err);
    return status;
}

static void labels_print(const struct labels *labels, const char *namespace, FILE *out)
{
    fprintf(out, "%s/gpu.count=%zu\n%s/generation=%0*llx\n", namespace, labels->gpu_count,
            namespace, NODE_HASH_CHARS,
            (unsigned long long)(labels->generation >> (64 - 4 * NODE_HASH_CHARS)));
    for (int p = 0; p < LABELS_PROPERTIES; p++) {
        const struct labels_tally *t = &labels->tallies[p];
        if (t->count > 0)
            fprintf(out, "%s/%s=%s\n", namespace, property_names[p],
                    t->count == 1 ? t->of[0].word : "mixed");
        for (uint32_t i = 0; i < t->count; i++)
            fprintf(out, "%s/%s.%s=%u\n", namespace, property_names[p], t->of[i].word,
                    t->of[i].gpus);
    }
}

/* ---- the feature file ---- */

static const char DEFAULT_DIR[] = "/etc/kubernetes/node-feature-discovery/features.d";

enum {
    DEFAULT_EXPIRES_S = 180,
    EXPIRES_PERIODS = 3, /* so that one late answer costs no label */
    MAX_SECONDS = 86400,
    TIME_BYTES = 24,
    PATH_BYTES = 4096,
    MAX_FILE_BYTES = 65536, /* NFD ignores a larger one */
    LINE_BYTES = NODE_DOMAIN_BYTES + 2 * NODE_WORD_BYTES + 2,
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
                         .label_namespace =
                             options->label_namespace ? options->label_namespace : NODE_DOMAIN};
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
    if (!node_is_domain(out->label_namespace))
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
