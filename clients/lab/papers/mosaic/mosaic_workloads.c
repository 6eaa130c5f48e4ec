/* mosaic_workloads.c: see mosaic_workloads.h. A simulated stretch is long enough to fill the TLBs
 * and far shorter than a run. A whole run is computed from the speed of the kernel in the stretch
 * and from the transfers over the bus. */
#include "clients/lab/papers/mosaic/mosaic_workloads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WARM_CYCLES = 10000, END_CYCLES = 60000, SEED = 1, MAX_THREADS = 64 };
static const double COPY_CYCLES = 54.5e-6 * 1020e6; /* time of a transfer without its bytes */
static const double CYCLES_PER_BYTE = 1020e6 / 7.96e9;

struct mosaic_workload mosaic_workload(uint32_t index)
{
    struct mosaic_workload w = {0};
    struct rng rng = {SEED + index};
    if (index < MOSAIC_HOMOGENEOUS) {
        w.app_count = index / GEN_MOSAIC_APPS + 1;
        memset(w.apps, (int)(index % GEN_MOSAIC_APPS), w.app_count);
        return w;
    }
    w.app_count = (index - MOSAIC_HOMOGENEOUS) / MOSAIC_MIXES + 2;
    for (uint32_t i = 0; i < w.app_count;) {
        w.apps[i] = (uint8_t)rng_below(&rng, GEN_MOSAIC_APPS);
        i += memchr(w.apps, w.apps[i], i) ? 0 : 1;
    }
    return w;
}

struct mosaic_run mosaic_workload_run(const struct mosaic_workload *w, enum mosaic_design design)
{
    struct mosaic_run run = {.mmu = mosaic_mmu_paper(design, MOSAIC_CORES),
                             .app_count = w->app_count,
                             .warm = WARM_CYCLES,
                             .end = END_CYCLES,
                             .compact = true,
                             .seed = SEED};
    for (uint32_t i = 0; i < w->app_count; i++) {
        run.apps[i] = w->apps[i];
        run.cores[i] =
            (uint8_t)(MOSAIC_CORES / w->app_count + (i < MOSAIC_CORES % w->app_count ? 1 : 0));
    }
    return run;
}

/* ---- many runs ---- */

struct pool {
    struct mosaic_case *cases;
    uint32_t count;
    atomic_uint next;
    atomic_bool failed;
};

static void *run_worker(void *arg)
{
    struct pool *pool = arg;
    struct err err = {0};
    for (uint32_t i = atomic_fetch_add(&pool->next, 1); i < pool->count;
         i = atomic_fetch_add(&pool->next, 1)) {
        if (mosaic_time_run(&pool->cases[i].run, &pool->cases[i].result, &err) != STATUS_OK)
            atomic_store(&pool->failed, true);
    }
    return NULL;
}

enum status mosaic_run_cases(struct mosaic_case *cases, uint32_t count, struct err *err)
{
    struct pool pool = {.cases = cases, .count = count};
    pthread_t threads[MAX_THREADS];
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t started = 0;
    while (started + 1 < processors && started < MAX_THREADS &&
           pthread_create(&threads[started], NULL, run_worker, &pool) == 0)
        started++;
    (void)run_worker(&pool);
    while (started > 0)
        (void)pthread_join(threads[--started], NULL);
    if (atomic_load(&pool.failed))
        return err_set(err, STATUS_NO_MEMORY, "cannot allocate the simulation: out of memory");
    return STATUS_OK;
}

/* ---- whole runs ---- */

uint32_t mosaic_pass_steps(const struct gen_layout *l)
{
    uint32_t lines_of_loop;
    const uint32_t steps = gen_mosaic_loop(l->app, &lines_of_loop);
    const uint64_t lines = (uint64_t)gen_mosaic_pages(l) * GEN_PAGE_LINES;
    const uint64_t loops = lines / ((uint64_t)l->warps * lines_of_loop) + 1;
    return (uint32_t)(loops * steps);
}

static double transferred_bytes(uint32_t app)
{
    struct gen_layout l;
    gen_mosaic_place(gen_mosaic_app(app), 1, 1, &l);
    return (double)gen_mosaic_pages(&l) * FRAMES_PAGE_BYTES;
}

static double copy_count(uint32_t app)
{
    struct gen_layout l;
    gen_mosaic_place(gen_mosaic_app(app), 1, 1, &l);
    return l.array_count;
}

/* The bus serves all applications in turn, one page each. So until an application has its last
 * page, each other application transfers the same number of bytes, or all of its bytes. */
static double transfer_cycles(const struct mosaic_run *run, uint32_t app, enum mosaic_launch launch)
{
    const double own = transferred_bytes(run->apps[app]);
    double cycles =
        launch == MOSAIC_COPIED ? copy_count(run->apps[app]) * COPY_CYCLES : COPY_CYCLES;
    if (launch == MOSAIC_NO_TRANSFER)
        return 0;
    for (uint32_t a = 0; a < run->app_count; a++) {
        const double other = transferred_bytes(run->apps[a]);
        cycles += (other < own ? other : own) * CYCLES_PER_BYTE;
    }
    return cycles;
}

static double whole_instructions(const struct mosaic_run *run, uint32_t app)
{
    struct gen_layout l;
    const struct gen_app *g = gen_mosaic_app(run->apps[app]);
    gen_mosaic_place(g, run->cores[app] * MOSAIC_WARPS, 1, &l);
    return (double)mosaic_pass_steps(&l) * l.warps * (g->gap + 1.0) * g->passes;
}

double mosaic_whole_cycles(const struct mosaic_case *c, uint32_t app, enum mosaic_launch launch,
                           double stall)
{
    const double kernel = whole_instructions(&c->run, app) / mosaic_ipc(&c->result, app);
    return transfer_cycles(&c->run, app, launch) + kernel + stall;
}

double mosaic_whole_ipc(const struct mosaic_case *c, uint32_t app, enum mosaic_launch launch,
                        double stall)
{
    return whole_instructions(&c->run, app) / mosaic_whole_cycles(c, app, launch, stall);
}

enum status mosaic_run_alone(struct mosaic_alone *out, struct err *err)
{
    static const uint8_t cores[] = {30, 15, 10, 8, 7, 6};
    enum { SIZES = sizeof cores, COUNT = GEN_MOSAIC_APPS * SIZES };
    struct mosaic_case *cases = calloc(COUNT, sizeof *cases);
    if (!cases)
        return err_set(err, STATUS_NO_MEMORY,
                       "cannot allocate the runs of single applications: out of memory");
    for (uint32_t i = 0; i < COUNT; i++) {
        const struct mosaic_workload w = {.app_count = 1, .apps = {(uint8_t)(i / SIZES)}};
        cases[i].run = mosaic_workload_run(&w, MOSAIC_BASE);
        cases[i].run.cores[0] = cores[i % SIZES];
    }
    const enum status s = mosaic_run_cases(cases, COUNT, err);
    for (uint32_t i = 0; i < COUNT; i++)
        out->ipc[i / SIZES][cores[i % SIZES]] = mosaic_whole_ipc(&cases[i], 0, MOSAIC_PAGED, 0);
    free(cases);
    return s;
}

double mosaic_weighted(const struct mosaic_case *c, const struct mosaic_alone *alone,
                       enum mosaic_launch launch, double stall)
{
    double sum = 0;
    for (uint32_t a = 0; a < c->run.app_count; a++)
        sum += mosaic_whole_ipc(c, a, launch, stall) / alone->ipc[c->run.apps[a]][c->run.cores[a]];
    return sum;
}
