/* cuda_gather.c: see cuda_gather.h. A batch is gathered, then copied, then the next one is
 * gathered, like index_select of PyTorch into pinned memory and a copy to the device. All threads
 * copy rows with memcpy. */
#include "gpu/cuda/cuda_gather.h"

#include "base/rng.h"
#include "base/units.h"
#include "gpu/cuda/host_nodes.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

enum { MOST_THREADS = 64 };
#define COPY_BYTES (16 * MIB) /* one copy, which fits into the scratch memory */

_Static_assert(COPY_BYTES <= CUDA_SCRATCH_BYTES - CUDA_AT_VALUES, "the copies");

/* A barrier at which threads stay awake, as the threads of OpenMP do between loops. */
struct barrier {
    atomic_uint arrived, phase;
};

/* The work of all threads. Between `ready` and `done`, each thread gathers its part of a batch. */
struct gathering {
    const char *table;
    uint64_t rows; /* in the region */
    uint32_t row_bytes;
    char *batch; /* pinned, CUDA_BATCH_BYTES */
    uint32_t threads;
    bool ends;
    pthread_mutex_t starts; /* held until `threads` is known */
    struct barrier ready, done;
};

struct gatherer {
    struct gathering *shared;
    uint32_t number;
    struct rng rng;
    pthread_t thread;
};

/* Waits until all threads have called this. */
static void wait_for_all(struct gathering *s, struct barrier *b)
{
    const unsigned phase = atomic_load(&b->phase);

    if (atomic_fetch_add(&b->arrived, 1) + 1 == s->threads) {
        atomic_store(&b->arrived, 0);
        atomic_fetch_add(&b->phase, 1);
        return;
    }
    while (atomic_load(&b->phase) == phase)
        (void)sched_yield();
}

static void gather_part(struct gatherer *g)
{
    const struct gathering *const s = g->shared;
    const uint64_t count = CUDA_BATCH_BYTES / s->row_bytes;
    const uint64_t end = count * (g->number + 1) / s->threads;
    struct rng rng = g->rng; /* a copy, because other threads write to the same cache line */

    for (uint64_t i = count * g->number / s->threads; i < end; i++)
        memcpy(s->batch + i * s->row_bytes, s->table + rng_below(&rng, s->rows) * s->row_bytes,
               s->row_bytes);
    g->rng = rng;
}

static void *run_gatherer(void *arg)
{
    struct gatherer *const g = arg;
    struct gathering *const s = g->shared;

    (void)pthread_mutex_lock(&s->starts);
    (void)pthread_mutex_unlock(&s->starts);
    for (;;) {
        wait_for_all(s, &s->ready);
        if (s->ends)
            return NULL;
        gather_part(g);
        wait_for_all(s, &s->done);
    }
}

/* Gathers a batch by all threads, and copies it. */
static enum status run_batch(const struct cuda_probe *p, struct gatherer *first, struct err *err)
{
    struct gathering *const s = first->shared;
    enum status status = STATUS_OK;

    wait_for_all(s, &s->ready);
    gather_part(first);
    wait_for_all(s, &s->done);
    for (uint64_t at = 0; at < CUDA_BATCH_BYTES && status == STATUS_OK; at += COPY_BYTES)
        status = CUDA_CALL(p->api, err, cuMemcpyHtoD, p->scratch + CUDA_AT_VALUES, s->batch + at,
                           COPY_BYTES);
    return status;
}

/* Runs one batch that is not counted, and then batches for the duration of the probe. */
static enum status run_batches(const struct cuda_probe *p, struct gatherer *first,
                               uint32_t duration_us, uint32_t *row, struct err *err)
{
    const nsec_t least = (nsec_t)duration_us * 1000;
    enum status s = run_batch(p, first, err);
    const nsec_t start = clock_monotonic();
    nsec_t elapsed = 0;
    uint64_t rows = 0;

    while (s == STATUS_OK && elapsed < least) {
        s = run_batch(p, first, err);
        elapsed = clock_monotonic() - start;
        rows += CUDA_BATCH_BYTES / first->shared->row_bytes;
    }
    row[0] = (uint32_t)elapsed;
    for (uint32_t i = 0; i < p->sm_count; i++)
        row[1 + i] = (uint32_t)(rows * (i + 1) / p->sm_count - rows * i / p->sm_count);
    return s;
}

static enum status run_points(const struct cuda_probe *p, const struct probe_spec *spec,
                              struct gatherer *first, uint32_t *values, struct err *err)
{
    enum status s = STATUS_OK;

    for (uint32_t k = 0; s == STATUS_OK && k < spec->point_count * spec->repeats; k++) {
        first->shared->rows = spec->points[k / spec->repeats] / first->shared->row_bytes;
        s = run_batches(p, first, spec->duration_us, values + (size_t)k * (1 + p->sm_count), err);
    }
    return s;
}

/* Starts a thread for each CPU that this thread may use, runs the batches and ends the threads.
 * This thread gathers too. */
static enum status run_threads(const struct cuda_probe *p, const struct probe_spec *spec,
                               struct gathering *shared, uint32_t cpus, uint32_t *values,
                               struct err *err)
{
    struct gatherer gatherers[MOST_THREADS];
    enum status s;

    (void)pthread_mutex_init(&shared->starts, NULL);
    (void)pthread_mutex_lock(&shared->starts);
    do {
        struct gatherer *const g = &gatherers[shared->threads];
        *g = (struct gatherer){.shared = shared,
                               .number = shared->threads,
                               .rng = {((uint64_t)spec->seed << 32) + shared->threads}};
        if (shared->threads > 0 && pthread_create(&g->thread, NULL, run_gatherer, g) != 0)
            break;
        shared->threads += 1;
    } while (shared->threads < cpus && shared->threads < MOST_THREADS);
    (void)pthread_mutex_unlock(&shared->starts);
    s = run_points(p, spec, &gatherers[0], values, err);
    shared->ends = true;
    wait_for_all(shared, &shared->ready);
    for (uint32_t i = 1; i < shared->threads; i++)
        (void)pthread_join(gatherers[i].thread, NULL);
    (void)pthread_mutex_destroy(&shared->starts);
    return s;
}

enum status cuda_gather_run(const struct cuda_probe *p, const struct cuda_memory *memory,
                            const struct probe_spec *spec, uint32_t *values, struct err *err)
{
    struct gathering shared = {.table = (const char *)memory->range.host + spec->base_bytes,
                               .row_bytes = probe_access_bytes(spec),
                               .batch = memory->batch};
    const int node = cuda_memory_node(memory);
    cpu_set_t cpus, before;
    const bool is_bound = node >= 0 && host_nodes_bind(node, &before);
    const bool has_cpus = sched_getaffinity(0, sizeof cpus, &cpus) == 0;
    const enum status s =
        run_threads(p, spec, &shared, has_cpus ? (uint32_t)CPU_COUNT(&cpus) : 1, values, err);

    if (is_bound)
        host_nodes_unbind(&before);
    return s;
}
