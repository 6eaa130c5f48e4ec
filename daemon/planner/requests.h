/* requests.h: the requests that the planner answers. params.h describes their members. All members
 * except `bytes` may be 0. */
#ifndef REACH_PLANNER_REQUESTS_H
#define REACH_PLANNER_REQUESTS_H

#include "fingerprint/fingerprint.h"
#include "planner/layout.h"
#include "types/access.h"

/* One of several allocations that an item of a job touches. */
struct job_allocation {
    uint64_t bytes; /* 1..PLACEMENT_MAX_BYTES, also for the sum of all */
    double touches; /* accesses to it per item; 0 means that it is only cut with the others */
    uint32_t element_bytes;     /* same as in job_request */
    uint32_t transaction_bytes; /* likewise */
    uint64_t granularity_bytes; /* bounds are multiples of this row; 0 means the element */
};

/* The description of a job. An item is the repeated unit of work: one access, unless `allocations`
 * define another. If all members except `bytes` are 0, an item is a read of 128 bytes at a position
 * that is computed at no cost. The number of items is then unlimited, and work can be bound to
 * SMs. */
struct job_request {
    uint64_t bytes;            /* bytes touched at random, 1..PLACEMENT_MAX_BYTES */
    uint32_t allocation_count; /* 1..LAYOUT_MAX: `allocations` replaces bytes, element_,
                                  transaction_ and granularity_bytes; 0 means no allocations */
    struct job_allocation allocations[LAYOUT_MAX];
    enum access access;
    uint32_t element_bytes; /* bytes of one access, at most STRATEGY_MAX_TRANSACTION; 0 means 128 */
    uint32_t transaction_bytes; /* bytes that memory moves for an access; 0 means the element,
                                   rounded up to 32 */
    uint64_t reserve_bytes; /* bytes that all SMs also touch at random; subtracted from every window
                               and every scope in whole TLB entries, plus one entry for alignment */
    uint64_t accesses;      /* number of items, of each batch if a job has several in turn; 0 means
                               unknown: launches are free, and extra bytes are reported per item */
    double launch_us; /* time of a launch, a reset of queues, or the wait for the slowest window; 0
                         means STRATEGY_LAUNCH_US. Used if `accesses` is given */
    bool no_sm_binding;  /* work cannot be bound to SMs */
    bool single_pass;    /* the input cannot be read again */
    double input_bytes;  /* bytes of input for one item; 0 means that positions are computed, not
                            read */
    double input_gbps;   /* rate of one reading of the input over a link, in parallel with all other
                            work; repeatedly needed input is kept in this GPU's memory, chunk by
                            chunk. 0 means that all of it is there */
    double output_bytes; /* bytes of output for one item to which several passes or windows may add:
                            each except the first reads and writes it once more; 0 means none */
    double written_bytes;   /* bytes of output for one item, written exactly once: every strategy
                               writes it to memory, without a TLB miss */
    double partition_bytes; /* bytes that a partition writes for one item; 0 means input_bytes, or 8
                               if positions are computed */
    double scan_gps;      /* 10^9 positions per second that all SMs together scan and skip; 0 means
                             unknown, assumed to be free */
    double in_reach_gbps; /* measured by this job within the reach, including the scan and one
                             reading of its input; 0 means the rate in the fingerprint */
    double scattered;     /* share of the memory that is not in physically contiguous frames
                             (fingerprint_contiguity), 0..1; the API has 1 less this number */
    uint32_t windows;     /* 0 means as few as the reach allows */
    uint64_t granularity_bytes; /* bounds of windows are multiples of this; 0 means the TLB entry */
    const char *fingerprint_id; /* id of the fingerprint; computed if NULL */
};

struct explain_request {
    uint64_t bytes; /* bytes touched at random, 1..PLACEMENT_MAX_BYTES */
    enum access access;
    uint32_t element_bytes;     /* same as in job_request */
    uint32_t transaction_bytes; /* same as in job_request */
    double observed_gbps;       /* 10^9 transaction bytes per second; above 0 */
    double scattered;           /* same as in job_request */
    const char *fingerprint_id; /* same as in job_request */
};

/* The location of the memory. `any` includes the peers and everything else. */
enum memory_location { LOCATION_ANY = 0, LOCATION_DEVICE, LOCATION_HOST, LOCATION_COUNT };
const char *memory_location_name(enum memory_location location); /* "any", "device", "host" */

struct memory_request {
    uint64_t bytes; /* bytes accessed at random, 1..PLACEMENT_MAX_BYTES */
    enum access access;
    enum memory_location location;
    uint32_t kind;              /* 0 means any kind; otherwise enum memory_kind plus 1 */
    uint32_t element_bytes;     /* same as in job_request */
    const char *fingerprint_id; /* same as in job_request */
};

enum fit_reuse { FIT_SAME = 0, FIT_OWN, FIT_REUSE_COUNT };
const char *fit_reuse_name(enum fit_reuse reuse); /* "same", "own" */

struct fit_request {
    uint64_t bytes; /* bytes of all SMs together, 1..PLACEMENT_MAX_BYTES */
    enum fit_reuse reuse;
    struct maybe_u64 shared_bytes; /* shared memory of a block; default as measured */
    uint32_t blocks_per_sm;        /* 0 means 1 */
    uint32_t element_bytes;        /* bytes of one read; 0 means 128 */
    const char *fingerprint_id;    /* id of the fingerprint; computed if NULL */
};

#endif
