/* mosaic_time.c: see mosaic_time.h. The clock is a wheel of cycles, each with a list of events, and
 * a bit for each list that is not empty. The scheduler is greedy, then oldest. A warp issues the
 * instructions of its gap and one memory instruction, and waits for its lines. The oldest ready
 * warp follows.
 *
 * The memory unit of a core works in order, one line per cycle. While it waits for a translation,
 * the memory instructions of all warps wait behind it, like in the released simulator. So a miss
 * "often stalls many of the warps" (section 3.1). Only the warps that touch a page wait for its
 * transfer over the bus (section 3.2).
 */
#include "clients/lab/papers/mosaic/mosaic_time.h"

#include "base/units.h"

#include <stdlib.h>
#include <string.h>

enum { WHEEL = 8192, WORD_BITS = 64, FRAMES_IN_3_GB = 1536, MOST_FRAMES = 65536, KEEP_PAGES = 256 };
enum { LINE_SHIFT = 7, PAGE_LINES = FRAMES_PAGE_BYTES >> LINE_SHIFT, SEED = 1 };
static const uint64_t MOST_BYTES = 127 * GIB;
static const uint32_t NONE = UINT32_MAX;

/* A place for a warp of a core. When its warp has ended, the next warp of the core follows. */
struct warp {
    uint32_t next, end; /* records of the warp that are left */
    uint16_t app, core;
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

/* The remaining lines of an instruction that waits for the transfer of a page. */
struct parked {
    uint32_t lines[RLT_LANES];
    uint32_t line_count; /* 0 if the warp waits for no page */
    uint32_t next;       /* next warp that waits for the same page */
};
_Static_assert((int)MOSAIC_CORES *(int)MOSAIC_WARPS <= (int)MOSAIC_MAX_FAULTS,
               "each warp waits for at most one page");

struct event {
    uint64_t at;
    uint32_t next;
};

struct clock {
    const struct mosaic_run *run;
    struct mosaic_mmu *mmu;
    struct mosaic_memory *memory;
    struct frames *frames;
    struct warp *warps;
    uint32_t warp_count;
    uint32_t running; /* number of places that have a warp */
    struct core cores[MOSAIC_CORES];
    struct parked *parked;                    /* one per warp; NULL if no page is transferred */
    uint32_t first_parked[MOSAIC_MAX_FAULTS]; /* first waiting warp of each page in transfer */
    struct event *events;                     /* events of warps, then of the MMU */
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
    post_event(c, c->warp_count + what, at);
}

static void read_line(struct clock *c, struct warp *w, uint32_t line, uint64_t at)
{
    const uint32_t page = frames_page(c->frames, w->app, line / PAGE_LINES);
    const uint32_t physical = page * PAGE_LINES + line % PAGE_LINES;
    const uint64_t done = mosaic_memory_read(c->memory, w->core, physical, at);
    w->ready = done > w->ready ? done : w->ready;
}

static void count_instructions(struct clock *c, const struct warp *w, uint32_t instructions)
{
    c->out->instructions[w->app] += instructions;
    c->out->cycles[w->app] = c->now;
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
    const struct trace *t = c->run->apps[w->app];
    struct core *core = &c->cores[w->core];
    while (core->block < t->block_count && core->warp == t->blocks[core->block].warp_count) {
        core->block += c->run->cores[w->app];
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
        count_instructions(c, w, 0);
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

static uint32_t record_lines(const struct trace *t, const struct trace_record *r,
                             uint32_t out[RLT_LANES])
{
    for (uint32_t i = 0; i < r->line_count; i++)
        out[i] = (uint32_t)((uint64_t)t->units[r->first_unit + i] << t->unit_shift >> LINE_SHIFT);
    return r->line_count;
}

/* Starts the first instruction of the unit. Its lines are parked lines or new lines. */
static void begin_first(struct clock *c, struct unit *u)
{
    const uint32_t id = u->warps[u->first];
    struct warp *w = &c->warps[id];
    struct parked *p = c->parked ? &c->parked[id] : NULL;
    if (p && p->line_count > 0) {
        memcpy(u->lines, p->lines, sizeof u->lines);
        u->line_count = p->line_count;
        p->line_count = 0;
    } else {
        const struct trace *t = c->run->apps[w->app];
        u->line_count = record_lines(t, &t->records[w->next++], u->lines);
    }
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
            core->waits = !mosaic_mmu_translate(c->mmu, w->core, w->app, u->page, at, &u->page_at);
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

/* Parks the first instruction of the unit until its page arrives. */
static void host_faulted(void *arg, uint32_t core, uint32_t fault)
{
    struct clock *c = arg;
    struct unit *u = &c->cores[core].unit;
    const uint32_t id = u->warps[u->first];
    struct parked *p = &c->parked[id];
    p->line_count = u->line_count - u->next;
    memcpy(p->lines, u->lines + u->next, p->line_count * sizeof p->lines[0]);
    p->next = c->first_parked[fault];
    c->first_parked[fault] = id;
    c->cores[core].waits = false;
    drop_first(c, u);
    run_unit(c, &c->cores[core]);
}

static void host_arrived(void *arg, uint32_t fault)
{
    struct clock *c = arg;
    uint32_t id = c->first_parked[fault];
    c->first_parked[fault] = NONE;
    while (id != NONE) {
        const uint32_t next = c->parked[id].next;
        enter_unit(c, &c->cores[c->warps[id].core], id);
        id = next;
    }
}

static void access_memory(struct clock *c, uint32_t id)
{
    struct warp *w = &c->warps[id];
    w->issued = false;
    count_instructions(c, w, c->run->gap + 1);
    enter_unit(c, &c->cores[w->core], id);
    issue_oldest(c, w->core);
}

static void handle_event(struct clock *c, uint32_t id)
{
    if (c->events[id].at > c->now)
        post_event(c, id, c->events[id].at);
    else if (id >= c->warp_count)
        mosaic_mmu_due(c->mmu, id - c->warp_count, c->now);
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

/* Allocates the regions of a program. A page that two regions share belongs to the first. */
static bool allocate_regions(struct frames *f, uint32_t app, const struct trace *t)
{
    uint32_t end = 0;
    bool good = true;
    for (uint32_t i = 0; i < t->region_count && good; i++) {
        const struct trace_region *r = &t->regions[i];
        const uint32_t first = (uint32_t)(r->at / FRAMES_PAGE_BYTES);
        const uint32_t start = first > end ? first : end;
        end = end_page(r) > end ? end_page(r) : end;
        good = start >= end || frames_alloc(f, app, start, end - start);
    }
    return good;
}

struct frames *mosaic_time_frames(const struct mosaic_run *run, bool *out_full)
{
    struct frames_config config = {.policy = run->mmu.design == MOSAIC_MOSAIC  ? FRAMES_COCOA
                                             : run->mmu.design == MOSAIC_LARGE ? FRAMES_LARGE
                                                                               : FRAMES_BASE,
                                   .channels = MOSAIC_CHANNELS,
                                   .app_count = run->app_count,
                                   .keep_pages = KEEP_PAGES,
                                   .compact = run->compact,
                                   .seed = run->seed};
    uint64_t frames = 0;
    for (uint32_t a = 0; a < run->app_count; a++) {
        const struct trace *t = run->apps[a];
        const uint32_t pages = (uint32_t)(t->range_bytes / FRAMES_PAGE_BYTES) + FRAMES_PAGES;
        config.app_pages = pages > config.app_pages ? pages : config.app_pages;
        frames += t->bytes / FRAMES_LARGE_BYTES + t->region_count;
    }
    frames += frames / 3;
    frames = frames > FRAMES_IN_3_GB ? frames : FRAMES_IN_3_GB;
    config.frame_count = frames < MOST_FRAMES ? (uint32_t)frames : MOST_FRAMES;
    struct frames *f = frames_new(&config);
    *out_full = false;
    if (!f)
        return NULL;
    if (run->fragmented > 0)
        frames_fragment(f, run->fragmented, run->occupancy);
    for (uint32_t a = 0; a < run->app_count; a++)
        *out_full = !allocate_regions(f, a, run->apps[a]) || *out_full;
    return f;
}

struct mosaic_run mosaic_time_alone(const struct trace *trace, enum mosaic_design design,
                                    uint32_t gap)
{
    return (struct mosaic_run){.mmu = mosaic_mmu_paper(design, MOSAIC_CORES),
                               .app_count = 1,
                               .apps = {trace},
                               .cores = {MOSAIC_CORES},
                               .gap = gap,
                               .compact = true,
                               .seed = SEED};
}

static void start_warps(struct clock *c)
{
    uint32_t core = 0;
    for (uint32_t a = 0; a < c->run->app_count; a++) {
        for (uint32_t k = 0; k < c->run->cores[a]; k++, core++) {
            c->cores[core].block = k;
            for (uint32_t i = 0; i < MOSAIC_WARPS; i++) {
                struct warp *w = &c->warps[core * MOSAIC_WARPS + i];
                w->app = (uint16_t)a;
                w->core = (uint16_t)core;
            }
        }
    }
    for (uint32_t i = 0; i < c->warp_count; i++)
        post_event(c, i, 0);
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

static void collect_result(const struct clock *c)
{
    c->out->mmu = mosaic_mmu_count(c->mmu);
    c->out->frames = frames_count(c->frames);
    c->out->bloat = frames_bloat(c->frames);
}

static enum status check_sizes(const struct mosaic_run *run, struct err *err)
{
    for (uint32_t a = 0; a < run->app_count; a++) {
        if (run->apps[a]->range_bytes > MOST_BYTES)
            return err_set(err, STATUS_NOT_APPLICABLE, "the trace touches more than 127 GiB");
    }
    return STATUS_OK;
}

enum status mosaic_time_run(const struct mosaic_run *run, struct mosaic_result *out,
                            struct err *err)
{
    enum status s = check_sizes(run, err);
    if (s != STATUS_OK)
        return s;
    struct clock *c = calloc(1, sizeof *c);
    if (!c)
        return err_set(err, STATUS_NO_MEMORY, "cannot allocate the simulation: out of memory");
    *out = (struct mosaic_result){0};
    c->run = run;
    c->out = out;
    for (uint32_t a = 0; a < run->app_count; a++)
        c->warp_count += run->cores[a] * MOSAIC_WARPS;
    c->running = c->warp_count;
    c->frames = mosaic_time_frames(run, &out->full);
    c->memory = mosaic_memory_new(MOSAIC_CORES);
    c->warps = calloc(c->warp_count + 1, sizeof *c->warps);
    const struct mosaic_mmu_host host = {.arg = c,
                                         .post = host_post,
                                         .resolved = host_resolved,
                                         .faulted = host_faulted,
                                         .arrived = host_arrived,
                                         .frames = c->frames,
                                         .memory = c->memory};
    if (run->mmu.lazy)
        c->parked = calloc(c->warp_count + 1, sizeof *c->parked);
    c->mmu = c->frames && c->memory ? mosaic_mmu_new(&run->mmu, &host) : NULL;
    if (c->mmu)
        c->events = calloc(c->warp_count + mosaic_mmu_events(c->mmu), sizeof *c->events);
    if (out->full) {
        s = err_set(err, STATUS_NOT_APPLICABLE, "the allocations do not fit into memory");
        goto out;
    }
    if (!c->warps || !c->mmu || !c->events || (run->mmu.lazy && !c->parked)) {
        s = err_set(err, STATUS_NO_MEMORY, "cannot allocate the simulation: out of memory");
        goto out;
    }
    memset(c->first, 0xff, sizeof c->first);
    memset(c->first_parked, 0xff, sizeof c->first_parked);
    start_warps(c);
    run_all(c);
    collect_result(c);
out:
    free(c->events);
    free(c->parked);
    mosaic_mmu_free(c->mmu);
    free(c->warps);
    mosaic_memory_free(c->memory);
    frames_free(c->frames);
    free(c);
    return s;
}
