/* parts.c: see parts.h. Evidence belongs to the numbers it is of and is copied with them. */
#include "fingerprint/parts.h"

#include <stdio.h>
#include <string.h>

static const char *const level_part_names[LEVEL_PART_COUNT] = {
    [LEVEL_PART_SIZE] = "size",      [LEVEL_PART_PENALTY] = "miss_penalty_cycles",
    [LEVEL_PART_SHARING] = "groups", [LEVEL_PART_SETS] = "sets",
    [LEVEL_PART_FILL] = "fill",
};

/* From PART_BEYOND on. */
static const char *const part_names[PART_COUNT - PART_BEYOND] = {
    [0] = "tlb.beyond",
    [PART_PAGE_BYTES - PART_BEYOND] = "tlb.page_bytes",
    [PART_GROUPS - PART_BEYOND] = "topology.groups",
    [PART_GROUP_PENALTIES - PART_BEYOND] = "topology.miss_penalty_cycles",
    [PART_GROUP_SPEEDS - PART_BEYOND] = "topology.gbps",
    [PART_GROUP_PAIRS - PART_BEYOND] = "topology.pairs",
    [PART_CURVE - PART_BEYOND] = "throughput.curve",
    [PART_RATES - PART_BEYOND] = "throughput.rates",
};

const char *fingerprint_part_name(enum fingerprint_part part, char *out)
{
    if (part < PART_BEYOND)
        (void)snprintf(out, PART_NAME_BYTES, "tlb.levels[%d].%.20s", (int)part / LEVEL_PART_COUNT,
                       level_part_names[(int)part % LEVEL_PART_COUNT]);
    else
        (void)snprintf(out, PART_NAME_BYTES, "%s", part_names[part - PART_BEYOND]);
    return out;
}

/* ---- levels --------------------------------------------------------------------------------- */
static uint32_t level_known(const struct tlb_level *l, enum level_part part)
{
    switch (part) {
    case LEVEL_PART_SIZE:
        return (uint32_t)(IS_KNOWN(l->entries) + IS_KNOWN(l->entry_bytes) +
                          IS_KNOWN(l->page_bytes) + IS_KNOWN(l->reach_bytes) +
                          IS_KNOWN(l->onset_bytes) + IS_KNOWN(l->saturation_bytes) +
                          IS_KNOWN(l->confidence));
    case LEVEL_PART_PENALTY:
        return IS_KNOWN(l->miss_penalty_cycles);
    case LEVEL_PART_SHARING:
        return (uint32_t)(l->shared_by != SHARED_UNKNOWN) + l->sharing.group_count;
    case LEVEL_PART_SETS:
        return (uint32_t)(IS_KNOWN(l->sets) + IS_KNOWN(l->ways) + IS_KNOWN(l->victim_entries) +
                          (l->replacement != REPLACEMENT_UNKNOWN)) +
               l->run_count;
    default:
        return (uint32_t)((l->fill != FILL_UNKNOWN) + IS_KNOWN(l->entry_pages) +
                          IS_KNOWN(l->tag_bytes));
    }
}

static void copy_evidence(const struct tlb_level *from, uint32_t i, struct tlb_level *to)
{
    to->evidence[i] = from->evidence[i];
}

static void level_copy_size(const struct tlb_level *from, struct tlb_level *to)
{
    to->entries = from->entries;
    to->entry_bytes = from->entry_bytes;
    to->page_bytes = from->page_bytes;
    to->reach_bytes = from->reach_bytes;
    to->onset_bytes = from->onset_bytes;
    to->saturation_bytes = from->saturation_bytes;
    to->confidence = from->confidence;
    copy_evidence(from, LEVEL_EVIDENCE_ENTRY_BYTES, to);
    copy_evidence(from, LEVEL_EVIDENCE_REACH_BYTES, to);
    copy_evidence(from, LEVEL_EVIDENCE_SATURATION_BYTES, to);
}

static void level_copy_sets(const struct tlb_level *from, struct tlb_level *to)
{
    to->sets = from->sets;
    to->ways = from->ways;
    to->run_count = from->run_count;
    memcpy(to->runs, from->runs, sizeof to->runs);
    to->victim_entries = from->victim_entries;
    to->replacement = from->replacement;
    copy_evidence(from, LEVEL_EVIDENCE_SETS, to);
    copy_evidence(from, LEVEL_EVIDENCE_REPLACEMENT, to);
}

static void level_copy(const struct tlb_level *from, enum level_part part, struct tlb_level *to)
{
    switch (part) {
    case LEVEL_PART_SIZE:
        level_copy_size(from, to);
        break;
    case LEVEL_PART_PENALTY:
        to->miss_penalty_cycles = from->miss_penalty_cycles;
        copy_evidence(from, LEVEL_EVIDENCE_MISS_PENALTY_CYCLES, to);
        break;
    case LEVEL_PART_SHARING:
        to->shared_by = from->shared_by;
        to->sharing = from->sharing;
        copy_evidence(from, LEVEL_EVIDENCE_SHARED_BY, to);
        break;
    case LEVEL_PART_SETS:
        level_copy_sets(from, to);
        break;
    default:
        to->fill = from->fill;
        to->entry_pages = from->entry_pages;
        to->tag_bytes = from->tag_bytes;
        copy_evidence(from, LEVEL_EVIDENCE_FILL, to);
        copy_evidence(from, LEVEL_EVIDENCE_ENTRY_PAGES, to);
        break;
    }
}

/* ---- groups --------------------------------------------------------------------------------- */
static uint32_t groups_known(const struct fingerprint *fp)
{
    const struct topology *const t = &fp->topology;
    uint32_t members = 0;

    for (uint32_t sm = 0; t->partition.group_count > 0 && sm < REACH_MAX_SMS; sm++)
        members += t->partition.group_of_sm[sm] != FINGERPRINT_NO_GROUP;
    return members +
           (uint32_t)(IS_KNOWN(t->level) + IS_KNOWN(t->full_sm_count) +
                      IS_KNOWN(t->disabled.sm_count) + IS_KNOWN(fp->windows.reach_bytes) +
                      IS_KNOWN(fp->windows.entry_bytes) + IS_KNOWN(fp->windows.recommended_bytes));
}

static void groups_copy(const struct fingerprint *from, struct fingerprint *to)
{
    const struct topology *const f = &from->topology;
    struct topology *const t = &to->topology;

    t->level = f->level;
    t->partition = f->partition;
    t->nominal_group_sms = f->nominal_group_sms;
    t->full_sm_count = f->full_sm_count;
    t->disabled = f->disabled;
    t->confidence = f->confidence;
    for (uint32_t g = 0; g < REACH_MAX_GROUPS; g++)
        t->groups[g].sm_count = f->groups[g].sm_count;
    t->evidence[TOPOLOGY_EVIDENCE_GROUPS] = f->evidence[TOPOLOGY_EVIDENCE_GROUPS];
    t->evidence[TOPOLOGY_EVIDENCE_DISABLED] = f->evidence[TOPOLOGY_EVIDENCE_DISABLED];
    to->windows = from->windows;
}

static uint32_t penalties_known(const struct topology *t)
{
    uint32_t n = IS_KNOWN(t->penalty_classes);

    for (uint32_t g = 0; g < t->partition.group_count; g++)
        n += (uint32_t)(IS_KNOWN(t->groups[g].miss_penalty_cycles) +
                        IS_KNOWN(t->groups[g].penalty_class));
    for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++)
        n += IS_KNOWN(t->sm_miss_penalty_cycles[sm]);
    return n;
}

static void penalties_copy(const struct topology *f, struct topology *t)
{
    const uint32_t of_group = GROUP_EVIDENCE_MISS_PENALTY_CYCLES;

    t->penalty_classes = f->penalty_classes;
    t->evidence[TOPOLOGY_EVIDENCE_PENALTY_CLASSES] = f->evidence[TOPOLOGY_EVIDENCE_PENALTY_CLASSES];
    memcpy(t->sm_miss_penalty_cycles, f->sm_miss_penalty_cycles, sizeof t->sm_miss_penalty_cycles);
    for (uint32_t g = 0; g < REACH_MAX_GROUPS; g++) {
        t->groups[g].miss_penalty_cycles = f->groups[g].miss_penalty_cycles;
        t->groups[g].penalty_class = f->groups[g].penalty_class;
        t->groups[g].evidence[of_group] = f->groups[g].evidence[of_group];
    }
}

static uint32_t speeds_known(const struct topology *t)
{
    uint32_t n = (uint32_t)(IS_KNOWN(t->speed_classes) + (t->speed_follows_sms != FINDING_UNKNOWN));

    for (uint32_t g = 0; g < t->partition.group_count; g++)
        n +=
            (uint32_t)(IS_KNOWN(t->groups[g].random_read_gbps) + IS_KNOWN(t->groups[g].alone_gbps) +
                       IS_KNOWN(t->groups[g].beyond_gbps) + IS_KNOWN(t->groups[g].speed_class));
    return n;
}

static void speeds_copy(const struct topology *f, struct topology *t)
{
    static const uint32_t evidence[] = {GROUP_EVIDENCE_RANDOM_READ_GBPS, GROUP_EVIDENCE_ALONE_GBPS,
                                        GROUP_EVIDENCE_BEYOND_GBPS};

    t->speed_classes = f->speed_classes;
    t->speed_follows_sms = f->speed_follows_sms;
    t->evidence[TOPOLOGY_EVIDENCE_SPEED_CLASSES] = f->evidence[TOPOLOGY_EVIDENCE_SPEED_CLASSES];
    t->evidence[TOPOLOGY_EVIDENCE_SPEED_FOLLOWS_SMS] =
        f->evidence[TOPOLOGY_EVIDENCE_SPEED_FOLLOWS_SMS];
    for (uint32_t g = 0; g < REACH_MAX_GROUPS; g++) {
        t->groups[g].random_read_gbps = f->groups[g].random_read_gbps;
        t->groups[g].alone_gbps = f->groups[g].alone_gbps;
        t->groups[g].beyond_gbps = f->groups[g].beyond_gbps;
        t->groups[g].speed_class = f->groups[g].speed_class;
        for (size_t i = 0; i < sizeof evidence / sizeof *evidence; i++)
            t->groups[g].evidence[evidence[i]] = f->groups[g].evidence[evidence[i]];
    }
}

static void pairs_copy(const struct topology *f, struct topology *t)
{
    t->pairs = f->pairs;
    t->evidence[TOPOLOGY_EVIDENCE_PAIRS] = f->evidence[TOPOLOGY_EVIDENCE_PAIRS];
}

/* ---- throughput ----------------------------------------------------------------------------- */
static uint32_t curve_known(const struct throughput *t)
{
    uint32_t n = (uint32_t)(IS_KNOWN(t->plateau_gbps) + IS_KNOWN(t->whole_memory_gbps));

    for (uint32_t i = 0; i < t->curve_count; i++)
        n += (uint32_t)(IS_KNOWN(t->curve[i].naive_gbps) + IS_KNOWN(t->curve[i].by_group_gbps) +
                        IS_KNOWN(t->curve[i].by_sm_gbps));
    return n;
}

static void curve_copy(const struct throughput *f, struct throughput *t)
{
    t->plateau_gbps = f->plateau_gbps;
    t->whole_memory_gbps = f->whole_memory_gbps;
    t->curve_count = f->curve_count;
    memcpy(t->curve, f->curve, sizeof t->curve);
    memcpy(t->evidence, f->evidence, sizeof t->evidence);
}

static uint32_t rates_known(const struct throughput *t)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < t->rate_count; i++) {
        n += IS_KNOWN(t->rates[i].plateau_gbps);
        for (uint32_t k = 0; k < t->rates[i].point_count; k++)
            n += (uint32_t)(IS_KNOWN(t->rates[i].points[k].naive_gbps) +
                            IS_KNOWN(t->rates[i].points[k].by_group_gbps));
    }
    return n;
}

static void rates_copy(const struct throughput *f, struct throughput *t)
{
    t->rate_count = f->rate_count;
    memcpy(t->rates, f->rates, sizeof t->rates);
}

/* ---- all parts ------------------------------------------------------------------------------ */
static uint32_t page_bytes_known(const struct fingerprint *fp)
{
    uint32_t n = 0;

    for (uint32_t a = 0; a < ALLOCATION_COUNT; a++)
        n += IS_KNOWN(fp->page_bytes[a]);
    return n;
}

uint32_t part_known(const struct fingerprint *fp, enum fingerprint_part part)
{
    const uint32_t k = (uint32_t)part / LEVEL_PART_COUNT;

    switch (part) {
    case PART_BEYOND:
        return (uint32_t)(IS_KNOWN(fp->beyond.reach_bytes) + IS_KNOWN(fp->beyond.walk_cycles));
    case PART_PAGE_BYTES:
        return page_bytes_known(fp);
    case PART_GROUPS:
        return groups_known(fp);
    case PART_GROUP_PENALTIES:
        return penalties_known(&fp->topology);
    case PART_GROUP_SPEEDS:
        return speeds_known(&fp->topology);
    case PART_GROUP_PAIRS:
        return fp->topology.pairs.measured;
    case PART_CURVE:
        return curve_known(&fp->throughput);
    case PART_RATES:
        return rates_known(&fp->throughput);
    default:
        return k < fp->level_count
                   ? level_known(&fp->levels[k], (enum level_part)((int)part % LEVEL_PART_COUNT))
                   : 0;
    }
}

void part_copy(const struct fingerprint *from, enum fingerprint_part part, struct fingerprint *to)
{
    const uint32_t k = (uint32_t)part / LEVEL_PART_COUNT;

    switch (part) {
    case PART_BEYOND:
        to->beyond = from->beyond;
        break;
    case PART_PAGE_BYTES:
        memcpy(to->page_bytes, from->page_bytes, sizeof to->page_bytes);
        break;
    case PART_GROUPS:
        groups_copy(from, to);
        break;
    case PART_GROUP_PENALTIES:
        penalties_copy(&from->topology, &to->topology);
        break;
    case PART_GROUP_SPEEDS:
        speeds_copy(&from->topology, &to->topology);
        break;
    case PART_GROUP_PAIRS:
        pairs_copy(&from->topology, &to->topology);
        break;
    case PART_CURVE:
        curve_copy(&from->throughput, &to->throughput);
        break;
    case PART_RATES:
        rates_copy(&from->throughput, &to->throughput);
        break;
    default:
        level_copy(&from->levels[k], (enum level_part)((int)part % LEVEL_PART_COUNT),
                   &to->levels[k]);
        break;
    }
}
