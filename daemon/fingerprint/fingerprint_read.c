/* fingerprint_read.c: reads documents that fingerprint_json.c of this or a newer release has
 * written, by the tables of members.h. Unknown fields are skipped, and missing fields stay unknown.
 * The fields present must be valid, and the whole must pass fingerprint_check.
 *
 * The "id" is not compared: a newer release hashes fields that are dropped here.
 */
#include "fingerprint/fingerprint_read.h"

#include "fingerprint/parts.h"
#include "types/identity_json.h"
#include "base/json_reader.h"
#include "fingerprint/evidence_json.h"
#include "fingerprint/fingerprint_check.h"
#include "fingerprint/members.h"

#include <stdio.h>

/* The fingerprint, the struct of one of its objects, and the index of that object if it is in a
 * list. */
struct place {
    struct fingerprint *fp;
    void *base;
    uint32_t index;
};

static void read_object(struct json_reader *in, const struct object *o, const struct place *at);

/* ---- arrays ---- */

static bool is_sm(const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) >= 0 &&
           json_integer_value(value) < REACH_MAX_SMS;
}

/* Puts the SMs of one array into `group`. Fails if an SM must be in one group only. */
static void group_sms_from_json(struct json_reader *in, const json_t *array, uint32_t group,
                                struct sm_partition *out)
{
    size_t i;
    const json_t *value;

    if (!json_is_array(array))
        json_reader_fail(in, "groups", "group %u must have an array of SM ids", group);
    json_array_foreach(array, i, value)
    {
        const json_int_t sm = json_integer_value(value);

        if (!is_sm(value))
            json_reader_fail(in, "groups", "SM ids must be integers from 0 to %d",
                             REACH_MAX_SMS - 1);
        else if (out->group_of_sm[sm] != FINGERPRINT_NO_GROUP)
            json_reader_fail(in, "groups", "SM %d is in two groups", (int)sm);
        if (!json_reader_ok(in))
            return;
        out->group_of_sm[sm] = (uint16_t)group;
    }
}

static void partition_from_json(struct json_reader *in, const char *name, struct sm_partition *out)
{
    const json_t *const groups = json_reader_array(in, name, REACH_MAX_GROUPS);

    for (uint32_t g = 0; g < json_array_size(groups); g++)
        group_sms_from_json(in, json_array_get(groups, g), g, out);
    out->group_count = (uint32_t)json_array_size(groups);
}

/* Reads the penalties, which are in the order of "sms". The SMs of the group were read before. */
static void group_penalties_from_json(struct json_reader *in, const char *name,
                                      struct topology *out)
{
    const json_t *const array = json_reader_array(in, name, REACH_MAX_SMS);
    const json_t *const sms = json_object_get(in->object, "sms");
    size_t i;
    const json_t *value;

    if (!json_reader_ok(in) || json_array_size(array) == 0)
        return;
    if (json_array_size(array) != json_array_size(sms)) {
        json_reader_fail(in, name, "must have a number for each of sms");
        return;
    }
    json_array_foreach(array, i, value)
    {
        const json_int_t sm = json_integer_value(json_array_get(sms, i));

        if (json_is_number(value))
            out->sm_miss_penalty_cycles[sm] = KNOWN_F64(json_number_value(value));
        else if (!json_is_null(value))
            json_reader_fail(in, name, "must be numbers or null");
    }
}

static void two_groups_from_json(struct json_reader *in, const char *name, uint16_t *out)
{
    const uint32_t n = json_reader_u16_array(in, name, 2, REACH_MAX_GROUPS - 1, UINT32_MAX, out);

    if (json_reader_ok(in) && n != 2)
        json_reader_fail(in, name, "must be two groups");
}

static void candidates_from_json(struct json_reader *in, const char *name, struct disabled_sms *out)
{
    const json_t *const candidates = json_reader_array(in, name, FINGERPRINT_MAX_CANDIDATES);
    size_t i;
    const json_t *value;

    for (uint32_t k = 0; json_reader_ok(in) && k < json_array_size(candidates); k++) {
        const json_t *const sms = json_array_get(candidates, k);

        out->listed = k + 1;
        if (!json_is_array(sms) || json_array_size(sms) != out->sm_count.v ||
            json_array_size(sms) > FINGERPRINT_MAX_DISABLED) {
            json_reader_fail(in, name, "element %u must be an array of sm_count SM ids", k);
            return;
        }
        json_array_foreach(sms, i, value)
        {
            if (is_sm(value))
                out->candidates[k][i] = (uint16_t)json_integer_value(value);
            else
                json_reader_fail(in, name, "SM ids must be integers from 0 to %d",
                                 REACH_MAX_SMS - 1);
        }
    }
}

static void notes_from_json(struct json_reader *in, const struct member *m, const struct place *at)
{
    const json_t *const notes = json_reader_array(in, m->name, m->max_count);
    const size_t room = m->size / m->max_count;

    for (uint32_t i = 0; i < json_array_size(notes); i++) {
        const json_t *const note = json_array_get(notes, i);

        if (!json_is_string(note) || json_string_length(note) >= room) {
            json_reader_fail(in, m->name, "element %u must be a string of at most %zu bytes", i,
                             room - 1);
            return;
        }
        (void)snprintf((char *)at->base + m->offset + i * room, room, "%s",
                       json_string_value(note));
        *member_counter(m, at->base) = i + 1;
    }
}

/* ---- members ---- */

/* Adds the values of a column to the rows, and adds missing rows. Returns false if the column is
 * not an array or memory runs out. */
static bool put_column(json_t *rows, const char *name, const json_t *column)
{
    bool fine = json_is_array(column);
    json_t *value;
    size_t i;

    json_array_foreach(column, i, value)
    {
        if (fine && i == json_array_size(rows))
            fine = json_array_append_new(rows, json_object()) == 0;
        if (fine && !json_is_null(value))
            fine = json_object_set(json_array_get(rows, i), name, value) == 0;
    }
    return fine;
}

/* Returns a new list of objects that is made from columns, or NULL if a column is not an array or
 * memory runs out. */
static json_t *rows_of_columns(const json_t *columns)
{
    json_t *const rows = json_array();
    bool fine = rows != NULL;
    const char *name;
    json_t *column;

    json_object_foreach((json_t *)(uintptr_t)columns, name, column)
    {
        fine = fine && put_column(rows, name, column);
    }
    if (fine)
        return rows;
    json_decref(rows);
    return NULL;
}

/* Returns a new reference to a list, which may be written in columns (write_columns in
 * fingerprint_json.c).
 */
static json_t *rows_from_json(struct json_reader *in, const struct member *m)
{
    const json_t *const columns = json_object_get(in->object, m->name);
    json_t *rows;

    if (!json_is_object(columns))
        return json_incref((json_t *)(uintptr_t)json_reader_array(in, m->name, m->max_count));
    rows = rows_of_columns(columns);
    if (!rows || json_array_size(rows) > m->max_count)
        json_reader_fail(in, m->name, "must have columns of at most %u elements", m->max_count);
    return rows;
}

static void read_list(struct json_reader *outer, const struct member *m, const struct place *at)
{
    json_t *const array = rows_from_json(outer, m);
    char *const first = (char *)at->base + m->offset;

    for (uint32_t i = 0; json_reader_ok(outer) && i < json_array_size(array); i++) {
        const struct place element = {
            .fp = at->fp, .base = first + i * m->object->size, .index = i};
        struct json_reader in;

        json_reader_begin_inside(&in, outer, json_array_get(array, i), m->name, (int)i);
        read_object(&in, m->object, &element);
        json_reader_absorb(outer, json_reader_end(&in));
        *member_counter(m, at->base) = i + 1;
    }
    json_decref(array);
    if (m->columns)
        evidence_read(outer, m->columns, m->object, first, member_count(m, at->base));
}

static void read_inner(struct json_reader *outer, const struct member *m, const struct place *at)
{
    const json_t *const json = json_reader_object(outer, m->name);
    const struct place inner = {.fp = at->fp, .base = (char *)at->base + m->offset};
    struct json_reader in;

    if (!json)
        return;
    json_reader_begin_inside(&in, outer, json, m->name, -1);
    read_object(&in, m->object, &inner);
    json_reader_absorb(outer, json_reader_end(&in));
}

static void read_index(struct json_reader *in, const char *name, uint32_t index)
{
    uint32_t id = index;

    json_reader_u32(in, name, REACH_MAX_GROUPS, &id);
    if (id != index)
        json_reader_fail(in, name, "must be %u, its index", index);
}

static void group_from_json(struct json_reader *in, const char *name, const struct place *at,
                            uint32_t *out_sms)
{
    const json_t *const sms = json_reader_array(in, name, REACH_MAX_SMS);

    if (sms)
        group_sms_from_json(in, sms, at->index, &at->fp->topology.partition);
    *out_sms = (uint32_t)json_array_size(sms);
}

static void read_array(struct json_reader *in, const struct member *m, const struct place *at)
{
    void *const v = (char *)at->base + m->offset;

    switch (m->type) {
    case MEMBER_PARTITION:
        partition_from_json(in, m->name, v);
        break;
    case MEMBER_TWO_GROUPS:
        if (!m->optional || member_state(m - 1, at->base).known == MAYBE_KNOWN)
            two_groups_from_json(in, m->name, v);
        break;
    case MEMBER_CANDIDATES:
        candidates_from_json(in, m->name, &at->fp->topology.disabled);
        break;
    case MEMBER_NOTES:
        notes_from_json(in, m, at);
        break;
    case MEMBER_GROUP_SMS:
        group_from_json(in, m->name, at, v);
        break;
    case MEMBER_GROUP_PENALTIES:
        group_penalties_from_json(in, m->name, &at->fp->topology);
        break;
    default: /* MEMBER_LOST */
        break;
    }
}

static void read_member(struct json_reader *in, const struct member *m, const struct place *at)
{
    const struct json_field field = member_field(m);

    if (member_is_scalar(m)) {
        json_fields_read(in, &field, 1, 0, at->base);
        return;
    }
    switch (m->type) {
    case MEMBER_INDEX:
        read_index(in, m->name, at->index);
        break;
    case MEMBER_OBJECT:
        read_inner(in, m, at);
        break;
    case MEMBER_LIST:
        read_list(in, m, at);
        break;
    default:
        read_array(in, m, at);
        break;
    }
}

static void read_object(struct json_reader *in, const struct object *o, const struct place *at)
{
    for (const struct member *m = o->members; m < o->members + o->count; m++)
        if (m->name)
            read_member(in, m, at);
    if (object_next_evidence(o, NULL))
        evidence_read(in, "evidence", o, at->base, 1);
}

/* ---- what is kept ---- */

/* Returns the part called `name`, or PART_COUNT if there is no such part, for example of a newer
 * release. */
static uint32_t find_part(const char *name)
{
    char known[PART_NAME_BYTES];
    uint32_t part = 0;

    while (part < PART_COUNT &&
           strcmp(name, fingerprint_part_name((enum fingerprint_part)part, known)) != 0)
        part++;
    return part;
}

static void source_from_json(struct json_reader *in, struct fingerprint_source *out)
{
    read_object(in, &source_object, &(struct place){.base = out});
}

static void kept_from_json(struct json_reader *in, struct fingerprint *out)
{
    const json_t *const parts = json_reader_array(in, "parts", PART_COUNT);
    struct fingerprint_source source = {.id = ""};

    source_from_json(in, &source);
    for (size_t i = 0; i < json_array_size(parts); i++) {
        const char *const name = json_string_value(json_array_get(parts, i));
        const uint32_t part = name ? find_part(name) : (uint32_t)PART_COUNT;

        if (!name)
            json_reader_fail(in, "parts", "element %zu must be a string", i);
        else if (part < PART_COUNT)
            out->kept[part] = source;
    }
}

static void read_kept(struct json_reader *in, struct fingerprint *out)
{
    const json_t *const kept = json_reader_array(in, "kept", PART_COUNT);
    const json_t *const dropped = json_reader_object(in, "dropped");
    const char *const depth = json_reader_word(in, "measurement_depth");
    struct json_reader inner;

    json_reader_text(in, "measurement_id", out->measurement_id, sizeof out->measurement_id);
    if (depth && !depth_from_name(depth, &out->measurement_depth))
        json_reader_fail(in, "measurement_depth", "must be quick, full, memory or matrix");
    for (size_t i = 0; i < json_array_size(kept); i++) {
        json_reader_begin_inside(&inner, in, json_array_get(kept, i), "kept", (int)i);
        kept_from_json(&inner, out);
        json_reader_absorb(in, json_reader_end(&inner));
    }
    if (out->measurement_id[0] && !depth) /* older documents have no measurement_depth */
        fingerprint_set_depth(out, out->depth);
    if (dropped) {
        json_reader_begin_inside(&inner, in, dropped, "dropped", -1);
        source_from_json(&inner, &out->dropped);
        json_reader_text(&inner, "reason", out->dropped_reason, sizeof out->dropped_reason);
        json_reader_absorb(in, json_reader_end(&inner));
    }
}

/* ---- the whole ---- */

/* The document contains the origin twice. If the two differ, the document is rejected, because a
 * simulated number could otherwise be taken for a measured number. */
static void identity_from_json(struct json_reader *outer, struct gpu_identity *out)
{
    const json_t *const json = json_reader_object(outer, "gpu");
    const char *const word = json_reader_word(outer, "origin");
    enum origin origin = ORIGIN_MEASURED;
    struct json_reader in;

    if (json) {
        json_reader_begin_inside(&in, outer, json, "gpu", -1);
        json_reader_absorb(outer, identity_json_read(&in, out));
    }
    if (!word)
        return;
    if (!origin_from_name(word, &origin))
        json_reader_fail(outer, "origin", "must be measured, simulated or imported");
    else if (json && json_object_get(json, "origin") && origin != out->origin)
        json_reader_fail(outer, "origin", "differs from gpu.origin");
    else
        out->origin = origin;
}

/* Inserts the kinds of memory that the document omits. */
static void insert_memory(struct fingerprint *fp)
{
    for (uint32_t i = FINGERPRINT_LEAST_MEMORY; i + 1 < MEMORY_PEER; i++) {
        if (fp->memory_count < i || fp->memory_count == FINGERPRINT_MAX_MEMORY ||
            (i < fp->memory_count && fp->memory[i].kind == (enum memory_kind)(i + 1)))
            continue;
        const struct memory_facts unmeasured = fp->memory[fp->memory_count];
        memmove(&fp->memory[i + 1], &fp->memory[i], (fp->memory_count - i) * sizeof fp->memory[0]);
        fp->memory[i] = unmeasured;
        fp->memory[i].kind = (enum memory_kind)(i + 1);
        fp->memory_count += 1;
    }
}

enum status fingerprint_from_json(const json_t *json, struct fingerprint *out, struct err *err)
{
    struct json_reader in;
    enum status s;

    fingerprint_init(out);
    json_reader_begin(&in, json, "", JSON_READER_LENIENT, STATUS_CORRUPT, err);
    identity_from_json(&in, &out->gpu);
    read_object(&in, &fingerprint_object, &(struct place){.fp = out, .base = out});
    insert_memory(out);
    read_kept(&in, out);
    s = json_reader_end(&in);
    return s == STATUS_OK ? fingerprint_check(out, err) : s;
}
