/* cuda_arena.h: the memory that probes touch.
 *
 * Alias arena. The virtual memory API maps one small physical handle again and again, side by side,
 * over a large reserved range. TLBs hold virtual pages, so hundreds of GiB of reach are probed with
 * a few hundred MiB of device memory, and the data of latency probes stays in L2.
 *
 * Latency probes want more: every page backed by the *same physical line*, or the distance to its
 * slice of L2 adds some ten cycles of scatter. So there are two ranges over two handles:
 *   bulk   a large handle (1 GiB, or what is free): random reads must miss in L2, and
 *          go round it in an order that lets them (random_share in cuda_read.c)
 *   line   a handle of one granule (2 MiB), mapped only where a probe touches it: page i at
 *          i * stride is the same line for every stride that is a multiple of 2 MiB. A map costs
 *          tens of microseconds, so this is for probes of up to 2560 pages
 *
 * A READ over scattered memory gets a range of its own:
 *   runs   first a handle as long as a run, mapped side by side, so that no run continues the one
 *          before; then the bulk handle again and again
 *
 * Plain arena. If the virtual memory API is missing, both are one plain allocation.
 *
 * All memory is zero. One thread.
 */
#ifndef REACH_GPU_CUDA_CUDA_ARENA_H
#define REACH_GPU_CUDA_CUDA_ARENA_H

#include "base/clock.h"
#include "gpu/cuda/cuda_api.h"
#include "gpu/probe.h"

/* The least free device memory for an arena, which takes half of it. */
enum { CUDA_ARENA_LEAST_BYTES = 128 << 20 };

/* Reserves a range that starts at a multiple of a power of two near its length, if the driver has
 * one: TLBs that hash the page number fill their sets evenly from there, and a level's capacity is
 * seen to the entry. Otherwise it reserves a range that starts anywhere. cuMemAddressFree. */
enum status cuda_arena_reserve(const struct cuda_api *api, uint64_t bytes, cu_deviceptr *out,
                               struct err *err);

/* One handle, and the range over which it is mapped slot by slot (a slot is as long as the handle).
 * Zero handle_bytes: no handle; zero reserved_bytes: no range. */
struct cuda_alias {
    cu_mem_handle handle;
    uint64_t handle_bytes;
    cu_deviceptr base;
    uint64_t reserved_bytes;
    unsigned char *mapped; /* [slots]: 1 where this slot is mapped; owned */
    uint64_t mapped_count;
};

/* Makes the handle, which `prop` describes, and reserves the range; maps nothing yet. What it has
 * made before a failure is in `out`, for cuda_alias_close. */
enum status cuda_alias_open(const struct cuda_api *api, const struct cu_mem_allocation_prop *prop,
                            uint64_t handle_bytes, uint64_t range_bytes, struct cuda_alias *out,
                            struct err *err);
/* Maps the slots [first, first + count) that are not mapped yet, and lets the device at them. */
enum status cuda_alias_map(const struct cuda_api *api, int device, struct cuda_alias *a,
                           uint64_t first, uint64_t count, struct err *err);
/* Undoes what was done, also after a failure half-way, run of slots by run of slots. */
void cuda_alias_close(const struct cuda_api *api, struct cuda_alias *a);

struct cuda_arena {
    const struct cuda_api *api;
    int device;
    enum arena_kind kind;
    uint64_t granule_bytes;
    uint64_t range_bytes; /* from bulk.base: all of it can be touched */
    struct cuda_alias bulk;
    struct cuda_alias line;
    struct cuda_alias runs; /* of the last READ over scattered memory */
    uint64_t runs_bytes;    /* of the runs, from runs.base; then come bulk slots */
    uint64_t runs_end;      /* of the bulk slots that are mapped behind them */
    uint64_t line_offset;   /* in the line handle: of the line that the pages share
                               (cuda_probe_choose_line) */
    bool line_known;        /* line_offset was chosen, for the SM `line_sm` */
    uint16_t line_sm;
    nsec_t spent_ns;    /* on mapping and unmapping, since it was opened */
    cu_deviceptr plain; /* ARENA_PLAIN: the allocation; bulk and line describe it */
};

/* Takes at most `limit_bytes` of device memory and not more than half of what is free; maps
 * `range_bytes` of virtual range (bulk at once, line as it is needed).
 * STATUS_GPU_NO_MEMORY if less than 64 MiB are available. */
enum status cuda_arena_open(const struct cuda_api *api, int device, uint64_t limit_bytes,
                            uint64_t range_bytes, bool plain, struct cuda_arena *out,
                            struct err *err);
void cuda_arena_close(struct cuda_arena *arena);

/* Where page 0 of a latency probe is, for `pages` pages at this stride from `first_byte` on: in the
 * line range if that pays, in the bulk range otherwise. */
enum status cuda_arena_latency_base(struct cuda_arena *arena, uint64_t first_byte,
                                    uint64_t stride_bytes, uint64_t pages, cu_deviceptr *out,
                                    struct err *err);

/* Lays out the region of a READ with run_bytes, which has passed probe_check. A map takes some 25
 * microseconds, an unmap 15. The region begins at runs.base and stays until the next one, or until
 * the arena is closed: undoing the last one would keep the next probe waiting. */
enum status cuda_arena_open_runs(struct cuda_arena *arena, const struct probe_spec *spec,
                                 struct err *err);

/* Device memory that the arena holds, with the longest run. */
uint64_t cuda_arena_device_bytes(const struct cuda_arena *arena);

#endif
