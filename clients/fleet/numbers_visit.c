/* numbers_visit.c: takes a fingerprint apart into numbers with names. The names are the paths of
 * its JSON: "tlb.levels[2].entries" (the level's number), "throughput.curve[64G].naive_gbps" (the
 * region's size). */
#include "clients/fleet/keep_numbers.h"

#include "base/stats.h"
#include "base/units.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- the structure, as text ---- */

static void line_state(FILE *to, const char *where, const char *name, enum known known, uint64_t v)
{
    if (known == MAYBE_KNOWN)
        fprintf(to, "%s%s=%" PRIu64 "\n", where, name, v);
    else
        fprintf(to, "%s%s=%c\n", where, name, known == MAYBE_NOT_OBSERVABLE ? '!' : '?');
}

static void line_u32(FILE *to, const char *where, const char *name, struct maybe_u32 m)
{
    line_state(to, where, name, m.known, m.v);
}

static void line_u64(FILE *to, const char *where, const char *name, struct maybe_u64 m)
{
    line_state(to, where, name, m.known, m.v);
}

/* Enums have a value for what is not known. */
static void line_word(FILE *to, const char *where, const char *name, bool known, const char *word)
{
    fprintf(to, "%s%s=%s\n", where, name, known ? word : "?");
}

/* "16x4,8x1": sets by their ways. */
static void line_sets(FILE *to, const char *where, const struct tlb_level *l)
{
    fprintf(to, "%sset_sizes=%s", where, l->run_count == 0 ? "?" : "");
    for (uint32_t i = 0; i < l->run_count; i++)
        fprintf(to, "%s%ux%u", i ? "," : "", l->runs[i].sets, l->runs[i].ways);
    fputc('\n', to);
}

static void level_lines(FILE *to, const struct tlb_level *l)
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

static void all_lines(FILE *to, const struct fingerprint *fp)
{
    fprintf(to, "gpu.compute_capability=%u.%u\n", fp->gpu.compute_major, fp->gpu.compute_minor);
    fprintf(to, "gpu.sm_count=%u\n", fp->gpu.sm_count);
    fprintf(to, "gpu.memory_bytes=%" PRIu64 "\n", fp->gpu.memory_bytes);
    line_state(to, "gpu.", "l2_cache_bytes", fp->gpu.l2_cache_bytes ? MAYBE_KNOWN : MAYBE_UNKNOWN,
               fp->gpu.l2_cache_bytes);
    fprintf(to, "gpu.mig=%s\n", fp->gpu.mig ? "on" : "off");
    fprintf(to, "tlb.level_count=%u\n", fp->level_count);
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

char *numbers_structure(const struct fingerprint *fp)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *const to = open_memstream(&text, &bytes);

    if (!to)
        return NULL;
    all_lines(to, fp);
    if (fclose(to) == 0)
        return text;
    free(text);
    return NULL;
}

/* ---- measured numbers ---- */

struct visit {
    number_fn *fn;
    void *self;
};

static void give(const struct visit *v, enum known known, double number, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void give(const struct visit *v, enum known known, double number, const char *format, ...)
{
    char name[NUMBER_NAME_BYTES];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(name, sizeof(name), format, args);
    va_end(args);
    v->fn(v->self, name, known, known == MAYBE_KNOWN ? number : 0);
}

static void give_levels(const struct visit *v, const struct fingerprint *fp)
{
    for (uint32_t i = 0; i < fp->level_count; i++) {
        const struct tlb_level *const l = &fp->levels[i];
        const unsigned k = l->level;
        give(v, l->onset_bytes.known, (double)l->onset_bytes.v, "tlb.levels[%u].onset_bytes", k);
        give(v, l->saturation_bytes.known, (double)l->saturation_bytes.v,
             "tlb.levels[%u].saturation_bytes", k);
        give(v, l->miss_penalty_cycles.known, l->miss_penalty_cycles.v,
             "tlb.levels[%u].miss_penalty_cycles", k);
        give(v, l->confidence.known, l->confidence.v, "tlb.levels[%u].confidence", k);
    }
    give(v, fp->beyond.walk_cycles.known, fp->beyond.walk_cycles.v, "tlb.beyond.walk_cycles");
}

/* Numbers of which there is one a group or an SM. */
struct many {
    double v[REACH_MAX_SMS];
    uint32_t count;        /* of those that are known */
    uint32_t unobservable; /* if none is known, that is why */
};

static void many_add(struct many *m, struct maybe_f64 one)
{
    if (IS_KNOWN(one))
        m->v[m->count++] = one.v;
    else if (one.known == MAYBE_NOT_OBSERVABLE)
        m->unobservable++;
}

static void give_many(const struct visit *v, struct many *m, const char *name)
{
    const enum known known = m->count          ? MAYBE_KNOWN
                             : m->unobservable ? MAYBE_NOT_OBSERVABLE
                                               : MAYBE_UNKNOWN;
    const bool any = m->count > 0;

    give(v, known, any ? stats_quantile_f64(m->v, m->count, 0) : 0, "%s.least", name);
    give(v, known, any ? stats_median_f64(m->v, m->count) : 0, "%s.median", name);
    give(v, known, any ? stats_quantile_f64(m->v, m->count, 1) : 0, "%s.most", name);
}

static void give_groups(const struct visit *v, const struct topology *t)
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
    give_many(v, &penalty, "topology.groups.miss_penalty_cycles");
    give_many(v, &together, "topology.groups.random_read_gbps");
    give_many(v, &alone, "topology.groups.alone_gbps");
    give_many(v, &beyond, "topology.groups.beyond_gbps");
    give_many(v, &sms, "topology.sm_miss_penalty_cycles");
}

static void give_topology(const struct visit *v, const struct topology *t)
{
    const enum known pairs = t->pairs.measured > 0 ? MAYBE_KNOWN : MAYBE_UNKNOWN;

    give(v, t->partition.group_count > 0 ? MAYBE_KNOWN : MAYBE_UNKNOWN, t->partition.group_count,
         "topology.group_count");
    give(v, t->disabled.sm_count.known, t->disabled.sm_count.v, "topology.disabled.sm_count");
    give(v, t->disabled.lost_groups.known, t->disabled.lost_groups.v,
         "topology.disabled.lost_groups");
    give(v, t->disabled.candidate_count.known, t->disabled.candidate_count.v,
         "topology.disabled.candidate_count");
    give(v, t->confidence.known, t->confidence.v, "topology.confidence");
    give(v, t->penalty_classes.known, t->penalty_classes.v, "topology.penalty_classes");
    give(v, t->speed_classes.known, t->speed_classes.v, "topology.speed_classes");
    give(v, pairs == MAYBE_KNOWN ? t->pairs.worst_ratio.known : pairs, t->pairs.worst_ratio.v,
         "topology.pairs.worst_ratio");
    give(v, pairs, t->pairs.slow_count, "topology.pairs.slow_count");
    give_groups(v, t);
}

static void give_rates(const struct visit *v, const struct throughput *t)
{
    char size[24];

    for (uint32_t i = 0; i < t->rate_count; i++) {
        const struct access_rate *const r = &t->rates[i];
        const char *const access = access_name(r->access);
        const unsigned bytes = r->transaction_bytes;
        give(v, r->plateau_gbps.known, r->plateau_gbps.v, "throughput.rates[%s,%u].plateau_gbps",
             access, bytes);
        for (uint32_t k = 0; k < r->point_count; k++) {
            const struct rate_point *const p = &r->points[k];
            units_print_bytes(p->region_bytes, size, sizeof(size));
            give(v, p->naive_gbps.known, p->naive_gbps.v, "throughput.rates[%s,%u][%s].naive_gbps",
                 access, bytes, size);
            give(v, p->by_group_gbps.known, p->by_group_gbps.v,
                 "throughput.rates[%s,%u][%s].by_group_gbps", access, bytes, size);
        }
    }
}

static void give_throughput(const struct visit *v, const struct throughput *t)
{
    char size[24];

    give(v, t->plateau_gbps.known, t->plateau_gbps.v, "throughput.plateau_gbps");
    give(v, t->whole_memory_gbps.known, t->whole_memory_gbps.v, "throughput.whole_memory_gbps");
    for (uint32_t i = 0; i < t->curve_count; i++) {
        const struct curve_point *const p = &t->curve[i];
        units_print_bytes(p->region_bytes, size, sizeof(size));
        give(v, p->naive_gbps.known, p->naive_gbps.v, "throughput.curve[%s].naive_gbps", size);
        give(v, p->by_group_gbps.known, p->by_group_gbps.v, "throughput.curve[%s].by_group_gbps",
             size);
        give(v, p->by_sm_gbps.known, p->by_sm_gbps.v, "throughput.curve[%s].by_sm_gbps", size);
    }
    give_rates(v, t);
}

void numbers_visit(const struct fingerprint *fp, number_fn *visit, void *self)
{
    const struct visit v = {.fn = visit, .self = self};

    give(&v, MAYBE_KNOWN, fp->duration_ms, "duration_ms");
    give(&v, MAYBE_KNOWN, fp->probe_ms, "probe_ms");
    give_levels(&v, fp);
    give_topology(&v, &fp->topology);
    give_throughput(&v, &fp->throughput);
}
