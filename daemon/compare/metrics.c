/* metrics.c: takes a fingerprint apart into named values. The names are the paths of its JSON:
 * "tlb.levels[2].entries" (the level's number), "throughput.curve[64G].naive_gbps" (the region's
 * size). */
#include "compare/metrics.h"

#include "base/assert.h"
#include "base/stats.h"
#include "base/units.h"
#include "fingerprint/members.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SIZE_BYTES = 24, PREFIX_BYTES = 64 };

/* What values go to. */
struct visit {
    metric_fn *visit;
    void *self;
    bool with_text; /* of numbers */
};

static void emit(const struct visit *v, const char *prefix, const char *name, enum known known,
                 double value, const char *text)
{
    char path[METRIC_NAME_BYTES];

    REACH_ASSERT(strlen(prefix) + strlen(name) < sizeof(path)); /* all are of this file */
    strcpy(stpcpy(path, prefix), name);
    v->visit(v->self, path, known, known == MAYBE_KNOWN ? value : 0, text);
}

/* A number in a struct. */
struct field {
    const char *name;
    enum {
        U32, /* struct maybe_u32 and so on */
        U64,
        F64,
        COUNT, /* uint32_t */
        BYTES, /* uint64_t; 0: unknown */
    } type;
    size_t offset;
};

#define FIELD(type, of, name)                                                                      \
    {                                                                                              \
#name, type, offsetof(struct of, name)                                                     \
    }
#define EMIT(v, prefix, of, fields)                                                                \
    emit_fields(v, prefix, of, fields, sizeof(fields) / sizeof(*(fields)))

static void emit_field(const struct visit *v, const char *prefix, const struct field *f,
                       const void *at)
{
    const enum known known = f->type == COUNT ? MAYBE_KNOWN
                             : f->type == BYTES
                                 ? *(const uint64_t *)at ? MAYBE_KNOWN : MAYBE_UNKNOWN
                                 : *(const enum known *)at; /* the first member */
    const uint64_t integer = f->type == U32     ? ((const struct maybe_u32 *)at)->v
                             : f->type == U64   ? ((const struct maybe_u64 *)at)->v
                             : f->type == COUNT ? *(const uint32_t *)at
                             : f->type == BYTES ? *(const uint64_t *)at
                                                : 0;
    char text[SIZE_BYTES] = "";

    if (v->with_text)
        (void)snprintf(text, sizeof(text), "%" PRIu64, integer);
    emit(v, prefix, f->name, known,
         f->type == F64 ? ((const struct maybe_f64 *)at)->v : (double)integer, text);
}

static void emit_fields(const struct visit *v, const char *prefix, const void *of,
                        const struct field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++)
        emit_field(v, prefix, &fields[i], (const char *)of + fields[i].offset);
}

/* ---- the structure ---- */

/* Enums have a value for what is not known. */
static void emit_word(const struct visit *v, const char *prefix, const char *name, bool known,
                      const char *word)
{
    emit(v, prefix, name, known ? MAYBE_KNOWN : MAYBE_UNKNOWN, 0, word);
}

static void emit_level(const struct visit *v, const struct tlb_level *l)
{
    static const struct field sizes[] = {
        FIELD(U32, tlb_level, entries),    FIELD(U64, tlb_level, entry_bytes),
        FIELD(U64, tlb_level, page_bytes), FIELD(U64, tlb_level, reach_bytes),
        FIELD(U32, tlb_level, sets),       FIELD(U32, tlb_level, ways)};
    static const struct field more[] = {FIELD(U32, tlb_level, victim_entries),
                                        FIELD(U32, tlb_level, entry_pages),
                                        FIELD(U64, tlb_level, tag_bytes)};
    char prefix[PREFIX_BYTES];
    char sets[METRIC_NAME_BYTES] = ""; /* "16x4,8x1": by their ways */
    size_t n = 0;

    for (uint32_t i = 0; i < l->run_count && n < sizeof(sets); i++)
        n += (size_t)snprintf(sets + n, sizeof(sets) - n, "%s%ux%u", i ? "," : "", l->runs[i].sets,
                              l->runs[i].ways);
    (void)snprintf(prefix, sizeof(prefix), "tlb.levels[%u].", l->level);
    EMIT(v, prefix, l, sizes);
    emit_word(v, prefix, "set_sizes", l->run_count > 0, sets);
    EMIT(v, prefix, l, more);
    emit_word(v, prefix, "replacement", l->replacement != REPLACEMENT_UNKNOWN,
              replacement_name(l->replacement));
    emit_word(v, prefix, "fill", l->fill != FILL_UNKNOWN, fill_name(l->fill));
    emit_word(v, prefix, "shared_by", l->shared_by != SHARED_UNKNOWN, shared_by_name(l->shared_by));
}

void structure_visit(const struct fingerprint *fp, metric_fn *visit, void *self)
{
    static const struct field level_count = FIELD(COUNT, fingerprint, level_count);
    static const struct field beyond = FIELD(U64, fingerprint, beyond.reach_bytes);
    static const struct field gpu[] = {FIELD(COUNT, fingerprint, gpu.sm_count),
                                       FIELD(BYTES, fingerprint, gpu.memory_bytes),
                                       FIELD(BYTES, fingerprint, gpu.l2_cache_bytes)};
    static const struct field rest[] = {
        FIELD(U32, fingerprint, topology.level),
        FIELD(U32, fingerprint, topology.nominal_group_sms),
        FIELD(U32, fingerprint, topology.full_sm_count),
        FIELD(U32, fingerprint, topology.disabled.unit_sms),
        FIELD(U64, fingerprint, windows.reach_bytes),
        FIELD(U64, fingerprint, windows.entry_bytes),
        FIELD(U64, fingerprint, windows.recommended_bytes),
    };
    const struct visit v = {visit, self, true};
    char capability[SIZE_BYTES];

    (void)snprintf(capability, sizeof(capability), "%u.%u", fp->gpu.compute_major,
                   fp->gpu.compute_minor);
    emit_word(&v, "gpu.", "compute_capability", true, capability);
    EMIT(&v, "", fp, gpu);
    emit_word(&v, "gpu.", "mig", true, fp->gpu.mig ? "on" : "off");
    emit_field(&v, "tlb.", &level_count, &fp->level_count);
    for (uint32_t i = 0; i < fp->level_count; i++)
        emit_level(&v, &fp->levels[i]);
    emit_field(&v, "tlb.", &beyond, &fp->beyond.reach_bytes);
    for (uint32_t a = 0; a < ALLOCATION_COUNT; a++) {
        const struct field pages = {allocation_name((enum allocation)a), U64, 0};
        emit_field(&v, "tlb.page_bytes.", &pages, &fp->page_bytes[a]);
    }
    EMIT(&v, "", fp, rest);
}

/* ---- measured metrics ---- */

static void emit_levels(const struct visit *v, const struct fingerprint *fp)
{
    static const struct field walk = FIELD(F64, fingerprint, beyond.walk_cycles);
    static const struct field fields[] = {
        FIELD(U64, tlb_level, onset_bytes), FIELD(U64, tlb_level, saturation_bytes),
        FIELD(F64, tlb_level, miss_penalty_cycles), FIELD(F64, tlb_level, confidence)};
    char prefix[PREFIX_BYTES];

    for (uint32_t i = 0; i < fp->level_count; i++) {
        (void)snprintf(prefix, sizeof(prefix), "tlb.levels[%u].", fp->levels[i].level);
        EMIT(v, prefix, &fp->levels[i], fields);
    }
    emit_field(v, "tlb.", &walk, &fp->beyond.walk_cycles);
}

/* Least, median and most of a number that each of `count` groups or SMs has, `step` bytes apart. */
static void emit_many(const struct visit *v, const char *name, const void *first, size_t step,
                      uint32_t count)
{
    double values[REACH_MAX_SMS];
    uint32_t n = 0;
    enum known known = MAYBE_UNKNOWN;

    for (uint32_t i = 0; i < count; i++) {
        const struct maybe_f64 *const m = (const void *)((const char *)first + i * step);
        if (IS_KNOWN(*m))
            values[n++] = m->v;
        else if (m->known == MAYBE_NOT_OBSERVABLE)
            known = MAYBE_NOT_OBSERVABLE;
    }
    if (n > 0)
        known = MAYBE_KNOWN;
    emit(v, name, ".least", known, n > 0 ? stats_quantile_f64(values, n, 0) : 0, NULL);
    emit(v, name, ".median", known, n > 0 ? stats_median_f64(values, n) : 0, NULL);
    emit(v, name, ".most", known, n > 0 ? stats_quantile_f64(values, n, 1) : 0, NULL);
}

/* One class means that no second one was certain: one group further from the others of its class is
 * enough for that. So it is no number of the chip. */
static void emit_classes(const struct visit *v, const char *name, const struct maybe_u32 *classes)
{
    const bool sure = classes->v > 1;

    emit(v, "topology.", name,
         classes->known == MAYBE_KNOWN && !sure ? MAYBE_UNKNOWN : classes->known, classes->v, NULL);
}

static void emit_topology(const struct visit *v, const struct topology *t)
{
    static const struct field fields[] = {
        FIELD(U32, topology, disabled.sm_count), FIELD(U32, topology, disabled.lost_groups),
        FIELD(U32, topology, disabled.candidate_count), FIELD(F64, topology, confidence)};
    static const struct field of_group[] = {
        FIELD(F64, sm_group, miss_penalty_cycles), FIELD(F64, sm_group, random_read_gbps),
        FIELD(F64, sm_group, alone_gbps), FIELD(F64, sm_group, beyond_gbps)};
    const enum known pairs = t->pairs.measured > 0 ? MAYBE_KNOWN : MAYBE_UNKNOWN;
    const uint32_t groups = t->partition.group_count;
    char name[PREFIX_BYTES];

    emit(v, "topology.", "group_count", groups > 0 ? MAYBE_KNOWN : MAYBE_UNKNOWN, groups, NULL);
    EMIT(v, "topology.", t, fields);
    emit_classes(v, "penalty_classes", &t->penalty_classes);
    emit_classes(v, "speed_classes", &t->speed_classes);
    emit(v, "topology.pairs.", "worst_ratio",
         pairs == MAYBE_KNOWN ? t->pairs.worst_ratio.known : pairs, t->pairs.worst_ratio.v, NULL);
    emit(v, "topology.pairs.", "slow_count", pairs, t->pairs.slow_count, NULL);
    for (size_t i = 0; i < sizeof(of_group) / sizeof(*of_group); i++) {
        (void)snprintf(name, sizeof(name), "topology.groups.%s", of_group[i].name);
        emit_many(v, name, (const char *)t->groups + of_group[i].offset, sizeof(t->groups[0]),
                  groups);
    }
    emit_many(v, "topology.sm_miss_penalty_cycles", t->sm_miss_penalty_cycles,
              sizeof(t->sm_miss_penalty_cycles[0]), REACH_MAX_SMS);
}

static void emit_throughput(const struct visit *v, const struct throughput *t)
{
    static const struct field whole[] = {FIELD(F64, throughput, plateau_gbps),
                                         FIELD(F64, throughput, whole_memory_gbps)};
    static const struct field of_curve[] = {FIELD(F64, curve_point, naive_gbps),
                                            FIELD(F64, curve_point, by_group_gbps),
                                            FIELD(F64, curve_point, by_sm_gbps)};
    static const struct field of_rate[] = {FIELD(F64, curve_point, naive_gbps),
                                           FIELD(F64, curve_point, by_group_gbps)};
    char prefix[PREFIX_BYTES];
    char size[SIZE_BYTES];

    EMIT(v, "throughput.", t, whole);
    for (uint32_t i = 0; i < t->curve_count; i++) {
        units_print_bytes(t->curve[i].region_bytes, size, sizeof(size));
        (void)snprintf(prefix, sizeof(prefix), "throughput.curve[%s].", size);
        EMIT(v, prefix, &t->curve[i], of_curve);
    }
    for (uint32_t i = 0; i < t->rate_count; i++) {
        const struct access_rate *const r = &t->rates[i];
        const int n = snprintf(prefix, sizeof(prefix), "throughput.rates[%s,%u]",
                               access_name(r->access), r->transaction_bytes);
        emit(v, prefix, ".plateau_gbps", r->plateau_gbps.known, r->plateau_gbps.v, NULL);
        for (uint32_t k = 0; k < r->point_count; k++) {
            units_print_bytes(r->points[k].region_bytes, size, sizeof(size));
            (void)snprintf(prefix + n, sizeof(prefix) - (size_t)n, "[%s].", size);
            EMIT(v, prefix, &r->points[k], of_rate);
        }
    }
}

static void emit_contiguity(const struct visit *v, const struct fingerprint_contiguity *c)
{
    static const struct field fields[] = {FIELD(U64, fingerprint_contiguity, frame_bytes),
                                          FIELD(F64, fingerprint_contiguity, contiguous_miss_ns),
                                          FIELD(F64, fingerprint_contiguity, scattered_miss_ns)};

    EMIT(v, "contiguity.", c, fields);
}

static void emit_l2(const struct visit *v, const struct fingerprint_l2 *l2)
{
    static const struct field fields[] = {FIELD(U32, fingerprint_l2, sides),
                                          FIELD(U64, fingerprint_l2, granule_bytes),
                                          FIELD(F64, fingerprint_l2, atomic_near_cycles),
                                          FIELD(F64, fingerprint_l2, atomic_far_cycles)};

    EMIT(v, "l2.", l2, fields);
}

/* A member of an object, if it is a number that may be absent. */
static void emit_number(const struct visit *v, const char *prefix, const struct member *row,
                        const void *base)
{
    const struct field f = {row->name,
                            row->type == MEMBER_U32_MAYBE   ? U32
                            : row->type == MEMBER_U64_MAYBE ? U64
                                                            : F64,
                            0};

    if (row->type >= MEMBER_U32_MAYBE && row->type <= MEMBER_F64_MAYBE)
        emit_field(v, prefix, &f, member_at(row, base));
}

static void emit_numbers(const struct visit *v, const char *prefix, const struct object *o,
                         const void *base)
{
    for (const struct member *row = o->members; row < o->members + o->count; row++)
        emit_number(v, prefix, row, base);
}

static void emit_caches(const struct visit *v, const struct fingerprint *fp)
{
    char prefix[PREFIX_BYTES];

    for (uint32_t i = 0; i < fp->cache_count; i++) {
        (void)snprintf(prefix, sizeof(prefix), "caches[%s].", cache_kind_name(fp->caches[i].kind));
        emit_numbers(v, prefix, &cache_object, &fp->caches[i]);
    }
    emit_numbers(v, "latency.", &latency_object, &fp->latency);
}

static void emit_shared(const struct visit *v, const struct fingerprint_shared *s)
{
    static const struct field fields[] = {FIELD(U32, fingerprint_shared, banks),
                                          FIELD(U32, fingerprint_shared, bank_bytes)};
    static const struct field of_width[] = {
        FIELD(F64, shared_width, latency_cycles), FIELD(F64, shared_width, conflict_cycles),
        FIELD(F64, shared_width, bytes_per_cycle), FIELD(U32, shared_width, loads_enough)};
    char prefix[PREFIX_BYTES];

    EMIT(v, "shared.", s, fields);
    for (uint32_t i = 0; i < s->width_count; i++) {
        (void)snprintf(prefix, sizeof(prefix), "shared.widths[%u].", s->widths[i].width_bytes);
        EMIT(v, prefix, &s->widths[i], of_width);
    }
}

static void emit_clusters(const struct visit *v, const struct fingerprint_clusters *c)
{
    static const struct field fields[] = {FIELD(U32, fingerprint_clusters, largest),
                                          FIELD(F64, fingerprint_clusters, own_cycles),
                                          FIELD(U32, fingerprint_clusters, gpcs)};
    static const struct field of_size[] = {
        FIELD(U32, cluster_size, clusters), FIELD(U32, cluster_size, usable_sms),
        FIELD(F64, cluster_size, latency_cycles), FIELD(F64, cluster_size, bytes_per_cycle)};
    char prefix[PREFIX_BYTES];

    EMIT(v, "clusters.", c, fields);
    for (uint32_t i = 0; i < c->size_count; i++) {
        (void)snprintf(prefix, sizeof(prefix), "clusters.sizes[%u].", c->sizes[i].sms);
        EMIT(v, prefix, &c->sizes[i], of_size);
    }
}

static void emit_parallelism(const struct visit *v, const struct fingerprint_parallelism *p)
{
    static const struct field fields[] = {FIELD(F64, fingerprint_parallelism, plateau_gbps),
                                          FIELD(F64, fingerprint_parallelism, latency_ns),
                                          FIELD(U32, fingerprint_parallelism, loads_enough),
                                          FIELD(U32, fingerprint_parallelism, sms_enough)};

    EMIT(v, "parallelism.", p, fields);
}

/* How fast a kind of memory is beyond its reach depends on how far beyond: depth full reads little
 * more than the reach, depth memory up to 16 GiB of the host's. So the name says how much. */
static void print_memory_prefix(const struct memory_facts *m, const struct member *row, char *out,
                                size_t out_size)
{
    char size[SIZE_BYTES];

    units_print_bytes(m->probed_bytes.v, size, sizeof(size));
    if (row->offset == offsetof(struct memory_facts, beyond_gbps) && IS_KNOWN(m->probed_bytes))
        (void)snprintf(out, out_size, "memory[%s][%s].", memory_kind_name(m->kind), size);
    else
        (void)snprintf(out, out_size, "memory[%s].", memory_kind_name(m->kind));
}

/* Every number of each kind of memory, but for how much of it was probed. Of several peers the
 * first. */
static void emit_memory(const struct visit *v, const struct fingerprint *fp)
{
    char prefix[PREFIX_BYTES];
    unsigned met = 0;

    for (uint32_t i = 0; i < fp->memory_count; i++) {
        const struct memory_facts *const m = &fp->memory[i];
        for (const struct member *row = memory_object.members;
             !(met >> m->kind & 1) && row < memory_object.members + memory_object.count; row++) {
            if (row->offset == offsetof(struct memory_facts, probed_bytes))
                continue;
            print_memory_prefix(m, row, prefix, sizeof(prefix));
            emit_number(v, prefix, row, m);
        }
        met |= 1U << m->kind;
    }
}

void metrics_visit(const struct fingerprint *fp, metric_fn *visit, void *self)
{
    static const struct field fields[] = {FIELD(COUNT, fingerprint, duration_ms),
                                          FIELD(COUNT, fingerprint, probe_ms)};
    const struct visit v = {visit, self, false};

    EMIT(&v, "", fp, fields);
    emit_levels(&v, fp);
    emit_topology(&v, &fp->topology);
    emit_throughput(&v, &fp->throughput);
    emit_contiguity(&v, &fp->contiguity);
    emit_l2(&v, &fp->l2);
    emit_caches(&v, fp);
    emit_shared(&v, &fp->shared);
    emit_clusters(&v, &fp->clusters);
    emit_parallelism(&v, &fp->parallelism);
    emit_memory(&v, fp);
}

bool metrics_is_of_chip(const char *name)
{
    return strcmp(name, "duration_ms") != 0 && strcmp(name, "probe_ms") != 0 &&
           !strstr(name, "confidence");
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* schema/fleet/ingest.sql has the same names, here and below. */
bool metrics_is_tracked(const char *name)
{
    const char *const dot = strrchr(name, '.');

    return metrics_is_of_chip(name) && strcmp(name, "topology.group_count") != 0 &&
           !begins(name, "topology.disabled.") &&
           !(begins(name, "topology.") && strcmp(dot, ".median") == 0);
}

bool metrics_is_judged(const char *name)
{
    const char *const dot = strrchr(name, '.');

    return metrics_is_tracked(name) &&
           !(begins(name, "tlb.levels[") && !begins(name, "tlb.levels[1].") &&
             strcmp(dot, ".miss_penalty_cycles") == 0);
}
