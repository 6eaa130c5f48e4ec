/* fake_state.h: the state of the stand-in driver in one global, because a process has one driver.
 * Only one thread uses this state at a time, like the real driver in a worker.
 *
 * Device memory has adjacent addresses from a base for each GPU; the model gets an address minus
 * that base. An allocation of up to BACKED_BYTES has host memory behind it and can be copied to and
 * from. Kernels can zero and read larger allocations, but no copy is possible. A handle gets host
 * memory at the first copy to or from its mapping (fake_copy). Kernels do not read that host
 * memory.
 */
#pragma once

#include "gpu/cuda/cuda_api.h"
#include "gpu/sim/sim_machine.h"
#include "tests/fakecuda/fake_control.h"
#include "tests/fakecuda/fakecuda.h"

enum {
    FAKE_SHARED_PER_SM = 228 << 10,
    FAKE_SHARED_PER_BLOCK = 227 << 10,
    FAKE_SHARED_RESERVED = 1 << 10 /* bytes that the driver reserves for each block */
};
enum { CU_ERROR_INVALID_CONTEXT = 201, CU_ERROR_INVALID_HANDLE = 400 };
enum { FAKE_NOWHERE = -2 }; /* CU_DEVICE_INVALID */

struct fake_device {
    struct sim_machine *machine;
    uint64_t base_va;
    uint64_t next_va;
    uint64_t held_bytes;
    uint32_t retains; /* retain count of the primary context */
    uint64_t timer_ns;
    /* Model of the memory outside the device that a kernel touched last. */
    struct sim_machine *far;
    enum memory_kind far_kind;
    uint64_t far_bytes;
};

struct fake_alloc {
    uint64_t va;
    uint64_t bytes;
    uint8_t *host; /* host memory behind the allocation; NULL if it is too large */
    int device;
    enum memory_kind kind;
    void *process; /* address of pinned or registered memory in the process */
    /* Location of managed memory: a device, CU_DEVICE_CPU, or FAKE_NOWHERE. */
    int preferred;
    int prefetched;
    bool accessed; /* whether the device may access the memory */
};

/* CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN: the device in the first byte of the id, and the
 * domain in the second. Memory outside of domains has FAKE_NO_DOMAIN. */
enum { FAKE_LOCATION_DOMAIN = 6, FAKE_NO_DOMAIN = -1 };

struct fake_handle {
    cu_mem_handle id;
    uint64_t bytes;
    uint32_t maps;
    uint32_t retains; /* by cuMemRetainAllocationHandle */
    bool compressed;
    bool released;
    int device;
    int domain; /* locality domain, or FAKE_NO_DOMAIN */
    enum memory_kind kind;
    uint8_t *host; /* host memory behind the handle; NULL if it was never copied to or from, so that
                      all bytes are 0 */
};

struct fake_range {
    uint64_t va;
    uint64_t bytes;
    int device;
};

struct fake_map {
    uint64_t va;
    uint64_t bytes;
    cu_mem_handle handle;
    bool accessible;
};

struct fake_function {
    const char *name;
    uint32_t module;
    int shared_bytes;
    int carveout_percent;
    unsigned launched_bytes; /* dynamic shared memory of the last launch of the function */
};

struct fake_stream {
    uint64_t id;
    bool asked; /* whether the stream was queried since its last launch */
    bool hung;
    bool busy;
};

struct fake_event {
    uint64_t id;
    bool recorded;
    bool asked; /* whether the event was queried since it was recorded */
};

/* a list that grows */
struct fake_list {
    void *items;
    size_t count;
    size_t capacity;
};

enum { FAKE_KERNELS = 21, FAKE_MAX_PUSHED = 8 };

struct fake_use {
    const char *call;
    uint64_t count;
};

struct fake {
    struct control control;
    struct fake_device devices[REACH_MAX_GPUS];
    struct fake_list allocs;  /* struct fake_alloc */
    struct fake_list handles; /* struct fake_handle */
    struct fake_list ranges;  /* list of struct fake_range, the reservations */
    struct fake_list maps;    /* list of struct fake_map, the mappings, sorted by address */
    struct fake_list streams; /* struct fake_stream */
    struct fake_list events;  /* struct fake_event */
    uint64_t longest_run;     /* size of the longest handle that can be created; 0 means no limit */
    int pushed[FAKE_MAX_PUSHED]; /* GPUs of the contexts below the current one */
    uint32_t push_count;
    uint32_t modules;
    uint32_t next_id;
    struct fake_function functions[FAKE_KERNELS];
    struct fake_use uses[FAKE_MAX_CALLS];
    uint32_t use_count;
    struct fakecuda_report report;
    bool initialised;
    int current; /* GPU of the current context, or -1 */
    cu_result sticky;
};

extern struct fake fake;

/* Records that the caller did something that a real driver may not accept; returns `r`. */
cu_result fake_misuse(cu_result r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Counts a use of `call`. Returns the result that a fault sets for the call, or CU_SUCCESS. If the
 * fault is a hang, the function returns late or never. */
cu_result fake_enter(const char *call);
uint64_t fake_count_use(const char *call);

/* fake_memory.c */
void *fake_list_add(struct fake_list *list, size_t item_bytes, size_t at);
void fake_list_remove(struct fake_list *list, size_t item_bytes, size_t at);
/* Reserves `bytes` of addresses on a GPU. Returns 0 if the GPU has no free addresses left. */
uint64_t fake_take_va(struct fake_device *device, uint64_t bytes, uint64_t alignment);
/* Starts again at the first address if no object holds an address. */
void fake_settle_va(int device);
/* Returns whether [va, va + bytes) is device memory that the device may access. */
bool fake_is_mapped(uint64_t va, uint64_t bytes);
/* Returns the kind and the extent of memory of the process that the driver did not allocate and the
 * current device can access, or MEMORY_DEVICE if there is no such memory at the address. */
enum memory_kind fake_find_pageable(uint64_t va, uint64_t *first, uint64_t *bytes);
/* Returns the host memory behind [va, va + bytes), or NULL if there is none. */
void *fake_host(uint64_t va, uint64_t bytes);
/* Returns the host memory behind the mapping at `va`. `*bytes` is limited to the end of the
 * mapping. Returns NULL if no mapping contains `va`, or if the device may not access the
 * mapping. */
uint8_t *fake_mapped(uint64_t va, uint64_t *bytes);
/* Copies between device and host memory or within the device. Returns false if a part is missing. A
 * NULL host pointer means device memory at `device_to` or `device_from`. */
bool fake_copy(void *to, uint64_t device_to, const void *from, uint64_t device_from,
               uint64_t bytes);
struct fake_handle *fake_handle(cu_mem_handle id);
/* Frees the host memory of a handle. */
void fake_handle_forget(const struct fake_handle *h);
void fake_hold(int device, int64_t bytes);
void fake_free_all(void);
/* Frees the plain allocations of a device. */
void fake_forget_allocs(int device);

/* Defined in fake_far.c: finds the model that translates address `va`, and the address at which the
 * model begins. */
struct sim_machine *fake_machine_at(struct fake_device *device, uint64_t va, uint64_t *first);

/* Defined in fake_driver.c. The functions return a stream, or NULL if there is none, and the kind
 * of the handle that is mapped at `va`. The last one is the first step of calls in a context. */
struct fake_stream *fake_stream_of(cu_stream stream);
enum memory_kind fake_kind_of_map(uint64_t va);
bool fake_is_compressed(uint64_t va);
cu_result fake_enter_context(const char *call);

/* Defined in fake_kernels.c: runs a kernel by name. */
const char *fake_kernel_name(const char *name);
/* Returns the carveout that was requested for a kernel of this name, in percent. */
/* Returns the shared memory that an SM sets aside for the last kernel: the preferred size, or the
 * size that a block needs. */
uint64_t fake_shared_of_sm(const char *name);
cu_result fake_kernel_run(const char *name, int device, unsigned blocks, unsigned threads,
                          const void *args);
cu_result fake_kernel_run_clusters(const char *name, int device, unsigned blocks, unsigned threads,
                                   unsigned cluster_sms, const void *args);
/* Defined in fake_script.c: kernels that a test describes (fakecuda_script.h). fake_script_load
 * returns CU_ERROR_NOT_FOUND if the image is not a script. */
cu_result fake_script_load(cu_module *out, const void *image);
bool fake_script_unload(cu_module module);
bool fake_script_function(cu_function *out, cu_module module, const char *name);
bool fake_script_is(cu_function function);
void fake_script_reset(void); /* all modules and functions are lost */
cu_result fake_script_launch(cu_function function, const unsigned grid[3], const unsigned block[3],
                             cu_stream stream, void **parameters);
/* Loads the library in CUDA_INJECTION64_PATH. */
void fake_inject(void);
/* Report to the tool, if there is one. `event` is an enum fakecuda_memory_event. */
struct fake_call {
    const char *name;
    const void *parameters; /* struct of the parameters; NULL if no tool reads them */
};
struct fake_call fake_call_begin(const char *name, const void *parameters);
void fake_call_end(const struct fake_call *call);
/* Reports the begin of a call now, and its end when the block ends. */
#define FAKE_CALL(name) FAKE_CALL_WITH(name, NULL)
#define FAKE_CALL_WITH(name, parameters)                                                           \
    __attribute__((cleanup(fake_call_end), unused)) const struct fake_call fake_call_ =            \
        fake_call_begin(name, parameters)
void fake_report_context(bool begins, int device);
void fake_report_memory(int event, uint64_t address, uint64_t bytes);

/* Returns how many clusters of this number of blocks fit at once, with one block per SM. */
unsigned fake_clusters(int device, unsigned cluster_sms);
