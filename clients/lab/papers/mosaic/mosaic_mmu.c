/* mosaic_mmu.c: see mosaic_mmu.h. A core has one request at a time, and requests for one
 * translation share a walk. A request has the size of its page from the start, so misses to one
 * large page are one walk. The paper's limit of 64 walks is never reached, because there are 30
 * cores. */
#include "clients/lab/papers/mosaic/mosaic_mmu.h"

#include "clients/lab/papers/mosaic/mosaic_tlb.h"

#include <stdlib.h>

enum {
    APP_SHIFT = 20, /* a key contains the numbers of the page and of the application */
    LARGE_SHIFT = 9,
    L1_CYCLES = 1,
    L2_CYCLES = 10,
    L2_WAYS = 16,
    L2_PORTS = 2,
    WALK_CACHE_WAYS = 8,
    WALK_CACHE_CYCLES = 85, /* from the configuration of the released simulator */
    LEVELS = 4,
    LEVEL_BITS = 9,
    ENTRIES_OF_LINE_SHIFT = 4, /* entries of 8 bytes */
    TABLE_LINES = 1 << 26,     /* first line of the page tables, behind all data */
    LEVEL_LINES = 1 << 22,     /* lines of the tables of one level */
    LEVEL_KEYS = 1 << 24
};
static const uint32_t NONE = UINT32_MAX;
/* The bus of the paper (section 3.2) takes 55 us for 4 KiB and 318 us for 2 MiB, at 1020 MHz. */
static const double BUS_LATENCY_CYCLES = 54.5e-6 * 1020e6;
static const double BUS_CYCLES_PER_BYTE = 1020e6 / 7.96e9;

/* Pending request of a core. */
struct request {
    uint32_t key, app, page;
    bool large;
    uint32_t next_of_walk;
};

/* Pending walk, indexed by the core of the first request. */
struct walk {
    uint32_t key, app, page;
    bool active, large;
    uint8_t level;    /* level that is read next */
    uint32_t waiting; /* list of the other waiting cores, the last one first */
};

/* The pages in transfer, in order. The bus transfers one page after another. */
struct bus {
    uint64_t free_at;
    uint16_t *state[FRAMES_MAX_APPS]; /* state of each page or large page */
    uint32_t first, count;            /* range in the ring `coming` */
    struct {
        uint16_t *state;
        uint64_t at;
    } coming[MOSAIC_MAX_FAULTS];
};
enum { ABSENT, PRESENT, COMING }; /* COMING + position in the ring */

struct mosaic_mmu {
    struct mosaic_mmu_desc desc;
    struct mosaic_mmu_host host;
    struct mosaic_mmu_counts counts;
    struct mosaic_tlb **l1_base, **l1_large; /* TLBs of each core */
    struct mosaic_tlb *l2_base, *l2_large, *walk_cache;
    uint64_t *l1_free; /* time at which the port of each core is free */
    uint64_t l2_free[L2_PORTS];
    struct request *requests; /* request of each core */
    struct walk *walks;       /* walk of each core */
    struct bus *bus;          /* NULL if all pages are in memory */
};

struct mosaic_mmu_desc mosaic_mmu_paper(enum mosaic_design design, uint32_t cores)
{
    return (struct mosaic_mmu_desc){.design = design,
                                    .cores = cores,
                                    .l1_base = 128,
                                    .l1_large = 16,
                                    .l2_base = 512,
                                    .l2_large = 256};
}

static bool make_tlbs(struct mosaic_mmu *m)
{
    const struct mosaic_mmu_desc *d = &m->desc;
    bool good = true;
    for (uint32_t c = 0; c < d->cores; c++) {
        m->l1_base[c] = mosaic_tlb_new(d->l1_base, d->l1_base);
        m->l1_large[c] = mosaic_tlb_new(d->l1_large, d->l1_large);
        good = good && m->l1_base[c] && m->l1_large[c];
    }
    m->l2_base = mosaic_tlb_new(d->l2_base, L2_WAYS);
    m->l2_large = mosaic_tlb_new(d->l2_large, d->l2_large);
    m->walk_cache = mosaic_tlb_new(d->walk_cache, WALK_CACHE_WAYS);
    return good && m->l2_base && m->l2_large && m->walk_cache;
}

struct mosaic_mmu *mosaic_mmu_new(const struct mosaic_mmu_desc *desc,
                                  const struct mosaic_mmu_host *host)
{
    struct mosaic_mmu *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->desc = *desc;
    m->host = *host;
    m->l1_base = calloc(desc->cores, sizeof(struct mosaic_tlb *));
    m->l1_large = calloc(desc->cores, sizeof(struct mosaic_tlb *));
    m->l1_free = calloc(desc->cores, sizeof *m->l1_free);
    m->requests = calloc(desc->cores, sizeof *m->requests);
    m->walks = calloc(desc->cores, sizeof *m->walks);
    bool good = m->l1_base && m->l1_large && m->l1_free && m->requests && m->walks && make_tlbs(m);
    m->bus = desc->lazy ? calloc(1, sizeof *m->bus) : NULL;
    good = good && (m->bus || !desc->lazy);
    for (uint32_t a = 0; a < FRAMES_MAX_APPS && m->bus; a++) {
        m->bus->state[a] = calloc(1u << APP_SHIFT, sizeof *m->bus->state[a]);
        good = good && m->bus->state[a];
    }
    if (!good) {
        mosaic_mmu_free(m);
        return NULL;
    }
    return m;
}

void mosaic_mmu_free(struct mosaic_mmu *take)
{
    if (!take)
        return;
    for (uint32_t c = 0; c < take->desc.cores; c++) {
        if (take->l1_base)
            mosaic_tlb_free(take->l1_base[c]);
        if (take->l1_large)
            mosaic_tlb_free(take->l1_large[c]);
    }
    for (uint32_t a = 0; a < FRAMES_MAX_APPS && take->bus; a++)
        free(take->bus->state[a]);
    free(take->bus);
    mosaic_tlb_free(take->l2_base);
    mosaic_tlb_free(take->l2_large);
    mosaic_tlb_free(take->walk_cache);
    free(take->walks);
    free(take->requests);
    free(take->l1_free);
    free(take->l1_large);
    free(take->l1_base);
    free(take);
}

struct mosaic_mmu_counts mosaic_mmu_count(const struct mosaic_mmu *m)
{
    return m->counts;
}

/* The numbers of request events come first, then walk events, then the event of the bus. */
uint32_t mosaic_mmu_events(const struct mosaic_mmu *m)
{
    return 2 * m->desc.cores + 1;
}

static uint64_t max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ---- entries ---- */

static bool is_large(const struct mosaic_mmu *m, uint32_t app, uint32_t page)
{
    return m->desc.design == MOSAIC_LARGE ||
           (m->desc.design == MOSAIC_MOSAIC && frames_is_large(m->host.frames, app, page));
}

static uint32_t page_key(uint32_t app, uint32_t page, bool large)
{
    return app << APP_SHIFT | (large ? page >> LARGE_SHIFT : page);
}

/* Looks up a key in one level, and writes the cycles. With one page size there is one array. With
 * two page sizes, large entries are looked up first, and base entries only after a miss. */
static bool look_up_key(const struct mosaic_mmu *m, struct mosaic_tlb *base,
                        struct mosaic_tlb *large, uint32_t key, bool is_large_page, uint32_t cycles,
                        uint32_t *out_cycles)
{
    *out_cycles = cycles;
    if (m->desc.design != MOSAIC_MOSAIC)
        return mosaic_tlb_hit(base, key);
    if (is_large_page && mosaic_tlb_hit(large, key))
        return true;
    *out_cycles = 2 * cycles;
    return !is_large_page && mosaic_tlb_hit(base, key);
}

static void fill_key(const struct mosaic_mmu *m, struct mosaic_tlb *base, struct mosaic_tlb *large,
                     uint32_t key, bool is_large_page)
{
    mosaic_tlb_fill(m->desc.design == MOSAIC_MOSAIC && is_large_page ? large : base, key);
}

/* ---- requests ---- */

/* Starts a lookup of the second level, which ends with an event. */
static void start_l2_lookup(struct mosaic_mmu *m, uint32_t core, uint64_t now)
{
    const struct request *r = &m->requests[core];
    const uint32_t port = m->l2_free[0] <= m->l2_free[1] ? 0 : 1;
    const uint64_t start = max(now, m->l2_free[port]);
    uint32_t cycles = 0;
    if (m->desc.l2_base > 0) {
        m->l2_free[port] = start + 1;
        (void)look_up_key(m, m->l2_base, m->l2_large, r->key, r->large, L2_CYCLES, &cycles);
    }
    m->host.post(m->host.arg, core, start + cycles);
}

static void resolve_request(struct mosaic_mmu *m, uint32_t core, uint64_t now)
{
    const struct request *r = &m->requests[core];
    fill_key(m, m->l1_base[core], m->l1_large[core], r->key, r->large);
    m->host.resolved(m->host.arg, core, now);
}

bool mosaic_mmu_translate(struct mosaic_mmu *m, uint32_t core, uint32_t app, uint32_t page,
                          uint64_t now, uint64_t *out_at)
{
    uint32_t cycles;
    m->counts.l1_lookups++;
    if (m->desc.design == MOSAIC_IDEAL) {
        *out_at = now + L1_CYCLES;
        return true;
    }
    const bool large = is_large(m, app, page);
    const uint32_t key = page_key(app, page, large);
    const uint64_t start = max(now, m->l1_free[core]);
    m->l1_free[core] = start + 1;
    const bool hit =
        look_up_key(m, m->l1_base[core], m->l1_large[core], key, large, L1_CYCLES, &cycles);
    *out_at = start + cycles;
    if (hit)
        return true;
    m->counts.l1_misses++;
    m->requests[core] = (struct request){.key = key, .app = app, .page = page, .large = large};
    start_l2_lookup(m, core, *out_at);
    return false;
}

/* ---- walks ---- */

/* Returns the walk that fetches the translation of a request, or NONE. */
static uint32_t find_walk(const struct mosaic_mmu *m, const struct request *r)
{
    for (uint32_t c = 0; c < m->desc.cores; c++) {
        const struct walk *w = &m->walks[c];
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

static uint32_t table_line(uint32_t app, uint32_t page, uint32_t level)
{
    return TABLE_LINES + level * LEVEL_LINES +
           ((app << APP_SHIFT | entry_number(page, level)) >> ENTRIES_OF_LINE_SHIFT);
}

/* Returns the number of levels of a walk. A walk of MOSAIC_LARGE ends at the third level. The walk
 * of a merged page also reads the first entry of the fourth level. */
static uint32_t walk_levels(const struct mosaic_mmu *m)
{
    return m->desc.design == MOSAIC_LARGE ? LEVELS - 1 : LEVELS;
}

static void read_next_level(struct mosaic_mmu *m, uint32_t walk, uint64_t now)
{
    struct walk *w = &m->walks[walk];
    uint32_t page = w->page;
    now += m->desc.walk_cache > 0 ? WALK_CACHE_CYCLES : 0;
    if (w->large && w->level == LEVELS - 1)
        page -= page % FRAMES_PAGES;
    while (w->level + 1u < walk_levels(m)) {
        const uint32_t key =
            w->level * LEVEL_KEYS | w->app << APP_SHIFT | entry_number(page, w->level);
        if (!mosaic_tlb_hit(m->walk_cache, key)) {
            mosaic_tlb_fill(m->walk_cache, key);
            break;
        }
        w->level++;
    }
    const uint64_t at = mosaic_memory_walk(m->host.memory, table_line(w->app, page, w->level), now);
    w->level++;
    m->host.post(m->host.arg, m->desc.cores + walk, at);
}

static void start_walk(struct mosaic_mmu *m, uint32_t core, uint64_t now)
{
    const struct request *r = &m->requests[core];
    m->walks[core] = (struct walk){.key = r->key,
                                   .app = r->app,
                                   .page = r->page,
                                   .active = true,
                                   .large = r->large,
                                   .waiting = NONE};
    m->counts.walks++;
    read_next_level(m, core, now);
}

static void release_waiting(struct mosaic_mmu *m, uint32_t first, uint64_t now)
{
    for (uint32_t c = first; c != NONE; c = m->requests[c].next_of_walk)
        start_l2_lookup(m, c, now);
}

static void end_walk(struct mosaic_mmu *m, uint32_t core, uint64_t now)
{
    struct walk *w = &m->walks[core];
    w->active = false;
    fill_key(m, m->l2_base, m->l2_large, w->key, w->large);
    resolve_request(m, core, now);
    release_waiting(m, w->waiting, now);
}

/* ---- far faults ---- */

static void post_arrival(struct mosaic_mmu *m)
{
    m->host.post(m->host.arg, 2 * m->desc.cores, m->bus->coming[m->bus->first].at);
}

static void start_transfer(struct mosaic_mmu *m, uint16_t *state, double bytes, uint64_t now)
{
    struct bus *b = m->bus;
    const uint32_t place = (b->first + b->count++) % MOSAIC_MAX_FAULTS;
    b->free_at = max(now, b->free_at) + (uint64_t)(bytes * BUS_CYCLES_PER_BYTE + 0.5);
    b->coming[place].state = state;
    b->coming[place].at = b->free_at + (uint64_t)BUS_LATENCY_CYCLES;
    *state = (uint16_t)(COMING + place);
    m->counts.faults++;
    if (b->count == 1)
        post_arrival(m);
}

/* Returns whether the page of a walk is not in memory. Starts the transfer of a missing page,
 * unless the transfer has started already. Other cores that waited for the walk find the fault in
 * their own walks. */
static bool raise_fault(struct mosaic_mmu *m, uint32_t core, uint64_t now)
{
    struct walk *w = &m->walks[core];
    if (!m->bus)
        return false;
    uint16_t *state = &m->bus->state[w->app][w->large ? w->page >> LARGE_SHIFT : w->page];
    if (*state == PRESENT)
        return false;
    if (*state == ABSENT)
        start_transfer(m, state, w->large ? FRAMES_LARGE_BYTES : FRAMES_PAGE_BYTES, now);
    w->active = false;
    m->host.faulted(m->host.arg, core, *state - COMING);
    release_waiting(m, w->waiting, now);
    return true;
}

static void arrival_due(struct mosaic_mmu *m)
{
    struct bus *b = m->bus;
    const uint32_t place = b->first;
    *b->coming[place].state = PRESENT;
    b->first = (b->first + 1) % MOSAIC_MAX_FAULTS;
    if (--b->count > 0)
        post_arrival(m);
    m->host.arrived(m->host.arg, place);
}

static void request_due(struct mosaic_mmu *m, uint32_t core, uint64_t now)
{
    struct request *r = &m->requests[core];
    const uint32_t walk = find_walk(m, r);
    uint32_t cycles;
    if (walk != NONE) {
        r->next_of_walk = m->walks[walk].waiting;
        m->walks[walk].waiting = core;
        return;
    }
    m->counts.l2_lookups++;
    m->counts.l2_large_lookups += r->large;
    if (m->desc.l2_base > 0 &&
        look_up_key(m, m->l2_base, m->l2_large, r->key, r->large, L2_CYCLES, &cycles)) {
        resolve_request(m, core, now);
        return;
    }
    m->counts.l2_misses++;
    m->counts.l2_large_misses += r->large;
    start_walk(m, core, now);
}

void mosaic_mmu_due(struct mosaic_mmu *m, uint32_t what, uint64_t now)
{
    const uint32_t core = what % m->desc.cores;
    if (what < m->desc.cores)
        request_due(m, core, now);
    else if (what == 2 * m->desc.cores)
        arrival_due(m);
    else if (m->walks[core].level < walk_levels(m))
        read_next_level(m, core, now);
    else if (!raise_fault(m, core, now))
        end_walk(m, core, now);
}
