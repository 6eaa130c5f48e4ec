/* fakecuda_script.h: kernels whose accesses a test describes, and what a tool sees of them.
 *
 * A module whose image begins with FAKECUDA_SCRIPT_IMAGE has a function of every name. The only
 * parameter of these functions is a struct fakecuda_script, which describes the accesses of each
 * thread. A launch takes `ns` nanoseconds and has only one dimension in a block. A launch returns
 * at once; another thread of the driver executes one launch after another, whatever their streams
 * are. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define FAKECUDA_SCRIPT_IMAGE "a script of fakecuda"

enum fakecuda_order {
    FAKECUDA_IN_ORDER = 0, /* thread after thread, from the first byte */
    FAKECUDA_RANDOM,       /* each thread at an element of its own */
    FAKECUDA_RANDOM_ROWS   /* each warp at a row of 32 elements */
};
enum fakecuda_access { FAKECUDA_LOAD = 0, FAKECUDA_STORE, FAKECUDA_ATOMIC };

/* One instruction. Its program counter is 16 times its place in the script, from 1. */
struct fakecuda_step {
    uint64_t address;
    uint64_t bytes;
    uint32_t element_bytes; /* of one access: 1 to 16 */
    uint32_t order;         /* enum fakecuda_order */
    uint32_t access;        /* enum fakecuda_access */
    uint32_t repeats;       /* executions by each thread */
};

enum { FAKECUDA_STEPS = 8 };
struct fakecuda_script {
    uint64_t ns;
    uint64_t step_count;
    struct fakecuda_step steps[FAKECUDA_STEPS];
};

/* Returns the address that `thread` of all `threads` of a launch accesses in execution `repeat`. */
static inline uint64_t fakecuda_address(const struct fakecuda_step *step, uint64_t thread,
                                        uint64_t threads, uint32_t repeat)
{
    const uint64_t access = thread + repeat * threads;
    const uint64_t elements = step->bytes / step->element_bytes;
    const uint64_t key = step->order == FAKECUDA_RANDOM_ROWS ? access / 32 : access;
    const uint64_t mixed = ((key + 1) * 0x9e3779b97f4a7c15U) >> 20;

    if (step->order == FAKECUDA_IN_ORDER)
        return step->address + access % elements * step->element_bytes;
    if (step->order == FAKECUDA_RANDOM)
        return step->address + mixed % elements * step->element_bytes;
    return step->address + (mixed % (elements / 32) * 32 + access % 32) * step->element_bytes;
}

/* ---- what a tool sees ---- */

struct fakecuda_launch {
    void *context;
    void *stream;
    void *module;
    void *function;
    const char *name;
    uint32_t grid[3];
    uint32_t block[3];
    uint64_t id;
    int device;
    const struct fakecuda_script *script;
    void *graph; /* the executable graph of the node; NULL if the launch is not part of a graph */
    void *node;
    bool is_upload; /* the node is not launched, only copied to the GPU */
};

enum fakecuda_memory_event {
    FAKECUDA_DEVICE_ALLOC,
    FAKECUDA_POOL_ALLOC,
    FAKECUDA_PINNED_ALLOC,
    FAKECUDA_REGISTERED_ALLOC,
    FAKECUDA_MANAGED_ALLOC,
    FAKECUDA_DEVICE_FREE,
    FAKECUDA_HOST_FREE,
    FAKECUDA_POOL_FREE,
    FAKECUDA_RESERVE,
    FAKECUDA_RELEASE
};

/* The functions of a tool. The driver calls them on the thread of the API call. */
struct fakecuda_tool {
    /* Calls that FAKE_CALL marks. `parameters` is the struct of the parameters, or NULL. */
    void (*call)(bool begins, const char *name, const void *parameters);
    void (*context)(bool begins, void *context, int device);
    void (*module)(bool begins, void *context, void *module);
    void (*memory)(enum fakecuda_memory_event event, void *context, int device, uint64_t address,
                   uint64_t bytes);
    /* Returns a CUresult, which the launch returns. `*out_data` is passed to `run`. */
    int (*launch_begin)(const struct fakecuda_launch *launch, void **out_data);
    void (*run)(const struct fakecuda_launch *launch, void *data); /* on the thread of the GPU */
    void (*launch_end)(const struct fakecuda_launch *launch);
    void (*graph)(bool begins, void *context, void *stream, void *graph, bool is_upload);
};

/* Sets the tool; NULL removes it. Returns false if there is one already. */
typedef bool fakecuda_watch_fn(const struct fakecuda_tool *tool);
bool fakecuda_watch(const struct fakecuda_tool *tool);

/* Lets the GPU call `run` after everything that it was given before; `what` is passed on. */
typedef void fakecuda_enqueue_fn(void (*run)(void *what), void *what);
void fakecuda_enqueue(void (*run)(void *what), void *what);

/* Waits until the GPU has done everything that it was given before. */
typedef void fakecuda_drain_fn(void);
void fakecuda_drain(void);
