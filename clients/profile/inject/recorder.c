/* recorder.c: buffers on the GPU, patches, and reading back. */
#include "clients/profile/inject/recorder.h"

#include "clients/profile/inject/gate.h"
#include "clients/profile/inject/thread.h"
#include "clients/profile/inject/timer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    CONTEXTS = 64,
    MODULES = 512,
    ROOM_WORDS = 1 << 23,
    LEAST_ROOM_WORDS = 1 << 18,
    FIRST_BLOCKS = 4096,
    MOST_RUN_SHIFT = 9,
    RUNS = 8,
    WAIT_SECONDS = 4 /* a recorded launch is waited for, which is longer than RECORDED_NS */
};
#define STREAM_OF_THREAD ((void *)2) /* CU_STREAM_PER_THREAD */
/* After this time a launch is not recorded any more; the rest of it runs almost unpatched. */
#define RECORDED_NS 3000000000u
#define LONGEST_NS  60000000000u

/* Buffers of one context. */
struct buffers {
    san_context context;
    bool is_patch_loaded, failed;
    struct profile_launch host; /* pointers and room */
    void *launch;               /* struct profile_launch on the GPU */
};

static const struct sanitizer_api *api;
static const void *patch_image;

/* A patched module. */
struct patched {
    _Atomic(san_module) module; /* NULL is a free slot */
    san_context context;
    atomic_bool is_stale; /* a launch was not recorded, so the patch only costs time */
    bool is_kept;         /* a graph may have the patched code */
};

enum state {
    IDLE,   /* a launch can be recorded */
    TAKEN,  /* the launch is between its callbacks */
    RUNNING /* the thread waits for the launch, and reads back */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* never held in a call of the API */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static enum state state;
static struct { /* the recording */
    struct recorded *result;
    struct buffers *buffers;
    int mark;
    san_context context;
    san_stream stream;
    uint64_t begin_ns;
} now;
static void (*finished)(struct recorded *take);
static struct buffers contexts[CONTEXTS];
static pthread_mutex_t patching = PTHREAD_MUTEX_INITIALIZER; /* taken only by trylock */
static struct patched modules[MODULES];
static _Atomic int patched_count, stale_count;
static atomic_bool is_paused;
static atomic_bool has_graph; /* graphs have copies of code, which must not be patched any more */

/* What this thread does when its launch call ends. */
static __thread struct {
    san_context context; /* of the module to patch; NULL if none */
    san_module module;
    struct kernel *kernel; /* that asked for the patch */
    bool has_recorded;
} after;

static uint64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void recorded_free(struct recorded *take)
{
    if (!take)
        return;
    free(take->pages);
    free(take->instructions);
    free(take->words);
    free(take);
}

static struct patched *find_patched(san_module module)
{
    for (int i = 0; i < MODULES; i++) {
        if (atomic_load_explicit(&modules[i].module, memory_order_relaxed) == module)
            return &modules[i];
    }
    return NULL;
}

static void forget(struct patched *p)
{
    if (atomic_exchange(&p->is_stale, false))
        atomic_fetch_sub(&stale_count, 1);
    if (atomic_exchange(&p->module, NULL))
        atomic_fetch_sub(&patched_count, 1);
}

static struct buffers *find_context(san_context context)
{
    struct buffers *unused = NULL;
    for (int i = 0; i < CONTEXTS; i++) {
        if (contexts[i].context == context)
            return &contexts[i];
        if (!contexts[i].context && !unused)
            unused = &contexts[i];
    }
    if (unused)
        *unused = (struct buffers){.context = context};
    return unused;
}

static void free_buffers(struct buffers *b)
{
    void *const all[] = {b->launch, b->host.pages, b->host.instructions, b->host.words};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i])
            (void)api->free(b->context, all[i]);
    }
    b->launch = NULL;
    memset(&b->host, 0, sizeof b->host);
}

/* Allocates the buffers of a context. If the GPU is almost full, the sample is smaller. */
static bool make_buffers(struct buffers *b)
{
    if (b->launch)
        return true;
    if (b->failed)
        return false;
    struct profile_launch *const h = &b->host;
    bool good = api->alloc(b->context, (void **)&h->pages, PROFILE_PAGES * sizeof *h->pages) == 0 &&
                api->alloc(b->context, (void **)&h->instructions,
                           PROFILE_COPIES * PROFILE_INSTRUCTIONS * sizeof *h->instructions) == 0 &&
                api->alloc(b->context, &b->launch, sizeof *h) == 0;
    h->room = ROOM_WORDS;
    while (good && api->alloc(b->context, (void **)&h->words, h->room * sizeof *h->words) != 0) {
        h->words = NULL;
        h->room /= 2;
        good = h->room >= LEAST_ROOM_WORDS;
    }
    if (!good) {
        b->failed = true;
        free_buffers(b);
    }
    return good;
}

/* Patches a module. Returns NULL, or the reason why the module cannot be patched. The caller has
 * `patching`. */
static const char *patch(san_context context, san_module module)
{
    static const struct {
        int instruction;
        const char *function;
        bool must;
    } calls[] = {
        {SAN_GLOBAL_MEMORY_ACCESS, "reach_profile_access", true},
        {SAN_MEMCPY_ASYNC, "reach_profile_copy", false},
        {SAN_BULK_COPY_GLOBAL_TO_SHARED, "reach_profile_bulk_load", false},
        {SAN_BULK_COPY_SHARED_TO_GLOBAL, "reach_profile_bulk_store", false},
        {SAN_TMA_LOAD, "reach_profile_tensor", false},
    };
    static const char refused[] = "the Sanitizer library cannot patch its module";
    struct buffers *const b = find_context(context);
    struct patched *const slot = find_patched(NULL);
    if (!b || !slot)
        return "too many modules or contexts are recorded";
    if (!make_buffers(b))
        return "the GPU has no memory for the recording";
    if (!b->is_patch_loaded && api->add_patches(patch_image, context) != 0)
        return refused;
    b->is_patch_loaded = true;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (api->patch_instructions(calls[i].instruction, module, calls[i].function) != 0 &&
            calls[i].must)
            return refused;
    }
    slot->context = context;
    slot->is_kept = false;
    atomic_store(&slot->module, module);
    atomic_fetch_add(&patched_count, 1);
    if (api->patch_module(module) == 0)
        return NULL;
    forget(slot);
    return refused;
}

static struct recorded *new_result(void)
{
    struct recorded *const r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->pages = malloc(PROFILE_PAGES * sizeof *r->pages);
    r->instructions = malloc(PROFILE_COPIES * PROFILE_INSTRUCTIONS * sizeof *r->instructions);
    if (!r->pages || !r->instructions) {
        recorded_free(r);
        return NULL;
    }
    return r;
}

/* Chooses the blocks of the sample: RUNS or more runs of consecutive blocks over the whole grid. */
static void choose_blocks(const struct recorded *r, struct profile_launch *out)
{
    const uint64_t blocks = (uint64_t)r->grid[0] * r->grid[1] * r->grid[2];
    const uint32_t guess = blocks > FIRST_BLOCKS ? (uint32_t)(blocks / FIRST_BLOCKS) : 1;
    out->every = r->kernel->every ? r->kernel->every : guess;
    const uint64_t run = blocks / ((uint64_t)out->every * RUNS);
    out->run_shift = 0;
    while (out->run_shift < MOST_RUN_SHIFT && (uint64_t)2 << out->run_shift <= run)
        out->run_shift++;
}

static void set_state(enum state next)
{
    pthread_mutex_lock(&lock);
    state = next;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* ---- in callbacks that may hold locks of the driver ---- */

void recorder_module_loaded(san_context context, san_module module)
{
    if (atomic_load(&is_paused) || gate_is_capturing() || !kernels_want_first() ||
        pthread_mutex_trylock(&patching) != 0)
        return;
    const uint64_t begin = clock_ns();
    (void)patch(context, module);
    kernels_spent_first(clock_ns() - begin);
    pthread_mutex_unlock(&patching);
}

bool recorder_is_ready(san_module module)
{
    if (atomic_load(&patched_count) == 0)
        return false;
    pthread_mutex_lock(&lock);
    const bool is_idle = state == IDLE;
    pthread_mutex_unlock(&lock);
    return is_idle && find_patched(module);
}

static bool take(void)
{
    pthread_mutex_lock(&lock);
    const bool is_idle = state == IDLE;
    if (is_idle)
        state = TAKEN;
    pthread_mutex_unlock(&lock);
    return is_idle;
}

static bool give_buffers(const struct san_launch_data *launch, struct buffers *b)
{
    const struct profile_launch *const h = &b->host;
    return api->memset(h->pages, 0, PROFILE_PAGES * sizeof *h->pages, launch->stream) == 0 &&
           api->memset(h->instructions, 0,
                       PROFILE_COPIES * PROFILE_INSTRUCTIONS * sizeof *h->instructions,
                       launch->stream) == 0 &&
           api->to_device(b->launch, h, sizeof *h, launch->stream) == 0 &&
           api->set_launch_data(launch->launch, launch->function, launch->stream, b->launch) == 0;
}

bool recorder_begin(const struct san_launch_data *launch, struct kernel *k, uint32_t shape)
{
    if (!find_patched(launch->module) || !take())
        return false;
    struct buffers *const b = find_context(launch->context);
    struct recorded *const r = b && b->launch ? new_result() : NULL;
    if (!r) {
        set_state(IDLE);
        return false;
    }
    r->kernel = k;
    r->shape = shape;
    memcpy(r->grid, launch->grid, sizeof r->grid);
    memcpy(r->block, launch->block, sizeof r->block);
    choose_blocks(r, &b->host);
    b->host.limit_ns = RECORDED_NS;
    r->counts = b->host;
    r->context = launch->context;
    uint64_t bytes;
    if (api->function_pc(launch->module, launch->name, &r->function_pc, &bytes) != 0)
        r->function_pc = 0;
    now.result = r;
    now.buffers = b;
    now.begin_ns = clock_ns();
    if (give_buffers(launch, b))
        return true;
    kernels_refuse(k, "the Sanitizer library cannot give the launch a buffer");
    recorded_free(r);
    set_state(IDLE);
    return false;
}

void recorder_launched(san_context context, san_stream stream)
{
    now.mark = timer_mark(context, stream);
    now.context = context;
    now.stream = stream;
    after.has_recorded = true;
    set_state(RUNNING);
}

bool recorder_skip(const struct san_launch_data *launch)
{
    if (atomic_load(&patched_count) == 0)
        return false;
    struct patched *const p = find_patched(launch->module);
    if (!p)
        return false;
    (void)api->set_launch_data(launch->launch, launch->function, launch->stream, NULL);
    if (!p->is_kept && !atomic_exchange(&p->is_stale, true))
        atomic_fetch_add(&stale_count, 1);
    return true;
}

void recorder_request(const struct san_launch_data *launch, struct kernel *k)
{
    if (atomic_load(&has_graph)) {
        kernels_refuse(k, "a CUDA graph can have its code, which cannot be patched then");
        return;
    }
    after.context = launch->context;
    after.module = launch->module;
    after.kernel = k;
}

void recorder_module_unloaded(san_module module)
{
    struct patched *const p = find_patched(module);
    if (p)
        forget(p);
}

void recorder_context_destroyed(san_context context)
{
    for (int i = 0; i < CONTEXTS; i++) {
        if (contexts[i].context == context)
            contexts[i] = (struct buffers){0}; /* the driver frees the memory of the context */
    }
    timer_forget(context);
}

/* ---- where the thread holds no lock of the driver ---- */

static void wait_for_recording(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_SECONDS;
    pthread_mutex_lock(&lock);
    int late = 0;
    while (state != IDLE && !late)
        late = pthread_cond_timedwait(&changed, &lock, &until);
    pthread_mutex_unlock(&lock);
}

/* Unpatches the stale modules, or all. If all cannot be unpatched, because a launch does not end, a
 * graph may take their patched code, which then must stay. The caller has `patching`. */
static void unpatch(bool all)
{
    for (int i = 0; i < MODULES; i++) {
        struct patched *const p = &modules[i];
        const san_module module = atomic_load(&p->module);
        if (!module || p->is_kept || (!all && !atomic_load(&p->is_stale)))
            continue;
        if (gate_close(p->context)) {
            if (api->unpatch_module(module) == 0)
                forget(p);
            gate_open();
        } else {
            p->is_kept = all;
        }
    }
}

void recorder_settle(void)
{
    if (after.has_recorded) {
        after.has_recorded = false;
        wait_for_recording();
    }
    if (atomic_load(&has_graph) || atomic_load(&is_paused))
        after.context = NULL;
    if ((!after.context && atomic_load(&stale_count) == 0) || gate_is_capturing() ||
        pthread_mutex_trylock(&patching) != 0)
        return;
    if (after.context) {
        struct patched *const p = find_patched(after.module);
        if (p) { /* keep the patch */
            if (atomic_exchange(&p->is_stale, false))
                atomic_fetch_sub(&stale_count, 1);
        } else if (gate_close(after.context)) {
            const char *const why = patch(after.context, after.module);
            gate_open();
            if (why)
                kernels_refuse(after.kernel, why);
        }
        after.context = NULL;
    }
    if (atomic_load(&stale_count) > 0)
        unpatch(false);
    pthread_mutex_unlock(&patching);
}

bool recorder_pause(void)
{
    if (pthread_mutex_trylock(&patching) != 0)
        return false;
    atomic_store(&is_paused, true);
    pthread_mutex_lock(&lock);
    const bool is_quiet = state == IDLE && atomic_load(&patched_count) == 0;
    pthread_mutex_unlock(&lock);
    if (!is_quiet)
        atomic_store(&is_paused, false);
    for (int i = 0; i < MODULES && !is_quiet;
         i++) { /* the next launch call unpatches all modules */
        struct patched *const p = &modules[i];
        if (atomic_load(&p->module) && !p->is_kept && !atomic_exchange(&p->is_stale, true))
            atomic_fetch_add(&stale_count, 1);
    }
    pthread_mutex_unlock(&patching);
    return is_quiet;
}

void recorder_resume(void)
{
    atomic_store(&is_paused, false);
}

void recorder_graph_begins(void)
{
    atomic_store(&has_graph, true);
    if (atomic_load(&patched_count) == 0 || pthread_mutex_trylock(&patching) != 0)
        return;
    unpatch(true);
    pthread_mutex_unlock(&patching);
}

/* ---- the thread ---- */

static bool read_back(struct recorded *r, const struct buffers *b)
{
    const struct profile_launch device = r->counts;
    san_stream stream;
    if (api->get_stream(b->context, STREAM_OF_THREAD, &stream) != 0 ||
        api->to_host(&r->counts, b->launch, sizeof r->counts, stream) != 0)
        return false;
    const uint64_t words = r->counts.used < device.room ? r->counts.used : device.room;
    r->words = malloc(words * sizeof *r->words + 1);
    return r->words &&
           api->to_host(r->pages, device.pages, PROFILE_PAGES * sizeof *r->pages, stream) == 0 &&
           api->to_host(r->instructions, device.instructions,
                        PROFILE_COPIES * PROFILE_INSTRUCTIONS * sizeof *r->instructions,
                        stream) == 0 &&
           (words == 0 ||
            api->to_host(r->words, device.words, words * sizeof *r->words, stream) == 0);
}

static void finish(void)
{
    struct recorded *const r = now.result;
    for (int i = 0; now.mark < 0 && i < 100; i++) { /* all marks can be in use for a while */
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        now.mark = timer_mark(now.context, now.stream);
    }
    bool good = now.mark >= 0;
    while (good && !timer_is_reached(now.mark)) {
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
        good = clock_ns() - now.begin_ns < LONGEST_NS;
    }
    if (good)
        timer_free_mark(now.mark);
    good = good && read_back(r, now.buffers);
    if (good && !r->counts.is_late) {
        kernels_recorded(r->kernel, r->shape, r->counts.used, r->counts.room, r->counts.every,
                         clock_ns() - now.begin_ns);
        finished(r);
    } else {
        kernels_refuse(r->kernel, good ? "the recorded launch took longer than three seconds"
                                       : "the recorded launch did not end");
        recorded_free(r);
    }
}

static void *run(void *unused)
{
    (void)unused;
    for (;;) {
        pthread_mutex_lock(&lock);
        while (state != RUNNING)
            (void)pthread_cond_wait(&changed, &lock);
        pthread_mutex_unlock(&lock);
        finish();
        set_state(IDLE);
    }
    return NULL;
}

enum status recorder_start(const struct sanitizer_api *use, const void *image,
                           void (*done)(struct recorded *take), struct err *err)
{
    api = use;
    patch_image = image;
    finished = done;
    return thread_start(run, "recorder", NULL, err);
}
