/* fingerprint_check.c: checks the invariants of a fingerprint from any source. First each member is
 * checked alone, by the tables of members.h, and then members are checked together.
 *
 * The check runs in every build, after analysis, after load and in tests. So no other code needs
 * these checks. For example, the planner indexes groups and windows directly.
 */
#include "fingerprint/fingerprint_check.h"

#include "base/clock.h"
#include "fingerprint/members.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The first failure, and the path of the object that is checked. */
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

__attribute__((format(printf, 2, 3))) static void set_path(struct check *c, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(c->where, sizeof(c->where), format, args);
    va_end(args);
}

/* ---- each member ---- */

/* Checks the rules of base/maybe.h. `zero` is true if the number is 0. */
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

static void check_f64(struct check *c, const char *field, const struct maybe_f64 *m)
{
    const struct member_state s = {m->known, m->reason};

    require(c, isfinite(m->v) && m->v >= 0.0, field, "is negative or not finite");
    check_state(c, field, s, !(m->v > 0.0));
}

static void check_text(struct check *c, const char *field, const char *text, size_t size)
{
    require(c, memchr(text, '\0', size) != NULL, field, "is not terminated");
}

/* Checks the relation of a number to another one of its object. */
static void check_relation(struct check *c, const struct object *o, const struct member *m,
                           const void *base)
{
    static const char *const faults[] = {[RELATION_AT_LEAST] = "is below",
                                         [RELATION_AT_MOST] = "is above",
                                         [RELATION_ABOVE] = "is not above"};
    const struct member *const other = object_member(o, m->other);
    const int order = member_compare(m, base, other, base);
    const bool holds = m->relation == RELATION_AT_LEAST  ? order >= 0
                       : m->relation == RELATION_AT_MOST ? order <= 0
                                                         : order > 0;
    char fault[MEMBER_LABEL_BYTES];

    if (holds || member_state(other, base).known != MAYBE_KNOWN)
        return;
    (void)snprintf(fault, sizeof fault, "%s %s", faults[m->relation], m->other);
    fail(c, m->name, fault);
}

static void check_range(struct check *c, const struct object *o, const struct member *m,
                        const void *base)
{
    const double v = member_value(m, base);

    if (member_is_maybe(m) && member_state(m, base).known != MAYBE_KNOWN)
        return;
    require(c, !m->positive || v > 0, m->name, "is 0");
    require(c, v >= m->min, m->name, "is below its least value");
    require(c, m->max <= 0 || v <= m->max, m->name, "is above its largest value");
    if (m->relation != RELATION_NONE)
        check_relation(c, o, m, base);
}

/* Checks that groups are numbered by their lowest SM: in the order of ids, a new group always has
 * the next number. If there are no groups, group_of_sm has no meaning. */
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

/* Returns the name of the last key, which distinguishes most elements of a list. */
static const char *last_key(const struct object *o)
{
    const char *name = "";

    for (const struct member *m = o->members; m < o->members + o->count; m++)
        name = m->key ? m->name : name;
    return name;
}

static void check_list(struct check *c, const struct member *m, const void *base)
{
    const uint32_t count = member_count(m, base);
    const char *const first = member_at(m, base);
    const size_t outer = strlen(c->where);

    require(c, count <= m->max_count, m->name, "has too many elements");
    require(c, count == 0 || count >= m->min_count, m->name, "has too few elements");
    for (uint32_t i = 0; c->status == STATUS_OK && i < count; i++) {
        const char *const element = first + i * m->object->size;

        (void)snprintf(c->where + outer, sizeof(c->where) - outer, "%s[%u].", m->name, i);
        check_object(c, m->object, element);
        if (m->ordered && i > 0)
            require(c, object_compare_keys(m->object, element - m->object->size, element) < 0,
                    last_key(m->object), "is out of order or a duplicate");
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
        check_f64(c, m->name, v);
        break;
    case MEMBER_NAME:
        require(c, *(const unsigned *)v < m->names->count, m->name, "does not exist");
        break;
    case MEMBER_TEXT:
        check_text(c, m->name, v, m->size);
        break;
    case MEMBER_TIME:
        require(c, *(const int64_t *)v >= 0 && *(const int64_t *)v <= CLOCK_LAST_SECOND, m->name,
                "is not a date");
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
        for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++)
            check_f64(c, "sm_miss_penalty_cycles", (const struct maybe_f64 *)v + sm);
        break;
    default: /* members that are checked with other members */
        break;
    }
}

/* Checks that only known numbers have evidence. */
static void check_evidence(struct check *c, const struct object *o, const void *base)
{
    for (const struct member *m = NULL; (m = object_next_evidence(o, m));) {
        const char *const fault =
            evidence_fault(*member_evidence(m, base), object_evidence_is_known(o, m, base));

        if (fault)
            fail(c, m->of_evidence, fault);
    }
}

static void check_object(struct check *c, const struct object *o, const void *base)
{
    for (const struct member *m = o->members; m < o->members + o->count; m++) {
        if (c->status == STATUS_OK) /* after a wrong count, later members may be invalid */
            check_member(c, m, base);
        if (member_is_scalar(m))
            check_range(c, o, m, base);
    }
    if (c->status == STATUS_OK)
        check_evidence(c, o, base);
}

/* ---- members together ---- */

static void check_identity(struct check *c, const struct gpu_identity *id)
{
    set_path(c, "gpu.");
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

/* Checks that the runs have falling numbers of ways, and cover all sets. */
static void check_sets(struct check *c, const struct tlb_level *l)
{
    uint64_t sets = 0;

    for (uint32_t i = 0; i < l->run_count; i++) {
        require(c, i == 0 || l->runs[i].ways < l->runs[i - 1].ways, "set_sizes",
                "are not in order");
        sets += l->runs[i].sets;
    }
    if (l->run_count == 0)
        return;
    require(c, IS_KNOWN(l->sets) && sets == l->sets.v, "set_sizes", "do not add up to sets");
    require(c, IS_KNOWN(l->ways) == (l->run_count == 1), "ways", "do not fit set_sizes");
}

static void check_levels(struct check *c, const struct fingerprint *fp)
{
    uint64_t last_reach = 0;

    for (uint32_t i = 0; i < fp->level_count; i++) {
        const struct tlb_level *const l = &fp->levels[i];

        set_path(c, "tlb.levels[%u].", i);
        check_sets(c, l);
        require(c, !IS_KNOWN(l->reach_bytes) || l->reach_bytes.v >= last_reach, "reach_bytes",
                "is below the reach of a nearer level");
        last_reach = IS_KNOWN(l->reach_bytes) ? l->reach_bytes.v : last_reach;
    }
}

/* Checks that the ids of a candidate are in rising order, and that candidates with later ids come
 * first. */
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

/* Checks the disabled SMs. `members` is the number of SMs that have a group. */
static void check_disabled(struct check *c, const struct topology *t, uint32_t members)
{
    const struct disabled_sms *const d = &t->disabled;

    set_path(c, "topology.disabled.");
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
    set_path(c, "topology.pairs.");
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
        set_path(c, "topology.groups[%u].", g);
        require(c, t->groups[g].sm_count == sizes[g], "sm_count", "differs from the partition");
    }
    check_disabled(c, t, members);
    check_pairs(c, &t->pairs, t->partition.group_count);
}

/* Checks that no rate repeats the accesses of the curve, and that only the largest region has
 * by_group_gbps. */
static void check_rates(struct check *c, const struct throughput *t)
{
    for (uint32_t i = 0; i < t->rate_count; i++) {
        const struct access_rate *const r = &t->rates[i];

        set_path(c, "throughput.rates[%u].", i);
        require(c,
                r->access != ACCESS_READ ||
                    r->transaction_bytes != (uint32_t)FINGERPRINT_CURVE_BYTES,
                "transaction_bytes", "must differ from the curve's");
        for (uint32_t k = 0; k + 1 < r->point_count; k++) {
            set_path(c, "throughput.rates[%u].points[%u].", i, k);
            require(c, !IS_KNOWN(r->points[k].by_group_gbps), "by_group_gbps",
                    "is known below the largest region");
        }
    }
}

/* Checks that either all members are known or no member is known. */
static void check_l2(struct check *c, const struct fingerprint_l2 *l2)
{
    const bool known = IS_KNOWN(l2->sides);

    set_path(c, "l2.");
    require(c, l2->sides.v == l2->side_of_sm.group_count, "sms", "are not those of the sides");
    require(c, IS_KNOWN(l2->granule_bytes) == known, "granule_bytes", "is known without sides");
    require(c,
            IS_KNOWN(l2->atomic_near_cycles) == known && IS_KNOWN(l2->atomic_far_cycles) == known,
            "atomic_near_cycles", "is known without sides");
    require(c, l2->sides_match_domains == l2_match_domains(l2), "sides_match_domains",
            "is not the result of comparing sides and locality_domains");
}

static void check_caches(struct check *c, const struct fingerprint *fp)
{
    for (uint32_t i = 0; i < fp->cache_count; i++) {
        set_path(c, "caches[%u].", i);
        require(c, !IS_KNOWN(fp->caches[i].ways) || IS_KNOWN(fp->caches[i].sets), "ways",
                "is known without sets");
    }
    set_path(c, "latency.");
    require(c, !IS_KNOWN(fp->latency.far_cycles) || IS_KNOWN(fp->latency.near_cycles), "far_cycles",
            "is known without near_cycles");
}

static void check_banks(struct check *c, const struct fingerprint_shared *s)
{
    set_path(c, "shared.");
    require(c, IS_KNOWN(s->bank_bytes) == IS_KNOWN(s->banks), "bank_bytes",
            "is known without banks");
    for (uint32_t i = 0; i < s->stride_count; i++)
        require(c, IS_KNOWN(s->banks) || !IS_KNOWN(s->strides[i].passes), "strides",
                "have passes without banks");
}

static void check_clusters(struct check *c, const struct fingerprint_clusters *k, uint32_t sm_count)
{
    set_path(c, "clusters.");
    require(c, k->gpcs.v == k->gpc_of_sm.group_count, "sms", "are not those of the GPCs");
    for (uint32_t i = 0; i < k->size_count; i++) {
        const struct cluster_size *const s = &k->sizes[i];

        require(c, IS_KNOWN(s->clusters) == IS_KNOWN(s->usable_sms), "sizes",
                "have usable_sms without clusters");
        require(c, s->usable_sms.v == (uint64_t)s->clusters.v * s->sms, "sizes",
                "have usable_sms that are not those of the clusters");
        require(c, sm_count == 0 || s->usable_sms.v <= sm_count, "sizes",
                "have more usable_sms than the GPU");
    }
}

/* Checks that the number that is too small is below the sufficient number. */
static void check_enough(struct check *c, struct maybe_u32 enough, struct maybe_u32 fewer,
                         const char *field)
{
    set_path(c, "parallelism.");
    require(c, !IS_KNOWN(fewer) || (IS_KNOWN(enough) && fewer.v < enough.v), field,
            "is not above what is too few");
}

/* Checks that each kind appears once and in order, followed by the peers. Memory that could not be
 * allocated has no known numbers. */
static void check_memory(struct check *c, const struct fingerprint *fp)
{
    for (uint32_t i = 0; i < fp->memory_count; i++) {
        const struct memory_facts *const m = &fp->memory[i];

        set_path(c, "memory[%u].", i);
        require(c, m->kind == (i + 1 < MEMORY_PEER ? (enum memory_kind)(i + 1) : MEMORY_PEER),
                "kind", "is out of order or a duplicate");
        require(c, IS_KNOWN(m->probed_bytes) || !IS_KNOWN(m->plateau_gbps), "plateau_gbps",
                "is known of memory that could not be had");
        require(c, IS_KNOWN(m->probed_bytes) || m->curve_count == 0, "curve",
                "is of memory that could not be had");
        require(c, (m->kind == MEMORY_PEER) == (m->peer_uuid[0] != '\0'), "peer_uuid",
                "is missing, or is of no peer");
    }
    c->where[0] = '\0';
}

static void check_source(struct check *c, const char *field, const struct fingerprint_source *s)
{
    set_path(c, "%s.", field);
    check_object(c, &source_object, s);
    c->where[0] = '\0';
}

/* Checks the measurements of kept parts. If a part is kept, the newest measurement must have an id
 * of its own. */
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
        return c.status; /* the checks below rely on valid counts and indexes */
    check_levels(&c, fp);
    check_topology(&c, &fp->topology);
    check_rates(&c, &fp->throughput);
    check_l2(&c, &fp->l2);
    check_caches(&c, fp);
    check_banks(&c, &fp->shared);
    check_clusters(&c, &fp->clusters, fp->gpu.sm_count);
    check_enough(&c, fp->parallelism.loads_enough, fp->parallelism.loads_short, "loads_enough");
    check_enough(&c, fp->parallelism.sms_enough, fp->parallelism.sms_short, "sms_enough");
    check_memory(&c, fp);
    check_kept(&c, fp);
    return c.status;
}
