/* sim_text.h: reads the values in the text of a simulated GPU. It is private to the files that read
 * a description. */
#pragma once

#include "gpu/sim/sim_desc.h"

#include <stddef.h>

enum { SIM_MAX_CYCLES = 1000000 };

/* A position in one field; `field` and `whole` are only for messages. */
struct sim_cursor {
    const char *at;
    const char *end;
    const char *field;
    const char *whole;
    struct err *err;
};

/* A number at `offset` of a struct: 0..max. */
struct sim_number {
    enum { SIM_U32, SIM_U64, SIM_F64, SIM_BYTES /* 64 bits; `max` is not used */ } type;
    size_t offset;
    uint64_t max;
};

/* Sets the error to `what`, with the field and the place in it. Returns STATUS_INVALID_ARGUMENT. */
enum status sim_text_fail(const struct sim_cursor *c, const char *what);
/* Skips `expected` if it comes next. */
bool sim_text_skip(struct sim_cursor *c, const char *expected);
enum status sim_text_u32(struct sim_cursor *c, uint32_t max, uint32_t *out);
/* Reads one SM id or a range of ids: "7", "2-4". */
enum status sim_text_ids(struct sim_cursor *c, uint32_t *first, uint32_t *last);
enum status sim_text_number(struct sim_cursor *c, const struct sim_number *n, void *object);

/* A number, and the text before it. */
struct sim_part {
    const char *before;
    struct sim_number number;
};
/* Reads the numbers of `parts`. The error is `expected` if the text before a number is missing. */
enum status sim_text_parts(struct sim_cursor *c, const struct sim_part *parts, size_t count,
                           const char *expected, void *object);

/* Reads level `index`. Its text begins with its entries and ends before the next blank. */
enum status sim_level_read(struct sim_cursor *c, struct sim_desc *d, uint32_t index);
/* Reads a cache of every SM, without sharing. */
enum status sim_level_read_cache(struct sim_cursor *c, struct sim_level *out);
/* Reads the sharing of SMs: "sm", "gpu", a group size or the groups. The result is by position,
 * with groups in the order of their first SM. (sim_level.c) */
enum status sim_sharing_read(struct sim_cursor *c, const struct sim_desc *d, uint16_t *out_of_sm);
/* Returns the number of groups. */
uint32_t sim_sharing_count(const struct sim_desc *d, const uint16_t *of_sm);

/* Read shared memory and clusters (sim_shared_text.c). */
enum status sim_shared_read(struct sim_cursor *c, struct sim_shared *out);
enum status sim_clusters_read(struct sim_cursor *c, struct sim_clusters *out);

/* Reads a kind of memory (sim_kind.c). */
enum status sim_kind_read(struct sim_cursor *c, struct sim_kind *out);
