/* fingerprint_json.c: writes a fingerprint as schema/json/fingerprint.schema.json defines it, by
 * the tables of members.h. The origin is at the top, because every client has to see it.
 *
 * The id is the hash of the canonical JSON: sorted keys, no blanks, floats with 17 digits, which
 * represent every double exactly. So the id does not depend on padding, on bytes after the end of a
 * text or on unused slots. A round trip through the store does not change the id.
 */
#include "fingerprint/fingerprint_json.h"

#include "fingerprint/parts.h"
#include "base/hash.h"
#include "types/identity_json.h"
#include "base/json_writer.h"
#include "fingerprint/evidence_json.h"
#include "fingerprint/members.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { TEXT_ROOM = 32 << 10 }; /* enough for most documents */

/* The fingerprint, the struct of one of its objects, and the index of that object if it is in a
 * list. */
struct place {
    const struct fingerprint *fp;
    const void *base;
    uint32_t index;
    bool planner_only; /* write only rows for the planner, without evidence, and lists in columns */
};

static void write_object(struct json_writer *t, const char *name, const struct object *o,
                         const struct place *at, bool in_columns);
static void write_member(struct json_writer *t, const char *name, const struct member *m,
                         const struct place *at);

/* ---- arrays ---- */

static void write_group_sms(struct json_writer *t, const char *name, const struct sm_partition *p,
                            uint32_t group)
{
    json_writer_open(t, name, '[');
    for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++)
        if (p->group_of_sm[sm] == group)
            json_writer_u64(t, NULL, sm);
    json_writer_close(t, ']');
}

static void write_partition(struct json_writer *t, const char *name, const struct sm_partition *p)
{
    if (p->group_count == 0)
        return;
    json_writer_open(t, name, '[');
    for (uint32_t g = 0; g < p->group_count; g++)
        write_group_sms(t, NULL, p, g);
    json_writer_close(t, ']');
}

static bool has_penalty(const struct topology *t, uint32_t sm, uint32_t g)
{
    return t->partition.group_of_sm[sm] == g && IS_KNOWN(t->sm_miss_penalty_cycles[sm]);
}

/* Writes the penalties in the order of "sms", with null for unknown penalties. Writes nothing if
 * all are unknown. */
static void write_group_penalties(struct json_writer *out, const char *name,
                                  const struct topology *t, uint32_t g)
{
    bool any = false;

    for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++)
        any |= has_penalty(t, sm, g);
    if (!any)
        return;
    json_writer_open(out, name, '[');
    for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++) {
        if (has_penalty(t, sm, g))
            json_writer_real(out, NULL, t->sm_miss_penalty_cycles[sm].v);
        else if (t->partition.group_of_sm[sm] == g)
            json_writer_null(out, NULL);
    }
    json_writer_close(out, ']');
}

static void write_candidates(struct json_writer *t, const char *name, const struct disabled_sms *d)
{
    if (d->listed > FINGERPRINT_MAX_CANDIDATES ||
        (d->listed > 0 && d->sm_count.v > FINGERPRINT_MAX_DISABLED)) {
        t->failed = true;
        return;
    }
    json_writer_open(t, name, '[');
    for (uint32_t k = 0; k < d->listed; k++) {
        json_writer_open(t, NULL, '[');
        for (uint32_t i = 0; i < d->sm_count.v; i++)
            json_writer_u64(t, NULL, d->candidates[k][i]);
        json_writer_close(t, ']');
    }
    json_writer_close(t, ']');
}

/* Writes the number of SMs that each group lacks. The numbers follow from the sizes of groups, so
 * they are not read back. */
static void write_lost(struct json_writer *out, const char *name, const struct topology *t)
{
    json_writer_open(out, name, '[');
    for (uint32_t g = 0; IS_KNOWN(t->disabled.sm_count) && g < t->partition.group_count; g++) {
        if (t->groups[g].sm_count >= t->nominal_group_sms.v)
            continue;
        json_writer_open(out, NULL, '{');
        json_writer_u64(out, "group", g);
        json_writer_u64(out, "sms", t->nominal_group_sms.v - t->groups[g].sm_count);
        json_writer_close(out, '}');
    }
    json_writer_close(out, ']');
}

static void write_two_groups(struct json_writer *t, const char *name, const uint16_t *groups)
{
    json_writer_open(t, name, '[');
    json_writer_u64(t, NULL, groups[0]);
    json_writer_u64(t, NULL, groups[1]);
    json_writer_close(t, ']');
}

/* ---- columns ---- */

static struct place inside(const struct place *at, const struct member *m)
{
    return (struct place){
        .fp = at->fp, .base = member_at(m, at->base), .planner_only = at->planner_only};
}

/* Returns the place of element `i` of a list. `first` is the place of the first element. */
static struct place element(const struct object *o, const struct place *first, uint32_t i)
{
    struct place at = *first;

    at.base = (const char *)first->base + i * o->size;
    at.index = i;
    return at;
}

static bool was_not_measured(const struct member *m, const void *base)
{
    const struct member_state s = member_state(m, base);

    return s.known == MAYBE_UNKNOWN && (s.reason == REASON_NOT_MEASURED || s.reason == REASON_NONE);
}

/* Returns whether the column of a member has a value here. */
static bool has_value(const struct member *m, const struct place *at)
{
    if (member_is_maybe(m))
        return member_state(m, at->base).known == MAYBE_KNOWN;
    if (m->type == MEMBER_LIST)
        return member_count(m, at->base) > 0;
    return m->type != MEMBER_TEXT || *(const char *)member_at(m, at->base) != '\0';
}

static bool has_reason(const struct member *m, const struct place *at)
{
    return member_is_maybe(m) && !has_value(m, at) && !was_not_measured(m, at->base);
}

static void write_reason(struct json_writer *t, const char *name, const struct member *m,
                         const struct place *at)
{
    const struct member_state s = member_state(m, at->base);
    char text[REASON_TEXT_BYTES];

    json_writer_text(t, name, reason_text(s.known, s.reason, text));
}

/* Writes a column up to its last value: the output of `write` for each element that `has` a value,
 * and null for the other elements. */
static void write_column(struct json_writer *t, const char *name, const struct member *m,
                         bool (*has)(const struct member *m, const struct place *at),
                         void (*write)(struct json_writer *t, const char *name,
                                       const struct member *m, const struct place *at),
                         const struct object *o, const struct place *first, uint32_t count)
{
    struct place at = element(o, first, count - 1);

    while (count > 0 && !has(m, &at))
        at = element(o, first, --count - 1);
    if (count == 0)
        return;
    json_writer_open(t, name, '[');
    for (uint32_t i = 0; i < count; i++) {
        at = element(o, first, i);
        if (has(m, &at))
            write(t, NULL, m, &at);
        else
            json_writer_null(t, NULL);
    }
    json_writer_close(t, ']');
}

/* Writes a shorter form of a list, in which each name occurs once: {"x": [1, 3], "y": [2]}. A value
 * is missing if it is null or after the end of its column. */
static void write_columns(struct json_writer *t, const char *name, const struct object *o,
                          const struct place *first, uint32_t count)
{
    char reason[REASON_FIELD_BYTES];

    json_writer_open(t, name, '{');
    for (const struct member *m = o->members; m < o->members + o->count; m++) {
        if (!m->name || !m->for_planner)
            continue;
        write_column(t, m->name, m, has_value, write_member, o, first, count);
        write_column(t, reason_field(m->name, reason), m, has_reason, write_reason, o, first,
                     count);
    }
    json_writer_close(t, '}');
}

/* ---- members ---- */

/* Writes a list of objects. `in_columns` has the same meaning as in write_object. */
static void write_objects(struct json_writer *t, const char *name, const struct member *m,
                          const struct place *first, uint32_t count, bool in_columns)
{
    json_writer_open(t, name, '[');
    for (uint32_t i = 0; i < count && !t->failed; i++) {
        const struct place at = element(m->object, first, i);
        if (!m->omits || !m->omits(at.base))
            write_object(t, NULL, m->object, &at, in_columns);
    }
    json_writer_close(t, ']');
}

static void write_list(struct json_writer *t, const char *name, const struct member *m,
                       const struct place *at)
{
    const uint32_t count = member_count(m, at->base);
    const struct place first = inside(at, m);

    if ((m->optional || at->planner_only) && count == 0)
        return;
    if (count > m->max_count) { /* the fingerprint may not have been checked yet */
        t->failed = true;
        return;
    }
    if (at->planner_only) {
        write_columns(t, name, m->object, &first, count);
        return;
    }
    write_objects(t, name, m, &first, count, m->columns != NULL);
    if (m->columns)
        evidence_write(t, m->columns, m->object, first.base, count);
}

static void write_notes(struct json_writer *t, const char *name, const struct member *m,
                        const struct place *at)
{
    const uint32_t count = member_count(m, at->base);
    const char *const notes = member_at(m, at->base);

    t->failed |= count > m->max_count;
    json_writer_open(t, name, '[');
    for (uint32_t i = 0; i < count && !t->failed; i++)
        json_writer_text(t, NULL, notes + i * (m->size / m->max_count));
    json_writer_close(t, ']');
}

static void write_member(struct json_writer *t, const char *name, const struct member *m,
                         const struct place *at)
{
    const struct place inner = inside(at, m);
    struct json_field field = member_field(m);

    if (member_is_scalar(m)) {
        field.name = name;
        json_fields_write(t, &field, 1, 0, at->base);
        return;
    }
    switch (m->type) {
    case MEMBER_INDEX:
        json_writer_u64(t, name, at->index);
        break;
    case MEMBER_OBJECT:
        if (!m->optional || !member_is_unmeasured(m, at->base, at->planner_only))
            write_object(t, name, m->object, &inner, false);
        break;
    case MEMBER_LIST:
        write_list(t, name, m, at);
        break;
    case MEMBER_NOTES:
        write_notes(t, name, m, at);
        break;
    case MEMBER_PARTITION:
        write_partition(t, name, inner.base);
        break;
    case MEMBER_TWO_GROUPS:
        if (!m->optional || member_state(m - 1, at->base).known == MAYBE_KNOWN)
            write_two_groups(t, name, inner.base);
        break;
    case MEMBER_CANDIDATES:
        write_candidates(t, name, &at->fp->topology.disabled);
        break;
    case MEMBER_LOST:
        write_lost(t, name, &at->fp->topology);
        break;
    case MEMBER_GROUP_SMS:
        write_group_sms(t, name, &at->fp->topology.partition, at->index);
        break;
    default: /* MEMBER_GROUP_PENALTIES */
        write_group_penalties(t, name, &at->fp->topology, at->index);
        break;
    }
}

static void write_members(struct json_writer *t, const struct object *o, const struct place *at)
{
    for (const struct member *m = o->members; m < o->members + o->count && !t->failed; m++) {
        const bool omitted = (m->optional && m->type == MEMBER_NAME &&
                              *(const unsigned *)member_at(m, at->base) == 0) ||
                             ((m->optional || at->planner_only) && member_is_maybe(m) &&
                              was_not_measured(m, at->base));
        if (m->name && !omitted && (m->for_planner || !at->planner_only))
            write_member(t, m->name, m, at);
    }
}

/* Writes an object. If `in_columns` is true, its evidence is written in columns beside its list. */
static void write_object(struct json_writer *t, const char *name, const struct object *o,
                         const struct place *at, bool in_columns)
{
    json_writer_open(t, name, '{');
    write_members(t, o, at);
    if (object_next_evidence(o, NULL) && !in_columns && !at->planner_only)
        evidence_write(t, "evidence", o, at->base, 1);
    json_writer_close(t, '}');
}

/* ---- what is kept ---- */

static bool same_source(const struct fingerprint_source *a, const struct fingerprint_source *b)
{
    return strcmp(a->id, b->id) == 0 && a->depth == b->depth && a->taken_at == b->taken_at;
}

/* Returns whether `part` is kept and is the first part of its measurement. */
static bool is_first(const struct fingerprint *fp, uint32_t part)
{
    for (uint32_t before = 0; before < part; before++)
        if (same_source(&fp->kept[before], &fp->kept[part]))
            return false;
    return fp->kept[part].id[0] != '\0';
}

/* Opens the object of a measurement, and writes its members. */
static void begin_source(struct json_writer *t, const char *name,
                         const struct fingerprint_source *source)
{
    json_writer_open(t, name, '{');
    write_members(t, &source_object, &(struct place){.base = source});
}

/* Writes the measurement of part `first`, with all parts of this measurement. */
static void write_parts(struct json_writer *t, const struct fingerprint *fp, uint32_t first)
{
    char name[PART_NAME_BYTES];

    begin_source(t, NULL, &fp->kept[first]);
    json_writer_open(t, "parts", '[');
    for (uint32_t part = first; part < PART_COUNT; part++)
        if (fp->kept[part].id[0] && same_source(&fp->kept[part], &fp->kept[first]))
            json_writer_text(t, NULL, fingerprint_part_name((enum fingerprint_part)part, name));
    json_writer_close(t, ']');
    json_writer_close(t, '}');
}

static void write_kept(struct json_writer *t, const struct fingerprint *fp)
{
    bool any = false;

    for (uint32_t part = 0; part < PART_COUNT; part++)
        any |= fp->kept[part].id[0] != '\0';
    if (fp->measurement_id[0]) {
        json_writer_text(t, "measurement_id", fp->measurement_id);
        json_writer_text(t, "measurement_depth", depth_name(fp->measurement_depth));
    }
    if (fp->measurement_id[0] && any) {
        json_writer_open(t, "kept", '[');
        for (uint32_t part = 0; part < PART_COUNT; part++)
            if (is_first(fp, part))
                write_parts(t, fp, part);
        json_writer_close(t, ']');
    }
    if (fp->dropped.id[0]) {
        begin_source(t, "dropped", &fp->dropped);
        json_writer_text(t, "reason", fp->dropped_reason);
        json_writer_close(t, '}');
    }
}

/* ---- the document ---- */

static void write_body(struct json_writer *t, const struct fingerprint *fp, bool planner_only)
{
    const struct place at = {.fp = fp, .base = fp, .planner_only = planner_only};

    if (fp->topology.partition.group_count > REACH_MAX_GROUPS) {
        t->failed = true; /* the fingerprint may not have been checked yet */
        return;
    }
    identity_json_write(t, "gpu", &fp->gpu);
    json_writer_text(t, "origin", origin_name(fp->gpu.origin));
    write_members(t, &fingerprint_object, &at);
    write_kept(t, fp);
}

void fingerprint_write_for_planner(struct json_writer *t, const struct fingerprint *fp)
{
    write_body(t, fp, true);
}

void fingerprint_write(struct json_writer *t, const char *name, const struct fingerprint *fp,
                       const char *id)
{
    char own[FINGERPRINT_ID_BYTES];

    if (!id && fingerprint_id(fp, own, NULL) != STATUS_OK) {
        t->failed = true;
        return;
    }
    json_writer_open(t, name, '{');
    json_writer_text(t, "id", id ? id : own); /* first, because readers search for it */
    write_body(t, fp, false);
    json_writer_close(t, '}');
}

void fingerprint_write_member(struct json_writer *t, const struct fingerprint *fp, const char *name)
{
    const struct member *const m = object_member(&fingerprint_object, name);
    const struct place at = {.fp = fp, .base = member_at(m, fp)};

    if (m->type == MEMBER_LIST)
        write_objects(t, name, m, &at, member_count(m, fp), false);
    else
        write_object(t, name, m->object, &at, false);
}

/* ---- the id ---- */

/* Ends the text of a document without its id, and computes the id from the text. */
static char *end_with_id(struct json_writer *t, char *out_id)
{
    size_t bytes = 0;
    char *const out = json_writer_end(t, &bytes);

    if (!out)
        return NULL;
    out[--bytes] = '\0'; /* without the line feed */
    (void)snprintf(out_id, FINGERPRINT_ID_BYTES, "fp%016" PRIx64,
                   hash_bytes(HASH_START, out, bytes));
    return out;
}

char *fingerprint_json_text(const json_t *body, char *out_id)
{
    struct json_writer t;

    json_writer_begin(&t, TEXT_ROOM);
    t.sorted = true;
    json_writer_value(&t, NULL, body);
    return end_with_id(&t, out_id);
}

enum status fingerprint_id(const struct fingerprint *fp, char *out, struct err *err)
{
    struct json_writer t;
    char *text;

    json_writer_begin(&t, TEXT_ROOM);
    t.sorted = true;
    json_writer_open(&t, NULL, '{');
    write_body(&t, fp, false);
    json_writer_close(&t, '}');
    text = end_with_id(&t, out);
    free(text);
    if (text)
        return STATUS_OK;
    out[0] = '\0';
    return err_no_memory(err, "the id of a fingerprint");
}

bool fingerprint_is_id(const char *text)
{
    return strncmp(text, "fp", 2) == 0 && strlen(text) == 18 &&
           strspn(text + 2, "0123456789abcdef") == 16;
}
