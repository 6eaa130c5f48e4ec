/* sim_text.h: reads and writes the values in the text of a simulated GPU. It is private to the
 * files that read and write a description. Each of these files has one table of fields for both
 * directions. */
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

struct sim_writer {
    char *at;
    size_t left;
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

/* Appends to the text. The buffer must have room (asserted). */
void sim_text_put(struct sim_writer *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void sim_text_put_number(struct sim_writer *w, const struct sim_number *n, const void *object);
void sim_text_put_parts(struct sim_writer *w, const struct sim_part *parts, size_t count,
                        const void *object);
/* Writes ids in ascending order, three or more in a row as a range. If `of` is not NULL, writes
 * only ids with of[i] == group. */
void sim_text_put_ids(struct sim_writer *w, const struct sim_desc *d, const uint16_t *of,
                      uint16_t group);
/* Returns whether the number has different values in `a` and `b`. */
bool sim_text_differs(const struct sim_number *n, const void *a, const void *b);

/* Read and write level `index`. Its text begins with its entries and ends before the next blank. */
enum status sim_level_read(struct sim_cursor *c, struct sim_desc *d, uint32_t index);
void sim_level_put(struct sim_writer *w, const struct sim_desc *d, const struct sim_level *l);

/* Read and write a cache of every SM, without sharing. The second writes nothing if there is no
 * such cache. */
enum status sim_level_read_cache(struct sim_cursor *c, struct sim_level *out);
void sim_level_put_cache(struct sim_writer *w, const struct sim_level *l);

/* Read, write and count the sharing of SMs: "sm", "gpu", a group size or the groups. The result is
 * by position, with groups in the order of their first SM. So equal sharings are equal arrays.
 * (sim_level.c) */
enum status sim_sharing_read(struct sim_cursor *c, const struct sim_desc *d, uint16_t *out_of_sm);
void sim_sharing_put(struct sim_writer *w, const struct sim_desc *d, const uint16_t *of_sm);
uint32_t sim_sharing_count(const struct sim_desc *d, const uint16_t *of_sm);

/* Read and write shared memory and clusters (sim_shared_text.c). */
enum status sim_shared_read(struct sim_cursor *c, struct sim_shared *out);
void sim_shared_put(struct sim_writer *w, const struct sim_shared *shared);
enum status sim_clusters_read(struct sim_cursor *c, struct sim_clusters *out);
void sim_clusters_put(struct sim_writer *w, const struct sim_clusters *clusters);

/* Read and write a kind of memory (sim_kind.c). */
enum status sim_kind_read(struct sim_cursor *c, struct sim_kind *out);
void sim_kind_put(struct sim_writer *w, const struct sim_kind *kind);
