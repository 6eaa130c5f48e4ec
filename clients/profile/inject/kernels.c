/* kernels.c: counts launches and chooses the launches to time and to record. */
#include "clients/profile/inject/kernels.h"

#include "base/clock.h"
#include "base/hash.h"
#include "clients/profile/inject/ranges.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    TIMED_ENOUGH = 3,          /* times of a shape before it is recorded */
    LONG_NS = 200000,          /* after one time of this length, the next launch is recorded */
    LONGEST_LAUNCH_NS = 10000, /* upper limit of the time of a launch itself */
    SLOWER = 30,               /* a recorded launch is assumed to take this many times its time */
    TIME_UNIT_NS = 16,
    GRAPHS = 256,    /* graphs that are timed */
    FUNCTIONS = 4096 /* slots of the table of functions */
};
/* Kernels with a smaller share of the time of all kernels are not recorded. */
static const double LEAST_SHARE = 0.005;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kernel *table[KERNELS_ROOM]; /* open addressing by name and device */
static struct kernel *in_order[KERNELS_ROOM / 2];
static uint32_t kernel_count;
static double all_ns;                            /* estimated time of all launches */
static uint64_t shortest_ns = LONGEST_LAUNCH_NS; /* of all timed launches */
static uint64_t spent_ns;                        /* time of recordings */
static uint64_t spent_first_ns;                  /* the part for first launches */
static struct kernel_limits limits;
static uint64_t changes;
static struct { /* one slot per hash: a launch rarely has to compare names */
    const void *function;
    const char *name;
    struct kernel *kernel;
} functions[FUNCTIONS];
static uint64_t first_ns, pause_ns; /* begin of the first and of the present pause; 0 if none */
static uint64_t paused_ns;          /* time of all pauses that have ended */

/* Finds or adds a kernel, with the operator of this launch. Returns NULL if the table is half full,
 * or if out of memory. */
static struct kernel *find(const char *name, int device)
{
    uint32_t at =
        hash_u64(hash_bytes(HASH_START, name, strlen(name)), (uint64_t)device) % KERNELS_ROOM;
    for (; table[at]; at = (at + 1) % KERNELS_ROOM) {
        if (table[at]->device == device && strcmp(table[at]->name, name) == 0)
            return table[at];
    }
    if (kernel_count == KERNELS_ROOM / 2)
        return NULL;
    struct kernel *const k = calloc(1, sizeof *k);
    if (!k)
        return NULL;
    k->name = strdup(name);
    k->operator= strdup(ranges_innermost());
    k->device = device;
    if (!k->name || !k->operator) {
        free(k->operator);
        free(k->name);
        free(k);
        return NULL;
    }
    in_order[kernel_count++] = k;
    return table[at] = k;
}

static uint64_t volume(const uint32_t v[3])
{
    return (uint64_t)v[0] * v[1] * v[2];
}

static uint32_t find_shape(struct kernel *k, const uint32_t grid[3], const uint32_t block[3])
{
    for (uint32_t i = 0; i < k->shape_count; i++) {
        if (memcmp(k->shapes[i].grid, grid, sizeof k->shapes[i].grid) == 0 &&
            memcmp(k->shapes[i].block, block, sizeof k->shapes[i].block) == 0)
            return i;
    }
    if (k->shape_count == KERNEL_SHAPES)
        return KERNEL_SHAPES;
    struct kernel_shape *const s = &k->shapes[k->shape_count];
    memcpy(s->grid, grid, sizeof s->grid);
    memcpy(s->block, block, sizeof s->block);
    return k->shape_count++;
}

static int compare_times(const void *x, const void *y)
{
    const uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    return a < b ? -1 : a > b;
}

static void set_median(struct kernel_shape *s)
{
    const size_t count = s->timed < KERNEL_TIMES ? (size_t)s->timed : KERNEL_TIMES;
    uint32_t sorted[KERNEL_TIMES];
    memcpy(sorted, s->times, sizeof sorted);
    qsort(sorted, count, sizeof sorted[0], compare_times);
    const uint64_t ns = (uint64_t)sorted[(count - 1) / 2] * TIME_UNIT_NS;
    s->ns = ns > shortest_ns ? ns - shortest_ns : TIME_UNIT_NS;
}

/* Returns the time since the first pause, divided by the part of it in which launches were counted.
 */
static double pause_factor(void)
{
    pthread_mutex_lock(&lock);
    const double all = first_ns ? (double)(clock_monotonic() - first_ns) : 0;
    const double paused =
        (double)paused_ns + (pause_ns ? (double)(clock_monotonic() - pause_ns) : 0);
    pthread_mutex_unlock(&lock);
    return all - paused > 0 ? all / (all - paused) : 1;
}

uint64_t kernel_all_launches(const struct kernel *k)
{
    return k->exact + (uint64_t)((double)(k->launches - k->exact) * pause_factor() + 0.5);
}

static double counted_ns(const struct kernel *k)
{
    double ns = 0, one_of_each_ns = 0, blocks = 0, timed_blocks = 0;
    for (uint32_t i = 0; i < k->shape_count; i++) {
        const struct kernel_shape *const s = &k->shapes[i];
        const double grid = (double)volume(s->grid);
        if (s->ns == 0)
            continue;
        ns += (double)s->ns * (double)s->launches;
        blocks += grid * (double)s->launches;
        one_of_each_ns += (double)s->ns;
        timed_blocks += grid;
    }
    return timed_blocks > 0 ? ns + one_of_each_ns / timed_blocks * (k->blocks - blocks) : 0;
}

double kernel_all_ns(const struct kernel *k)
{
    return k->launches ? counted_ns(k) * (double)kernel_all_launches(k) / (double)k->launches : 0;
}

/* Launches whose number is a power of two are timed, so the time of a kernel follows its data. */
static bool is_power_of_two(uint64_t n)
{
    return (n & (n - 1)) == 0;
}

static enum kernel_step choose(const struct kernel *k, const struct kernel_shape *s, bool in_graph,
                               bool is_ready)
{
    const enum kernel_step time = in_graph ? KERNEL_LAUNCH : KERNEL_TIME;
    /* A first launch is recorded if that is possible at once, or if it follows skipped launches. */
    if ((is_ready || limits.skip > 0) && k->recorded == 0 && s && s->timed == 0 && !k->refused &&
        2 * spent_first_ns < limits.tool_ns)
        return KERNEL_RECORD;
    if (!s)
        return is_power_of_two(k->launches) ? time : KERNEL_LAUNCH;
    const uint64_t ns = s->ns;
    const bool is_known =
        s->timed >= TIMED_ENOUGH || ns >= LONG_NS || (in_graph && s->launches >= 2);
    if (!is_known)
        return time;
    if (!s->recorded && k->recorded < limits.launches && !k->refused &&
        (in_graph || counted_ns(k) >= LEAST_SHARE * all_ns) &&
        spent_ns + ns * SLOWER <= limits.tool_ns)
        return KERNEL_RECORD;
    return is_power_of_two(s->launches) ? time : KERNEL_LAUNCH;
}

void kernels_start(const struct kernel_limits *use)
{
    limits = *use;
}

bool kernels_want_first(void)
{
    pthread_mutex_lock(&lock);
    const bool want = limits.skip == 0 && 2 * spent_first_ns < limits.tool_ns;
    pthread_mutex_unlock(&lock);
    return want;
}

void kernels_spent_first(uint64_t ns)
{
    pthread_mutex_lock(&lock);
    spent_ns += ns;
    spent_first_ns += ns;
    pthread_mutex_unlock(&lock);
}

void kernels_record_no_more(struct kernel *k)
{
    pthread_mutex_lock(&lock);
    k->recorded = limits.launches;
    pthread_mutex_unlock(&lock);
}

void kernels_waited(struct kernel *k, uint64_t ns, bool in_vain)
{
    pthread_mutex_lock(&lock);
    spent_ns += ns;
    k->recorded += in_vain;
    pthread_mutex_unlock(&lock);
}

/* Finds the kernel of a function, by its name if the function is new. */
static struct kernel *find_function(const void *function, const char *name, int device)
{
    const uint32_t at =
        (uint32_t)((uintptr_t)function / 16 * 0x9e3779b1u) / (UINT32_MAX / FUNCTIONS + 1);
    if (functions[at].function != function || functions[at].name != name ||
        functions[at].kernel->device != device) {
        struct kernel *const k = find(name, device);
        if (!k)
            return NULL;
        functions[at].function = function;
        functions[at].name = name;
        functions[at].kernel = k;
    }
    return functions[at].kernel;
}

void kernels_forget_functions(void)
{
    pthread_mutex_lock(&lock);
    memset(functions, 0, sizeof functions);
    pthread_mutex_unlock(&lock);
}

void kernels_pause(void)
{
    pthread_mutex_lock(&lock);
    pause_ns = clock_monotonic();
    for (uint32_t i = 0; !first_ns && i < kernel_count; i++)
        in_order[i]->exact = in_order[i]->launches;
    if (!first_ns)
        first_ns = pause_ns;
    pthread_mutex_unlock(&lock);
}

void kernels_resume(void)
{
    pthread_mutex_lock(&lock);
    paused_ns += clock_monotonic() - pause_ns;
    pause_ns = 0;
    pthread_mutex_unlock(&lock);
}

struct kernel *kernels_launch(const void *function, const char *name, int device,
                              const uint32_t grid[3], const uint32_t block[3], bool in_graph,
                              bool is_ready, uint32_t *out_shape, enum kernel_step *out_step)
{
    pthread_mutex_lock(&lock);
    struct kernel *const k = find_function(function, name, device);
    *out_step = KERNEL_LAUNCH;
    if (k) {
        *out_shape = k->launches < limits.skip ? KERNEL_SHAPES : find_shape(k, grid, block);
        struct kernel_shape *const s = *out_shape < KERNEL_SHAPES ? &k->shapes[*out_shape] : NULL;
        k->launches++;
        k->blocks += (double)volume(grid);
        if (s) {
            s->launches++;
            all_ns += (double)s->ns;
        }
        *out_step = choose(k, s, in_graph, is_ready);
        changes++;
    }
    pthread_mutex_unlock(&lock);
    return k;
}

static void add_time(struct kernel *k, uint32_t shape, uint64_t ns)
{
    struct kernel_shape *const s = &k->shapes[shape];
    const uint64_t units = ns / TIME_UNIT_NS;
    s->times[s->timed++ % KERNEL_TIMES] = units > UINT32_MAX ? UINT32_MAX : (uint32_t)units;
    k->timed++;
    changes++;
    set_median(s);
    if (s->timed == 1) /* its launches were not in the sum */
        all_ns += (double)s->ns * (double)s->launches;
}

void kernels_timed(struct kernel *k, uint32_t shape, uint64_t ns)
{
    pthread_mutex_lock(&lock);
    if (ns < shortest_ns)
        shortest_ns = ns;
    if (shape < KERNEL_SHAPES)
        add_time(k, shape, ns);
    pthread_mutex_unlock(&lock);
}

bool kernels_graph_launch(const void *exec)
{
    static struct {
        const void *exec;
        uint64_t launches;
    } graphs[GRAPHS];
    uint64_t launches = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < GRAPHS && launches == 0; i++) {
        if (!graphs[i].exec)
            graphs[i].exec = exec;
        if (graphs[i].exec == exec)
            launches = ++graphs[i].launches;
    }
    pthread_mutex_unlock(&lock);
    return launches > 0 && (launches <= TIMED_ENOUGH || is_power_of_two(launches));
}

/* Returns whether the kernel of a node has a time of its own. */
static bool is_timed(const struct kernel_node *n)
{
    return n->shape < KERNEL_SHAPES && n->kernel->shapes[n->shape].timed > 0;
}

void kernels_graph_timed(const struct kernel_node *nodes, uint32_t count, uint64_t ns)
{
    double rest_ns = (double)ns;
    uint32_t unknown = 0;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < count; i++) {
        if (is_timed(&nodes[i]))
            rest_ns -= (double)nodes[i].kernel->shapes[nodes[i].shape].ns;
        else
            unknown++;
    }
    for (uint32_t i = 0; i < count && unknown > 0 && rest_ns > 0; i++) {
        if (nodes[i].shape < KERNEL_SHAPES && !is_timed(&nodes[i]))
            add_time(nodes[i].kernel, nodes[i].shape, (uint64_t)(rest_ns / unknown));
    }
    pthread_mutex_unlock(&lock);
}

void kernels_recorded(struct kernel *k, uint32_t shape, uint64_t used, uint64_t room,
                      uint32_t every, uint64_t ns)
{
    pthread_mutex_lock(&lock);
    spent_ns += ns;
    if (k->recorded == 0)
        spent_first_ns += ns;
    k->recorded++;
    /* If the sample was too large or much too small, the next one fills most of the room. */
    const double fitting = 1.3 * every * (double)used / (double)room;
    if (used > room || (every > 1 && 2 * fitting < every && used > 0))
        k->every = fitting < 1 ? 1 : fitting < UINT32_MAX ? (uint32_t)fitting + 1 : UINT32_MAX;
    else if (shape < KERNEL_SHAPES && used > 0)
        k->shapes[shape].recorded = true;
    pthread_mutex_unlock(&lock);
}

void kernels_refuse(struct kernel *k, const char *why)
{
    pthread_mutex_lock(&lock);
    k->refused = why;
    changes++;
    pthread_mutex_unlock(&lock);
}

bool kernels_get(uint32_t i, struct kernel *out)
{
    pthread_mutex_lock(&lock);
    const bool found = i < kernel_count;
    if (found)
        *out = *in_order[i];
    pthread_mutex_unlock(&lock);
    return found;
}

uint64_t kernels_changes(void)
{
    pthread_mutex_lock(&lock);
    const uint64_t n = changes;
    pthread_mutex_unlock(&lock);
    return n;
}
