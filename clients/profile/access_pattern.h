/* access_pattern.h: sorts the accesses of a recorded launch into classes, and finds out which
 * classes are at random and which are in order.
 *
 * A class has the accesses of one kind and width to one region of memory. Neighboring warps of an
 * access in order touch neighboring addresses, and advance together. A class is at random if, for
 * more than a tenth of the pairs of neighboring warps in the trace, the addresses are farther apart
 * than those of an access in order would be, or their distance has changed. The rule also holds if
 * only some blocks are in the trace. */
#pragma once

#include "clients/lab/trace/rlt.h"
#include "clients/profile/place.h"

struct access_class {
    uint32_t region; /* index in the map of memory, or UINT32_MAX */
    enum place place;
    enum rlt_kind kind;
    uint32_t width_log2; /* log2 of the bytes per lane */
    double scale;        /* accesses of the launch per access in the trace; set by the caller */
    uint64_t lines;
    uint64_t runs;        /* contiguous runs of lines, each in one record */
    uint64_t moved_bytes; /* bytes of the sectors of all lines; if an access is to the line of the
                             access before it, the line moves once */
    uint64_t last_line;   /* address of the last line */
    uint64_t last_bytes;  /* bytes of this line that were moved */
    uint64_t low, high;   /* the accesses are in [low, high) */
    uint64_t pairs, far_pairs;
    bool random;
    bool chosen; /* set by the caller: access_pattern_copy writes the class */
};

struct access_pattern {
    uint32_t granule_bytes;
    uint64_t records;
    uint64_t records_of[RLT_KIND_COUNT][RLT_MAX_WIDTH_LOG2 + 1]; /* by kind and width */
    uint64_t lines;
    struct rlt_left_out left_out;
    uint32_t class_count;
    struct access_class *classes;
    uint32_t slot_count; /* 0 or a power of two */
    uint32_t *slots;     /* hash table of index + 1 into classes */
};

/* Reads a trace. `grid` is the number of blocks in each dimension. Returns STATUS_CORRUPT if the
 * trace is damaged, and STATUS_NO_MEMORY if out of memory. Free `out` with access_pattern_free in
 * every case. */
enum status access_pattern_read(FILE *in, const struct place_map *map, const uint32_t grid[3],
                                struct access_pattern *out, struct err *err);
void access_pattern_free(struct access_pattern *take);

/* Returns the bytes from the first to the last access of a class. */
static inline uint64_t access_class_span(const struct access_class *c)
{
    return c->high - c->low;
}

/* Sets [low, high) to the range of the chosen classes in the region of class `i`. Returns false if
 * class `i` is not the first chosen class of its region. */
bool access_pattern_region(const struct access_pattern *p, uint32_t i, uint64_t *low,
                           uint64_t *high);

/* Calls `visit` for each run of lines of the chosen classes, in the order of the trace. Returns the
 * errors of access_pattern_read. */
typedef enum status access_pattern_visit(void *context, const struct access_class *c,
                                         uint64_t address, struct err *err);
enum status access_pattern_walk(FILE *in, const struct place_map *map,
                                const struct access_pattern *p, access_pattern_visit *visit,
                                void *context, struct err *err);

struct access_copy {
    uint32_t repeats;      /* number of times that the trace is written, 1 or more */
    uint64_t spread_bytes; /* moves each repetition by another multiple of these bytes, within the
                              span of the region; 0 means that addresses stay the same */
};

/* Writes the accesses of the chosen classes as a trace, with one allocation for each region that
 * spans them. Each repetition has blocks of its own and begins at another record, so that another
 * SM runs each block again. Returns the errors of access_pattern_read, and STATUS_IO if writing
 * fails. */
enum status access_pattern_copy(FILE *in, const struct place_map *map,
                                const struct access_pattern *p, const struct access_copy *copy,
                                FILE *out, struct err *err);
