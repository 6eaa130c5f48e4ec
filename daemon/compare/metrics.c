/* metrics.c: splits a fingerprint into named values, by the tables of fingerprint/members.h. A name
 * is a path in the JSON document with the key of an element instead of its index:
 * "tlb.levels[2].entries", "throughput.curve[64G].naive_gbps". */
#include "compare/metrics.h"

#include "base/assert.h"
#include "base/stats.h"
#include "base/units.h"
#include "fingerprint/members.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { SIZE_BYTES = 24 };

/* The receiver of values, and the path of the object that is visited. */
struct visit {
    metric_fn *visit;
    void *self;
    bool design;     /* visit the structure and not the metrics */
    bool unmeasured; /* the object was not measured, so its numbers are unknown */
    char path[METRIC_NAME_BYTES];
};

static void emit(struct visit *v, const char *name, enum known known, double value,
                 const char *text)
{
    const size_t n = strlen(v->path);

    REACH_ASSERT(n + strlen(name) < sizeof(v->path)); /* the tables limit the length of a path */
    strcpy(v->path + n, name);
    v->visit(v->self, v->path, known, known == MAYBE_KNOWN ? value : 0, text);
    v->path[n] = '\0';
}

static void emit_integer(struct visit *v, const char *name, enum known known, uint64_t value)
{
    char text[SIZE_BYTES];

    (void)snprintf(text, sizeof(text), "%" PRIu64, value);
    emit(v, name, known, (double)value, v->design ? text : NULL);
}

/* ---- members ---- */

static void visit_object(struct visit *v, const struct object *o, const void *base);

/* Appends to the path. Returns the previous length, to which the caller truncates the path
 * afterwards. */
__attribute__((format(printf, 2, 3))) static size_t enter(struct visit *v, const char *format, ...)
{
    const size_t n = strlen(v->path);
    va_list args;

    va_start(args, format);
    (void)vsnprintf(v->path + n, sizeof(v->path) - n, format, args);
    va_end(args);
    return n;
}

/* Returns the state of a number. One class means that no second class was certain, so this number
 * does not describe the chip and counts as unknown. */
static enum known known_of(const struct member *m, const void *base)
{
    if (!member_is_maybe(m))
        return MAYBE_KNOWN;
    if (m->class == CLASS_SPLIT && member_state(m, base).known == MAYBE_KNOWN &&
        member_value(m, base) <= 1)
        return MAYBE_UNKNOWN;
    return member_state(m, base).known;
}

static void visit_number(struct visit *v, const struct member *m, const void *base)
{
    const enum known known = v->unmeasured ? MAYBE_UNKNOWN : known_of(m, base);

    if (m->type == MEMBER_NAME)
        emit(v, m->name, *(const unsigned *)member_at(m, base) ? MAYBE_KNOWN : MAYBE_UNKNOWN, 0,
             m->names->name(*(const unsigned *)member_at(m, base)));
    else if (m->type == MEMBER_F64_MAYBE)
        emit(v, m->name, known, member_value(m, base), NULL);
    else
        emit_integer(v, m->name, known, (uint64_t)member_value(m, base));
}

/* Emits the least, the median and the most of a number that each of `count` groups or SMs has. The
 * numbers are `step` bytes apart. */
static void emit_many(struct visit *v, const char *name, const void *first, size_t step,
                      uint32_t count)
{
    const size_t n = enter(v, "%s", name);
    double values[REACH_MAX_SMS];
    uint32_t found = 0;
    enum known known = MAYBE_UNKNOWN;

    for (uint32_t i = 0; i < count; i++) {
        const struct maybe_f64 *const m = (const void *)((const char *)first + i * step);
        if (IS_KNOWN(*m))
            values[found++] = m->v;
        else if (m->known == MAYBE_NOT_OBSERVABLE)
            known = MAYBE_NOT_OBSERVABLE;
    }
    known = found > 0 ? MAYBE_KNOWN : known;
    emit(v, ".least", known, found > 0 ? stats_quantile_f64(values, found, 0) : 0, NULL);
    emit(v, ".median", known, found > 0 ? stats_median_f64(values, found) : 0, NULL);
    emit(v, ".most", known, found > 0 ? stats_quantile_f64(values, found, 1) : 0, NULL);
    v->path[n] = '\0';
}

/* Visits the groups as a whole, because their number and order differ from chip to chip. */
static void visit_groups(struct visit *v, const struct member *list, const void *base)
{
    const uint32_t groups = member_count(list, base);
    size_t n;

    if (v->design)
        return;
    emit(v, "group_count", groups > 0 ? MAYBE_KNOWN : MAYBE_UNKNOWN, groups, NULL);
    n = enter(v, "%s.", list->name);
    for (const struct member *m = list->object->members;
         m < list->object->members + list->object->count; m++)
        if (m->class == CLASS_MEASURED)
            emit_many(v, m->name, (const char *)member_at(list, base) + m->offset,
                      list->object->size, groups);
    v->path[n] = '\0';
}

/* Emits the number of sets with each number of ways as a text: "16x4,8x1". */
static void visit_sets(struct visit *v, const struct member *list, const struct tlb_level *l)
{
    char sets[METRIC_NAME_BYTES] = "";
    size_t n = 0;

    for (uint32_t i = 0; i < l->run_count && n < sizeof(sets); i++)
        n += (size_t)snprintf(sets + n, sizeof(sets) - n, "%s%ux%u", i ? "," : "", l->runs[i].sets,
                              l->runs[i].ways);
    if (v->design)
        emit(v, list->name, l->run_count > 0 ? MAYBE_KNOWN : MAYBE_UNKNOWN, 0, sets);
}

/* Visits a list. If several elements (peers) have the same key, only the first is visited. A list
 * within an element adds its key alone: "throughput.rates[read,32][64G].". */
static void visit_list(struct visit *v, const struct member *list, const void *base)
{
    const size_t length = strlen(v->path);
    const bool is_inner = length > 1 && v->path[length - 2] == ']';
    char key[METRIC_NAME_BYTES / 2] = "", last[METRIC_NAME_BYTES / 2] = "";

    for (uint32_t i = 0; i < member_count(list, base); i++) {
        const char *const element = (const char *)member_at(list, base) + i * list->object->size;

        if (strcmp(object_key(list->object, element, i, key, sizeof(key)), last) == 0)
            continue;
        strcpy(last, key);
        v->path[length - is_inner] = '\0';
        (void)enter(v, "%s[%s].", is_inner ? "" : list->name, key);
        visit_object(v, list->object, element);
    }
    if (is_inner)
        v->path[length - 1] = '.';
    v->path[length] = '\0';
}

/* Visits the speed of a kind of memory beyond its reach. The name contains the size, because the
 * speed depends on the size. Depth full reads little more than the reach, and depth memory reads up
 * to 16 GiB of host memory. */
static void visit_beyond(struct visit *v, const struct member *m, const struct memory_facts *facts)
{
    const size_t length = strlen(v->path);
    char size[SIZE_BYTES];

    if (IS_KNOWN(facts->probed_bytes)) {
        v->path[length - 1] = '\0';
        (void)enter(v, "[%s].", units_print_bytes(facts->probed_bytes.v, size, sizeof(size)));
    }
    visit_number(v, m, facts);
    v->path[length - 1] = '.';
    v->path[length] = '\0';
}

static void visit_member(struct visit *v, const struct member *m, const struct object *o,
                         const void *base)
{
    const bool wanted = m->class != CLASS_NONE && (m->class == CLASS_DESIGN) == v->design;

    if (m->type == MEMBER_OBJECT) {
        const struct member *const measured = object_member(m->object, "measured");
        const size_t n = enter(v, "%s.", m->name);

        v->unmeasured = measured && member_value(measured, member_at(m, base)) <= 0;
        visit_object(v, m->object, member_at(m, base));
        v->unmeasured = false;
        v->path[n] = '\0';
    } else if (m->type == MEMBER_LIST) {
        if (m->class == CLASS_DESIGN)
            visit_sets(v, m, base);
        else if (m->object->members[0].type == MEMBER_INDEX)
            visit_groups(v, m, base);
        else
            visit_list(v, m, base);
    } else if (wanted && m->type == MEMBER_SM_PENALTIES) {
        emit_many(v, "sm_miss_penalty_cycles", member_at(m, base), sizeof(struct maybe_f64),
                  REACH_MAX_SMS);
    } else if (wanted && o == &memory_object &&
               m->offset == offsetof(struct memory_facts, beyond_gbps)) {
        visit_beyond(v, m, base);
    } else if (wanted) {
        visit_number(v, m, base);
    }
}

static void visit_object(struct visit *v, const struct object *o, const void *base)
{
    for (const struct member *m = o->members; m < o->members + o->count; m++)
        visit_member(v, m, o, base);
}

/* ---- the two kinds ---- */

static void emit_bytes(struct visit *v, const char *name, uint64_t bytes)
{
    emit_integer(v, name, bytes ? MAYBE_KNOWN : MAYBE_UNKNOWN, bytes);
}

void structure_visit(const struct fingerprint *fp, metric_fn *visit, void *self)
{
    struct visit v = {.visit = visit, .self = self, .design = true};
    char capability[SIZE_BYTES];

    (void)snprintf(capability, sizeof(capability), "%u.%u", fp->gpu.compute_major,
                   fp->gpu.compute_minor);
    emit(&v, "gpu.compute_capability", MAYBE_KNOWN, 0, capability);
    emit_integer(&v, "gpu.sm_count", MAYBE_KNOWN, fp->gpu.sm_count);
    emit_bytes(&v, "gpu.memory_bytes", fp->gpu.memory_bytes);
    emit_bytes(&v, "gpu.l2_cache_bytes", fp->gpu.l2_cache_bytes);
    emit(&v, "gpu.mig", MAYBE_KNOWN, 0, fp->gpu.mig ? "on" : "off");
    emit_integer(&v, "tlb.level_count", MAYBE_KNOWN, fp->level_count);
    visit_object(&v, &fingerprint_object, fp);
}

void metrics_visit(const struct fingerprint *fp, metric_fn *visit, void *self)
{
    struct visit v = {.visit = visit, .self = self};

    visit_object(&v, &fingerprint_object, fp);
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

/* schema/fleet/ingest.sql excludes the same names as this function and the next one. */
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
