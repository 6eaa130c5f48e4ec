/* fingerprint.c: the initial value of a fingerprint, its rounding, its depths, and the hash of its
 * structure. */
#include "fingerprint/fingerprint.h"

#include "base/format_number.h"
#include "base/hash.h"
#include "fingerprint/members.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Calls `visit` with each number, text and array of an object, including unused elements of
 * lists. */
static void visit_members(const struct object *o, char *base,
                          void (*visit)(enum member_type type, void *at))
{
    for (const struct member *m = o->members; m < o->members + o->count; m++) {
        char *const at = base + m->offset;

        if (m->type == MEMBER_OBJECT)
            visit_members(m->object, at, visit);
        else if (m->type == MEMBER_LIST)
            for (size_t i = 0; i < m->max_count; i++)
                visit_members(m->object, at + i * m->object->size, visit);
        else if (m->type == MEMBER_SM_PENALTIES)
            for (size_t sm = 0; sm < REACH_MAX_SMS; sm++)
                visit(MEMBER_F64_MAYBE, at + sm * sizeof(struct maybe_f64));
        else
            visit(m->type, at);
    }
}

static void init_member(enum member_type type, void *at)
{
    const struct member_state unknown = {MAYBE_UNKNOWN, REASON_NOT_MEASURED};
    struct sm_partition *const p = at;

    if (type >= MEMBER_U32_MAYBE && type <= MEMBER_F64_MAYBE)
        memcpy(at, &unknown, sizeof unknown);
    for (uint32_t sm = 0; type == MEMBER_PARTITION && sm < REACH_MAX_SMS; sm++)
        p->group_of_sm[sm] = FINGERPRINT_NO_GROUP;
}

/* The initial value of every fingerprint. A copy takes a tenth of the time that a visit of all
 * members takes. */
static struct fingerprint unmeasured;

static void init_unmeasured(void)
{
    visit_members(&fingerprint_object, (char *)&unmeasured, init_member);
}

void fingerprint_init(struct fingerprint *out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, init_unmeasured);
    *out = unmeasured;
}

static void round_member(enum member_type type, void *at)
{
    struct maybe_f64 *const number = at;

    if (type == MEMBER_F64)
        *(double *)at = round_six_digits(*(double *)at);
    else if (type == MEMBER_F64_MAYBE && IS_KNOWN(*number))
        number->v = round_six_digits(number->v);
}

void fingerprint_round(struct fingerprint *fp)
{
    visit_members(&fingerprint_object, (char *)fp, round_member);
}

struct maybe_u64 working_set_shared_bytes(const struct fingerprint *fp)
{
    enum { SHARES = 2, EXTRA_BYTES = 1024 };
    struct maybe_u64 bytes = fp->shared.sm_bytes;

    if (IS_KNOWN(bytes))
        bytes.v = bytes.v / SHARES + EXTRA_BYTES;
    return bytes;
}

void fingerprint_add_note(struct fingerprint *fp, const char *format, ...)
{
    struct fingerprint_conditions *c = &fp->conditions;
    va_list args;

    if (c->note_count == FINGERPRINT_MAX_NOTES)
        return;
    va_start(args, format);
    (void)vsnprintf(c->notes[c->note_count], sizeof c->notes[0], format, args);
    va_end(args);
    c->note_count += 1;
}

void fingerprint_set_measurement(struct fingerprint *fp, const char *id)
{
    if (fp->measurement_id[0])
        return;
    (void)snprintf(fp->measurement_id, sizeof fp->measurement_id, "%s", id);
    fp->measurement_depth = fp->depth;
}

enum depth fingerprint_newest_depth(const struct fingerprint *fp)
{
    return fp->measurement_id[0] ? fp->measurement_depth : fp->depth;
}

void fingerprint_set_depth(struct fingerprint *fp, enum depth newest)
{
    fp->depth = fp->measurement_depth = newest;
    for (uint32_t part = 0; part < PART_COUNT; part++)
        if (fp->kept[part].id[0] && fp->kept[part].depth > fp->depth)
            fp->depth = fp->kept[part].depth;
}

int64_t fingerprint_part_taken_at(const struct fingerprint *fp, enum fingerprint_part part)
{
    return fp->kept[part].id[0] ? fp->kept[part].taken_at : fp->taken_at;
}

/* Hashes a string with its NUL, so that "ab","c" and "a","bc" differ. */
static uint64_t hash_string(uint64_t h, const char *s)
{
    return hash_bytes(h, s, strlen(s) + 1);
}

#define HASH_MAYBE(h, m) hash_u64(hash_u64(h, (uint64_t)(m).known), (m).v)

static uint64_t hash_partition(uint64_t h, const struct sm_partition *p)
{
    h = hash_u64(h, p->group_count);
    for (uint32_t sm = 0; p->group_count > 0 && sm < REACH_MAX_SMS; sm++)
        h = hash_u64(h, p->group_of_sm[sm]);
    return h;
}

/* Hashes the members that every depth finds. Onset and saturation are points of a sweep, and sweeps
 * differ between depths. Sets, ways and replacement are found at some depths only. */
static uint64_t hash_level(uint64_t h, const struct tlb_level *l)
{
    h = hash_u64(h, l->level);
    h = HASH_MAYBE(h, l->entries);
    h = HASH_MAYBE(h, l->entry_bytes);
    h = HASH_MAYBE(h, l->page_bytes);
    h = HASH_MAYBE(h, l->reach_bytes);
    h = hash_u64(h, (uint64_t)l->shared_by);
    return hash_partition(h, &l->sharing);
}

/* Hashes the properties of the chip, which do not include the PCI slot and the versions of the
 * driver. */
static uint64_t hash_chip(uint64_t h, const struct gpu_identity *id)
{
    h = hash_string(h, id->uuid);
    h = hash_string(h, id->name);
    h = hash_string(h, id->serial);
    h = hash_u64(h, id->compute_major);
    h = hash_u64(h, id->compute_minor);
    h = hash_u64(h, id->sm_count);
    h = hash_u64(h, id->memory_bytes);
    h = hash_u64(h, id->l2_cache_bytes);
    h = hash_u64(h, (uint64_t)id->mig | (uint64_t)id->mlopart << 1);
    return hash_u64(h, (uint64_t)id->origin);
}

uint64_t fingerprint_structure_hash(const struct fingerprint *fp)
{
    uint64_t h = hash_chip(HASH_START, &fp->gpu);

    h = hash_u64(h, fp->level_count);
    for (uint32_t i = 0; i < fp->level_count; i++)
        h = hash_level(h, &fp->levels[i]);
    h = HASH_MAYBE(h, fp->topology.level);
    h = HASH_MAYBE(h, fp->topology.nominal_group_sms);
    h = HASH_MAYBE(h, fp->topology.full_sm_count);
    h = hash_string(h, fp->topology.disabled.signature);
    h = HASH_MAYBE(h, fp->topology.disabled.candidate_count);
    return hash_partition(h, &fp->topology.partition);
}
