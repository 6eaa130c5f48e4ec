/* sim_desc.c: text to struct. One table of fields, one reader a kind of value, one cursor that
 * never runs past its field. The other direction is in sim_print.c; both walk the same table
 * (sim_fields.h), so a field cannot be read and not be written. */
#include "gpu/sim/sim_desc.h"

#include "base/units.h"
#include "gpu/sim/sim_fields.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NUMBER_CHARS = 40 };

/* Where we are in one field; `field` and `whole` are only for messages. */
struct cursor {
    const char *at;
    const char *end;
    const char *field;
    const char *whole;
    struct err *err;
};

static enum status complain(const struct cursor *c, const char *what)
{
    return err_set(
        c->err, STATUS_INVALID_ARGUMENT, "simulated GPU: %.*s, at character %d (\"%.*s\"): %s",
        (int)(c->end - c->field > 60 ? 60 : c->end - c->field), c->field,
        (int)(c->at - c->whole) + 1, (int)(c->end - c->at > 12 ? 12 : c->end - c->at), c->at, what);
}

static bool at_end(const struct cursor *c)
{
    return c->at == c->end;
}

static bool take(struct cursor *c, char expected)
{
    if (at_end(c) || *c->at != expected)
        return false;
    c->at++;
    return true;
}

static bool take_word(struct cursor *c, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(c->end - c->at) < n || strncmp(c->at, word, n) != 0)
        return false;
    c->at += n;
    return true;
}

static enum status expect(struct cursor *c, char expected, const char *what)
{
    return take(c, expected) ? STATUS_OK : complain(c, what);
}

static enum status read_u64(struct cursor *c, uint64_t max, uint64_t *out)
{
    uint64_t v = 0;
    const char *start = c->at;
    while (!at_end(c) && isdigit((unsigned char)*c->at)) {
        unsigned digit = (unsigned)(*c->at - '0');
        if (v > (UINT64_MAX - digit) / 10 || v * 10 + digit > max) {
            c->at = start;
            return complain(c, "the number is too large");
        }
        v = v * 10 + digit;
        c->at++;
    }
    if (c->at == start)
        return complain(c, "a whole number belongs here");
    *out = v;
    return STATUS_OK;
}

static enum status read_u32(struct cursor *c, uint32_t max, uint32_t *out)
{
    uint64_t v = 0;
    enum status s = read_u64(c, max, &v);
    if (s == STATUS_OK)
        *out = (uint32_t)v;
    return s;
}

/* Copies the characters of `set` that follow, so that a library function can read them. */
static bool copy_span(struct cursor *c, const char *set, char *out, size_t out_size)
{
    size_t n = 0;
    while (c->at + n < c->end && strchr(set, c->at[n]))
        n++;
    if (n == 0 || n >= out_size)
        return false;
    memcpy(out, c->at, n);
    out[n] = '\0';
    return true;
}

static enum status read_f64(struct cursor *c, double max, double *out)
{
    char digits[MAX_NUMBER_CHARS];
    if (!copy_span(c, "0123456789.eE-+", digits, sizeof digits))
        return complain(c, "a number belongs here");
    char *end = NULL;
    double v = strtod(digits, &end);
    if (*end != '\0' || !(v >= 0 && v <= max))
        return complain(c, "not a number, negative or too large");
    c->at += strlen(digits);
    *out = fabs(v); /* "-0" is printed as nothing, and would not be the same then */
    return STATUS_OK;
}

static enum status read_bytes(struct cursor *c, uint64_t *out)
{
    char digits[MAX_NUMBER_CHARS];
    struct err why;
    if (!copy_span(c, "0123456789.KMGTiBkmgtb", digits, sizeof digits))
        return complain(c, "a size belongs here: 128K, 2M, 80G");
    if (units_parse_bytes(digits, out, &why) != STATUS_OK)
        return complain(c, why.text);
    c->at += strlen(digits);
    return STATUS_OK;
}

static bool is_name_char(char ch)
{
    return isalnum((unsigned char)ch) || ch == '-' || ch == '_' || ch == '.';
}

static enum status read_name(struct cursor *c, char *out)
{
    size_t n = 0;
    while (!at_end(c) && is_name_char(*c->at)) {
        if (n + 1 >= SIM_MAX_NAME)
            return complain(c, "the name is too long");
        out[n++] = *c->at++;
    }
    memset(out + n, 0, SIM_MAX_NAME - n);
    return n > 0 ? STATUS_OK : complain(c, "a name of letters, digits, - _ . belongs here");
}

static enum status read_noise(struct cursor *c, struct sim_desc *d)
{
    if (take_word(c, "gauss:")) {
        d->noise = SIM_NOISE_GAUSS;
    } else if (take_word(c, "uniform:")) {
        d->noise = SIM_NOISE_UNIFORM;
    } else if (take_word(c, "none")) {
        d->noise = SIM_NOISE_NONE;
        d->noise_cycles = 0;
        return STATUS_OK;
    } else {
        return complain(c, "gauss:<cycles>, uniform:<cycles> or none belongs here");
    }
    return read_f64(c, SIM_MAX_CYCLES, &d->noise_cycles);
}

static enum status read_outliers(struct cursor *c, struct sim_desc *d)
{
    enum status s = read_f64(c, 1, &d->outlier_share);
    if (s == STATUS_OK)
        s = expect(c, '@', "@<cycles> belongs here");
    return s == STATUS_OK ? read_u32(c, SIM_MAX_CYCLES, &d->outlier_cycles) : s;
}

/* "30000@": how many loads lie between two of something. */
static enum status read_period(struct cursor *c, const char *unit, uint32_t *out)
{
    enum status s = read_u32(c, UINT32_MAX / 4, out);
    if (s == STATUS_OK && *out == 0)
        return complain(c, "at least one load lies between");
    return s == STATUS_OK ? expect(c, '@', unit) : s;
}

static enum status read_neighbour(struct cursor *c, struct sim_desc *d)
{
    enum status s = read_period(c, "@<cycles> belongs here", &d->neighbour_loads);
    return s == STATUS_OK ? read_u32(c, SIM_MAX_CYCLES, &d->neighbour_cycles) : s;
}

static enum status read_reclock(struct cursor *c, struct sim_desc *d)
{
    enum status s = read_period(c, "@<factor> belongs here", &d->reclock_loads);
    return s == STATUS_OK ? read_f64(c, SIM_MAX_RECLOCK, &d->reclock_factor) : s;
}

/* One SM id, or a range of them: "7", "2-4". */
static enum status read_ids(struct cursor *c, uint32_t *first, uint32_t *last)
{
    enum status s = read_u32(c, REACH_MAX_SMS - 1, first);
    *last = *first;
    if (s == STATUS_OK && take(c, '-'))
        s = read_u32(c, REACH_MAX_SMS - 1, last);
    if (s == STATUS_OK && *last < *first)
        return complain(c, "the range runs backwards");
    return s;
}

static enum status read_sm_ids(struct cursor *c, struct sim_desc *d)
{
    uint32_t n = 0;
    do {
        uint32_t first = 0;
        uint32_t last = 0;
        enum status s = read_ids(c, &first, &last);
        if (s != STATUS_OK)
            return s;
        if (n > 0 && first <= d->sm_ids[n - 1])
            return complain(c, "SM ids must ascend");
        for (uint32_t id = first; id <= last; id++)
            d->sm_ids[n++] = (uint16_t)id;
    } while (take(c, ','));
    memset(d->sm_ids + n, 0, (REACH_MAX_SMS - n) * sizeof d->sm_ids[0]);
    d->sm_count = n;
    return STATUS_OK;
}

static enum status read_sm_count(struct cursor *c, struct sim_desc *d)
{
    uint32_t n;
    enum status s = read_u32(c, REACH_MAX_SMS, &n);
    if (s != STATUS_OK)
        return s;
    if (n == 0)
        return complain(c, "a GPU has at least one SM");
    memset(d->sm_ids, 0, sizeof d->sm_ids);
    for (uint32_t i = 0; i < n; i++)
        d->sm_ids[i] = (uint16_t)i;
    d->sm_count = n;
    return STATUS_OK;
}

/* Numbers the instances by the lowest SM of each, which makes equal sharings equal structs. */
static void number_instances(struct sim_level *l, uint32_t sm_count)
{
    uint16_t renamed[REACH_MAX_SMS];
    bool seen[REACH_MAX_SMS] = {false};
    uint16_t next = 0;
    for (uint32_t i = 0; i < sm_count; i++) {
        uint16_t old = l->instance_of_sm[i];
        if (!seen[old]) {
            seen[old] = true;
            renamed[old] = next++;
        }
        l->instance_of_sm[i] = renamed[old];
    }
    l->instance_count = next;
}

static enum status read_groups(struct cursor *c, const struct sim_desc *d, struct sim_level *l)
{
    int32_t position[REACH_MAX_SMS];
    bool taken[REACH_MAX_SMS] = {false};
    uint32_t covered = 0;
    uint16_t group = 0;
    memset(position, -1, sizeof position);
    for (uint32_t i = 0; i < d->sm_count; i++)
        position[d->sm_ids[i]] = (int32_t)i;
    do {
        do {
            uint32_t first = 0;
            uint32_t last = 0;
            enum status s = read_ids(c, &first, &last);
            if (s != STATUS_OK)
                return s;
            for (uint32_t id = first; id <= last; id++) {
                if (position[id] < 0)
                    return complain(c, "this GPU has no SM with such an id");
                if (taken[id])
                    return complain(c, "an SM is in two groups");
                taken[id] = true;
                l->instance_of_sm[position[id]] = group;
                covered++;
            }
        } while (take(c, ','));
        group++;
    } while (take(c, ':'));
    return covered == d->sm_count ? STATUS_OK : complain(c, "not every SM is in a group");
}

/* "8" and nothing behind it is a group size; "0,5:1,6" and "0-7" are groups. */
static bool is_group_size(const struct cursor *c)
{
    const char *p = c->at;
    while (p < c->end && isdigit((unsigned char)*p))
        p++;
    return p > c->at && (p == c->end || *p == ';');
}

static enum status read_sharing(struct cursor *c, const struct sim_desc *d, struct sim_level *l)
{
    uint32_t k = 0;
    if (take_word(c, "sm")) {
        k = 1;
    } else if (take_word(c, "gpu")) {
        k = REACH_MAX_SMS;
    } else if (is_group_size(c)) {
        enum status s = read_u32(c, REACH_MAX_SMS, &k);
        if (s != STATUS_OK)
            return s;
        if (k == 0)
            return complain(c, "a group has at least one SM");
    } else {
        enum status s = read_groups(c, d, l);
        if (s != STATUS_OK)
            return s;
    }
    for (uint32_t i = 0; k > 0 && i < d->sm_count; i++)
        l->instance_of_sm[i] = (uint16_t)(i / k);
    number_instances(l, d->sm_count);
    return STATUS_OK;
}

static enum status read_sets(struct cursor *c, struct sim_level *l)
{
    memset(l->runs, 0, sizeof l->runs);
    l->run_count = 0;
    do {
        struct sim_run run = {.count = 1};
        enum status s = read_u32(c, SIM_MAX_ENTRIES, &run.ways);
        if (s == STATUS_OK && take(c, 'x'))
            s = read_u32(c, SIM_MAX_ENTRIES, &run.count);
        if (s != STATUS_OK)
            return s;
        if (run.ways == 0 || run.count == 0)
            return complain(c, "a set has at least one way");
        struct sim_run *before = l->run_count > 0 ? &l->runs[l->run_count - 1] : NULL;
        if (before && before->ways == run.ways)
            before->count += run.count;
        else if (l->run_count == SIM_MAX_RUNS)
            return complain(c, "too many different set sizes");
        else
            l->runs[l->run_count++] = run;
    } while (take(c, '+'));
    return STATUS_OK;
}

static enum status read_option(struct cursor *c, struct sim_level *l)
{
    if (take_word(c, "miss="))
        return read_u32(c, SIM_MAX_CYCLES, &l->miss_cycles);
    if (take_word(c, "sets="))
        return read_sets(c, l);
    if (take_word(c, "sectors="))
        return read_u32(c, SIM_MAX_SECTORS, &l->sectors);
    if (take_word(c, "victims="))
        return read_u32(c, SIM_MAX_VICTIMS, &l->victims);
    if (take_word(c, "walkers="))
        return read_u32(c, SIM_MAX_WALKERS, &l->walkers);
    if (take_word(c, "miss_ns="))
        return read_f64(c, SIM_MAX_MISS_NS, &l->miss_ns);
    if (take_word(c, "policy=random"))
        l->policy = SIM_RANDOM;
    else if (take_word(c, "policy=lru"))
        l->policy = SIM_LRU;
    else if (take_word(c, "hash=xor"))
        l->hash = SIM_HASH_XOR;
    else if (take_word(c, "hash=skew"))
        l->hash = SIM_HASH_SKEW;
    else if (take_word(c, "hash=mod"))
        l->hash = SIM_HASH_MOD;
    else
        return complain(c, "no such option of a level");
    return STATUS_OK;
}

static enum status check_sets(const struct cursor *c, const struct sim_level *l)
{
    uint64_t ways = 0;
    uint64_t sets = 0;
    uint32_t widest = 0;
    for (uint32_t r = 0; r < l->run_count; r++) {
        widest = l->runs[r].ways > widest ? l->runs[r].ways : widest;
        ways += (uint64_t)l->runs[r].ways * l->runs[r].count;
        sets += l->runs[r].count;
    }
    if (ways != l->entries)
        return complain(c, "the ways of all sets must add up to the entries");
    if (l->hash == SIM_HASH_XOR && (l->run_count != 1 || (sets & (sets - 1)) != 0))
        return complain(c, "hash=xor needs a power of two of equal sets");
    if (l->sectors == 0 || l->entry_bytes % l->sectors != 0)
        return complain(c, "sectors must divide the entry into equal parts");
    if (l->victims > 0 && (l->policy != SIM_LRU || l->sectors > 1 || widest > SIM_MAX_VICTIM_WAYS))
        return complain(c, "victims need lru, undivided entries and sets of at most 32 ways");
    if (l->walkers == 0)
        return complain(c, "a level has at least one walker");
    return STATUS_OK;
}

static enum status read_level(struct cursor *c, struct sim_desc *d, uint32_t index)
{
    if (d->sm_count == 0)
        return complain(c, "sms= must come before the levels");
    if (index > d->level_count)
        return complain(c, "the level before this one is missing");
    struct sim_level *l = &d->levels[index];
    memset(l, 0, sizeof *l);
    l->walkers = 1;
    l->sectors = 1;

    enum status s = read_u32(c, SIM_MAX_ENTRIES, &l->entries);
    if (s == STATUS_OK && l->entries == 0)
        return complain(c, "a level has at least one entry");
    if (s == STATUS_OK)
        s = expect(c, '@', "@<entry bytes> belongs here");
    if (s == STATUS_OK)
        s = read_bytes(c, &l->entry_bytes);
    if (s == STATUS_OK && l->entry_bytes < SIM_MIN_ENTRY_BYTES)
        return complain(c, "an entry translates at least 4K");
    if (s == STATUS_OK)
        s = expect(c, '/', "/<sharing> belongs here: sm, gpu, a group size or groups");
    if (s == STATUS_OK)
        s = read_sharing(c, d, l);
    l->runs[0] = (struct sim_run){.ways = l->entries, .count = 1};
    l->run_count = 1;
    while (s == STATUS_OK && take(c, ';'))
        s = read_option(c, l);
    if (s == STATUS_OK && at_end(c))
        s = check_sets(c, l);
    if (s == STATUS_OK && index == d->level_count)
        d->level_count++;
    return s;
}

/* Drops what depends on the number of SMs. */
static void forget_levels(struct sim_desc *d)
{
    memset(d->levels, 0, sizeof d->levels);
    d->level_count = 0;
}

static enum status read_value(struct cursor *c, const struct sim_field *f, struct sim_desc *d)
{
    char *slot = (char *)d + f->offset;
    switch (f->kind) {
    case SIM_FIELD_NAME:
        return read_name(c, slot);
    case SIM_FIELD_SMS:
        forget_levels(d);
        return read_sm_count(c, d);
    case SIM_FIELD_SMIDS:
        forget_levels(d);
        return read_sm_ids(c, d);
    case SIM_FIELD_CC: {
        enum status s = read_u32(c, SIM_MAX_CC, &d->cc_major);
        if (s == STATUS_OK)
            s = expect(c, '.', "a point belongs here: cc=9.0");
        return s == STATUS_OK ? read_u32(c, SIM_MAX_CC, &d->cc_minor) : s;
    }
    case SIM_FIELD_BYTES:
        return read_bytes(c, (uint64_t *)(void *)slot);
    case SIM_FIELD_U32:
        return read_u32(c, f->max, (uint32_t *)(void *)slot);
    case SIM_FIELD_U64:
        return read_u64(c, UINT64_MAX, (uint64_t *)(void *)slot);
    case SIM_FIELD_F64:
        return read_f64(c, f->max, (double *)(void *)slot);
    case SIM_FIELD_NOISE:
        return read_noise(c, d);
    case SIM_FIELD_OUTLIERS:
        return read_outliers(c, d);
    case SIM_FIELD_NEIGHBOUR:
        return read_neighbour(c, d);
    case SIM_FIELD_RECLOCK:
        return read_reclock(c, d);
    case SIM_FIELD_LEVEL:
        return read_level(c, d, f->max);
    }
    return complain(c, "no such field");
}

/* Reads one field; `seen` has a bit for each row of the table. */
static enum status read_field(struct cursor *c, struct sim_desc *d, uint32_t *seen)
{
    for (uint32_t i = 0; i < sim_field_count; i++) {
        const struct sim_field *f = &sim_fields[i];
        size_t n = strlen(f->key);
        if ((size_t)(c->end - c->at) <= n || strncmp(c->at, f->key, n) != 0 || c->at[n] != '=')
            continue;
        if (*seen & (1u << i))
            return complain(c, "the field comes twice");
        *seen |= 1u << i;
        c->at += n + 1;
        uint32_t sms = d->sm_count;
        bool sms_said = *seen & (1u << SIM_ROW_SMS);
        if (f->kind == SIM_FIELD_SMS && (*seen & (1u << SIM_ROW_SMIDS)))
            return complain(c, "sms= must come before smids=");
        enum status s = read_value(c, f, d);
        if (s == STATUS_OK && !at_end(c))
            s = complain(c, "this is not part of the value");
        if (s == STATUS_OK && f->kind == SIM_FIELD_SMIDS && sms_said && sms != d->sm_count)
            s = complain(c, "smids= must name as many SMs as sms= says");
        return s;
    }
    return complain(c, "no such field");
}

static enum status check_whole(const struct sim_desc *d, struct err *err)
{
    const char *what = NULL;
    uint64_t entries = 0;
    uint64_t range = sim_desc_range(d);
    if (d->sm_count == 0)
        what = "sms= is missing";
    else if (d->memory_bytes == 0)
        what = "memory= is missing";
    else if (d->memory_bytes > SIM_MAX_MEMORY || range > 4 * SIM_MAX_MEMORY)
        what = "more memory than 16T, or more range than 64T";
    else if (range < d->memory_bytes)
        what = "range= must not be below memory=";
    else if (d->level_count == 0)
        what = "l1= is missing";
    for (uint32_t i = 0; !what && i < d->level_count; i++) {
        const struct sim_level *l = &d->levels[i];
        entries += (uint64_t)l->entries * l->instance_count;
        if (range / (l->entry_bytes / l->sectors) >= UINT32_MAX / 2)
            what = "a level's entries are too small for so much memory";
        else if (entries > SIM_MAX_TOTAL_ENTRIES)
            what = "more than four million entries in all levels together";
    }
    if (what)
        return err_set(err, STATUS_INVALID_ARGUMENT, "simulated GPU: %s", what);
    return STATUS_OK;
}

enum status sim_desc_parse(const char *text, const struct sim_desc *base, struct sim_desc *out,
                           struct err *err)
{
    struct sim_desc d;
    uint32_t seen = 0;
    if (base)
        memcpy(&d, base, sizeof d);
    else
        sim_desc_defaults(&d);

    const char *p = text;
    for (;;) {
        p += strspn(p, " \t\n");
        if (*p == '\0')
            break;
        const char *end = p + strcspn(p, " \t\n");
        struct cursor c = {.at = p, .end = end, .field = p, .whole = text, .err = err};
        enum status s = read_field(&c, &d, &seen);
        if (s != STATUS_OK)
            return s;
        p = end;
    }
    enum status s = check_whole(&d, err);
    if (s == STATUS_OK)
        memcpy(out, &d, sizeof d);
    return s;
}
