/* fakesanitizer.c: a stand-in for NVIDIA's libsanitizer-public.so over the stand-in driver
 * (tests/fakecuda), so that libreach-profile.so runs without a GPU. It reports what the driver does
 * to its subscriber. In launches of patched modules, it runs the patch for every access of a script
 * (fakecuda_script.h).
 *
 * FAKESANITIZER_PATCH names the patch, compiled for the host (patch_on_host.cc). Without it,
 * patched launches access nothing. FAKESANITIZER has items that are separated by commas:
 *
 *   fail=<function>[@n]=<result>   the function returns this result, at each or at the nth use
 *
 * Like the library, it may be used by several threads at once; the patch runs on the thread of the
 * GPU.
 *
 * FAKESANITIZER_REPORT names a file. When the library is unloaded, it appends a line with what the
 * subscriber did, and with the first call that a real library might not accept. */
#include "clients/profile/inject/sanitizer_api.h"
#include "tests/fakecuda/fakecuda_script.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SUCCESS = 0,
    INVALID_PARAMETER = 1,
    OUT_OF_MEMORY = 7,
    MAX_LIMIT_REACHED = 10,
    NOT_INITIALIZED = 13,
    CUDA_ILLEGAL_ADDRESS = 700,
    DOMAINS = 16,
    CALLS = 1024,
    MODULES = 64,
    USES = 32,
    PATCH_NAME = 64,
    PC_BYTES = 16
};

#define FUNCTION_BYTES ((uint64_t)1 << 16) /* distance of two functions in code memory */

struct Sanitizer_Subscriber_st {
    san_callback callback;
    void *user;
    bool domains[DOMAINS];
    bool calls[CALLS]; /* of the driver, by number */
};

struct module {
    void *handle;
    void *context;
    char access[PATCH_NAME]; /* function that patches accesses; "" is none */
    bool is_patched;
};

/* The launch between its two callbacks. */
struct Sanitizer_Launch_st {
    const struct fakecuda_launch *launch;
    bool has_data;
    void *data;
};

/* The stand-in has every function that the recorder loads. */
#define DECLARE(symbol, member, arguments) int symbol arguments;
SANITIZER_FUNCTIONS(DECLARE)
#undef DECLARE
int sanitizerAllocHost(san_context context, void **out, size_t bytes);
int sanitizerFreeHost(san_context context, void *memory);
int sanitizerGetStreamHandle(san_context context, void *user_stream, san_stream *out);
int sanitizerStreamSynchronize(san_stream stream);

static struct Sanitizer_Subscriber_st subscriber;
static __thread struct Sanitizer_Launch_st current;
/* Held during a launch and its callbacks, and when code is patched: a thread that patches a module
 * waits for the launches of other threads, like in the driver. */
static pthread_mutex_t code_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static fakecuda_enqueue_fn *enqueue;
static fakecuda_drain_fn *drain;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of everything below */
static struct module modules[MODULES];
static struct {
    const char *function;
    unsigned count;
} uses[USES];
static unsigned long long patched_launches, recorded_launches, allocations, allocated_bytes,
    misuses;
static char first_misuse[160];

/* ---- settings and the report ---- */

static int __attribute__((format(printf, 2, 3))) misuse(int result, const char *format, ...)
{
    va_list args;

    pthread_mutex_lock(&lock);
    if (misuses++ == 0) {
        va_start(args, format);
        (void)vsnprintf(first_misuse, sizeof first_misuse, format, args);
        va_end(args);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

static unsigned count_use(const char *function)
{
    unsigned count;
    size_t i = 0;

    pthread_mutex_lock(&lock);
    while (uses[i].function && strcmp(uses[i].function, function) != 0)
        i++;
    uses[i].function = function;
    count = ++uses[i].count;
    pthread_mutex_unlock(&lock);
    return count;
}

/* Returns the result that FAKESANITIZER sets for this use of a function, or SUCCESS. */
static int enter(const char *function)
{
    const unsigned use = count_use(function);
    const size_t n = strlen(function);

    for (const char *p = getenv("FAKESANITIZER"); p && *p; p += strcspn(p, ","), p += *p == ',') {
        unsigned which = 0;
        int result = 0;
        if (strncmp(p, "fail=", 5) != 0 || strncmp(p + 5, function, n) != 0)
            continue;
        if (sscanf(p + 5 + n, "@%u=%d", &which, &result) == 2
                ? which == use
                : sscanf(p + 5 + n, "=%d", &result) == 1)
            return result;
    }
    return SUCCESS;
}

static void __attribute__((destructor)) write_report(void)
{
    const char *const path = getenv("FAKESANITIZER_REPORT");
    FILE *const f = path ? fopen(path, "ae") : NULL;
    unsigned patched = 0;

    if (!f)
        return;
    for (size_t i = 0; i < MODULES; i++)
        patched += modules[i].is_patched;
    (void)fprintf(f,
                  "pid=%d subscribed=%d patched_launches=%llu recorded_launches=%llu patched=%u "
                  "allocations=%llu allocated_bytes=%llu misuses=%llu %s\n",
                  (int)getpid(), subscriber.callback != NULL, patched_launches, recorded_launches,
                  patched, allocations, allocated_bytes, misuses, first_misuse);
    (void)fclose(f);
}

/* ---- what the driver does ---- */

/* The numbers of the calls that the stand-in driver reports (sanitizer_driver_cbid.h). Other calls
 * have the number 0. */
static uint32_t call_number(const char *name)
{
    static const struct {
        const char *name;
        uint32_t number;
    } calls[] = {{"cuLaunchKernel", 307},     {"cuLaunchKernelEx", 652},
                 {"cuGraphLaunch", 514},      {"cuStreamBeginCapture", 495},
                 {"cuStreamEndCapture", 497}, {"cuGraphInstantiateWithFlags", 643},
                 {"cuStreamDestroy_v2", 326}, {"cuDevicePrimaryCtxReset_v2", 545}};

    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
        if (strcmp(name, calls[i].name) == 0)
            return calls[i].number;
    return 0;
}

static void deliver(int domain, uint32_t id, const void *data)
{
    const bool is_enabled =
        subscriber.domains[domain] || (domain == SAN_DOMAIN_DRIVER_API && subscriber.calls[id]);

    if (subscriber.callback && is_enabled)
        subscriber.callback(subscriber.user, domain, id, data);
}

static struct module *find_module(const void *handle)
{
    for (size_t i = 0; i < MODULES; i++)
        if (modules[i].handle == handle)
            return &modules[i];
    return NULL;
}

/* Copies a module. Returns false if there is none with this handle. */
static bool get_module(const void *handle, struct module *out)
{
    const struct module *m;

    pthread_mutex_lock(&lock);
    m = handle ? find_module(handle) : NULL;
    if (m)
        *out = *m;
    pthread_mutex_unlock(&lock);
    return m != NULL;
}

static void on_call(bool begins, const char *name, const void *parameters)
{
    static const int result = SUCCESS;
    /* Sanitizer_CallbackData */
    const struct {
        int site; /* 0 entry, 1 exit */
        const char *function;
        const void *parameters;
        const int *result;
        const char *symbol;
        void *context;
    } data = {.site = !begins, .function = name, .parameters = parameters, .result = &result};

    deliver(SAN_DOMAIN_DRIVER_API, call_number(name), &data);
}

static void on_context(bool begins, void *context, int device)
{
    const struct san_context_data data = {.context = context};

    (void)device;
    if (begins)
        return;
    deliver(SAN_DOMAIN_RESOURCE, SAN_CONTEXT_DESTROY_STARTING, &data);
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < MODULES; i++)
        if (modules[i].context == context)
            modules[i] = (struct module){0};
    pthread_mutex_unlock(&lock);
}

static void on_module(bool begins, void *context, void *handle)
{
    const struct san_module_data data = {.context = context, .module = handle};
    struct module *m;

    if (!begins)
        deliver(SAN_DOMAIN_RESOURCE, SAN_MODULE_UNLOAD_STARTING, &data);
    pthread_mutex_lock(&lock);
    m = find_module(begins ? NULL : handle);
    if (m)
        *m = begins ? (struct module){.handle = handle, .context = context} : (struct module){0};
    pthread_mutex_unlock(&lock);
    if (begins)
        deliver(SAN_DOMAIN_RESOURCE, SAN_MODULE_LOADED, &data);
}

static void on_memory(enum fakecuda_memory_event event, void *context, int device, uint64_t address,
                      uint64_t bytes)
{
    static const struct {
        uint32_t id, flags;
    } events[] = {
        [FAKECUDA_DEVICE_ALLOC] = {SAN_DEVICE_MEMORY_ALLOC, 0},
        [FAKECUDA_POOL_ALLOC] = {SAN_MEMORY_ALLOC_ASYNC, 0},
        [FAKECUDA_PINNED_ALLOC] = {SAN_HOST_MEMORY_ALLOC, SAN_MEMORY_PINNED | SAN_MEMORY_MAPPED},
        [FAKECUDA_REGISTERED_ALLOC] = {SAN_HOST_MEMORY_ALLOC, SAN_MEMORY_MAPPED},
        [FAKECUDA_MANAGED_ALLOC] = {SAN_DEVICE_MEMORY_ALLOC, SAN_MEMORY_MANAGED},
        [FAKECUDA_DEVICE_FREE] = {SAN_DEVICE_MEMORY_FREE, 0},
        [FAKECUDA_HOST_FREE] = {SAN_HOST_MEMORY_FREE, 0},
        [FAKECUDA_POOL_FREE] = {SAN_MEMORY_FREE_ASYNC, 0},
        [FAKECUDA_RESERVE] = {SAN_VIRTUAL_RESERVE, 0},
        [FAKECUDA_RELEASE] = {SAN_VIRTUAL_RELEASE, 0},
    };
    const struct san_memory_data data = {.address = address,
                                         .bytes = bytes,
                                         .context = context,
                                         .device = device,
                                         .flags = events[event].flags,
                                         .permissions = 7,
                                         .visibility = 1,
                                         .source_device = device};

    if (event == FAKECUDA_PINNED_ALLOC) /* the driver reserves the addresses of its own memory */
        deliver(SAN_DOMAIN_RESOURCE, SAN_VIRTUAL_RESERVE, &data);
    deliver(SAN_DOMAIN_RESOURCE, events[event].id, &data);
}

static void describe(const struct fakecuda_launch *l, struct san_launch_data *out)
{
    *out = (struct san_launch_data){
        .context = l->context,
        .user_stream = l->stream,
        .stream = l->stream,
        .module = l->module,
        .function = l->function,
        .name = l->name,
        .cluster = {1, 1, 1},
        .grid_id = l->id,
        .launch = &current,
        .device = l->device,
        .api_context = l->context,
        .api_stream = l->stream,
        .api_stream_handle = l->stream,
    };
    memcpy(out->grid, l->grid, sizeof out->grid);
    memcpy(out->block, l->block, sizeof out->block);
}

static void deliver_launch(const struct fakecuda_launch *l, bool begins)
{
    struct san_launch_data plain;
    struct san_node_data node = {.exec = l->graph, .node = l->node, .type = SAN_KERNEL_NODE};

    describe(l, l->graph ? &node.launch : &plain);
    if (!l->graph)
        deliver(SAN_DOMAIN_LAUNCH, begins ? SAN_LAUNCH_BEGIN : SAN_LAUNCH_END, &plain);
    else
        deliver(SAN_DOMAIN_GRAPHS, begins ? SAN_NODE_LAUNCH_BEGIN : SAN_NODE_LAUNCH_BEGIN + 1,
                &node);
}

static void *patch_function(const char *name)
{
    static void *library;
    const char *const path = getenv("FAKESANITIZER_PATCH");

    if (!library && path)
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library && path)
        (void)misuse(0, "%s", dlerror());
    return library ? dlsym(library, name) : NULL;
}

/* Code of the second function begins FUNCTION_BYTES behind the first, and so on. */
static uint64_t function_pc(const char *name)
{
    uint64_t hash = 0;
    for (; *name; name++)
        hash = hash * 31 + (unsigned char)*name;
    return (1 + hash % 1024) * FUNCTION_BYTES;
}

typedef void patch_run_fn(const struct fakecuda_launch *launch, const char *function, uint64_t pc,
                          void *data);

/* What the GPU does in a recorded launch. */
struct recorded_launch {
    char access[PATCH_NAME];
    void *data;
};

static int on_launch_begin(const struct fakecuda_launch *l, void **out)
{
    struct recorded_launch *recorded = NULL;
    struct module m;
    bool is_recorded;

    pthread_mutex_lock(&code_lock);
    current = (struct Sanitizer_Launch_st){.launch = l};
    deliver_launch(l, true);
    if (!get_module(l->module, &m) || !m.is_patched)
        return SUCCESS;
    if (!current.has_data)
        return misuse(CUDA_ILLEGAL_ADDRESS, "a patched launch of %s without data", l->name);
    is_recorded = current.data && !l->is_upload;
    pthread_mutex_lock(&lock);
    patched_launches++;
    recorded_launches += is_recorded;
    pthread_mutex_unlock(&lock);
    if (is_recorded)
        recorded = malloc(sizeof *recorded);
    if (recorded) {
        recorded->data = current.data;
        strcpy(recorded->access, m.access);
    }
    *out = recorded;
    return SUCCESS;
}

static void on_run(const struct fakecuda_launch *l, void *data)
{
    struct recorded_launch *const recorded = data;
    patch_run_fn *run = NULL;

    if (recorded)
        *(void **)&run = patch_function("fake_patch_run");
    if (run)
        run(l, recorded->access, function_pc(l->name), recorded->data);
    free(recorded);
}

static void on_launch_end(const struct fakecuda_launch *l)
{
    deliver_launch(l, false);
    current.launch = NULL;
    pthread_mutex_unlock(&code_lock);
}

static void on_graph(bool begins, void *context, void *stream, void *graph, bool is_upload)
{
    const struct san_graph_data data = {.context = context,
                                        .user_stream = stream,
                                        .stream = stream,
                                        .exec = graph,
                                        .is_upload = is_upload};

    deliver(SAN_DOMAIN_GRAPHS, begins ? SAN_GRAPH_LAUNCH_BEGIN : SAN_GRAPH_LAUNCH_END, &data);
}

static const struct fakecuda_tool tool = {
    .call = on_call,
    .context = on_context,
    .module = on_module,
    .memory = on_memory,
    .launch_begin = on_launch_begin,
    .run = on_run,
    .launch_end = on_launch_end,
    .graph = on_graph,
};

/* ---- the API ---- */

int sanitizerSubscribe(san_subscriber *out, san_callback callback, void *user)
{
    void *const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    fakecuda_watch_fn *watch = NULL;
    const int r = enter("sanitizerSubscribe");

    if (r != SUCCESS)
        return r;
    if (driver)
        *(void **)&watch = dlsym(driver, "fakecuda_watch");
    if (watch) {
        *(void **)&enqueue = dlsym(driver, "fakecuda_enqueue");
        *(void **)&drain = dlsym(driver, "fakecuda_drain");
    }
    if (!watch)
        return NOT_INITIALIZED;
    if (!watch(&tool))
        return MAX_LIMIT_REACHED;
    subscriber.callback = callback;
    subscriber.user = user;
    *out = &subscriber;
    return SUCCESS;
}

int sanitizerEnableDomain(uint32_t enable, san_subscriber handle, int domain)
{
    const int r = enter("sanitizerEnableDomain");

    if (r != SUCCESS)
        return r;
    if (handle != &subscriber || domain <= 0 || domain >= DOMAINS)
        return misuse(INVALID_PARAMETER, "domain %d of no subscriber", domain);
    subscriber.domains[domain] = enable != 0;
    return SUCCESS;
}

int sanitizerEnableCallback(uint32_t enable, san_subscriber handle, int domain, uint32_t id)
{
    const int r = enter("sanitizerEnableCallback");

    if (r != SUCCESS)
        return r;
    if (handle != &subscriber || domain != SAN_DOMAIN_DRIVER_API || id >= CALLS)
        return misuse(INVALID_PARAMETER, "callback %u of domain %d", id, domain);
    subscriber.calls[id] = enable != 0;
    return SUCCESS;
}

int sanitizerGetResultString(int result, const char **out)
{
    *out = result == MAX_LIMIT_REACHED ? "max limit reached" : "told to fail, by the stand-in";
    return SUCCESS;
}

int sanitizerAddPatches(const void *image, san_context context)
{
    const int r = enter("sanitizerAddPatches");

    if (r == SUCCESS && (!image || !context))
        return misuse(INVALID_PARAMETER, "patches of no image or context");
    return r;
}

int sanitizerPatchInstructions(int instruction, san_module handle, const char *function)
{
    const int r = enter("sanitizerPatchInstructions");
    struct module m;

    if (r != SUCCESS)
        return r;
    if (!get_module(handle, &m) || strlen(function) >= sizeof m.access)
        return misuse(INVALID_PARAMETER, "no module for %s", function);
    if (getenv("FAKESANITIZER_PATCH") && !patch_function(function))
        return misuse(INVALID_PARAMETER, "the patch has no %s", function);
    pthread_mutex_lock(&lock);
    if (instruction == SAN_GLOBAL_MEMORY_ACCESS)
        strcpy(find_module(handle)->access, function);
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

/* Sets whether a module is patched. Returns false if it has that state already, or if there is no
 * such module. */
static bool set_patched(san_module handle, bool is_patched)
{
    struct module *m;
    bool good;

    pthread_mutex_lock(&code_lock);
    pthread_mutex_lock(&lock);
    m = handle ? find_module(handle) : NULL;
    good = m && m->is_patched != is_patched && m->access[0];
    if (good)
        m->is_patched = is_patched;
    pthread_mutex_unlock(&lock);
    pthread_mutex_unlock(&code_lock);
    return good;
}

int sanitizerPatchModule(san_module handle)
{
    const int r = enter("sanitizerPatchModule");

    if (r == SUCCESS && !set_patched(handle, true))
        return misuse(INVALID_PARAMETER, "a module is patched twice or without a function");
    return r;
}

int sanitizerUnpatchModule(san_module handle)
{
    const int r = enter("sanitizerUnpatchModule");

    if (r == SUCCESS && !set_patched(handle, false))
        return misuse(INVALID_PARAMETER, "a module is unpatched that is not patched");
    return r;
}

int sanitizerSetLaunchCallbackData(san_launch launch, san_function function, san_stream stream,
                                   const void *data)
{
    const int r = enter("sanitizerSetLaunchCallbackData");

    if (r != SUCCESS)
        return r;
    if (launch != &current || !current.launch || current.launch->function != (void *)function ||
        current.launch->stream != (void *)stream)
        return misuse(INVALID_PARAMETER, "data of another launch");
    current.has_data = true;
    current.data = (void *)(uintptr_t)data;
    return SUCCESS;
}

/* Memory of the device is memory of the process here, because the patch runs in the process. Memory
 * of a context that has ended is not freed. */
static int allocate(const char *function, san_context context, void **out, size_t bytes)
{
    const int r = enter(function);

    if (r != SUCCESS)
        return r;
    if (!context)
        return misuse(INVALID_PARAMETER, "memory of no context");
    *out = malloc(bytes);
    if (!*out)
        return OUT_OF_MEMORY;
    memset(*out, 0xa5, bytes < 4096 ? bytes : 4096);
    pthread_mutex_lock(&lock);
    allocations++;
    allocated_bytes += bytes;
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

int sanitizerAlloc(san_context context, void **out, size_t bytes)
{
    return allocate("sanitizerAlloc", context, out, bytes);
}

int sanitizerAllocHost(san_context context, void **out, size_t bytes)
{
    return allocate("sanitizerAllocHost", context, out, bytes);
}

int sanitizerFree(san_context context, void *memory)
{
    const int r = enter("sanitizerFree");

    (void)context;
    pthread_mutex_lock(&lock);
    allocations--;
    pthread_mutex_unlock(&lock);
    free(memory);
    return r;
}

int sanitizerFreeHost(san_context context, void *memory)
{
    return sanitizerFree(context, memory);
}

/* A copy in a stream. `from` follows if the copy reads the memory of the process. */
struct copy {
    void *to;
    int value;
    bool is_set;
    size_t bytes;
    unsigned char from[];
};

static void run_copy(void *what)
{
    struct copy *const c = what;

    if (c->is_set)
        memset(c->to, c->value, c->bytes);
    else
        memcpy(c->to, c->from, c->bytes);
    free(c);
}

static void enqueue_copy(void *to, int value, const void *from, size_t bytes)
{
    struct copy *const c = malloc(sizeof *c + (from ? bytes : 0));

    if (!c)
        abort();
    *c = (struct copy){.to = to, .value = value, .is_set = !from, .bytes = bytes};
    if (from)
        memcpy(c->from, from, bytes);
    enqueue(run_copy, c);
}

int sanitizerMemset(void *memory, int value, size_t bytes, san_stream stream)
{
    const int r = enter("sanitizerMemset");

    (void)stream;
    if (r == SUCCESS)
        enqueue_copy(memory, value, NULL, bytes);
    return r;
}

int sanitizerMemcpyHostToDeviceAsync(void *to, const void *from, size_t bytes, san_stream stream)
{
    const int r = enter("sanitizerMemcpyHostToDeviceAsync");

    (void)stream;
    if (r == SUCCESS)
        enqueue_copy(to, 0, from, bytes);
    return r;
}

int sanitizerMemcpyDeviceToHost(void *to, const void *from, size_t bytes, san_stream stream)
{
    const int r = enter("sanitizerMemcpyDeviceToHost");

    (void)stream;
    if (r == SUCCESS) {
        drain();
        memcpy(to, from, bytes);
    }
    return r;
}

int sanitizerStreamSynchronize(san_stream stream)
{
    const int r = enter("sanitizerStreamSynchronize");

    (void)stream;
    if (r == SUCCESS)
        drain();
    return r;
}

int sanitizerGetStreamHandle(san_context context, void *user_stream, san_stream *out)
{
    const int r = enter("sanitizerGetStreamHandle");

    (void)context;
    *out = user_stream;
    return r;
}

int sanitizerGetFunctionPcAndSize(san_module handle, const char *function, uint64_t *out_pc,
                                  uint64_t *out_bytes)
{
    const int r = enter("sanitizerGetFunctionPcAndSize");
    struct module m;

    if (r != SUCCESS)
        return r;
    if (!get_module(handle, &m))
        return misuse(INVALID_PARAMETER, "a function of no module");
    *out_pc = function_pc(function);
    *out_bytes = (FAKECUDA_STEPS + 2) * PC_BYTES;
    return SUCCESS;
}
