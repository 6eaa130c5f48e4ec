/* cuda_arena.h: the memory that probes touch.
 *
 * In an alias arena, the virtual memory API maps one small physical handle again and again, side by
 * side, over a large reserved range. TLBs hold virtual pages, so hundreds of GiB of reach are
 * probed with a few hundred MiB of device memory. The data of latency probes stays in L2.
 *
 * Latency probes need more: every page must be backed by the *same physical line*. Otherwise the
 * distances to the lines' slices of L2 add some ten cycles of scatter. So there are two ranges over
 * two handles:
 *   bulk   a large handle (1 GiB, or the free memory). Random reads go through it in an order in
 *          which they seldom hit in L2 (random_share in cuda_read.c)
 *   line   a handle of one granule (2 MiB), mapped only at pages that a probe touches. Page i at
 *          i * stride is the same line for every stride that is a multiple of 2 MiB. A map
 *          costs tens of microseconds, so only probes of up to 2560 pages use this handle
 *
 * A READ over scattered memory gets a separate range:
 *   runs   at the start, a handle as long as a run is mapped side by side, so that no run
 *          continues the run before it; behind that, the bulk handle is mapped again and again
 *
 * In a plain arena, which is made if the virtual memory API is missing, both ranges are one plain
 * allocation.
 *
 * All memory is zero. One thread uses an arena.
 */
#pragma once

#include "base/clock.h"
#include "gpu/cuda/cuda_api.h"
#include "gpu/probe.h"

/* The least free device memory for an arena. An arena takes at most half of the free memory. */
enum { CUDA_ARENA_LEAST_BYTES = 128 << 20 };

/* Reserves a range that starts at a multiple of a power of two near its length, if the driver has
 * one. TLBs that hash the page number fill their sets evenly from there, so a level's capacity is
 * measured exactly. Otherwise the range starts anywhere. The caller frees it with
 * cuMemAddressFree. */
enum status cuda_arena_reserve(const struct cuda_api *api, uint64_t bytes, cu_deviceptr *out,
                               struct err *err);

/* One handle, and the range over which it is mapped slot by slot (a slot is as long as the handle).
 * handle_bytes is 0 if there is no handle, and reserved_bytes is 0 if there is no range. */
struct cuda_alias {
    cu_mem_handle handle;
    uint64_t handle_bytes;
    cu_deviceptr base;
    uint64_t reserved_bytes;
    unsigned char *mapped; /* [slots]: 1 for a mapped slot; owned */
    uint64_t mapped_count;
};

/* Makes the handle, which `prop` describes, and reserves the range; maps nothing yet. After a
 * failure `out` contains everything made so far, for cuda_alias_close. */
enum status cuda_alias_open(const struct cuda_api *api, const struct cu_mem_allocation_prop *prop,
                            uint64_t handle_bytes, uint64_t range_bytes, struct cuda_alias *out,
                            struct err *err);
/* Maps the slots of [first, first + count) that are not mapped yet, and gives the device access to
 * them. */
enum status cuda_alias_map(const struct cuda_api *api, int device, struct cuda_alias *a,
                           uint64_t first, uint64_t count, struct err *err);
/* Unmaps the slots, run by run, and releases the handle and the range. The alias may be incomplete
 * after a failure. */
void cuda_alias_close(const struct cuda_api *api, struct cuda_alias *a);

struct cuda_arena {
    const struct cuda_api *api;
    int device;
    enum arena_kind kind;
    uint64_t granule_bytes;
    uint64_t range_bytes; /* length from bulk.base that can be touched */
    struct cuda_alias bulk;
    struct cuda_alias line;
    struct cuda_alias runs; /* range of the last READ over scattered memory */
    uint64_t runs_bytes;    /* length of the runs, from runs.base; bulk slots follow */
    uint64_t runs_end;      /* end of the mapped bulk slots behind the runs */
    uint64_t line_offset;   /* offset, in its handle, of the line that the pages share
                               (cuda_probe_choose_line) */
    bool line_known;        /* true if line_offset was chosen, for the SM `line_sm` */
    uint16_t line_sm;
    nsec_t spent_ns;    /* time spent on mapping and unmapping since the arena was opened */
    cu_deviceptr plain; /* ARENA_PLAIN: the allocation, which is also bulk.base */
};

/* Takes at most `limit_bytes` of device memory and not more than half of `free_bytes`. Reserves
 * virtual ranges of `range_bytes`. The bulk range is mapped at once, and the line range page by
 * page when a probe needs it. Returns STATUS_GPU_NO_MEMORY if less than 64 MiB are available. */
enum status cuda_arena_open(const struct cuda_api *api, int device, uint64_t limit_bytes,
                            uint64_t free_bytes, uint64_t range_bytes, bool plain,
                            struct cuda_arena *out, struct err *err);
void cuda_arena_close(struct cuda_arena *arena);

/* Returns the address of page 0 of a latency probe, for `pages` pages at this stride from
 * `first_byte` on. The address is in the line range if all pages can share one line there,
 * otherwise in the bulk range. */
enum status cuda_arena_latency_base(struct cuda_arena *arena, uint64_t first_byte,
                                    uint64_t stride_bytes, uint64_t pages, cu_deviceptr *out,
                                    struct err *err);

/* Lays out the region of a READ with run_bytes, which has passed probe_check. A call that maps a
 * run takes some 25 microseconds, and a call that unmaps it takes 15. The region begins at
 * runs.base. It stays mapped until the next region or the end of the arena, because unmapping would
 * delay the next probe. */
enum status cuda_arena_open_runs(struct cuda_arena *arena, const struct probe_spec *spec,
                                 struct err *err);

/* Returns the device memory of the arena, including the longest run. */
uint64_t cuda_arena_device_bytes(const struct cuda_arena *arena);
