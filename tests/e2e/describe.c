/* describe.c: prints the tables from which other files are generated as JSON, for
 * tests/e2e/lib_generated.py. */
#include "base/json_writer.h"
#include "fingerprint/members.h"
#include "planner/params.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROOM = 64 << 10 };

static void text_or_null(struct json_writer *t, const char *name, const char *text)
{
    if (text)
        json_writer_text(t, name, text);
    else
        json_writer_null(t, name);
}

static const char *kind_name(enum param_kind kind)
{
    static const char *const names[] = {
        [PARAM_SIZE] = "size",   [PARAM_MAYBE_SIZE] = "maybe-size", [PARAM_ACCESS_SIZE] = "size",
        [PARAM_COUNT] = "count", [PARAM_LONG_COUNT] = "count",      [PARAM_FLAG] = "flag",
        [PARAM_REAL] = "real",   [PARAM_REAL_OR_0] = "real-or-0",   [PARAM_COMPLEMENT] = "share",
        [PARAM_WORD] = "word"};

    return names[kind];
}

/* Returns the type that a parameter has in the structs of reach.h. */
static const char *param_c_type(enum param_kind kind)
{
    switch (kind) {
    case PARAM_ACCESS_SIZE:
    case PARAM_COUNT:
        return "uint32_t";
    case PARAM_FLAG:
        return "bool";
    case PARAM_REAL:
    case PARAM_REAL_OR_0:
    case PARAM_COMPLEMENT:
        return "double";
    case PARAM_WORD:
        return "enum";
    default:
        return "uint64_t";
    }
}

static const char *form_name(enum param_form form)
{
    static const char *const names[] = {[PARAM_ABSENT] = NULL,
                                        [PARAM_ONE] = "one",
                                        [PARAM_ITEMS] = "items",
                                        [PARAM_EACH] = "each",
                                        [PARAM_EACH_ALWAYS] = "each-always"};

    return names[form];
}

static void describe_use(struct json_writer *t, enum planner_function function,
                         const struct param_use *use)
{
    json_writer_open(t, planner_function_name(function), '{');
    json_writer_text(t, "form", form_name(use->form));
    text_or_null(t, "member", use->member);
    text_or_null(t, "about", use->about);
    json_writer_bool(t, "needed", use->needed != NULL);
    json_writer_bool(t, "unless_alone", use->unless_alone);
    json_writer_close(t, '}');
}

static void describe_param(struct json_writer *t, const struct param *p)
{
    json_writer_open(t, NULL, '{');
    json_writer_text(t, "name", p->name);
    json_writer_text(t, "kind", kind_name(p->kind));
    json_writer_text(t, "type", param_c_type(p->kind));
    text_or_null(t, "operand", p->operand);
    if (p->kind == PARAM_LONG_COUNT) /* values that a double cannot hold exactly */
        json_writer_u64(t, "most", INT64_MAX);
    else
        json_writer_u64(t, "most", (uint64_t)p->most);
    text_or_null(t, "default", p->by_default);
    text_or_null(t, "about", p->about);
    json_writer_open(t, "words", '[');
    for (uint32_t i = 0; p->word && p->word(i); i++)
        json_writer_text(t, NULL, p->word(i));
    json_writer_close(t, ']');
    json_writer_open(t, "uses", '{');
    for (enum planner_function f = PLANNER_SCOPE; f < PLANNER_COUNT; f++) {
        if (p->uses[f].form)
            describe_use(t, f, &p->uses[f]);
    }
    json_writer_close(t, '}');
    json_writer_close(t, '}');
}

/* ---- daemon/fingerprint/members.c ---- */

static const char *type_name(enum member_type type)
{
    static const char *const names[] = {[MEMBER_U32] = "integer",
                                        [MEMBER_U64] = "integer",
                                        [MEMBER_F64] = "number",
                                        [MEMBER_U32_MAYBE] = "maybe-integer",
                                        [MEMBER_U64_MAYBE] = "maybe-integer",
                                        [MEMBER_F64_MAYBE] = "maybe-number",
                                        [MEMBER_TEXT] = "text",
                                        [MEMBER_TIME] = "time",
                                        [MEMBER_NAME] = "word",
                                        [MEMBER_OBJECT] = "object",
                                        [MEMBER_LIST] = "list",
                                        [MEMBER_NOTES] = "notes",
                                        [MEMBER_PARTITION] = "sm-lists",
                                        [MEMBER_TWO_GROUPS] = "two-groups",
                                        [MEMBER_CANDIDATES] = "candidates",
                                        [MEMBER_LOST] = "lost",
                                        [MEMBER_INDEX] = "index",
                                        [MEMBER_GROUP_SMS] = "sms",
                                        [MEMBER_GROUP_PENALTIES] = "sm-numbers"};

    return names[type];
}

static void describe_range(struct json_writer *t, const struct member *m)
{
    json_writer_bool(t, "positive", m->positive);
    json_writer_real(t, "min", m->min);
    json_writer_real(t, "max", m->max);
    json_writer_u64(t, "min_count", m->min_count);
    json_writer_u64(t, "max_count", m->max_count);
    json_writer_open(t, "words", '[');
    for (unsigned i = 0; m->names && i < m->names->count; i++)
        json_writer_text(t, NULL, m->names->name(i));
    json_writer_close(t, ']');
}

static void describe_member(struct json_writer *t, const struct member *m)
{
    static const char *const classes[] = {[CLASS_NONE] = NULL,
                                          [CLASS_DESIGN] = "design",
                                          [CLASS_MEASURED] = "measured",
                                          [CLASS_SPLIT] = "measured"};
    char label[MEMBER_LABEL_BYTES];

    json_writer_open(t, NULL, '{');
    json_writer_text(t, "name", m->name);
    json_writer_text(t, "type", type_name(m->type));
    json_writer_bool(t, "optional", m->optional);
    json_writer_bool(t, "key", m->key);
    json_writer_text(t, "doc", m->doc);
    json_writer_text(t, "unit", member_unit(m));
    json_writer_text(t, "label", member_label(m, label));
    text_or_null(t, "object", m->object ? m->object->name : NULL);
    text_or_null(t, "columns", m->columns);
    text_or_null(t, "class", classes[m->class]);
    text_or_null(t, "purpose", m->purpose);
    json_writer_bool(t, "for_planner", m->for_planner);
    describe_range(t, m);
    json_writer_close(t, '}');
}

/* Lists each object once; an object comes before the objects that it contains. */
static void describe_object(struct json_writer *t, const struct object *o)
{
    json_writer_open(t, o->name, '{');
    json_writer_text(t, "doc", o->doc);
    json_writer_open(t, "members", '[');
    for (const struct member *m = o->members; m < o->members + o->count; m++)
        if (m->name)
            describe_member(t, m);
    json_writer_close(t, ']');
    json_writer_open(t, "evidence", '[');
    for (const struct member *m = NULL; (m = object_next_evidence(o, m));)
        json_writer_text(t, NULL, m->of_evidence);
    json_writer_close(t, ']');
    json_writer_close(t, '}');
    for (const struct member *m = o->members; m < o->members + o->count; m++)
        if (m->object)
            describe_object(t, m->object);
}

static void describe_fingerprint(struct json_writer *t)
{
    json_writer_open(t, "fingerprint", '{');
    json_writer_open(t, "objects", '{');
    describe_object(t, &fingerprint_object);
    json_writer_close(t, '}');
    json_writer_open(t, "methods", '[');
    for (int k = EVIDENCE_NONE + 1; k < EVIDENCE_METHOD_COUNT; k++)
        json_writer_text(t, NULL, evidence_method_name((enum evidence_method)k));
    json_writer_close(t, ']');
    json_writer_open(t, "reasons", '[');
    for (int k = REASON_NONE + 1; k < REASON_COUNT; k++)
        json_writer_text(t, NULL, reason_slug((enum reason)k));
    json_writer_close(t, ']');
    json_writer_u64(t, "max_sms", REACH_MAX_SMS);
    json_writer_u64(t, "max_groups", REACH_MAX_GROUPS);
    json_writer_close(t, '}');
}

int main(void)
{
    const struct param *p;
    struct json_writer t;
    size_t bytes;
    char *text;

    json_writer_begin(&t, ROOM);
    json_writer_open(&t, NULL, '{');
    json_writer_open(&t, "params", '[');
    for (uint32_t i = 0; (p = param_at(i)); i++)
        describe_param(&t, p);
    json_writer_close(&t, ']');
    describe_fingerprint(&t);
    json_writer_close(&t, '}');
    text = json_writer_end(&t, &bytes);
    if (!text || puts(text) < 0)
        return EXIT_FAILURE;
    free(text);
    return EXIT_SUCCESS;
}
