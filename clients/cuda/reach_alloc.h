/* reach_alloc.h: libreach-cuda, memory that the GPU's TLB serves well. The header works in C11 and
 * C++ and needs no other header. A program builds without CUDA, because the driver (libcuda.so.1)
 * is loaded at run time.
 *
 *     struct reach_pool *pool;
 *     struct reach_alloc_error why;
 *     const struct reach_pool_options options = {.size = sizeof(options), .device = 0};
 *     void *table;
 *
 *     if (reach_pool_open(&options, &pool, &why) != REACH_ALLOC_OK ||
 *         reach_device_alloc(pool, bytes, stream, &table, &why) != REACH_ALLOC_OK)
 *         fprintf(stderr, "%s\n", why.text);
 *     ..
 *     reach_device_free(pool, table, stream, &why);
 *     reach_pool_close(pool);
 *
 * A miss in the TLB costs more if its frame is not one physical run. On an H200, whose frames are
 * 32 MiB, the factor is 1.87. A pool takes device memory frame by frame. The driver looks for
 * a run of the requested handle's length, and scatters the whole handle if no run is free. A pool
 * aligns addresses to frames, packs small arrays into frames, and shares no frame with another
 * pool. These rules are the contiguity-conserving allocation and the soft guarantee of Mosaic
 * (Ausavarungnirun et al., MICRO 2017).
 *
 * Streams have the rules of cudaMallocAsync: memory from reach_device_alloc can be used at once on
 * its stream, and on others after an event of that stream. reach_device_free takes the stream of
 * the last use and does not wait. The memory is reused after that stream has reached the free. An
 * array of the same size on the same stream may reuse it at once. Do not destroy a stream before it
 * has reached its frees.
 *
 * Any thread may call any function at any time, except reach_pool_close, which must be the last
 * call. A pool has one lock. A call makes the device's primary context current and restores the
 * former one. CUDA does not work after a fork: in the child every call with a pool of the parent
 * fails, frees nothing and does not wait.
 *
 * A call that fails returns a status, fills the error (which may be NULL) and has changed nothing.
 * The library never prints and never ends the process.
 *
 * The caller owns each array until it is freed; reach_pool_close frees what is left.
 *
 * The caller sets `size` of each struct to its sizeof; other fields may be 0. */
#ifndef REACH_ALLOC_H
#define REACH_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum reach_alloc_status {
    REACH_ALLOC_OK = 0,
    REACH_ALLOC_INVALID_ARGUMENT = 1,
    REACH_ALLOC_NO_MEMORY = 2,     /* no device memory or no host memory */
    REACH_ALLOC_NO_DRIVER = 3,     /* no driver, or no such device */
    REACH_ALLOC_NOT_SUPPORTED = 4, /* the driver or the device lacks a feature */
    REACH_ALLOC_DRIVER_FAILED = 5  /* any other failure of a driver call */
};

enum { REACH_ALLOC_CALL_BYTES = 32, REACH_ALLOC_TEXT_BYTES = 320 };

struct reach_alloc_error {
    enum reach_alloc_status status;
    int32_t driver_result;             /* CUresult; 0 if no driver call failed */
    char call[REACH_ALLOC_CALL_BYTES]; /* failed call, such as "cuMemCreate"; or "" */
    char text[REACH_ALLOC_TEXT_BYTES]; /* what failed, why, what to do; always terminated */
};

/* ---- pools ---------------------------------------------------------------------------------- */

enum reach_host_kind {
    REACH_HOST_BEST = 0, /* the first available kind of reach_pool_options.host_order */
    REACH_HOST_PINNED =
        1, /* huge pages of the process, registered with the driver piece by piece */
    REACH_HOST_MANAGED = 2, /* managed memory located at the host that the device accesses */
    REACH_HOST_VMM = 3      /* host memory by the virtual memory API */
};
enum { REACH_HOST_KINDS = 3 };

struct reach_pool_options {
    size_t size;
    int32_t device;       /* CUDA ordinal */
    const char *driver;   /* library to load; "libcuda.so.1" if NULL */
    uint64_t frame_bytes; /* frame length as measured by reachd: a power of two, at least the
                             driver's allocation granularity. 0 means that granularity */
    uint64_t keep_bytes;  /* free frames that the pool keeps for later arrays; the others go back to
                             the driver */
    enum reach_host_kind host_order[REACH_HOST_KINDS]; /* kinds, best first, up to the first 0; if
                                                          all are 0, only pinned memory is used */
    uint64_t domain; /* locality domain of the device memory, plus 1; 0 leaves the choice to the
                        driver. Memory of a domain is near the SMs of the domain */
};

struct reach_pool;

/* Reserves addresses, but no memory. The caller owns `*out`. Returns REACH_ALLOC_NOT_SUPPORTED for
 * a device without the virtual memory API, or if options->domain is not 0 and the driver has no
 * locality domains (CUDA 13.4). Returns REACH_ALLOC_INVALID_ARGUMENT if the device has no such
 * domain, or any other status. */
enum reach_alloc_status reach_pool_open(const struct reach_pool_options *options,
                                        struct reach_pool **out, struct reach_alloc_error *error);
/* Waits for all work of the device, then frees every array, including host memory. Accepts NULL. */
void reach_pool_close(struct reach_pool *take);

/* ---- device memory -------------------------------------------------------------------------- */

/* In reach_device_alloc this value allows any stream to use the memory at once. In the calls that
 * free, the value means that the caller has already waited for all uses of the memory. */
#define REACH_NO_STREAM ((void *)~(uintptr_t)0)

/* Allocates an array. `*out` is a device address for use on `stream` (a cudaStream_t or CUstream;
 * NULL is the default stream). An array of a frame or more begins at a multiple of the frame; a
 * smaller one lies within one frame, at a multiple of 512 bytes. If the driver refuses a frame in
 * one piece, the frame is assembled from pieces of the granularity. If memory is short, the call
 * waits until the streams have reached earlier frees. `bytes` must be 1 .. the memory of the
 * device. */
enum reach_alloc_status reach_device_alloc(struct reach_pool *pool, uint64_t bytes, void *stream,
                                           void **out, struct reach_alloc_error *error);

/* Frees an array without waiting. `stream` is the stream of the last use and must not be captured.
 * `array` may be NULL. On failure the array stays allocated. Returns REACH_ALLOC_INVALID_ARGUMENT
 * if the array is not from this pool or was freed before. */
enum reach_alloc_status reach_device_free(struct reach_pool *pool, void *array, void *stream,
                                          struct reach_alloc_error *error);

/* ---- host memory ---------------------------------------------------------------------------- */

enum { REACH_HOST_ANY_NODE = -1, REACH_HOST_MAX_DEVICES = 64 };

struct reach_host_options {
    size_t size;
    uint64_t bytes; /* 1 .. 2^50 */
    enum reach_host_kind kind;
    int32_t node; /* NUMA node of the pages plus 1; 0 means the node that is nearest to the pool's
                     device; REACH_HOST_ANY_NODE leaves the choice to the kernel */
    uint32_t threads;       /* threads that write each page first; 0 means one for each CPU that the
                               process may use, at most 64 */
    uint32_t device_count;  /* more devices that access the memory, at most 64 */
    const int32_t *devices; /* their CUDA ordinals */
    /* Reports how many bytes have pages, for each further 64 MiB. It is called by the thread of
     * the caller and must not call the pool. May be NULL. */
    void (*progress)(void *context, uint64_t done_bytes, uint64_t bytes);
    void *context;
    uint64_t piece_bytes; /* bytes of pinned memory that one call of the driver receives, a multiple
                             of 2 MiB; 0 means 512 MiB, which takes 0.01 to 0.06 s. Other processes
                             that call the driver wait for each call. A copy by cudaMemcpy must not
                             cross the end of a piece; kernels may */
};

/* Allocates host memory that kernels access at the address that the CPU uses. All pages exist when
 * the call returns. Pinned memory contains zeros; the contents of other kinds are
 * undefined. The distance within which kernels read each kind at full speed differs by node; reachd
 * measures it. `*used` (may be NULL) receives the kind.
 *
 * Many threads write the pages, because one thread takes about ten times as long. The driver
 * receives pinned memory and handles in pieces, because other processes that use the driver wait
 * for each call. Other calls with the pool do not wait for this one. Returns REACH_ALLOC_NO_MEMORY,
 * before it takes any page, if the host or a cgroup of the process has less memory available. */
enum reach_alloc_status reach_host_alloc(struct reach_pool *pool,
                                         const struct reach_host_options *options, void **out,
                                         enum reach_host_kind *used,
                                         struct reach_alloc_error *error);
/* Pins memory of the caller: options->bytes from `memory` on, which stay in place and keep their
 * contents. Kernels of all devices then access it at the same address, like memory of
 * REACH_HOST_PINNED. The driver pins whole pages, so the first and the last page are pinned too.
 * Many threads make all pages present first; options->node counts for pages that do not exist yet.
 * If several processes register the same shared memory (/dev/shm), they share one table.
 *
 * The memory must stay mapped until reach_host_free, which waits, unpins and does not unmap. Until
 * then a child after a fork does not have private pages of the memory. A copy by cudaMemcpy must
 * not cross a multiple of piece_bytes from the beginning of the first page.
 *
 * Returns REACH_ALLOC_INVALID_ARGUMENT if the process may not write the memory, if a page is
 * already pinned (also by other memory that shares a page), or if options->kind is not
 * REACH_HOST_PINNED or REACH_HOST_BEST. Returns REACH_ALLOC_NO_MEMORY if there is no room for pages
 * that do not exist yet. Any thread may write the memory during the call. */
enum reach_alloc_status reach_host_register(struct reach_pool *pool,
                                            const struct reach_host_options *options, void *memory,
                                            struct reach_alloc_error *error);
/* Waits for `stream`, or for all work of the device if it is NULL, then frees memory of
 * reach_host_alloc, or unpins memory of reach_host_register. REACH_NO_STREAM means that the caller
 * has waited. `memory` may be NULL. */
enum reach_alloc_status reach_host_free(struct reach_pool *pool, void *memory, void *stream,
                                        struct reach_alloc_error *error);

/* ---- what a pool holds ---------------------------------------------------------------------- */

struct reach_alloc_stats {
    size_t size;
    uint64_t frame_bytes;
    bool frame_is_granularity; /* whether no frame length was given */
    uint64_t arrays; /* arrays that are allocated, or whose streams have not reached the free */
    uint64_t array_bytes;      /* bytes of these arrays, in multiples of 512 */
    uint64_t pending_arrays;   /* arrays among them that were freed */
    uint64_t device_bytes;     /* bytes from the driver: frames * frame_bytes */
    uint64_t frames;           /* frames_whole + frames_scattered */
    uint64_t frames_whole;     /* frames of one driver handle each. The driver of an H200 (580.159)
                                  looks for a run, but does not report success; see is_scattered */
    uint64_t frames_scattered; /* frames of several handles, or scattered by is_scattered of the
                                  last reach_compact */
    uint64_t frames_free;      /* free frames, kept for later arrays */
    uint64_t host_bytes;
    uint64_t compacted_frames; /* frames moved by reach_compact since the pool was opened */
    uint64_t compact_ns;       /* time that the moves took */
};

/* The caller sets `out->size`. Returns REACH_ALLOC_INVALID_ARGUMENT if it is invalid. */
enum reach_alloc_status reach_alloc_stats(struct reach_pool *pool, struct reach_alloc_stats *out,
                                          struct reach_alloc_error *error);

/* ---- compaction ----------------------------------------------------------------------------- */

struct reach_compact_options {
    size_t size;
    uint64_t max_frames; /* largest number of frames to move; 0 means no limit */
    /* Returns whether the frame at `frame` is scattered. If NULL, frames of several handles count
     * as scattered. It is called with the pool locked, once per frame in use, and must not call the
     * pool. Measure before the call. */
    bool (*is_scattered)(void *context, const void *frame, uint64_t frame_bytes);
    void *context;
    double gain_ns; /* the price of a miss in a scattered frame minus the price in a whole one, as
                       measured by reachd. 0 if not known */
};

struct reach_compaction {
    size_t size;
    uint64_t frames;      /* frames moved into a new handle */
    uint64_t frames_left; /* scattered frames without memory for a new handle, or past max_frames */
    uint64_t ns;          /* duration of the call */
    double break_even_misses; /* misses in the moved frames after which the time is regained: ns /
                                 gain_ns. 0 if not known, or if nothing was moved */
};

/* Moves the contents of scattered frames into new handles of one frame each, under the same
 * addresses: it copies on the device, unmaps and maps again. The caller must make sure that nothing
 * uses the pool's device memory during the call. The call waits for work that was submitted before.
 * If a driver call fails, the current frame keeps its old memory and contents. `*out` (may be NULL)
 * is also set on failure; the caller sets its size. The method is contiguity-aware compaction (CAC)
 * of Mosaic, applied to the process's own pages. */
enum reach_alloc_status reach_compact(struct reach_pool *pool,
                                      const struct reach_compact_options *options,
                                      struct reach_compaction *out,
                                      struct reach_alloc_error *error);

/* ---- PyTorch -------------------------------------------------------------------------------- */

/* The functions of a torch.cuda.memory.CUDAPluggableAllocator (clients/python/reach/torch/pool.py),
 * over one pool per device. These pools live as long as the process. */

/* Opens the pool of options->device; later calls for that device return the same pool and ignore
 * the other options. Returns REACH_ALLOC_INVALID_ARGUMENT if options->domain is not 0 and the pool
 * is open for another domain. */
enum reach_alloc_status reach_torch_open(const struct reach_pool_options *options,
                                         struct reach_pool **out, struct reach_alloc_error *error);
/* Returns NULL if there is no memory, or if the device's pool was not opened and cannot be
 * opened. */
void *reach_torch_malloc(ptrdiff_t bytes, int device, void *stream);
void reach_torch_free(void *array, ptrdiff_t bytes, int device, void *stream);

#ifdef __cplusplus
}
#endif

#endif
