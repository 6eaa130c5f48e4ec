/* import_accelsim.c: one kernel of Accel-Sim (.traceg), tracer versions 3 to 5. A header is
 * followed by the instructions of each block and warp in order:
 *
 *     [line] PC mask ndst [Rd..] opcode nsrc [Rs..] width [form addresses..]
 *
 * A width of 0 means that the instruction has no address. Form 0 has an address for each lane of
 * the mask. Form 1 has the first address and a stride; form 2 has the first address and
 * differences. The gap of a record is the number of instructions without memory before it.
 *
 * A kernelslist.g has a line for each allocation, copy and kernel. The traces of the kernels are in
 * the same folder.
 */
#include "clients/lab/trace/import_text.h"
#include "clients/lab/trace/unpack.h"

#include <errno.h>

enum {
    FIRST_VERSION = 3,
    LAST_VERSION = 5,
    MAX_REGISTERS = 64,
    WINDOW_BYTES = 1 << 24,
    PATH_BYTES = 4096
};
enum { FORM_LIST = 0, FORM_STRIDE, FORM_DELTAS };

struct importer {
    struct text text;
    struct rlt_writer *out;
    struct import_counts *counts;
    struct rlt_kernel kernel;
    struct rlt_record record; /* kernel, block, warp and gap keep their values between records */
    uint64_t shared_base, local_base, has_line_numbers;
    bool written; /* the kernel was written to the trace */
    bool in_block, in_warp;
    uint64_t blocks;            /* number of blocks that ended */
    uint64_t instructions;      /* instructions of the warp that were read */
    uint64_t instruction_count; /* instructions of the warp according to its header */
    bool has_count;             /* instruction_count is valid */
};

/* ---- header ---- */

/* "-grid dim = (1,2,3)" */
static bool read_dimensions(struct span s, uint32_t out[3])
{
    return span_skip(&s, "(") && span_triple(&s, out);
}

static enum status read_field(struct importer *m, struct span line, struct err *err)
{
    struct span value = line;
    uint64_t version = 0;
    bool good = true;
    while (value.at < value.end && *value.at != '=')
        value.at++;
    while (value.at < value.end && (*value.at == '=' || *value.at == ' '))
        value.at++;
    if (span_skip(&line, "-kernel name")) {
        size_t length = (size_t)(value.end - value.at);
        length = length < sizeof m->kernel.name ? length : sizeof m->kernel.name - 1;
        memcpy(m->kernel.name, value.at, length);
    } else if (span_skip(&line, "-grid dim")) {
        good = read_dimensions(value, m->kernel.grid);
    } else if (span_skip(&line, "-block dim")) {
        good = read_dimensions(value, m->kernel.block);
    } else if (span_skip(&line, "-shmem base_addr")) {
        good = span_hex(&value, &m->shared_base);
    } else if (span_skip(&line, "-local mem base_addr")) {
        good = span_hex(&value, &m->local_base);
    } else if (span_skip(&line, "-enable lineinfo")) {
        good = span_decimal(&value, &m->has_line_numbers);
    } else if (span_skip(&line, "-accelsim tracer version")) {
        good = span_decimal(&value, &version);
        if (good && (version < FIRST_VERSION || version > LAST_VERSION))
            return text_error(&m->text, err, "has a tracer version other than 3, 4 and 5");
    }
    return good ? STATUS_OK : text_error(&m->text, err, "is a field without a valid value");
}

/* ---- instructions ---- */

static bool skip_registers(struct span *s)
{
    uint64_t count;
    struct span word;
    if (!span_decimal(s, &count) || count > MAX_REGISTERS)
        return false;
    while (count-- > 0) {
        if (!span_word(s, &word))
            return false;
    }
    return true;
}

static bool read_addresses(struct span *s, uint64_t form, uint32_t mask,
                           uint64_t addresses[RLT_LANES])
{
    uint64_t address = 0;
    int64_t step = 0;
    bool first = true;
    for (uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1) {
        if ((first || form == FORM_LIST) && !span_hex(s, &address))
            return false;
        if ((first && form == FORM_STRIDE) || (!first && form == FORM_DELTAS)) {
            if (!span_signed(s, &step))
                return false;
        }
        address += first || form == FORM_LIST ? 0 : (uint64_t)step;
        addresses[__builtin_ctz(lanes)] = address;
        first = false;
    }
    return form <= FORM_DELTAS;
}

/* Returns whether a generic address is in the window of shared or local memory. */
static bool is_in_window(const struct importer *m, uint64_t address)
{
    return (m->shared_base != 0 && address - m->shared_base < WINDOW_BYTES) ||
           (m->local_base != 0 && address - m->local_base < WINDOW_BYTES);
}

static enum status read_memory(struct importer *m, struct span line, uint32_t mask,
                               const struct opcode *o, struct err *err)
{
    uint64_t addresses[RLT_LANES];
    uint64_t form;
    m->counts->idle += mask == 0;
    if (mask == 0)
        return STATUS_OK;
    if (!span_decimal(&line, &form) || !read_addresses(&line, form, mask, addresses))
        return text_error(&m->text, err, "must have an address for each lane of its mask");
    if (o->space != OPCODE_GLOBAL && is_in_window(m, addresses[__builtin_ctz(mask)])) {
        m->counts->other_memory++;
        return STATUS_OK;
    }
    if (!addresses_known(addresses, mask)) {
        m->counts->left_out.unknown++;
        return STATUS_OK;
    }
    m->record.mask = mask;
    m->record.kind = o->kind;
    m->record.width_log2 = o->width_log2;
    rlt_set_lines(m->out, addresses, &m->record);
    rlt_write_record(m->out, &m->record);
    m->record.gap = 0;
    return STATUS_OK;
}

static enum status read_instruction(struct importer *m, struct span line, struct err *err)
{
    uint64_t number;
    uint64_t mask;
    uint64_t width;
    struct span name;
    struct opcode o;
    if (!m->in_warp)
        return text_error(&m->text, err,
                          "is an instruction outside of a warp: run post-traces-processing first");
    if ((m->has_line_numbers && !span_decimal(&line, &number)) || !span_hex(&line, &number) ||
        !span_hex(&line, &mask) || mask > UINT32_MAX || !skip_registers(&line) ||
        !span_word(&line, &name) || !skip_registers(&line) || !span_decimal(&line, &width))
        return text_error(&m->text, err, "is not an instruction");
    m->instructions++;
    o = opcode_parse(name);
    if (width > 0 && o.space < OPCODE_BULK)
        return read_memory(m, line, (uint32_t)mask, &o, err);
    m->record.gap += m->record.gap < UINT32_MAX;
    if (mask == 0)
        m->counts->idle += o.space != OPCODE_OTHER;
    else if (o.space < OPCODE_BULK)
        m->counts->left_out.unknown++;
    else if (!opcode_count_left_out(&o, m->counts))
        m->counts->other_memory += width > 0;
    return STATUS_OK;
}

/* ---- blocks and warps ---- */

static enum status begin_block(struct importer *m, struct err *err)
{
    if (m->in_block)
        return text_error(&m->text, err, "begins a block inside another block");
    if (!m->written)
        m->record.kernel = rlt_write_kernel(m->out, &m->kernel);
    m->written = true;
    m->in_block = true;
    m->in_warp = false;
    return STATUS_OK;
}

static enum status end_warp(struct importer *m, struct err *err)
{
    const bool whole = !m->in_warp || !m->has_count || m->instructions == m->instruction_count;
    m->in_warp = m->has_count = false;
    if (whole)
        return STATUS_OK;
    return err_set(err, STATUS_CORRUPT,
                   "line %llu ends a warp with %llu of the %llu instructions in its header: the "
                   "trace may be truncated",
                   (unsigned long long)m->text.line_number, (unsigned long long)m->instructions,
                   (unsigned long long)m->instruction_count);
}

static enum status end_block(struct importer *m, struct err *err)
{
    m->blocks += m->in_block;
    m->in_block = false;
    return end_warp(m, err);
}

static enum status begin_warp(struct importer *m, struct span line, struct err *err)
{
    uint64_t number;
    if (end_warp(m, err) != STATUS_OK)
        return err->status;
    if (!m->in_block || !span_decimal(&line, &number) || number > UINT32_MAX)
        return text_error(&m->text, err, "is not a valid warp");
    m->record.warp = (uint32_t)number;
    m->record.gap = 0;
    m->instructions = 0;
    m->in_warp = true;
    return STATUS_OK;
}

/* "insts = 3" */
static enum status read_count(struct importer *m, struct span line, struct err *err)
{
    m->has_count = span_decimal(&line, &m->instruction_count);
    return m->has_count ? STATUS_OK
                        : text_error(&m->text, err, "is not a valid number of instructions");
}

static enum status read_line(void *context, struct span line, struct err *err)
{
    struct importer *m = context;
    uint32_t block[3];
    if (line.at == line.end)
        return STATUS_OK;
    if (*line.at == '-')
        return read_field(m, line, err);
    if (*line.at == '#') {
        if (span_skip(&line, "#BEGIN_TB"))
            return begin_block(m, err);
        return span_skip(&line, "#END_TB") ? end_block(m, err) : STATUS_OK;
    }
    if (span_skip(&line, "insts = "))
        return read_count(m, line, err);
    if (span_skip(&line, "thread block = ")) {
        if (!m->in_block || !span_triple(&line, block))
            return text_error(&m->text, err, "is not a valid block");
        m->record.block = block_number(m->kernel.grid, block);
        return STATUS_OK;
    }
    if (span_skip(&line, "warp = "))
        return begin_warp(m, line, err);
    return read_instruction(m, line, err);
}

/* Checks that no block of the grid is missing. A dimension of 0 means that the grid is unknown. */
static enum status check_blocks(const struct importer *m, struct err *err)
{
    const uint32_t *const g = m->kernel.grid;
    uint64_t all;
    if (!m->written || m->in_block)
        return err_set(err, STATUS_CORRUPT,
                       m->written ? "the last block lacks its end: the trace may be truncated"
                                  : "there is no block: this is not a .traceg of Accel-Sim");
    if (__builtin_mul_overflow((uint64_t)g[0] * g[1], g[2], &all) || all == 0 || all == m->blocks)
        return STATUS_OK;
    return err_set(err, STATUS_CORRUPT,
                   "there are %llu of the %llu blocks of the grid: the trace may be truncated",
                   (unsigned long long)m->blocks, (unsigned long long)all);
}

enum status import_accelsim_kernel(FILE *in, uint32_t app, struct rlt_writer *out,
                                   struct import_counts *counts, struct err *err)
{
    struct importer m = {.out = out, .counts = counts, .kernel.app = app};
    const enum status s = text_read(&m.text, in, read_line, &m, out, counts, err);
    return s == STATUS_OK ? check_blocks(&m, err) : s;
}

/* ---- kernelslist.g ---- */

static enum status import_kernel(const char *path, uint32_t app, struct rlt_writer *out,
                                 struct import_counts *counts, struct err *err)
{
    struct unpack u;
    enum status s = unpack_open(path, &u, err);
    if (s != STATUS_OK)
        return s;
    s = import_accelsim_kernel(u.in, app, out, counts, err);
    s = unpack_close(&u, s, err);
    return s == STATUS_OK ? s : err_prefix(err, "%s", path);
}

/* "MemcpyHtoD,0x..,1024", "cudaMalloc,0x..,1024" */
static enum status import_range(const struct text *t, struct span line, const char *name,
                                uint32_t app, struct rlt_writer *out, struct err *err)
{
    struct rlt_allocation a = {.app = app};
    if (!span_hex(&line, &a.base) || !span_skip(&line, ",") || !span_decimal(&line, &a.bytes) ||
        a.base > UINT64_MAX - a.bytes)
        return text_error(t, err, "must have an address and a length");
    (void)snprintf(a.name, sizeof a.name, "%s", name);
    if (a.bytes > 0)
        rlt_write_allocation(out, &a);
    return STATUS_OK;
}

struct list {
    struct text text;
    const char *path;
    uint32_t app;
    struct rlt_writer *out;
    struct import_counts *counts;
};

static enum status read_entry(void *context, struct span line, struct err *err)
{
    const struct list *l = context;
    const char *slash = strrchr(l->path, '/');
    const int folder = slash ? (int)(slash - l->path) + 1 : 0;
    const int length = (int)(line.end - line.at);
    char path[PATH_BYTES];
    if (span_skip(&line, "MemcpyHtoD,"))
        return import_range(&l->text, line, "MemcpyHtoD", l->app, l->out, err);
    if (span_skip(&line, "cudaMalloc,"))
        return import_range(&l->text, line, "cudaMalloc", l->app, l->out, err);
    if (length < 6 || memcmp(line.at, "kernel", 6) != 0)
        return STATUS_OK; /* skips copies to the host and lines of newer tracers */
    if (memchr(line.at, '/', (size_t)length) || folder + length >= PATH_BYTES)
        return text_error(&l->text, err, "names a kernel that is not in the folder of the list");
    (void)snprintf(path, sizeof path, "%.*s%.*s", folder, l->path, length, line.at);
    return import_kernel(path, l->app, l->out, l->counts, err);
}

enum status import_accelsim(const char *path, struct rlt_writer *out, struct import_counts *counts,
                            struct err *err)
{
    static const char no_access[] = "no instruction accesses memory";
    struct list l = {.path = path, .app = rlt_write_app(out, ""), .out = out, .counts = counts};
    struct import_counts list_counts = {0}; /* bytes of the list are not bytes of a trace */
    enum status s;
    if (strstr(path, ".traceg")) {
        s = import_kernel(path, l.app, out, counts, err);
        return s == STATUS_OK ? import_end(counts, no_access, out, err) : s;
    }
    FILE *in = fopen(path, "re");
    if (!in)
        return err_set(err, STATUS_IO, "cannot open %s: %s", path, strerror(errno));
    s = text_read(&l.text, in, read_entry, &l, out, &list_counts, err);
    (void)fclose(in);
    return s == STATUS_OK
               ? import_end(counts, counts->bytes > 0 ? no_access : "the list names no kernel", out,
                            err)
               : s;
}
