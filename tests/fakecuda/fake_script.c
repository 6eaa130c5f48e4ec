/* fake_script.c: modules, launches and graphs of kernels whose accesses a test describes
 * (fakecuda_script.h), the thread that executes them, and the tool that sees them. Like a real
 * driver, cuInit loads the library in CUDA_INJECTION64_PATH and calls its function
 * InitializeInjection. */
#include "tests/fakecuda/fake_driver.h"
#include "tests/fakecuda/fake_state.h"
#include "tests/fakecuda/fakecuda_script.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SCRIPT_MODULES = 16, SCRIPT_FUNCTIONS = 64, NAME_BYTES = 1 << 17 };

struct script_module {
    bool is_loaded;
};

struct script_function {
    struct script_module *module;
    char name[NAME_BYTES];
};

struct node {
    struct node *next;
    struct fakecuda_launch launch;
    struct fakecuda_script script;
};

/* A graph, or an executable graph, which is a copy of a graph. */
struct graph {
    struct node *nodes, **end;
    bool is_uploaded;
};

static struct script_module modules[SCRIPT_MODULES];
static struct script_function functions[SCRIPT_FUNCTIONS];
static const struct fakecuda_tool *tool;
static uint64_t launches;

/* ---- the GPU ---- */

struct task {
    struct task *next;
    void (*run)(void *what);
    void *what;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the tasks */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct task *tasks, **tasks_end = &tasks;
static uint64_t enqueued, executed; /* tasks so far */
static bool is_started;

static void *execute(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!tasks)
            (void)pthread_cond_wait(&changed, &lock);
        struct task *const t = tasks;
        pthread_mutex_unlock(&lock);
        t->run(t->what);
        pthread_mutex_lock(&lock);
        tasks = t->next;
        executed++;
        if (!tasks)
            tasks_end = &tasks;
        free(t);
        (void)pthread_cond_broadcast(&changed);
    }
    return NULL;
}

void fakecuda_enqueue(void (*run)(void *what), void *what)
{
    struct task *const t = malloc(sizeof *t);
    pthread_t thread;

    if (!t)
        abort();
    *t = (struct task){.run = run, .what = what};
    pthread_mutex_lock(&lock);
    if (!is_started && pthread_create(&thread, NULL, execute, NULL) != 0)
        abort();
    is_started = true;
    *tasks_end = t;
    tasks_end = &t->next;
    enqueued++;
    (void)pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

void fakecuda_drain(void)
{
    pthread_mutex_lock(&lock);
    for (const uint64_t until = enqueued; executed < until;)
        (void)pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

/* ---- the tool ---- */

bool fakecuda_watch(const struct fakecuda_tool *watcher)
{
    if (watcher && tool)
        return false;
    tool = watcher;
    return true;
}

void fake_inject(void)
{
    const char *const path = getenv("CUDA_INJECTION64_PATH");
    static bool done;
    void *const library = path && path[0] && !done ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    int (*initialize)(void) = NULL;

    done = true;
    if (library)
        *(void **)&initialize = dlsym(library, "InitializeInjection");
    if (initialize)
        (void)initialize();
}

static void *current_context(void)
{
    return fake.current >= 0 ? &fake.devices[fake.current] : NULL;
}

struct fake_call fake_call_begin(const char *name, const void *parameters)
{
    if (tool)
        tool->call(true, name, parameters);
    return (struct fake_call){name, parameters};
}

void fake_call_end(const struct fake_call *call)
{
    if (tool)
        tool->call(false, call->name, call->parameters);
}

void fake_report_context(bool begins, int device)
{
    if (tool)
        tool->context(begins, &fake.devices[device], device);
}

void fake_report_memory(int event, uint64_t address, uint64_t bytes)
{
    if (tool)
        tool->memory((enum fakecuda_memory_event)event, current_context(), fake.current, address,
                     bytes);
}

/* ---- modules ---- */

cu_result fake_script_load(cu_module *out, const void *image)
{
    if (strncmp(image, FAKECUDA_SCRIPT_IMAGE, sizeof FAKECUDA_SCRIPT_IMAGE - 1) != 0)
        return CU_ERROR_NOT_FOUND;
    for (size_t i = 0; i < SCRIPT_MODULES; i++) {
        if (modules[i].is_loaded)
            continue;
        modules[i].is_loaded = true;
        *out = (cu_module)(void *)&modules[i];
        if (tool)
            tool->module(true, current_context(), *out);
        return CU_SUCCESS;
    }
    return CU_ERROR_OUT_OF_MEMORY;
}

static struct script_module *find_module(cu_module module)
{
    for (size_t i = 0; i < SCRIPT_MODULES; i++)
        if ((void *)module == (void *)&modules[i] && modules[i].is_loaded)
            return &modules[i];
    return NULL;
}

bool fake_script_unload(cu_module module)
{
    struct script_module *const m = find_module(module);

    if (!m)
        return false;
    fakecuda_drain();
    if (tool)
        tool->module(false, current_context(), m);
    for (size_t i = 0; i < SCRIPT_FUNCTIONS; i++)
        if (functions[i].module == m)
            functions[i].module = NULL;
    m->is_loaded = false;
    return true;
}

bool fake_script_function(cu_function *out, cu_module module, const char *name)
{
    struct script_module *const m = find_module(module);

    for (size_t i = 0; m && i < SCRIPT_FUNCTIONS; i++) {
        struct script_function *const f = &functions[i];
        if (f->module && (f->module != m || strcmp(f->name, name) != 0))
            continue;
        if (!f->module) {
            f->module = m;
            (void)strncpy(f->name, name, sizeof f->name - 1);
        }
        *out = (cu_function)(void *)f;
        return true;
    }
    return false;
}

void fake_script_reset(void)
{
    fakecuda_drain();
    memset(modules, 0, sizeof modules);
    memset(functions, 0, sizeof functions);
}

static struct script_function *find_function(cu_function function)
{
    for (size_t i = 0; i < SCRIPT_FUNCTIONS; i++)
        if ((void *)function == (void *)&functions[i] && functions[i].module)
            return &functions[i];
    return NULL;
}

/* ---- launches ---- */

static bool is_valid(const struct fakecuda_script *s)
{
    for (uint64_t i = 0; i < s->step_count; i++) {
        const struct fakecuda_step *const step = &s->steps[i];
        if (step->element_bytes == 0 || step->bytes / 32 < step->element_bytes ||
            !fake_is_mapped(step->address, step->bytes))
            return false;
    }
    return s->step_count <= FAKECUDA_STEPS;
}

/* A launch on the GPU. */
struct execution {
    struct fakecuda_launch launch;
    struct fakecuda_script script;
    void *data; /* of the tool */
};

static void execute_launch(void *what)
{
    struct execution *const e = what;
    const struct timespec time = {.tv_sec = (time_t)(e->script.ns / 1000000000),
                                  .tv_nsec = (long)(e->script.ns % 1000000000)};

    (void)nanosleep(&time, NULL);
    if (tool)
        tool->run(&e->launch, e->data);
    free(e);
}

static cu_result run(struct fakecuda_launch *l)
{
    cu_result r = CU_SUCCESS;
    struct execution *const e = calloc(1, sizeof *e);

    if (!e)
        abort();
    l->id = ++launches;
    if (tool)
        r = tool->launch_begin(l, &e->data);
    if (r == CU_SUCCESS && !l->is_upload) {
        fake.report.launches++;
        e->launch = *l;
        e->script = *l->script;
        e->launch.script = &e->script;
        fakecuda_enqueue(execute_launch, e);
    } else {
        free(e);
    }
    if (tool)
        tool->launch_end(l);
    if (r != CU_SUCCESS)
        fake.sticky = r;
    return r;
}

static cu_result describe(cu_function function, const unsigned grid[3], const unsigned block[3],
                          void **parameters, struct fakecuda_launch *out)
{
    const struct script_function *const f = find_function(function);

    if (!f || !parameters || grid[0] * grid[1] * grid[2] == 0 || block[0] == 0 || block[0] > 1024 ||
        block[1] != 1 || block[2] != 1)
        return CU_ERROR_INVALID_VALUE;
    *out = (struct fakecuda_launch){.context = current_context(),
                                    .module = f->module,
                                    .function = (void *)function,
                                    .name = f->name,
                                    .device = fake.current,
                                    .script = parameters[0]};
    memcpy(out->grid, grid, sizeof out->grid);
    memcpy(out->block, block, sizeof out->block);
    if (!is_valid(out->script)) {
        fake.sticky = CU_ERROR_ILLEGAL_ADDRESS;
        return fake.sticky;
    }
    return CU_SUCCESS;
}

bool fake_script_is(cu_function function)
{
    return find_function(function) != NULL;
}

cu_result fake_script_launch(cu_function function, const unsigned grid[3], const unsigned block[3],
                             cu_stream stream, void **parameters)
{
    struct fakecuda_launch l;
    const cu_result r = describe(function, grid, block, parameters, &l);

    l.stream = (void *)stream;
    return r == CU_SUCCESS ? run(&l) : r;
}

/* ---- graphs ---- */

cu_result cuGraphCreate(void **out, unsigned flags)
{
    struct graph *const g = calloc(1, sizeof *g);

    if (!g || flags != 0)
        abort();
    g->end = &g->nodes;
    *out = g;
    return fake_enter_context("cuGraphCreate");
}

static void add_node(struct graph *g, const struct node *node)
{
    struct node *const copy = malloc(sizeof *copy);

    if (!copy)
        abort();
    *copy = *node;
    copy->next = NULL;
    copy->launch.script = &copy->script;
    copy->launch.node = copy;
    *g->end = copy;
    g->end = &copy->next;
}

/* CUDA_KERNEL_NODE_PARAMS */
struct kernel_node {
    cu_function function;
    unsigned grid[3];
    unsigned block[3];
    unsigned shared_bytes;
    void **parameters;
    void **extra;
};

/* The nodes run in the order in which they were added. */
cu_result cuGraphAddKernelNode(void **out, void *graph, void *const *after, size_t after_count,
                               const struct kernel_node *kernel)
{
    struct node node = {0};
    cu_result r = fake_enter_context("cuGraphAddKernelNode");

    (void)after;
    (void)after_count;
    if (r == CU_SUCCESS)
        r = describe(kernel->function, kernel->grid, kernel->block, kernel->parameters,
                     &node.launch);
    if (r != CU_SUCCESS)
        return r;
    node.script = *node.launch.script;
    add_node(graph, &node);
    *out = NULL;
    return CU_SUCCESS;
}

cu_result cuGraphInstantiateWithFlags(void **out, void *graph, unsigned long long flags)
{
    FAKE_CALL("cuGraphInstantiateWithFlags");
    const struct graph *const from = graph;
    const cu_result r = cuGraphCreate(out, 0);

    for (const struct node *n = from->nodes; n && flags == 0; n = n->next)
        add_node(*out, n);
    for (struct node *n = ((struct graph *)*out)->nodes; n; n = n->next)
        n->launch.graph = *out;
    return r;
}

static cu_result run_graph(struct graph *g, cu_stream stream, bool is_upload)
{
    cu_result r = CU_SUCCESS;

    if (tool)
        tool->graph(true, current_context(), (void *)stream, g, is_upload);
    for (struct node *n = g->nodes; n && r == CU_SUCCESS; n = n->next) {
        n->launch.stream = (void *)stream;
        n->launch.is_upload = is_upload;
        r = run(&n->launch);
    }
    if (tool)
        tool->graph(false, current_context(), (void *)stream, g, is_upload);
    return r;
}

cu_result cuGraphUpload(void *graph, cu_stream stream)
{
    FAKE_CALL("cuGraphUpload");
    const cu_result r = fake_enter_context("cuGraphUpload");
    return r == CU_SUCCESS ? run_graph(graph, stream, true) : r;
}

/* The first launch of a graph uploads it. */
cu_result cuGraphLaunch(void *graph, cu_stream stream)
{
    FAKE_CALL("cuGraphLaunch");
    struct graph *const g = graph;
    cu_result r = fake_enter_context("cuGraphLaunch");

    if (r == CU_SUCCESS && !g->is_uploaded)
        r = run_graph(g, stream, true);
    g->is_uploaded = true;
    return r == CU_SUCCESS ? run_graph(g, stream, false) : r;
}

cu_result cuGraphDestroy(void *graph)
{
    struct graph *const g = graph;
    const cu_result r = fake_enter("cuGraphDestroy");

    for (struct node *n = g->nodes, *next; n; n = next) {
        next = n->next;
        free(n);
    }
    free(g);
    return r;
}

cu_result cuGraphExecDestroy(void *graph)
{
    return cuGraphDestroy(graph);
}
