/* node.c: the words of node.h. */
#include "clients/reachctl/node.h"

#include "base/units.h"

#include <stdio.h>
#include <string.h>

void node_class(const struct chip *chip, char *out)
{
    const struct maybe_u64 reach = chip->fp.windows.reach_bytes;
    const uint64_t unit = reach.v >= GIB ? GIB : MIB;
    size_t at = (size_t)snprintf(out, NODE_WORD_BYTES, "%usm", chip->fp.gpu.sm_count);

    if (chip->group_count > 0)
        at += (size_t)snprintf(out + at, NODE_WORD_BYTES - at, "-%ug", chip->group_count);
    if (IS_KNOWN(reach))
        snprintf(out + at, NODE_WORD_BYTES - at, "-%llu%s",
                 (unsigned long long)((reach.v + unit / 2) / unit), unit == GIB ? "GiB" : "MiB");
}

void node_windows(const struct chip *chip, char *out)
{
    if (!chip->planned)
        snprintf(out, NODE_WORD_BYTES, "unknown");
    else if (chip->plan.window_count > 0)
        snprintf(out, NODE_WORD_BYTES, "%u", chip->plan.window_count);
    else
        snprintf(out, NODE_WORD_BYTES, "%s",
                 chip->plan.advice == ADVICE_NOTHING_TO_DO ? "1" : advice_name(chip->plan.advice));
}

void node_map(const struct chip *chip, char *out)
{
    snprintf(out, NODE_WORD_BYTES, "%.*s", NODE_HASH_CHARS,
             chip->map[0] ? chip->map + strlen("map") : "");
}

bool node_is_current(const json_t *gpu, const char *state)
{
    return json_is_object(json_object_get(gpu, "fingerprint")) &&
           !json_is_true(json_object_get(gpu, "fingerprint_stale")) && strcmp(state, "lost") != 0;
}

bool node_is_domain(const char *name)
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
    return length > 0 && length < NODE_DOMAIN_BYTES && before != '.' && before != '-';
}
