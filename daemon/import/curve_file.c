/* curve_file.c: reads the curve text: a head with strides, then a row for each footprint.
 *
 *     #,1024,2048,4096,
 *     48,249,249,240,
 *     49,250,,,            49 MiB are a whole number of 1 MiB strides alone
 *
 * The benchmark prints footprints with six digits: 1500.06 for 1500.0625. So the number of pages is
 * rounded to the nearest integer. The difference must not exceed the error of six digits.
 */
#include "import/formats.h"

#include <stdlib.h>

enum { MILLION = 1000000, KIB_PER_MIB = 1024, MAX_FOOTPRINT_MIB = 16 << 20 };

/* The points of one stride that are not yet in an observation. */
struct column {
    uint64_t stride_kib;
    uint32_t count;
    uint64_t pages[PROBE_MAX_POINTS];
    uint32_t values[PROBE_MAX_POINTS];
};

struct table {
    uint32_t columns;
    bool closed; /* the head ends with a comma, so rows must too */
    uint32_t rows;
    uint64_t last_mib; /* footprint of the preceding row, in millionths */
    struct column column[IMPORT_MAX_STRIDES];
};

static enum status read_strides(struct lines *l, struct table *t, struct err *err)
{
    struct field rest = {l->at, l->bytes};
    struct field f;
    char shown[FIELD_TEXT_BYTES];

    (void)field_cut(&rest, ',', &f); /* the "#" */
    while (field_cut(&rest, ',', &f)) {
        uint64_t kib = 0;
        f = field_trim(f);
        if (f.bytes == 0 && !rest.at) {
            t->closed = true;
            break;
        }
        if (!field_u64(f, IMPORT_MAX_STRIDE_KIB, &kib) || kib == 0)
            return lines_wrong(l, err, "the stride '%s' is not a number of KiB from 1 to %d",
                               field_text(f, shown), IMPORT_MAX_STRIDE_KIB);
        if (t->columns == IMPORT_MAX_STRIDES)
            return lines_wrong(l, err, "has more than %d strides", IMPORT_MAX_STRIDES);
        if (t->columns > 0 && kib <= t->column[t->columns - 1].stride_kib)
            return lines_wrong(l, err, "the strides do not ascend");
        t->column[t->columns++].stride_kib = kib;
    }
    return t->columns > 0 ? STATUS_OK : lines_wrong(l, err, "has no strides");
}

/* Makes one observation from the points of a column. */
static enum status flush(struct column *c, struct observation_set *set, struct err *err)
{
    struct observation o = {0};

    if (c->count == 0)
        return STATUS_OK;
    o.spec = (struct probe_spec){
        .kind = PROBE_MEANS, .stride_bytes = c->stride_kib * KIB_PER_MIB, .point_count = c->count};
    o.result.value_count = c->count;
    o.result.values = calloc(c->count, sizeof *o.result.values);
    if (!o.result.values)
        return err_no_memory(err, "%u points", c->count);
    for (uint32_t i = 0; i < c->count; i++) {
        o.spec.points[i] = c->pages[i];
        o.result.values[i] = c->values[i];
    }
    c->count = 0;
    return observation_set_add(set, &o, err);
}

/* Returns half of the sixth digit of a footprint, in millionths of a MiB. */
static uint64_t print_error(uint64_t mib_millionths)
{
    uint64_t step = 1;
    for (uint64_t v = mib_millionths; v >= MILLION; v /= 10)
        step *= 10;
    return (step + 1) / 2;
}

static enum status count_pages(const struct lines *l, uint64_t mib_millionths, uint64_t stride_kib,
                               uint64_t *out, struct err *err)
{
    const uint64_t bytes_like = mib_millionths * KIB_PER_MIB; /* millionths of a KiB */
    const uint64_t stride = stride_kib * MILLION;
    const uint64_t slack = print_error(mib_millionths) * KIB_PER_MIB;
    const uint64_t pages = (bytes_like + stride / 2) / stride;
    const uint64_t exact = pages * stride;
    const uint64_t off = exact > bytes_like ? exact - bytes_like : bytes_like - exact;

    if (slack >= stride / 4)
        return lines_wrong(l, err,
                           "six digits do not determine the footprint to one page of %llu KiB",
                           (unsigned long long)stride_kib);
    if (pages == 0 || off > slack)
        return lines_wrong(l, err, "the footprint is not a multiple of the stride %llu KiB",
                           (unsigned long long)stride_kib);
    *out = pages;
    return STATUS_OK;
}

static enum status read_cell(const struct lines *l, struct column *c, uint64_t mib, struct field f,
                             struct observation_set *set, struct err *err)
{
    char shown[FIELD_TEXT_BYTES];

    if (f.bytes == 0)
        return STATUS_OK;
    enum status s = c->count == PROBE_MAX_POINTS ? flush(c, set, err) : STATUS_OK;
    if (s == STATUS_OK)
        s = count_pages(l, mib, c->stride_kib, &c->pages[c->count], err);
    if (s != STATUS_OK)
        return s;
    if (!field_cycles(f, &c->values[c->count]))
        return lines_wrong(l, err, "'%s' is not a number of cycles above 0 and up to %d",
                           field_text(f, shown), IMPORT_MAX_CYCLES);
    c->count += 1;
    return STATUS_OK;
}

static enum status read_row(struct lines *l, struct table *t, struct observation_set *set,
                            struct err *err)
{
    struct field rest = {l->at, l->bytes};
    struct field f;
    char shown[FIELD_TEXT_BYTES];
    uint64_t mib = 0;
    uint32_t seen = 0;
    enum status s = STATUS_OK;

    (void)field_cut(&rest, ',', &f);
    f = field_trim(f);
    if (!field_millionths(f, MAX_FOOTPRINT_MIB, &mib) || mib == 0)
        return lines_wrong(l, err, "'%s' is not a footprint in MiB above 0 and up to %d",
                           field_text(f, shown), MAX_FOOTPRINT_MIB);
    if (mib <= t->last_mib)
        return lines_wrong(l, err, "the footprints do not ascend");
    if (t->rows++ == IMPORT_MAX_ROWS)
        return lines_wrong(l, err, "is behind the last of %d rows that are read", IMPORT_MAX_ROWS);
    t->last_mib = mib;
    while (s == STATUS_OK && field_cut(&rest, ',', &f)) {
        f = field_trim(f);
        if (seen == t->columns && t->closed && !rest.at && f.bytes == 0)
            return STATUS_OK;
        if (seen == t->columns)
            return lines_wrong(l, err, "has more than the %u columns of the head", t->columns);
        s = read_cell(l, &t->column[seen++], mib, f, set, err);
    }
    if (s == STATUS_OK && (seen < t->columns || t->closed))
        s = lines_wrong(l, err, "has fewer than the %u columns of the head: cut short?",
                        t->columns);
    return s;
}

/* Checks the end of the text. If the last row has no comma and no newline at its end, its last
 * number may be truncated.
 */
static enum status check_end(const struct lines *l, const struct table *t, struct err *err)
{
    if (t->rows == 0)
        return lines_wrong(l, err, "has no rows");
    if (!t->closed && !l->ended)
        return lines_wrong(l, err, "does not end: cut short?");
    return STATUS_OK;
}

enum status import_read_curves(struct lines *l, struct observation_set *set, struct err *err)
{
    struct table *const t = calloc(1, sizeof *t);
    enum status s;

    if (!t)
        return err_no_memory(err, "a table");
    s = read_strides(l, t, err);
    while (s == STATUS_OK) {
        s = lines_next(l, err);
        if (s == STATUS_OK && field_trim((struct field){l->at, l->bytes}).bytes > 0)
            s = read_row(l, t, set, err);
    }
    if (s == STATUS_NOT_FOUND)
        s = check_end(l, t, err);
    for (uint32_t i = 0; i < t->columns && s == STATUS_OK; i++)
        s = flush(&t->column[i], set, err);
    free(t);
    return s;
}
