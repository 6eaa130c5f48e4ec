/* chosen.h: the chosen classes of accesses of a launch: their sums, and their rows. A row is a
 * contiguous run of lines of one warp instruction. Only the modules that predict a launch include
 * this header. */
#pragma once

#include "clients/profile/costing.h"

/* Sums over the chosen classes, scaled from the trace to the launch. */
struct chosen_sums {
    double lines, runs, moved_bytes;
    double runs_of_kind[RLT_KIND_COUNT];
};

struct chosen_sums chosen_sum(const struct costing *c);
/* Returns the bytes that the classes span together. Classes of one region span one range. */
uint64_t chosen_span(const struct access_pattern *p);
/* Returns the kind of most rows. */
enum rlt_kind chosen_kind(const struct chosen_sums *sums);
enum access chosen_access(enum rlt_kind kind);

/* The chosen rows, in the order of the trace. */
struct chosen_rows {
    uint64_t count, room;
    uint64_t *addresses;
};

/* Reads the chosen rows. The caller frees out->addresses in every case. Returns the errors of
 * access_pattern_read. */
enum status chosen_read_rows(const struct costing *c, struct chosen_rows *out, struct err *err);

/* Sets `*even` to whether the rows are in about the same number of entries as rows that are evenly
 * distributed over `span` bytes. Returns STATUS_NO_MEMORY if out of memory. */
enum status chosen_find_even(const struct chosen_rows *rows, uint64_t span, uint64_t entry_bytes,
                             bool *even, struct err *err);
