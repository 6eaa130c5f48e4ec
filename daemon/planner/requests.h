/* requests.h: the requests that the planner answers. params.c describes each member and its
 * default. 0 stands for the default; only `bytes` has none. */
#pragma once

#include "fingerprint/fingerprint.h"
#include "planner/layout.h"
#include "types/access.h"

/* One of several allocations that an item of a job touches. */
struct job_allocation {
    uint64_t bytes; /* 1..PLACEMENT_MAX_BYTES, also for the sum of all allocations */
    double touches;
    uint32_t element_bytes;
    uint32_t transaction_bytes;
    uint64_t granularity_bytes; /* size of a row: bounds are multiples of it */
};

/* The description of a job. An item is the repeated unit of work: one access, unless `allocations`
 * define another unit. If all members except `bytes` are 0, an item is a read of 128 bytes at a
 * position that is computed at no cost. The number of items is then unlimited, and work can be
 * bound to SMs. */
struct job_request {
    uint64_t bytes;            /* 1..PLACEMENT_MAX_BYTES */
    uint32_t allocation_count; /* 1..LAYOUT_MAX: `allocations` replaces bytes, element_bytes,
                                  transaction_bytes and granularity_bytes; 0 means no allocations */
    struct job_allocation allocations[LAYOUT_MAX];
    enum access access;
    uint32_t element_bytes;
    uint32_t transaction_bytes;
    uint64_t reserve_bytes;
    uint64_t accesses; /* number of items, not of accesses */
    double launch_us;
    double first_launch_us;
    uint32_t dependent_reads;
    double busiest_bank_ns;
    bool no_sm_binding;
    bool single_pass;
    double input_bytes;
    double input_gbps;
    double output_bytes;
    double written_bytes;
    double partition_bytes;
    double scan_gps;
    double in_reach_gbps;
    double scattered; /* 1 less the parameter `contiguous` */
    double concentration;
    double window_concentration;
    double lines;
    double line_concentration;
    uint32_t windows;
    uint64_t granularity_bytes;
    const char *fingerprint_id; /* id of the fingerprint; if NULL, the planner computes the id */
};

struct explain_request {
    uint64_t bytes;
    enum access access;
    uint32_t element_bytes;
    uint32_t transaction_bytes;
    double observed_gbps;
    double scattered;           /* 1 less the parameter `contiguous` */
    const char *fingerprint_id; /* may be NULL, as in job_request */
};

enum memory_location { LOCATION_ANY = 0, LOCATION_DEVICE, LOCATION_HOST, LOCATION_COUNT };
const char *memory_location_name(enum memory_location location); /* "any", "device", "host" */

struct memory_request {
    uint64_t bytes;
    enum access access;
    enum memory_location location;
    uint32_t kind; /* enum memory_kind plus 1; 0 means any kind */
    uint32_t element_bytes;
    uint64_t accesses;
    double launch_us;
    double input_bytes;
    double written_bytes;
    const char *fingerprint_id; /* may be NULL, as in job_request */
};

enum fit_reuse { FIT_SAME = 0, FIT_OWN, FIT_REUSE_COUNT };
const char *fit_reuse_name(enum fit_reuse reuse); /* "same", "own" */

struct fit_request {
    uint64_t bytes;
    enum fit_reuse reuse;
    struct maybe_u64 shared_bytes; /* if unknown, the shared memory of the measurement */
    uint32_t blocks_per_sm;
    uint32_t element_bytes;
    const char *fingerprint_id; /* may be NULL, as in job_request */
};
