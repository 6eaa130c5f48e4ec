/* fingerprint.c: the empty value, the names of its enums, and its two hashes.
 *
 * The id is the hash of the canonical JSON: sorted keys, no blanks, floats with 17 digits (which
 * give every double back exactly). So the id of a value does not depend on padding, on bytes behind
 * the end of a text or on slots that are not in use, and it is the same after a round trip through
 * the store. The text is hashed as it is written, without ever being held whole.
 */
#include "fingerprint/fingerprint.h"
#include "fingerprint/fingerprint_json.h"

#include "base/name_of.h"
#include "base/hash.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const shared_by_names[] = {
    [SHARED_UNKNOWN] = "unknown",
    [SHARED_SM] = "sm",
    [SHARED_GROUP] = "group",
    [SHARED_GPU] = "gpu",
};
static const char *const replacement_names[] = {
    [REPLACEMENT_UNKNOWN] = "unknown",
    [REPLACEMENT_LRU] = "lru",
    [REPLACEMENT_NOT_LRU] = "not-lru",
};
static const char *const fill_names[] = {
    [FILL_UNKNOWN] = "unknown",
    [FILL_WHOLE] = "whole",
    [FILL_PARTS] = "parts",
};
static const char *const finding_names[] = {
    [FINDING_UNKNOWN] = "unknown",
    [FINDING_YES] = "yes",
    [FINDING_NO] = "no",
};
static const char *const slow_cause_names[] = {
    [SLOW_UNKNOWN] = "unknown",
    [SLOW_BY_TLB] = "tlb",
    [SLOW_BY_BANDWIDTH] = "bandwidth",
};
static const char *const allocation_names[] = {
    [ALLOCATION_VIRTUAL] = "virtual",
    [ALLOCATION_PLAIN] = "plain",
    [ALLOCATION_MANAGED] = "managed",
};
static const char *const depth_names[] = {
    [DEPTH_QUICK] = "quick",
    [DEPTH_FULL] = "full",
    [DEPTH_MATRIX] = "matrix",
};

#define COUNT_OF(names) (sizeof(names) / sizeof((names)[0]))

/* Place of `name` in the table, or -1. */
static int find_name(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; name && i < count; i++) {
        if (strcmp(name, names[i]) == 0)
            return (int)i;
    }
    return -1;
}

const char *shared_by_name(enum shared_by s)
{
    return NAME_OF(shared_by_names, s);
}

bool shared_by_from_name(const char *name, enum shared_by *out)
{
    const int i = find_name(shared_by_names, COUNT_OF(shared_by_names), name);

    if (i >= 0)
        *out = (enum shared_by)i;
    return i >= 0;
}

const char *replacement_name(enum replacement r)
{
    return NAME_OF(replacement_names, r);
}

bool replacement_from_name(const char *name, enum replacement *out)
{
    const int i = find_name(replacement_names, COUNT_OF(replacement_names), name);

    if (i >= 0)
        *out = (enum replacement)i;
    return i >= 0;
}

const char *fill_name(enum fill f)
{
    return NAME_OF(fill_names, f);
}

bool fill_from_name(const char *name, enum fill *out)
{
    const int i = find_name(fill_names, COUNT_OF(fill_names), name);

    if (i >= 0)
        *out = (enum fill)i;
    return i >= 0;
}

const char *finding_name(enum finding f)
{
    return NAME_OF(finding_names, f);
}

bool finding_from_name(const char *name, enum finding *out)
{
    const int i = find_name(finding_names, COUNT_OF(finding_names), name);

    if (i >= 0)
        *out = (enum finding)i;
    return i >= 0;
}

const char *slow_cause_name(enum slow_cause c)
{
    return NAME_OF(slow_cause_names, c);
}

bool slow_cause_from_name(const char *name, enum slow_cause *out)
{
    const int i = find_name(slow_cause_names, COUNT_OF(slow_cause_names), name);

    if (i >= 0)
        *out = (enum slow_cause)i;
    return i >= 0;
}

const char *allocation_name(enum allocation a)
{
    return NAME_OF(allocation_names, a);
}

const char *depth_name(enum depth d)
{
    return NAME_OF(depth_names, d);
}

bool depth_from_name(const char *name, enum depth *out)
{
    const int i = find_name(depth_names, COUNT_OF(depth_names), name);

    if (i >= 0)
        *out = (enum depth)i;
    return i >= 0;
}

static void partition_init(struct sm_partition *p)
{
    p->group_count = 0;
    for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++)
        p->group_of_sm[sm] = FINGERPRINT_NO_GROUP;
}

static void level_init(struct tlb_level *l)
{
    const struct maybe_u32 no_u32 = UNKNOWN(REASON_NOT_MEASURED);
    const struct maybe_u64 no_u64 = UNKNOWN(REASON_NOT_MEASURED);
    const struct maybe_f64 no_f64 = UNKNOWN(REASON_NOT_MEASURED);

    *l = (struct tlb_level){
        .entries = no_u32,
        .entry_bytes = no_u64,
        .page_bytes = no_u64,
        .reach_bytes = no_u64,
        .onset_bytes = no_u64,
        .saturation_bytes = no_u64,
        .sets = no_u32,
        .ways = no_u32,
        .victim_entries = no_u32,
        .entry_pages = no_u32,
        .tag_bytes = no_u64,
        .miss_penalty_cycles = no_f64,
        .confidence = no_f64,
    };
    partition_init(&l->sharing);
}

static void topology_init(struct topology *t)
{
    const struct maybe_u32 no_u32 = UNKNOWN(REASON_NOT_MEASURED);
    const struct maybe_f64 no_f64 = UNKNOWN(REASON_NOT_MEASURED);

    partition_init(&t->partition);
    t->level = t->nominal_group_sms = t->full_sm_count = no_u32;
    t->disabled.sm_count = t->disabled.unit_sms = t->disabled.lost_groups = no_u32;
    t->disabled.candidate_count = no_u32;
    t->confidence = no_f64;
    t->penalty_classes = t->speed_classes = no_u32;
    t->pairs.worst_ratio = no_f64;
    for (uint32_t g = 0; g < REACH_MAX_GROUPS; g++) {
        struct sm_group *const group = &t->groups[g];
        group->miss_penalty_cycles = group->random_read_gbps = no_f64;
        group->alone_gbps = group->beyond_gbps = no_f64;
        group->penalty_class = group->speed_class = no_u32;
    }
    for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++)
        t->sm_miss_penalty_cycles[sm] = no_f64;
}

static void throughput_init(struct throughput *t)
{
    const struct maybe_f64 no_f64 = UNKNOWN(REASON_NOT_MEASURED);

    t->plateau_gbps = t->whole_memory_gbps = no_f64;
    for (uint32_t i = 0; i < FINGERPRINT_MAX_CURVE; i++) {
        struct curve_point *const p = &t->curve[i];
        p->naive_gbps = p->by_group_gbps = p->by_sm_gbps = no_f64;
    }
    for (uint32_t i = 0; i < FINGERPRINT_MAX_RATES; i++) {
        struct access_rate *const rate = &t->rates[i];
        rate->plateau_gbps = no_f64;
        for (uint32_t k = 0; k < FINGERPRINT_MAX_RATE_POINTS; k++)
            rate->points[k].naive_gbps = rate->points[k].by_group_gbps = no_f64;
    }
}

void fingerprint_init(struct fingerprint *out)
{
    const struct maybe_u32 no_u32 = UNKNOWN(REASON_NOT_MEASURED);
    const struct maybe_u64 no_u64 = UNKNOWN(REASON_NOT_MEASURED);
    const struct maybe_f64 no_f64 = UNKNOWN(REASON_NOT_MEASURED);

    memset(out, 0, sizeof(*out));
    for (uint32_t i = 0; i < FINGERPRINT_MAX_LEVELS; i++)
        level_init(&out->levels[i]);
    topology_init(&out->topology);
    out->beyond.reach_bytes = no_u64;
    out->beyond.walk_cycles = no_f64;
    for (uint32_t a = 0; a < ALLOCATION_COUNT; a++)
        out->page_bytes[a] = no_u64;
    out->windows.reach_bytes = out->windows.entry_bytes = out->windows.recommended_bytes = no_u64;
    throughput_init(&out->throughput);
    out->conditions.sm_clock_khz = out->conditions.other_processes = no_u32;
}

void fingerprint_add_note(struct fingerprint *fp, const char *format, ...)
{
    struct fingerprint_conditions *c = &fp->conditions;
    va_list args;

    if (c->note_count == FINGERPRINT_MAX_NOTES)
        return;
    va_start(args, format);
    (void)vsnprintf(c->notes[c->note_count], sizeof c->notes[0], format, args);
    va_end(args);
    c->note_count += 1;
}

int64_t fingerprint_part_taken_at(const struct fingerprint *fp, enum fingerprint_part part)
{
    return fp->kept[part].id[0] ? fp->kept[part].taken_at : fp->taken_at;
}

static uint64_t hash_number(uint64_t h, uint64_t v)
{
    unsigned char bytes[sizeof(v)];

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)(v >> (8 * i));
    return hash_bytes(h, bytes, sizeof(bytes));
}

/* With its end, so that "ab","c" and "a","bc" differ. */
static uint64_t hash_string(uint64_t h, const char *s)
{
    return hash_bytes(h, s, strlen(s) + 1);
}

static uint64_t hash_u32(uint64_t h, struct maybe_u32 m)
{
    return hash_number(hash_number(h, (uint64_t)m.known), m.v);
}

static uint64_t hash_u64(uint64_t h, struct maybe_u64 m)
{
    return hash_number(hash_number(h, (uint64_t)m.known), m.v);
}

static uint64_t hash_partition(uint64_t h, const struct sm_partition *p)
{
    h = hash_number(h, p->group_count);
    for (uint32_t sm = 0; p->group_count > 0 && sm < REACH_MAX_SMS; sm++)
        h = hash_number(h, p->group_of_sm[sm]);
    return h;
}

/* Onset and saturation are left out: they are points of the sweep, which need not be the same ones
 * at every depth. */
/* What every depth finds: sets, ways and replacement are known to some. */
static uint64_t hash_level(uint64_t h, const struct tlb_level *l)
{
    h = hash_number(h, l->level);
    h = hash_u32(h, l->entries);
    h = hash_u64(h, l->entry_bytes);
    h = hash_u64(h, l->page_bytes);
    h = hash_u64(h, l->reach_bytes);
    h = hash_number(h, (uint64_t)l->shared_by);
    return hash_partition(h, &l->sharing);
}

/* The slot (PCI) and the driver's versions are not of the chip. */
static uint64_t hash_chip(uint64_t h, const struct gpu_identity *id)
{
    h = hash_string(h, id->uuid);
    h = hash_string(h, id->name);
    h = hash_string(h, id->serial);
    h = hash_number(h, id->compute_major);
    h = hash_number(h, id->compute_minor);
    h = hash_number(h, id->sm_count);
    h = hash_number(h, id->memory_bytes);
    h = hash_number(h, id->l2_cache_bytes);
    h = hash_number(h, id->mig);
    return hash_number(h, (uint64_t)id->origin);
}

uint64_t fingerprint_structure_hash(const struct fingerprint *fp)
{
    uint64_t h = hash_chip(HASH_START, &fp->gpu);

    h = hash_number(h, fp->level_count);
    for (uint32_t i = 0; i < fp->level_count; i++)
        h = hash_level(h, &fp->levels[i]);
    h = hash_u32(h, fp->topology.level);
    h = hash_u32(h, fp->topology.nominal_group_sms);
    h = hash_u32(h, fp->topology.full_sm_count);
    h = hash_string(h, fp->topology.disabled.signature);
    h = hash_u32(h, fp->topology.disabled.candidate_count);
    return hash_partition(h, &fp->topology.partition);
}
