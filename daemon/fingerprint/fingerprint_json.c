/* fingerprint_json.c: writes a fingerprint as schema/json/fingerprint.schema.json defines it, by
 * the tables of members.h. The origin is at the top, because it has to reach the last client.
 *
 * The id is the hash of the canonical JSON: sorted keys, no blanks, floats with 17 digits (which
 * give every double back exactly). So the id of a value does not depend on padding, on bytes after
 * the end of a text or on unused slots, and it is the same after a round trip through the store.
 */
#include "fingerprint/fingerprint_json.h"

#include "base/hash.h"
#include "types/identity_json.h"
#include "base/json_builder.h"
#include "base/json_columns.h"
#include "base/json_writer.h"
#include "fingerprint/evidence_json.h"
#include "fingerprint/members.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { TEXT_ROOM = 32 << 10 }; /* most documents take less */

/* The fingerprint, the struct of one of its objects, and its index if that is in a list. */
struct place {
    const struct fingerprint *fp;
    const void *base;
    uint32_t index;
    bool planner_only; /* only its rows, no evidence, nothing that was not measured; lists in
                          columns */
};

static json_t *object_to_json(const struct object *o, const struct place *at, bool in_columns);

/* ---- arrays ---- */

/* SM ids of one group, ascending. */
static json_t *group_sms_to_json(const struct sm_partition *p, uint32_t group)
{
    json_t *array = json_array();

    for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++) {
        if (p->group_of_sm[sm] == group && !json_builder_append(&array, json_integer(sm)))
            break;
    }
    return array;
}

static json_t *partition_to_json(const struct sm_partition *p)
{
    json_t *array = json_array();

    for (uint32_t g = 0; g < p->group_count; g++) {
        if (!json_builder_append(&array, group_sms_to_json(p, g)))
            break;
    }
    return array;
}

/* In the order of "sms", null for unknown; `*out_any`: is any known? */
static json_t *group_penalties_to_json(const struct topology *t, uint32_t g, bool *out_any)
{
    json_t *array = json_array();

    *out_any = false;
    for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++) {
        const struct maybe_f64 *const m = &t->sm_miss_penalty_cycles[sm];

        if (t->partition.group_of_sm[sm] != g)
            continue;
        *out_any |= IS_KNOWN(*m);
        if (!json_builder_append(&array, IS_KNOWN(*m) ? json_real(m->v) : json_null()))
            break;
    }
    return array;
}

static json_t *candidates_to_json(const struct disabled_sms *d)
{
    json_t *array = json_array();

    if (d->listed > FINGERPRINT_MAX_CANDIDATES ||
        (d->listed > 0 && d->sm_count.v > FINGERPRINT_MAX_DISABLED)) {
        json_decref(array);
        return NULL;
    }
    for (uint32_t k = 0; k < d->listed; k++) {
        json_t *sms = json_array();

        for (uint32_t i = 0; i < d->sm_count.v; i++)
            if (!json_builder_append(&sms, json_integer(d->candidates[k][i])))
                break;
        if (!json_builder_append(&array, sms))
            break;
    }
    return array;
}

/* What each group lacks follows from its size; readers use it, and it is never read back. */
static json_t *lost_to_json(const struct topology *t)
{
    json_t *array = json_array();

    for (uint32_t g = 0; IS_KNOWN(t->disabled.sm_count) && g < t->partition.group_count; g++) {
        const uint32_t sms = t->groups[g].sm_count;

        if (sms < t->nominal_group_sms.v &&
            !json_builder_append(&array, json_pack("{s:I,s:I}", "group", (json_int_t)g, "sms",
                                                   (json_int_t)t->nominal_group_sms.v - sms)))
            break;
    }
    return array;
}

/* ---- members ---- */

/* `first` is the place of the first one. `in_columns`: as of object_to_json. */
static json_t *objects_to_json(const struct object *o, const struct place *first, uint32_t count,
                               bool in_columns)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < count; i++) {
        struct place element = *first;

        element.base = (const char *)first->base + i * o->size;
        element.index = i;

        if (!json_builder_append(&array, object_to_json(o, &element, in_columns)))
            break;
    }
    return array;
}

static struct place inside(const struct place *at, const struct member *m)
{
    return (struct place){
        .fp = at->fp, .base = member_at(m, at->base), .planner_only = at->planner_only};
}

static void write_list(struct json_builder *o, const struct member *m, const struct place *at)
{
    const uint32_t count = member_count(m, at->base);
    const struct place first = inside(at, m);
    json_t *array;
    json_t *columns;

    if ((m->optional || at->planner_only) && count == 0)
        return;
    if (count > m->max_count) { /* it may not have been checked yet */
        o->failed = true;
        return;
    }
    array = objects_to_json(m->object, &first, count, m->columns != NULL);
    if (at->planner_only) {
        columns = json_columns_from_rows(array);
        json_decref(array);
        array = columns;
    }
    json_builder_value(o, m->name, array);
    if (m->columns && !at->planner_only)
        evidence_write(o, m->columns, m->object, first.base, count);
}

static void write_notes(struct json_builder *o, const struct member *m, const struct place *at)
{
    const uint32_t count = member_count(m, at->base);
    const char *const notes = member_at(m, at->base);
    json_t *array = count <= m->max_count ? json_array() : NULL;

    for (uint32_t i = 0; i < count; i++)
        if (!json_builder_append(&array, json_new_text(notes + i * (m->size / m->max_count))))
            break;
    json_builder_value(o, m->name, array);
}

/* What is not a number or a text. */
static void write_array(struct json_builder *o, const struct member *m, const struct place *at)
{
    const struct topology *const t = &at->fp->topology;
    const void *const v = member_at(m, at->base);
    const uint16_t *const two = v;
    json_t *array = NULL;
    bool omitted = false;

    switch (m->type) {
    case MEMBER_PARTITION:
        omitted = ((const struct sm_partition *)v)->group_count == 0;
        array = omitted ? NULL : partition_to_json(v);
        break;
    case MEMBER_TWO_GROUPS:
        omitted = m->optional && member_state(m - 1, at->base).known != MAYBE_KNOWN;
        array = omitted ? NULL : json_pack("[i,i]", (int)two[0], (int)two[1]);
        break;
    case MEMBER_CANDIDATES:
        array = candidates_to_json(&t->disabled);
        break;
    case MEMBER_LOST:
        array = lost_to_json(t);
        break;
    case MEMBER_GROUP_SMS:
        array = group_sms_to_json(&t->partition, at->index);
        break;
    default: /* MEMBER_GROUP_PENALTIES */
        array = group_penalties_to_json(t, at->index, &omitted);
        omitted = !omitted;
        break;
    }
    if (omitted)
        json_decref(array);
    else
        json_builder_value(o, m->name, array);
}

/* A number that was not measured, and is optional or would be unknown without being written. */
static bool is_omitted(const struct member *m, const struct place *at)
{
    const struct member_state s = member_state(m, at->base);

    return (m->optional || at->planner_only) && member_is_maybe(m) && s.known == MAYBE_UNKNOWN &&
           (s.reason == REASON_NOT_MEASURED || s.reason == REASON_NONE);
}

static void write_member(struct json_builder *o, const struct member *m, const struct place *at)
{
    const struct place inner = inside(at, m);
    const struct json_field field = member_field(m);

    if (member_is_scalar(m)) {
        if (!is_omitted(m, at))
            json_fields_build(o, &field, 1, 0, at->base);
        return;
    }
    switch (m->type) {
    case MEMBER_INDEX:
        json_builder_u64(o, m->name, at->index);
        break;
    case MEMBER_OBJECT:
        if (m->optional && member_is_unmeasured(m, at->base))
            break;
        json_builder_value(o, m->name, object_to_json(m->object, &inner, false));
        break;
    case MEMBER_LIST:
        write_list(o, m, at);
        break;
    case MEMBER_NOTES:
        write_notes(o, m, at);
        break;
    default:
        write_array(o, m, at);
        break;
    }
}

static void write_members(struct json_builder *out, const struct object *o, const struct place *at)
{
    for (const struct member *m = o->members; m < o->members + o->count && !out->failed; m++)
        if (m->name && (m->for_planner || !at->planner_only))
            write_member(out, m, at);
}

/* `in_columns`: its evidence is beside its list. */
static json_t *object_to_json(const struct object *o, const struct place *at, bool in_columns)
{
    struct json_builder out;

    json_builder_begin(&out);
    write_members(&out, o, at);
    if (object_next_evidence(o, NULL) && !in_columns && !at->planner_only)
        evidence_write(&out, "evidence", o, at->base, 1);
    return json_builder_end(&out);
}

/* ---- what is kept ---- */

static bool same_source(const struct fingerprint_source *a, const struct fingerprint_source *b)
{
    return strcmp(a->id, b->id) == 0 && a->depth == b->depth && a->taken_at == b->taken_at;
}

/* The parts from the same measurement as part `first`. */
static json_t *parts_to_json(const struct fingerprint *fp, uint32_t first)
{
    json_t *array = json_array();
    char name[PART_NAME_BYTES];

    for (uint32_t part = first; part < PART_COUNT; part++) {
        if (fp->kept[part].id[0] && same_source(&fp->kept[part], &fp->kept[first]) &&
            !json_builder_append(
                &array, json_new_text(fingerprint_part_name((enum fingerprint_part)part, name))))
            break;
    }
    return array;
}

/* Is part `part` the first one of its measurement? */
static bool is_first(const struct fingerprint *fp, uint32_t part)
{
    for (uint32_t before = 0; before < part; before++)
        if (same_source(&fp->kept[before], &fp->kept[part]))
            return false;
    return fp->kept[part].id[0] != '\0';
}

/* A measurement, and the field `name` with what is said of it. */
static json_t *source_to_json(const struct fingerprint_source *source, const char *name,
                              json_t *take)
{
    const struct place at = {.base = source};
    struct json_builder o;

    json_builder_begin(&o);
    write_members(&o, &source_object, &at);
    json_builder_value(&o, name, take);
    return json_builder_end(&o);
}

static void write_kept(struct json_builder *o, const struct fingerprint *fp)
{
    json_t *array = fp->measurement_id[0] ? json_array() : NULL;

    for (uint32_t part = 0; array && part < PART_COUNT; part++)
        if (is_first(fp, part))
            (void)json_builder_append(
                &array, source_to_json(&fp->kept[part], "parts", parts_to_json(fp, part)));
    if (fp->measurement_id[0]) {
        json_builder_text(o, "measurement_id", fp->measurement_id);
        json_builder_text(o, "measurement_depth", depth_name(fp->measurement_depth));
        if (array && json_array_size(array) == 0)
            json_decref(array);
        else
            json_builder_value(o, "kept", array);
    }
    if (fp->dropped.id[0])
        json_builder_value(
            o, "dropped",
            source_to_json(&fp->dropped, "reason", json_new_text(fp->dropped_reason)));
}

/* Everything but the id. */
static json_t *body_to_json(const struct fingerprint *fp, bool planner_only)
{
    const struct place at = {.fp = fp, .base = fp, .planner_only = planner_only};
    struct json_builder o;

    if (fp->topology.partition.group_count > REACH_MAX_GROUPS)
        return NULL; /* it may not have been checked yet */
    json_builder_begin(&o);
    json_builder_value(&o, "gpu", identity_json_new(&fp->gpu));
    json_builder_text(&o, "origin", origin_name(fp->gpu.origin));
    write_members(&o, &fingerprint_object, &at);
    write_kept(&o, fp);
    return json_builder_end(&o);
}

json_t *fingerprint_planner_to_json(const struct fingerprint *fp)
{
    return body_to_json(fp, true);
}

json_t *fingerprint_member_to_json(const struct fingerprint *fp, const char *name)
{
    const struct member *const m = object_member(&fingerprint_object, name);
    const struct place at = {.fp = fp, .base = member_at(m, fp)};

    if (m->type == MEMBER_LIST)
        return objects_to_json(m->object, &at, member_count(m, fp), false);
    return object_to_json(m->object, &at, false);
}

/* ---- the id ---- */

char *fingerprint_json_text(const json_t *body, char *out_id)
{
    struct json_writer text;
    size_t bytes = 0;
    char *out;

    json_writer_begin(&text, TEXT_ROOM);
    text.sorted = true;
    json_writer_value(&text, NULL, body);
    out = json_writer_end(&text, &bytes);
    if (!out)
        return NULL;
    out[--bytes] = '\0'; /* the line feed */
    (void)snprintf(out_id, FINGERPRINT_ID_BYTES, "fp%016" PRIx64,
                   hash_bytes(HASH_START, out, bytes));
    return out;
}

enum status fingerprint_id(const struct fingerprint *fp, char *out, struct err *err)
{
    json_t *const body = body_to_json(fp, false);
    char *const text = body ? fingerprint_json_text(body, out) : NULL;

    json_decref(body);
    free(text);
    if (text)
        return STATUS_OK;
    out[0] = '\0';
    return err_set(err, STATUS_NO_MEMORY, "no memory for the id of a fingerprint");
}

/* ---- the document ---- */

/* The id comes first: readers look for it. */
json_t *fingerprint_to_json(const struct fingerprint *fp)
{
    char id[FINGERPRINT_ID_BYTES];
    json_t *const body = body_to_json(fp, false);
    char *const text = body ? fingerprint_json_text(body, id) : NULL;
    struct json_builder o;

    free(text);
    if (!text) {
        json_decref(body);
        return NULL;
    }
    json_builder_begin(&o);
    json_builder_text(&o, "id", id);
    if (!o.failed && json_object_update(o.object, body) != 0)
        o.failed = true;
    json_decref(body);
    return json_builder_end(&o);
}
