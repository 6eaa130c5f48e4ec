/* sim_desc_text.c: reads a description from text, by a table of fields. */
#include "gpu/sim/sim_desc.h"

#include "base/hash.h"
#include "gpu/sim/sim_text.h"

#include <ctype.h>
#include <string.h>

#define MAX_MEMORY ((uint64_t)1 << 44) /* 16 TiB */

enum {
    DEFAULT_LATENCY_CYCLES = 300,
    DEFAULT_PLATEAU_GBPS = 1000,
    DEFAULT_SEED = 1,
    MAX_CC = 99,
    SIDE_LINE_BYTES = 128,
    MAX_TOTAL_ENTRIES = 4 << 20,
    MAX_GBPS = 1000000,
    MAX_RECLOCK = 10,
    MAX_MEMORY_NS = 1000000,
    MAX_PCIE = 64, /* limit of generations and of lanes */
    MAX_NODES = 16,
    MAX_SCATTERED_FACTOR = 100,
    MAX_PERIOD = UINT32_MAX / 4
};

enum kind {
    NAME,
    SMS,
    SMIDS,
    NOISE,
    LEVEL, /* `number.max` is the index of the level */
    KIND,  /* `number.max` is the enum memory_kind */
    FAR_SMS,
    CACHE, /* `number.offset` is an offset in struct sim_level */
    SHARED,
    CLUSTERS,
    GPCS,
    NUMBER, /* a second number follows if the next row is SECOND */
    PERIOD, /* like NUMBER, but the first number is at least 1 */
    SECOND  /* the key is the separator of the two numbers */
};

struct field {
    const char *key;
    enum kind kind;
    struct sim_number number; /* NAME: the offset of the text */
    const char *missing;      /* SECOND: the message if the key is missing */
};

#define AT(member) offsetof(struct sim_desc, member)

static const struct field fields[] = {
    {"name", NAME, {SIM_BYTES, AT(name), 0}, NULL},
    {"cc", NUMBER, {SIM_U32, AT(cc_major), MAX_CC}, NULL},
    {".", SECOND, {SIM_U32, AT(cc_minor), MAX_CC}, "expected a point: cc=9.0"},
    {"sms", SMS, {SIM_U32, 0, 0}, NULL},
    {"smids", SMIDS, {SIM_U32, 0, 0}, NULL},
    {"memory", NUMBER, {SIM_BYTES, AT(memory_bytes), 0}, NULL},
    {"l2cache", NUMBER, {SIM_BYTES, AT(l2_cache_bytes), 0}, NULL},
    {"range", NUMBER, {SIM_BYTES, AT(range_bytes), 0}, NULL},
    {"granule", NUMBER, {SIM_BYTES, AT(granule_bytes), 0}, NULL},
    {"frame", NUMBER, {SIM_BYTES, AT(frame_bytes), 0}, NULL},
    {"@", SECOND, {SIM_F64, AT(scattered_factor), MAX_SCATTERED_FACTOR}, "expected @<factor>"},
    {"clock", NUMBER, {SIM_U32, AT(clock_khz), UINT32_MAX}, NULL},
    {"latency", NUMBER, {SIM_U32, AT(latency_cycles), SIM_MAX_CYCLES}, NULL},
    {"spread", NUMBER, {SIM_U32, AT(spread_cycles), SIM_MAX_CYCLES}, NULL},
    {"noise", NOISE, {SIM_F64, AT(noise_cycles), SIM_MAX_CYCLES}, NULL},
    {"outliers", NUMBER, {SIM_F64, AT(outlier_share), 1}, NULL},
    {"@", SECOND, {SIM_U32, AT(outlier_cycles), SIM_MAX_CYCLES}, "expected @<cycles>"},
    {"l1", LEVEL, {SIM_U32, 0, 0}, NULL},
    {"l2", LEVEL, {SIM_U32, 0, 1}, NULL},
    {"l3", LEVEL, {SIM_U32, 0, 2}, NULL},
    {"l4", LEVEL, {SIM_U32, 0, 3}, NULL},
    {"l5", LEVEL, {SIM_U32, 0, 4}, NULL},
    {"l6", LEVEL, {SIM_U32, 0, 5}, NULL},
    {"sides", NUMBER, {SIM_BYTES, AT(side_granule_bytes), 0}, NULL},
    {"@", SECOND, {SIM_U32, AT(far_cycles), SIM_MAX_CYCLES}, "expected @<cycles>"},
    {"far_side", FAR_SMS, {SIM_U32, 0, 0}, NULL},
    {"l1d", CACHE, {SIM_U32, AT(l1d), 0}, NULL},
    {"array", NUMBER, {SIM_BYTES, AT(array_bytes), 0}, NULL},
    {"ro", CACHE, {SIM_U32, AT(read_only), 0}, NULL},
    {"const", CACHE, {SIM_U32, AT(constant), 0}, NULL},
    {"const_hit", NUMBER, {SIM_U32, AT(constant_cycles), SIM_MAX_CYCLES}, NULL},
    {"clock_pair", NUMBER, {SIM_U32, AT(clock_cycles), SIM_MAX_CYCLES}, NULL},
    {"l2fill", NUMBER, {SIM_BYTES, AT(l2_fill_bytes), 0}, NULL},
    {"l2line", NUMBER, {SIM_BYTES, AT(l2_line_bytes), 0}, NULL},
    {"l2keeps", NUMBER, {SIM_U32, AT(l2_keeps), SIM_L2_KEEPS_YOUNG}, NULL},
    {"memory_miss", NUMBER, {SIM_U32, AT(memory_cycles), SIM_MAX_CYCLES}, NULL},
    {"tail", NUMBER, {SIM_F64, AT(tail_share), 1}, NULL},
    {"@", SECOND, {SIM_U32, AT(tail_cycles), SIM_MAX_CYCLES}, "expected @<cycles>"},
    {"page_tables", NUMBER, {SIM_BYTES, AT(page_table_bytes), 0}, NULL},
    {"@", SECOND, {SIM_U32, AT(page_table_cycles), SIM_MAX_CYCLES}, "expected @<cycles>"},
    {"shared", SHARED, {SIM_U32, 0, 0}, NULL},
    {"clusters", CLUSTERS, {SIM_U32, 0, 0}, NULL},
    {"gpc", GPCS, {SIM_U32, 0, 0}, NULL},
    {"memory_ns", NUMBER, {SIM_F64, AT(memory_ns), MAX_MEMORY_NS}, NULL},
    {"host_memory", NUMBER, {SIM_BYTES, AT(host_memory_bytes), 0}, NULL},
    {"host_nodes", NUMBER, {SIM_U32, AT(host_nodes), MAX_NODES}, NULL},
    {"@", SECOND, {SIM_F64, AT(far_node_gbps), MAX_GBPS}, "expected @<GB/s>"},
    {"pcie", NUMBER, {SIM_U32, AT(pcie_generation), MAX_PCIE}, NULL},
    {"@", SECOND, {SIM_U32, AT(pcie_lanes), MAX_PCIE}, "expected @<lanes>"},
    {"domains", NUMBER, {SIM_U32, AT(domains), REACH_MAX_SMS}, NULL},
    {"@", SECOND, {SIM_U32, AT(domain_sms), REACH_MAX_SMS}, "expected @<SMs>"},
    {"link", NUMBER, {SIM_U32, AT(link_generation), MAX_PCIE}, NULL},
    {"@", SECOND, {SIM_U32, AT(link_lanes), MAX_PCIE}, "expected @<lanes>"},
    {"managed-device", KIND, {SIM_U32, 0, MEMORY_MANAGED_DEVICE}, NULL},
    {"host-pinned", KIND, {SIM_U32, 0, MEMORY_HOST_PINNED}, NULL},
    {"host-virtual", KIND, {SIM_U32, 0, MEMORY_HOST_VIRTUAL}, NULL},
    {"managed-host", KIND, {SIM_U32, 0, MEMORY_MANAGED_HOST}, NULL},
    {"host-registered", KIND, {SIM_U32, 0, MEMORY_HOST_REGISTERED}, NULL},
    {"host-registered-huge", KIND, {SIM_U32, 0, MEMORY_HOST_REGISTERED_HUGE}, NULL},
    {"host-pageable", KIND, {SIM_U32, 0, MEMORY_HOST_PAGEABLE}, NULL},
    {"host-file", KIND, {SIM_U32, 0, MEMORY_HOST_FILE}, NULL},
    {"host-gathered", KIND, {SIM_U32, 0, MEMORY_HOST_GATHERED}, NULL},
    {"peer", KIND, {SIM_U32, 0, MEMORY_PEER}, NULL},
    {"data_l1", NUMBER, {SIM_BYTES, AT(data_l1_bytes), 0}, NULL},
    {"@", SECOND, {SIM_F64, AT(data_l1_gbps), MAX_GBPS}, "expected @<GB/s>"},
    {"data_l2", NUMBER, {SIM_BYTES, AT(data_l2_bytes), 0}, NULL},
    {"@", SECOND, {SIM_F64, AT(data_l2_gbps), MAX_GBPS}, "expected @<GB/s>"},
    {"plateau", NUMBER, {SIM_F64, AT(plateau_gbps), MAX_GBPS}, NULL},
    {"sm_gbps", NUMBER, {SIM_F64, AT(sm_gbps), MAX_GBPS}, NULL},
    {"read_noise", NUMBER, {SIM_F64, AT(read_noise), 1}, NULL},
    {"seed", NUMBER, {SIM_U64, AT(seed), UINT64_MAX}, NULL},
    {"uuid", NAME, {SIM_BYTES, AT(uuid), 0}, NULL},
    {"serial", NAME, {SIM_BYTES, AT(serial), 0}, NULL},
    {"driver", NAME, {SIM_BYTES, AT(driver), 0}, NULL},
    {"neighbor", PERIOD, {SIM_U32, AT(neighbor_loads), MAX_PERIOD}, NULL},
    {"@", SECOND, {SIM_U32, AT(neighbor_cycles), SIM_MAX_CYCLES}, "expected @<cycles>"},
    {"neighbor_pages", NUMBER, {SIM_U32, AT(neighbor_pages), SIM_MAX_ENTRIES}, NULL},
    {"neighbor_level", NUMBER, {SIM_U32, AT(neighbor_level), SIM_MAX_LEVELS}, NULL},
    {"reclock", PERIOD, {SIM_U32, AT(reclock_loads), MAX_PERIOD}, NULL},
    {"@", SECOND, {SIM_F64, AT(reclock_factor), MAX_RECLOCK}, "expected @<factor>"},
    {"coupled", NUMBER, {SIM_F64, AT(coupled), 1}, NULL},
    {"", NAME, {SIM_U32, 0, 0}, NULL} /* the end */
};

enum { NOISE_WORDS = 3 };
static const char *const noise_words[NOISE_WORDS] = {
    [SIM_NOISE_NONE] = "none", [SIM_NOISE_UNIFORM] = "uniform:", [SIM_NOISE_GAUSS] = "gauss:"};

enum { FIELD_COUNT = sizeof fields / sizeof fields[0] - 1 };

static void set_defaults(struct sim_desc *out)
{
    memset(out, 0, sizeof *out);
    out->latency_cycles = DEFAULT_LATENCY_CYCLES;
    out->plateau_gbps = DEFAULT_PLATEAU_GBPS;
    out->seed = DEFAULT_SEED;
    out->text_hash = HASH_START;
}

uint64_t sim_desc_range(const struct sim_desc *desc)
{
    return desc->range_bytes ? desc->range_bytes : 4 * desc->memory_bytes;
}

static enum status read_name(struct sim_cursor *c, char *out)
{
    size_t n = 0;
    for (; c->at < c->end && (isalnum((unsigned char)*c->at) || strchr("-_.", *c->at)); c->at++) {
        if (n + 1 >= SIM_MAX_NAME)
            return sim_text_fail(c, "the name is too long");
        out[n++] = *c->at;
    }
    memset(out + n, 0, SIM_MAX_NAME - n);
    return n > 0 ? STATUS_OK : sim_text_fail(c, "expected a name of letters, digits, - _ .");
}

static enum status read_noise(struct sim_cursor *c, const struct sim_number *n, struct sim_desc *d)
{
    uint32_t word = 0;
    while (word < NOISE_WORDS && !sim_text_skip(c, noise_words[word]))
        word++;
    if (word == NOISE_WORDS)
        return sim_text_fail(c, "expected gauss:<cycles>, uniform:<cycles> or none");
    d->noise = (enum sim_noise)word;
    d->noise_cycles = 0;
    return d->noise == SIM_NOISE_NONE ? STATUS_OK : sim_text_number(c, n, d);
}

static enum status read_sm_ids(struct sim_cursor *c, struct sim_desc *d)
{
    uint32_t n = 0;
    do {
        uint32_t first = 0;
        uint32_t last = 0;
        enum status s = sim_text_ids(c, &first, &last);
        if (s != STATUS_OK)
            return s;
        if (n > 0 && first <= d->sm_ids[n - 1])
            return sim_text_fail(c, "SM ids must ascend");
        for (uint32_t id = first; id <= last; id++)
            d->sm_ids[n++] = (uint16_t)id;
    } while (sim_text_skip(c, ","));
    memset(d->sm_ids + n, 0, (REACH_MAX_SMS - n) * sizeof d->sm_ids[0]);
    d->sm_count = n;
    return STATUS_OK;
}

static enum status read_sm_count(struct sim_cursor *c, struct sim_desc *d)
{
    uint32_t n;
    enum status s = sim_text_u32(c, REACH_MAX_SMS, &n);
    if (s != STATUS_OK)
        return s;
    if (n == 0)
        return sim_text_fail(c, "a GPU must have at least one SM");
    memset(d->sm_ids, 0, sizeof d->sm_ids);
    for (uint32_t i = 0; i < n; i++)
        d->sm_ids[i] = (uint16_t)i;
    d->sm_count = n;
    return STATUS_OK;
}

/* Reads the SMs of the second side of the L2. */
static enum status read_far_sms(struct sim_cursor *c, struct sim_desc *d)
{
    memset(d->side_of_sm, 0, sizeof d->side_of_sm);
    do {
        uint32_t first = 0;
        uint32_t last = 0;
        const enum status s = sim_text_ids(c, &first, &last);
        uint32_t found = 0;
        if (s != STATUS_OK)
            return s;
        for (uint32_t i = 0; i < d->sm_count; i++) {
            if (d->sm_ids[i] < first || d->sm_ids[i] > last)
                continue;
            d->side_of_sm[i] = 1;
            found++;
        }
        if (found != last - first + 1)
            return sim_text_fail(c, "the id is not an SM of this GPU");
    } while (sim_text_skip(c, ","));
    return STATUS_OK;
}

/* Reads the SMs. Removes the levels, sides and GPCs, which depend on them. */
static enum status read_sms(struct sim_cursor *c, bool ids, struct sim_desc *d)
{
    memset(d->levels, 0, sizeof d->levels);
    memset(d->side_of_sm, 0, sizeof d->side_of_sm);
    memset(d->gpc_of_sm, 0, sizeof d->gpc_of_sm);
    d->level_count = 0;
    return ids ? read_sm_ids(c, d) : read_sm_count(c, d);
}

static enum status read_numbers(struct sim_cursor *c, const struct field *f, struct sim_desc *d)
{
    const enum status s = sim_text_number(c, &f->number, d);
    if (s != STATUS_OK)
        return s;
    if (f->kind == PERIOD && *(const uint32_t *)(const void *)((char *)d + f->number.offset) == 0)
        return sim_text_fail(c, "the period must be at least one load");
    if (f[1].kind != SECOND)
        return STATUS_OK;
    if (!sim_text_skip(c, f[1].key))
        return sim_text_fail(c, f[1].missing);
    return sim_text_number(c, &f[1].number, d);
}

static enum status read_value(struct sim_cursor *c, const struct field *f, struct sim_desc *d)
{
    switch (f->kind) {
    case NAME:
        return read_name(c, (char *)d + f->number.offset);
    case SMS:
    case SMIDS:
        return read_sms(c, f->kind == SMIDS, d);
    case NOISE:
        return read_noise(c, &f->number, d);
    case LEVEL:
        return sim_level_read(c, d, (uint32_t)f->number.max);
    case FAR_SMS:
        return read_far_sms(c, d);
    case CACHE:
        return sim_level_read_cache(c, (struct sim_level *)(void *)((char *)d + f->number.offset));
    case SHARED:
        return sim_shared_read(c, &d->shared);
    case CLUSTERS:
        return sim_clusters_read(c, &d->clusters);
    case GPCS:
        return sim_sharing_read(c, d, d->gpc_of_sm);
    case KIND:
        return sim_kind_read(c, &d->kinds[f->number.max]);
    default:
        return read_numbers(c, f, d);
    }
}

/* Returns the field whose key comes next, and skips the key. Returns NULL if there is no such
 * field. */
static const struct field *read_key(struct sim_cursor *c)
{
    for (uint32_t i = 0; i < FIELD_COUNT; i++) {
        const char *start = c->at;
        if (fields[i].kind != SECOND && sim_text_skip(c, fields[i].key) && sim_text_skip(c, "="))
            return &fields[i];
        c->at = start;
    }
    return NULL;
}

/* Reads one field. `seen` records for each row of the table whether it was read. */
static enum status read_field(struct sim_cursor *c, struct sim_desc *d, bool *seen)
{
    enum { SMS_ROW = 3, SMIDS_ROW = 4 };
    const uint32_t sms = d->sm_count;
    const struct field *f = read_key(c);

    if (!f)
        return sim_text_fail(c, "unknown field");
    if (seen[f - fields]) {
        c->at = c->field;
        return sim_text_fail(c, "the field is repeated");
    }
    seen[f - fields] = true;
    if (f->kind == SMS && seen[SMIDS_ROW])
        return sim_text_fail(c, "sms= must come before smids=");
    enum status s = read_value(c, f, d);
    if (s == STATUS_OK && c->at < c->end)
        s = sim_text_fail(c, "unexpected text after the value");
    if (s == STATUS_OK && f->kind == SMIDS && seen[SMS_ROW] && sms != d->sm_count)
        s = sim_text_fail(c, "smids= must name one SM for each of sms=");
    return s;
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
    else if (d->memory_bytes > MAX_MEMORY || range > 4 * MAX_MEMORY)
        what = "more memory than 16T, or more range than 64T";
    else if (range < d->memory_bytes)
        what = "range= must not be below memory=";
    else if (d->level_count == 0)
        what = "l1= is missing";
    else if (d->frame_bytes > 0 && d->scattered_factor < 1)
        what = "frame= has a factor below 1";
    else if ((d->l1d.entries && d->l1d.miss_cycles >= d->latency_cycles) ||
             (d->read_only.entries && d->read_only.miss_cycles >= d->latency_cycles) ||
             (d->constant.entries && d->constant.miss_cycles >= d->latency_cycles))
        what = "a hit of a cache takes no time: its miss= is not below latency=";
    else if (d->side_granule_bytes % SIDE_LINE_BYTES != 0)
        what = "sides= has a granule that is not a multiple of 128";
    for (uint32_t i = 0; !what && i < d->level_count; i++) {
        const struct sim_level *l = &d->levels[i];
        entries += (uint64_t)l->entries * l->instance_count;
        if (range / (l->entry_bytes / l->sectors) >= UINT32_MAX / 2)
            what = "a level's entries are too small for so much memory";
        else if (entries > MAX_TOTAL_ENTRIES)
            what = "more than four million entries in all levels together";
    }
    return what ? err_set(err, STATUS_INVALID_ARGUMENT, "simulated GPU: %s", what) : STATUS_OK;
}

enum status sim_desc_parse(const char *text, const struct sim_desc *base, struct sim_desc *out,
                           struct err *err)
{
    static const char blanks[] = " \t\n";
    struct sim_desc d;
    bool seen[FIELD_COUNT] = {false};
    enum status s = STATUS_OK;

    if (base)
        memcpy(&d, base, sizeof d);
    else
        set_defaults(&d);
    for (const char *p = text + strspn(text, blanks); *p && s == STATUS_OK;
         p += strspn(p, blanks)) {
        const char *end = p + strcspn(p, blanks);
        struct sim_cursor c = {.at = p, .end = end, .field = p, .whole = text, .err = err};
        s = read_field(&c, &d, seen);
        d.text_hash = hash_bytes(d.text_hash, p, (size_t)(end - p));
        p = end;
    }
    if (s == STATUS_OK)
        s = check_whole(&d, err);
    if (s == STATUS_OK)
        memcpy(out, &d, sizeof d);
    return s;
}
