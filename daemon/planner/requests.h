/* requests.h: the requests of jobs, whose members params.h describes and the planner answers. Other
 * members than `bytes` may be 0. */
#ifndef REACH_PLANNER_REQUESTS_H
#define REACH_PLANNER_REQUESTS_H

#include "fingerprint/fingerprint.h"
#include "planner/layout.h"
#include "types/access.h"

/* One of several allocations that an item of a job touches. */
struct job_allocation {
    uint64_t bytes;         /* 1..PLACEMENT_MAX_BYTES, all together too */
    double touches;         /* accesses of it per item; 0: it is only laid out with the others */
    uint32_t element_bytes; /* as in job_request */
    uint32_t transaction_bytes; /* likewise */
    uint64_t granularity_bytes; /* bounds are multiples: a row; 0: the element */
};

/* The description of a job. An item is what it does again and again: one access, unless
 * `allocations` say otherwise. All 0 but `bytes`: reads of 128 bytes at positions that it computes,
 * at no cost, any number of times, with work that can be bound to SMs. */
struct job_request {
    uint64_t bytes;            /* 1..PLACEMENT_MAX_BYTES: touched at random */
    uint32_t allocation_count; /* 1..LAYOUT_MAX: what `allocations` says counts instead of bytes,
                                  element_, transaction_ and granularity_bytes; 0: those */
    struct job_allocation allocations[LAYOUT_MAX];
    enum access access;
    uint32_t element_bytes;     /* of one access; 0: 128. At most STRATEGY_MAX_TRANSACTION */
    uint32_t transaction_bytes; /* what memory moves for it; 0: the element, rounded up to 32 */
    uint64_t reserve_bytes;     /* touched at random besides, by all SMs: comes off every window and
                                   every scope, in whole TLB entries and one for its alignment */
    uint64_t accesses;          /* items in all, of each batch if a job does several one after the
                                   other; 0: unknown, launches then cost nothing and extra
                                   bytes are reported per item only */
    double launch_us;     /* of a launch, of a reset of queues, of the wait for the slowest window;
                             0: STRATEGY_LAUNCH_US. Counts if `accesses` is given */
    bool no_sm_binding;   /* work cannot be bound to SMs */
    bool single_pass;     /* the input cannot be read again */
    double input_bytes;   /* of input for one item; 0: positions are computed, not read */
    double input_gbps;    /* of one reading of it over a link, beside all else; what is needed
                             again is kept in this GPU's memory, chunk by chunk. 0: it lies
                             there as a whole */
    double output_bytes;  /* of output for one item that several may add to: each pass or
                             window but one reads and writes it once more; 0: none */
    double written_bytes; /* of output for one item that is written exactly once: every strategy
                             writes it, to memory and without a miss of the TLB */
    double partition_bytes; /* that a partition writes for one item; 0: input_bytes, or 8 if
                          positions are computed */
    double scan_gps; /* 10^9 positions per second that all SMs together scan and skip; 0: unknown,
                        assumed to cost nothing */
    double in_reach_gbps; /* measured by this job within the reach, the scan and one reading of its
                           input included; 0: what the fingerprint says of such accesses */
    double scattered;     /* share of the memory that is not in physically contiguous frames
                             (fingerprint_contiguity), 0..1; the API has 1 less it */
    uint32_t windows;     /* 0: as few as the reach allows */
    uint64_t granularity_bytes; /* bounds of windows are multiples; 0: the TLB entry */
    const char *fingerprint_id; /* of the fingerprint, if the caller has it; NULL: computed */
};

struct explain_request {
    uint64_t bytes; /* 1..PLACEMENT_MAX_BYTES: touched at random */
    enum access access;
    uint32_t element_bytes;     /* as in job_request */
    uint32_t transaction_bytes; /* as in job_request */
    double observed_gbps;       /* 10^9 transaction bytes per second; above 0 */
    double scattered;           /* as in job_request */
    const char *fingerprint_id; /* as in job_request */
};

/* Where the memory may be. Peers and all else are in `any`. */
enum memory_location { LOCATION_ANY = 0, LOCATION_DEVICE, LOCATION_HOST, LOCATION_COUNT };
const char *memory_location_name(enum memory_location location); /* "any", "device", "host" */
bool memory_location_from_name(const char *name, enum memory_location *out);

struct memory_request {
    uint64_t bytes; /* 1..PLACEMENT_MAX_BYTES: accessed at random */
    enum access access;
    enum memory_location location;
    uint32_t kind;              /* 0: any; otherwise of this enum memory_kind, plus 1 */
    uint32_t element_bytes;     /* as in job_request */
    const char *fingerprint_id; /* as in job_request */
};

enum fit_reuse { FIT_SAME = 0, FIT_OWN, FIT_REUSE_COUNT };
const char *fit_reuse_name(enum fit_reuse reuse); /* "same", "own" */
bool fit_reuse_from_name(const char *name, enum fit_reuse *out);

struct fit_request {
    uint64_t bytes; /* 1..PLACEMENT_MAX_BYTES, of all SMs together */
    enum fit_reuse reuse;
    struct maybe_u64 shared_bytes; /* that a block takes; unknown: as the measurement had it */
    uint32_t blocks_per_sm;        /* 0: 1 */
    uint32_t element_bytes;        /* of one read; 0: 128 */
    const char *fingerprint_id;    /* of the fingerprint, if the caller has it; NULL: computed */
};

#endif
