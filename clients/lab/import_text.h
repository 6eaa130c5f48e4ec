/* import_text.h: what the importers share: lines of a long text, numbers in them, and opcodes of
 * SASS. Private to them. A line is valid until the next is read. */
#ifndef REACH_CLIENTS_LAB_IMPORT_TEXT_H
#define REACH_CLIENTS_LAB_IMPORT_TEXT_H

#include "clients/lab/import.h"

#include <string.h>

enum { TEXT_LINE_BYTES = 1 << 16, TEXT_BLOCK_BYTES = 1 << 20 };

struct text {
    FILE *in;
    char *buffer; /* TEXT_BLOCK_BYTES + TEXT_LINE_BYTES */
    size_t at, used;
    bool ended;
    uint64_t line_number;
    uint64_t bytes;
};

/* The rest of a line: begin <= end, and *end is a line feed. */
struct span {
    const char *at, *end;
};

enum status text_open(struct text *t, FILE *in, struct err *err);
void text_close(struct text *t);
/* The next line without its line feed; false at the end or where err->status is set (too long,
 * I/O). */
bool text_line(struct text *t, struct span *out, struct err *err);
/* STATUS_CORRUPT with the number of the line. */
enum status text_wrong(const struct text *t, struct err *err, const char *what);

/* Each skips blanks before it and leaves `s` behind what it read; false: there is none. */
bool span_hex(struct span *s, uint64_t *out); /* with or without 0x, at most 16 digits */
bool span_decimal(struct span *s, uint64_t *out);
bool span_signed(struct span *s, int64_t *out);
bool span_word(struct span *s, struct span *out);       /* until the next blank */
bool span_skip(struct span *s, const char *text);       /* exactly this text, blanks and all */
bool span_after_last(struct span *s, const char *text); /* behind its last occurrence */
bool span_triple(struct span *s, uint32_t out[3]);      /* "1,2,3" */

/* What an instruction does, from its SASS opcode. */
enum opcode_space {
    OPCODE_GLOBAL,
    OPCODE_GENERIC, /* an address of any kind */
    OPCODE_COPY,    /* global to shared, by lanes */
    OPCODE_BULK,    /* TMA */
    OPCODE_TEXTURE,
    OPCODE_OTHER
};
struct opcode {
    enum opcode_space space;
    enum rlt_kind kind;
    uint32_t width_log2;
};
struct opcode opcode_of(struct span name);

/* Counts an instruction of global memory that has no usable address; false: it is another. */
bool opcode_left_out(const struct opcode *o, struct import_counts *counts);

/* No memory lies in the first page. */
bool addresses_known(const uint64_t addresses[RLT_LANES], uint32_t mask);

/* Writes what was left out. STATUS_CORRUPT if no access was imported, with the reason; `what`: what
 * the text is if it has no access at all. */
enum status import_end(const struct import_counts *counts, const char *what, struct rlt_writer *out,
                       struct err *err);

/* x + y grid[0] + ..; where the grid is not known, a number that differs for each. */
uint64_t block_number(const uint32_t grid[3], const uint32_t at[3]);

#endif
