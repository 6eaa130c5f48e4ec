/* recorder.c: buffers on the GPU, patches, and reading back. */
#include "clients/profile/inject/recorder.h"

#include "base/clock.h"
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
    RUNS = 8
};
#define STREAM_OF_THREAD ((void *)2) /* CU_STREAM_PER_THREAD */
/* After this time a launch is not recorded any more; the rest of it runs almost unpatched. */
#define RECORDED_NS (3 * NSEC_PER_SEC)
#define WANTED_NS   (1 * NSEC_PER_SEC) /* of a patched module for a launch to record */
#define LONGEST_NS  (60 * NSEC_PER_SEC)
#define WAIT_NS     (4 * NSEC_PER_SEC) /* of a thread for its recording; more than RECORDED_NS */
#define DESTROY_NS  (1 * NSEC_PER_SEC) /* of a thread that destroys a context that is read */
#define END_NS      (3 * NSEC_PER_SEC) /* of the end of the process for a recording */

/* Buffers of one context. */
struct buffers {
    san_context context;
    bool is_patch_loaded;
    const char *_Atomic failed; /* why there are no buffers; NULL if that is not known yet */
    struct profile_launch host; /* pointers and room */
    void *_Atomic launch;       /* struct profile_launch on the GPU */
};

static const struct sanitizer_api *api;
static const void *patch_image;

/* A patched module. */
struct patched {
    _Atomic(san_module) module; /* NULL is a free slot */
    _Atomic(san_context) context;
    atomic_bool is_stale;            /* a launch was not recorded, so the patch only costs time */
    _Atomic(struct kernel *) wanted; /* the module stays patched until a launch of this kernel is
                                        recorded, because other kernels may be launched before */
    _Atomic uint64_t wanted_ns;      /* time of the request */
    atomic_bool is_kept; /* the module cannot be unpatched, or a graph may have its code */
};

enum state {
    IDLE,    /* a launch can be recorded */
    TAKEN,   /* the launch is between its callbacks */
    RUNNING, /* the thread waits for the launch */
    READING  /* the thread reads back */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* never held in a call of the API */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static enum state state;
static struct { /* the recording; its owner is the thread that has taken it, then the thread of
                   run() */
    struct recorded *result;
    const void *launch; /* on the GPU */
    int mark;
    san_stream stream;
    uint64_t begin_ns;
} now;
static san_context now_context; /* of the recording after its launch; changed with the lock */
static bool is_abandoned;       /* the context of the recording is gone; changed with the lock */
static void (*finished)(struct recorded *take);
static struct buffers contexts[CONTEXTS];
static pthread_mutex_t patching = PTHREAD_MUTEX_INITIALIZER; /* taken only by trylock */
static struct patched modules[MODULES];
static _Atomic int patched_count, stale_count;
static atomic_bool is_paused, has_ended;
static atomic_bool has_graph; /* graphs have copies of code, which must not be patched any more */

/* What this thread does when its launch call ends. */
static __thread struct {
    san_context context; /* of the module to patch; NULL if none */
    san_module module;
    struct kernel *kernel; /* that asked for the patch */
    bool has_recorded;
} after;

void recorded_free(struct recorded *take)
{
    if (!take)
        return;
    free(take->pages);
    free(take->instructions);
    free(take->words);
    free(take);
}

/* Finds the slot of a module, or a free slot if the module is NULL. */
static struct patched *find_slot(san_module module)
{
    for (int i = 0; i < MODULES; i++) {
        if (atomic_load_explicit(&modules[i].module, memory_order_acquire) == module)
            return &modules[i];
    }
    return NULL;
}

/* A launch without a module has none that is patched. */
static struct patched *find_patched(san_module module)
{
    return module ? find_slot(module) : NULL;
}

static void set_stale(struct patched *p, bool stale)
{
    if (atomic_exchange(&p->is_stale, stale) != stale)
        atomic_fetch_add(&stale_count, stale ? 1 : -1);
}

static void forget(struct patched *p)
{
    set_stale(p, false);
    atomic_store(&p->wanted, NULL);
    if (atomic_exchange(&p->module, NULL))
        atomic_fetch_sub(&patched_count, 1);
}

static void keep(struct patched *p)
{
    atomic_store(&p->is_kept, true);
    set_stale(p, false);
}

static struct buffers *find_context(san_context context)
{
    struct buffers *found = NULL, *unused = NULL;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < CONTEXTS && !found; i++) {
        if (contexts[i].context == context)
            found = &contexts[i];
        if (!contexts[i].context && !unused)
            unused = &contexts[i];
    }
    if (!found && unused) {
        *unused = (struct buffers){.context = context};
        found = unused;
    }
    pthread_mutex_unlock(&lock);
    return found;
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
    void *launch = NULL;
    bool good = api->alloc(b->context, (void **)&h->pages, PROFILE_PAGES * sizeof *h->pages) == 0 &&
                api->alloc(b->context, (void **)&h->instructions,
                           PROFILE_COPIES * PROFILE_INSTRUCTIONS * sizeof *h->instructions) == 0 &&
                api->alloc(b->context, &launch, sizeof *h) == 0;
    b->launch = launch;
    h->room = ROOM_WORDS;
    while (good && api->alloc(b->context, (void **)&h->words, h->room * sizeof *h->words) != 0) {
        h->words = NULL;
        h->room /= 2;
        good = h->room >= LEAST_ROOM_WORDS;
    }
    if (!good) {
        b->failed = "the GPU has no memory for the recording";
        free_buffers(b);
    }
    return good;
}

/* Ends recordings of a context, because its buffers may still be written. The caller has `lock`. */
static void fail_context(san_context context, const char *why)
{
    for (int i = 0; i < CONTEXTS; i++) {
        if (contexts[i].context == context) {
            contexts[i].launch = NULL;
            contexts[i].failed = why;
        }
    }
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
    struct patched *const slot = find_slot(NULL);
    if (!b || !slot)
        return "too many modules or contexts are recorded";
    if (!make_buffers(b))
        return b->failed;
    if (!b->is_patch_loaded && api->add_patches(patch_image, context) != 0)
        return refused;
    b->is_patch_loaded = true;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (api->patch_instructions(calls[i].instruction, module, calls[i].function) != 0 &&
            calls[i].must)
            return refused;
    }
    atomic_store(&slot->context, context);
    atomic_store(&slot->is_kept, false);
    atomic_store(&slot->wanted, NULL);
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
    const uint64_t guess = blocks > FIRST_BLOCKS ? blocks / FIRST_BLOCKS : 1;
    out->every = r->kernel->every     ? r->kernel->every
                 : guess < UINT32_MAX ? (uint32_t)guess
                                      : UINT32_MAX;
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

/* Waits while `is_so` returns true and the recording belongs to `context`; NULL means any context.
 * The wait ends after `longest_ns`. The caller has the lock. */
static void wait_while(bool (*is_so)(void), san_context context, uint64_t longest_ns)
{
    const struct timespec until = clock_timespec(clock_monotonic() + longest_ns);
    int late = 0;
    while (is_so() && (!context || now_context == context) && !late)
        late = pthread_cond_clockwait(&changed, &lock, CLOCK_MONOTONIC, &until);
}

static bool is_reading(void)
{
    return state == READING;
}

static bool is_busy(void)
{
    return state != IDLE;
}

static bool may_patch(void)
{
    return !atomic_load(&is_paused) && !atomic_load(&has_ended);
}

/* ---- in callbacks that may hold locks of the driver ---- */

void recorder_module_loaded(san_context context, san_module module)
{
    if (!may_patch() || gate_is_capturing() || !kernels_want_first() ||
        pthread_mutex_trylock(&patching) != 0)
        return;
    const uint64_t begin = clock_monotonic();
    (void)patch(context, module);
    kernels_spent_first(clock_monotonic() - begin);
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
    const bool is_idle = state == IDLE && !atomic_load(&has_ended);
    if (is_idle)
        state = TAKEN;
    pthread_mutex_unlock(&lock);
    return is_idle;
}

static bool give_buffers(const struct san_launch_data *launch, const struct profile_launch *h,
                         void *on_gpu)
{
    return api->memset(h->pages, 0, PROFILE_PAGES * sizeof *h->pages, launch->stream) == 0 &&
           api->memset(h->instructions, 0,
                       PROFILE_COPIES * PROFILE_INSTRUCTIONS * sizeof *h->instructions,
                       launch->stream) == 0 &&
           api->to_device(on_gpu, h, sizeof *h, launch->stream) == 0 &&
           api->set_launch_data(launch->launch, launch->function, launch->stream, on_gpu) == 0;
}

/* Ends the wait for a launch of `k`. */
static void stop_waiting(struct patched *p, struct kernel *k, bool in_vain)
{
    struct kernel *wanted = k;
    if (atomic_compare_exchange_strong(&p->wanted, &wanted, NULL))
        kernels_waited(k, clock_monotonic() - atomic_load(&p->wanted_ns), in_vain);
}

bool recorder_begin(const struct san_launch_data *launch, struct kernel *k, uint32_t shape)
{
    struct patched *const p = find_patched(launch->module);
    if (!p || !take())
        return false;
    stop_waiting(p, k, false);
    struct buffers *const b = find_context(launch->context);
    struct recorded *const r = b && b->launch ? new_result() : NULL;
    if (!r) {
        if (b && b->failed)
            kernels_refuse(k, b->failed);
        set_state(IDLE);
        return false;
    }
    r->kernel = k;
    r->shape = shape;
    memcpy(r->grid, launch->grid, sizeof r->grid);
    memcpy(r->block, launch->block, sizeof r->block);
    r->counts = b->host;
    r->counts.limit_ns = RECORDED_NS;
    choose_blocks(r, &r->counts);
    r->context = launch->context;
    uint64_t bytes;
    if (api->function_pc(launch->module, launch->name, &r->function_pc, &bytes) != 0)
        r->function_pc = 0;
    now.result = r;
    now.launch = b->launch;
    now.begin_ns = clock_monotonic();
    if (give_buffers(launch, &r->counts, b->launch))
        return true;
    kernels_refuse(k, "the Sanitizer library cannot give the launch a buffer");
    recorded_free(r);
    set_state(IDLE);
    return false;
}

void recorder_launched(san_context context, san_stream stream)
{
    now.mark = timer_mark(context, stream);
    now.stream = stream;
    after.has_recorded = true;
    pthread_mutex_lock(&lock);
    now_context = context;
    is_abandoned = atomic_load(&has_ended);
    state = RUNNING;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

void recorder_cancel(void)
{
    kernels_refuse(now.result->kernel, "the recorded launch failed");
    recorded_free(now.result);
    set_state(IDLE);
}

bool recorder_skip(const struct san_launch_data *launch)
{
    if (atomic_load(&patched_count) == 0)
        return false;
    struct patched *const p = find_patched(launch->module);
    if (!p)
        return false;
    (void)api->set_launch_data(launch->launch, launch->function, launch->stream, NULL);
    struct kernel *const wanted = atomic_load(&p->wanted);
    if (wanted && clock_monotonic() - atomic_load(&p->wanted_ns) > WANTED_NS)
        stop_waiting(p, wanted, true);
    if (!atomic_load(&p->is_kept) && !atomic_load(&p->wanted))
        set_stale(p, true);
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
    pthread_mutex_lock(&lock);
    is_abandoned = is_abandoned || now_context == context;
    wait_while(is_reading, context, DESTROY_NS);
    for (int i = 0; i < CONTEXTS; i++) {
        if (contexts[i].context == context)
            contexts[i] = (struct buffers){0}; /* the driver frees the memory of the context */
    }
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < MODULES; i++) {
        if (atomic_load(&modules[i].module) && atomic_load(&modules[i].context) == context)
            forget(&modules[i]);
    }
    gate_forget_streams(context);
    timer_forget(context);
}

bool recorder_has_context(san_context context)
{
    bool has = false;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < CONTEXTS; i++)
        has = has || contexts[i].context == context;
    pthread_mutex_unlock(&lock);
    return has;
}

/* ---- where the thread holds no lock of the driver ---- */

static void wait_for_recording(void)
{
    pthread_mutex_lock(&lock);
    wait_while(is_busy, NULL, WAIT_NS);
    pthread_mutex_unlock(&lock);
}

/* Unpatches the stale modules, or all. If all cannot be unpatched, because a launch does not end, a
 * graph may take their patched code, which then must stay. The caller has `patching`. */
static void unpatch(bool all)
{
    for (int i = 0; i < MODULES; i++) {
        struct patched *const p = &modules[i];
        san_module module = atomic_load(&p->module);
        if (!module || atomic_load(&p->is_kept) || (!all && !atomic_load(&p->is_stale)))
            continue;
        if (gate_close(atomic_load(&p->context))) {
            const bool is_loaded = atomic_load(&p->module) == module;
            if (is_loaded && api->unpatch_module(module) == 0)
                forget(p);
            else if (is_loaded)
                keep(p);
            gate_open();
        } else if (all) {
            keep(p);
        }
    }
}

/* Keeps a module patched for a kernel, unless it is for another one already. */
static void want(struct patched *p, struct kernel *k)
{
    if (!p || atomic_load(&p->wanted))
        return;
    atomic_store(&p->wanted_ns, clock_monotonic());
    atomic_store(&p->wanted, k);
    set_stale(p, false);
}

void recorder_settle(void)
{
    if (after.has_recorded) {
        after.has_recorded = false;
        wait_for_recording();
    }
    if (atomic_load(&has_graph) || !may_patch())
        after.context = NULL;
    if ((!after.context && atomic_load(&stale_count) == 0) || gate_is_capturing() ||
        pthread_mutex_trylock(&patching) != 0)
        return;
    if (after.context && !find_patched(after.module) && gate_close(after.context)) {
        const char *const why = patch(after.context, after.module);
        gate_open();
        if (why)
            kernels_refuse(after.kernel, why);
    }
    if (after.context)
        want(find_patched(after.module), after.kernel);
    after.context = NULL;
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
    for (int i = 0; i < MODULES && !is_quiet; i++) { /* the next launch call unpatches all */
        struct patched *const p = &modules[i];
        if (atomic_load(&p->module) && !atomic_load(&p->is_kept))
            set_stale(p, true);
    }
    pthread_mutex_unlock(&patching);
    return is_quiet;
}

void recorder_resume(void)
{
    atomic_store(&is_paused, false);
}

void recorder_end(void)
{
    atomic_store(&has_ended, true);
    if (!thread_lock_at_end(&lock))
        return;
    wait_while(is_busy, NULL, END_NS);
    is_abandoned = true;
    pthread_mutex_unlock(&lock);
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

static bool read_back(struct recorded *r, const void *launch)
{
    const struct profile_launch device = r->counts;
    san_stream stream;
    if (api->get_stream(r->context, STREAM_OF_THREAD, &stream) != 0 ||
        api->to_host(&r->counts, (void *)(uintptr_t)launch, sizeof r->counts, stream) != 0)
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

static bool has_lost_context(void)
{
    pthread_mutex_lock(&lock);
    const bool lost = is_abandoned;
    pthread_mutex_unlock(&lock);
    return lost;
}

/* Waits for the launch. Returns false if its end cannot be seen, or if its context is gone. */
static bool wait_for_launch(void)
{
    for (int i = 0; now.mark < 0 && i < 100 && !has_lost_context();
         i++) { /* all marks can be in use for a while */
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        now.mark = timer_mark(now.result->context, now.stream);
    }
    while (now.mark >= 0 && !timer_is_reached(now.mark) &&
           clock_monotonic() - now.begin_ns < LONGEST_NS)
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    const bool is_reached = now.mark >= 0 && timer_is_reached(now.mark);
    timer_free_mark(now.mark);
    pthread_mutex_lock(&lock);
    const bool good = is_reached && !is_abandoned;
    if (good)
        state = READING;
    else if (!is_abandoned)
        fail_context(now.result->context, "an earlier recorded launch did not end");
    pthread_mutex_unlock(&lock);
    return good;
}

static void finish(void)
{
    struct recorded *const r = now.result;
    const bool is_over = wait_for_launch();
    if (is_over && read_back(r, now.launch)) {
        kernels_recorded(r->kernel, r->shape, r->counts.used, r->counts.room, r->counts.every,
                         clock_monotonic() - now.begin_ns);
        if (r->counts.is_late)
            kernels_record_no_more(r->kernel);
        finished(r);
        return;
    }
    if (is_over)
        kernels_refuse(r->kernel, "the Sanitizer library cannot read the recording");
    else if (!has_lost_context())
        kernels_refuse(r->kernel, "the recorded launch did not end");
    recorded_free(r);
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
