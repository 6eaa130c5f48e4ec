/* engine.c: runs the core with the earliest next step, until another core has an earlier step. */
#include "clients/lab/papers/engine/engine.h"

#include "clients/lab/papers/engine/core.h"

#include <stdlib.h>
#include <string.h>

/* ---- start and end ---- */

static bool set_core(struct lab_core *c, struct lab_engine *e, uint32_t id,
                     const struct lab_job *job)
{
    const struct lab_machine *m = e->machine;
    const struct lab_tlb_desc *t = &m->tlb;
    c->engine = e;
    c->machine = m;
    c->job = job;
    c->id = id;
    c->last = m->warps - 1;
    c->matrix.bits = m->compact.bits;
    const uint32_t lookup = m->l1_busy + t->hit_cycles;
    for (uint32_t page = 0; page < LAB_LANES && t->entries > 0; page++)
        c->wait_of_page[page] = (uint16_t)(page / t->ports * lookup + t->hit_cycles);
    for (uint32_t pages = 0; pages <= LAB_LANES && t->entries > 0; pages++)
        c->lookup_cycles[pages] = (uint16_t)((pages + t->ports - 1) / t->ports * lookup);
    c->l1 = lab_cache_new((m->l1_bytes >> LAB_LINE_SHIFT) / m->l1_ways, m->l1_ways);
    if (t->entries > 0)
        c->tlb = lab_cache_new(t->entries / t->ways, t->ways);
    if (m->sched.locality != LAB_NO_LOCALITY)
        c->locality = lab_locality_new(&m->sched, m->warps);
    return c->l1 && (c->tlb || t->entries == 0) &&
           (c->locality || m->sched.locality == LAB_NO_LOCALITY);
}

static void free_engine(struct lab_engine *e)
{
    for (uint32_t i = 0; e->cores && i < e->machine->cores; i++) {
        lab_cache_free(e->cores[i].l1);
        lab_cache_free(e->cores[i].tlb);
        lab_locality_free(e->cores[i].locality);
    }
    free(e->cores);
    lab_memory_free(e->memory);
}

static bool set_engine(struct lab_engine *e, const struct lab_job *job)
{
    const uint32_t cores = e->machine->cores;
    e->memory = lab_memory_new(&e->machine->memory);
    e->cores =
        cores > 0 ? aligned_alloc(_Alignof(struct lab_core), cores * sizeof *e->cores) : NULL;
    if (e->cores)
        memset(e->cores, 0, cores * sizeof *e->cores);
    bool good = e->memory && e->cores;
    for (uint32_t i = 0; good && i < cores; i++)
        good = set_core(&e->cores[i], e, i, job);
    for (uint32_t i = 0; good && i < cores; i++) {
        struct lab_core *c = &e->cores[i];
        for (uint32_t block = 0; block < e->machine->warps / job->block_warps; block++)
            lab_core_launch(c, block);
    }
    return good;
}

/* ---- run ---- */

/* A turn contains the time of a core's next step and the core's number, so the lower number wins
 * ties. */
enum { ID_BITS = 6 };
_Static_assert(1 << ID_BITS >= LAB_MAX_CORES, "each core has a number");

static uint64_t core_turn(const struct lab_core *c)
{
    return c->next == LAB_NEVER ? LAB_NEVER : c->next << ID_BITS | c->id;
}

static uint64_t earliest(const uint64_t *turns, uint32_t count)
{
    uint64_t least = LAB_NEVER;
    for (uint32_t i = 0; i < count; i++)
        least = turns[i] < least ? turns[i] : least;
    return least;
}

/* Returns the last time at which a core may take a step if another core has the turn `other`. */
static uint64_t step_limit(uint64_t other, uint32_t id)
{
    const uint64_t at = other >> ID_BITS;
    if (other == LAB_NEVER)
        return LAB_NEVER - 1;
    return at > 0 && (other & ((1u << ID_BITS) - 1)) < id ? at - 1 : at;
}

/* Runs the core with the earliest turn until another core has an earlier turn. */
static void run_cores(struct lab_engine *e)
{
    const uint32_t cores = e->machine->cores;
    uint64_t turns[LAB_MAX_CORES]; /* LAB_NEVER for the core that runs */
    for (uint32_t i = 0; i < cores; i++)
        turns[i] = i;
    for (uint64_t turn = 0; turn != LAB_NEVER;) {
        const uint32_t id = (uint32_t)turn & ((1u << ID_BITS) - 1);
        struct lab_core *c = &e->cores[id];
        turns[id] = LAB_NEVER;
        const uint64_t other = earliest(turns, cores);
        if (other != LAB_NEVER)
            __builtin_prefetch(&e->cores[other & ((1u << ID_BITS) - 1)]);
        lab_core_run(c, step_limit(other, id));
        turns[id] = core_turn(c);
        turn = other < turns[id] ? other : turns[id];
    }
}

static void collect_result(const struct lab_engine *e, struct lab_result *out)
{
    uint64_t *const sum = (uint64_t *)&out->all;
    *out = (struct lab_result){0};
    for (uint32_t i = 0; i < e->machine->cores; i++) {
        struct lab_core *c = &e->cores[i];
        const uint64_t *const counts = (const uint64_t *)&c->counts;
        c->counts.core_cycles = c->now;
        out->cycles = c->now > out->cycles ? c->now : out->cycles;
        for (size_t k = 0; k < sizeof out->all / sizeof *sum; k++)
            sum[k] += counts[k];
    }
}

static enum status check_machine(const struct lab_machine *m, const struct lab_job *job,
                                 struct err *err)
{
    const uint32_t most = m->compact.bits > 0 ? LAB_MATRIX_WARPS : LAB_MAX_WARPS;
    const uint32_t of_block = job->block_warps;
    if (m->cores <= LAB_MAX_CORES && m->warps > 0 && m->warps <= most &&
        m->tlb.walkers <= LAB_MAX_WALKERS && of_block <= LAB_MAX_BLOCK_WARPS &&
        m->warps % of_block == 0)
        return STATUS_OK;
    return err_set(err, STATUS_INVALID_ARGUMENT,
                   "blocks of %u warps do not fit %u cores of %u warps with %u walkers", of_block,
                   m->cores, m->warps, m->tlb.walkers);
}

enum status lab_engine_run(const struct lab_machine *machine, const struct lab_job *job,
                           struct lab_result *out, struct err *err)
{
    struct lab_engine e = {.machine = machine};
    enum status s = check_machine(machine, job, err);
    if (s != STATUS_OK)
        return s;
    e.blocks = (job->trace->block_count - 1) / machine->cores + 1;
    if (set_engine(&e, job)) {
        run_cores(&e);
        collect_result(&e, out);
    } else {
        s = err_set(err, STATUS_NO_MEMORY, "cannot allocate the simulated machine: out of memory");
    }
    free_engine(&e);
    return s;
}
