/* any_fingerprint.c: see any_fingerprint.h. */
#include "tests/unit/support/any_fingerprint.h"

#include "base/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static enum reason any_reason(struct rng *r)
{
    return (enum reason)(1 + rng_below(r, REASON_COUNT - 1));
}

static struct maybe_u64 any_u64(struct rng *r, uint64_t least)
{
    switch (rng_below(r, 4)) {
    case 0:
        return UNKNOWN_U64(any_reason(r));
    case 1:
        return NOT_OBSERVABLE_U64(any_reason(r));
    default:
        return KNOWN_U64(least + (rng_next(r) >> (10 + rng_below(r, 50))));
    }
}

static struct maybe_u32 any_u32(struct rng *r)
{
    const struct maybe_u64 m = any_u64(r, 0);

    return (struct maybe_u32){.known = m.known, .reason = m.reason, .v = (uint32_t)m.v};
}

/* Returns a double of any size, with all its digits. */
static struct maybe_f64 any_f64(struct rng *r)
{
    const struct maybe_u64 m = any_u64(r, 0);
    const double v = ldexp(rng_unit(r), (int)rng_below(r, 200) - 100);

    return (struct maybe_f64){
        .known = m.known, .reason = m.reason, .v = m.known == MAYBE_KNOWN ? v : 0.0};
}

static struct maybe_f64 any_confidence(struct rng *r)
{
    struct maybe_f64 m = any_f64(r);

    m.v = m.known == MAYBE_KNOWN ? rng_unit(r) : 0.0;
    return m;
}

static struct evidence new_evidence(struct rng *r)
{
    return evidence_make((enum evidence_method)(1 + rng_below(r, EVIDENCE_METHOD_COUNT - 1)),
                         rng_below(r, 3000), rng_unit(r) * 1.2 - 0.1);
}

/* Makes evidence for some of the known numbers. */
static void any_evidence(struct rng *r, bool known, struct evidence *e)
{
    if (known && rng_below(r, 3) > 0)
        *e = new_evidence(r);
}

/* The form of the evidence of one number in the elements of a list. */
struct column {
    bool none;       /* no element has evidence */
    bool everywhere; /* the number is known in each element */
    bool gaps;       /* some elements have no evidence */
    bool methods;    /* methods differ */
    bool repeats;
    bool margins;
    struct evidence common;
};

static struct column any_column(struct rng *r)
{
    return (struct column){.none = rng_below(r, 5) == 0,
                           .everywhere = rng_below(r, 2),
                           .gaps = rng_below(r, 3) == 0,
                           .methods = rng_below(r, 4) == 0,
                           .repeats = rng_below(r, 3) == 0,
                           .margins = rng_below(r, 2),
                           .common = new_evidence(r)};
}

/* Draws the number of one element and its evidence. */
static void any_number(struct rng *r, const struct column *c, struct maybe_f64 *number,
                       struct evidence *e)
{
    const struct evidence own = new_evidence(r);

    *number = any_f64(r);
    if (c->everywhere && !IS_KNOWN(*number))
        *number = KNOWN_F64(rng_unit(r));
    if (c->none || !IS_KNOWN(*number) || (c->gaps && rng_below(r, 3) == 0))
        return;
    *e = (struct evidence){.method = c->methods ? own.method : c->common.method,
                           .repeats = c->repeats ? own.repeats : c->common.repeats,
                           .margin = c->margins ? own.margin : c->common.margin};
}

/* Puts SMs into random groups, and numbers the groups by their lowest SM. */
static void any_partition(struct rng *r, uint32_t sms, struct sm_partition *p)
{
    const uint32_t colours = (uint32_t)(1 + rng_below(r, 30));
    uint32_t number[REACH_MAX_GROUPS];

    memset(number, 0xff, sizeof(number));
    p->group_count = 0;
    for (uint32_t i = 0; i < REACH_MAX_SMS; i++)
        p->group_of_sm[i] = FINGERPRINT_NO_GROUP;
    for (uint32_t i = 0; i < sms; i++) {
        const uint32_t sm = i * 3 / 2; /* ids have gaps */
        const uint32_t colour = (uint32_t)rng_below(r, colours + 1);
        if (colour == colours)
            continue;
        if (number[colour] == UINT32_MAX)
            number[colour] = p->group_count++;
        p->group_of_sm[sm] = (uint16_t)number[colour];
    }
}

/* Makes distinct sizes that fit, with the most ways first, or no known sizes. */
static void any_sets(struct rng *r, struct tlb_level *l)
{
    uint32_t sets = 0;

    l->sets = any_u32(r);
    l->ways = any_u32(r);
    l->run_count = (uint32_t)rng_below(r, FINGERPRINT_MAX_SET_RUNS + 1);
    for (uint32_t i = 0; i < l->run_count; i++) {
        l->runs[i] = (struct set_run){.ways = 64 - i * 2, .sets = (uint32_t)(1 + rng_below(r, 99))};
        sets += l->runs[i].sets;
    }
    if (l->run_count == 0)
        return;
    l->sets = KNOWN_U32(sets);
    l->ways = l->run_count == 1 ? KNOWN_U32(64) : UNKNOWN_U32(REASON_NOT_APPLICABLE);
}

static void any_level(struct rng *r, uint32_t sms, uint32_t i, struct tlb_level *l)
{
    l->level = i + 1;
    l->entries = any_u32(r);
    l->entry_bytes = any_u64(r, 1);
    l->page_bytes = any_u64(r, 1);
    l->reach_bytes = rng_below(r, 3) ? KNOWN_U64((uint64_t)(i + 1) << 57)
                                     : NOT_OBSERVABLE_U64(REASON_BEYOND_MEMORY);
    l->onset_bytes = KNOWN_U64(rng_next(r) >> 40);
    l->saturation_bytes = KNOWN_U64(l->onset_bytes.v + rng_below(r, 1000));
    any_sets(r, l);
    l->victim_entries = any_u32(r);
    l->replacement = (enum replacement)rng_below(r, 3);
    l->fill = (enum fill)rng_below(r, 3);
    l->entry_pages = any_u32(r);
    l->tag_bytes = any_u64(r, 1);
    l->miss_penalty_cycles = any_f64(r);
    l->shared_by = (enum shared_by)rng_below(r, 4);
    if (l->shared_by == SHARED_GROUP)
        any_partition(r, sms, &l->sharing);
    l->confidence = any_confidence(r);
    any_evidence(r, IS_KNOWN(l->entry_bytes), &l->evidence.entry_bytes);
    any_evidence(r, IS_KNOWN(l->reach_bytes), &l->evidence.reach_bytes);
    any_evidence(r, true, &l->evidence.saturation_bytes);
    any_evidence(r, IS_KNOWN(l->sets), &l->evidence.sets);
    any_evidence(r, l->fill != FILL_UNKNOWN, &l->evidence.fill);
}

/* Makes up to 200 SMs of a die with room for them, and sets of these SMs, the latest set first. */
static void any_disabled(struct rng *r, struct topology *t)
{
    struct disabled_sms *const d = &t->disabled;
    const uint32_t lost = (uint32_t)rng_below(r, rng_below(r, 2) ? 4 : 200);
    uint32_t members = 0;

    for (uint32_t g = 0; g < t->partition.group_count; g++)
        members += t->groups[g].sm_count;
    t->full_sm_count = KNOWN_U32(members + lost);
    d->sm_count = KNOWN_U32(lost);
    d->unit_sms = any_u32(r);
    d->lost_groups = any_u32(r);
    d->candidate_count = rng_below(r, 2) ? KNOWN_U32(100) : any_u32(r);
    (void)snprintf(d->signature, sizeof(d->signature), "%ux6/1,2", (unsigned)rng_below(r, 99));
    if (lost > FINGERPRINT_MAX_DISABLED || members < FINGERPRINT_MAX_CANDIDATES ||
        (IS_KNOWN(d->candidate_count) && d->candidate_count.v < FINGERPRINT_MAX_CANDIDATES))
        return;
    d->listed = lost > 0 ? (uint32_t)rng_below(r, FINGERPRINT_MAX_CANDIDATES + 1) : 1;
    for (uint32_t k = 0; k < d->listed; k++) {
        for (uint32_t i = 0; i < lost; i++)
            d->candidates[k][i] = (uint16_t)(FINGERPRINT_MAX_CANDIDATES - 1 - k + i);
    }
}

static void any_pairs(struct rng *r, uint32_t groups, struct group_pairs *p)
{
    if (groups < 2)
        return;
    p->measured = 500;
    p->worst_ratio = KNOWN_F64(rng_unit(r));
    p->worst[1] = (uint16_t)(1 + rng_below(r, groups - 1));
    p->share_tlb = (enum finding)rng_below(r, 3);
    p->listed = (uint32_t)rng_below(r, FINGERPRINT_MAX_SLOW_PAIRS + 1);
    p->slow_count = p->listed + (uint32_t)rng_below(r, 5);
    for (uint32_t i = 0; i < p->listed; i++) {
        p->slow[i].groups[1] = (uint16_t)(1 + rng_below(r, groups - 1));
        p->slow[i].ratio = rng_unit(r);
        p->slow[i].cause = (enum slow_cause)rng_below(r, 3);
    }
}

static void any_groups(struct rng *r, struct topology *t)
{
    const struct column penalty = any_column(r);
    const struct column reads = any_column(r);
    const struct column alone = any_column(r);
    const struct column beyond = any_column(r);

    for (uint32_t g = 0; g < t->partition.group_count; g++) {
        struct sm_group *const group = &t->groups[g];
        struct group_evidence *const e = &group->evidence;
        any_number(r, &penalty, &group->miss_penalty_cycles, &e->miss_penalty_cycles);
        any_number(r, &reads, &group->random_read_gbps, &e->random_read_gbps);
        any_number(r, &alone, &group->alone_gbps, &e->alone_gbps);
        any_number(r, &beyond, &group->beyond_gbps, &e->beyond_gbps);
        group->penalty_class = any_u32(r);
        group->speed_class = any_u32(r);
    }
}

static void any_topology(struct rng *r, uint32_t sms, struct topology *t)
{
    t->level = any_u32(r);
    any_partition(r, sms, &t->partition);
    for (uint32_t i = 0; i < REACH_MAX_SMS; i++) {
        if (t->partition.group_of_sm[i] != FINGERPRINT_NO_GROUP)
            t->groups[t->partition.group_of_sm[i]].sm_count++;
    }
    any_groups(r, t);
    for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++)
        if (t->partition.group_of_sm[sm] != FINGERPRINT_NO_GROUP && rng_below(r, 3) > 0)
            t->sm_miss_penalty_cycles[sm] = KNOWN_F64((double)rng_below(r, 1000) / 4);
    t->penalty_classes = any_u32(r);
    t->speed_classes = any_u32(r);
    t->speed_follows_sms = (enum finding)rng_below(r, 3);
    any_pairs(r, t->partition.group_count, &t->pairs);
    t->nominal_group_sms = any_u32(r);
    t->full_sm_count = any_u32(r);
    if (rng_below(r, 2))
        any_disabled(r, t);
    t->confidence = any_confidence(r);
    any_evidence(r, t->partition.group_count > 0, &t->evidence.groups);
    any_evidence(r, IS_KNOWN(t->full_sm_count), &t->evidence.disabled);
}

static void any_curve(struct rng *r, struct throughput *t)
{
    const struct column naive = any_column(r);
    const struct column by_group = any_column(r);
    const struct column by_sm = any_column(r);

    t->curve_count = (uint32_t)rng_below(r, FINGERPRINT_MAX_CURVE + 1);
    for (uint32_t i = 0; i < t->curve_count; i++) {
        struct curve_point *const p = &t->curve[i];
        p->region_bytes = (i + 1) * GIB;
        any_number(r, &naive, &p->naive_gbps, &p->evidence.naive_gbps);
        any_number(r, &by_group, &p->by_group_gbps, &p->evidence.by_group_gbps);
        any_number(r, &by_sm, &p->by_sm_gbps, &p->evidence.by_sm_gbps);
        p->windows = (uint32_t)rng_below(r, 9);
    }
}

/* Only the largest region has a number by group. */
static void any_rate_points(struct rng *r, struct access_rate *rate)
{
    const struct column naive = any_column(r);
    const struct column by_group = any_column(r);

    rate->point_count = (uint32_t)rng_below(r, FINGERPRINT_MAX_RATE_POINTS + 1);
    for (uint32_t k = 0; k < rate->point_count; k++) {
        struct curve_point *const p = &rate->points[k];
        p->region_bytes = (k + 65) * GIB;
        any_number(r, &naive, &p->naive_gbps, &p->evidence.naive_gbps);
        if (k + 1 == rate->point_count)
            any_number(r, &by_group, &p->by_group_gbps, &p->evidence.by_group_gbps);
    }
}

/* Makes each of a few kinds at most once, in order. */
static void any_rates(struct rng *r, struct throughput *t)
{
    static const uint32_t bytes[] = {32, 64, 512};

    for (int access = ACCESS_READ; access < ACCESS_COUNT; access++) {
        for (uint32_t i = 0; i < 3 && t->rate_count < FINGERPRINT_MAX_RATES; i++) {
            struct access_rate *const rate = &t->rates[t->rate_count];
            if (rng_below(r, 2))
                continue;
            rate->access = (enum access)access;
            rate->transaction_bytes = bytes[i];
            rate->plateau_gbps = any_f64(r);
            any_evidence(r, IS_KNOWN(rate->plateau_gbps), &rate->evidence.plateau_gbps);
            any_rate_points(r, rate);
            t->rate_count++;
        }
    }
}

/* Makes a list of working sets, sorted by transaction_bytes and then by set_bytes. In half of the
 * cases the list is empty. */
static void any_working_sets(struct rng *r, struct fingerprint *fp)
{
    uint64_t bytes = 0;

    fp->working_set_count = rng_below(r, 2) ? (uint32_t)rng_below(r, 20) : 0;
    for (uint32_t i = 0; i < fp->working_set_count; i++) {
        struct working_set *const w = &fp->working_sets[i];
        struct maybe_f64 *const numbers[] = {&w->same_gbps, &w->own_gbps, &w->near_gbps};
        bytes = i % 10 == 0 ? 0 : bytes;
        bytes += 1 + rng_below(r, GIB);
        w->transaction_bytes = i < 10 ? 128 : 512;
        w->set_bytes = bytes;
        struct evidence *const evidence[] = {&w->evidence.same_gbps, &w->evidence.own_gbps,
                                             &w->evidence.near_gbps};
        for (uint32_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++) {
            const bool known = rng_below(r, 4) > 0;
            *numbers[k] = known ? KNOWN_F64(1 + rng_unit(r)) : UNKNOWN_F64(REASON_NOT_MEASURED);
            any_evidence(r, known, evidence[k]);
        }
    }
}

static void any_domains(struct rng *r, struct fingerprint_l2 *l2)
{
    l2->locality_domains = l2->locality_domain_sms = UNKNOWN_U32(REASON_NOT_SUPPORTED);
    if (rng_below(r, 2) == 0) {
        l2->locality_domains = KNOWN_U32(1 + rng_below(r, 2));
        l2->locality_domain_sms = KNOWN_U32(1 + rng_below(r, REACH_MAX_SMS));
    }
    l2->sides_match_domains = l2_match_domains(l2);
}

static void any_l2(struct rng *r, uint32_t sms, struct fingerprint_l2 *l2)
{
    if (sms < 2 || rng_below(r, 3) == 0)
        return;
    if (rng_below(r, 3) == 0) {
        l2->sides = NOT_OBSERVABLE_U32(REASON_NO_CONTRAST);
        return;
    }
    l2->sides = KNOWN_U32(2);
    l2->granule_bytes = KNOWN_U64(128 + rng_below(r, 8 * KIB));
    l2->atomic_near_cycles = KNOWN_F64(100 + rng_unit(r));
    l2->atomic_far_cycles = KNOWN_F64(200 + rng_unit(r));
    l2->side_of_sm.group_count = 2;
    for (uint32_t sm = 0; sm < sms; sm++)
        l2->side_of_sm.group_of_sm[sm] = sm == 0 ? 0 : sm == 1 ? 1 : (uint16_t)rng_below(r, 2);
    any_evidence(r, true, &l2->evidence.sides);
    any_evidence(r, true, &l2->evidence.granule_bytes);
    any_evidence(r, true, &l2->evidence.atomic_near_cycles);
    any_evidence(r, true, &l2->evidence.atomic_far_cycles);
}

static void any_cache(struct rng *r, struct cache_facts *c)
{
    static const char *const traces[] = {"", "HHHH", "MHMMHMMHMMHMM"};

    c->size_bytes = any_u64(r, 1);
    if (rng_below(r, 2)) {
        c->line_bytes = KNOWN_U64(32 << rng_below(r, 3));
        c->sector_bytes = KNOWN_U64(32);
        c->sets = KNOWN_U32(1 + (uint32_t)rng_below(r, 256));
        c->ways = KNOWN_U32(1 + (uint32_t)rng_below(r, 32));
    }
    c->fill_bytes = any_u64(r, 1);
    c->fits_bytes = any_u64(r, 1);
    c->replacement = (enum replacement)rng_below(r, REPLACEMENT_NOT_LRU + 1);
    (void)snprintf(c->trace, sizeof(c->trace), "%s", traces[rng_below(r, 3)]);
    c->latency_cycles = any_f64(r);
    c->miss_latency_cycles = IS_KNOWN(c->latency_cycles)
                                 ? KNOWN_F64(c->latency_cycles.v + 1 + rng_unit(r))
                                 : NOT_OBSERVABLE_F64(REASON_NO_CONTRAST);
    c->same_as_l1 = (enum finding)rng_below(r, FINDING_NO + 1);
    c->carveout_count = (uint32_t)rng_below(r, FINGERPRINT_MAX_CARVEOUTS + 1);
    for (uint32_t k = 0; k < c->carveout_count; k++)
        c->carveouts[k] = (struct cache_carveout){k * 32 * KIB, any_u64(r, 1), any_u64(r, 1)};
    any_evidence(r, IS_KNOWN(c->size_bytes), &c->evidence.size_bytes);
    any_evidence(r, IS_KNOWN(c->sets), &c->evidence.sets);
    any_evidence(r, IS_KNOWN(c->latency_cycles), &c->evidence.latency_cycles);
}

/* In half of the cases nothing is measured. */
static void any_caches(struct rng *r, struct fingerprint *fp)
{
    struct fingerprint_latency *const l = &fp->latency;

    if (rng_below(r, 2))
        return;
    fp->cache_count = CACHE_KIND_COUNT;
    for (uint32_t k = 0; k < fp->cache_count; k++) {
        fp->caches[k].kind = (enum cache_kind)k;
        any_cache(r, &fp->caches[k]);
    }
    l->p1_cycles = any_f64(r);
    l->p4_cycles = KNOWN_F64(500 + rng_unit(r));
    l->near_cycles = KNOWN_F64(500 + rng_unit(r));
    l->far_cycles =
        rng_below(r, 2) ? KNOWN_F64(700 + rng_unit(r)) : NOT_OBSERVABLE_F64(REASON_NO_CONTRAST);
    l->tail_share = KNOWN_F64(rng_unit(r));
    any_evidence(r, true, &l->evidence.p4_cycles);
    any_evidence(r, true, &l->evidence.near_cycles);
}

static struct maybe_f64 some_f64(struct rng *r)
{
    return rng_below(r, 3) ? KNOWN_F64(1 + rng_unit(r)) : UNKNOWN_F64(any_reason(r));
}

static struct maybe_u32 some_u32(struct rng *r)
{
    return rng_below(r, 3) ? KNOWN_U32(1 + (uint32_t)rng_below(r, 100))
                           : UNKNOWN_U32(any_reason(r));
}

/* In half of the cases nothing is measured, also in the next two functions. */
static void any_shared(struct rng *r, struct fingerprint_shared *s)
{
    const bool banks = rng_below(r, 2);

    if (rng_below(r, 2))
        return;
    s->sm_bytes = KNOWN_U64(1 + rng_below(r, 256 * KIB));
    if (banks) {
        s->banks = KNOWN_U32(1 + (uint32_t)rng_below(r, 64));
        s->bank_bytes = KNOWN_U32(4);
        any_evidence(r, true, &s->evidence.banks);
    }
    for (uint32_t i = 0; i < FINGERPRINT_SHARED_WIDTHS; i++) {
        struct shared_width *const w = &s->widths[s->width_count++];
        w->width_bytes = 4U << i;
        w->latency_cycles = some_f64(r);
        w->conflict_cycles = some_f64(r);
        w->bytes_per_cycle = some_f64(r);
        w->loads_enough = some_u32(r);
        any_evidence(r, IS_KNOWN(w->loads_enough), &w->evidence.loads_enough);
        for (uint32_t k = 1; k <= rng_below(r, 40); k++)
            s->strides[s->stride_count++] =
                (struct shared_stride){.width_bytes = w->width_bytes,
                                       .stride_bytes = k * w->width_bytes,
                                       .cycles = some_f64(r),
                                       .passes = banks ? some_u32(r) : (struct maybe_u32){0}};
    }
}

static void any_clusters(struct rng *r, uint32_t sms, struct fingerprint_clusters *c)
{
    if (rng_below(r, 2))
        return;
    c->largest = KNOWN_U32(2 + (uint32_t)rng_below(r, 15));
    any_evidence(r, true, &c->evidence.largest);
    c->own_cycles = some_f64(r);
    any_partition(r, sms, &c->gpc_of_sm);
    if (c->gpc_of_sm.group_count > 0)
        c->gpcs = KNOWN_U32(c->gpc_of_sm.group_count);
    for (uint32_t size = 2; size <= c->largest.v && size <= sms; size++) {
        struct cluster_size *const k = &c->sizes[c->size_count++];
        k->sms = size;
        k->latency_cycles = some_f64(r);
        k->bytes_per_cycle = some_f64(r);
        k->clusters = KNOWN_U32((uint32_t)rng_below(r, sms / size + 1));
        k->usable_sms = KNOWN_U32(k->clusters.v * size);
        any_evidence(r, true, &k->evidence.clusters);
    }
}

static void any_parallelism(struct rng *r, struct fingerprint_parallelism *p)
{
    if (rng_below(r, 2))
        return;
    p->plateau_gbps = KNOWN_F64(1 + rng_unit(r));
    any_evidence(r, true, &p->evidence.plateau_gbps);
    p->latency_ns = some_f64(r);
    p->loads_enough = KNOWN_U32(2 + (uint32_t)rng_below(r, 500));
    p->loads_short = KNOWN_U32(p->loads_enough.v - 1);
    p->sms_enough = some_u32(r);
    for (uint32_t warps = 1; warps <= 4; warps++)
        for (uint32_t loads = 1; loads <= 4; loads++)
            p->surface[p->surface_count++] =
                (struct concurrency_point){.warps = warps, .loads = loads, .gbps = some_f64(r)};
    for (uint32_t sms = 1; sms <= rng_below(r, FINGERPRINT_MAX_BY_SMS); sms++)
        p->by_sms[p->by_sms_count++] = (struct sms_point){.sms = sms, .gbps = some_f64(r)};
}

/* In half of the cases nothing is measured. */
static void any_contiguity(struct rng *r, struct fingerprint_contiguity *c)
{
    if (rng_below(r, 2))
        return;
    c->frame_bytes = any_u64(r, 1);
    c->contiguous_miss_ns =
        rng_below(r, 3) ? KNOWN_F64(0.1 + rng_unit(r)) : NOT_OBSERVABLE_F64(any_reason(r));
    c->scattered_miss_ns = rng_below(r, 3) ? KNOWN_F64(c->contiguous_miss_ns.v + rng_unit(r))
                                           : UNKNOWN_F64(any_reason(r));
    any_evidence(r, IS_KNOWN(c->frame_bytes), &c->evidence.frame_bytes);
    any_evidence(r, IS_KNOWN(c->scattered_miss_ns), &c->evidence.scattered_miss_ns);
}

static void any_memory_curve(struct rng *r, struct memory_facts *m)
{
    const struct column naive = any_column(r);
    const struct column by_group = any_column(r);

    m->curve_count = (uint32_t)rng_below(r, FINGERPRINT_MAX_MEMORY_CURVE + 1);
    for (uint32_t k = 0; k < m->curve_count; k++) {
        struct curve_point *const p = &m->curve[k];
        p->region_bytes = (k + 1) * 64 * MIB;
        any_number(r, &naive, &p->naive_gbps, &p->evidence.naive_gbps);
        any_number(r, &by_group, &p->by_group_gbps, &p->evidence.by_group_gbps);
        p->windows = (uint32_t)rng_below(r, 9);
    }
}

/* Makes each kind of memory, and some peers. Every third kind is not available. Half of the kinds
 * that a document may omit are not measured. */
static void any_memory(struct rng *r, struct fingerprint *fp)
{
    fp->memory_count = MEMORY_PEER - 1 + (uint32_t)rng_below(r, FINGERPRINT_MAX_PEERS + 1);
    for (uint32_t i = 0; i < fp->memory_count; i++) {
        struct memory_facts *const m = &fp->memory[i];

        m->kind = i + 1 < MEMORY_PEER ? (enum memory_kind)(i + 1) : MEMORY_PEER;
        if (m->kind == MEMORY_PEER) {
            (void)snprintf(m->peer_uuid, sizeof m->peer_uuid, "GPU-%08x", (unsigned)rng_next(r));
            m->peer_memory_bytes = rng_below(r, 2) ? KNOWN_U64(1 + (rng_next(r) >> 20))
                                                   : UNKNOWN_U64(REASON_NOT_MEASURED);
        }
        if (m->kind > (enum memory_kind)FINGERPRINT_LEAST_MEMORY && m->kind != MEMORY_PEER &&
            rng_below(r, 2))
            continue;
        if (rng_below(r, 3) == 0) {
            m->probed_bytes = UNKNOWN_U64(REASON_NOT_PERMITTED);
            continue;
        }
        m->probed_bytes = KNOWN_U64(1 + rng_below(r, 1 << 20) * GIB);
        m->plateau_gbps = any_f64(r);
        any_evidence(r, IS_KNOWN(m->plateau_gbps), &m->evidence.plateau_gbps);
        m->reach_bytes = any_u64(r, 1);
        m->onset_bytes =
            IS_KNOWN(m->reach_bytes) ? KNOWN_U64(m->reach_bytes.v + 64) : any_u64(r, 1);
        any_evidence(r, IS_KNOWN(m->reach_bytes), &m->evidence.reach_bytes);
        m->entry_bytes = any_u64(r, 1);
        m->written_factor =
            rng_below(r, 2) ? KNOWN_F64(0.1 + 0.9 * rng_unit(r)) : UNKNOWN_F64(REASON_NOT_MEASURED);
        any_evidence(r, IS_KNOWN(m->written_factor), &m->evidence.written_factor);
        m->latency_cycles = any_f64(r);
        m->sms_to_fill = any_u32(r);
        m->atomic_gbps = any_f64(r);
        any_memory_curve(r, m);
        m->node_count = rng_below(r, 2) ? (uint32_t)rng_below(r, FINGERPRINT_MAX_NODES + 1) : 0;
        for (uint32_t k = 0; k < m->node_count; k++)
            m->nodes[k] = (struct memory_node){.node = 2 * k, .gbps = any_f64(r)};
    }
}

static void any_conditions(struct rng *r, struct fingerprint_conditions *c)
{
    c->verdict = (enum verdict)rng_below(r, 3);
    (void)snprintf(c->arena, sizeof(c->arena), "alias");
    c->range_bytes = rng_next(r) >> 20;
    c->backing_bytes = rng_next(r) >> 30;
    c->sm_clock_khz = any_u32(r);
    c->other_processes = any_u32(r);
    c->host_memory_bytes = any_u64(r, 1);
    c->note_count = (uint32_t)rng_below(r, FINGERPRINT_MAX_NOTES + 1);
    for (uint32_t i = 0; i < c->note_count; i++)
        (void)snprintf(c->notes[i], sizeof(c->notes[i]), "note \"%u\" \xe2\x80\xa6 \\ \x01 end",
                       (unsigned)rng_next(r));
}

static void any_source(struct rng *r, struct fingerprint_source *out)
{
    (void)snprintf(out->id, sizeof out->id, "fp%016llx", (unsigned long long)rng_next(r));
    out->depth = (enum depth)rng_below(r, DEPTH_COUNT);
    out->taken_at = (int64_t)(rng_next(r) >> 30);
}

/* Makes parts of up to three measurements, and one dropped measurement. */
static void any_kept(struct rng *r, struct fingerprint *fp)
{
    struct fingerprint_source sources[3] = {0};

    for (uint32_t i = 0; i < 3; i++)
        any_source(r, &sources[i]);
    fp->kept[rng_below(r, PART_COUNT)] = sources[0];
    for (uint32_t part = 0; part < PART_COUNT; part++)
        if (rng_below(r, 4) == 0)
            fp->kept[part] = sources[rng_below(r, 3)];
    memcpy(fp->measurement_id, sources[1].id, sizeof fp->measurement_id);
    if (rng_below(r, 2)) {
        any_source(r, &fp->dropped);
        (void)snprintf(fp->dropped_reason, sizeof fp->dropped_reason, "it had %u SMs",
                       (unsigned)rng_below(r, 200));
    }
}

void any_fingerprint(struct rng *r, struct fingerprint *fp)
{
    fingerprint_init(fp);
    (void)snprintf(fp->gpu.uuid, sizeof(fp->gpu.uuid), "GPU-%08x", (unsigned)rng_next(r));
    (void)snprintf(fp->gpu.name, sizeof(fp->gpu.name), "chip %u", (unsigned)rng_below(r, 9));
    fp->gpu.compute_major = (uint32_t)rng_below(r, 20);
    fp->gpu.compute_minor = (uint32_t)rng_below(r, 10);
    fp->gpu.sm_count = (uint32_t)(1 + rng_below(r, 300));
    fp->gpu.memory_bytes = rng_next(r) >> 25;
    fp->gpu.l2_cache_bytes = rng_below(r, 3) * MIB;
    fp->gpu.mig = rng_below(r, 2);
    fp->gpu.origin = (enum origin)rng_below(r, 3);
    fp->depth = (enum depth)rng_below(r, DEPTH_COUNT);
    fp->taken_at = (int64_t)rng_below(r, 4000000000u);
    fp->duration_ms = (uint32_t)rng_next(r);
    fp->probe_ms = (uint32_t)rng_next(r);
    fp->device_memory_bytes = rng_next(r) >> 30;
    fp->level_count = (uint32_t)rng_below(r, FINGERPRINT_MAX_LEVELS + 1);
    for (uint32_t i = 0; i < fp->level_count; i++)
        any_level(r, fp->gpu.sm_count, i, &fp->levels[i]);
    fp->beyond.probed_bytes = rng_next(r) >> 20;
    fp->beyond.reach_bytes = any_u64(r, 1);
    fp->beyond.walk_cycles = any_f64(r);
    for (uint32_t a = 0; a < ALLOCATION_COUNT; a++)
        fp->page_bytes[a] = any_u64(r, 1);
    any_topology(r, fp->gpu.sm_count, &fp->topology);
    fp->windows.entry_bytes = KNOWN_U64(1 + rng_below(r, GIB));
    fp->windows.reach_bytes = KNOWN_U64(fp->windows.entry_bytes.v + (rng_next(r) >> 2));
    fp->windows.recommended_bytes =
        KNOWN_U64(fp->windows.reach_bytes.v - fp->windows.entry_bytes.v);
    fp->throughput.plateau_gbps = any_f64(r);
    fp->throughput.whole_memory_gbps = any_f64(r);
    any_curve(r, &fp->throughput);
    any_evidence(r, IS_KNOWN(fp->throughput.plateau_gbps), &fp->throughput.evidence.plateau_gbps);
    if (rng_below(r, 2))
        any_rates(r, &fp->throughput);
    any_contiguity(r, &fp->contiguity);
    any_l2(r, fp->gpu.sm_count, &fp->l2);
    any_domains(r, &fp->l2);
    any_working_sets(r, fp);
    any_caches(r, fp);
    any_shared(r, &fp->shared);
    any_clusters(r, fp->gpu.sm_count, &fp->clusters);
    any_parallelism(r, &fp->parallelism);
    if (rng_below(r, 2))
        any_memory(r, fp);
    any_conditions(r, &fp->conditions);
    if (rng_below(r, 2))
        any_kept(r, fp);
}
