/* import_csv.c: imports rows of `warp,address` or `address`. A number is hexadecimal if it begins
 * with 0x. A first row without a number is a heading. Empty rows and rows that begin with # are
 * skipped. */
#include "clients/lab/trace/import_text.h"

static bool read_number(struct span *s, uint64_t *out)
{
    struct span at = *s;
    while (*at.at == ' ' || *at.at == '\t')
        at.at++;
    if (at.at[0] == '0' && (at.at[1] == 'x' || at.at[1] == 'X'))
        return span_hex(s, out);
    return span_decimal(s, out);
}

static bool is_separator(char c)
{
    return c == ',' || c == ';' || c == ' ' || c == '\t';
}

/* Reads one or two numbers and returns their count. Returns 0 if the row contains anything else. */
static uint32_t read_row(struct span line, uint64_t out[2])
{
    if (!read_number(&line, &out[0]))
        return 0;
    while (line.at < line.end && is_separator(*line.at))
        line.at++;
    if (line.at == line.end)
        return 1;
    if (!is_separator(line.at[-1]) || !read_number(&line, &out[1]))
        return 0;
    while (line.at < line.end && is_separator(*line.at))
        line.at++;
    return line.at == line.end ? 2 : 0;
}

struct importer {
    struct text text;
    struct rlt_writer *out;
    struct import_counts *counts;
    struct rlt_record record;
    uint32_t columns; /* 0 before the first row */
    uint64_t rows;
    uint64_t bits; /* bits that are set in any address */
};

static enum status read_line(void *context, struct span line, struct err *err)
{
    struct importer *m = context;
    struct rlt_record *r = &m->record;
    uint64_t addresses[RLT_LANES];
    uint64_t numbers[2];
    if (line.at == line.end || *line.at == '#')
        return STATUS_OK;
    const uint32_t count = read_row(line, numbers);
    if (count == 0 && m->columns == 0 && m->counts->other_lines++ == 0)
        return STATUS_OK;
    if (count == 0 || (m->columns > 0 && count != m->columns))
        return text_error(&m->text, err, "has other columns than the first row");
    m->columns = count;
    r->block = count == 2 ? numbers[0] : m->rows % IMPORT_CSV_WARPS;
    addresses[0] = numbers[count - 1];
    m->bits |= addresses[0];
    r->mask = 1;
    rlt_set_lines(m->out, addresses, r);
    r->mask = RLT_FULL_MASK;
    rlt_write_record(m->out, r);
    m->rows++;
    return STATUS_OK;
}

enum status import_csv(FILE *in, struct rlt_writer *out, struct import_counts *counts,
                       struct err *err)
{
    const struct rlt_kernel kernel = {.app = rlt_write_app(out, ""), .name = "csv"};
    struct importer m = {.out = out, .counts = counts};
    m.record = (struct rlt_record){
        .kernel = rlt_write_kernel(out, &kernel), .width_log2 = 2, .line_count = 1};
    const enum status s = text_read(&m.text, in, read_line, &m, out, counts, err);
    if (s != STATUS_OK)
        return s;
    if (m.rows == 0)
        return err_set(err, STATUS_CORRUPT, "no row has an address");
    if (m.bits == 0)
        return err_set(err, STATUS_CORRUPT, "every address is 0: the tracer recorded no addresses");
    return STATUS_OK;
}
