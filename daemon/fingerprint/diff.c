/* diff.c: see diff.h. */
#include "fingerprint/diff.h"

#include "base/units.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Noise: the larger of the two. */
#define PENALTY_CYCLES   5.0
#define PENALTY_SHARE    0.1
#define THROUGHPUT_SHARE 0.05

const char *fingerprint_class_name(enum fingerprint_class c)
{
    static const char *const names[] = {[FINGERPRINT_SAME] = "same",
                                        [FINGERPRINT_CHANGED] = "changed",
                                        [FINGERPRINT_OTHER_HARDWARE] = "other-hardware"};
    return (unsigned)c < sizeof names / sizeof names[0] ? names[c] : "unknown";
}

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

/* A text that one side may not tell. */
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
    /* MIG leaves a part of the SMs and of the memory, and ECC takes some of it. */
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

static void compare_u32(struct fingerprint_diff *out, const char *where, const char *what,
                        struct maybe_u32 a, struct maybe_u32 b)
{
    if (IS_KNOWN(a) && IS_KNOWN(b) && a.v != b.v)
        differ(out, FINGERPRINT_CHANGED, "%s%s: %u and %u", where, what, a.v, b.v);
}

static void compare_bytes(struct fingerprint_diff *out, const char *where, const char *what,
                          struct maybe_u64 a, struct maybe_u64 b)
{
    char text_a[24];
    char text_b[24];
    if (IS_KNOWN(a) && IS_KNOWN(b) && a.v != b.v)
        differ(out, FINGERPRINT_CHANGED, "%s%s: %s and %s", where, what,
               units_format_bytes(a.v, text_a, sizeof text_a),
               units_format_bytes(b.v, text_b, sizeof text_b));
}

static void compare_real(struct fingerprint_diff *out, const char *where, const char *what,
                         struct maybe_f64 a, struct maybe_f64 b, double least, double share)
{
    if (!IS_KNOWN(a) || !IS_KNOWN(b))
        return;
    if (fabs(a.v - b.v) > fmax(least, share * fmax(a.v, b.v)))
        differ(out, FINGERPRINT_CHANGED, "%s%s: %.1f and %.1f", where, what, a.v, b.v);
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

static void compare_partition(const char *where, const struct sm_partition *a,
                              const struct sm_partition *b, struct fingerprint_diff *out)
{
    uint32_t first = 0;
    uint32_t second = 0;
    if (!sm_partitions_agree(a, b, &first, &second))
        differ(out, FINGERPRINT_OTHER_HARDWARE,
               "%sSM groups: SMs %u and %u share a TLB in one and not in the other", where, first,
               second);
}

static void compare_level(const struct tlb_level *a, const struct tlb_level *b,
                          struct fingerprint_diff *out)
{
    char where[16];
    snprintf(where, sizeof where, "level %u ", a->level);
    compare_u32(out, where, "entries", a->entries, b->entries);
    compare_bytes(out, where, "entry", a->entry_bytes, b->entry_bytes);
    compare_bytes(out, where, "page", a->page_bytes, b->page_bytes);
    compare_bytes(out, where, "reach", a->reach_bytes, b->reach_bytes);
    compare_u32(out, where, "sets", a->sets, b->sets);
    compare_u32(out, where, "ways", a->ways, b->ways);
    if (a->replacement != REPLACEMENT_UNKNOWN && b->replacement != REPLACEMENT_UNKNOWN &&
        a->replacement != b->replacement)
        differ(out, FINGERPRINT_CHANGED, "%sreplacement: %s and %s", where,
               replacement_name(a->replacement), replacement_name(b->replacement));
    compare_real(out, where, "miss penalty in cycles", a->miss_penalty_cycles,
                 b->miss_penalty_cycles, PENALTY_CYCLES, PENALTY_SHARE);
    if (a->shared_by != SHARED_UNKNOWN && b->shared_by != SHARED_UNKNOWN &&
        a->shared_by != b->shared_by)
        differ(out, FINGERPRINT_CHANGED, "%sshared by: %s and %s", where,
               shared_by_name(a->shared_by), shared_by_name(b->shared_by));
    else
        compare_partition(where, &a->sharing, &b->sharing, out);
}

static const struct curve_point *find_point(const struct throughput *t, uint64_t region_bytes)
{
    for (uint32_t i = 0; i < t->curve_count; i++)
        if (t->curve[i].region_bytes == region_bytes)
            return &t->curve[i];
    return NULL;
}

static const struct rate_point *find_rate_point(const struct access_rate *r, uint64_t region_bytes)
{
    for (uint32_t i = 0; i < r->point_count; i++)
        if (r->points[i].region_bytes == region_bytes)
            return &r->points[i];
    return NULL;
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
    char size[24];
    char where[64];

    snprintf(where, sizeof where, "%s of %u bytes ", access_name(a->access), a->transaction_bytes);
    compare_real(out, where, "plateau in GB/s", a->plateau_gbps, b->plateau_gbps, 0,
                 THROUGHPUT_SHARE);
    for (uint32_t i = 0; i < a->point_count; i++) {
        const struct rate_point *p = &a->points[i];
        const struct rate_point *q = find_rate_point(b, p->region_bytes);
        if (!q)
            continue;
        snprintf(where, sizeof where, "%s of %u bytes, region of %s ", access_name(a->access),
                 a->transaction_bytes, units_format_bytes(p->region_bytes, size, sizeof size));
        compare_real(out, where, "naive in GB/s", p->naive_gbps, q->naive_gbps, 0,
                     THROUGHPUT_SHARE);
        compare_real(out, where, "by group in GB/s", p->by_group_gbps, q->by_group_gbps, 0,
                     THROUGHPUT_SHARE);
    }
}

static void compare_throughput(const struct throughput *a, const struct throughput *b,
                               struct fingerprint_diff *out)
{
    compare_real(out, "", "plateau in GB/s", a->plateau_gbps, b->plateau_gbps, 0, THROUGHPUT_SHARE);
    compare_real(out, "", "whole memory in GB/s", a->whole_memory_gbps, b->whole_memory_gbps, 0,
                 THROUGHPUT_SHARE);
    for (uint32_t i = 0; i < a->curve_count; i++) {
        const struct curve_point *p = &a->curve[i];
        const struct curve_point *q = find_point(b, p->region_bytes);
        char size[24];
        char where[40];
        if (!q)
            continue;
        snprintf(where, sizeof where, "region of %s ",
                 units_format_bytes(p->region_bytes, size, sizeof size));
        compare_real(out, where, "naive in GB/s", p->naive_gbps, q->naive_gbps, 0,
                     THROUGHPUT_SHARE);
        compare_real(out, where, "by group in GB/s", p->by_group_gbps, q->by_group_gbps, 0,
                     THROUGHPUT_SHARE);
    }
    for (uint32_t i = 0; i < a->rate_count; i++) {
        const struct access_rate *r = find_rate(b, &a->rates[i]);
        if (r)
            compare_rate(&a->rates[i], r, out);
    }
}

void fingerprint_compare(const struct fingerprint *a, const struct fingerprint *b,
                         struct fingerprint_diff *out)
{
    memset(out, 0, sizeof *out);
    compare_identity(&a->gpu, &b->gpu, out);
    compare_count(out, FINGERPRINT_CHANGED, "TLB levels", a->level_count, b->level_count);
    for (uint32_t k = 0; a->level_count == b->level_count && k < a->level_count; k++)
        compare_level(&a->levels[k], &b->levels[k], out);
    compare_u32(out, "", "level of the groups", a->topology.level, b->topology.level);
    compare_u32(out, "", "SMs of a group of the full die", a->topology.nominal_group_sms,
                b->topology.nominal_group_sms);
    compare_u32(out, "", "SMs of the full die", a->topology.full_sm_count,
                b->topology.full_sm_count);
    compare_text(out, FINGERPRINT_CHANGED, "pattern of disabled SMs",
                 a->topology.disabled.signature, b->topology.disabled.signature);
    compare_partition("", &a->topology.partition, &b->topology.partition, out);
    compare_bytes(out, "", "recommended window", a->windows.recommended_bytes,
                  b->windows.recommended_bytes);
    compare_throughput(&a->throughput, &b->throughput, out);
}
