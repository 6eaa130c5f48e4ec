/* sim_level.c: reads one level in the text of a simulated GPU:
 * "65@2M/0,5:1,6;sets=17+8x6". */
#include "gpu/sim/sim_text.h"

#include <ctype.h>
#include <string.h>

enum { MAX_WALKERS = 4096, MAX_MISS_NS = 1000000, MIN_ENTRY_BYTES = 4096, MIN_LINE_BYTES = 4 };

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define AT(member)   offsetof(struct sim_level, member)

static const struct sim_number entry_bytes = {SIM_BYTES, AT(entry_bytes), 0};

/* Options with a number. */
static const struct {
    const char *key;
    struct sim_number number;
} numbers[] = {
    {"miss=", {SIM_U32, AT(miss_cycles), SIM_MAX_CYCLES}},
    {"recent=", {SIM_U32, AT(recent), SIM_MAX_RECENT}},
    {"block=", {SIM_U32, AT(block), SIM_MAX_ENTRIES}},
    {"sectors=", {SIM_U32, AT(sectors), SIM_MAX_SECTORS}},
    {"miss_ns=", {SIM_F64, AT(miss_ns), MAX_MISS_NS}},
    {"walkers=", {SIM_U32, AT(walkers), MAX_WALKERS}},
};

/* Options with a word. */
static const struct {
    const char *text;
    size_t offset;
    uint32_t value;
} choices[] = {{"policy=lru", AT(policy), SIM_LRU},   {"policy=random", AT(policy), SIM_RANDOM},
               {"policy=fifo", AT(policy), SIM_FIFO}, {"hash=mod", AT(hash), SIM_HASH_MOD},
               {"hash=xor", AT(hash), SIM_HASH_XOR},  {"hash=skew", AT(hash), SIM_HASH_SKEW}};

static const struct sim_level plain = {.walkers = 1, .sectors = 1};

_Static_assert(sizeof(enum sim_policy) == sizeof(uint32_t) &&
                   sizeof(enum sim_hash) == sizeof(uint32_t),
               "choices");

/* Numbers the groups by the lowest SM of each. */
static void number_groups(uint16_t *of_sm, uint32_t sm_count)
{
    uint16_t renamed[REACH_MAX_SMS];
    bool seen[REACH_MAX_SMS] = {false};
    uint16_t next = 0;
    for (uint32_t i = 0; i < sm_count; i++) {
        uint16_t old = of_sm[i];
        if (!seen[old]) {
            seen[old] = true;
            renamed[old] = next++;
        }
        of_sm[i] = renamed[old];
    }
}

/* Reads groups of SMs: "0,5:1,6:2-4". */
static enum status read_groups(struct sim_cursor *c, const struct sim_desc *d, uint16_t *out_of_sm)
{
    int32_t position[REACH_MAX_SMS];
    bool known[REACH_MAX_SMS] = {false};
    uint32_t covered = 0;
    uint16_t group = 0;
    memset(position, -1, sizeof position);
    for (uint32_t i = 0; i < d->sm_count; i++)
        position[d->sm_ids[i]] = (int32_t)i;
    for (bool more = true; more;) {
        uint32_t first = 0;
        uint32_t last = 0;
        enum status s = sim_text_ids(c, &first, &last);
        if (s != STATUS_OK)
            return s;
        for (uint32_t id = first; id <= last; id++) {
            if (position[id] < 0)
                return sim_text_fail(c, "the id is not an SM of this GPU");
            if (known[id])
                return sim_text_fail(c, "an SM must be in one group only");
            known[id] = true;
            out_of_sm[position[id]] = group;
            covered++;
        }
        const bool next_group = sim_text_skip(c, ":");
        group += next_group;
        more = next_group || sim_text_skip(c, ",");
    }
    return covered == d->sm_count ? STATUS_OK : sim_text_fail(c, "every SM must be in a group");
}

/* Returns whether a group size comes next. "8" with nothing behind it is a group size; "0,5:1,6"
 * and "0-7" are groups. */
static bool is_group_size(const struct sim_cursor *c)
{
    const char *p = c->at;
    while (p < c->end && isdigit((unsigned char)*p))
        p++;
    return p > c->at && (p == c->end || *p == ';');
}

enum status sim_sharing_read(struct sim_cursor *c, const struct sim_desc *d, uint16_t *out_of_sm)
{
    uint32_t k = 0;
    enum status s = STATUS_OK;
    if (sim_text_skip(c, "sm")) {
        k = 1;
    } else if (sim_text_skip(c, "gpu")) {
        k = REACH_MAX_SMS;
    } else if (is_group_size(c)) {
        s = sim_text_u32(c, REACH_MAX_SMS, &k);
        if (s == STATUS_OK && k == 0)
            return sim_text_fail(c, "a group must have at least one SM");
    } else {
        s = read_groups(c, d, out_of_sm);
    }
    for (uint32_t i = 0; k > 0 && i < d->sm_count; i++)
        out_of_sm[i] = (uint16_t)(i / k);
    if (s == STATUS_OK)
        number_groups(out_of_sm, d->sm_count);
    return s;
}

uint32_t sim_sharing_count(const struct sim_desc *d, const uint16_t *of_sm)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < d->sm_count; i++)
        most = of_sm[i] > most ? of_sm[i] : most;
    return most + 1;
}

static enum status read_sets(struct sim_cursor *c, struct sim_level *l)
{
    memset(l->runs, 0, sizeof l->runs);
    l->run_count = 0;
    do {
        struct sim_run run = {.count = 1};
        enum status s = sim_text_u32(c, SIM_MAX_ENTRIES, &run.ways);
        if (s == STATUS_OK && sim_text_skip(c, "x"))
            s = sim_text_u32(c, SIM_MAX_ENTRIES, &run.count);
        if (s != STATUS_OK)
            return s;
        if (run.ways == 0 || run.count == 0)
            return sim_text_fail(c, "a set must have at least one way");
        struct sim_run *before = l->run_count > 0 ? &l->runs[l->run_count - 1] : NULL;
        if (before && before->ways == run.ways)
            before->count += run.count;
        else if (l->run_count == SIM_MAX_RUNS)
            return sim_text_fail(c, "too many different set sizes");
        else
            l->runs[l->run_count++] = run;
    } while (sim_text_skip(c, "+"));
    return STATUS_OK;
}

/* Reads the ways of policy=cycle: "2,3,2,1,2,4". */
static enum status read_cycle(struct sim_cursor *c, struct sim_level *l)
{
    memset(l->cycle, 0, sizeof l->cycle);
    l->policy = SIM_CYCLE;
    l->cycle_count = 0;
    do {
        uint32_t way = 0;
        const enum status s = sim_text_u32(c, SIM_MAX_SHORT_WAYS, &way);
        if (s != STATUS_OK)
            return s;
        if (way == 0 || l->cycle_count == SIM_MAX_CYCLE)
            return sim_text_fail(c, "a cycle has at most 16 ways, counted from 1");
        l->cycle[l->cycle_count++] = (uint8_t)way;
    } while (sim_text_skip(c, ","));
    return STATUS_OK;
}

static enum status read_option(struct sim_cursor *c, struct sim_level *l)
{
    if (sim_text_skip(c, "sets="))
        return read_sets(c, l);
    if (sim_text_skip(c, "policy=cycle:"))
        return read_cycle(c, l);
    for (size_t i = 0; i < COUNT(numbers); i++)
        if (sim_text_skip(c, numbers[i].key))
            return sim_text_number(c, &numbers[i].number, l);
    for (size_t i = 0; i < COUNT(choices); i++) {
        if (!sim_text_skip(c, choices[i].text))
            continue;
        memcpy((char *)l + choices[i].offset, &choices[i].value, sizeof choices[i].value);
        return STATUS_OK;
    }
    return sim_text_fail(c, "unknown option of a level");
}

static enum status check_sets(const struct sim_cursor *c, const struct sim_level *l)
{
    uint64_t ways = 0;
    uint64_t sets = 0;
    uint32_t widest = 0;
    uint32_t least = UINT32_MAX;
    for (uint32_t r = 0; r < l->run_count; r++) {
        least = l->runs[r].ways < least ? l->runs[r].ways : least;
        widest = l->runs[r].ways > widest ? l->runs[r].ways : widest;
        ways += (uint64_t)l->runs[r].ways * l->runs[r].count;
        sets += l->runs[r].count;
    }
    if (ways != l->entries)
        return sim_text_fail(c, "the ways of all sets must add up to the entries");
    if (l->hash == SIM_HASH_XOR && (l->run_count != 1 || (sets & (sets - 1)) != 0))
        return sim_text_fail(
            c, "hash=xor needs sets of equal size, and their number must be a power of two");
    if (l->sectors == 0 || l->entry_bytes % l->sectors != 0)
        return sim_text_fail(c, "sectors must divide the entry into equal parts");
    if (l->recent > 0 && (l->policy != SIM_LRU || l->sectors > 1 || widest > SIM_MAX_SHORT_WAYS))
        return sim_text_fail(c, "recent= needs lru, undivided entries and sets of at most 32 ways");
    if (l->block > 0 && (l->run_count != 1 || (sets & (sets - 1)) != 0 || l->hash != SIM_HASH_MOD ||
                         (l->block & (l->block - 1)) != 0))
        return sim_text_fail(c, "block= needs a power of two, and hash=mod on one of equal sets");
    for (uint32_t i = 0; i < l->cycle_count && l->policy == SIM_CYCLE; i++)
        if (widest > SIM_MAX_SHORT_WAYS || l->cycle[i] > least)
            return sim_text_fail(c, "policy=cycle has a way that a set lacks");
    if (l->walkers == 0)
        return sim_text_fail(c, "a level must have at least one walker");
    return STATUS_OK;
}

/* Reads the entries and their length: "65@2M". */
static enum status read_entries(struct sim_cursor *c, struct sim_level *l)
{
    memcpy(l, &plain, sizeof *l);
    enum status s = sim_text_u32(c, SIM_MAX_ENTRIES, &l->entries);
    if (s == STATUS_OK && l->entries == 0)
        return sim_text_fail(c, "a level must have at least one entry");
    if (s == STATUS_OK && !sim_text_skip(c, "@"))
        return sim_text_fail(c, "expected @<entry bytes>");
    return s == STATUS_OK ? sim_text_number(c, &entry_bytes, l) : s;
}

static enum status read_options(struct sim_cursor *c, struct sim_level *l)
{
    enum status s = STATUS_OK;

    l->runs[0] = (struct sim_run){.ways = l->entries, .count = 1};
    l->run_count = 1;
    while (s == STATUS_OK && sim_text_skip(c, ";"))
        s = read_option(c, l);
    if (l->policy != SIM_CYCLE) {
        memset(l->cycle, 0, sizeof l->cycle);
        l->cycle_count = 0;
    }
    return s == STATUS_OK && c->at == c->end ? check_sets(c, l) : s;
}

enum status sim_level_read_cache(struct sim_cursor *c, struct sim_level *out)
{
    enum status s = read_entries(c, out);
    if (s == STATUS_OK && out->entry_bytes < MIN_LINE_BYTES)
        return sim_text_fail(c, "a line must have at least 4 bytes");
    out->instance_count = 1;
    return s == STATUS_OK ? read_options(c, out) : s;
}

enum status sim_level_read(struct sim_cursor *c, struct sim_desc *d, uint32_t index)
{
    if (d->sm_count == 0)
        return sim_text_fail(c, "sms= must come before the levels");
    if (index > d->level_count)
        return sim_text_fail(c, "the previous level is missing");
    struct sim_level *l = &d->levels[index];
    enum status s = read_entries(c, l);

    if (s == STATUS_OK && l->entry_bytes < MIN_ENTRY_BYTES)
        return sim_text_fail(c, "an entry must translate at least 4K");
    if (s == STATUS_OK && !sim_text_skip(c, "/"))
        return sim_text_fail(c, "expected /<sharing>: sm, gpu, a group size or groups");
    if (s == STATUS_OK)
        s = sim_sharing_read(c, d, l->instance_of_sm);
    l->instance_count = sim_sharing_count(d, l->instance_of_sm);
    if (s == STATUS_OK)
        s = read_options(c, l);
    if (s == STATUS_OK && index == d->level_count)
        d->level_count++;
    return s;
}
