/* import_text.c: see import_text.h. The text is read in large blocks. A line points into its block
 * and is not copied. */
#include "clients/lab/trace/import_text.h"

#include <stdlib.h>

/* Moves the unread bytes to the front of the buffer and reads more bytes behind them. */
static bool refill_buffer(struct text *t, struct err *err)
{
    size_t got;
    memmove(t->buffer, t->buffer + t->at, t->used - t->at);
    t->used -= t->at;
    t->at = 0;
    /* One byte stays free for the line feed that the last line may lack. */
    got = fread(t->buffer + t->used, 1, TEXT_BLOCK_BYTES + TEXT_LINE_BYTES - 1 - t->used, t->in);
    t->used += got;
    t->bytes += got;
    t->ended = got == 0;
    if (ferror(t->in)) {
        (void)err_set(err, STATUS_IO, "cannot read the text after line %llu",
                      (unsigned long long)t->line_number);
        return false;
    }
    if (t->ended && t->used > 0 && t->buffer[t->used - 1] != '\n')
        t->buffer[t->used++] = '\n';
    return t->used > 0;
}

/* Returns false at the end of the text, and after an error, which sets err->status. */
static bool next_line(struct text *t, struct span *out, struct err *err)
{
    char *end = t->used > t->at ? memchr(t->buffer + t->at, '\n', t->used - t->at) : NULL;
    while (!end) {
        const size_t searched = t->used - t->at;
        if (searched >= TEXT_LINE_BYTES) {
            (void)err_set(err, STATUS_CORRUPT, "line %llu is longer than %d bytes",
                          (unsigned long long)t->line_number + 1, TEXT_LINE_BYTES);
            return false;
        }
        if (t->ended || !refill_buffer(t, err))
            return false;
        end = memchr(t->buffer + searched, '\n', t->used - searched);
    }
    *out = (struct span){t->buffer + t->at, end};
    t->at = (size_t)(end - t->buffer) + 1;
    t->line_number++;
    if (out->end > out->at && out->end[-1] == '\r') {
        out->end--;
        *end = ' ';
        t->buffer[out->end - t->buffer] = '\n';
    }
    return true;
}

enum status text_read(struct text *t, FILE *in, text_line_fn *read, void *context,
                      const struct rlt_writer *out, struct import_counts *counts, struct err *err)
{
    const uint64_t before = rlt_writer_records(out);
    struct err own = {0};
    struct span line;
    *t = (struct text){.in = in, .buffer = malloc(TEXT_BLOCK_BYTES + TEXT_LINE_BYTES)};
    enum status s = STATUS_OK;
    if (!t->buffer)
        return err_set(err, STATUS_NO_MEMORY, "cannot read the text: out of memory");
    while (s == STATUS_OK && next_line(t, &line, &own))
        s = read(context, line, &own);
    counts->bytes += t->bytes;
    counts->records += rlt_writer_records(out) - before;
    free(t->buffer);
    return own.status == STATUS_OK ? STATUS_OK : err_set(err, own.status, "%s", own.text);
}

enum status text_error(const struct text *t, struct err *err, const char *what)
{
    return err_set(err, STATUS_CORRUPT, "line %llu %s", (unsigned long long)t->line_number, what);
}

/* ---- numbers and words ---- */

/* Values of hexadecimal digits plus one. Other characters have 0. */
static const uint8_t digits[256] = {
    ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
    ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16};

static void skip_blanks(struct span *s)
{
    while (*s->at == ' ' || *s->at == '\t')
        s->at++;
}

bool span_hex(struct span *s, uint64_t *out)
{
    uint64_t v = 0;
    const char *first;
    skip_blanks(s);
    if (s->at[0] == '0' && (s->at[1] == 'x' || s->at[1] == 'X'))
        s->at += 2;
    first = s->at;
    for (uint32_t d; (d = digits[(uint8_t)*s->at]) != 0; s->at++)
        v = v << 4 | (d - 1);
    *out = v;
    return s->at > first && s->at - first <= 16;
}

bool span_decimal(struct span *s, uint64_t *out)
{
    uint64_t v = 0;
    const char *first;
    skip_blanks(s);
    first = s->at;
    for (; *s->at >= '0' && *s->at <= '9'; s->at++)
        v = v * 10 + (uint64_t)(*s->at - '0');
    *out = v;
    return s->at > first && s->at - first <= 19;
}

bool span_signed(struct span *s, int64_t *out)
{
    uint64_t v;
    bool negative;
    skip_blanks(s);
    negative = *s->at == '-';
    s->at += negative;
    if (!span_decimal(s, &v) || v > INT64_MAX)
        return false;
    *out = negative ? -(int64_t)v : (int64_t)v;
    return true;
}

bool span_word(struct span *s, struct span *out)
{
    skip_blanks(s);
    out->at = s->at;
    while (s->at < s->end && *s->at != ' ' && *s->at != '\t')
        s->at++;
    out->end = s->at;
    return out->end > out->at;
}

bool span_skip(struct span *s, const char *text)
{
    const size_t length = strlen(text);
    if ((size_t)(s->end - s->at) < length || memcmp(s->at, text, length) != 0)
        return false;
    s->at += length;
    return true;
}

bool span_after_last(struct span *s, const char *text)
{
    const size_t length = strlen(text);
    for (const char *p = s->end; p >= s->at + length; p--) {
        if (memcmp(p - length, text, length) == 0) {
            s->at = p;
            return true;
        }
    }
    return false;
}

bool span_triple(struct span *s, uint32_t out[3])
{
    for (int i = 0; i < 3; i++) {
        uint64_t v;
        if ((i > 0 && !span_skip(s, ",")) || !span_decimal(s, &v) || v > UINT32_MAX)
            return false;
        out[i] = (uint32_t)v;
    }
    return true;
}

/* ---- opcodes ---- */

static bool is_name(const char *at, size_t length, const char *name)
{
    return strlen(name) == length && memcmp(at, name, length) == 0;
}

/* Returns the log2 of the bytes per lane. The first part like ".64", ".U8" or ".S16" gives the
 * width. Returns 2 if no part gives a width. */
static uint32_t parse_width(struct span name)
{
    for (const char *p = name.at; p + 1 < name.end; p++) {
        const bool is_part = *p == '.';
        const bool has_sign = p[1] == 'U' || p[1] == 'S';
        struct span number = {p + 1 + has_sign, name.end};
        uint64_t bits;
        if (!is_part || *number.at < '1' || *number.at > '9' || !span_decimal(&number, &bits) ||
            (number.at < name.end && *number.at != '.'))
            continue;
        for (uint32_t log2 = 0; log2 <= RLT_MAX_WIDTH_LOG2; log2++) {
            if (bits == (uint64_t)8 << log2)
                return log2;
        }
    }
    return 2;
}

/* Bulk copies are UTMALDG, UTMASTG, UTMAREDG, UTMAPF, UBLKCP, UBLKRED and UBLKPF. UTMACCTL and
 * UTMACMDFLUSH access no memory. */
static enum opcode_space space_without_addresses(struct span name, size_t length)
{
    static const char *const textures[] = {"TEX", "TEXS", "TLD",  "TLDS",   "TLD4", "TLD4S",
                                           "TXD", "TXA",  "SULD", "SUATOM", "SUST", "SURED"};
    if (length > 4 &&
        (memcmp(name.at, "UBLK", 4) == 0 || (memcmp(name.at, "UTMA", 4) == 0 && name.at[4] != 'C')))
        return OPCODE_BULK;
    for (size_t i = 0; i < sizeof textures / sizeof textures[0]; i++) {
        if (is_name(name.at, length, textures[i]))
            return OPCODE_TEXTURE;
    }
    return OPCODE_OTHER;
}

struct opcode opcode_parse(struct span name)
{
    static const struct {
        const char *name;
        enum opcode_space space;
        enum rlt_kind kind;
    } known[] = {{"LDG", OPCODE_GLOBAL, RLT_LOAD},     {"STG", OPCODE_GLOBAL, RLT_STORE},
                 {"LD", OPCODE_GENERIC, RLT_LOAD},     {"ST", OPCODE_GENERIC, RLT_STORE},
                 {"RED", OPCODE_GLOBAL, RLT_ATOMIC},   {"REDG", OPCODE_GLOBAL, RLT_ATOMIC},
                 {"ATOMG", OPCODE_GLOBAL, RLT_ATOMIC}, {"ATOM", OPCODE_GENERIC, RLT_ATOMIC},
                 {"LDGSTS", OPCODE_COPY, RLT_LOAD}};
    const char *dot = memchr(name.at, '.', (size_t)(name.end - name.at));
    const size_t length = (size_t)((dot ? dot : name.end) - name.at);
    struct opcode o = {.space = space_without_addresses(name, length),
                       .width_log2 = parse_width(name)};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (!is_name(name.at, length, known[i].name))
            continue;
        o.space = known[i].space;
        o.kind = known[i].kind;
    }
    return o;
}

/* ---- left out accesses ---- */

enum { FIRST_PAGE_BYTES = 4096 };

bool opcode_count_left_out(const struct opcode *o, struct import_counts *counts)
{
    counts->left_out.copies += o->space == OPCODE_BULK;
    counts->left_out.textures += o->space == OPCODE_TEXTURE;
    return o->space == OPCODE_BULK || o->space == OPCODE_TEXTURE;
}

bool addresses_known(const uint64_t addresses[RLT_LANES], uint32_t mask)
{
    for (uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1) {
        if (addresses[__builtin_ctz(lanes)] >= FIRST_PAGE_BYTES)
            return true;
    }
    return false;
}

enum status import_end(const struct import_counts *c, const char *what, struct rlt_writer *out,
                       struct err *err)
{
    const struct rlt_left_out *l = &c->left_out;
    const uint64_t left = l->copies + l->textures + l->unknown;
    if (c->records > 0) {
        if (left > 0)
            rlt_write_left_out(out, l);
        return STATUS_OK;
    }
    if (left > 0)
        return err_set(
            err, STATUS_CORRUPT,
            "no access can be imported: %llu accesses have no address, %llu are bulk copies "
            "(TMA), %llu access textures or surfaces",
            (unsigned long long)l->unknown, (unsigned long long)l->copies,
            (unsigned long long)l->textures);
    if (c->idle > 0)
        return err_set(err, STATUS_CORRUPT,
                       "every address is 0 in all %llu accesses: the tracer recorded no addresses",
                       (unsigned long long)c->idle);
    if (c->other_memory > 0)
        return err_set(
            err, STATUS_CORRUPT,
            "no access is to global memory: %llu accesses are to shared, local or constant memory",
            (unsigned long long)c->other_memory);
    return err_set(err, STATUS_CORRUPT, "%s", what);
}

uint64_t block_number(const uint32_t grid[3], const uint32_t at[3])
{
    if (grid[0] == 0 || grid[1] == 0)
        return (uint64_t)at[2] << 48 ^ (uint64_t)at[1] << 32 ^ at[0];
    return at[0] + ((uint64_t)at[2] * grid[1] + at[1]) * grid[0];
}
