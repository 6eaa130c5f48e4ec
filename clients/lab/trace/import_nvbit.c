/* import_nvbit.c: imports the output of NVBit's mem_trace. It has a line for each launch, and a
 * line with 32 addresses for each memory instruction of a warp. Inactive lanes have address 0
 * (NVBit issue 130). All other lines belong to the traced program and are skipped. */
#include "clients/lab/trace/import_text.h"
#include "clients/lab/trace/number_set.h"

#include <stdlib.h>

enum { MAX_LAUNCHES = 1 << 20 };

/* Addresses of shared memory are offsets below this limit, where the driver maps no memory. */
enum { SHARED_END = 1 << 20 };

struct importer {
    struct text text;
    struct rlt_writer *out;
    struct import_counts *counts;
    uint64_t context;           /* context of the line */
    uint64_t lines;             /* lines that the tracer printed */
    struct number_set contexts; /* an index is the number of an application */
    struct number_set ids; /* launch ids with their contexts; an index is valid in launches[] */
    struct launch {
        uint32_t kernel; /* number of the kernel in the trace */
        uint32_t grid[3];
    } * launches;
    uint32_t launch_room;
    uint64_t last_context, last_id; /* key of last_place; valid if launch_room > 0 */
    uint32_t last_place;
};

static enum status no_memory(struct err *err)
{
    return err_set(err, STATUS_NO_MEMORY, "cannot allocate the launches: out of memory");
}

/* Finds the application of the line's context. Writes a new application to the trace. */
static enum status add_application(struct importer *m, uint32_t *out, struct err *err)
{
    const uint32_t before = m->contexts.count;
    char name[RLT_NAME_BYTES];
    *out = number_set_add(&m->contexts, m->context);
    if (*out == UINT32_MAX)
        return no_memory(err);
    (void)snprintf(name, sizeof name, "context 0x%llx", (unsigned long long)m->context);
    if (m->contexts.count > before)
        (void)rlt_write_app(m->out, name);
    return STATUS_OK;
}

/* Finds the index of a launch of the line's context. Makes room for a new launch. */
static enum status add_launch(struct importer *m, uint64_t id, uint32_t *out, struct err *err)
{
    uint32_t app;
    *out = m->last_place;
    if (m->launch_room > 0 && m->context == m->last_context && id == m->last_id)
        return STATUS_OK;
    if (add_application(m, &app, err) != STATUS_OK)
        return err->status;
    if (id > UINT32_MAX)
        return text_error(&m->text, err, "has a grid launch id above 2^32");
    *out = number_set_add(&m->ids, (uint64_t)app << 32 | id);
    if (*out == UINT32_MAX)
        return no_memory(err);
    if (*out >= MAX_LAUNCHES)
        return text_error(&m->text, err, "exceeds 2^20 launches: trace fewer launches");
    if (*out >= m->launch_room) {
        const uint32_t room = m->launch_room > 0 ? 2 * m->launch_room : 64;
        struct launch *const more = realloc(m->launches, room * sizeof *more);
        if (!more)
            return no_memory(err);
        m->launches = more;
        m->launch_room = room;
    }
    m->last_context = m->context;
    m->last_id = id;
    m->last_place = *out;
    return STATUS_OK;
}

/* Returns the launch of an access, or NULL after an error. A launch without a LAUNCH line becomes a
 * kernel without a name. */
static struct launch *find_launch(struct importer *m, uint64_t id, struct err *err)
{
    const uint32_t known = m->ids.count;
    struct rlt_kernel unnamed = {.app = 0};
    uint32_t at;
    if (add_launch(m, id, &at, err) != STATUS_OK)
        return NULL;
    if (m->ids.count == known)
        return &m->launches[at];
    if (add_application(m, &unnamed.app, err) != STATUS_OK)
        return NULL;
    m->launches[at] = (struct launch){.kernel = rlt_write_kernel(m->out, &unnamed)};
    return &m->launches[at];
}

/* "Kernel pc 0x.. - Kernel name NAME - grid launch id 3 - grid size 1,2,3 - block size 4,5,6 - .."
 */
static enum status read_launch(struct importer *m, struct span line, struct err *err)
{
    struct rlt_kernel k = {.app = 0};
    struct span name = line;
    struct span at = line;
    uint32_t place;
    uint64_t id;
    size_t length;
    if (!span_after_last(&at, " grid launch id ") || !span_decimal(&at, &id))
        return text_error(&m->text, err, "is a launch without a grid launch id");
    while (name.at < name.end && !span_skip(&name, "Kernel name "))
        name.at++;
    name.end = at.at;
    for (const char *p = name.at; p + 3 < at.at; p++) {
        if (memcmp(p, " - ", 3) == 0)
            name.end = p; /* the last separator before the id */
    }
    at = line;
    if (!span_after_last(&at, " grid size ") || !span_triple(&at, k.grid))
        return text_error(&m->text, err, "is a launch without a grid size");
    at = line;
    if (!span_after_last(&at, " block size ") || !span_triple(&at, k.block))
        return text_error(&m->text, err, "is a launch without a block size");
    length = (size_t)(name.end - name.at);
    length = length < sizeof k.name ? length : sizeof k.name - 1;
    memcpy(k.name, name.at, length);
    if (add_launch(m, id, &place, err) != STATUS_OK || add_application(m, &k.app, err) != STATUS_OK)
        return err->status;
    m->launches[place].kernel = rlt_write_kernel(m->out, &k);
    memcpy(m->launches[place].grid, k.grid, sizeof k.grid);
    return STATUS_OK;
}

static bool read_addresses(struct span *s, uint64_t addresses[RLT_LANES], uint32_t *out_mask)
{
    *out_mask = 0;
    for (uint32_t i = 0; i < RLT_LANES; i++) {
        if (!span_hex(s, &addresses[i]))
            return false;
        *out_mask |= (uint32_t)(addresses[i] != 0) << i;
    }
    return true;
}

static bool is_shared_side(const struct opcode *o, const uint64_t addresses[RLT_LANES])
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < RLT_LANES; i++)
        all |= addresses[i];
    return o->space != OPCODE_GLOBAL && all < SHARED_END;
}

/* Returns whether the instruction gets no record. Counts an instruction without a record. */
static bool count_left_out(struct importer *m, const struct opcode *o,
                           const uint64_t addresses[RLT_LANES], uint32_t mask)
{
    struct import_counts *const c = m->counts;
    if (opcode_count_left_out(o, c))
        return true;
    if (o->space == OPCODE_OTHER)
        c->other_memory++;
    else if (mask == 0)
        c->idle++;
    else if (is_shared_side(o, addresses))
        c->other_memory++;
    else if (!addresses_known(addresses, mask))
        c->left_out.unknown++;
    else
        return false;
    return true;
}

/* "grid_launch_id 3 - CTA 1,2,3 - warp 7 - LDG.E.64 - 0x.. 0x.. .." */
static enum status read_access(struct importer *m, struct span line, struct err *err)
{
    struct rlt_record r = {.gap = 0};
    uint64_t addresses[RLT_LANES];
    uint32_t block[3];
    uint64_t id;
    uint64_t warp;
    struct span name;
    struct launch *launch;
    struct opcode o;
    if (!span_skip(&line, "grid_launch_id ") || !span_decimal(&line, &id) ||
        !span_skip(&line, " - CTA ") || !span_triple(&line, block) ||
        !span_skip(&line, " - warp ") || !span_decimal(&line, &warp) || warp > UINT32_MAX ||
        !span_skip(&line, " - ") || !span_word(&line, &name) || !span_skip(&line, " - "))
        return text_error(&m->text, err, "is an incomplete access");
    if (!read_addresses(&line, addresses, &r.mask))
        return text_error(&m->text, err, "has fewer than 32 addresses: it may be truncated");
    o = opcode_parse(name);
    if (count_left_out(m, &o, addresses, r.mask))
        return STATUS_OK;
    launch = find_launch(m, id, err);
    if (!launch)
        return err->status;
    r.kernel = launch->kernel;
    r.block = block_number(launch->grid, block);
    r.warp = (uint32_t)warp;
    r.kind = o.kind;
    r.width_log2 = o.width_log2;
    rlt_set_lines(m->out, addresses, &r);
    rlt_write_record(m->out, &r);
    return STATUS_OK;
}

static enum status read_line(void *context, struct span line, struct err *err)
{
    struct importer *m = context;
    if (!span_skip(&line, "MEMTRACE: CTX ")) {
        m->counts->other_lines++;
        return STATUS_OK;
    }
    m->lines++;
    if (!span_hex(&line, &m->context) || !span_skip(&line, " - "))
        return text_error(&m->text, err, "has no context");
    if (span_skip(&line, "LAUNCH - "))
        return read_launch(m, line, err);
    return read_access(m, line, err);
}

enum status import_nvbit(FILE *in, struct rlt_writer *out, struct import_counts *counts,
                         struct err *err)
{
    struct importer m = {.out = out, .counts = counts};
    const enum status s = text_read(&m.text, in, read_line, &m, out, counts, err);
    free(m.launches);
    number_set_free(&m.contexts);
    number_set_free(&m.ids);
    if (s != STATUS_OK)
        return s;
    if (m.lines == 0)
        return err_set(
            err, STATUS_CORRUPT,
            "no line begins with \"MEMTRACE: CTX\": the file is not the output of mem_trace");
    return import_end(counts, "there are launches but no accesses: the text may be truncated", out,
                      err);
}
