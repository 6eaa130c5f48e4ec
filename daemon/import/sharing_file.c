/* sharing_file.c: reads the sharing text: a matrix of mean latencies with one row and one column
 * for each SM.
 *
 * The name of the file must contain the stride and the pages. Only means are read. With reduction
 * mode min, the benchmark reports the fastest load of a walk, and one load that hits is no evidence
 * about the other loads.
 */
#include "import/formats.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_PAGES = 1 << 24, KIB_BYTES = 1024 };

struct matrix {
    uint32_t sms;
    uint16_t ids[REACH_MAX_SMS];
    uint32_t *values; /* owned */
};

/* Reads the stride and the pages: "dir/TLBsharing-2048-65.txt" -> 2048, 65. */
static bool read_name(const char *name, uint64_t *stride_kib, uint64_t *pages)
{
    const char *const slash = strrchr(name, '/');
    const char *const base = slash ? slash + 1 : name;
    const char *const dot = strrchr(base, '.');
    size_t end = dot ? (size_t)(dot - base) : strlen(base);
    size_t at = end;

    while (at > 0 && base[at - 1] != '-')
        at--;
    if (at < 2 || !field_u64((struct field){base + at, end - at}, MAX_PAGES, pages))
        return false;
    end = at - 1;
    for (at = end; at > 0 && base[at - 1] != '-';)
        at--;
    return at > 0 &&
           field_u64((struct field){base + at, end - at}, IMPORT_MAX_STRIDE_KIB, stride_kib) &&
           *stride_kib > 0 && *pages > 0;
}

/* Reads the next field between blanks. Returns false if there is no further field. */
static bool next_word(struct field *rest, struct field *out)
{
    while (field_cut(rest, ' ', out)) {
        *out = field_trim(*out);
        if (out->bytes > 0)
            return true;
    }
    return false;
}

static enum status read_id(const struct lines *l, struct field f, uint16_t *out, struct err *err)
{
    char shown[FIELD_TEXT_BYTES];
    uint64_t id = 0;

    if (!field_u64(f, REACH_MAX_SMS - 1, &id))
        return lines_wrong(l, err, "'%s' is not an SM id from 0 to %d", field_text(f, shown),
                           REACH_MAX_SMS - 1);
    *out = (uint16_t)id;
    return STATUS_OK;
}

static enum status read_ids(struct lines *l, struct matrix *m, struct err *err)
{
    struct field rest = {l->at + 1, l->bytes - 1}; /* behind the "#" */
    struct field f;

    while (next_word(&rest, &f)) {
        uint16_t id = 0;
        const enum status s = read_id(l, f, &id, err);
        if (s != STATUS_OK)
            return s;
        if (m->sms > 0 && id <= m->ids[m->sms - 1])
            return lines_wrong(l, err, "the SMs do not ascend");
        m->ids[m->sms++] = id; /* ids ascend and are below REACH_MAX_SMS, so they fit */
    }
    return m->sms > 0 ? STATUS_OK : lines_wrong(l, err, "has no SMs");
}

static enum status read_row(struct lines *l, struct matrix *m, uint32_t row, struct err *err)
{
    struct field rest = {l->at, l->bytes};
    struct field f = {0};
    char shown[FIELD_TEXT_BYTES];
    uint16_t id = 0;
    uint32_t seen = 0;

    if (!next_word(&rest, &f))
        return lines_wrong(l, err, "is empty where the row of SM %u must be", m->ids[row]);
    const enum status s = read_id(l, f, &id, err);
    if (s != STATUS_OK)
        return s;
    if (id != m->ids[row])
        return lines_wrong(l, err, "is the row of SM %u, must be the row of SM %u", id,
                           m->ids[row]);
    while (next_word(&rest, &f)) {
        if (seen == m->sms)
            return lines_wrong(l, err, "has more than the %u columns of the head", m->sms);
        if (!field_cycles(f, &m->values[(size_t)row * m->sms + seen++]))
            return lines_wrong(l, err, "'%s' is not a number of cycles above 0 and up to %d",
                               field_text(f, shown), IMPORT_MAX_CYCLES);
    }
    if (seen < m->sms || (!l->ended && l->bytes > 0 && l->at[l->bytes - 1] != ' '))
        return lines_wrong(l, err, "has %u whole columns of %u: cut short?",
                           seen < m->sms ? seen : seen - 1, m->sms);
    return STATUS_OK;
}

static enum status read_matrix(struct lines *l, struct matrix *m, struct err *err)
{
    enum status s = read_ids(l, m, err);
    if (s != STATUS_OK)
        return s;
    REACH_ASSERT(m->sms > 0);
    m->values = calloc((size_t)m->sms * m->sms, sizeof *m->values);
    if (!m->values)
        return err_no_memory(err, "a matrix of %u SMs", m->sms);
    for (uint32_t row = 0; row < m->sms && s == STATUS_OK; row++) {
        s = lines_next(l, err);
        if (s == STATUS_NOT_FOUND)
            return lines_wrong(l, err, "ends after %u rows where there must be %u: cut short?", row,
                               m->sms);
        if (s == STATUS_OK)
            s = read_row(l, m, row, err);
    }
    return s;
}

enum status import_read_sharing(struct lines *l, const struct import_head *head,
                                struct observation_set *set, struct err *err)
{
    struct matrix m = {0};
    struct observation o = {0};
    uint64_t stride_kib = 0;
    uint64_t pages = 0;
    enum status s;

    if (!read_name(l->file, &stride_kib, &pages))
        return lines_wrong(l, err,
                           "the file's name must end in the stride in KiB and the number of pages, "
                           "as in TLBsharing-2048-65.txt: the text does not contain them");
    if (head->smallest)
        return lines_wrong(
            l, err,
            "reduction mode min reports a single load of a walk, which says nothing of the others");
    s = read_matrix(l, &m, err);
    if (s != STATUS_OK) {
        free(m.values);
        return s;
    }
    o.spec = (struct probe_spec){.kind = PROBE_MEAN_PAIRS,
                                 .stride_bytes = stride_kib * KIB_BYTES,
                                 .thrash_pages = (uint32_t)pages};
    o.result.sm_count = m.sms;
    memcpy(o.result.sm_ids, m.ids, m.sms * sizeof m.ids[0]);
    o.result.values = m.values;
    o.result.value_count = (size_t)m.sms * m.sms;
    return observation_set_add(set, &o, err);
}
