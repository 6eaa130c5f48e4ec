/* pichai_runs.c: see pichai_runs.h. */
#include "clients/lab/papers/pichai/pichai_runs.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { MOST_THREADS = 64, PERCENT = 100 };

/* ---- runs ---- */

void pichai_runs_want_target(struct pichai_runs *runs, const struct pichai_target *target)
{
    runs->wanted[NO_TLB] = true;
    for (uint32_t i = 0; i < target->part_count; i++) {
        const struct pichai_part *p = &target->parts[i];
        runs->wanted[p->a] = true;
        runs->wanted[p->b] = true;
        runs->wanted[p->c] = true;
        for (uint32_t k = 0; k < p->count; k++)
            runs->wanted[p->list[k]] = true;
    }
}

void pichai_runs_want_figure(struct pichai_runs *runs, const struct pichai_figure *figure)
{
    runs->wanted[NO_TLB] = true;
    for (uint32_t i = 0; i < figure->column_count; i++) {
        runs->wanted[figure->columns[i].a] = true;
        runs->wanted[figure->columns[i].b] = true;
    }
}

struct worker_pool {
    struct pichai_runs *runs;
    atomic_uint next;
    atomic_bool failed;
};

static void set_if(uint32_t *value, uint32_t other)
{
    *value = other > 0 ? other : *value;
}

static void apply_variation(struct lab_machine *m, const struct pichai_variation *v)
{
    uint32_t *const busy[] = {&m->memory.cache_busy, &m->memory.dram_busy, &m->memory.port_busy};
    set_if(&m->warps, v->warps);
    set_if(&m->l1_ways, v->l1_ways);
    set_if(&m->l1_cycles, v->l1_cycles);
    set_if(&m->memory.cache_cycles, v->cache_cycles);
    set_if(&m->memory.dram_cycles, v->dram_cycles);
    set_if(&m->memory.dram_busy, v->dram_busy);
    for (uint32_t i = 0; i < sizeof busy / sizeof busy[0] && v->faster > 0; i++)
        *busy[i] = *busy[i] > v->faster ? *busy[i] / v->faster : 1;
    m->tlb.remembers = v->remembers && m->tlb.scheduled_walks;
}

static void run_one(struct worker_pool *pool, uint32_t which, uint32_t job)
{
    const struct pichai_options *options = &pool->runs->options;
    const struct lab_work *of_core[LAB_MAX_CORES];
    struct lab_work own = options->fitted || pool->runs->variation.fitted
                              ? *lab_gen_fitted((enum lab_job)job)
                              : *lab_gen_work((enum lab_job)job);
    struct lab_machine machine;
    pichai_machine((enum pichai_machine)which, &machine);
    machine.warps = options->warps > 0 ? options->warps : machine.warps;
    own.gap_times = options->gap_times;
    apply_variation(&machine, &pool->runs->variation);
    set_if(&own.gap_times, pool->runs->variation.gap_times);
    for (uint32_t i = 0; i < LAB_MAX_CORES; i++)
        of_core[i] = &own;
    if (lab_engine_run(&machine, of_core, pool->runs->blocks, &pool->runs->of[which][job], NULL) !=
        STATUS_OK)
        atomic_store(&pool->failed, true);
}

static void *run_worker(void *context)
{
    struct worker_pool *pool = context;
    for (;;) {
        const uint32_t i = atomic_fetch_add(&pool->next, 1);
        if (i >= PICHAI_MACHINES * LAB_JOBS)
            return NULL;
        if (pool->runs->wanted[i / LAB_JOBS])
            run_one(pool, i / LAB_JOBS, i % LAB_JOBS);
    }
}

enum status pichai_runs_execute(struct pichai_runs *runs, struct err *err)
{
    struct worker_pool pool = {.runs = runs};
    pthread_t thread[MOST_THREADS];
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t count = runs->options.threads > 0 ? runs->options.threads
                     : processors > 0          ? (uint32_t)processors
                                               : 1;
    uint32_t started = 0;
    count = count < MOST_THREADS ? count : MOST_THREADS;
    while (started + 1 < count && pthread_create(&thread[started], NULL, run_worker, &pool) == 0)
        started++;
    (void)run_worker(&pool);
    for (uint32_t i = 0; i < started; i++)
        (void)pthread_join(thread[i], NULL);
    if (atomic_load(&pool.failed))
        return err_set(err, STATUS_NO_MEMORY,
                       "cannot allocate the simulated machines: out of memory");
    return STATUS_OK;
}

/* ---- numbers ---- */

static double ratio(uint64_t a, uint64_t b)
{
    return b > 0 ? (double)a / (double)b : NAN;
}

/* Returns the speed-up of a job over NO_TLB, or the mean of all jobs if `job` is LAB_JOBS. */
static double speed(const struct pichai_runs *r, enum pichai_machine which, uint32_t job)
{
    double sum = 0;
    if (job < LAB_JOBS)
        return ratio(r->of[NO_TLB][job].cycles, r->of[which][job].cycles);
    for (uint32_t i = 0; i < LAB_JOBS; i++)
        sum += speed(r, which, i);
    return sum / LAB_JOBS;
}

static double gain(const struct pichai_runs *r, enum pichai_machine a, enum pichai_machine b,
                   uint32_t job)
{
    return PERCENT * (speed(r, a, job) / speed(r, b, job) - 1);
}

static double least_gain(const struct pichai_runs *r, const struct pichai_part *p, uint32_t job)
{
    double least = INFINITY;
    for (uint32_t i = 1; i < p->count; i++)
        least = fmin(least, gain(r, p->list[i], p->list[i - 1], job));
    return least;
}

static double best_index(const struct pichai_runs *r, const struct pichai_part *p, uint32_t job)
{
    static const double tie = 0.99;
    uint32_t best = 0;
    for (uint32_t i = 1; i < p->count; i++)
        best = speed(r, p->list[i], job) > speed(r, p->list[best], job) ? i : best;
    for (uint32_t i = 0; i < p->count && p->c != NO_TLB; i++) {
        if (p->list[i] == p->c && speed(r, p->c, job) >= tie * speed(r, p->list[best], job))
            best = i;
    }
    return best;
}

static double miss_rate(const struct lab_counts *c)
{
    return PERCENT * ratio(c->page_misses, c->pages);
}

static double loads_of_walk(const struct lab_counts *c)
{
    return ratio(c->walk_loads, c->misses_walked);
}

static double count_value(const struct pichai_runs *r, const struct pichai_part *p, uint32_t job)
{
    const struct lab_counts *a = &r->of[p->a][job].all;
    const struct lab_counts *b = &r->of[p->b][job].all;
    switch (p->metric) {
    case MISS_RATE:
        return miss_rate(a);
    case MEMORY_SHARE:
        return PERCENT * ratio(a->memory, a->instructions);
    case DIVERGENCE:
        return ratio(a->pages, a->memory);
    case MOST_DIVERGENCE:
        return (double)a->most_pages;
    case MISS_COST:
        return ratio(a->miss_cycles, a->misses_walked) / ratio(b->line_cycles, b->line_misses);
    case LOADS_SAVED:
        return PERCENT * (1 - loads_of_walk(a) / loads_of_walk(b));
    case HITS_ADDED:
        return PERCENT * (ratio(a->walk_hits, a->walk_loads) - ratio(b->walk_hits, b->walk_loads));
    case IDLE:
        return PERCENT * ratio(a->idle_cycles, a->core_cycles);
    case DIVERGENCE_ADDED:
        return ratio(a->pages, a->memory) - ratio(b->pages, b->memory);
    case MISSES_ADDED:
        return miss_rate(a) - miss_rate(b);
    default:
        return NAN;
    }
}

static double job_value(const struct pichai_runs *r, const struct pichai_part *p, uint32_t job)
{
    switch (p->metric) {
    case SPEED:
        return speed(r, p->a, job);
    case LOSS:
        return -gain(r, p->a, p->b, job);
    case GAIN:
        return gain(r, p->a, p->b, job);
    case GAP:
        return PERCENT * (speed(r, p->a, job) - speed(r, p->b, job));
    case SHARE:
        return PERCENT * (speed(r, p->a, job) - speed(r, p->b, job)) /
               (speed(r, p->c, job) - speed(r, p->b, job));
    case ORDER:
        return least_gain(r, p, job);
    case BEST:
        return best_index(r, p, job);
    default:
        return count_value(r, p, job);
    }
}

double pichai_value(const struct pichai_runs *runs, const struct pichai_part *part, uint32_t job)
{
    double sum = 0;
    if (job < LAB_JOBS || part->metric == ORDER || part->metric == SHARE)
        return job_value(runs, part, job);
    for (uint32_t i = 0; i < LAB_JOBS; i++)
        sum += job_value(runs, part, i);
    return sum / LAB_JOBS;
}

struct pichai_part pichai_column_part(const struct pichai_column *c)
{
    return (struct pichai_part){.what = c->title, .metric = c->metric, .a = c->a, .b = c->b};
}

bool pichai_part_holds(const struct pichai_runs *runs, const struct pichai_part *part)
{
    uint32_t good = 0;
    const uint32_t first = part->over == ONE_JOB ? part->which : part->over == MEAN ? LAB_JOBS : 0;
    const uint32_t end = part->over == ONE_JOB || part->over == MEAN ? first + 1 : LAB_JOBS;
    uint32_t asked = 0;
    for (uint32_t job = first; job < end; job++) {
        const double v = pichai_value(runs, part, job);
        if (part->over == OTHERS && (job == LAB_BFS || job == LAB_MUMMERGPU))
            continue;
        asked++;
        good += v >= part->low && v <= part->high;
    }
    return good >= (part->over == AT_LEAST ? part->which : asked);
}
