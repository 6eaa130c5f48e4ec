/* mosaic_mmu.c: see mosaic_mmu.h. A core has one request at a time, and requests for one
 * translation share a walk. A request has the size of its page from the start, so misses to one
 * large page are one walk. The paper's limit of 64 walks is never reached, because there are 30
 * cores. */
#include "clients/lab/papers/mosaic/mosaic_mmu.h"

#include "clients/lab/papers/engine/cache.h"

#include <stdlib.h>

enum {
    LARGE_SHIFT = 9,
    L1_BASE = 128,
    L1_LARGE = 16,
    L1_CYCLES = 1,
    L2_BASE = 512,
    L2_LARGE = 256,
    L2_CYCLES = 10,
    L2_WAYS = 16,
    L2_PORTS = 2,
    LEVELS = 4,
    LEVEL_BITS = 9,
    ENTRIES_OF_LINE_SHIFT = 4, /* entries of 8 bytes */
    TABLE_LINES = 1 << 26,     /* first line of the page tables, behind all data */
    LEVEL_LINES = 1 << 22      /* lines of the tables of one level */
};
static const uint32_t NONE = UINT32_MAX;

/* Pending request of a core. */
struct request {
    uint32_t key; /* number of the page or large page */
    uint32_t page;
    bool large;
    uint32_t next_of_walk;
};

/* Pending walk, indexed by the core of the first request. */
struct walk {
    uint32_t key, page;
    bool active, large;
    uint8_t level;    /* level that is read next */
    uint32_t waiting; /* list of the other waiting cores, the last one first */
};

struct core {
    struct lab_cache *base, *large; /* owned */
    uint64_t free_at;               /* time at which the port is free */
    struct request request;
    struct walk walk;
};

struct mosaic_mmu {
    enum mosaic_design design;
    struct mosaic_mmu_host host;
    struct mosaic_mmu_counts counts;
    struct lab_cache *l2_base, *l2_large; /* owned */
    uint64_t l2_free[L2_PORTS];
    uint32_t core_count;
    struct core cores[];
};

struct mosaic_mmu *mosaic_mmu_new(enum mosaic_design design, uint32_t cores,
                                  const struct mosaic_mmu_host *host)
{
    struct mosaic_mmu *m = calloc(1, sizeof *m + cores * sizeof *m->cores);
    if (!m)
        return NULL;
    m->design = design;
    m->core_count = cores;
    m->host = *host;
    m->l2_base = lab_cache_new(L2_BASE / L2_WAYS, L2_WAYS);
    m->l2_large = lab_cache_new(1, L2_LARGE);
    bool good = m->l2_base && m->l2_large;
    for (uint32_t i = 0; i < cores; i++) {
        m->cores[i].base = lab_cache_new(1, L1_BASE);
        m->cores[i].large = lab_cache_new(1, L1_LARGE);
        good = good && m->cores[i].base && m->cores[i].large;
    }
    if (good)
        return m;
    mosaic_mmu_free(m);
    return NULL;
}

void mosaic_mmu_free(struct mosaic_mmu *take)
{
    if (!take)
        return;
    for (uint32_t i = 0; i < take->core_count; i++) {
        lab_cache_free(take->cores[i].base);
        lab_cache_free(take->cores[i].large);
    }
    lab_cache_free(take->l2_base);
    lab_cache_free(take->l2_large);
    free(take);
}

struct mosaic_mmu_counts mosaic_mmu_count(const struct mosaic_mmu *m)
{
    return m->counts;
}

static uint64_t max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ---- entries ---- */

static bool is_large(const struct mosaic_mmu *m, uint32_t page)
{
    return m->design == MOSAIC_LARGE ||
           (m->design == MOSAIC_MOSAIC && frames_is_large(m->host.frames, page));
}

/* Returns whether a TLB has an entry, which becomes the most recently used. No tag is 0. */
static bool hit_entry(struct lab_cache *tlb, uint32_t key)
{
    const uint32_t slot = lab_cache_find(tlb, key + 1);
    if (slot != LAB_NO_SLOT)
        lab_cache_use(tlb, slot);
    return slot != LAB_NO_SLOT;
}

/* Looks up a key in one level, and writes the cycles. With one page size there is one array. With
 * two page sizes, large entries are looked up first, and base entries only after a miss. */
static bool look_up_key(const struct mosaic_mmu *m, struct lab_cache *base, struct lab_cache *large,
                        uint32_t key, bool is_large_page, uint32_t cycles, uint32_t *out_cycles)
{
    *out_cycles = cycles;
    if (m->design != MOSAIC_MOSAIC)
        return hit_entry(base, key);
    if (is_large_page && hit_entry(large, key))
        return true;
    *out_cycles = 2 * cycles;
    return !is_large_page && hit_entry(base, key);
}

static void fill_key(const struct mosaic_mmu *m, struct lab_cache *base, struct lab_cache *large,
                     uint32_t key, bool is_large_page)
{
    struct lab_cache *tlb = m->design == MOSAIC_MOSAIC && is_large_page ? large : base;
    uint32_t evicted;
    if (!hit_entry(tlb, key))
        (void)lab_cache_fill(tlb, key + 1, &evicted);
}

/* ---- requests ---- */

/* Starts a lookup of the second level, which ends with an event. */
static void start_l2_lookup(struct mosaic_mmu *m, uint32_t core, uint64_t now)
{
    const struct request *r = &m->cores[core].request;
    const uint32_t port = m->l2_free[0] <= m->l2_free[1] ? 0 : 1;
    const uint64_t start = max(now, m->l2_free[port]);
    uint32_t cycles;
    m->l2_free[port] = start + 1;
    (void)look_up_key(m, m->l2_base, m->l2_large, r->key, r->large, L2_CYCLES, &cycles);
    m->host.post(m->host.arg, core, start + cycles);
}

static void resolve_request(struct mosaic_mmu *m, uint32_t core, uint64_t now)
{
    const struct request *r = &m->cores[core].request;
    fill_key(m, m->cores[core].base, m->cores[core].large, r->key, r->large);
    m->host.resolved(m->host.arg, core, now);
}

bool mosaic_mmu_translate(struct mosaic_mmu *m, uint32_t core, uint32_t page, uint64_t now,
                          uint64_t *out_at)
{
    uint32_t cycles;
    m->counts.l1_lookups++;
    if (m->design == MOSAIC_IDEAL) {
        *out_at = now + L1_CYCLES;
        return true;
    }
    const bool large = is_large(m, page);
    const uint32_t key = large ? page >> LARGE_SHIFT : page;
    const uint64_t start = max(now, m->cores[core].free_at);
    m->cores[core].free_at = start + 1;
    const bool hit =
        look_up_key(m, m->cores[core].base, m->cores[core].large, key, large, L1_CYCLES, &cycles);
    *out_at = start + cycles;
    if (hit)
        return true;
    m->counts.l1_misses++;
    m->cores[core].request = (struct request){.key = key, .page = page, .large = large};
    start_l2_lookup(m, core, *out_at);
    return false;
}

/* ---- walks ---- */

/* Returns the walk that fetches the translation of a request, or NONE. */
static uint32_t find_walk(const struct mosaic_mmu *m, const struct request *r)
{
    for (uint32_t c = 0; c < m->core_count; c++) {
        const struct walk *w = &m->cores[c].walk;
        if (w->active && w->key == r->key && w->large == r->large)
            return c;
    }
    return NONE;
}

/* Returns the number of a page's entry in a level. Level 0 is the root. */
static uint32_t entry_number(uint32_t page, uint32_t level)
{
    return page >> LEVEL_BITS * (LEVELS - 1 - level);
}

static uint32_t table_line(uint32_t page, uint32_t level)
{
    return TABLE_LINES + level * LEVEL_LINES + (entry_number(page, level) >> ENTRIES_OF_LINE_SHIFT);
}

/* Returns the number of levels of a walk. A walk of MOSAIC_LARGE ends at the third level. The walk
 * of a merged page also reads the first entry of the fourth level. */
static uint32_t walk_levels(const struct mosaic_mmu *m)
{
    return m->design == MOSAIC_LARGE ? LEVELS - 1 : LEVELS;
}

static void read_next_level(struct mosaic_mmu *m, uint32_t walk, uint64_t now)
{
    struct walk *w = &m->cores[walk].walk;
    uint32_t page = w->page;
    if (w->large && w->level == LEVELS - 1)
        page -= page % FRAMES_PAGES;
    const uint64_t at = mosaic_memory_walk(m->host.memory, table_line(page, w->level), now);
    w->level++;
    m->host.post(m->host.arg, m->core_count + walk, at);
}

static void start_walk(struct mosaic_mmu *m, uint32_t core, uint64_t now)
{
    const struct request *r = &m->cores[core].request;
    m->cores[core].walk = (struct walk){
        .key = r->key, .page = r->page, .active = true, .large = r->large, .waiting = NONE};
    read_next_level(m, core, now);
}

static void end_walk(struct mosaic_mmu *m, uint32_t core, uint64_t now)
{
    struct walk *w = &m->cores[core].walk;
    w->active = false;
    fill_key(m, m->l2_base, m->l2_large, w->key, w->large);
    resolve_request(m, core, now);
    for (uint32_t c = w->waiting; c != NONE; c = m->cores[c].request.next_of_walk)
        start_l2_lookup(m, c, now);
}

static void request_due(struct mosaic_mmu *m, uint32_t core, uint64_t now)
{
    struct request *r = &m->cores[core].request;
    const uint32_t walk = find_walk(m, r);
    uint32_t cycles;
    if (walk != NONE) {
        r->next_of_walk = m->cores[walk].walk.waiting;
        m->cores[walk].walk.waiting = core;
        return;
    }
    m->counts.l2_lookups++;
    if (look_up_key(m, m->l2_base, m->l2_large, r->key, r->large, L2_CYCLES, &cycles)) {
        resolve_request(m, core, now);
        return;
    }
    m->counts.l2_misses++;
    start_walk(m, core, now);
}

void mosaic_mmu_due(struct mosaic_mmu *m, uint32_t what, uint64_t now)
{
    const uint32_t core = what % m->core_count;
    if (what < m->core_count)
        request_due(m, core, now);
    else if (m->cores[core].walk.level < walk_levels(m))
        read_next_level(m, core, now);
    else
        end_walk(m, core, now);
}
