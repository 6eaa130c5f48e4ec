/* diff.c: see diff.h. */
#include "fingerprint/diff.h"

#include "types/name_of.h"
#include "base/units.h"
#include "fingerprint/members.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Noise: the larger of the two. */
#define PENALTY_CYCLES   5.0
#define PENALTY_SHARE    0.1
#define THROUGHPUT_SHARE 0.05

NAME_FUNCTION(fingerprint_class_name, enum fingerprint_class, [FINGERPRINT_SAME] = "same",
              [FINGERPRINT_CHANGED] = "changed", [FINGERPRINT_OTHER_HARDWARE] = "other-hardware")

static void differ(struct fingerprint_diff *out, enum fingerprint_class c, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void differ(struct fingerprint_diff *out, enum fingerprint_class c, const char *format, ...)
{
    va_list args;
    if (c > out->result)
        out->result = c;
    if (out->count == FINGERPRINT_MAX_DIFFERENCES)
        return;
    va_start(args, format);
    vsnprintf(out->sentences[out->count++], FINGERPRINT_DIFFERENCE_BYTES, format, args);
    va_end(args);
}

/* A text that one side may not have. */
static void compare_text(struct fingerprint_diff *out, enum fingerprint_class c, const char *what,
                         const char *a, const char *b)
{
    if (a[0] && b[0] && strcmp(a, b) != 0)
        differ(out, c, "%s: %.60s and %.60s", what, a, b);
}

static void compare_count(struct fingerprint_diff *out, enum fingerprint_class c, const char *what,
                          uint64_t a, uint64_t b)
{
    if (a != b)
        differ(out, c, "%s: %llu and %llu", what, (unsigned long long)a, (unsigned long long)b);
}

static void compare_identity(const struct gpu_identity *a, const struct gpu_identity *b,
                             struct fingerprint_diff *out)
{
    const enum fingerprint_class other = FINGERPRINT_OTHER_HARDWARE;
    compare_text(out, other, "UUID", a->uuid, b->uuid);
    compare_text(out, other, "serial number", a->serial, b->serial);
    compare_text(out, other, "origin", origin_name(a->origin), origin_name(b->origin));
    compare_count(out, other, "compute capability",
                  (uint64_t)a->compute_major * 10 + a->compute_minor,
                  (uint64_t)b->compute_major * 10 + b->compute_minor);
    /* MIG leaves a part of the SMs and of the memory, and ECC uses some memory. */
    compare_count(out, a->mig == b->mig ? other : FINGERPRINT_CHANGED, "SMs", a->sm_count,
                  b->sm_count);
    compare_text(out, FINGERPRINT_CHANGED, "MIG", a->mig ? "on" : "off", b->mig ? "on" : "off");
    compare_count(out, FINGERPRINT_CHANGED, "memory in bytes", a->memory_bytes, b->memory_bytes);
    if (a->l2_cache_bytes && b->l2_cache_bytes)
        compare_count(out, FINGERPRINT_CHANGED, "L2 cache in bytes", a->l2_cache_bytes,
                      b->l2_cache_bytes);
    compare_text(out, FINGERPRINT_CHANGED, "name", a->name, b->name);
    compare_text(out, FINGERPRINT_CHANGED, "slot", a->pci_bus_id, b->pci_bus_id);
    compare_text(out, FINGERPRINT_CHANGED, "driver", a->driver_version, b->driver_version);
    compare_text(out, FINGERPRINT_CHANGED, "CUDA", a->cuda_version, b->cuda_version);
}

bool sm_partitions_agree(const struct sm_partition *a, const struct sm_partition *b,
                         uint32_t *first, uint32_t *second)
{
    if (a->group_count == 0 || b->group_count == 0)
        return true;
    for (uint32_t i = 0; i < REACH_MAX_SMS; i++) {
        if (a->group_of_sm[i] == FINGERPRINT_NO_GROUP || b->group_of_sm[i] == FINGERPRINT_NO_GROUP)
            continue;
        for (uint32_t k = 0; k < i; k++) {
            if (a->group_of_sm[k] == FINGERPRINT_NO_GROUP ||
                b->group_of_sm[k] == FINGERPRINT_NO_GROUP)
                continue;
            if ((a->group_of_sm[i] == a->group_of_sm[k]) !=
                (b->group_of_sm[i] == b->group_of_sm[k])) {
                *first = k;
                *second = i;
                return false;
            }
        }
    }
    return true;
}

static void compare_partition(const struct sm_partition *a, const struct sm_partition *b,
                              const char *where, const char *label, struct fingerprint_diff *out)
{
    uint32_t first = 0;
    uint32_t second = 0;
    if (!sm_partitions_agree(a, b, &first, &second))
        differ(out, FINGERPRINT_OTHER_HARDWARE,
               "%s%s: SMs %u and %u are together in one and not in the other", where, label, first,
               second);
}

static void compare_bytes(const char *where, const char *what, uint64_t a, uint64_t b,
                          struct fingerprint_diff *out)
{
    char text_a[24];
    char text_b[24];
    if (a != b)
        differ(out, FINGERPRINT_CHANGED, "%s%s: %s and %s", where, what,
               units_format_bytes(a, text_a, sizeof text_a),
               units_format_bytes(b, text_b, sizeof text_b));
}

static void compare_real(const char *where, const struct member *m, double a, double b,
                         struct fingerprint_diff *out)
{
    const bool cycles = strstr(m->name, "_cycles") != NULL;
    const double least = cycles ? PENALTY_CYCLES : 0;
    if (fabs(a - b) > fmax(least, (cycles ? PENALTY_SHARE : THROUGHPUT_SHARE) * fmax(a, b)))
        differ(out, FINGERPRINT_CHANGED,
               fmax(a, b) < 10 ? "%s%s: %.3f and %.3f" : "%s%s: %.1f and %.1f", where, m->label, a,
               b);
}

static void compare_name(const char *where, const struct member *m, unsigned a, unsigned b,
                         struct fingerprint_diff *out)
{
    if (a != 0 && b != 0 && a != b) /* 0: unknown */
        differ(out, FINGERPRINT_CHANGED, "%s%s: %s and %s", where, m->label, m->names->name(a),
               m->names->name(b));
}

/* A number that both know. */
static void compare_known(const char *where, const struct member *m, const void *a, const void *b,
                          struct fingerprint_diff *out)
{
    if (m->type == MEMBER_U64_MAYBE)
        compare_bytes(where, m->label, ((const struct maybe_u64 *)a)->v,
                      ((const struct maybe_u64 *)b)->v, out);
    else if (m->type == MEMBER_F64_MAYBE)
        compare_real(where, m, ((const struct maybe_f64 *)a)->v, ((const struct maybe_f64 *)b)->v,
                     out);
    else if (((const struct maybe_u32 *)a)->v != ((const struct maybe_u32 *)b)->v)
        differ(out, FINGERPRINT_CHANGED, "%s%s: %u and %u", where, m->label,
               ((const struct maybe_u32 *)a)->v, ((const struct maybe_u32 *)b)->v);
}

/* The members of two structs that have a label, but for those of lists. */
static void compare_members(const char *where, const struct object *o, const void *base_a,
                            const void *base_b, struct fingerprint_diff *out)
{
    for (const struct member *m = o->members; m < o->members + o->count; m++) {
        const void *const a = member_at(m, base_a);
        const void *const b = member_at(m, base_b);
        if (m->type == MEMBER_OBJECT)
            compare_members(where, m->object, a, b, out);
        else if (!m->label)
            continue;
        else if (m->type == MEMBER_NAME)
            compare_name(where, m, *(const unsigned *)a, *(const unsigned *)b, out);
        else if (m->type == MEMBER_TEXT)
            compare_text(out, FINGERPRINT_CHANGED, m->label, a, b);
        else if (m->type == MEMBER_PARTITION)
            compare_partition(a, b, where, m->label, out);
        else if (member_state(m, base_a).known == MAYBE_KNOWN &&
                 member_state(m, base_b).known == MAYBE_KNOWN)
            compare_known(where, m, a, b, out);
    }
}

/* The points of two lists over the same region, of which both structs begin with the size. `kind`:
 * what was measured, for the sentences; "" or with a comma behind it. */
static void compare_points(const char *kind, const struct object *o, const void *a,
                           uint32_t a_count, const void *b, uint32_t b_count,
                           struct fingerprint_diff *out)
{
    for (uint32_t i = 0; i < a_count; i++) {
        const uint64_t *const p = (const void *)((const char *)a + i * o->size);
        char size[24];
        char where[80];
        snprintf(where, sizeof where, "%sregion of %s ", kind,
                 units_format_bytes(*p, size, sizeof size));
        for (uint32_t k = 0; k < b_count; k++) {
            const uint64_t *const q = (const void *)((const char *)b + k * o->size);
            if (*p == *q)
                compare_members(where, o, p, q, out);
        }
    }
}

static const struct access_rate *find_rate(const struct throughput *t, const struct access_rate *as)
{
    for (uint32_t i = 0; i < t->rate_count; i++)
        if (t->rates[i].access == as->access &&
            t->rates[i].transaction_bytes == as->transaction_bytes)
            return &t->rates[i];
    return NULL;
}

static void compare_rate(const struct access_rate *a, const struct access_rate *b,
                         struct fingerprint_diff *out)
{
    char where[48];

    snprintf(where, sizeof where, "%s of %u bytes ", access_name(a->access), a->transaction_bytes);
    compare_members(where, &rate_object, a, b, out);
    snprintf(where, sizeof where, "%s of %u bytes, ", access_name(a->access), a->transaction_bytes);
    compare_points(where, &rate_point_object, a->points, a->point_count, b->points, b->point_count,
                   out);
}

static void compare_throughput(const struct throughput *a, const struct throughput *b,
                               struct fingerprint_diff *out)
{
    compare_members("", &throughput_object, a, b, out);
    compare_points("", &curve_point_object, a->curve, a->curve_count, b->curve, b->curve_count,
                   out);
    for (uint32_t i = 0; i < a->rate_count; i++) {
        const struct access_rate *r = find_rate(b, &a->rates[i]);
        if (r)
            compare_rate(&a->rates[i], r, out);
    }
}

static void compare_memory(const struct memory_facts *a, const struct memory_facts *b,
                           struct fingerprint_diff *out)
{
    char where[64];

    if (a->kind != b->kind || strcmp(a->peer_uuid, b->peer_uuid) != 0)
        return;
    snprintf(where, sizeof where, "%s memory, ", memory_kind_name(a->kind));
    compare_members(where, &memory_object, a, b, out);
    compare_points(where, &memory_point_object, a->curve, a->curve_count, b->curve, b->curve_count,
                   out);
}

static void compare_working_sets(const struct fingerprint *a, const struct fingerprint *b,
                                 struct fingerprint_diff *out)
{
    for (uint32_t i = 0; i < a->working_set_count; i++) {
        const struct working_set *const w = &a->working_sets[i];
        char size[24];
        char where[80];
        snprintf(where, sizeof where, "reads of %u bytes of %s, ", w->transaction_bytes,
                 units_format_bytes(w->set_bytes, size, sizeof size));
        for (uint32_t k = 0; k < b->working_set_count; k++)
            if (b->working_sets[k].set_bytes == w->set_bytes &&
                b->working_sets[k].transaction_bytes == w->transaction_bytes)
                compare_members(where, &working_set_object, w, &b->working_sets[k], out);
    }
}

void fingerprint_compare(const struct fingerprint *a, const struct fingerprint *b,
                         struct fingerprint_diff *out)
{
    memset(out, 0, sizeof *out);
    compare_identity(&a->gpu, &b->gpu, out);
    compare_count(out, FINGERPRINT_CHANGED, "TLB levels", a->level_count, b->level_count);
    for (uint32_t k = 0; a->level_count == b->level_count && k < a->level_count; k++) {
        char where[24];
        snprintf(where, sizeof where, "level %u ", a->levels[k].level);
        compare_members(where, &level_object, &a->levels[k], &b->levels[k], out);
    }
    compare_members("", &topology_object, &a->topology, &b->topology, out);
    compare_members("", &windows_object, &a->windows, &b->windows, out);
    compare_throughput(&a->throughput, &b->throughput, out);
    compare_members("", &contiguity_object, &a->contiguity, &b->contiguity, out);
    compare_members("", &l2_object, &a->l2, &b->l2, out);
    compare_working_sets(a, b, out);
    for (uint32_t i = 0; i < a->cache_count && i < b->cache_count; i++) {
        char where[32];
        snprintf(where, sizeof where, "%s cache, ", cache_kind_name(a->caches[i].kind));
        compare_members(where, &cache_object, &a->caches[i], &b->caches[i], out);
    }
    compare_members("", &latency_object, &a->latency, &b->latency, out);
    compare_members("", &shared_object, &a->shared, &b->shared, out);
    compare_members("", &clusters_object, &a->clusters, &b->clusters, out);
    compare_members("", &parallelism_object, &a->parallelism, &b->parallelism, out);
    for (uint32_t i = 0; i < a->memory_count && i < b->memory_count; i++)
        compare_memory(&a->memory[i], &b->memory[i], out);
}
