/* import_text.h: reads the lines of a long text, numbers in them, and SASS opcodes. Only the
 * importers include this header. A line is valid until the next line is read. */
#pragma once

#include "clients/lab/trace/import.h"

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

/* The unread part of a line. at <= end, and *end is a line feed. */
struct span {
    const char *at, *end;
};

/* Passes each line of a text to `read`, without its line feed, until `read` returns an error. Adds
 * the bytes that were read and the records that were written to `counts`. Other errors are
 * STATUS_IO, STATUS_NO_MEMORY, and STATUS_CORRUPT if a line is too long. */
typedef enum status text_line_fn(void *context, struct span line, struct err *err);
enum status text_read(struct text *t, FILE *in, text_line_fn *read, void *context,
                      const struct rlt_writer *out, struct import_counts *counts, struct err *err);
/* Sets STATUS_CORRUPT with the text "line N WHAT". */
enum status text_error(const struct text *t, struct err *err, const char *what);

/* Each function skips blanks, reads one item and leaves `s` behind it. Returns false if the text
 * does not begin with an item of this kind. */
bool span_hex(struct span *s, uint64_t *out); /* with or without 0x, at most 16 digits */
bool span_decimal(struct span *s, uint64_t *out);
bool span_signed(struct span *s, int64_t *out);
bool span_word(struct span *s, struct span *out);       /* reads until the next blank */
bool span_skip(struct span *s, const char *text);       /* reads exactly `text` */
bool span_after_last(struct span *s, const char *text); /* moves behind the last `text` */
bool span_triple(struct span *s, uint32_t out[3]);      /* "1,2,3" */

/* The memory space of an instruction, derived from its SASS opcode. */
enum opcode_space {
    OPCODE_GLOBAL,
    OPCODE_GENERIC, /* a generic address: global, shared or local */
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
struct opcode opcode_parse(struct span name);

/* Returns whether the instruction is a bulk copy or accesses a texture or surface. If so, counts
 * the instruction. */
bool opcode_count_left_out(const struct opcode *o, struct import_counts *counts);

/* Returns whether an active lane has an address outside of the first page. The first page never
 * contains memory. */
bool addresses_known(const uint64_t addresses[RLT_LANES], uint32_t mask);

/* Writes the numbers of accesses that were left out. Returns STATUS_CORRUPT with the reason if no
 * access was imported. The reason is `what` if the text contains no access at all. */
enum status import_end(const struct import_counts *counts, const char *what, struct rlt_writer *out,
                       struct err *err);

/* Returns x + y grid[0] + z grid[0] grid[1], or a number that is unique to the block if the grid is
 * unknown. */
uint64_t block_number(const uint32_t grid[3], const uint32_t at[3]);
