/* labels.c: a node's GPUs as labels: each GPU has one word per property, and the words are counted.
 */
#include "clients/reachctl/labels.h"

#include "clients/reachctl/chip.h"

#include "base/hash.h"
#include "base/units.h"

#include <stdlib.h>
#include <string.h>

enum { SHORT_HASH = 12 };

static const char *const property_names[] = {
    [LABELS_STATE] = "state", [LABELS_ORIGIN] = "origin",   [LABELS_CLASS] = "topology-class",
    [LABELS_MAP] = "map",     [LABELS_WINDOWS] = "windows",
};

static bool is_alphanumeric(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Makes `text` fit a label of at most `room` - 1 characters: other characters become '-', what may
 * not stand at an end goes. */
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
    const size_t room = LABEL_BYTES - strlen(property_names[p]) - 1;
    struct labels_tally *t = &labels->tallies[p];
    char word[LABEL_BYTES];
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

/* "132sm-24g-64GiB": SMs, groups and the reach of a group, which is rounded so that one entry more
 * or less makes no other class. Chips of one class need not have the same map. */
static void class_of(const struct chip *chip, char *out)
{
    const struct maybe_u64 reach = chip->fp->windows.reach_bytes;
    const uint64_t unit = reach.v >= GIB ? GIB : MIB;
    size_t at = (size_t)snprintf(out, LABEL_BYTES, "%usm", chip->fp->gpu.sm_count);

    if (chip->group_count > 0)
        at += (size_t)snprintf(out + at, LABEL_BYTES - at, "-%ug", chip->group_count);
    if (IS_KNOWN(reach))
        snprintf(out + at, LABEL_BYTES - at, "-%llu%s",
                 (unsigned long long)((reach.v + unit / 2) / unit), unit == GIB ? "GiB" : "MiB");
}

/* How many windows cover all of the memory; where windows are no answer, what is. */
static void windows_of(const struct chip *chip, char *out)
{
    if (!chip->planned)
        snprintf(out, LABEL_BYTES, "unknown");
    else if (chip->plan.window_count > 0)
        snprintf(out, LABEL_BYTES, "%u", chip->plan.window_count);
    else
        snprintf(out, LABEL_BYTES, "%s",
                 chip->plan.advice == ADVICE_NOTHING_TO_DO ? "1" : advice_name(chip->plan.advice));
}

static void count_chip(struct labels *labels, const struct chip *chip)
{
    char word[LABEL_BYTES];

    count_word(labels, LABELS_ORIGIN, origin_name(chip->fp->gpu.origin));
    class_of(chip, word);
    count_word(labels, LABELS_CLASS, word);
    snprintf(word, sizeof(word), "%.*s", SHORT_HASH, chip->map[0] ? chip->map + strlen("map") : "");
    count_word(labels, LABELS_MAP, word);
    windows_of(chip, word);
    count_word(labels, LABELS_WINDOWS, word);
}

/* Is what is known of this GPU still true, as far as the daemon can tell? */
static bool is_current(const json_t *gpu, const char *state)
{
    return json_is_object(json_object_get(gpu, "fingerprint")) &&
           !json_is_true(json_object_get(gpu, "fingerprint_stale")) && strcmp(state, "lost") != 0;
}

static enum status count_gpu(const json_t *gpu, struct labels *out, struct err *err)
{
    const char *state = json_string_value(json_object_get(gpu, "state"));
    const char *uuid = json_string_value(json_object_get(gpu, "uuid"));
    const char *id = json_string_value(json_object_get(gpu, "fingerprint_id"));
    struct fingerprint *fp = NULL;
    struct chip *chip = NULL;
    enum status status = STATUS_OK;

    if (!state || !uuid)
        return err_set(err, STATUS_PROTOCOL, "a GPU of the answer has no state or no UUID");
    count_word(out, LABELS_STATE, state);
    /* A sum, so that it does not depend on the order of the GPUs. */
    out->generation += hash_bytes(hash_bytes(HASH_START, uuid, strlen(uuid) + 1), id ? id : "",
                                  id ? strlen(id) : 0);
    if (!is_current(gpu, state))
        return STATUS_OK;
    fp = calloc(1, sizeof(*fp));
    chip = calloc(1, sizeof(*chip));
    if (!fp || !chip) {
        status = err_set(err, STATUS_NO_MEMORY, "no memory");
    } else if (fingerprint_from_json(json_object_get(gpu, "fingerprint"), fp, &out->why) ==
               STATUS_OK) {
        chip_read(fp, id ? id : "", chip);
        count_chip(out, chip);
    } else {
        out->skipped++;
    }
    free(chip);
    free(fp);
    return status;
}

enum status labels_read(const json_t *document, struct labels *out, struct err *err)
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

void labels_print(const struct labels *labels, const char *namespace, FILE *out)
{
    fprintf(out, "%s/gpu.count=%zu\n%s/generation=%0*llx\n", namespace, labels->gpu_count,
            namespace, SHORT_HASH,
            (unsigned long long)(labels->generation >> (64 - 4 * SHORT_HASH)));
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

bool labels_namespace_good(const char *name)
{
    size_t length = 0;
    char before = '.';

    for (; name[length]; length++) {
        const char c = name[length];
        const bool lower = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z');
        /* A label of it begins and ends with a letter or a digit. */
        if (!lower &&
            !((c == '-' && before != '.') || (c == '.' && before != '.' && before != '-')))
            return false;
        before = c;
    }
    return length > 0 && length < LABEL_NAMESPACE_BYTES && before != '.' && before != '-';
}
