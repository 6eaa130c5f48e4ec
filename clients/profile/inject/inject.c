/* inject.c: the entry of libreach-profile.so, which the CUDA driver loads into a program
 * (CUDA_INJECTION64_PATH), and the callbacks of the Sanitizer API. */
#include "base/clock.h"
#include "clients/profile/inject/duty.h"
#include "clients/profile/inject/gate.h"
#include "clients/profile/inject/memory.h"
#include "clients/profile/inject/timer.h"
#include "clients/profile/inject/writer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

extern const unsigned char reach_profile_patch_start[];

static struct sanitizer_api api;
/* A child of a fork has none of the threads, and its locks may be held forever. CUDA does not work
 * in such a child, so it does nothing. */
static atomic_bool is_child;

/* What this thread does with the launch between its two callbacks. */
static __thread struct {
    struct kernel_node node;
    enum kernel_step step;
    int mark;            /* before the launch; -1 if the launch is not timed */
    struct timed *graph; /* nodes of a timed graph; owned until its launch ends */
    bool is_timed;       /* a timed launch may not have ended yet */
    bool is_upload;      /* a graph is uploaded, and its nodes do not run */
} current = {.mark = -1};

/* ---- memory ---- */

static const char *kind_of(const struct san_memory_data *m, uint32_t id)
{
    if (m->flags & SAN_MEMORY_MANAGED)
        return "managed";
    if (id == SAN_HOST_MEMORY_ALLOC)
        return memory_is_reserved(m->address) ? "pinned" : "registered";
    return id == SAN_MEMORY_ALLOC_ASYNC ? "pool" : "device";
}

static void on_resource(uint32_t id, const void *data)
{
    const struct san_memory_data *const m = data;

    switch (id) {
    case SAN_DEVICE_MEMORY_ALLOC:
    case SAN_HOST_MEMORY_ALLOC:
    case SAN_MEMORY_ALLOC_ASYNC:
        if (!(m->flags & SAN_MEMORY_MODULE))
            memory_allocated(m->device, m->address, m->bytes, kind_of(m, id));
        break;
    case SAN_DEVICE_MEMORY_FREE:
    case SAN_HOST_MEMORY_FREE:
    case SAN_MEMORY_FREE_ASYNC:
        memory_freed(m->address);
        break;
    case SAN_VIRTUAL_RESERVE:
        memory_reserved(m->address, m->bytes); /* the other struct begins with these two, too */
        break;
    case SAN_VIRTUAL_RELEASE:
        memory_released(m->address);
        break;
    case SAN_MODULE_LOADED:
        recorder_module_loaded(((const struct san_module_data *)data)->context,
                               ((const struct san_module_data *)data)->module);
        break;
    case SAN_MODULE_UNLOAD_STARTING:
        recorder_module_unloaded(((const struct san_module_data *)data)->module);
        kernels_forget_functions();
        break;
    case SAN_CONTEXT_DESTROY_STARTING:
        recorder_context_destroyed(((const struct san_context_data *)data)->context);
        kernels_forget_functions();
        break;
    default:
        break;
    }
}

/* ---- launches ---- */

/* A timed launch of one kernel or of a graph. */
struct timed {
    uint32_t count, room;
    bool is_graph;
    struct kernel_node *nodes; /* owned */
};

static void timed_free(struct timed *take)
{
    if (take)
        free(take->nodes);
    free(take);
}

/* Gives up a launch whose end was not reported. */
static void drop_launch(void)
{
    if (current.step == KERNEL_RECORD)
        recorder_cancel();
    current.step = KERNEL_LAUNCH;
    timer_free_mark(current.mark);
    current.mark = -1;
    timed_free(current.graph);
    current.graph = NULL;
}

/* Adds a node. Without memory, the node is lost. */
static void timed_add(struct timed *t, struct kernel_node node)
{
    if (t->count == t->room) {
        const uint32_t room = t->room ? 2 * t->room : t->is_graph ? 64 : 1;
        struct kernel_node *const moved = realloc(t->nodes, room * sizeof *moved);
        if (!moved)
            return;
        t->nodes = moved;
        t->room = room;
    }
    t->nodes[t->count++] = node;
}

static void on_timed(void *what, uint64_t ns)
{
    struct timed *const t = what;
    if (ns > 0 && t->is_graph)
        kernels_graph_timed(t->nodes, t->count, ns);
    else if (ns > 0 && t->count > 0)
        kernels_timed(t->nodes[0].kernel, t->nodes[0].shape, ns);
    timed_free(t);
}

static void on_kernel(const struct san_launch_data *l, bool in_graph)
{
    struct kernel_node node = {.shape = KERNEL_SHAPES};
    enum kernel_step step;
    const bool is_ready = recorder_is_ready(l->module);

    node.kernel = kernels_launch(l->function, l->name ? l->name : "?", l->device, l->grid, l->block,
                                 in_graph, is_ready, &node.shape, &step);
    const bool is_recorded =
        step == KERNEL_RECORD && is_ready && recorder_begin(l, node.kernel, node.shape);
    if (!is_recorded && recorder_skip(l) && step == KERNEL_TIME)
        step = KERNEL_LAUNCH; /* patched code is slower */
    if (step == KERNEL_RECORD && !is_recorded) {
        recorder_request(l, node.kernel);
        step = KERNEL_LAUNCH;
    }
    gate_saw_stream(l->context, l->stream, l->user_stream);
    if (current.graph && node.kernel)
        timed_add(current.graph, node);
    if (in_graph && !is_recorded)
        return;
    current.node = node;
    current.step = step;
    if (step == KERNEL_TIME)
        current.mark = timer_mark(l->context, l->stream);
}

/* Watches the launch that began with current.mark. Owns `take`. */
static void watch(san_context context, san_stream stream, struct timed *take)
{
    const uint64_t begin_ns = timer_see(current.mark);
    const int end = timer_mark(context, stream);
    if (end >= 0) {
        timer_watch(current.mark, begin_ns, end, on_timed, take);
        current.is_timed = true;
    } else {
        timer_free_mark(current.mark);
        timed_free(take);
    }
    current.mark = -1;
}

static void on_end(san_context context, san_stream stream)
{
    const enum kernel_step step = current.step;
    current.step = KERNEL_LAUNCH;
    if (step == KERNEL_RECORD)
        recorder_launched(context, stream);
    if (step == KERNEL_TIME && current.mark >= 0) {
        struct timed *const t = calloc(1, sizeof *t);
        if (t) {
            timed_add(t, current.node);
            watch(context, stream, t);
        }
    }
    drop_launch();
}

static void on_launch(uint32_t id, const void *data)
{
    const struct san_launch_data *const l = data;
    if (id == SAN_LAUNCH_BEGIN) {
        drop_launch();
        on_kernel(l, false);
    }
    if (id == SAN_LAUNCH_END)
        on_end(l->context, l->stream);
}

static void begin_graph(const struct san_graph_data *g)
{
    drop_launch();
    current.is_upload = g->is_upload;
    if (g->is_upload || !kernels_graph_launch(g->exec))
        return;
    current.mark = timer_mark(g->context, g->stream);
    current.graph = current.mark >= 0 ? calloc(1, sizeof *current.graph) : NULL;
    if (current.graph)
        current.graph->is_graph = true;
}

static void end_graph(const struct san_graph_data *g)
{
    struct timed *const graph = current.graph;
    current.graph = NULL;
    if (graph && current.step == KERNEL_RECORD)
        timed_free(graph); /* the recorded kernel is slower */
    else if (graph)
        watch(g->context, g->stream, graph);
    on_end(g->context, g->stream);
}

static void on_graph(uint32_t id, const void *data)
{
    const struct san_node_data *const n = data;

    if (id == SAN_GRAPH_LAUNCH_BEGIN)
        begin_graph(data);
    else if (id == SAN_GRAPH_LAUNCH_END)
        end_graph(data);
    else if (id == SAN_NODE_LAUNCH_BEGIN && n->type == SAN_KERNEL_NODE && current.is_upload)
        (void)recorder_skip(&n->launch);
    else if (id == SAN_NODE_LAUNCH_BEGIN && n->type == SAN_KERNEL_NODE)
        on_kernel(&n->launch, true);
}

/* ---- calls of the driver ---- */

static bool begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

/* Returns whether cuStreamEndCapture has ended a capture. A capture that failed has ended too. */
static bool has_ended_capture(const int *result)
{
    enum { CAPTURE_INVALIDATED = 901, CAPTURE_UNJOINED = 904 };
    return !result || *result == 0 || *result == CAPTURE_INVALIDATED || *result == CAPTURE_UNJOINED;
}

static void on_call(const struct san_call_data *c)
{
    if (begins(c->name, "cuLaunch") || begins(c->name, "cuGraphLaunch")) {
        if (c->site == SAN_CALL_ENTER) {
            gate_enter();
            return;
        }
        if (current.is_timed) {
            current.is_timed = false;
            timer_wait();
        }
        recorder_settle();
        if (gate_leave())
            drop_launch();
    } else if (begins(c->name, "cuStreamDestroy")) {
        if (c->site == SAN_CALL_ENTER) {
            gate_enter();
            gate_destroys_stream(*(void *const *)c->parameters);
        } else {
            (void)gate_leave();
        }
    } else if (c->site == SAN_CALL_ENTER) {
        if (begins(c->name, "cuStreamBeginCapture")) {
            recorder_graph_begins();
            gate_capture_begins();
        } else if (begins(c->name, "cuGraphInstantiate")) {
            recorder_graph_begins();
        } else if (begins(c->name, "cuDevicePrimaryCtxReset")) {
            writer_count_reset();
        }
    } else if ((begins(c->name, "cuStreamEndCapture") && has_ended_capture(c->result)) ||
               (begins(c->name, "cuStreamBeginCapture") && c->result && *c->result != 0)) {
        gate_capture_ends();
    }
}

static void on_event(void *user, int domain, uint32_t id, const void *data)
{
    (void)user;
    if (atomic_load(&is_child))
        return;
    if (domain == SAN_DOMAIN_DRIVER_API)
        on_call(data);
    else if (domain == SAN_DOMAIN_LAUNCH)
        on_launch(id, data);
    else if (domain == SAN_DOMAIN_RESOURCE)
        on_resource(id, data);
    else if (domain == SAN_DOMAIN_GRAPHS)
        on_graph(id, data);
}

/* ---- start and end ---- */

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *const text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

/* Describes why the library has no subscriber; `result` is a SanitizerResult. */
static enum status describe_refusal(int result, struct err *err)
{
    const char *why = "";

    (void)api.result_string(result, &why);
    if (result == SAN_MAX_LIMIT_REACHED)
        return err_set(err, STATUS_CONFLICT,
                       "another tool uses the Sanitizer library in this process: run the program "
                       "without Nsight or compute-sanitizer");
    return err_set(err, STATUS_NOT_SUPPORTED,
                   "the Sanitizer library does not work with this driver (%s): use the library of "
                   "the CUDA version that nvidia-smi prints",
                   why);
}

static enum status subscribe(struct err *err)
{
    const char *const path = getenv("REACH_PROFILE_SANITIZER");
    san_subscriber subscriber;

    const enum status s = sanitizer_api_load(path ? path : "libsanitizer-public.so", &api, err);
    if (s != STATUS_OK)
        return s;
    if (timer_start(&api, err) != STATUS_OK ||
        recorder_start(&api, reach_profile_patch_start, writer_add, err) != STATUS_OK)
        return err->status;
    int result = api.subscribe(&subscriber, on_event, NULL);
    if (result == 0)
        result =
            duty_start(&api, subscriber, number_from("REACH_PROFILE_SECONDS", 10) * NSEC_PER_SEC);
    if (result == 0)
        return STATUS_OK;
    return describe_refusal(result, err);
}

static void on_fork(void)
{
    atomic_store(&is_child, true);
}

static void end(void)
{
    if (atomic_load(&is_child))
        return;
    recorder_end();
    timer_end();
    writer_end();
}

static void start(void)
{
    const char *const folder = getenv("REACH_PROFILE_FOLDER");
    struct err err = {0};

    if (!folder)
        return;
    kernels_start(&(struct kernel_limits){
        .launches = (uint32_t)number_from("REACH_PROFILE_LAUNCHES", 3),
        .skip = number_from("REACH_PROFILE_SKIP", 0),
        .tool_ns = number_from("REACH_PROFILE_SECONDS", 10) * NSEC_PER_SEC});
    if (pthread_atfork(NULL, NULL, on_fork) != 0 || writer_start(folder, &err) != STATUS_OK)
        return;
    if (subscribe(&err) != STATUS_OK)
        writer_problem(err.text);
    (void)atexit(end);
}

/* The driver calls this function when the program calls cuInit. */
int InitializeInjection(void);
__attribute__((visibility("default"))) int InitializeInjection(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, start);
    return 1;
}
