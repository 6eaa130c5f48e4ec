/* fingerprint_check.c: what holds for every fingerprint, wherever it comes from: first of each
 * member by itself, by the tables of members.h, then of members together.
 *
 * It runs in every build, after analysis, after load and in tests, and it is the reason why no
 * other code checks: the planner may index groups and windows without a second look.
 */
#include "fingerprint/fingerprint.h"

#include "base/clock.h"
#include "fingerprint/check_shared.h"
#include "fingerprint/members.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The first failure, and where the check is. */
struct check {
    enum status status;
    struct err *err;
    const struct fingerprint *fp;
    char where[64]; /* "tlb.levels[2]." */
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

__attribute__((format(printf, 2, 3))) static void at(struct check *c, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(c->where, sizeof(c->where), format, args);
    va_end(args);
}

/* ---- each member ---- */

/* The rules of base/maybe.h; `zero`: the number is 0. */
static void check_state(struct check *c, const char *field, struct member_state s, bool zero)
{
    require(c, (unsigned)s.known <= MAYBE_NOT_OBSERVABLE, field, "is neither known nor unknown");
    require(c, (unsigned)s.reason < REASON_COUNT, field, "has a reason that does not exist");
    if (s.known == MAYBE_KNOWN)
        require(c, s.reason == REASON_NONE, field, "is known and has a reason why not");
    else
        require(c, zero, field, "is absent and not 0");
    if (s.known == MAYBE_NOT_OBSERVABLE)
        require(c, s.reason != REASON_NONE, field, "is not observable without a reason");
}

static void check_bytes(struct check *c, const char *field, uint64_t v)
{
    require(c, v <= INT64_MAX, field, "is 2^63 or more");
}

static void check_f64(struct check *c, const struct member *m, const void *base)
{
    const double v = ((const struct maybe_f64 *)member_at(m, base))->v;

    require(c, isfinite(v) && v >= 0.0, m->name, "is negative or not finite");
    require(c, m->max <= 0.0 || v <= m->max, m->name, "is above 1");
    check_state(c, m->name, member_state(m, base), !(v > 0.0));
}

static void check_time(struct check *c, const char *field, int64_t v)
{
    require(c, v >= 0 && v <= CLOCK_LAST_SECOND, field, "is not a date");
}

static void check_text(struct check *c, const char *field, const char *text, size_t size)
{
    require(c, memchr(text, '\0', size) != NULL, field, "is not terminated");
}

static void check_sm_penalties(struct check *c, const struct maybe_f64 *penalties)
{
    static const struct member m = {.name = "sm_miss_penalty_cycles"};

    for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++)
        check_f64(c, &m, &penalties[sm]);
}

/* Groups are numbered by their lowest SM: going up the ids, a new group is always the next number.
 * With no group nothing is known, whatever the slots hold. */
static void check_partition(struct check *c, const struct sm_partition *p)
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
    }
    require(c, seen == p->group_count, "groups", "have one without SMs");
    require(c, c->fp->gpu.sm_count == 0 || members <= c->fp->gpu.sm_count, "groups",
            "have more SMs than the GPU");
}

static void check_object(struct check *c, const struct object *o, const void *base);

static void check_list(struct check *c, const struct member *m, const void *base)
{
    const uint32_t count = member_count(m, base);
    const char *const first = member_at(m, base);
    const size_t outer = strlen(c->where);

    require(c, count <= m->max_count, m->name, "has too many elements");
    for (uint32_t i = 0; c->status == STATUS_OK && i < count; i++) {
        (void)snprintf(c->where + outer, sizeof(c->where) - outer, "%s[%u].", m->name, i);
        check_object(c, m->object, first + i * m->object->size);
    }
    c->where[outer] = '\0';
}

static void check_notes(struct check *c, const struct member *m, const void *base)
{
    const uint32_t count = member_count(m, base);
    const size_t room = m->size / m->max_count;

    require(c, count <= m->max_count, m->name, "has too many elements");
    for (uint32_t i = 0; c->status == STATUS_OK && i < count; i++)
        check_text(c, m->name, (const char *)member_at(m, base) + i * room, room);
}

static void check_inner(struct check *c, const struct member *m, const void *base)
{
    const size_t outer = strlen(c->where);

    (void)snprintf(c->where + outer, sizeof(c->where) - outer, "%s.", m->name);
    check_object(c, m->object, member_at(m, base));
    c->where[outer] = '\0';
}

static void check_member(struct check *c, const struct member *m, const void *base)
{
    const void *const v = member_at(m, base);

    switch (m->type) {
    case MEMBER_U64:
        check_bytes(c, m->name, *(const uint64_t *)v);
        break;
    case MEMBER_F64:
        require(c, isfinite(*(const double *)v) && *(const double *)v >= 0.0, m->name,
                "is negative or not finite");
        break;
    case MEMBER_U32_MAYBE:
        check_state(c, m->name, member_state(m, base), ((const struct maybe_u32 *)v)->v == 0);
        break;
    case MEMBER_U64_MAYBE:
        check_state(c, m->name, member_state(m, base), ((const struct maybe_u64 *)v)->v == 0);
        check_bytes(c, m->name, ((const struct maybe_u64 *)v)->v);
        break;
    case MEMBER_F64_MAYBE:
        check_f64(c, m, base);
        break;
    case MEMBER_NAME:
        require(c, *(const unsigned *)v < m->names->count, m->name, "does not exist");
        break;
    case MEMBER_TEXT:
        check_text(c, m->name, v, m->size);
        break;
    case MEMBER_TIME:
        check_time(c, m->name, *(const int64_t *)v);
        break;
    case MEMBER_OBJECT:
        check_inner(c, m, base);
        break;
    case MEMBER_LIST:
        check_list(c, m, base);
        break;
    case MEMBER_NOTES:
        check_notes(c, m, base);
        break;
    case MEMBER_PARTITION:
        check_partition(c, v);
        break;
    case MEMBER_SM_PENALTIES:
        check_sm_penalties(c, v);
        break;
    default: /* part of others, or checked with them */
        break;
    }
}

/* Evidence is of a number that is there. */
static void check_evidence(struct check *c, const struct object *o, const void *base)
{
    const struct evidence *const e = object_evidence(o, base);
    const uint32_t known = object_known_evidence(o, base);

    for (uint32_t k = 0; k < o->evidence_count; k++) {
        const char *const fault = evidence_fault(e[k], (known >> k & 1) != 0);

        if (fault)
            fail(c, o->evidence_names[k], fault);
    }
}

static void check_object(struct check *c, const struct object *o, const void *base)
{
    for (const struct member *m = o->members; m < o->members + o->count; m++) {
        if (c->status == STATUS_OK) /* later members may be behind a count that is wrong */
            check_member(c, m, base);
    }
    if (c->status == STATUS_OK && o->evidence_count > 0)
        check_evidence(c, o, base);
}

/* ---- members together ---- */

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

/* The runs are all sets: most ways first, none without sets. */
static void check_sets(struct check *c, const struct tlb_level *l)
{
    uint64_t sets = 0;

    for (uint32_t i = 0; i < l->run_count; i++) {
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

static void check_level(struct check *c, const struct tlb_level *l)
{
    check_sets(c, l);
    require(c, l->level > 0, "level", "is 0");
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

    for (uint32_t i = 0; i < fp->level_count; i++) {
        const struct tlb_level *const l = &fp->levels[i];

        at(c, "tlb.levels[%u].", i);
        check_level(c, l);
        require(c, l->level > last_level, "level", "is not above the one before");
        last_level = l->level;
        require(c, !IS_KNOWN(l->reach_bytes) || l->reach_bytes.v >= last_reach, "reach_bytes",
                "is below that of a nearer level");
        last_reach = IS_KNOWN(l->reach_bytes) ? l->reach_bytes.v : last_reach;
    }
}

/* Sets of SMs in rising order, and the later set first. */
static void check_candidates(struct check *c, const struct disabled_sms *d, uint32_t full)
{
    require(c, d->listed <= FINGERPRINT_MAX_CANDIDATES, "candidates", "has too many elements");
    require(c, d->listed == 0 || (IS_KNOWN(d->sm_count) && full > 0), "candidates",
            "are known without the full die");
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

/* `members`: the SMs that have a group. */
static void check_disabled(struct check *c, const struct topology *t, uint32_t members)
{
    const struct disabled_sms *const d = &t->disabled;

    at(c, "topology.disabled.");
    require(c,
            !IS_KNOWN(d->sm_count) ||
                (IS_KNOWN(t->full_sm_count) && t->full_sm_count.v >= members &&
                 t->full_sm_count.v - members == d->sm_count.v),
            "sm_count", "is not full_sm_count less the SMs that are there");
    check_candidates(c, d, IS_KNOWN(t->full_sm_count) ? t->full_sm_count.v : 0);
}

static bool are_groups(const uint16_t *pair, uint32_t groups)
{
    return pair[0] < pair[1] && pair[1] < groups;
}

static void check_pairs(struct check *c, const struct group_pairs *p, uint32_t groups)
{
    at(c, "topology.pairs.");
    require(c, p->listed <= p->slow_count, "slow", "has more elements than slow_count");
    require(c, p->slow_count <= p->measured, "slow_count", "is above measured");
    require(c, !IS_KNOWN(p->worst_ratio) || are_groups(p->worst, groups), "worst",
            "is not a pair of groups");
    for (uint32_t i = 0; i < p->listed; i++)
        require(c, are_groups(p->slow[i].groups, groups), "slow", "is not of pairs of groups");
}

static void check_topology(struct check *c, const struct topology *t)
{
    uint32_t sizes[REACH_MAX_GROUPS] = {0};
    uint32_t members = 0;

    for (uint32_t sm = 0; t->partition.group_count > 0 && sm < REACH_MAX_SMS; sm++) {
        if (t->partition.group_of_sm[sm] == FINGERPRINT_NO_GROUP)
            continue;
        sizes[t->partition.group_of_sm[sm]]++;
        members++;
    }
    for (uint32_t g = 0; g < t->partition.group_count; g++) {
        at(c, "topology.groups[%u].", g);
        require(c, t->groups[g].sm_count == sizes[g], "sm_count", "is not that of the partition");
    }
    check_disabled(c, t, members);
    check_pairs(c, &t->pairs, t->partition.group_count);
}

static void check_windows(struct check *c, const struct fingerprint_windows *w)
{
    at(c, "windows.");
    if (IS_KNOWN(w->reach_bytes) && IS_KNOWN(w->entry_bytes))
        require(c, w->reach_bytes.v >= w->entry_bytes.v, "reach_bytes", "is below entry_bytes");
    if (IS_KNOWN(w->reach_bytes) && IS_KNOWN(w->recommended_bytes))
        require(c, w->recommended_bytes.v <= w->reach_bytes.v, "recommended_bytes",
                "is above reach_bytes");
}

/* The regions of a curve or of a rate ascend, from above 0. */
static void check_region(struct check *c, uint64_t region_bytes, uint64_t *last)
{
    require(c, region_bytes > *last, "region_bytes", "is not above the one before");
    *last = region_bytes;
}

/* `i` is the index of the rate. */
static void check_rate_points(struct check *c, const struct access_rate *r, uint32_t i)
{
    uint64_t last = 0;

    for (uint32_t k = 0; k < r->point_count; k++) {
        at(c, "throughput.rates[%u].points[%u].", i, k);
        check_region(c, r->points[k].region_bytes, &last);
        require(c, k + 1 == r->point_count || !IS_KNOWN(r->points[k].by_group_gbps),
                "by_group_gbps", "is known below the largest region");
    }
}

/* Each kind once, in order, and the curve's not at all. */
static void check_rate(struct check *c, const struct access_rate *r,
                       const struct access_rate *before, uint32_t i)
{
    at(c, "throughput.rates[%u].", i);
    require(c, r->transaction_bytes > 0, "transaction_bytes", "is 0");
    require(c,
            r->access != ACCESS_READ || r->transaction_bytes != (uint32_t)FINGERPRINT_CURVE_BYTES,
            "transaction_bytes", "is that of the curve");
    require(c,
            !before || r->access > before->access ||
                (r->access == before->access && r->transaction_bytes > before->transaction_bytes),
            "transaction_bytes", "is out of order or a duplicate");
    check_rate_points(c, r, i);
}

static void check_throughput(struct check *c, const struct throughput *t)
{
    uint64_t last = 0;

    for (uint32_t i = 0; i < t->curve_count; i++) {
        at(c, "throughput.curve[%u].", i);
        check_region(c, t->curve[i].region_bytes, &last);
    }
    for (uint32_t i = 0; i < t->rate_count; i++)
        check_rate(c, &t->rates[i], i > 0 ? &t->rates[i - 1] : NULL, i);
}

static void check_contiguity(struct check *c, const struct fingerprint_contiguity *k)
{
    const bool both = IS_KNOWN(k->contiguous_miss_ns) && IS_KNOWN(k->scattered_miss_ns);

    at(c, "contiguity.");
    require(c, !IS_KNOWN(k->frame_bytes) || k->frame_bytes.v > 0, "frame_bytes", "is 0");
    require(c, !IS_KNOWN(k->contiguous_miss_ns) || k->contiguous_miss_ns.v > 0,
            "contiguous_miss_ns", "is 0");
    require(c, !both || k->scattered_miss_ns.v >= k->contiguous_miss_ns.v, "scattered_miss_ns",
            "is below contiguous_miss_ns");
}

/* All of it is known, or nothing. */
static void check_l2(struct check *c, const struct fingerprint_l2 *l2)
{
    const bool known = IS_KNOWN(l2->sides);

    at(c, "l2.");
    require(c, !known || l2->sides.v == 2, "sides", "is not 2");
    require(
        c, known == (l2->side_of_sm.group_count == 2) && (known || l2->side_of_sm.group_count == 0),
        "sms", "are not those of the sides");
    require(c, !IS_KNOWN(l2->granule_bytes) || l2->granule_bytes.v > 0, "granule_bytes", "is 0");
    require(c, IS_KNOWN(l2->granule_bytes) == known, "granule_bytes", "is known without sides");
    require(c,
            IS_KNOWN(l2->atomic_near_cycles) == known && IS_KNOWN(l2->atomic_far_cycles) == known,
            "atomic_near_cycles", "is known without sides");
    require(c, !known || l2->atomic_far_cycles.v > l2->atomic_near_cycles.v, "atomic_far_cycles",
            "is not above atomic_near_cycles");
}

/* By transaction_bytes, then by set_bytes. */
static void check_working_sets(struct check *c, const struct fingerprint *fp)
{
    for (uint32_t i = 0; i < fp->working_set_count; i++) {
        const struct working_set *const w = &fp->working_sets[i];
        const struct working_set *const before = i > 0 ? w - 1 : NULL;
        at(c, "working_sets[%u].", i);
        require(c, w->transaction_bytes > 0, "transaction_bytes", "is 0");
        require(c, w->set_bytes > 0, "set_bytes", "is 0");
        require(c,
                !before || w->transaction_bytes > before->transaction_bytes ||
                    (w->transaction_bytes == before->transaction_bytes &&
                     w->set_bytes > before->set_bytes),
                "set_bytes", "is out of order or a duplicate");
    }
}

/* Each kind once and in order; parts no larger than the whole. */
static void check_caches(struct check *c, const struct fingerprint *fp)
{
    for (uint32_t i = 0; i < fp->cache_count; i++) {
        const struct cache_facts *const f = &fp->caches[i];
        uint64_t last = 0;

        at(c, "caches[%u].", i);
        require(c, f->kind == (enum cache_kind)i, "kind", "is out of order or a duplicate");
        require(c, !IS_KNOWN(f->line_bytes) || f->line_bytes.v > 0, "line_bytes", "is 0");
        require(c,
                !IS_KNOWN(f->sector_bytes) ||
                    (f->sector_bytes.v > 0 &&
                     (!IS_KNOWN(f->line_bytes) || f->sector_bytes.v <= f->line_bytes.v)),
                "sector_bytes", "is 0 or above line_bytes");
        require(c, !IS_KNOWN(f->ways) || IS_KNOWN(f->sets), "ways", "is known without sets");
        require(c,
                !IS_KNOWN(f->miss_latency_cycles) || !IS_KNOWN(f->latency_cycles) ||
                    f->miss_latency_cycles.v >= f->latency_cycles.v,
                "miss_latency_cycles", "is below latency_cycles");
        for (uint32_t k = 0; k < f->carveout_count; k++) {
            require(c, k == 0 || f->carveouts[k].shared_bytes > last, "carveouts",
                    "are out of order");
            last = f->carveouts[k].shared_bytes;
        }
    }
    c->where[0] = '\0';
    require(c, fp->cache_count == 0 || fp->cache_count == CACHE_KIND_COUNT, "caches",
            "lack a kind");
    at(c, "latency.");
    require(c,
            !IS_KNOWN(fp->latency.far_cycles) ||
                (IS_KNOWN(fp->latency.near_cycles) &&
                 fp->latency.far_cycles.v > fp->latency.near_cycles.v),
            "far_cycles", "is not above near_cycles");
}

/* A number that is known only together with those that it depends on. */
static void check_memory_facts(struct check *c, const struct memory_facts *m)
{
    const struct {
        const char *name;
        struct maybe_u64 reach, onset;
    } bounds[] = {{"onset_bytes", m->reach_bytes, m->onset_bytes},
                  {"windows_onset_bytes", m->windows_reach_bytes, m->windows_onset_bytes},
                  {"group_onset_bytes", m->group_reach_bytes, m->group_onset_bytes}};
    uint64_t last = 0;

    for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds)[0]; i++)
        require(c,
                !IS_KNOWN(bounds[i].reach) || !IS_KNOWN(bounds[i].onset) ||
                    bounds[i].reach.v < bounds[i].onset.v,
                bounds[i].name, "is not above the reach");
    require(c, IS_KNOWN(m->probed_bytes) || !IS_KNOWN(m->plateau_gbps), "plateau_gbps",
            "is known of memory that could not be had");
    require(c, IS_KNOWN(m->probed_bytes) || m->curve_count == 0, "curve",
            "is of memory that could not be had");
    require(c, (m->kind == MEMORY_PEER) == (m->peer_uuid[0] != '\0'), "peer_uuid",
            "is missing, or is of no peer");
    for (uint32_t k = 0; k < m->curve_count; k++)
        check_region(c, m->curve[k].region_bytes, &last);
}

/* Each kind once and in order, then the peers. */
static void check_memory(struct check *c, const struct fingerprint *fp)
{
    for (uint32_t i = 0; i < fp->memory_count; i++) {
        at(c, "memory[%u].", i);
        require(c,
                fp->memory[i].kind ==
                    (i + 1 < MEMORY_PEER ? (enum memory_kind)(i + 1) : MEMORY_PEER),
                "kind", "is out of order or a duplicate");
        check_memory_facts(c, &fp->memory[i]);
    }
    c->where[0] = '\0';
    require(c, fp->memory_count == 0 || fp->memory_count >= MEMORY_PEER - 1, "memory",
            "lacks a kind");
}

static void check_source(struct check *c, const char *field, const struct fingerprint_source *s)
{
    at(c, "%s.", field);
    check_object(c, &source_object, s);
    c->where[0] = '\0';
}

/* What is kept is named apart from the measurement that keeps it. */
static void check_kept(struct check *c, const struct fingerprint *fp)
{
    bool any = false;

    for (uint32_t part = 0; part < PART_COUNT; part++) {
        check_source(c, "kept", &fp->kept[part]);
        any = any || fp->kept[part].id[0];
    }
    check_source(c, "dropped", &fp->dropped);
    check_text(c, "measurement_id", fp->measurement_id, sizeof(fp->measurement_id));
    require(c, !any || fp->measurement_id[0] != '\0', "measurement_id",
            "is missing, and something is kept");
    require(c, fp->measurement_depth <= fp->depth, "measurement_depth",
            "is deeper than all that was measured");
    check_text(c, "dropped.reason", fp->dropped_reason, sizeof(fp->dropped_reason));
}

enum status fingerprint_check(const struct fingerprint *fp, struct err *err)
{
    struct check c = {.status = STATUS_OK, .err = err, .fp = fp};

    check_identity(&c, &fp->gpu);
    c.where[0] = '\0';
    check_object(&c, &fingerprint_object, fp);
    if (c.status != STATUS_OK)
        return c.status; /* indexes and counts below may be out of range */
    check_levels(&c, fp);
    check_topology(&c, &fp->topology);
    check_windows(&c, &fp->windows);
    check_throughput(&c, &fp->throughput);
    check_contiguity(&c, &fp->contiguity);
    check_l2(&c, &fp->l2);
    check_working_sets(&c, fp);
    check_caches(&c, fp);
    if (c.status == STATUS_OK)
        c.status = check_shared(fp, err);
    check_memory(&c, fp);
    check_kept(&c, fp);
    return c.status;
}
