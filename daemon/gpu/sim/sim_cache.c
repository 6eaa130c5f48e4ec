/* sim_cache.c: runs CACHE on the model of a GPU. The private caches of an SM are levels of the
 * model like the levels of a TLB (sim_tlb.h): an entry is a line. They are empty at the start of a
 * probe.
 *
 * The L2 is too large to be walked line by line. If the lines that all SMs have loaded fit, all of
 * them are in it. If not, a part that fits is in the L2, chosen by the addresses. Lines that were
 * not swept count as resident, like after an untimed lap.
 */
#include "gpu/sim/sim_parts.h"

#include "base/assert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_FILL_BYTES = 32, SHARE_PARTS = 1 << 20, BLOCK_SLOTS = 1 << 15 };

/* The sizes of shared memory that an SM of Hopper can set aside, in KiB. */
static const uint32_t carveouts_kib[] = {0, 8, 16, 32, 64, 100, 132, 164, 196, 228};

/* The caches of the current SM, and the state of the L2. */
struct caches {
    struct sim_machine *m;
    const struct probe_spec *spec;
    uint64_t va;
    struct sim_tlb *of_path[PATH_COUNT]; /* NULL if this path has no cache */
    uint32_t sm;
    bool cold;               /* true if the L2 has no line of the footprint */
    uint64_t resident_parts; /* if not cold: resident lines among SHARE_PARTS lines */
    uint64_t footprint;      /* length of the footprint of the current point in bytes */
    double taken;            /* bytes of the L2 that each byte of the footprint takes */
    uint64_t table;          /* stretch of the last translation that all levels missed, plus 1 */
    uint64_t *blocks; /* [BLOCK_SLOTS]: hash table of the blocks that the L2 has filled since it was
                         cold; number of the block plus 1 */
};

static const struct sim_level *level_of(const struct sim_desc *d, enum probe_path path)
{
    switch (path) {
    case PATH_L1:
        return &d->l1d;
    case PATH_READ_ONLY:
        return d->read_only.entries ? &d->read_only : &d->l1d;
    case PATH_CONSTANT:
        return &d->constant;
    default:
        return NULL;
    }
}

/* Returns the level without the ways that shared memory takes from it. */
static struct sim_level carved(const struct sim_desc *d, const struct sim_level *level,
                               uint64_t shared_bytes)
{
    struct sim_level l = *level;
    const uint64_t way_bytes = d->array_bytes / (l.runs[0].ways ? l.runs[0].ways : 1);
    uint64_t taken = 0;

    if (d->array_bytes == 0 || level != &d->l1d || l.run_count != 1 || way_bytes == 0)
        return l;
    for (size_t i = 0; i < sizeof(carveouts_kib) / sizeof(carveouts_kib)[0]; i++) {
        taken = (uint64_t)carveouts_kib[i] << 10;
        if (taken >= shared_bytes)
            break;
    }
    const uint64_t ways = (taken + way_bytes - 1) / way_bytes;
    l.runs[0].ways -= ways < l.runs[0].ways ? (uint32_t)ways : l.runs[0].ways - 1;
    l.entries = l.runs[0].ways * l.runs[0].count;
    return l;
}

static uint64_t fill_bytes(const struct sim_desc *d)
{
    return d->l2_fill_bytes ? d->l2_fill_bytes : (uint64_t)DEFAULT_FILL_BYTES;
}

/* Returns whether the line at `va` is still in the L2. The footprint is longer than the L2 and was
 * loaded from its start to its end. */
static bool is_left(const struct caches *c, uint64_t va)
{
    const double age = (double)(c->va + c->footprint - va) * c->taken;
    const double share = exp(-age / (double)c->m->desc.l2_cache_bytes);
    const uint32_t part = sim_fixed(c->m->desc.seed + 77, va / PROBE_LINE_BYTES, SHARE_PARTS);

    switch ((enum sim_l2_keeps)c->m->desc.l2_keeps) {
    case SIM_L2_KEEPS_LAST:
        return age <= (double)c->m->desc.l2_cache_bytes;
    case SIM_L2_KEEPS_YOUNG:
        return part < share * SHARE_PARTS;
    default:
        return part < c->resident_parts;
    }
}

/* Returns whether the block of one fill is in the L2. A cold L2 has it afterwards. */
static bool l2_touch(struct caches *c, uint64_t va)
{
    const uint64_t fill = fill_bytes(&c->m->desc);
    const uint64_t block = va / fill + 1;

    if (!c->cold && (c->resident_parts >= SHARE_PARTS || is_left(c, va)))
        return true;
    if (!c->cold)
        return false; /* in a cycle that does not fit, a refilled block is evicted again */
    for (uint64_t slot = block * 0x9e3779b97f4a7c15u >> 49;; slot = (slot + 1) % BLOCK_SLOTS) {
        if (c->blocks[slot] == block)
            return true;
        if (c->blocks[slot] == 0) {
            c->blocks[slot] = block;
            return false;
        }
    }
}

/* Returns the extra cycles of a translation that all levels missed. They are 0 if the translation
 * before was in the same stretch of memory. */
static uint32_t enter_table(struct caches *c, uint64_t va, uint32_t missed)
{
    const struct sim_desc *const d = &c->m->desc;
    const uint64_t before = c->table;

    if (d->page_table_bytes == 0 || missed < d->level_count)
        return 0;
    c->table = va / d->page_table_bytes + 1;
    return c->table != before ? d->page_table_cycles : 0;
}

/* Runs one load. Returns its cycles if `timed`, otherwise 0. */
static uint32_t load(struct caches *c, enum probe_path path, uint64_t offset, bool timed)
{
    const struct sim_desc *const d = &c->m->desc;
    const struct sim_level *const level = level_of(d, path);
    struct sim_tlb *const cache = c->of_path[path];
    const bool constant = path == PATH_CONSTANT;
    const bool hit = cache && sim_tlb_touch(cache, 0, offset);
    const double hit_cycles = !cache ? 0
                              : constant && d->constant_cycles
                                  ? d->constant_cycles
                                  : (double)d->latency_cycles - level->miss_cycles;
    uint32_t away = 0;

    if (path == PATH_NONE)
        return timed && d->clock_cycles > 0 ? d->clock_cycles : timed;
    if (hit || (constant && d->constant_cycles))
        return timed
                   ? sim_machine_noisy(c->m, hit ? hit_cycles : hit_cycles + level->miss_cycles, 0)
                   : 0;
    if (constant)
        return timed ? sim_machine_noisy(c->m, d->latency_cycles, 0) : 0;
    const uint64_t va = c->va + offset;
    const bool l2_hit = l2_touch(c, va);
    if (!timed) {
        sim_machine_load(c->m, c->sm, va);
        return 0;
    }
    const uint32_t missed = sim_machine_access(c->m, c->sm, va, &away);
    double cycles = (double)sim_mmu_cycles(c->m->mmu, missed) + c->m->far_cycles[c->sm];
    cycles += sim_slice_cycles(c->m, va) + enter_table(c, va, missed);
    if (!l2_hit) {
        cycles += d->memory_cycles + sim_side_cycles(c->m, c->sm, va);
        if (d->tail_share > 0 && rng_unit(&c->m->rng) < d->tail_share)
            cycles += d->tail_cycles * rng_unit(&c->m->rng);
    }
    return sim_machine_noisy(c->m, cycles, away);
}

/* Sets the state of the L2 after the sweeps. */
static void sweep(struct caches *c, uint64_t footprint)
{
    const uint64_t l2 = c->m->desc.l2_cache_bytes;

    c->cold = c->spec->sweep_bytes > 0 && l2 > 0 && c->m->desc.memory_cycles > 0;
    const uint64_t fill = fill_bytes(&c->m->desc);
    const uint64_t line = c->m->desc.l2_line_bytes > fill ? c->m->desc.l2_line_bytes : fill;
    const bool sparse =
        c->spec->sweep_footprint == PROBE_SWEEP_ELEMENTS && c->spec->stride_bytes > line;
    c->taken = sparse ? (double)line / (double)c->spec->stride_bytes : 1;
    c->footprint = footprint;
    c->resident_parts = SHARE_PARTS;
    footprint = (uint64_t)((double)footprint * c->taken);
    if (l2 > 0 && footprint > l2 && c->m->desc.memory_cycles > 0)
        c->resident_parts =
            (uint64_t)((unsigned __int128)l2 * SHARE_PARTS / (footprint ? footprint : 1));
    memset(c->blocks, 0, BLOCK_SLOTS * sizeof c->blocks[0]);
}

static void run_point(struct caches *c, uint32_t p, uint32_t *values)
{
    const struct probe_spec *const s = c->spec;
    const uint64_t n = s->points[p];
    const uint64_t step = s->scattered ? probe_scatter_step(n) : 1;
    const uint64_t behind = probe_cache_behind(s) + s->sweep_bytes;
    uint64_t at = 0;

    REACH_ASSERT(n > 0);
    sweep(c, n * s->stride_bytes);
    for (uint32_t lap = 0; lap < s->warm_laps; lap++)
        for (uint64_t i = 0; i < n; i++, at = (at + step) % n)
            (void)load(c, s->warm_path, at * s->stride_bytes, false);
    if (s->sweep_bytes > 0)
        sweep(c, n * s->stride_bytes);
    for (uint64_t i = 0; s->touch_bytes > 0 && i * s->touch_bytes < n * s->stride_bytes; i++)
        (void)load(c, PATH_L2, i * s->touch_bytes + 96, false);
    for (uint64_t i = 0; i < s->evict_bytes; i += DEFAULT_FILL_BYTES)
        (void)load(c, s->path, behind + i, false);
    at = 0;
    for (uint32_t k = 0; k < s->samples; k++, at = (at + step) % n) {
        uint32_t cycles = load(c, s->path, at * s->stride_bytes, true);
        cycles += s->path == PATH_NONE ? 0 : c->m->desc.clock_cycles;
        values[k] = cycles < UINT16_MAX ? cycles : UINT16_MAX;
    }
}

/* Empties the caches for the current SM. */
static bool open_caches(struct caches *c)
{
    const struct sim_desc *const d = &c->m->desc;
    const enum probe_path paths[] = {PATH_L1, PATH_READ_ONLY, PATH_CONSTANT};

    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        const struct sim_level *const level = level_of(d, paths[i]);
        if (paths[i] == PATH_READ_ONLY && level == &d->l1d) {
            c->of_path[PATH_READ_ONLY] = c->of_path[PATH_L1];
        } else if (level->entries > 0) {
            const struct sim_level l = carved(d, level, c->spec->shared_bytes);
            c->of_path[paths[i]] = sim_tlb_new(&l, d->seed);
            if (!c->of_path[paths[i]])
                return false;
        }
    }
    return true;
}

static void close_caches(struct caches *c)
{
    if (c->of_path[PATH_READ_ONLY] != c->of_path[PATH_L1])
        sim_tlb_free(c->of_path[PATH_READ_ONLY]);
    sim_tlb_free(c->of_path[PATH_L1]);
    sim_tlb_free(c->of_path[PATH_CONSTANT]);
    memset(c->of_path, 0, sizeof c->of_path);
}

bool sim_cache_run(struct sim_machine *m, const struct probe_spec *spec, uint64_t va,
                   uint32_t *values)
{
    struct caches c = {.m = m, .spec = spec, .va = va};
    bool ok = (c.blocks = calloc(BLOCK_SLOTS, sizeof c.blocks[0])) != NULL;

    /* Runs one SM after the other, each with its points in their order. If an SM is named again,
     * its caches still hold the lines of its earlier points. */
    for (uint32_t first = 0; ok && first < spec->point_count; first++) {
        const uint16_t id = spec->sms[first % spec->sm_count];
        bool done = false;
        for (uint32_t p = 0; p < first; p++)
            done = done || spec->sms[p % spec->sm_count] == id;
        if (done)
            continue;
        c.sm = probe_sm_position(m->desc.sm_ids, m->desc.sm_count, id);
        ok = open_caches(&c);
        for (uint32_t p = first; ok && p < spec->point_count; p++)
            if (spec->sms[p % spec->sm_count] == id)
                run_point(&c, p, values + (size_t)p * spec->samples);
        close_caches(&c);
    }
    free(c.blocks);
    return ok;
}
