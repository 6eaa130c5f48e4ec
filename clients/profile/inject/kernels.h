/* kernels.h: the table of the kernels that the program has launched: launches, times, and what to
 * do with the next launch. All functions may be called on any thread; the table has its own lock,
 * and no function calls the Sanitizer API. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { KERNELS_ROOM = 8192, KERNEL_SHAPES = 6, KERNEL_TIMES = 8 };

/* Launches with the same grid and block. */
struct kernel_shape {
    uint32_t grid[3], block[3];
    uint64_t launches;
    uint64_t timed; /* unpatched launches that were timed */
    uint64_t ns;    /* median of the times, without the launch itself; 0 means unknown */
    uint32_t
        times[KERNEL_TIMES]; /* the latest of them, in units of 16 ns, with the launch itself */
    bool recorded;
};

struct kernel {
    char *name;     /* mangled; owned for the life of the process, like the operator */
    char *operator; /* innermost NVTX range of the first launch (ranges.h), or "" */
    int device;
    uint64_t launches; /* that were counted */
    uint64_t exact;    /* launches before the first pause */
    double blocks;     /* of all launches; two large grids have more than 2^64 */
    uint64_t timed;    /* launches that were timed */
    uint32_t recorded; /* launches that are recorded, or that failed to be */
    uint32_t every;    /* one block in `every` is in the sample of the next recording; 0 unknown */
    const char *refused; /* static text: the reason why no launch can be recorded; NULL if none */
    uint32_t shape_count;
    struct kernel_shape shapes[KERNEL_SHAPES];
};

enum kernel_step { KERNEL_LAUNCH, KERNEL_TIME, KERNEL_RECORD };

struct kernel_limits {
    uint32_t launches; /* recorded launches of each kernel */
    uint64_t skip;     /* first launches of each kernel, which are only counted */
    uint64_t tool_ns;  /* time that recordings and patches may take in a process; half of it for
                          first launches */
};

void kernels_start(const struct kernel_limits *limits);

/* Returns whether first launches are still recorded, and counts time that they have taken. */
bool kernels_want_first(void);
void kernels_spent_first(uint64_t ns);

/* Makes a recording of the kernel its last one. */
void kernels_record_no_more(struct kernel *k);

/* Counts the time for which a module was patched before a launch of `k` was recorded, or in vain.
 */
void kernels_waited(struct kernel *k, uint64_t ns, bool in_vain);

/* Counts a launch and returns its kernel and what to do with it. `function` is the handle of the
 * kernel, and `name` lives as long as its module is loaded. `*out_shape` is the index of the
 * shape, or KERNEL_SHAPES if the kernel has more shapes than have room. Returns NULL if the table
 * is full. The calling thread makes the launch. A launch `in_graph` is never timed; `is_ready`
 * means that it can be recorded at once. */
struct kernel *kernels_launch(const void *function, const char *name, int device,
                              const uint32_t grid[3], const uint32_t block[3], bool in_graph,
                              bool is_ready, uint32_t *out_shape, enum kernel_step *out_step);

/* Reports the time of a launch that kernels_launch asked to time. */
void kernels_timed(struct kernel *k, uint32_t shape, uint64_t ns);

/* A kernel of a graph. */
struct kernel_node {
    struct kernel *kernel;
    uint32_t shape;
};

/* Counts a launch of a graph. Returns whether to time it. */
bool kernels_graph_launch(const void *exec);

/* Reports the time of the launch of a graph. Kernels whose time is not known otherwise share the
 * rest of it. */
void kernels_graph_timed(const struct kernel_node *nodes, uint32_t count, uint64_t ns);

/* Reports a recording: the words that its sample needed, the words that there was room for, the
 * sample (one block in `every`), and the time it took. */
void kernels_recorded(struct kernel *k, uint32_t shape, uint64_t used, uint64_t room,
                      uint32_t every, uint64_t ns);

/* Refuses further recordings. `why` is static text. */
void kernels_refuse(struct kernel *k, const char *why);

/* Forgets the handles of functions, because a module was unloaded. */
void kernels_forget_functions(void);

/* Launches are not counted between kernels_pause and kernels_resume. */
void kernels_pause(void);
void kernels_resume(void);

/* Return the estimated number of all launches of a kernel, and their time in nanoseconds without
 * the launches themselves; 0 means unknown. Launches in pauses are as frequent as after the first
 * pause. Shapes that were not timed take the time per block of the others. */
uint64_t kernel_all_launches(const struct kernel *k);
double kernel_all_ns(const struct kernel *k);

/* Copies kernel `i` to `*out`. Returns false if there are no more. */
bool kernels_get(uint32_t i, struct kernel *out);

/* Returns a number that grows with each launch, each time and each refusal. */
uint64_t kernels_changes(void);
