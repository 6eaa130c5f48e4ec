/* compare.c: compares each value of a fingerprint with its kind. The values of both are in the
 * order of metrics.h, so the next value is nearly always next to the last one. */
#include "compare/compare.h"

#include "compare/outlier.h"
#include "compare/share.h"

#include "types/name_of.h"
#include "base/text.h"
#include "base/format_size.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 256, NAMED_ODD = 4 };

const char *compare_verdict_name(enum compare_verdict v)
{
    static const char *const names[] = {"normal", "odd", "too-few", "not-judged", "unknown-kind"};

    return NAME_OF(names, v);
}

/* ---- rows ---- */

struct walk {
    struct comparison *c;
    uint32_t next; /* the probable place of the next name */
};

static struct compared *add_row(struct comparison *c, const char *name)
{
    struct compared *row;

    if (c->count == c->room) {
        const uint32_t room = c->room ? 2 * c->room : FIRST_ROOM;
        struct compared *const rows = realloc(c->rows, room * sizeof(*rows));
        c->no_memory |= !rows;
        if (!rows)
            return NULL;
        c->rows = rows;
        c->room = room;
    }
    row = &c->rows[c->count++];
    memset(row, 0, sizeof(*row));
    (void)snprintf(row->name, sizeof(row->name), "%s", name);
    return row;
}

/* Returns the index of the property called `name`, or the number of properties if there is no such
 * property. */
static uint32_t find(const struct reference_kind *k, uint32_t from, const char *name)
{
    for (uint32_t i = 0; i < k->property_count; i++) {
        const uint32_t at = (from + i) % k->property_count;
        if (strcmp(k->properties[at].name, name) == 0)
            return at;
    }
    return k->property_count;
}

static void add_property(void *self, const char *name, enum known known, double v, const char *text)
{
    struct walk *const w = self;
    const struct reference_kind *const k = w->c->kind;
    const uint32_t at =
        known == MAYBE_KNOWN && !share_is_key(name) ? find(k, w->next, name) : k->property_count;
    struct compared *const row = at < k->property_count ? add_row(w->c, name) : NULL;

    (void)v;
    if (!row)
        return;
    w->next = at + 1;
    row->property = &k->properties[at];
    (void)snprintf(row->text, sizeof(row->text), "%s", text);
    if (row->property->chips < OUTLIER_LEAST_CHIPS)
        row->verdict = COMPARE_TOO_FEW;
    else if (strcmp(row->property->usual, text) != 0 &&
             outlier_is_odd_property(row->property->have, row->property->chips))
        row->verdict = COMPARE_ODD;
}

/* Judges a number among the numbers of all chips that have it, including this chip. */
static enum compare_verdict judge(struct comparison *c, struct compared *row)
{
    const struct reference_number *const n = row->number;
    double *const all = malloc((n->chips + 1) * sizeof(*all));
    struct outlier_spread spread;

    c->no_memory |= !all;
    if (!all)
        return COMPARE_TOO_FEW;
    memcpy(all, n->values, n->chips * sizeof(*all));
    all[n->chips] = row->value;
    spread = outlier_compute_spread(all, n->chips + 1);
    free(all);
    row->bounded = outlier_bounds(&spread, &n->lent, &row->low, &row->high);
    row->borrowed = row->bounded && spread.chips < OUTLIER_LEAST_CHIPS;
    if (!row->bounded)
        return COMPARE_TOO_FEW;
    return row->value < row->low || row->value > row->high ? COMPARE_ODD : COMPARE_NORMAL;
}

static void add_number(void *self, const char *name, enum known known, double v, const char *text)
{
    struct walk *const w = self;
    const struct reference_kind *const k = w->c->kind;
    const struct reference_number *const number = known == MAYBE_KNOWN && metrics_is_of_chip(name)
                                                      ? reference_find_number(k, w->next, name)
                                                      : NULL;
    struct compared *const row = number ? add_row(w->c, name) : NULL;

    (void)text;
    if (!row)
        return;
    w->next = (uint32_t)(number - k->numbers) + 1;
    row->number = number;
    row->value = v;
    row->verdict = metrics_is_judged(name) ? judge(w->c, row) : COMPARE_NOT_JUDGED;
}

/* ---- the verdict ---- */

static void say_odd(struct comparison *c)
{
    uint32_t named = 0;
    int n = snprintf(c->sentence, sizeof(c->sentence), "Odd in ");

    for (uint32_t i = 0; i < c->count && named < NAMED_ODD; i++) {
        if (c->rows[i].verdict == COMPARE_ODD)
            n += snprintf(c->sentence + n, sizeof(c->sentence) - (size_t)n, "%s%s",
                          named++ > 0 ? ", " : "", c->rows[i].name);
    }
    if (c->odd > named)
        n += snprintf(c->sentence + n, sizeof(c->sentence) - (size_t)n, " and %u more",
                      c->odd - named);
    (void)snprintf(c->sentence + n, sizeof(c->sentence) - (size_t)n,
                   ": %u of %u numbers, among %u chips of its kind.", c->odd, c->judged,
                   c->kind->chips);
}

static void say_normal(struct comparison *c)
{
    (void)snprintf(c->sentence, sizeof(c->sentence),
                   "Normal: none of %u numbers is odd among %u chips of its kind.%s", c->judged,
                   c->kind->chips,
                   c->borrowed > 0
                       ? " This kind has few chips, so the spread is taken from other kinds."
                       : "");
}

static void conclude(struct comparison *c)
{
    for (uint32_t i = 0; i < c->count; i++) {
        c->odd += c->rows[i].verdict == COMPARE_ODD;
        c->borrowed += c->rows[i].borrowed;
        c->judged += c->rows[i].verdict == COMPARE_ODD || c->rows[i].verdict == COMPARE_NORMAL;
    }
    c->verdict = c->odd > 0 ? COMPARE_ODD : c->judged > 0 ? COMPARE_NORMAL : COMPARE_TOO_FEW;
    if (c->verdict == COMPARE_ODD)
        say_odd(c);
    else if (c->verdict == COMPARE_NORMAL)
        say_normal(c);
    else
        (void)snprintf(c->sentence, sizeof(c->sentence),
                       "Too few chips of its kind: the reference has %u, and %d are needed, or %d "
                       "and another kind with %d.",
                       c->kind->chips, OUTLIER_LEAST_CHIPS - 1, OUTLIER_LEAST_BORROWING - 1,
                       OUTLIER_LEAST_CHIPS);
}

static void say_unknown(const struct reference *reference, const struct fingerprint *fp,
                        struct comparison *c)
{
    char memory[FORMAT_SIZE_BYTES];

    c->verdict = COMPARE_UNKNOWN_KIND;
    if (reference)
        (void)snprintf(c->sentence, sizeof(c->sentence),
                       "Unknown kind: the reference has no %s with %u SMs and %s.", fp->gpu.name,
                       fp->gpu.sm_count, format_size(fp->gpu.memory_bytes, memory));
    else
        (void)snprintf(c->sentence, sizeof(c->sentence), "Unknown kind: %s.", COMPARE_NO_REFERENCE);
    text_sanitize(c->sentence); /* the name comes from a driver or a file */
}

/* Names a slow link before the numbers that it may have made odd. */
static void explain_link(const struct fingerprint *fp, struct comparison *c)
{
    char numbers[sizeof(c->sentence)];

    if (!link_is_slow(&fp->conditions, c->cause))
        return;
    c->low_generation = link_has_low_generation(&fp->conditions);
    c->few_lanes = link_has_few_lanes(&fp->conditions);
    memcpy(numbers, c->sentence, sizeof(numbers));
    (void)snprintf(c->sentence, sizeof(c->sentence), "Odd because %s. %.300s", c->cause, numbers);
    c->verdict = COMPARE_ODD;
}

enum status comparison_make(const struct reference *reference, const struct fingerprint *fp,
                            struct comparison *out, struct err *err)
{
    struct walk w = {.c = out};

    *out = (struct comparison){.kind = reference_find_kind(reference, &fp->gpu)};
    fingerprint_map_hash(&fp->topology.partition, out->map);
    if (!out->kind) {
        say_unknown(reference, fp, out);
        explain_link(fp, out);
        return STATUS_OK;
    }
    for (uint32_t i = 0; i < out->kind->map_count; i++) {
        if (strcmp(out->kind->maps[i].hash, out->map) == 0)
            out->chips_with_map = out->kind->maps[i].chips;
    }
    structure_visit(fp, add_property, &w);
    w.next = 0;
    metrics_visit(fp, add_number, &w);
    if (out->no_memory)
        return err_no_memory(err, "a comparison");
    conclude(out);
    explain_link(fp, out);
    return STATUS_OK;
}

void comparison_free(struct comparison *take)
{
    free(take->rows);
    *take = (struct comparison){.rows = NULL};
}

/* ---- JSON ---- */

static void write_kind(struct json_writer *t, const struct comparison *c)
{
    const struct reference_kind *const k = c->kind;

    if (!k) {
        json_writer_null(t, "kind");
        return;
    }
    json_writer_open(t, "kind", '{');
    json_writer_text(t, "name", k->name);
    json_writer_text(t, "compute_capability", k->compute_capability);
    json_writer_u64(t, "sm_count", k->sm_count);
    json_writer_u64(t, "memory_bytes", k->memory_bytes);
    json_writer_u64(t, "chips", k->chips);
    json_writer_close(t, '}');
}

static void write_map(struct json_writer *t, const struct comparison *c)
{
    if (!c->kind || !c->map[0]) {
        json_writer_null(t, "map");
        return;
    }
    json_writer_open(t, "map", '{');
    json_writer_text(t, "name", c->map);
    json_writer_u64(t, "chips", c->chips_with_map);
    json_writer_close(t, '}');
}

static void write_property(struct json_writer *t, const struct compared *row)
{
    json_writer_open(t, NULL, '{');
    json_writer_text(t, "name", row->name);
    json_writer_text(t, "value", row->text);
    json_writer_text(t, "usual", row->property->usual);
    json_writer_u64(t, "have", row->property->have);
    json_writer_u64(t, "chips", row->property->chips);
    json_writer_text(t, "verdict", compare_verdict_name(row->verdict));
    json_writer_close(t, '}');
}

static void write_number(struct json_writer *t, const struct compared *row)
{
    const struct reference_number *const n = row->number;
    const double unit = OUTLIER_SCALE * n->deviation;

    json_writer_open(t, NULL, '{');
    json_writer_text(t, "name", row->name);
    json_writer_real(t, "value", row->value);
    json_writer_u64(t, "chips", n->chips);
    json_writer_real(t, "least", n->least);
    json_writer_real(t, "median", n->median);
    json_writer_real(t, "most", n->most);
    if (unit > 1e-100)
        json_writer_figure_maybe(t, "deviations", KNOWN_F64(fabs(row->value - n->median) / unit));
    else
        json_writer_null(t, "deviations");
    if (row->bounded) {
        json_writer_real(t, "low", row->low);
        json_writer_real(t, "high", row->high);
    } else {
        json_writer_null(t, "low");
        json_writer_null(t, "high");
    }
    json_writer_bool(t, "borrowed", row->borrowed);
    json_writer_text(t, "verdict", compare_verdict_name(row->verdict));
    json_writer_close(t, '}');
}

void comparison_write(struct json_writer *t, const struct comparison *c)
{
    json_writer_text(t, "verdict", compare_verdict_name(c->verdict));
    json_writer_text(t, "sentence", c->sentence);
    json_writer_text_or_null(t, "cause", c->cause);
    json_writer_open(t, "odd", '[');
    if (c->low_generation)
        json_writer_text(t, NULL, "conditions.pcie_generation_used");
    if (c->few_lanes)
        json_writer_text(t, NULL, "conditions.pcie_lanes");
    for (uint32_t i = 0; i < c->count; i++) {
        if (c->rows[i].verdict == COMPARE_ODD)
            json_writer_text(t, NULL, c->rows[i].name);
    }
    json_writer_close(t, ']');
    write_kind(t, c);
    json_writer_open(t, "rule", '{');
    json_writer_u64(t, "least_chips", OUTLIER_LEAST_CHIPS);
    json_writer_u64(t, "least_borrowing", OUTLIER_LEAST_BORROWING);
    json_writer_real(t, "deviations", OUTLIER_DEVIATIONS);
    json_writer_real(t, "share", OUTLIER_SHARE);
    json_writer_close(t, '}');
    json_writer_u64(t, "judged", c->judged);
    write_map(t, c);
    json_writer_open(t, "properties", '[');
    for (uint32_t i = 0; i < c->count; i++) {
        if (c->rows[i].property)
            write_property(t, &c->rows[i]);
    }
    json_writer_close(t, ']');
    json_writer_open(t, "numbers", '[');
    for (uint32_t i = 0; i < c->count; i++) {
        if (c->rows[i].number)
            write_number(t, &c->rows[i]);
    }
    json_writer_close(t, ']');
}
