/* engine.c: runs the core with the earliest next step, until another core has an earlier step. */
#include "clients/lab/papers/engine/engine.h"

#include "clients/lab/papers/engine/block.h"
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
           (c->locality || m->sched.locality == LAB_NO_LOCALITY) &&
           lab_events_reserve(&c->events, 3 * LAB_MAX_WARPS);
}

static void free_engine(struct lab_engine *e)
{
    for (uint32_t i = 0; e->cores && i < e->machine->cores; i++) {
        lab_cache_free(e->cores[i].l1);
        lab_cache_free(e->cores[i].tlb);
        lab_locality_free(e->cores[i].locality);
        lab_events_free(&e->cores[i].events);
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
            lab_block_launch(c, block);
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

/* The turns of all cores that are not running, and the earliest turn of each 4 and each 16 cores. A
 * heap would need a branch per comparison, and nearly every turn would move far. */
enum { FOUR = 4 };
_Static_assert(LAB_MAX_CORES == FOUR * FOUR * FOUR, "three rows");
struct turns {
    uint64_t at[FOUR][FOUR][FOUR];
    uint64_t of_4[FOUR][FOUR];
    uint64_t of_16[FOUR];
};

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t earliest(const uint64_t at[FOUR])
{
    return earlier(earlier(at[0], at[1]), earlier(at[2], at[3]));
}

static void set_turn(struct turns *t, uint32_t core, uint64_t turn)
{
    const uint32_t row = core / (FOUR * FOUR);
    const uint32_t four = core / FOUR % FOUR;
    t->at[row][four][core % FOUR] = turn;
    t->of_4[row][four] = earliest(t->at[row][four]);
    t->of_16[row] = earliest(t->of_4[row]);
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
    struct turns t;
    memset(&t, 0xff, sizeof t); /* LAB_NEVER */
    for (uint32_t i = 0; i < cores; i++)
        set_turn(&t, i, i);
    for (uint64_t turn = earliest(t.of_16); turn != LAB_NEVER;) {
        const uint32_t id = (uint32_t)turn & ((1u << ID_BITS) - 1);
        struct lab_core *c = &e->cores[id];
        set_turn(&t, id, LAB_NEVER);
        const uint64_t other = earliest(t.of_16);
        if (other != LAB_NEVER)
            __builtin_prefetch(&e->cores[other & ((1u << ID_BITS) - 1)]);
        lab_core_run(c, step_limit(other, id));
        const uint64_t next = core_turn(c);
        set_turn(&t, id, next);
        turn = earlier(other, next);
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
    const uint32_t most = m->compact.aware ? LAB_MATRIX_WARPS : LAB_MAX_WARPS;
    const uint32_t of_block = job->block_warps;
    if (m->cores == 0 || m->cores > LAB_MAX_CORES || m->warps == 0 || m->warps > most)
        return err_set(
            err, STATUS_INVALID_ARGUMENT,
            "the simulated machine has %u cores of %u warps; at most %u of %u are supported",
            m->cores, m->warps, LAB_MAX_CORES, most);
    if (m->tlb.entries > 0 &&
        (m->tlb.walkers == 0 || m->tlb.walkers > LAB_MAX_WALKERS || m->tlb.ports == 0))
        return err_set(err, STATUS_INVALID_ARGUMENT,
                       "a TLB must have at least one port, and 1 to %u walkers", LAB_MAX_WALKERS);
    if (of_block > LAB_MAX_BLOCK_WARPS || m->warps % of_block != 0)
        return err_set(err, STATUS_INVALID_ARGUMENT,
                       "the %u warps of a core are not a multiple of the %u of a block", m->warps,
                       of_block);
    return STATUS_OK;
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
