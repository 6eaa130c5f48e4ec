/* reach_alloc.h: libreach-cuda, memory that the GPU's TLB serves well. C11 and C++; needs no other
 * header and no CUDA to build: the driver (libcuda.so.1) is loaded at run time.
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
 * A miss in the TLB costs more if the frame that it translates is not one physical run (1.87 times
 * on an H200, whose frames are 32 MiB). A pool takes device memory frame by frame, because the
 * driver looks for a run as long as the handle that is asked of it and scatters the whole handle if
 * there is none. It aligns addresses to frames, packs small arrays into frames, and shares no frame
 * with another pool: the contiguity-conserving allocation and the soft guarantee of Mosaic
 * (Ausavarungnirun et al., MICRO 2017).
 *
 * Streams, as with cudaMallocAsync: memory from reach_device_alloc can be used at once on its
 * stream, and on others after an event of that stream. reach_device_free takes the stream of the
 * last use and does not wait: the memory is reused after that stream has reached the free, or at
 * once for an array of the same size on the same stream. Do not destroy a stream before it has
 * reached its frees.
 *
 * Threads. Any thread may call anything at any time, except reach_pool_close, which comes last. One
 * lock per pool; a call makes the device's primary context current and restores the former one.
 * CUDA does not survive a fork: in the child every call with a pool of the parent fails, frees
 * nothing and does not wait.
 *
 * Errors. A call that fails returns a status, fills the error (which may be NULL) and has changed
 * nothing. The library never prints and never ends the process.
 *
 * Ownership. The caller owns each array until it is freed; reach_pool_close frees what is left.
 *
 * Compatibility. The caller sets `size` of each struct to its sizeof; other fields may be 0.
 */
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
    REACH_ALLOC_NO_MEMORY = 2,     /* of the device or of the host */
    REACH_ALLOC_NO_DRIVER = 3,     /* no driver, or no such device */
    REACH_ALLOC_NOT_SUPPORTED = 4, /* the driver or the device lacks this */
    REACH_ALLOC_DRIVER_FAILED = 5  /* any other failure of a driver call */
};

enum { REACH_ALLOC_CALL_BYTES = 32, REACH_ALLOC_TEXT_BYTES = 320 };

struct reach_alloc_error {
    enum reach_alloc_status status;
    int32_t driver_result;             /* CUresult; 0: no driver call is to blame */
    char call[REACH_ALLOC_CALL_BYTES]; /* "cuMemCreate"; "": none */
    char text[REACH_ALLOC_TEXT_BYTES]; /* what failed, why, what to do; always terminated */
};

/* ---- pools ---------------------------------------------------------------------------------- */

enum reach_host_kind {
    REACH_HOST_BEST = 0,    /* the first of reach_pool_options.host_order that can be had */
    REACH_HOST_PINNED = 1,  /* cuMemHostAlloc */
    REACH_HOST_MANAGED = 2, /* managed memory located at the host that the device accesses */
    REACH_HOST_VMM = 3      /* host memory by the virtual memory API */
};
enum { REACH_HOST_KINDS = 3 };

struct reach_pool_options {
    size_t size;
    int32_t device;       /* CUDA ordinal */
    const char *driver;   /* library to load; NULL: "libcuda.so.1" */
    uint64_t frame_bytes; /* as measured by reachd: a power of two, at least the driver's allocation
                             granularity. 0: that granularity */
    uint64_t keep_bytes;  /* of free frames that the pool keeps for later arrays; the rest goes back
                             to the driver */
    enum reach_host_kind host_order[REACH_HOST_KINDS]; /* best first, up to the first 0; all 0:
                                                          pinned memory only */
};

struct reach_pool;

/* Reserves addresses, but no memory. The caller owns `*out`. Errors: REACH_ALLOC_NOT_SUPPORTED for
 * a device without the virtual memory API; any. */
enum reach_alloc_status reach_pool_open(const struct reach_pool_options *options,
                                        struct reach_pool **out, struct reach_alloc_error *error);
/* Waits for all work of the device, then frees every array, host memory too. NULL is fine. */
void reach_pool_close(struct reach_pool *take);

/* ---- device memory -------------------------------------------------------------------------- */

/* In reach_device_alloc: the memory may be used on any stream at once. In the calls that free: the
 * caller has already waited for all uses of the memory. */
#define REACH_NO_STREAM ((void *)~(uintptr_t)0)

/* `*out` is a device address, to be used on `stream` (a cudaStream_t or CUstream; NULL is the
 * default stream). An array of a frame or more begins at a multiple of the frame; a smaller one
 * lies within one frame, at a multiple of 512 bytes. If the driver refuses a frame in one piece,
 * the frame is put together from pieces of the granularity. If memory is short, the call waits for
 * earlier frees to be reached. `bytes` 1 .. the memory of the device. */
enum reach_alloc_status reach_device_alloc(struct reach_pool *pool, uint64_t bytes, void *stream,
                                           void **out, struct reach_alloc_error *error);

/* `stream` is the stream of the last use. Does not wait. Not while the stream is captured. NULL for
 * `array` is fine. If it fails the array is still allocated. REACH_ALLOC_INVALID_ARGUMENT: not from
 * this pool, or freed before. */
enum reach_alloc_status reach_device_free(struct reach_pool *pool, void *array, void *stream,
                                          struct reach_alloc_error *error);

/* ---- host memory ---------------------------------------------------------------------------- */

/* Host memory that kernels of the pool's device can access, at the same address. How far each kind
 * is reached at full speed differs by node: reachd measures it. `*used` (may be NULL) is the kind.
 */
enum reach_alloc_status reach_host_alloc(struct reach_pool *pool, enum reach_host_kind kind,
                                         uint64_t bytes, void **out, enum reach_host_kind *used,
                                         struct reach_alloc_error *error);
/* Waits for `stream` (see reach_device_free), then frees. */
enum reach_alloc_status reach_host_free(struct reach_pool *pool, void *memory, void *stream,
                                        struct reach_alloc_error *error);

/* ---- what a pool holds ---------------------------------------------------------------------- */

struct reach_alloc_stats {
    size_t size;
    uint64_t frame_bytes;
    bool frame_is_granularity; /* no frame length was given */
    uint64_t arrays;           /* allocated, or freed and not yet reached by their streams */
    uint64_t array_bytes;      /* of these, in multiples of 512 */
    uint64_t pending_arrays;   /* of these, freed */
    uint64_t device_bytes;     /* taken from the driver: frames * frame_bytes */
    uint64_t frames;           /* frames_whole + frames_scattered */
    uint64_t frames_whole; /* one handle of the driver each. The driver of an H200 (580.159) looks
                              for a run, but does not tell if it found one; see is_scattered */
    uint64_t frames_scattered; /* of several handles, or scattered by is_scattered of the last
                                  reach_compact */
    uint64_t frames_free;      /* kept for later arrays */
    uint64_t host_bytes;
    uint64_t compacted_frames; /* by reach_compact, since the pool was opened */
    uint64_t compact_ns;       /* that they took */
};

/* The caller sets `out->size`. REACH_ALLOC_INVALID_ARGUMENT. */
enum reach_alloc_status reach_alloc_stats(struct reach_pool *pool, struct reach_alloc_stats *out,
                                          struct reach_alloc_error *error);

/* ---- compaction ----------------------------------------------------------------------------- */

struct reach_compact_options {
    size_t size;
    uint64_t max_frames; /* 0: no limit */
    /* Is the frame at `frame` scattered? NULL: one that consists of several handles is. It is
     * called with the pool locked, once per frame in use, and must not call the pool; a measurement
     * comes before. */
    bool (*is_scattered)(void *context, const void *frame, uint64_t frame_bytes);
    void *context;
    double gain_ns; /* of a miss: its price in a scattered frame less that in a whole one, as
                       measured by reachd. 0: not known */
};

struct reach_compaction {
    size_t size;
    uint64_t frames;          /* moved into a new handle */
    uint64_t frames_left;     /* scattered, but no memory for a new handle, or past max_frames */
    uint64_t ns;              /* elapsed */
    double break_even_misses; /* misses in the moved frames after which the time is regained: ns /
                                 gain_ns. 0: not known, or nothing was moved */
};

/* Moves the contents of scattered frames into new handles of one frame each, under the same
 * addresses: copies on the device, unmaps, maps anew. The caller makes sure that nothing uses the
 * pool's device memory meanwhile; the call waits for work that was submitted before. If a driver
 * call fails, the frame at hand keeps its old memory and contents. `*out` (may be NULL) is also set
 * on failure; the caller sets its size. Mosaic's CAC, for one's own pages. */
enum reach_alloc_status reach_compact(struct reach_pool *pool,
                                      const struct reach_compact_options *options,
                                      struct reach_compaction *out,
                                      struct reach_alloc_error *error);

/* ---- PyTorch -------------------------------------------------------------------------------- */

/* The functions of a torch.cuda.memory.CUDAPluggableAllocator (clients/python/reach/torch/pool.py),
 * over one pool per device. These pools live as long as the process. */

/* Opens the pool of options->device; later calls for that device return the same pool and ignore
 * the other options. */
enum reach_alloc_status reach_torch_open(const struct reach_pool_options *options,
                                         struct reach_pool **out, struct reach_alloc_error *error);
/* NULL if there is no memory, or the device's pool was not opened and cannot be. */
void *reach_torch_malloc(ptrdiff_t bytes, int device, void *stream);
void reach_torch_free(void *array, ptrdiff_t bytes, int device, void *stream);

#ifdef __cplusplus
}
#endif

#endif
