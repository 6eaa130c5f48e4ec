/* keep_numbers.c: see keep_numbers.h. What a fingerprint is taken apart into is in numbers_visit.c.
 */
#include "clients/fleet/keep_numbers.h"

#include "base/hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

enum { FIRST_SLOTS = 1024 };

struct number_names {
    char **names; /* owned, by number */
    uint32_t count;
    uint32_t *slots; /* number + 1 by hash; 0: free. Never more than half full. */
    uint32_t slot_count;
};

struct number_names *number_names_new(void)
{
    struct number_names *n = calloc(1, sizeof(*n));

    if (!n)
        return NULL;
    n->slot_count = FIRST_SLOTS;
    n->slots = calloc(n->slot_count, sizeof(*n->slots));
    n->names = calloc(n->slot_count / 2, sizeof(*n->names));
    if (!n->slots || !n->names) {
        number_names_free(n);
        return NULL;
    }
    return n;
}

void number_names_free(struct number_names *take)
{
    if (!take)
        return;
    for (uint32_t i = 0; i < take->count; i++)
        free(take->names[i]);
    free(take->names);
    free(take->slots);
    free(take);
}

uint32_t number_names_count(const struct number_names *names)
{
    return names->count;
}

/* The slot that has the name, or the free one where it belongs. */
static uint32_t slot_of(const struct number_names *n, const char *name)
{
    uint32_t at = (uint32_t)hash_bytes(HASH_START, name, strlen(name)) & (n->slot_count - 1);

    while (n->slots[at] && strcmp(n->names[n->slots[at] - 1], name) != 0)
        at = (at + 1) & (n->slot_count - 1);
    return at;
}

uint32_t number_names_find(const struct number_names *names, const char *name)
{
    const uint32_t number = names->slots[slot_of(names, name)];

    return number ? number - 1 : NUMBER_MAX_NAMES;
}

const char *number_names_get(const struct number_names *names, uint32_t id)
{
    return id < names->count ? names->names[id] : NULL;
}

static bool grow(struct number_names *n)
{
    const uint32_t slot_count = n->slot_count * 2;
    uint32_t *slots = calloc(slot_count, sizeof(*slots));
    char **names = realloc(n->names, slot_count / 2 * sizeof(*names));

    if (names)
        n->names = names;
    if (!slots || !names) {
        free(slots);
        return false;
    }
    free(n->slots);
    n->slots = slots;
    n->slot_count = slot_count;
    for (uint32_t i = 0; i < n->count; i++)
        n->slots[slot_of(n, n->names[i])] = i + 1;
    return true;
}

enum status number_names_add(struct number_names *names, const char *name, struct err *err)
{
    char *copy;

    if (names->count == NUMBER_MAX_NAMES)
        return err_set(err, STATUS_FULL, "more than %d different numbers", NUMBER_MAX_NAMES);
    copy = strdup(name);
    if (!copy || (names->count == names->slot_count / 2 && !grow(names))) {
        free(copy);
        return err_set(err, STATUS_NO_MEMORY, "no memory for the names of numbers");
    }
    names->names[names->count] = copy;
    names->slots[slot_of(names, name)] = ++names->count;
    return STATUS_OK;
}

/* ---- cells ---- */

static const char digits[] = "0123456789abcdef";

static char *put_hex(char *at, uint64_t v, int count)
{
    for (int i = count - 1; i >= 0; i--)
        *at++ = digits[v >> (4 * i) & 15];
    return at;
}

char *numbers_put(char *at, uint32_t id, enum known known, double v)
{
    uint64_t bits;

    at = put_hex(at, id, 4);
    *at++ = known == MAYBE_KNOWN ? '=' : known == MAYBE_NOT_OBSERVABLE ? '!' : '?';
    if (known == MAYBE_KNOWN) {
        memcpy(&bits, &v, sizeof(bits));
        at = put_hex(at, bits, 16);
    }
    *at = '\0';
    return at;
}

/* The value of a digit, and 16 for what is none: the end of the text too. */
static const unsigned char digit_values[256] = {
    [0 ... '0' - 1] = 16,
    [':' ... 'a' - 1] = 16,
    ['g' ... 255] = 16,
    ['0'] = 0,
    ['1'] = 1,
    ['2'] = 2,
    ['3'] = 3,
    ['4'] = 4,
    ['5'] = 5,
    ['6'] = 6,
    ['7'] = 7,
    ['8'] = 8,
    ['9'] = 9,
    ['a'] = 10,
    ['b'] = 11,
    ['c'] = 12,
    ['d'] = 13,
    ['e'] = 14,
    ['f'] = 15,
};

static bool get_hex(const char *at, int count, uint64_t *out)
{
    uint64_t v = 0;

    for (int i = 0; i < count; i++) {
        const unsigned digit = digit_values[(unsigned char)at[i]];
        if (digit > 15)
            return false;
        v = v << 4 | digit;
    }
    *out = v;
    return true;
}

bool numbers_get(const char **at, struct number_cell *out)
{
    const char *p = *at;
    uint64_t bits = 0;

    if (!get_hex(p, 4, &bits))
        return false;
    out->id = (uint32_t)bits;
    out->v = 0;
    if (p[4] == '?' || p[4] == '!') {
        out->known = p[4] == '?' ? MAYBE_UNKNOWN : MAYBE_NOT_OBSERVABLE;
        *at = p + 5;
        return true;
    }
    if (p[4] != '=' || !get_hex(p + 5, 16, &bits))
        return false;
    out->known = MAYBE_KNOWN;
    memcpy(&out->v, &bits, sizeof(bits));
    *at = p + NUMBER_CELL_BYTES;
    return true;
}

/* ---- lines of a structure ---- */

bool numbers_structure_line(const char **at, struct structure_line *out)
{
    const char *const line = *at;
    const char *const mark = strchr(line, '=');
    const char *const end = strchr(line, '\n');
    char *rest = NULL;

    if (!mark || !end || mark > end || mark == line || mark - line >= NUMBER_NAME_BYTES ||
        end - mark > NUMBER_NAME_BYTES)
        return false;
    (void)snprintf(out->name, sizeof(out->name), "%.*s", (int)(mark - line), line);
    (void)snprintf(out->value, sizeof(out->value), "%.*s", (int)(end - mark - 1), mark + 1);
    out->known = strcmp(out->value, "?") == 0   ? MAYBE_UNKNOWN
                 : strcmp(out->value, "!") == 0 ? MAYBE_NOT_OBSERVABLE
                                                : MAYBE_KNOWN;
    out->v = strtod(out->value, &rest);
    out->is_number = rest != out->value && *rest == '\0';
    *at = end + 1;
    return true;
}

bool numbers_is_judged(const char *name)
{
    return strcmp(name, "duration_ms") != 0 && strcmp(name, "probe_ms") != 0 &&
           strcmp(name, "topology.group_count") != 0 &&
           strncmp(name, "topology.disabled.", strlen("topology.disabled.")) != 0;
}
