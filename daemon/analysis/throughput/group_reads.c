/* group_reads.c: see group_reads.h. */
#include "analysis/throughput/group_reads.h"

#include "analysis/classes.h"
#include "analysis/throughput/throughput.h"
#include "base/stats.h"
#include "base/units.h"

#include <math.h>
#include <string.h>

/* After 400 us even a small group has read more than the L2 keeps. After 200 us, groups of four SMs
 * of an H200 find 5 % of their lines in the L2. Two groups read twice as much. There are hundreds
 * of pairs, so each is read once, and only a pair that is slow is read again. */
enum { ALONE_US = 400, PAIR_US = 250, READ_SEED = 77, PAIR_REPEATS = 1, SLOW_REPEATS = 2 };

/* Lengths as shares of one reach. A group alone reads ALONE_PART within its reach, and beyond it
 * BEYOND_PART, or at least BEYOND_LEAST. The longer window of a pair has WINDOW_PART. Both windows
 * of a pair together have at most WIDE_PART and at least WIDE_LEAST, or TIGHT_PART if they must fit
 * one reach. */
#define ALONE_PART   0.6
#define WINDOW_PART  0.85
#define WIDE_PART    1.5
#define WIDE_LEAST   1.08
#define TIGHT_PART   0.6
#define BEYOND_PART  2.0
#define BEYOND_LEAST 1.25

/* A pair is slow if it loses more than the share SLOW_LOSS, and more than NOISE_TIMES the spread of
 * repeats. */
#define SLOW_LOSS   0.04
#define NOISE_TIMES 4.0

/* The groups and limits of these probes. */
struct group_set {
    const struct observation_set *set;
    const struct sm_partition *partition;
    uint32_t sizes[REACH_MAX_GROUPS];
    uint32_t slots; /* highest SM id + 1 */
    double reach_bytes;
    uint64_t most_bytes; /* longest region */
};

/* Collects the groups. Returns false if they are not known, or if their throughput would not be
 * meaningful. */
static bool collect_groups(const struct observation_set *set, const struct structure *s,
                           struct group_set *out)
{
    const struct maybe_u64 reach = structure_reach_bytes(s);

    memset(out, 0, sizeof *out);
    if (!IS_KNOWN(reach) || !throughput_is_from_memory(set) || s->window_level < 0 ||
        s->shared_by[s->window_level] != SHARED_GROUP)
        return false;
    out->set = set;
    out->partition = &s->sharing[s->window_level].found;
    out->reach_bytes = (double)reach.v;
    out->most_bytes = set->limits.range_bytes;
    for (uint32_t id = 0; id < REACH_MAX_SMS; id++)
        if (out->partition->group_of_sm[id] != FINGERPRINT_NO_GROUP) {
            out->sizes[out->partition->group_of_sm[id]] += 1;
            out->slots = id + 1;
        }
    return out->partition->group_count >= 2;
}

/* ---- the probes ---- */

/* Adds a region, rounded down to whole 2 MiB. Returns false if the region is too short to measure
 * memory, or too long. */
static bool set_region(const struct group_set *c, struct probe_spec *spec, double bytes)
{
    const uint64_t region = (uint64_t)bytes / (2 * MIB) * (2 * MIB);

    if (region > c->most_bytes || !throughput_region_counts(c->set, region))
        return false;
    spec->points[spec->point_count++] = region;
    return true;
}

static void idle_all(const struct group_set *c, struct probe_spec *spec, uint32_t windows,
                     uint32_t repeats, uint32_t duration_us)
{
    *spec = (struct probe_spec){.kind = PROBE_READ,
                                .repeats = repeats,
                                .duration_us = duration_us,
                                .seed = READ_SEED,
                                .window_count = windows,
                                .window_sms = c->slots};
    for (uint32_t id = 0; id < c->slots; id++)
        spec->window_of_sm[id] = PROBE_SM_IDLE;
}

static void put_group(const struct group_set *c, struct probe_spec *spec, uint32_t group,
                      uint16_t window)
{
    for (uint32_t id = 0; id < REACH_MAX_SMS; id++)
        if (c->partition->group_of_sm[id] == group)
            spec->window_of_sm[id] = window;
}

/* Makes the reads of group g alone: within its reach, and beyond it if the range is long enough. */
static bool make_alone(const struct group_set *c, uint32_t g, struct probe_spec *out)
{
    double beyond = c->reach_bytes * BEYOND_PART;

    idle_all(c, out, 1, THROUGHPUT_REPEATS, ALONE_US);
    put_group(c, out, g, 0);
    if (!set_region(c, out, c->reach_bytes * ALONE_PART))
        return false;
    beyond = beyond < (double)c->most_bytes ? beyond : (double)c->most_bytes;
    if (beyond >= c->reach_bytes * BEYOND_LEAST)
        (void)set_region(c, out, beyond);
    return true;
}

/* Makes the read of groups a and b side by side. The length of a window is proportional to the size
 * of its group. */
static bool make_pair(const struct group_set *c, uint32_t a, uint32_t b, uint32_t repeats,
                      bool tight, struct probe_spec *out)
{
    const uint32_t larger = c->sizes[a] > c->sizes[b] ? c->sizes[a] : c->sizes[b];
    const double share = (double)larger / (c->sizes[a] + c->sizes[b]);
    double parts = WINDOW_PART / share;

    parts = parts < WIDE_PART ? parts : WIDE_PART;
    if (parts < WIDE_LEAST)
        return false;
    idle_all(c, out, 2, repeats, PAIR_US);
    put_group(c, out, a, 0);
    put_group(c, out, b, 1);
    return set_region(c, out, c->reach_bytes * (tight ? TIGHT_PART : parts));
}

/* Finds the answer to `spec`. Recordings read pairs longer; the reads of one group all have one
 * duration. Among several answers with enough repeats, the answer with the most repeats counts. */
static const struct observation *find(const struct group_set *c, const struct probe_spec *spec)
{
    const struct observation *found = NULL;

    for (const struct observation *o = NULL; (o = observation_next(c->set, o, PROBE_READ));) {
        const struct probe_spec *s = &o->spec;
        if (s->window_count == spec->window_count && s->point_count == spec->point_count &&
            s->repeats >= spec->repeats && (!found || s->repeats > found->spec.repeats) &&
            s->points[0] == spec->points[0] && s->window_sms == spec->window_sms &&
            (s->window_count > 1 || s->duration_us == spec->duration_us) &&
            memcmp(s->window_of_sm, spec->window_of_sm, sizeof s->window_of_sm) == 0)
            found = o;
    }
    return found;
}

static double gbps_of(const struct observation *o, uint32_t point, struct evidence *out)
{
    return throughput_median_gbps(o, point, EVIDENCE_RANDOM_READS, out);
}

/* ---- the results ---- */

struct pair {
    uint16_t a, b;
    double ratio; /* throughput of the pair, relative to the sum of both groups alone */
    uint32_t repeats;
    bool tight_known;
    double tight_ratio; /* the same ratio with both windows inside one reach */
};

struct readings {
    struct maybe_f64 alone[REACH_MAX_GROUPS];
    struct maybe_f64 beyond[REACH_MAX_GROUPS];
    struct evidence alone_evidence[REACH_MAX_GROUPS];
    struct evidence beyond_evidence[REACH_MAX_GROUPS];
    double noise;           /* usual spread of repeats, as a share of the throughput */
    uint32_t alone_repeats; /* fewest repeats of a read of one group */
    const struct observation *alone_read[REACH_MAX_GROUPS];
    uint32_t pairs_wanted;
    uint32_t pair_count;
    struct pair pairs[GROUP_READS_MAX_PAIRS];
};

/* Returns the answer to this spec and counts it. If there is none, returns NULL and adds the spec
 * to `asks`, which may be NULL. */
static const struct observation *answer_to(const struct group_set *c, const struct probe_spec *spec,
                                           bool closer, struct group_asks *asks)
{
    const struct observation *o = find(c, spec);
    if (!asks)
        return o;
    *(closer ? &asks->closer : &asks->total) += 1;
    *(closer ? &asks->closer_missing : &asks->missing) += o == NULL;
    if (!o && asks->count < GROUP_READS_MAX_ASKS)
        asks->specs[asks->count++] = *spec;
    return o;
}

static void read_alone(const struct group_set *c, struct readings *r, struct group_asks *asks)
{
    double spreads[REACH_MAX_GROUPS];
    uint32_t n = 0;

    for (uint32_t g = 0; g < c->partition->group_count; g++) {
        struct probe_spec spec;
        if (!make_alone(c, g, &spec))
            continue;
        const struct observation *o = answer_to(c, &spec, false, asks);
        if (!o)
            continue;
        if (throughput_disagrees(o, 0) || (spec.point_count > 1 && throughput_disagrees(o, 1))) {
            spec.repeats = THROUGHPUT_MORE_REPEATS;
            (void)answer_to(c, &spec, true, asks);
        }
        if (n == 0 || o->spec.repeats < r->alone_repeats)
            r->alone_repeats = o->spec.repeats;
        r->alone_read[g] = o;
        r->alone[g] = KNOWN_F64(gbps_of(o, 0, &r->alone_evidence[g]));
        r->beyond[g] = NOT_OBSERVABLE_F64(REASON_BEYOND_MEMORY);
        spreads[n++] = throughput_spread(o, 0);
        if (spec.point_count > 1)
            r->beyond[g] = KNOWN_F64(gbps_of(o, 1, &r->beyond_evidence[g]));
    }
    if (n > 0)
        r->noise = stats_median_f64(spreads, n);
}

/* Returns the GB/s of the SMs that count, over the time that the probe requests. The time of the
 * whole read also includes some three microseconds between the starts of the SMs, which are a
 * larger share of shorter reads. */
static double counted_gbps(const struct observation *o)
{
    double gbps[PROBE_MAX_REPEATS];

    for (uint32_t r = 0; r < o->spec.repeats; r++)
        gbps[r] = observation_read_gbps(o, 0, r) * observation_read_ns(o, 0, r) /
                  (o->spec.duration_us * 1000.0);
    return stats_median_f64(gbps, o->spec.repeats);
}

/* Returns the throughput of the two groups together over their throughput alone. Returns 0 if a
 * read of one group alone is missing. */
static double ratio_of(const struct readings *r, uint32_t a, uint32_t b,
                       const struct observation *pair)
{
    const struct observation *const alone[] = {r->alone_read[a], r->alone_read[b]};
    struct evidence unused;

    if (!alone[0] || !alone[1] || !(r->alone[a].v + r->alone[b].v > 0))
        return 0;
    if (pair->spec.duration_us == alone[0]->spec.duration_us)
        return gbps_of(pair, 0, &unused) / (r->alone[a].v + r->alone[b].v);
    return counted_gbps(pair) / (counted_gbps(alone[0]) + counted_gbps(alone[1]));
}

static double slow_below(const struct readings *r)
{
    const double noise = NOISE_TIMES * r->noise;
    return 1 - (noise > SLOW_LOSS ? noise : SLOW_LOSS);
}

/* Reads one pair. A slow pair is read again. If it is still slow, it is read once more with both
 * windows inside one reach. */
static void read_pair(const struct group_set *c, uint32_t a, uint32_t b, struct readings *r,
                      struct group_asks *asks)
{
    struct probe_spec spec;

    if (!make_pair(c, a, b, PAIR_REPEATS, false, &spec))
        return;
    r->pairs_wanted += 1;
    const struct observation *o = answer_to(c, &spec, false, asks);
    if (!o)
        return;
    const double ratio = ratio_of(r, a, b, o);
    if (!(ratio > 0))
        return;
    struct pair *p = &r->pairs[r->pair_count++];
    *p = (struct pair){
        .a = (uint16_t)a, .b = (uint16_t)b, .ratio = ratio, .repeats = o->spec.repeats};
    if (p->ratio >= slow_below(r))
        return;
    spec.repeats = SLOW_REPEATS;
    if (!answer_to(c, &spec, true, asks) || !make_pair(c, a, b, SLOW_REPEATS, true, &spec))
        return;
    o = answer_to(c, &spec, true, asks);
    p->tight_known = o != NULL;
    if (o)
        p->tight_ratio = ratio_of(r, a, b, o);
}

static void read_all(const struct group_set *c, struct readings *r, struct group_asks *asks)
{
    const uint32_t n = c->partition->group_count;

    memset(r, 0, sizeof *r);
    read_alone(c, r, asks);
    if ((uint64_t)n * (n - 1) / 2 > GROUP_READS_MAX_PAIRS)
        return;
    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = a + 1; b < n; b++)
            read_pair(c, a, b, r, asks);
}

void group_reads_missing(const struct observation_set *set, const struct structure *s,
                         struct group_asks *out)
{
    struct readings r;
    struct group_set c;

    *out = (struct group_asks){.total = 0};
    if (collect_groups(set, s, &c))
        read_all(&c, &r, out);
}

/* ---- conclusions ---- */

/* Returns the distance of a ratio from the slow limit, as a share of the loss at the limit. It is 1
 * if nothing is lost, or twice the loss at the limit. */
static double margin_of(const struct readings *r, double ratio)
{
    return fabs(ratio - slow_below(r)) / (1 - slow_below(r));
}

/* Finds whether reads of a group scale with its number of SMs, for groups of unequal size. */
static void derive_speed(const struct group_set *c, const struct readings *r, struct topology *out)
{
    const uint32_t n = c->partition->group_count;
    double per_sm[REACH_MAX_GROUPS];
    uint32_t class[REACH_MAX_GROUPS];
    uint32_t smallest = UINT32_MAX;
    uint32_t largest = 0;
    double low = INFINITY;
    double high = 0;

    for (uint32_t g = 0; g < n; g++) {
        if (!IS_KNOWN(r->alone[g]))
            return;
        /* GB/s of one SM, so that groups of all sizes are comparable */
        per_sm[g] = r->alone[g].v / c->sizes[g];
        low = fmin(low, per_sm[g]);
        high = fmax(high, per_sm[g]);
        smallest = c->sizes[g] < smallest ? c->sizes[g] : smallest;
        largest = c->sizes[g] > largest ? c->sizes[g] : largest;
    }
    const double noise = high * fmax(r->noise, SLOW_LOSS / 4);
    out->speed_classes = KNOWN_U32(classes_split(per_sm, n, noise, class));
    out->evidence.speed_classes =
        evidence_make(EVIDENCE_CLASSES, r->alone_repeats, classes_margin(per_sm, n, noise, class));
    for (uint32_t g = 0; g < n; g++)
        out->groups[g].speed_class = KNOWN_U32(class[g]);
    if (smallest == largest)
        return;
    out->evidence.speed_follows_sms =
        evidence_make(EVIDENCE_RANDOM_READS, r->alone_repeats, margin_of(r, low / high));
    out->speed_follows_sms = low >= high * slow_below(r) ? FINDING_YES : FINDING_NO;
}

static enum slow_cause cause_of(const struct readings *r, const struct pair *p)
{
    if (!p->tight_known)
        return SLOW_UNKNOWN;
    return p->ratio < p->tight_ratio * slow_below(r) ? SLOW_BY_TLB : SLOW_BY_BANDWIDTH;
}

static void derive_pairs(const struct readings *r, struct topology *out)
{
    struct group_pairs *pairs = &out->pairs;
    bool unsure = false;
    double margin = 1;
    uint32_t repeats = UINT32_MAX;

    pairs->measured = r->pair_count;
    if (r->pair_count == 0)
        return;
    pairs->worst_ratio = KNOWN_F64(r->pairs[0].ratio);
    for (uint32_t i = 0; i < r->pair_count; i++) {
        const struct pair *p = &r->pairs[i];
        if (p->ratio <= pairs->worst_ratio.v) {
            pairs->worst_ratio = KNOWN_F64(p->ratio);
            pairs->worst[0] = p->a;
            pairs->worst[1] = p->b;
        }
        margin = fmin(margin, margin_of(r, p->ratio));
        repeats = p->repeats < repeats ? p->repeats : repeats;
        if (p->ratio >= slow_below(r))
            continue;
        const enum slow_cause cause = cause_of(r, p);
        pairs->slow_count += 1;
        if (cause == SLOW_BY_TLB)
            pairs->share_tlb = FINDING_YES;
        unsure = unsure || cause == SLOW_UNKNOWN;
        if (pairs->listed < FINGERPRINT_MAX_SLOW_PAIRS)
            pairs->slow[pairs->listed++] =
                (struct slow_pair){.groups = {p->a, p->b}, .ratio = p->ratio, .cause = cause};
    }
    if (pairs->share_tlb == FINDING_UNKNOWN && !unsure && r->pair_count == r->pairs_wanted)
        pairs->share_tlb = FINDING_NO;
    out->evidence.pairs = evidence_make(EVIDENCE_GROUP_PAIRS, repeats, margin);
}

void group_reads_derive(const struct observation_set *set, const struct structure *s,
                        struct topology *out)
{
    struct readings r;
    struct group_set c;

    if (!collect_groups(set, s, &c))
        return;
    read_all(&c, &r, NULL);
    for (uint32_t g = 0; g < c.partition->group_count; g++) {
        struct sm_group *group = &out->groups[g];
        /* unknown results have no evidence */
        group->evidence.alone_gbps = r.alone_evidence[g];
        group->evidence.beyond_gbps = r.beyond_evidence[g];
        if (!IS_KNOWN(r.alone[g]))
            continue;
        group->alone_gbps = r.alone[g];
        group->beyond_gbps = r.beyond[g];
    }
    derive_speed(&c, &r, out);
    derive_pairs(&r, out);
}
