/* member.c: see member.h. */
#include "fingerprint/member.h"

#include "base/format_size.h"
#include "base/units.h"
#include "fingerprint/topology.h"

#include <stdio.h>

const struct member *object_member(const struct object *o, const char *name)
{
    for (const struct member *m = o->members; m < o->members + o->count; m++)
        if (m->name && strcmp(m->name, name) == 0)
            return m;
    return NULL;
}

/* ---- names ---- */

static const struct {
    const char *end, *unit;
} units[] = {{"bytes_per_cycle", "bytes per cycle"},
             {"bytes", "bytes"},
             {"cycles", "cycles"},
             {"gbps", "GB/s"},
             {"ns", "ns"},
             {"ms", "ms"},
             {"khz", "kHz"}};
enum { UNIT_COUNT = sizeof(units) / sizeof *units };

/* Returns the index of the unit at the end of the name, or UNIT_COUNT if the name has no unit.
 * `*out` gets the place of the unit in the name. */
static size_t find_unit(const struct member *m, const char **out)
{
    const size_t length = m->name ? strlen(m->name) : 0;

    for (size_t i = 0; m->name && i < UNIT_COUNT; i++) {
        const size_t n = strlen(units[i].end);

        if (length < n || strcmp(m->name + length - n, units[i].end) != 0)
            continue;
        *out = m->name + length - n;
        if (length == n || (*out)[-1] == '_')
            return i;
    }
    return UNIT_COUNT;
}

const char *member_unit(const struct member *m)
{
    const char *end;
    const size_t i = find_unit(m, &end);

    if (i < UNIT_COUNT)
        return units[i].unit;
    return m->type == MEMBER_U64_MAYBE ? "bytes" : ""; /* of pages */
}

char *member_label(const struct member *m, char *out)
{
    const char *end = NULL;
    const size_t i = m->label ? UNIT_COUNT : find_unit(m, &end);
    const char *const name = m->label ? m->label : m->name ? m->name : "";
    size_t n = i < UNIT_COUNT && end > name ? (size_t)(end - name) - 1 : strlen(name);

    if (i < UNIT_COUNT && end == name)
        return strcpy(out, units[i].unit);
    (void)snprintf(out, MEMBER_LABEL_BYTES, "%.*s", (int)n, name);
    for (char *c = out; !m->label && *c; c++)
        *c = *c == '_' ? ' ' : *c;
    return out;
}

/* ---- keys ---- */

enum { KEY_BYTES = 64 };

/* Prints a key. If `exact` is true, a length is printed in a form that can be read back. */
static char *print_key(const struct member *m, const void *base, uint32_t index, bool exact,
                       char *out)
{
    const void *const v = member_at(m, base);

    if (m->type == MEMBER_NAME)
        (void)snprintf(out, KEY_BYTES, "%s", m->names->name(*(const unsigned *)v));
    else if (m->type != MEMBER_U64)
        (void)snprintf(out, KEY_BYTES, "%u",
                       m->type == MEMBER_INDEX ? index : *(const uint32_t *)v);
    else if (exact)
        units_print_bytes(*(const uint64_t *)v, out, KEY_BYTES);
    else
        format_size(*(const uint64_t *)v, out);
    return out;
}

const struct member *object_next_key(const struct object *o, const struct member *m)
{
    for (m = m ? m + 1 : o->members; m < o->members + o->count; m++)
        if (m->key && m->type != MEMBER_TEXT)
            return m;
    return NULL;
}

char *object_key(const struct object *o, const void *base, uint32_t index, char *out, size_t size)
{
    char key[KEY_BYTES];
    size_t n = 0;

    out[0] = '\0';
    for (const struct member *m = object_next_key(o, NULL); m && n < size;
         m = object_next_key(o, m))
        n += (size_t)snprintf(out + n, size - n, "%s%s", n > 0 ? "," : "",
                              print_key(m, base, index, true, key));
    return out;
}

char *member_element(const struct member *list, const void *base, uint32_t index, char *out,
                     size_t size)
{
    const struct member *m = NULL;
    char key[KEY_BYTES];
    size_t n = 0;

    out[0] = '\0';
    for (const char *c = list->element; *c && n < size; c++) {
        m = *c == '%' ? object_next_key(list->object, m) : m;
        n += (size_t)snprintf(out + n, size - n, "%.*s", *c == '%' ? KEY_BYTES : 1,
                              *c == '%' ? print_key(m, base, index, false, key) : c);
    }
    return out;
}

int object_compare_keys(const struct object *o, const void *a, const void *b)
{
    int order = 0;

    for (const struct member *m = o->members; order == 0 && m < o->members + o->count; m++) {
        if (m->key)
            order = m->type == MEMBER_TEXT ? strcmp(member_at(m, a), member_at(m, b))
                                           : member_compare(m, a, m, b);
    }
    return order;
}

/* ---- values ---- */

double member_value(const struct member *m, const void *base)
{
    const void *const v = member_at(m, base);

    switch (m->type) {
    case MEMBER_U32:
    case MEMBER_NAME:
        return *(const uint32_t *)v;
    case MEMBER_U64:
        return (double)*(const uint64_t *)v;
    case MEMBER_F64:
        return *(const double *)v;
    case MEMBER_U32_MAYBE:
        return ((const struct maybe_u32 *)v)->v;
    case MEMBER_U64_MAYBE:
        return (double)((const struct maybe_u64 *)v)->v;
    case MEMBER_F64_MAYBE:
        return ((const struct maybe_f64 *)v)->v;
    default:
        return 0;
    }
}

/* A double cannot hold all digits of a length. */
static uint64_t length_of(const struct member *m, const void *base)
{
    const void *const v = member_at(m, base);

    return m->type == MEMBER_U64 ? *(const uint64_t *)v : ((const struct maybe_u64 *)v)->v;
}

int member_compare(const struct member *m, const void *base, const struct member *n,
                   const void *other_base)
{
    const double v = member_value(m, base), w = member_value(n, other_base);

    if ((m->type == MEMBER_U64 || m->type == MEMBER_U64_MAYBE) && n->type == m->type) {
        const uint64_t a = length_of(m, base), b = length_of(n, other_base);

        return (a > b) - (a < b);
    }
    return (v > w) - (v < w);
}

/* An object is known if any of its numbers is known. */
static bool is_known(const struct member *m, const void *base)
{
    const void *const v = member_at(m, base);
    bool any = false;

    switch (m->type) {
    case MEMBER_NAME:
        return *(const unsigned *)v != 0;
    case MEMBER_PARTITION:
        return ((const struct sm_partition *)v)->group_count > 0;
    case MEMBER_OBJECT:
        for (uint32_t i = 0; i < m->object->count; i++)
            any |= member_is_maybe(&m->object->members[i]) && is_known(&m->object->members[i], v);
        return any;
    default:
        return member_is_maybe(m) && member_state(m, base).known == MAYBE_KNOWN;
    }
}

bool member_is_unmeasured(const struct member *m, const void *base, bool planner_only)
{
    bool touched = false;

    for (uint32_t i = 0; i < m->object->count; i++) {
        const struct member *const inner = &m->object->members[i];
        if (!member_is_maybe(inner) || (planner_only && !inner->for_planner))
            continue;
        const struct member_state s = member_state(inner, member_at(m, base));
        touched |= s.known != MAYBE_UNKNOWN ||
                   (s.reason != REASON_NOT_MEASURED && s.reason != REASON_NONE);
    }
    return !touched;
}

void object_set_reason(const struct object *o, void *base, enum reason reason)
{
    const struct member_state unknown = {MAYBE_UNKNOWN, reason};

    for (const struct member *m = o->members; m < o->members + o->count; m++)
        if (member_is_maybe(m) && member_state(m, base).known == MAYBE_UNKNOWN)
            memcpy((char *)base + m->offset, &unknown, sizeof unknown);
}

/* ---- evidence ---- */

static bool is_first_of_evidence(const struct object *o, const struct member *m)
{
    for (const struct member *before = o->members; before < m; before++)
        if (before->evidence == m->evidence)
            return false;
    return m->evidence > 0;
}

const struct member *object_next_evidence(const struct object *o, const struct member *m)
{
    for (m = m ? m + 1 : o->members; m < o->members + o->count; m++)
        if (is_first_of_evidence(o, m))
            return m;
    return NULL;
}

bool object_evidence_is_known(const struct object *o, const struct member *m, const void *base)
{
    bool known = false;

    for (const struct member *other = o->members; other < o->members + o->count; other++)
        known |= other->evidence == m->evidence && is_known(other, base);
    return known;
}
