/* import_nvbit.c: the output of NVBit's mem_trace. A line for each launch and one for each memory
 * instruction of a warp, with 32 addresses; lanes that take no part have address 0 (NVBit issue
 * 130). Everything else in the text is the program's own and is skipped.
 */
#include "clients/lab/import_text.h"

#include <stdlib.h>

enum { MAX_LAUNCHES = 1 << 20, NO_KERNEL = -1 };

/* Addresses of shared memory are offsets; the driver maps nothing so low. */
enum { SHARED_END = 1 << 20 };

struct importer {
    struct text text;
    struct rlt_writer *out;
    struct import_counts *counts;
    uint32_t app;
    uint32_t launch_count;
    struct launch {
        int32_t kernel; /* of the trace */
        uint32_t grid[3];
    } * launches; /* by grid launch id */
};

/* The launch with this id; NULL: `err` says why not. */
static struct launch *launch_of(struct importer *m, uint64_t id, struct err *err)
{
    if (id >= MAX_LAUNCHES) {
        (void)text_wrong(&m->text, err, "has a grid launch id above 2^20: trace fewer launches");
        return NULL;
    }
    if (id >= m->launch_count) {
        uint32_t count = m->launch_count > 0 ? m->launch_count : 64;
        while (count <= id)
            count *= 2;
        struct launch *more = realloc(m->launches, count * sizeof *more);
        if (!more) {
            (void)err_set(err, STATUS_NO_MEMORY, "no memory for the launches");
            return NULL;
        }
        for (uint32_t i = m->launch_count; i < count; i++)
            more[i] = (struct launch){.kernel = NO_KERNEL};
        m->launches = more;
        m->launch_count = count;
    }
    return &m->launches[id];
}

/* "Kernel pc 0x.. - Kernel name NAME - grid launch id 3 - grid size 1,2,3 - block size 4,5,6 - .."
 */
static enum status read_launch(struct importer *m, struct span line, struct err *err)
{
    struct rlt_kernel k = {.app = m->app};
    struct span name = line;
    struct span at = line;
    struct launch *launch;
    uint64_t id;
    size_t length;
    if (!span_after_last(&at, " grid launch id ") || !span_decimal(&at, &id))
        return text_wrong(&m->text, err, "is a launch without its grid launch id");
    while (name.at < name.end && !span_skip(&name, "Kernel name "))
        name.at++;
    name.end = at.at;
    for (const char *p = name.at; p + 3 < at.at; p++) {
        if (memcmp(p, " - ", 3) == 0)
            name.end = p; /* the last one before the id */
    }
    at = line;
    if (!span_after_last(&at, " grid size ") || !span_triple(&at, k.grid))
        return text_wrong(&m->text, err, "is a launch without its grid size");
    at = line;
    if (!span_after_last(&at, " block size ") || !span_triple(&at, k.block))
        return text_wrong(&m->text, err, "is a launch without its block size");
    length = (size_t)(name.end - name.at);
    length = length < sizeof k.name ? length : sizeof k.name - 1;
    memcpy(k.name, name.at, length);
    launch = launch_of(m, id, err);
    if (!launch)
        return err->status;
    launch->kernel = (int32_t)rlt_write_kernel(m->out, &k);
    memcpy(launch->grid, k.grid, sizeof k.grid);
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
        return text_wrong(&m->text, err, "begins like an access and is none: was it torn?");
    if (!read_addresses(&line, addresses, &r.mask))
        return text_wrong(&m->text, err, "has fewer than 32 addresses: was it cut off?");
    o = opcode_of(name);
    m->counts->other_memory += o.space == OPCODE_OTHER;
    if (o.space == OPCODE_OTHER)
        return STATUS_OK;
    m->counts->idle += r.mask == 0;
    if (r.mask == 0)
        return STATUS_OK;
    if (is_shared_side(&o, addresses)) {
        m->counts->other_memory++;
        return STATUS_OK;
    }
    launch = launch_of(m, id, err);
    if (!launch)
        return err->status;
    if (launch->kernel == NO_KERNEL) {
        const struct rlt_kernel unknown = {.app = m->app};
        launch->kernel = (int32_t)rlt_write_kernel(m->out, &unknown);
    }
    r.kernel = (uint32_t)launch->kernel;
    r.block = block_number(launch->grid, block);
    r.warp = (uint32_t)warp;
    r.kind = o.kind;
    r.width_log2 = o.width_log2;
    rlt_set_lines(m->out, addresses, &r);
    rlt_write_record(m->out, &r);
    return STATUS_OK;
}

static enum status read_line(struct importer *m, struct span line, struct err *err)
{
    uint64_t context;
    if (!span_skip(&line, "MEMTRACE: CTX ")) {
        m->counts->other_lines++;
        return STATUS_OK;
    }
    if (!span_hex(&line, &context) || !span_skip(&line, " - "))
        return text_wrong(&m->text, err, "has no context: was it torn?");
    if (span_skip(&line, "LAUNCH - "))
        return read_launch(m, line, err);
    return read_access(m, line, err);
}

enum status import_nvbit(FILE *in, struct rlt_writer *out, struct import_counts *counts,
                         struct err *err)
{
    struct importer m = {.out = out, .counts = counts};
    const uint64_t before = rlt_writer_records(out);
    struct err own = {0};
    struct span line;
    enum status s = text_open(&m.text, in, &own);
    m.app = rlt_write_app(out, "");
    while (s == STATUS_OK && text_line(&m.text, &line, &own))
        s = read_line(&m, line, &own);
    counts->bytes += m.text.bytes;
    counts->records += rlt_writer_records(out) - before;
    text_close(&m.text);
    free(m.launches);
    if (own.status != STATUS_OK)
        return err_set(err, own.status, "%s", own.text);
    if (counts->records + counts->idle + counts->other_memory == 0)
        return err_set(err, STATUS_CORRUPT,
                       "no line begins with \"MEMTRACE: CTX\": is this the output of mem_trace?");
    return STATUS_OK;
}
