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

enum status import_csv(FILE *in, struct rlt_writer *out, struct import_counts *counts,
                       struct err *err)
{
    const struct rlt_kernel kernel = {.app = rlt_write_app(out, ""), .name = "csv"};
    struct rlt_record r = {.kernel = rlt_write_kernel(out, &kernel),
                           .mask = RLT_FULL_MASK,
                           .width_log2 = 2,
                           .line_count = 1};
    struct text text;
    struct err own = {0};
    struct span line;
    uint64_t addresses[RLT_LANES] = {0};
    uint32_t columns = 0;
    uint64_t rows = 0;
    uint64_t bits = 0; /* bits that are set in any address */
    enum status s = text_open(&text, in, &own);
    while (s == STATUS_OK && text_next_line(&text, &line, &own)) {
        uint64_t numbers[2];
        uint32_t count;
        if (line.at == line.end || *line.at == '#')
            continue;
        count = read_row(line, numbers);
        if (count == 0 && columns == 0 && counts->other_lines++ == 0)
            continue;
        if (count == 0 || (columns > 0 && count != columns)) {
            (void)text_error(&text, &own, "has other columns than the first row");
            break;
        }
        columns = count;
        r.block = columns == 2 ? numbers[0] : rows % IMPORT_CSV_WARPS;
        addresses[0] = numbers[columns - 1];
        bits |= addresses[0];
        r.mask = 1;
        rlt_set_lines(out, addresses, &r);
        r.mask = RLT_FULL_MASK;
        rlt_write_record(out, &r);
        rows++;
    }
    counts->bytes += text.bytes;
    counts->records += rows;
    text_close(&text);
    if (own.status != STATUS_OK)
        return err_set(err, own.status, "%s", own.text);
    if (rows == 0)
        return err_set(err, STATUS_CORRUPT, "no row has an address");
    if (bits == 0)
        return err_set(err, STATUS_CORRUPT, "every address is 0: the tracer recorded no addresses");
    return STATUS_OK;
}
