/* recording.h: reads recording-PID.json, in which the injected library describes the kernels and
 * the memory of one process. A recording comes from another program, so every field is checked.
 *
 * Names and other texts are borrowed from the document, which the recording owns. They can contain
 * any characters. A recording is read-only after it was read, and may be used by any thread. */
#pragma once

#include "base/status.h"
#include "clients/lab/trace/rlt.h"

#include <jansson.h>

enum {
    RECORDING_VERSION = 1,
    RECORDING_PAGE_SHIFT = 21, /* a page is 2 MiB */
    RECORDING_UUID_BYTES = 64
};

/* The way in which the process allocated memory. */
enum recording_kind {
    RECORDING_DEVICE = 0,
    RECORDING_POOL,
    RECORDING_VIRTUAL,
    RECORDING_IPC,
    RECORDING_GRAPH,
    RECORDING_PINNED,
    RECORDING_REGISTERED,
    RECORDING_REGISTERED_HUGE, /* in huge pages */
    RECORDING_MANAGED,
    RECORDING_KIND_COUNT
};
const char *recording_kind_name(enum recording_kind kind); /* "device", "pool", .. */

/* The location of managed memory. */
enum recording_location {
    RECORDING_AT_UNKNOWN = 0,
    RECORDING_AT_HOST,
    RECORDING_AT_DEVICE,
    RECORDING_LOCATION_COUNT
};
const char *recording_location_name(enum recording_location at); /* "unknown", "host", "device" */

enum recording_state {
    RECORDING_TIMED = 0, /* only launches and times are known */
    RECORDING_RECORDED,
    RECORDING_REFUSED, /* `why` of the kernel has the reason */
    RECORDING_STATE_COUNT
};
const char *recording_state_name(enum recording_state state); /* "timed", "recorded", "refused" */

struct recording_gpu {
    char uuid[RECORDING_UUID_BYTES];
    const char *name;
    uint32_t sms;
};

struct recording_allocation {
    uint32_t gpu; /* index into gpus */
    enum recording_kind kind;
    enum recording_location at; /* of RECORDING_MANAGED only */
    uint64_t address;
    uint64_t bytes; /* 1 or more; address + bytes is at most 2^63 */
};

/* Touched pages that follow one another. */
struct recording_pages {
    uint64_t first; /* address of the first page >> RECORDING_PAGE_SHIFT */
    uint64_t count; /* 1 or more */
};

struct recording_instruction {
    uint64_t pc; /* 0: all instructions of this kind and width that had no counters of their own */
    enum rlt_kind kind;
    uint32_t bytes; /* per lane; 0: a copy of the tensor memory accelerator, without a record */
    uint64_t warps; /* executions by a warp */
    uint64_t lanes; /* executions by a lane */
    uint64_t runs;  /* contiguous runs of addresses in all warp executions */
};

/* One launch whose accesses were recorded. */
struct recording_launch {
    uint32_t grid[3];
    uint32_t block[3];
    uint64_t time_ns;  /* time of such a launch without patches; 0 means unknown */
    const char *trace; /* file name in the folder of the recording; "" means no trace */
    bool complete;     /* whether all blocks are in the trace */
    bool partial;      /* whether the recording has ended before the launch */
    uint64_t warp_accesses;
    uint64_t lane_accesses;
    uint64_t pages_lost; /* touched pages that are missing from `pages` */
    uint32_t page_run_count;
    uint32_t instruction_count;
    struct recording_pages *pages; /* sorted, without overlaps */
    struct recording_instruction *instructions;
};

struct recording_kernel {
    uint32_t gpu; /* index into gpus */
    enum recording_state state;
    const char *name;     /* mangled */
    const char *why;      /* reason if the kernel was refused, otherwise "" */
    const char *operator; /* name of the operator that launched the kernel, or "" */
    uint64_t launches;    /* of the whole run */
    uint64_t time_ns;     /* of the whole run, scaled from the timed launches */
    uint64_t timed;       /* number of timed launches */
    uint32_t launch_count;
    struct recording_launch *recorded;
};

struct recording {
    json_t *document; /* owns the texts */
    uint64_t pid;
    const char *command;
    const char *problem; /* reason why nothing could be recorded, in one sentence, or "" */
    bool ended;          /* false if the process was killed while it was recorded */
    uint64_t resets;     /* of a GPU, by the process */
    double seconds;      /* wall time from the load of the library */
    uint32_t gpu_count;
    uint32_t allocation_count;
    uint32_t kernel_count;
    struct recording_gpu *gpus;
    struct recording_allocation *allocations; /* sorted by address */
    struct recording_kernel *kernels;
};

/* Reads a recording. Returns STATUS_IO if the file cannot be read, STATUS_CORRUPT if it is not a
 * recording, STATUS_NOT_SUPPORTED if it has another version, and STATUS_NO_MEMORY if out of memory.
 * Free `out` with recording_free in every case. */
enum status recording_read(const char *path, struct recording *out, struct err *err);
/* Reads a recording from its text of `bytes` bytes. Returns the same errors. */
enum status recording_parse(const char *text, size_t bytes, struct recording *out, struct err *err);
void recording_free(struct recording *take);
