/* labels.c: a node's GPUs as labels: each GPU is turned into one word a property, and the words are
 * counted. */
#include "clients/reachctl/labels.h"

#include "clients/reachctl/chip.h"

#include "base/hash.h"
#include "fingerprint/fingerprint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHORT_HASH = 12, MIB = 1 << 20, GIB = 1 << 30 };

/* The words of one property and how many GPUs have each. */
struct tally {
    const char *name;
    uint32_t count;
    struct {
        char word[LABEL_BYTES];
        uint32_t gpus;
    } of[REACH_MAX_GPUS];
};

enum property { STATE, ORIGIN, CLASS, MAP, WINDOWS, PROPERTY_COUNT };
static const char *const property_names[PROPERTY_COUNT] = {
    [STATE] = "state", [ORIGIN] = "origin",   [CLASS] = "topology-class",
    [MAP] = "map",     [WINDOWS] = "windows",
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

static void count_word(struct tally *t, const char *text)
{
    /* Room for the property's name and a dot before it. */
    const size_t room = LABEL_BYTES - strlen(t->name) - 1;
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

static void count_chip(struct tally *tallies, const struct chip *chip)
{
    char word[LABEL_BYTES];

    count_word(&tallies[ORIGIN], origin_name(chip->fp->gpu.origin));
    class_of(chip, word);
    count_word(&tallies[CLASS], word);
    snprintf(word, sizeof(word), "%.*s", SHORT_HASH, chip->map[0] ? chip->map + strlen("map") : "");
    count_word(&tallies[MAP], word);
    windows_of(chip, word);
    count_word(&tallies[WINDOWS], word);
}

/* Is what is known of this GPU still true, as far as the daemon can tell? */
static bool is_current(const json_t *gpu, const char *state)
{
    return json_is_object(json_object_get(gpu, "fingerprint")) &&
           !json_is_true(json_object_get(gpu, "fingerprint_stale")) && strcmp(state, "lost") != 0;
}

/* Everything about one GPU. `*generation` does not depend on the order of the GPUs. */
static enum status count_gpu(const json_t *gpu, struct tally *tallies, uint64_t *generation,
                             struct labels *out, struct err *err)
{
    const char *state = json_string_value(json_object_get(gpu, "state"));
    const char *uuid = json_string_value(json_object_get(gpu, "uuid"));
    const char *id = json_string_value(json_object_get(gpu, "fingerprint_id"));
    struct fingerprint *fp = NULL;
    struct chip *chip = NULL;
    uint64_t hash = HASH_START;
    enum status status = STATUS_OK;

    if (!state || !uuid)
        return err_set(err, STATUS_PROTOCOL, "a GPU of the answer has no state or no UUID");
    count_word(&tallies[STATE], state);
    hash = hash_bytes(hash, uuid, strlen(uuid) + 1);
    hash = hash_bytes(hash, id ? id : "", id ? strlen(id) : 0);
    *generation += hash;
    if (!is_current(gpu, state))
        return STATUS_OK;
    fp = calloc(1, sizeof(*fp));
    chip = calloc(1, sizeof(*chip));
    if (!fp || !chip) {
        status = err_set(err, STATUS_NO_MEMORY, "no memory");
        goto out;
    }
    if (fingerprint_from_json(json_object_get(gpu, "fingerprint"), fp, &out->why) == STATUS_OK) {
        chip_read(fp, id ? id : "", chip);
        count_chip(tallies, chip);
    } else {
        out->skipped++;
    }
out:
    free(chip);
    free(fp);
    return status;
}

static struct label *add(struct labels *labels, const char *name)
{
    struct label *label = &labels->list[labels->count++];

    snprintf(label->name, sizeof(label->name), "%s", name);
    return label;
}

static void add_property(struct labels *labels, const struct tally *t)
{
    char name[LABEL_BYTES];

    if (t->count == 0)
        return;
    snprintf(add(labels, t->name)->value, LABEL_BYTES, "%s",
             t->count == 1 ? t->of[0].word : "mixed");
    for (uint32_t i = 0; i < t->count; i++) {
        const size_t at = (size_t)snprintf(name, sizeof(name), "%s.", t->name);
        snprintf(name + at, sizeof(name) - at, "%s", t->of[i].word);
        snprintf(add(labels, name)->value, LABEL_BYTES, "%u", t->of[i].gpus);
    }
}

enum status labels_read(const json_t *document, struct labels *out, struct err *err)
{
    const json_t *gpus = json_object_get(document, "gpus");
    const size_t count = json_array_size(gpus);
    struct tally *tallies = NULL;
    uint64_t generation = 0;
    enum status status = STATUS_OK;

    *out = (struct labels){.count = 0};
    if (!json_is_array(gpus) || count > REACH_MAX_GPUS)
        return err_set(err, STATUS_PROTOCOL, "the answer has no list of at most %d GPUs",
                       REACH_MAX_GPUS);
    tallies = calloc(PROPERTY_COUNT, sizeof(*tallies));
    if (!tallies)
        return err_set(err, STATUS_NO_MEMORY, "no memory");
    for (int p = 0; p < PROPERTY_COUNT; p++)
        tallies[p].name = property_names[p];
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        status = count_gpu(json_array_get(gpus, i), tallies, &generation, out, err);
    if (status == STATUS_OK) {
        snprintf(add(out, "gpu.count")->value, LABEL_BYTES, "%zu", count);
        snprintf(add(out, "generation")->value, LABEL_BYTES, "%0*llx", SHORT_HASH,
                 (unsigned long long)(generation >> (64 - 4 * SHORT_HASH)));
        for (int p = 0; p < PROPERTY_COUNT; p++)
            add_property(out, &tallies[p]);
    }
    free(tallies);
    return status;
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
