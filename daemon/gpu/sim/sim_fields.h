/* sim_fields.h: the table of fields that the reader (sim_desc.c) and the writer (sim_print.c) of
 * descriptions share. Private to them. */
#ifndef REACH_GPU_SIM_SIM_FIELDS_H
#define REACH_GPU_SIM_SIM_FIELDS_H

#include "gpu/sim/sim_desc.h"

#include <stddef.h>

#define SIM_MAX_MEMORY ((uint64_t)1 << 44) /* 16 TiB */

enum {
    SIM_MAX_CYCLES = 1000000,
    SIM_MAX_CC = 99,
    SIM_MAX_WALKERS = 4096,
    SIM_MAX_MISS_NS = 1000000,
    SIM_MIN_ENTRY_BYTES = 4096,
    SIM_MAX_TOTAL_ENTRIES = 4 << 20,
    SIM_MAX_GBPS = 1000000,
    SIM_MAX_RECLOCK = 10
};

enum sim_field_kind {
    SIM_FIELD_NAME,
    SIM_FIELD_CC,
    SIM_FIELD_SMS,
    SIM_FIELD_SMIDS,
    SIM_FIELD_BYTES,
    SIM_FIELD_U32,
    SIM_FIELD_U64,
    SIM_FIELD_F64,
    SIM_FIELD_NOISE,
    SIM_FIELD_OUTLIERS,
    SIM_FIELD_NEIGHBOUR,
    SIM_FIELD_RECLOCK,
    SIM_FIELD_LEVEL
};

struct sim_field {
    const char *key;
    enum sim_field_kind kind;
    size_t offset; /* of a number or a name in struct sim_desc */
    uint32_t max;  /* of a number; of a level: its index */
};

/* The order is the order of the printed text. */
enum { SIM_ROW_SMS = 2, SIM_ROW_SMIDS = 3 };
extern const struct sim_field sim_fields[];
extern const uint32_t sim_field_count;

/* A description that says nothing: every number at its default. */
void sim_desc_defaults(struct sim_desc *out);

#endif
