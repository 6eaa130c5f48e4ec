/* fingerprint_check.c: what holds for every fingerprint, wherever it comes from.
 *
 * It runs in every build, after analysis, after load and in tests, and it is the reason why nobody
 * else checks: placement may index groups and windows without a second look.
 */
#include "fingerprint/fingerprint.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LAST_SECOND ((int64_t)253402300799) /* 9999-12-31T23:59:59Z */

/* The first failure, and where the check is. */
struct check {
    enum status status;
    struct err *err;
    char where[48]; /* "levels[2]." */
};

static void fail(struct check *c, const char *field, const char *what)
{
    if (c->status == STATUS_OK)
        c->status = err_set(c->err, STATUS_CORRUPT, "fingerprint: %s%s %s", c->where, field, what);
}

static void require(struct check *c, bool holds, const char *field, const char *what)
{
    if (!holds)
        fail(c, field, what);
}

static void at(struct check *c, const char *where)
{
    (void)snprintf(c->where, sizeof(c->where), "%s", where);
}

static void at_index(struct check *c, const char *array, uint32_t i)
{
    (void)snprintf(c->where, sizeof(c->where), "%s[%u].", array, i);
}

/* The rules of base/maybe.h; `zero` says whether the number is 0. */
static void check_state(struct check *c, const char *field, enum known known, enum reason reason,
                        bool zero)
{
    require(c, (unsigned)known <= MAYBE_NOT_OBSERVABLE, field, "is neither known nor unknown");
    require(c, (unsigned)reason < REASON_COUNT, field, "has a reason that does not exist");
    if (known == MAYBE_KNOWN)
        require(c, reason == REASON_NONE, field, "is known and has a reason why not");
    else
        require(c, zero, field, "is absent and not 0");
    if (known == MAYBE_NOT_OBSERVABLE)
        require(c, reason != REASON_NONE, field, "is not observable without a reason");
}

static void check_u32(struct check *c, const char *field, struct maybe_u32 m)
{
    check_state(c, field, m.known, m.reason, m.v == 0);
}

static void check_bytes(struct check *c, const char *field, uint64_t v)
{
    require(c, v <= INT64_MAX, field, "is 2^63 or more");
}

static void check_u64(struct check *c, const char *field, struct maybe_u64 m)
{
    check_state(c, field, m.known, m.reason, m.v == 0);
    check_bytes(c, field, m.v);
}

static void check_f64(struct check *c, const char *field, struct maybe_f64 m)
{
    require(c, isfinite(m.v) && m.v >= 0.0, field, "is negative or not finite");
    check_state(c, field, m.known, m.reason, !(m.v > 0.0));
}

static void check_confidence(struct check *c, struct maybe_f64 m)
{
    check_f64(c, "confidence", m);
    require(c, m.v <= 1.0, "confidence", "is above 1");
}

/* Evidence is of a number that is there. */
static void check_evidence(struct check *c, const char *field, struct evidence e, bool known)
{
    const char *const fault = evidence_fault(e, known);

    if (fault)
        fail(c, field, fault);
}

static void check_text(struct check *c, const char *field, const char *text, size_t size)
{
    require(c, memchr(text, '\0', size) != NULL, field, "has no end");
}

static void check_identity(struct check *c, const struct gpu_identity *id)
{
    at(c, "gpu.");
    check_text(c, "uuid", id->uuid, sizeof(id->uuid));
    check_text(c, "name", id->name, sizeof(id->name));
    check_text(c, "serial", id->serial, sizeof(id->serial));
    check_text(c, "pci_bus_id", id->pci_bus_id, sizeof(id->pci_bus_id));
    check_text(c, "driver_version", id->driver_version, sizeof(id->driver_version));
    check_text(c, "cuda_version", id->cuda_version, sizeof(id->cuda_version));
    require(c, id->sm_count <= REACH_MAX_SMS, "sm_count", "is more than any GPU has");
    check_bytes(c, "memory_bytes", id->memory_bytes);
    check_bytes(c, "l2_cache_bytes", id->l2_cache_bytes);
    require(c, (unsigned)id->origin <= ORIGIN_IMPORTED, "origin", "does not exist");
}

/* Groups are numbered by their lowest SM: going up the ids, a new group is always the next number.
 * `sizes` (may be NULL) gets the SMs of each. With no group nothing is known, whatever the slots
 * hold. */
static void check_partition(struct check *c, const struct sm_partition *p, uint32_t sm_count,
                            uint32_t *sizes)
{
    uint32_t seen = 0;
    uint32_t members = 0;

    require(c, p->group_count <= REACH_MAX_GROUPS, "groups", "are too many");
    if (c->status != STATUS_OK || p->group_count == 0)
        return;
    for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++) {
        const uint32_t g = p->group_of_sm[sm];
        if (g == FINGERPRINT_NO_GROUP)
            continue;
        if (g >= p->group_count || g > seen) {
            fail(c, "groups", "are not numbered by their lowest SM");
            return;
        }
        seen += g == seen ? 1 : 0;
        members++;
        if (sizes)
            sizes[g]++;
    }
    require(c, seen == p->group_count, "groups", "have one without SMs");
    require(c, sm_count == 0 || members <= sm_count, "groups", "have more SMs than the GPU");
}

/* The runs are all sets: most ways first, none without sets. */
static void check_sets(struct check *c, const struct tlb_level *l)
{
    uint64_t sets = 0;

    require(c, l->run_count <= FINGERPRINT_MAX_SET_RUNS, "set_sizes", "are too many");
    for (uint32_t i = 0; c->status == STATUS_OK && i < l->run_count; i++) {
        require(c, l->runs[i].ways > 0 && l->runs[i].sets > 0, "set_sizes", "have an empty one");
        require(c, i == 0 || l->runs[i].ways < l->runs[i - 1].ways, "set_sizes",
                "are not in order");
        sets += l->runs[i].sets;
    }
    if (l->run_count == 0)
        return;
    require(c, IS_KNOWN(l->sets) && sets == l->sets.v, "set_sizes", "do not add up to sets");
    require(c, IS_KNOWN(l->ways) == (l->run_count == 1), "ways", "do not fit set_sizes");
}

static void check_level_evidence(struct check *c, const struct tlb_level *l)
{
    const bool known[LEVEL_EVIDENCE_COUNT] = {
        [LEVEL_EVIDENCE_ENTRY_BYTES] = IS_KNOWN(l->entry_bytes),
        [LEVEL_EVIDENCE_REACH_BYTES] = IS_KNOWN(l->reach_bytes),
        [LEVEL_EVIDENCE_SATURATION_BYTES] = IS_KNOWN(l->saturation_bytes),
        [LEVEL_EVIDENCE_MISS_PENALTY_CYCLES] = IS_KNOWN(l->miss_penalty_cycles),
        [LEVEL_EVIDENCE_SHARED_BY] = l->shared_by != SHARED_UNKNOWN,
        [LEVEL_EVIDENCE_SETS] = IS_KNOWN(l->sets),
        [LEVEL_EVIDENCE_REPLACEMENT] = l->replacement != REPLACEMENT_UNKNOWN,
        [LEVEL_EVIDENCE_FILL] = l->fill != FILL_UNKNOWN,
        [LEVEL_EVIDENCE_ENTRY_PAGES] = IS_KNOWN(l->entry_pages) || IS_KNOWN(l->tag_bytes),
    };

    for (uint32_t i = 0; i < LEVEL_EVIDENCE_COUNT; i++)
        check_evidence(c, evidence_level_names[i], l->evidence[i], known[i]);
}

static void check_level(struct check *c, const struct tlb_level *l, uint32_t sm_count)
{
    check_u32(c, "entries", l->entries);
    check_u64(c, "entry_bytes", l->entry_bytes);
    check_u64(c, "page_bytes", l->page_bytes);
    check_u64(c, "reach_bytes", l->reach_bytes);
    check_u64(c, "onset_bytes", l->onset_bytes);
    check_u64(c, "saturation_bytes", l->saturation_bytes);
    check_u32(c, "sets", l->sets);
    check_u32(c, "ways", l->ways);
    check_sets(c, l);
    check_u32(c, "victim_entries", l->victim_entries);
    require(c, (unsigned)l->replacement <= REPLACEMENT_NOT_LRU, "replacement", "does not exist");
    require(c, (unsigned)l->fill <= FILL_PARTS, "fill", "does not exist");
    check_u32(c, "entry_pages", l->entry_pages);
    check_u64(c, "tag_bytes", l->tag_bytes);
    check_f64(c, "miss_penalty_cycles", l->miss_penalty_cycles);
    require(c, (unsigned)l->shared_by <= SHARED_GPU, "shared_by", "does not exist");
    check_partition(c, &l->sharing, sm_count, NULL);
    check_confidence(c, l->confidence);
    check_level_evidence(c, l);
    if (IS_KNOWN(l->reach_bytes) && IS_KNOWN(l->entry_bytes))
        require(c, l->reach_bytes.v >= l->entry_bytes.v, "reach_bytes", "is below entry_bytes");
    if (IS_KNOWN(l->saturation_bytes) && IS_KNOWN(l->onset_bytes))
        require(c, l->saturation_bytes.v >= l->onset_bytes.v, "saturation_bytes",
                "is below onset_bytes");
}

static void check_levels(struct check *c, const struct fingerprint *fp)
{
    uint32_t last_level = 0;
    uint64_t last_reach = 0;

    at(c, "");
    require(c, fp->level_count <= FINGERPRINT_MAX_LEVELS, "level_count", "is too large");
    for (uint32_t i = 0; c->status == STATUS_OK && i < fp->level_count; i++) {
        const struct tlb_level *const l = &fp->levels[i];
        at_index(c, "levels", i);
        check_level(c, l, fp->gpu.sm_count);
        require(c, l->level > last_level, "level", "is not above the one before");
        last_level = l->level;
        if (!IS_KNOWN(l->reach_bytes))
            continue;
        require(c, l->reach_bytes.v >= last_reach, "reach_bytes",
                "is below that of a nearer level");
        last_reach = l->reach_bytes.v;
    }
}

static void check_beyond(struct check *c, const struct fingerprint *fp)
{
    at(c, "beyond.");
    check_bytes(c, "probed_bytes", fp->beyond.probed_bytes);
    check_u64(c, "reach_bytes", fp->beyond.reach_bytes);
    check_f64(c, "walk_cycles", fp->beyond.walk_cycles);
    at(c, "page_bytes.");
    for (uint32_t a = 0; a < ALLOCATION_COUNT; a++)
        check_u64(c, allocation_name((enum allocation)a), fp->page_bytes[a]);
}

/* Sets of SMs in rising order, and the later set first. */
static void check_candidates(struct check *c, const struct disabled_sms *d, uint32_t full)
{
    require(c, d->listed <= FINGERPRINT_MAX_CANDIDATES, "candidates", "are too many");
    require(c, d->listed == 0 || (IS_KNOWN(d->sm_count) && full > 0), "candidates",
            "are there without a die");
    require(c, d->sm_count.v <= FINGERPRINT_MAX_DISABLED || d->listed == 0, "candidates",
            "have too many SMs");
    require(c, !IS_KNOWN(d->candidate_count) || d->listed <= d->candidate_count.v, "candidates",
            "are more than candidate_count");
    for (uint32_t k = 0; c->status == STATUS_OK && k < d->listed; k++) {
        const uint16_t *const sms = d->candidates[k];
        const uint16_t *const before = d->candidates[k > 0 ? k - 1 : 0];
        int later = k > 0 ? 0 : 1; /* the sign of the first difference */
        for (uint32_t i = 0; i < d->sm_count.v; i++) {
            require(c, sms[i] < full && (i == 0 || sms[i] > sms[i - 1]), "candidates",
                    "have an SM that is not of the die, or not in order");
            later = later != 0 ? later : (int)before[i] - (int)sms[i];
        }
        require(c, later > 0, "candidates", "are not in order");
    }
}

static void check_disabled(struct check *c, const struct topology *t, uint32_t members)
{
    const struct disabled_sms *const d = &t->disabled;

    at(c, "topology.disabled.");
    check_u32(c, "sm_count", d->sm_count);
    check_u32(c, "unit_sms", d->unit_sms);
    check_u32(c, "lost_groups", d->lost_groups);
    check_u32(c, "candidate_count", d->candidate_count);
    check_text(c, "signature", d->signature, sizeof(d->signature));
    if (IS_KNOWN(d->sm_count))
        require(c,
                IS_KNOWN(t->full_sm_count) && t->full_sm_count.v >= members &&
                    t->full_sm_count.v - members == d->sm_count.v,
                "sm_count", "is not full_sm_count less the SMs that are there");
    check_candidates(c, d, IS_KNOWN(t->full_sm_count) ? t->full_sm_count.v : 0);
}

static void check_pairs(struct check *c, const struct group_pairs *p, uint32_t groups)
{
    at(c, "topology.pairs.");
    require(c, p->listed <= FINGERPRINT_MAX_SLOW_PAIRS && p->listed <= p->slow_count, "slow",
            "are too many");
    require(c, p->slow_count <= p->measured, "slow_count", "is above measured");
    require(c, (unsigned)p->share_tlb <= FINDING_NO, "share_tlb", "does not exist");
    check_f64(c, "worst_ratio", p->worst_ratio);
    if (IS_KNOWN(p->worst_ratio))
        require(c, p->worst[0] < p->worst[1] && p->worst[1] < groups, "worst", "are no groups");
    for (uint32_t i = 0; c->status == STATUS_OK && i < p->listed; i++) {
        const struct slow_pair *const s = &p->slow[i];
        require(c, s->groups[0] < s->groups[1] && s->groups[1] < groups, "slow", "has no groups");
        require(c, isfinite(s->ratio) && s->ratio >= 0.0, "slow", "has a ratio that cannot be");
        require(c, (unsigned)s->cause <= SLOW_BY_BANDWIDTH, "slow", "has a cause that is none");
    }
}

static void check_group_evidence(struct check *c, const struct sm_group *g)
{
    check_evidence(c, "miss_penalty_cycles", g->evidence[GROUP_EVIDENCE_MISS_PENALTY_CYCLES],
                   IS_KNOWN(g->miss_penalty_cycles));
    check_evidence(c, "random_read_gbps", g->evidence[GROUP_EVIDENCE_RANDOM_READ_GBPS],
                   IS_KNOWN(g->random_read_gbps));
    check_evidence(c, "alone_gbps", g->evidence[GROUP_EVIDENCE_ALONE_GBPS],
                   IS_KNOWN(g->alone_gbps));
    check_evidence(c, "beyond_gbps", g->evidence[GROUP_EVIDENCE_BEYOND_GBPS],
                   IS_KNOWN(g->beyond_gbps));
}

static void check_topology_evidence(struct check *c, const struct topology *t)
{
    const bool known[TOPOLOGY_EVIDENCE_COUNT] = {
        [TOPOLOGY_EVIDENCE_GROUPS] = t->partition.group_count > 0,
        [TOPOLOGY_EVIDENCE_DISABLED] = IS_KNOWN(t->full_sm_count),
        [TOPOLOGY_EVIDENCE_PENALTY_CLASSES] = IS_KNOWN(t->penalty_classes),
        [TOPOLOGY_EVIDENCE_SPEED_CLASSES] = IS_KNOWN(t->speed_classes),
        [TOPOLOGY_EVIDENCE_SPEED_FOLLOWS_SMS] = t->speed_follows_sms != FINDING_UNKNOWN,
        [TOPOLOGY_EVIDENCE_PAIRS] = IS_KNOWN(t->pairs.worst_ratio),
    };

    at(c, "topology.");
    for (uint32_t i = 0; i < TOPOLOGY_EVIDENCE_COUNT; i++)
        check_evidence(c, evidence_topology_names[i], t->evidence[i], known[i]);
}

static void check_topology(struct check *c, const struct fingerprint *fp)
{
    const struct topology *const t = &fp->topology;
    uint32_t sizes[REACH_MAX_GROUPS] = {0};
    uint32_t members = 0;

    at(c, "topology.");
    check_u32(c, "level", t->level);
    check_u32(c, "nominal_group_sms", t->nominal_group_sms);
    check_u32(c, "full_sm_count", t->full_sm_count);
    check_confidence(c, t->confidence);
    check_partition(c, &t->partition, fp->gpu.sm_count, sizes);
    for (uint32_t g = 0; c->status == STATUS_OK && g < t->partition.group_count; g++) {
        at_index(c, "groups", g);
        members += sizes[g];
        require(c, t->groups[g].sm_count == sizes[g], "sm_count", "is not that of the partition");
        check_f64(c, "miss_penalty_cycles", t->groups[g].miss_penalty_cycles);
        check_f64(c, "random_read_gbps", t->groups[g].random_read_gbps);
        check_f64(c, "alone_gbps", t->groups[g].alone_gbps);
        check_f64(c, "beyond_gbps", t->groups[g].beyond_gbps);
        check_u32(c, "penalty_class", t->groups[g].penalty_class);
        check_u32(c, "speed_class", t->groups[g].speed_class);
        check_group_evidence(c, &t->groups[g]);
    }
    check_topology_evidence(c, t);
    check_disabled(c, t, members);
    at(c, "topology.");
    check_u32(c, "penalty_classes", t->penalty_classes);
    check_u32(c, "speed_classes", t->speed_classes);
    require(c, (unsigned)t->speed_follows_sms <= FINDING_NO, "speed_follows_sms", "does not exist");
    for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++)
        check_f64(c, "sm_miss_penalty_cycles", t->sm_miss_penalty_cycles[sm]);
    check_pairs(c, &t->pairs, t->partition.group_count);
}

static void check_windows(struct check *c, const struct fingerprint *fp)
{
    at(c, "windows.");
    check_u64(c, "reach_bytes", fp->windows.reach_bytes);
    check_u64(c, "entry_bytes", fp->windows.entry_bytes);
    check_u64(c, "recommended_bytes", fp->windows.recommended_bytes);
    if (IS_KNOWN(fp->windows.reach_bytes) && IS_KNOWN(fp->windows.entry_bytes))
        require(c, fp->windows.reach_bytes.v >= fp->windows.entry_bytes.v, "reach_bytes",
                "is below entry_bytes");
    if (IS_KNOWN(fp->windows.reach_bytes) && IS_KNOWN(fp->windows.recommended_bytes))
        require(c, fp->windows.recommended_bytes.v <= fp->windows.reach_bytes.v,
                "recommended_bytes", "is above reach_bytes");
}

static void check_point_evidence(struct check *c, const struct curve_point *p)
{
    check_evidence(c, "naive_gbps", p->evidence[CURVE_EVIDENCE_NAIVE_GBPS],
                   IS_KNOWN(p->naive_gbps));
    check_evidence(c, "by_group_gbps", p->evidence[CURVE_EVIDENCE_BY_GROUP_GBPS],
                   IS_KNOWN(p->by_group_gbps));
    check_evidence(c, "by_sm_gbps", p->evidence[CURVE_EVIDENCE_BY_SM_GBPS],
                   IS_KNOWN(p->by_sm_gbps));
}

static void check_throughput(struct check *c, const struct throughput *t)
{
    uint64_t last = 0;

    at(c, "throughput.");
    check_f64(c, "plateau_gbps", t->plateau_gbps);
    check_f64(c, "whole_memory_gbps", t->whole_memory_gbps);
    check_evidence(c, "plateau_gbps", t->evidence[THROUGHPUT_EVIDENCE_PLATEAU_GBPS],
                   IS_KNOWN(t->plateau_gbps));
    check_evidence(c, "whole_memory_gbps", t->evidence[THROUGHPUT_EVIDENCE_WHOLE_MEMORY_GBPS],
                   IS_KNOWN(t->whole_memory_gbps));
    require(c, t->curve_count <= FINGERPRINT_MAX_CURVE, "curve_count", "is too large");
    for (uint32_t i = 0; c->status == STATUS_OK && i < t->curve_count; i++) {
        const struct curve_point *const p = &t->curve[i];
        at_index(c, "curve", i);
        check_bytes(c, "region_bytes", p->region_bytes);
        require(c, p->region_bytes > last, "region_bytes", "is not above the one before");
        last = p->region_bytes;
        check_f64(c, "naive_gbps", p->naive_gbps);
        check_f64(c, "by_group_gbps", p->by_group_gbps);
        check_f64(c, "by_sm_gbps", p->by_sm_gbps);
        check_point_evidence(c, p);
    }
}

/* `i` is the place of the rate. */
static void check_rate_points(struct check *c, const struct access_rate *r, uint32_t i)
{
    uint64_t last = 0;

    for (uint32_t k = 0; c->status == STATUS_OK && k < r->point_count; k++) {
        const struct rate_point *const p = &r->points[k];
        (void)snprintf(c->where, sizeof(c->where), "rates[%u].points[%u].", i, k);
        check_bytes(c, "region_bytes", p->region_bytes);
        require(c, p->region_bytes > last, "region_bytes", "is not above the one before");
        last = p->region_bytes;
        check_f64(c, "naive_gbps", p->naive_gbps);
        check_f64(c, "by_group_gbps", p->by_group_gbps);
        check_evidence(c, "naive_gbps", p->evidence[RATE_POINT_EVIDENCE_NAIVE_GBPS],
                       IS_KNOWN(p->naive_gbps));
        check_evidence(c, "by_group_gbps", p->evidence[RATE_POINT_EVIDENCE_BY_GROUP_GBPS],
                       IS_KNOWN(p->by_group_gbps));
        require(c, k + 1 == r->point_count || !IS_KNOWN(p->by_group_gbps), "by_group_gbps",
                "is there below the largest region");
    }
}

/* Each kind once, in their order, and the curve's not at all. */
static void check_rates(struct check *c, const struct throughput *t)
{
    at(c, "throughput.");
    require(c, t->rate_count <= FINGERPRINT_MAX_RATES, "rate_count", "is too large");
    for (uint32_t i = 0; c->status == STATUS_OK && i < t->rate_count; i++) {
        const struct access_rate *const r = &t->rates[i];
        const struct access_rate *const before = i > 0 ? &t->rates[i - 1] : NULL;
        at_index(c, "rates", i);
        require(c, (unsigned)r->access < ACCESS_COUNT, "access", "does not exist");
        require(c, r->transaction_bytes > 0, "transaction_bytes", "is 0");
        require(c,
                r->access != ACCESS_READ ||
                    r->transaction_bytes != (uint32_t)FINGERPRINT_CURVE_BYTES,
                "transaction_bytes", "is that of the curve");
        require(
            c,
            !before || r->access > before->access ||
                (r->access == before->access && r->transaction_bytes > before->transaction_bytes),
            "transaction_bytes", "is not in order, or there twice");
        check_f64(c, "plateau_gbps", r->plateau_gbps);
        check_evidence(c, "plateau_gbps", r->evidence[RATE_EVIDENCE_PLATEAU_GBPS],
                       IS_KNOWN(r->plateau_gbps));
        require(c, r->point_count <= FINGERPRINT_MAX_RATE_POINTS, "point_count", "is too large");
        check_rate_points(c, r, i);
    }
}

static void check_conditions(struct check *c, const struct fingerprint_conditions *k)
{
    at(c, "conditions.");
    require(c, (unsigned)k->verdict <= VERDICT_UNUSABLE, "verdict", "does not exist");
    check_text(c, "arena", k->arena, sizeof(k->arena));
    check_bytes(c, "range_bytes", k->range_bytes);
    check_bytes(c, "backing_bytes", k->backing_bytes);
    check_u32(c, "sm_clock_khz", k->sm_clock_khz);
    check_u32(c, "other_processes", k->other_processes);
    require(c, k->note_count <= FINGERPRINT_MAX_NOTES, "note_count", "is too large");
    for (uint32_t i = 0; c->status == STATUS_OK && i < k->note_count; i++)
        check_text(c, "notes", k->notes[i], sizeof(k->notes[i]));
}

static void check_source(struct check *c, const char *field, const struct fingerprint_source *s)
{
    check_text(c, field, s->id, sizeof(s->id));
    require(c, (unsigned)s->depth < DEPTH_COUNT, field, "has a depth that does not exist");
    require(c, s->taken_at >= 0 && s->taken_at <= LAST_SECOND, field, "has no date");
}

/* What is kept has a measurement to be told from. */
static void check_kept(struct check *c, const struct fingerprint *fp)
{
    bool any = false;

    at(c, "");
    for (uint32_t part = 0; part < PART_COUNT; part++) {
        check_source(c, "kept", &fp->kept[part]);
        any = any || fp->kept[part].id[0];
    }
    check_text(c, "measurement_id", fp->measurement_id, sizeof(fp->measurement_id));
    require(c, any == (fp->measurement_id[0] != '\0'), "measurement_id",
            "is there without anything kept, or missing");
    check_source(c, "dropped", &fp->dropped);
    check_text(c, "dropped.reason", fp->dropped_reason, sizeof(fp->dropped_reason));
}

enum status fingerprint_check(const struct fingerprint *fp, struct err *err)
{
    struct check c = {.status = STATUS_OK, .err = err};

    require(&c, (unsigned)fp->depth < DEPTH_COUNT, "depth", "does not exist");
    require(&c, fp->taken_at >= 0 && fp->taken_at <= LAST_SECOND, "taken_at", "is not a date");
    check_bytes(&c, "device_memory_bytes", fp->device_memory_bytes);
    check_identity(&c, &fp->gpu);
    check_levels(&c, fp);
    check_beyond(&c, fp);
    check_topology(&c, fp);
    check_windows(&c, fp);
    check_throughput(&c, &fp->throughput);
    check_rates(&c, &fp->throughput);
    check_conditions(&c, &fp->conditions);
    check_kept(&c, fp);
    return c.status;
}
