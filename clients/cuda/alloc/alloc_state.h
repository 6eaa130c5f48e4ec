/* alloc_state.h: the parts of a pool, for the allocators only.
 *
 * A pool is one reservation of addresses, cut into frames. A frame may have memory behind it (one
 * handle, or pieces of the granularity), and it has one of three uses. An array of a frame or more
 * takes a run of FRAME_RUN frames and, for its last part, a block in the frame behind them. A
 * smaller array is a block in a FRAME_SHARED frame.
 *
 * All functions are called with the pool locked and its context current (alloc_enter).
 */
#pragma once

#include "clients/cuda/alloc/alloc_driver.h"

#include <pthread.h>

enum { ALLOC_ALIGNMENT = 512 };

struct alloc_block {
    struct alloc_block *next; /* next block, in the order of offsets */
    uint64_t offset;          /* offset within the frame */
    uint64_t bytes;
    bool tail;  /* the last part of an array that begins in an earlier frame */
    bool freed; /* freed, but the stream has not reached the free */
};

enum frame_use { FRAME_FREE = 0, FRAME_RUN, FRAME_SHARED };

struct alloc_frame {
    uint64_t handle;  /* handle of the whole frame; 0 if there is none */
    uint64_t *pieces; /* handles of one granule each; NULL if there are none */
    struct alloc_block *blocks;
    uint64_t run_frames; /* whole frames of the array that begins here; 0 if none begins here */
    uint64_t run_bytes;
    enum frame_use use;
    bool freed;     /* whether the array that begins here was freed */
    bool scattered; /* whether is_scattered of reach_compact returned true */
};

/* An array that was freed and waits for its stream. */
struct alloc_pending {
    struct alloc_pending *next;
    void *event;
    void *stream;
    uint64_t address;
    uint64_t bytes;
};

struct alloc_host {
    struct alloc_host *next;
    enum reach_host_kind kind;
    void *memory;
    uint64_t bytes;        /* allocated bytes, a multiple of 2 MiB */
    uint64_t piece_bytes;  /* bytes of each registered piece or handle, except the last */
    uint64_t mapped_bytes; /* bytes that are registered, or mapped from handles */
    uint64_t *handles;     /* REACH_HOST_VMM: one for each piece; NULL otherwise */
    /* Memory of the caller: `memory` and `bytes` are its whole pages. */
    bool borrowed;
    bool is_private;     /* whether a child gets copies of the pages */
    uint64_t lead_bytes; /* bytes of the first page before the caller's memory */
    uint64_t tail_bytes; /* bytes of the last page after the caller's memory */
};

struct reach_pool {
    pid_t process; /* process that opened the pool; its children lock, use and free nothing */
    pthread_mutex_t lock;
    struct alloc_driver driver;
    int device;
    struct drv_location location; /* of the device memory */
    void *context;
    uint64_t base;
    uint64_t range_bytes;
    uint64_t frame_bytes;
    uint64_t granule_bytes;
    bool frame_is_granularity;
    uint64_t keep_bytes;
    enum reach_host_kind host_order[REACH_HOST_KINDS];
    struct alloc_frame *frames;
    uint64_t frame_count; /* without the last frame of addresses, which compaction uses */
    uint64_t frame_top;   /* frames from here on were never used */
    uint64_t backed;      /* frames with memory */
    uint64_t in_use;      /* frames that are not FRAME_FREE */
    uint64_t arrays;
    uint64_t array_bytes;
    struct alloc_pending *pending;
    struct alloc_host *hosts;
    uint64_t compacted_frames;
    uint64_t compact_ns;
};

/* alloc_pool.c: the location of memory of a domain of a device; see reach_pool_options.domain. */
struct drv_location alloc_location(int device, uint64_t domain);

/* alloc_enter.c: fails in any process other than the pool's. The context of a device does not
 * survive a fork, and another thread may have held the lock. */
enum reach_alloc_status alloc_check_process(const struct reach_pool *pool,
                                            struct reach_alloc_error *error);
/* Locks the pool and makes its context current. If it fails, nothing is locked. */
enum reach_alloc_status alloc_enter(struct reach_pool *pool, struct reach_alloc_error *error);
void alloc_leave(struct reach_pool *pool);
/* Makes the context of the pool current without the lock, for calls that take long. */
enum reach_alloc_status alloc_enter_unlocked(struct reach_pool *pool,
                                             struct reach_alloc_error *error);
void alloc_leave_unlocked(struct reach_pool *pool);

/* alloc_frame.c */
bool frame_is_backed(const struct alloc_frame *frame);
uint64_t frame_address(const struct reach_pool *pool, uint64_t index);
/* Puts memory behind a frame that has none. Returns REACH_ALLOC_NO_MEMORY or any other status. */
enum reach_alloc_status frame_back(struct reach_pool *pool, uint64_t index,
                                   struct reach_alloc_error *error);
void frame_release(struct reach_pool *pool, uint64_t index);
/* Releases every frame that is backed and free, and returns their number. */
uint64_t frame_trim(struct reach_pool *pool);
/* Moves the contents of a frame in use into a new handle under the same address. */
enum reach_alloc_status frame_move(struct reach_pool *pool, uint64_t index,
                                   struct reach_alloc_error *error);

/* alloc_array.c: releases the arrays whose streams have reached the free, and returns the number of
 * these arrays. With `wait`, it waits for all streams. */
uint64_t array_settle(struct reach_pool *pool, bool wait);

/* alloc_host.c */
void host_release(struct reach_pool *pool, struct alloc_host *take);
void host_add(struct reach_pool *pool, struct alloc_host *take);
/* Returns the NUMA node of the pages, -1 if any node will do. */
int host_node(struct reach_pool *pool, const struct reach_host_options *options);
enum reach_alloc_status host_check_options(const struct reach_host_options *options,
                                           struct reach_alloc_error *error);

/* alloc_register.c: registers all bytes of host->memory in pieces, or none if a call fails. */
enum reach_alloc_status register_pieces(struct reach_pool *pool, struct alloc_host *host,
                                        struct reach_alloc_error *error);
void register_undo(struct reach_pool *pool, const struct alloc_host *host);
/* Sets whether a child after a fork has the private pages that contain only memory of the caller
 * (MADV_DONTFORK or MADV_DOFORK). The kernel copies each pinned page at the fork. The first and the
 * last page may contain other data, which a child needs. */
void register_set_fork(const struct alloc_host *host, int advice);

/* alloc_pages.c */
uint64_t alloc_page_bytes(void);
/* Returns REACH_ALLOC_INVALID_ARGUMENT if the process may not write all of these pages. `*missing`
 * is set to the bytes of pages that do not exist yet, and `*is_private` to whether any page is
 * private. */
enum reach_alloc_status alloc_pages_mapped(const void *memory, uint64_t bytes, bool *is_private,
                                           uint64_t *missing, struct reach_alloc_error *error);
/* Returns REACH_ALLOC_NO_MEMORY if the host or a cgroup of the process has less
 * memory available than `bytes`. */
enum reach_alloc_status alloc_pages_check(uint64_t bytes, struct reach_alloc_error *error);
struct alloc_touch {
    uint32_t threads; /* 0 means one for each CPU that the process may use */
    int node;         /* NUMA node of the CPUs of the threads; -1 means any */
    bool keep;        /* whether the contents are kept; otherwise zeros may be written */
    /* Receives that all bytes before `done_bytes` have pages, from the thread of the caller. May be
     * NULL. */
    void (*progress)(void *context, uint64_t done_bytes, uint64_t bytes);
    void *context;
};
/* Writes one byte of each page of `memory` with several threads. With `keep`, it can fail. */
enum reach_alloc_status alloc_pages_touch(char *memory, uint64_t bytes,
                                          const struct alloc_touch *options,
                                          struct reach_alloc_error *error);
