/* mosaic_time.c: see mosaic_time.h. The clock is a wheel of cycles, each with a list of events, and
 * a bit for each list that is not empty. The scheduler is greedy, then oldest. A warp issues the
 * instructions of its gap and one memory instruction, and waits for its lines. The oldest ready
 * warp follows.
 *
 * The memory unit of a core works in order, one line per cycle. While it waits for a translation,
 * the memory instructions of all warps wait behind it, like in the released simulator. So a miss
 * "often stalls many of the warps" (section 3.1).
 */
#include "clients/lab/papers/mosaic/mosaic_time.h"

#include "base/units.h"

#include <stdlib.h>
#include <string.h>

enum { WHEEL = 8192, WORD_BITS = 64, FRAMES_IN_3_GB = 1536, MOST_FRAMES = 65536 };
enum { WARP_COUNT = MOSAIC_CORES * MOSAIC_WARPS };
enum { LINE_SHIFT = 7, PAGE_LINES = FRAMES_PAGE_BYTES >> LINE_SHIFT, SEED = 1 };
static const uint64_t MOST_BYTES = 127 * GIB;
static const uint32_t NONE = UINT32_MAX;

/* A place for a warp of a core. When its warp has ended, the next warp of the core follows. */
struct warp {
    uint32_t next, end; /* records of the warp that are left */
    uint16_t core;
    bool issued;    /* the gap is issued and the memory instruction is next */
    uint64_t ready; /* time at which all lines that were read have arrived */
};

/* The memory instructions of a core, in order. */
struct unit {
    uint32_t warps[MOSAIC_WARPS]; /* a ring */
    uint32_t first, count;        /* the first one is being executed */
    uint32_t lines[RLT_LANES];
    uint32_t line_count, next;
    uint32_t page;    /* page of the previous line; its translation is available at page_at */
    uint64_t page_at; /* UINT64_MAX if there is no page */
    uint64_t free_at; /* time at which the unit accepts the next line */
};

/* A core. Its warps are in the order of their age. */
struct core {
    uint64_t free_at;     /* time at which the next warp may issue */
    uint64_t ready;       /* mask of the ready warps */
    bool busy;            /* a warp is issuing */
    bool waits;           /* the memory unit waits for a translation */
    uint32_t block, warp; /* the next warp of the trace, and its block */
    struct unit unit;
};
_Static_assert(MOSAIC_WARPS <= 64, "a bit for each warp of a core");

struct event {
    uint64_t at;
    uint32_t next;
};

struct clock {
    const struct mosaic_run *run;
    struct mosaic_mmu *mmu;
    struct mosaic_memory *memory;
    struct frames *frames;
    uint32_t running; /* number of places that have a warp */
    struct core cores[MOSAIC_CORES];
    struct warp warps[WARP_COUNT];
    struct event events[WARP_COUNT + 2 * MOSAIC_CORES]; /* events of warps, then of the MMU */
    uint32_t first[WHEEL], last[WHEEL];
    uint64_t used[WHEEL / WORD_BITS];
    uint32_t waiting; /* number of pending events */
    uint64_t now;
    struct mosaic_result *out;
};

/* ---- the wheel ---- */

/* An event beyond the end of the wheel is stored in the last slot and is posted again from
 * there. */
static void post_event(struct clock *c, uint32_t id, uint64_t at)
{
    const uint64_t last = c->now + WHEEL - 1;
    const uint32_t slot = (uint32_t)((at < last ? at : last) % WHEEL);
    c->events[id] = (struct event){at, NONE};
    if (c->first[slot] == NONE)
        c->first[slot] = id;
    else
        c->events[c->last[slot]].next = id;
    c->last[slot] = id;
    c->used[slot / WORD_BITS] |= 1ull << slot % WORD_BITS;
    c->waiting++;
}

/* Moves `now` to the next slot with events. A slot must have events. */
static uint32_t next_slot(struct clock *c)
{
    uint32_t slot = (uint32_t)(c->now % WHEEL);
    uint64_t word = c->used[slot / WORD_BITS] >> slot % WORD_BITS;
    if (word == 0) {
        c->now += WORD_BITS - slot % WORD_BITS;
        slot = (uint32_t)(c->now % WHEEL);
        while (c->used[slot / WORD_BITS] == 0) {
            c->now += WORD_BITS;
            slot = (uint32_t)(c->now % WHEEL);
        }
        word = c->used[slot / WORD_BITS];
    }
    c->now += (uint64_t)__builtin_ctzll(word);
    return (uint32_t)(c->now % WHEEL);
}

static uint32_t pop_event(struct clock *c)
{
    const uint32_t slot = next_slot(c);
    const uint32_t id = c->first[slot];
    c->first[slot] = c->events[id].next;
    if (c->first[slot] == NONE)
        c->used[slot / WORD_BITS] &= ~(1ull << slot % WORD_BITS);
    c->waiting--;
    return id;
}

/* ---- warps ---- */

static void host_post(void *arg, uint32_t what, uint64_t at)
{
    struct clock *c = arg;
    post_event(c, WARP_COUNT + what, at);
}

static void read_line(struct clock *c, struct warp *w, uint32_t line, uint64_t at)
{
    const uint32_t page = frames_page(c->frames, line / PAGE_LINES);
    const uint32_t physical = page * PAGE_LINES + line % PAGE_LINES;
    const uint64_t done = mosaic_memory_read(c->memory, w->core, physical, at);
    w->ready = done > w->ready ? done : w->ready;
}

static void count_instructions(struct clock *c, uint32_t instructions)
{
    c->out->instructions += instructions;
    c->out->cycles = c->now;
}

/* Issues the gap and the memory instruction of the oldest ready warp. The gap occupies the core. */
static void issue_oldest(struct clock *c, uint32_t at)
{
    struct core *core = &c->cores[at];
    core->busy = core->ready != 0;
    if (!core->busy)
        return;
    const uint32_t id = at * MOSAIC_WARPS + (uint32_t)__builtin_ctzll(core->ready);
    const uint32_t gap = c->run->gap;
    const uint64_t start = core->free_at > c->now ? core->free_at : c->now;
    core->ready &= core->ready - 1;
    core->free_at = start + gap + 1;
    c->warps[id].issued = true;
    post_event(c, id, start + gap);
}

/* Puts the next warp of the core into a place. Returns false if no warp is left. The blocks of a
 * program are dealt to its cores in turn. */
static bool next_warp(struct clock *c, struct warp *w)
{
    const struct trace *t = c->run->trace;
    struct core *core = &c->cores[w->core];
    while (core->block < t->block_count && core->warp == t->blocks[core->block].warp_count) {
        core->block += MOSAIC_CORES;
        core->warp = 0;
    }
    if (core->block >= t->block_count)
        return false;
    const struct trace_warp *from = &t->warps[t->blocks[core->block].first_warp + core->warp++];
    w->next = from->first_record;
    w->end = from->first_record + from->record_count;
    return true;
}

static void make_ready(struct clock *c, uint32_t id)
{
    struct warp *w = &c->warps[id];
    struct core *core = &c->cores[w->core];
    if (w->next == w->end && !next_warp(c, w)) {
        c->running--;
        count_instructions(c, 0);
        return;
    }
    core->ready |= 1ull << id % MOSAIC_WARPS;
    if (!core->busy)
        issue_oldest(c, w->core);
}

/* ---- the memory unit ---- */

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Starts the first instruction of the unit. */
static void begin_first(struct clock *c, struct unit *u)
{
    const struct trace *t = c->run->trace;
    struct warp *w = &c->warps[u->warps[u->first]];
    const struct trace_record *r = &t->records[w->next++];
    u->line_count = r->line_count;
    for (uint32_t i = 0; i < r->line_count; i++)
        u->lines[i] =
            (uint32_t)((uint64_t)t->units[r->first_unit + i] << t->unit_shift >> LINE_SHIFT);
    u->next = 0;
    u->page = NONE;
    w->ready = later(w->ready, later(u->free_at, c->now));
}

static void drop_first(struct clock *c, struct unit *u)
{
    u->first = (u->first + 1) % MOSAIC_WARPS;
    if (--u->count > 0)
        begin_first(c, u);
}

/* Reads the lines of the first instruction. Returns false if the unit waits for a translation. */
static bool read_lines(struct clock *c, struct core *core)
{
    struct unit *u = &core->unit;
    struct warp *w = &c->warps[u->warps[u->first]];
    for (; u->next < u->line_count; u->next++) {
        const uint32_t line = u->lines[u->next];
        const uint64_t at = u->free_at > c->now ? u->free_at : c->now;
        if (line / PAGE_LINES != u->page) {
            u->page = line / PAGE_LINES;
            core->waits = !mosaic_mmu_translate(c->mmu, w->core, u->page, at, &u->page_at);
            if (core->waits)
                return false;
        }
        u->free_at = at + 1;
        read_line(c, w, line, u->page_at > at ? u->page_at : at);
    }
    return true;
}

static void run_unit(struct clock *c, struct core *core)
{
    struct unit *u = &core->unit;
    while (u->count > 0 && read_lines(c, core)) {
        post_event(c, u->warps[u->first], c->warps[u->warps[u->first]].ready);
        drop_first(c, u);
    }
}

static void enter_unit(struct clock *c, struct core *core, uint32_t id)
{
    struct unit *u = &core->unit;
    u->warps[(u->first + u->count++) % MOSAIC_WARPS] = id;
    if (u->count == 1)
        begin_first(c, u);
    if (!core->waits)
        run_unit(c, core);
}

static void host_resolved(void *arg, uint32_t core, uint64_t at)
{
    struct clock *c = arg;
    c->cores[core].waits = false;
    c->cores[core].unit.page_at = at;
    run_unit(c, &c->cores[core]);
}

static void access_memory(struct clock *c, uint32_t id)
{
    struct warp *w = &c->warps[id];
    w->issued = false;
    count_instructions(c, c->run->gap + 1);
    enter_unit(c, &c->cores[w->core], id);
    issue_oldest(c, w->core);
}

static void handle_event(struct clock *c, uint32_t id)
{
    if (c->events[id].at > c->now)
        post_event(c, id, c->events[id].at);
    else if (id >= WARP_COUNT)
        mosaic_mmu_due(c->mmu, id - WARP_COUNT, c->now);
    else if (c->warps[id].issued)
        access_memory(c, id);
    else
        make_ready(c, id);
}

/* ---- a run ---- */

/* Returns the page behind a region. */
static uint32_t end_page(const struct trace_region *r)
{
    return (uint32_t)((r->at + r->bytes + FRAMES_PAGE_BYTES - 1) / FRAMES_PAGE_BYTES);
}

/* Allocates the regions of a trace. A page that two regions share belongs to the first. */
static bool allocate_regions(struct frames *f, const struct trace *t)
{
    uint32_t end = 0;
    bool good = true;
    for (uint32_t i = 0; i < t->region_count && good; i++) {
        const struct trace_region *r = &t->regions[i];
        const uint32_t first = (uint32_t)(r->at / FRAMES_PAGE_BYTES);
        const uint32_t start = first > end ? first : end;
        end = end_page(r) > end ? end_page(r) : end;
        good = start >= end || frames_alloc(f, start, end - start);
    }
    return good;
}

/* Returns the memory of a run. Sets *out_full if it has no room for all regions. Returns NULL if
 * out of memory. */
static struct frames *new_memory(const struct mosaic_run *run, bool *out_full)
{
    const struct trace *t = run->trace;
    const uint64_t large = t->bytes / FRAMES_LARGE_BYTES + t->region_count;
    const uint64_t most = later(large + large / 3, FRAMES_IN_3_GB);
    const struct frames_config config = {
        .policy = run->design == MOSAIC_MOSAIC  ? FRAMES_COCOA
                  : run->design == MOSAIC_LARGE ? FRAMES_LARGE
                                                : FRAMES_BASE,
        .frame_count = most < MOST_FRAMES ? (uint32_t)most : MOST_FRAMES,
        .channels = MOSAIC_CHANNELS,
        .pages = (uint32_t)(t->range_bytes / FRAMES_PAGE_BYTES) + FRAMES_PAGES,
        .compact = run->compact,
        .seed = SEED};
    struct frames *f = frames_new(&config);
    if (f && run->occupancy > 0)
        frames_fragment(f, 1, run->occupancy);
    *out_full = f && !allocate_regions(f, t);
    return f;
}

static void start_warps(struct clock *c)
{
    for (uint32_t i = 0; i < MOSAIC_CORES; i++)
        c->cores[i].block = i;
    for (uint32_t i = 0; i < WARP_COUNT; i++) {
        c->warps[i].core = (uint16_t)(i / MOSAIC_WARPS);
        post_event(c, i, 0);
    }
}

static void run_all(struct clock *c)
{
    while (c->waiting > 0 && c->running > 0) {
        const uint32_t id = pop_event(c);
        if (c->run->end > 0 && c->now >= c->run->end)
            break;
        handle_event(c, id);
    }
}

enum status mosaic_time_run(const struct mosaic_run *run, struct mosaic_result *out,
                            struct err *err)
{
    enum status s = STATUS_OK;
    bool full = false;
    if (run->trace->range_bytes > MOST_BYTES)
        return err_set(err, STATUS_NOT_APPLICABLE, "the trace touches more than 127 GiB");
    struct clock *c = calloc(1, sizeof *c);
    if (!c)
        return err_set(err, STATUS_NO_MEMORY, "cannot allocate the simulation: out of memory");
    *out = (struct mosaic_result){0};
    c->run = run;
    c->out = out;
    c->running = WARP_COUNT;
    c->frames = new_memory(run, &full);
    c->memory = mosaic_memory_new(MOSAIC_CORES);
    const struct mosaic_mmu_host host = {.arg = c,
                                         .post = host_post,
                                         .resolved = host_resolved,
                                         .frames = c->frames,
                                         .memory = c->memory};
    c->mmu = mosaic_mmu_new(run->design, MOSAIC_CORES, &host);
    if (full) {
        s = err_set(err, STATUS_NOT_APPLICABLE, "the allocations do not fit into memory");
    } else if (!c->frames || !c->memory || !c->mmu) {
        s = err_set(err, STATUS_NO_MEMORY, "cannot allocate the simulation: out of memory");
    } else {
        memset(c->first, 0xff, sizeof c->first);
        start_warps(c);
        run_all(c);
        out->mmu = mosaic_mmu_count(c->mmu);
        out->frames = frames_count(c->frames);
    }
    mosaic_mmu_free(c->mmu);
    mosaic_memory_free(c->memory);
    frames_free(c->frames);
    free(c);
    return s;
}
