/* diff.c: see diff.h. */
#include "fingerprint/diff.h"

#include "types/name_of.h"
#include "base/format_size.h"
#include "fingerprint/members.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Two numbers that differ by less count as equal. The shares are relative to the larger number. */
#define PENALTY_CYCLES   5.0
#define PENALTY_SHARE    0.1
#define THROUGHPUT_SHARE 0.05

NAME_FUNCTION(fingerprint_class_name, enum fingerprint_class, [FINGERPRINT_SAME] = "same",
              [FINGERPRINT_CHANGED] = "changed", [FINGERPRINT_OTHER_HARDWARE] = "other-hardware")

__attribute__((format(printf, 3, 4))) static void
differ(struct fingerprint_diff *out, enum fingerprint_class c, const char *format, ...)
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

/* Compares a text that may be empty on one side, which is no difference. */
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
    /* An instance has only a part of the SMs and of the memory, and ECC uses some memory. */
    compare_count(out, a->mig == b->mig && a->mlopart == b->mlopart ? other : FINGERPRINT_CHANGED,
                  "SMs", a->sm_count, b->sm_count);
    compare_text(out, FINGERPRINT_CHANGED, "MLOPart", a->mlopart ? "on" : "off",
                 b->mlopart ? "on" : "off");
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

/* The number that a sentence is about: "level 2 reach". */
struct subject {
    const char *where;
    char label[MEMBER_LABEL_BYTES];
};

static void compare_partition(const struct subject *s, const struct sm_partition *a,
                              const struct sm_partition *b, struct fingerprint_diff *out)
{
    uint32_t first = 0;
    uint32_t second = 0;
    if (!sm_partitions_agree(a, b, &first, &second))
        differ(out, FINGERPRINT_OTHER_HARDWARE,
               "%s%s: SMs %u and %u are together in one and not in the other", s->where, s->label,
               first, second);
}

static void compare_bytes(const struct subject *s, uint64_t a, uint64_t b,
                          struct fingerprint_diff *out)
{
    char text_a[FORMAT_SIZE_BYTES];
    char text_b[FORMAT_SIZE_BYTES];

    format_size_pair(a, b, text_a, text_b);
    if (a != b)
        differ(out, FINGERPRINT_CHANGED, "%s%s: %s and %s", s->where, s->label, text_a, text_b);
}

static void compare_real(const struct subject *s, const struct member *m, double a, double b,
                         struct fingerprint_diff *out)
{
    const char *const unit = member_unit(m);
    const bool cycles = strcmp(unit, "cycles") == 0;
    const double least = cycles ? PENALTY_CYCLES : 0;
    if (fabs(a - b) > fmax(least, (cycles ? PENALTY_SHARE : THROUGHPUT_SHARE) * fmax(a, b)))
        differ(out, FINGERPRINT_CHANGED,
               fmax(a, b) < 10 ? "%s%s in %s: %.3f and %.3f" : "%s%s in %s: %.1f and %.1f",
               s->where, s->label, unit, a, b);
}

static void compare_name(const struct subject *s, const struct json_names *names, unsigned a,
                         unsigned b, struct fingerprint_diff *out)
{
    if (a != 0 && b != 0 && a != b) /* 0 means unknown */
        differ(out, FINGERPRINT_CHANGED, "%s%s: %s and %s", s->where, s->label, names->name(a),
               names->name(b));
}

static void compare_known(const struct subject *s, const struct member *m, const void *a,
                          const void *b, struct fingerprint_diff *out)
{
    if (m->type == MEMBER_U64_MAYBE)
        compare_bytes(s, ((const struct maybe_u64 *)a)->v, ((const struct maybe_u64 *)b)->v, out);
    else if (m->type == MEMBER_F64_MAYBE)
        compare_real(s, m, ((const struct maybe_f64 *)a)->v, ((const struct maybe_f64 *)b)->v, out);
    else if (((const struct maybe_u32 *)a)->v != ((const struct maybe_u32 *)b)->v)
        differ(out, FINGERPRINT_CHANGED, "%s%s: %u and %u", s->where, s->label,
               ((const struct maybe_u32 *)a)->v, ((const struct maybe_u32 *)b)->v);
}

static void compare_members(const char *where, const struct object *o, const void *a, const void *b,
                            struct fingerprint_diff *out);

/* Compares the elements of two lists that have the same keys. Levels of a TLB are not compared if
 * their count differs, because a level may then have another number. */
static void compare_lists(const char *where, const struct member *m, const void *base_a,
                          const void *base_b, struct fingerprint_diff *out)
{
    const size_t size = m->object->size;
    const uint32_t count_a = member_count(m, base_a), count_b = member_count(m, base_b);
    const char *const first_a = member_at(m, base_a);
    const char *const first_b = member_at(m, base_b);

    if (!m->element || (m->object == &level_object && count_a != count_b))
        return;
    for (uint32_t i = 0; i < count_a; i++) {
        char inner[96];
        const int n = snprintf(inner, sizeof inner, "%s", where);

        (void)member_element(m, first_a + i * size, i, inner + n, sizeof inner - (size_t)n);
        for (uint32_t k = 0; k < count_b; k++)
            if (object_compare_keys(m->object, first_a + i * size, first_b + k * size) == 0)
                compare_members(inner, m->object, first_a + i * size, first_b + k * size, out);
    }
}

static void compare_member(const char *where, const struct member *m, const void *base_a,
                           const void *base_b, struct fingerprint_diff *out)
{
    const void *const a = member_at(m, base_a);
    const void *const b = member_at(m, base_b);
    struct subject s = {.where = where};

    (void)member_label(m, s.label);
    if (m->type == MEMBER_NAME)
        compare_name(&s, m->names, *(const unsigned *)a, *(const unsigned *)b, out);
    else if (m->type == MEMBER_TEXT)
        compare_text(out, FINGERPRINT_CHANGED, s.label, a, b);
    else if (m->type == MEMBER_PARTITION)
        compare_partition(&s, a, b, out);
    else if (member_state(m, base_a).known == MAYBE_KNOWN &&
             member_state(m, base_b).known == MAYBE_KNOWN)
        compare_known(&s, m, a, b, out);
}

static void compare_members(const char *where, const struct object *o, const void *a, const void *b,
                            struct fingerprint_diff *out)
{
    for (const struct member *m = o->members; m < o->members + o->count; m++) {
        if (m->type == MEMBER_OBJECT)
            compare_members(where, m->object, member_at(m, a), member_at(m, b), out);
        else if (m->type == MEMBER_LIST)
            compare_lists(where, m, a, b, out);
        else if (m->diffed)
            compare_member(where, m, a, b, out);
    }
}

void fingerprint_compare(const struct fingerprint *a, const struct fingerprint *b,
                         struct fingerprint_diff *out)
{
    memset(out, 0, sizeof *out);
    compare_identity(&a->gpu, &b->gpu, out);
    compare_count(out, FINGERPRINT_CHANGED, "TLB levels", a->level_count, b->level_count);
    compare_members("", &fingerprint_object, a, b, out);
}
