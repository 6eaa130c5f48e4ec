/* recorder.h: records launches: patches a module, gives the launch a buffer on its GPU, and reads
 * the buffer back. One launch of the process is recorded at a time. Callbacks of the Sanitizer API
 * call the functions, on any thread. A thread in a callback may hold locks of the driver, so a
 * thread of the recorder does all that could wait for them. */
#pragma once

#include "clients/profile/inject/abi.h"
#include "clients/profile/inject/kernels.h"
#include "clients/profile/inject/sanitizer_api.h"

#include <stddef.h>

/* One recorded launch, in host memory. */
struct recorded {
    struct recorded *next;
    struct kernel *kernel;
    san_context context;
    uint32_t shape;
    uint32_t grid[3], block[3];
    struct profile_launch counts;             /* its pointers are of the device */
    uint64_t *pages;                          /* PROFILE_PAGES; owned */
    struct profile_instruction *instructions; /* PROFILE_COPIES sets; owned */
    uint32_t *words;                          /* counts.used or counts.room; owned */
    uint64_t function_pc;                     /* program counter at which the kernel begins */
};
void recorded_free(struct recorded *take);

/* Starts the thread that patches modules and reads buffers back. `image` is the fatbin of the patch
 * and must outlive the process; `done` gets each recorded launch and owns it. */
enum status recorder_start(const struct sanitizer_api *api, const void *image,
                           void (*done)(struct recorded *take), struct err *err);

/* Patches a module that was loaded, so that the first launches of its kernels can be recorded. */
void recorder_module_loaded(san_context context, san_module module);

/* Returns whether a launch of this module could be recorded now. */
bool recorder_is_ready(san_module module);

/* Gives the launch a buffer. If true, recorder_launched must follow after the launch. */
bool recorder_begin(const struct san_launch_data *launch, struct kernel *k, uint32_t shape);
void recorder_launched(san_context context, san_stream stream);

/* Gives up the launch of recorder_begin, because its end was not reported. */
void recorder_cancel(void);

/* Gives a launch that is not recorded no buffer, if its module is patched, and remembers that the
 * module is patched without need. Returns whether it is patched. */
bool recorder_skip(const struct san_launch_data *launch);

/* Asks to patch the launch's module when the launch call ends. If that fails, no launch of the
 * kernel is recorded. */
void recorder_request(const struct san_launch_data *launch, struct kernel *k);

/* Patches and unpatches what was asked for, and waits for a recording of this thread. It must be
 * called where the thread holds no lock of the driver: when a launch call ends. */
void recorder_settle(void);

/* Unpatches all modules, because a graph takes their code. Modules that are loaded from now on can
 * be patched when they are loaded, and all others no more. */
void recorder_graph_begins(void);

/* Stops recording and patching until recorder_resume. Returns false if a module is patched or a
 * launch is being recorded. Called by the thread of duty.h. */
bool recorder_pause(void);
void recorder_resume(void);

/* Forget a module or a context before the program destroys it. The thread may hold locks of the
 * driver. */
void recorder_module_unloaded(san_module module);
void recorder_context_destroyed(san_context context);

/* Returns whether launches of a context were recorded, and the context still exists. */
bool recorder_has_context(san_context context);

/* Records no more launches, because the process ends. Waits up to three seconds for a recording. A
 * handler of a signal may call this function, also while its thread is in another one. */
void recorder_end(void);
