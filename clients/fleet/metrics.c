/* metrics.c: takes a fingerprint apart into named values. The names are the paths of its JSON:
 * "tlb.levels[2].entries" (the level's number), "throughput.curve[64G].naive_gbps" (the region's
 * size). */
#include "clients/fleet/metrics.h"

#include "base/stats.h"
#include "base/units.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- the structure ---- */

struct lines {
    structure_fn *fn;
    void *self;
};

static void emit_line(const struct lines *to, const char *where, const char *name, enum known known,
                      const char *format, ...) __attribute__((format(printf, 5, 6)));

static void emit_line(const struct lines *to, const char *where, const char *name, enum known known,
                      const char *format, ...)
{
    char whole[METRIC_NAME_BYTES];
    char value[METRIC_NAME_BYTES];
    va_list args;

    (void)snprintf(whole, sizeof(whole), "%s%s", where, name);
    va_start(args, format);
    (void)vsnprintf(value, sizeof(value), format, args);
    va_end(args);
    to->fn(to->self, whole, known, value);
}

static void line_u32(const struct lines *to, const char *where, const char *name,
                     struct maybe_u32 m)
{
    emit_line(to, where, name, m.known, "%" PRIu32, m.v);
}

static void line_u64(const struct lines *to, const char *where, const char *name,
                     struct maybe_u64 m)
{
    emit_line(to, where, name, m.known, "%" PRIu64, m.v);
}

/* Enums have a value for what is not known. */
static void line_word(const struct lines *to, const char *where, const char *name, bool known,
                      const char *word)
{
    emit_line(to, where, name, known ? MAYBE_KNOWN : MAYBE_UNKNOWN, "%s", word);
}

/* "16x4,8x1": sets by their ways. */
static void line_sets(const struct lines *to, const char *where, const struct tlb_level *l)
{
    char text[METRIC_NAME_BYTES] = "";
    size_t n = 0;

    for (uint32_t i = 0; i < l->run_count && n < sizeof(text); i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%ux%u", i ? "," : "", l->runs[i].sets,
                              l->runs[i].ways);
    line_word(to, where, "set_sizes", l->run_count > 0, text);
}

static void level_lines(const struct lines *to, const struct tlb_level *l)
{
    char where[32];

    (void)snprintf(where, sizeof(where), "tlb.levels[%u].", l->level);
    line_u32(to, where, "entries", l->entries);
    line_u64(to, where, "entry_bytes", l->entry_bytes);
    line_u64(to, where, "page_bytes", l->page_bytes);
    line_u64(to, where, "reach_bytes", l->reach_bytes);
    line_u32(to, where, "sets", l->sets);
    line_u32(to, where, "ways", l->ways);
    line_sets(to, where, l);
    line_u32(to, where, "victim_entries", l->victim_entries);
    line_u32(to, where, "entry_pages", l->entry_pages);
    line_u64(to, where, "tag_bytes", l->tag_bytes);
    line_word(to, where, "replacement", l->replacement != REPLACEMENT_UNKNOWN,
              replacement_name(l->replacement));
    line_word(to, where, "fill", l->fill != FILL_UNKNOWN, fill_name(l->fill));
    line_word(to, where, "shared_by", l->shared_by != SHARED_UNKNOWN, shared_by_name(l->shared_by));
}

void structure_visit(const struct fingerprint *fp, structure_fn *visit, void *self)
{
    const struct lines lines = {.fn = visit, .self = self};
    const struct lines *const to = &lines;

    emit_line(to, "gpu.", "compute_capability", MAYBE_KNOWN, "%u.%u", fp->gpu.compute_major,
              fp->gpu.compute_minor);
    emit_line(to, "gpu.", "sm_count", MAYBE_KNOWN, "%u", fp->gpu.sm_count);
    emit_line(to, "gpu.", "memory_bytes", MAYBE_KNOWN, "%" PRIu64, fp->gpu.memory_bytes);
    emit_line(to, "gpu.", "l2_cache_bytes", fp->gpu.l2_cache_bytes ? MAYBE_KNOWN : MAYBE_UNKNOWN,
              "%" PRIu64, fp->gpu.l2_cache_bytes);
    line_word(to, "gpu.", "mig", true, fp->gpu.mig ? "on" : "off");
    emit_line(to, "tlb.", "level_count", MAYBE_KNOWN, "%u", fp->level_count);
    for (uint32_t i = 0; i < fp->level_count; i++)
        level_lines(to, &fp->levels[i]);
    line_u64(to, "tlb.", "beyond.reach_bytes", fp->beyond.reach_bytes);
    for (uint32_t a = 0; a < ALLOCATION_COUNT; a++)
        line_u64(to, "tlb.page_bytes.", allocation_name((enum allocation)a), fp->page_bytes[a]);
    line_u32(to, "topology.", "level", fp->topology.level);
    line_u32(to, "topology.", "nominal_group_sms", fp->topology.nominal_group_sms);
    line_u32(to, "topology.", "full_sm_count", fp->topology.full_sm_count);
    line_u32(to, "topology.", "disabled.unit_sms", fp->topology.disabled.unit_sms);
    line_u64(to, "windows.", "reach_bytes", fp->windows.reach_bytes);
    line_u64(to, "windows.", "entry_bytes", fp->windows.entry_bytes);
    line_u64(to, "windows.", "recommended_bytes", fp->windows.recommended_bytes);
}

/* ---- measured metrics ---- */

struct visit {
    metric_fn *fn;
    void *self;
};

static void emit(const struct visit *v, enum known known, double value, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void emit(const struct visit *v, enum known known, double value, const char *format, ...)
{
    char name[METRIC_NAME_BYTES];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(name, sizeof(name), format, args);
    va_end(args);
    v->fn(v->self, name, known, known == MAYBE_KNOWN ? value : 0);
}

static void emit_levels(const struct visit *v, const struct fingerprint *fp)
{
    for (uint32_t i = 0; i < fp->level_count; i++) {
        const struct tlb_level *const l = &fp->levels[i];
        const unsigned k = l->level;
        emit(v, l->onset_bytes.known, (double)l->onset_bytes.v, "tlb.levels[%u].onset_bytes", k);
        emit(v, l->saturation_bytes.known, (double)l->saturation_bytes.v,
             "tlb.levels[%u].saturation_bytes", k);
        emit(v, l->miss_penalty_cycles.known, l->miss_penalty_cycles.v,
             "tlb.levels[%u].miss_penalty_cycles", k);
        emit(v, l->confidence.known, l->confidence.v, "tlb.levels[%u].confidence", k);
    }
    emit(v, fp->beyond.walk_cycles.known, fp->beyond.walk_cycles.v, "tlb.beyond.walk_cycles");
}

/* Metrics of which there is one per group or SM. */
struct many {
    double v[REACH_MAX_SMS];
    uint32_t count;        /* of those that are known */
    uint32_t unobservable; /* the reason if none is known */
};

static void many_add(struct many *m, struct maybe_f64 one)
{
    if (IS_KNOWN(one))
        m->v[m->count++] = one.v;
    else if (one.known == MAYBE_NOT_OBSERVABLE)
        m->unobservable++;
}

static void emit_many(const struct visit *v, struct many *m, const char *name)
{
    const enum known known = m->count          ? MAYBE_KNOWN
                             : m->unobservable ? MAYBE_NOT_OBSERVABLE
                                               : MAYBE_UNKNOWN;
    const bool any = m->count > 0;

    emit(v, known, any ? stats_quantile_f64(m->v, m->count, 0) : 0, "%s.least", name);
    emit(v, known, any ? stats_median_f64(m->v, m->count) : 0, "%s.median", name);
    emit(v, known, any ? stats_quantile_f64(m->v, m->count, 1) : 0, "%s.most", name);
}

static void emit_groups(const struct visit *v, const struct topology *t)
{
    struct many penalty = {.count = 0};
    struct many together = {.count = 0};
    struct many alone = {.count = 0};
    struct many beyond = {.count = 0};
    struct many sms = {.count = 0};

    for (uint32_t g = 0; g < t->partition.group_count; g++) {
        many_add(&penalty, t->groups[g].miss_penalty_cycles);
        many_add(&together, t->groups[g].random_read_gbps);
        many_add(&alone, t->groups[g].alone_gbps);
        many_add(&beyond, t->groups[g].beyond_gbps);
    }
    for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++)
        many_add(&sms, t->sm_miss_penalty_cycles[sm]);
    emit_many(v, &penalty, "topology.groups.miss_penalty_cycles");
    emit_many(v, &together, "topology.groups.random_read_gbps");
    emit_many(v, &alone, "topology.groups.alone_gbps");
    emit_many(v, &beyond, "topology.groups.beyond_gbps");
    emit_many(v, &sms, "topology.sm_miss_penalty_cycles");
}

static void emit_topology(const struct visit *v, const struct topology *t)
{
    const enum known pairs = t->pairs.measured > 0 ? MAYBE_KNOWN : MAYBE_UNKNOWN;

    emit(v, t->partition.group_count > 0 ? MAYBE_KNOWN : MAYBE_UNKNOWN, t->partition.group_count,
         "topology.group_count");
    emit(v, t->disabled.sm_count.known, t->disabled.sm_count.v, "topology.disabled.sm_count");
    emit(v, t->disabled.lost_groups.known, t->disabled.lost_groups.v,
         "topology.disabled.lost_groups");
    emit(v, t->disabled.candidate_count.known, t->disabled.candidate_count.v,
         "topology.disabled.candidate_count");
    emit(v, t->confidence.known, t->confidence.v, "topology.confidence");
    emit(v, t->penalty_classes.known, t->penalty_classes.v, "topology.penalty_classes");
    emit(v, t->speed_classes.known, t->speed_classes.v, "topology.speed_classes");
    emit(v, pairs == MAYBE_KNOWN ? t->pairs.worst_ratio.known : pairs, t->pairs.worst_ratio.v,
         "topology.pairs.worst_ratio");
    emit(v, pairs, t->pairs.slow_count, "topology.pairs.slow_count");
    emit_groups(v, t);
}

static void emit_rates(const struct visit *v, const struct throughput *t)
{
    char size[24];

    for (uint32_t i = 0; i < t->rate_count; i++) {
        const struct access_rate *const r = &t->rates[i];
        const char *const access = access_name(r->access);
        const unsigned bytes = r->transaction_bytes;
        emit(v, r->plateau_gbps.known, r->plateau_gbps.v, "throughput.rates[%s,%u].plateau_gbps",
             access, bytes);
        for (uint32_t k = 0; k < r->point_count; k++) {
            const struct rate_point *const p = &r->points[k];
            units_print_bytes(p->region_bytes, size, sizeof(size));
            emit(v, p->naive_gbps.known, p->naive_gbps.v, "throughput.rates[%s,%u][%s].naive_gbps",
                 access, bytes, size);
            emit(v, p->by_group_gbps.known, p->by_group_gbps.v,
                 "throughput.rates[%s,%u][%s].by_group_gbps", access, bytes, size);
        }
    }
}

static void emit_throughput(const struct visit *v, const struct throughput *t)
{
    char size[24];

    emit(v, t->plateau_gbps.known, t->plateau_gbps.v, "throughput.plateau_gbps");
    emit(v, t->whole_memory_gbps.known, t->whole_memory_gbps.v, "throughput.whole_memory_gbps");
    for (uint32_t i = 0; i < t->curve_count; i++) {
        const struct curve_point *const p = &t->curve[i];
        units_print_bytes(p->region_bytes, size, sizeof(size));
        emit(v, p->naive_gbps.known, p->naive_gbps.v, "throughput.curve[%s].naive_gbps", size);
        emit(v, p->by_group_gbps.known, p->by_group_gbps.v, "throughput.curve[%s].by_group_gbps",
             size);
        emit(v, p->by_sm_gbps.known, p->by_sm_gbps.v, "throughput.curve[%s].by_sm_gbps", size);
    }
    emit_rates(v, t);
}

void metrics_visit(const struct fingerprint *fp, metric_fn *visit, void *self)
{
    const struct visit v = {.fn = visit, .self = self};

    emit(&v, MAYBE_KNOWN, fp->duration_ms, "duration_ms");
    emit(&v, MAYBE_KNOWN, fp->probe_ms, "probe_ms");
    emit_levels(&v, fp);
    emit_topology(&v, &fp->topology);
    emit_throughput(&v, &fp->throughput);
}
