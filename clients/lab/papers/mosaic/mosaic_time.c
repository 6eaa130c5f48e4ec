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

#include <stdlib.h>
#include <string.h>

enum { WHEEL = 8192, WORD_BITS = 64, FRAMES_IN_3_GB = 1536, KEEP_PAGES = 256 };
enum { MOST_ITERATIONS = 1 << 15 }; /* more iterations than a grid needs for the longest array */
static const uint32_t NONE = UINT32_MAX;

struct warp {
    struct gen_warp gen;
    uint16_t app, core;
    bool issued;    /* the gap is issued and the memory instruction is next */
    uint64_t ready; /* time at which all lines that were read have arrived */
};

/* The memory instructions of a core, in order. */
struct unit {
    uint32_t warps[MOSAIC_WARPS]; /* a ring */
    uint32_t first, count;        /* the first one is being executed */
    uint32_t lines[GEN_MAX_LINES];
    uint32_t line_count, next;
    uint32_t page;    /* page of the previous line; its translation is available at page_at */
    uint64_t page_at; /* UINT64_MAX if there is no page */
    uint64_t free_at; /* time at which the unit accepts the next line */
};

/* A core. Its warps are in the order of their age. */
struct core {
    uint64_t free_at; /* time at which the next warp may issue */
    uint64_t ready;   /* mask of the ready warps */
    bool busy;        /* a warp is issuing */
    bool waits;       /* the memory unit waits for a translation */
    struct unit unit;
};
_Static_assert(MOSAIC_WARPS <= 64, "a bit for each warp of a core");

/* The remaining lines of an instruction that waits for the transfer of a page. */
struct parked {
    uint32_t lines[GEN_MAX_LINES];
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
    struct gen_layout layouts[MOSAIC_MAX_APPS];
    struct warp *warps;
    uint32_t warp_count;
    uint32_t running; /* number of warps that have not reached their quota */
    struct core cores[MOSAIC_CORES];
    struct parked *parked;                    /* one per warp; NULL if no page is transferred */
    uint32_t first_parked[MOSAIC_MAX_FAULTS]; /* first waiting warp of each page in transfer */
    struct event *events;                     /* events of warps, then of the MMU */
    uint32_t first[WHEEL], last[WHEEL];
    uint64_t used[WHEEL / WORD_BITS];
    uint32_t waiting; /* number of pending events */
    uint64_t now;
    struct mosaic_result *out;
    struct mosaic_mmu_counts at_warm;
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
    const uint32_t page = frames_page(c->frames, w->app, line / GEN_PAGE_LINES);
    const uint32_t physical = page * GEN_PAGE_LINES + line % GEN_PAGE_LINES;
    const uint64_t done = mosaic_memory_read(c->memory, w->core, physical, at);
    w->ready = done > w->ready ? done : w->ready;
}

static void count_instructions(struct clock *c, const struct warp *w, uint32_t instructions)
{
    if (c->now < c->run->warm)
        return;
    c->out->instructions[w->app] += instructions;
    c->out->cycles[w->app] = c->now - c->run->warm;
}

/* Issues the gap and the memory instruction of the oldest ready warp. The gap occupies the core. */
static void issue_oldest(struct clock *c, uint32_t at)
{
    struct core *core = &c->cores[at];
    core->busy = core->ready != 0;
    if (!core->busy)
        return;
    const uint32_t id = at * MOSAIC_WARPS + (uint32_t)__builtin_ctzll(core->ready);
    const uint32_t gap = c->layouts[c->warps[id].app].app->gap;
    const uint64_t start = core->free_at > c->now ? core->free_at : c->now;
    core->ready &= core->ready - 1;
    core->free_at = start + gap + 1;
    c->warps[id].issued = true;
    post_event(c, id, start + gap);
}

static void make_ready(struct clock *c, uint32_t id)
{
    const struct warp *w = &c->warps[id];
    struct core *core = &c->cores[w->core];
    if (c->run->quota > 0 && w->gen.step == c->run->quota) {
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
        u->line_count = gen_mosaic_next(&c->layouts[w->app], &w->gen, u->lines);
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
        if (line / GEN_PAGE_LINES != u->page) {
            u->page = line / GEN_PAGE_LINES;
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
    count_instructions(c, w, c->layouts[w->app].app->gap + 1u);
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

static bool allocate_array(struct frames *f, const struct gen_layout *l, uint32_t app,
                           uint32_t array)
{
    return array >= l->array_count || frames_alloc(f, app, l->first_page[array], l->pages[array]);
}

struct frames *mosaic_time_frames(const struct mosaic_run *run, struct gen_layout *layouts,
                                  bool *out_full)
{
    struct frames_config config = {.policy = run->mmu.design == MOSAIC_MOSAIC  ? FRAMES_COCOA
                                             : run->mmu.design == MOSAIC_LARGE ? FRAMES_LARGE
                                                                               : FRAMES_BASE,
                                   .frame_count = FRAMES_IN_3_GB,
                                   .channels = MOSAIC_CHANNELS,
                                   .app_count = run->app_count,
                                   .keep_pages = KEEP_PAGES,
                                   .compact = run->compact,
                                   .seed = run->seed};
    for (uint32_t a = 0; a < run->app_count; a++) {
        gen_mosaic_place(gen_mosaic_app(run->apps[a]), run->cores[a] * MOSAIC_WARPS,
                         run->shrink > 0 ? run->shrink : 1, &layouts[a]);
        config.app_pages =
            layouts[a].end_page > config.app_pages ? layouts[a].end_page : config.app_pages;
    }
    struct frames *f = frames_new(&config);
    *out_full = false;
    if (!f)
        return NULL;
    if (run->fragmented > 0)
        frames_fragment(f, run->fragmented, run->occupancy);
    for (uint32_t i = 0; i < GEN_MAX_ARRAYS; i++) {
        for (uint32_t a = 0; a < run->app_count; a++)
            *out_full = !allocate_array(f, &layouts[a], a, i) || *out_full;
    }
    return f;
}

/* Returns the step at which an application begins. A stretch begins anywhere in a run, because no
 * end of an allocation is near the start of all arrays. All designs get the same stretch. A run
 * with a quota begins at step 0. */
static uint32_t first_step(const struct clock *c, uint32_t app)
{
    const struct mosaic_run *run = c->run;
    struct rng rng = {(run->seed << 8 | run->apps[app]) << 8 | run->app_count << 4 | app};
    return run->quota > 0 ? 0 : (uint32_t)rng_below(&rng, MOST_ITERATIONS) * c->layouts[app].loop;
}

/* The blocks of an application are dealt to its cores in turn. */
static void start_warps(struct clock *c)
{
    struct rng rng = {c->run->seed};
    uint32_t core = 0;
    for (uint32_t a = 0; a < c->run->app_count; a++) {
        const uint32_t step = first_step(c, a);
        for (uint32_t k = 0; k < c->run->cores[a]; k++, core++) {
            for (uint32_t i = 0; i < MOSAIC_WARPS; i++) {
                struct warp *w = &c->warps[core * MOSAIC_WARPS + i];
                w->app = (uint16_t)a;
                w->core = (uint16_t)core;
                w->gen.id = (i / GEN_BLOCK_WARPS * c->run->cores[a] + k) * GEN_BLOCK_WARPS +
                            i % GEN_BLOCK_WARPS;
                w->gen.step = step;
                w->gen.rng.state = rng_next(&rng);
            }
        }
    }
    for (uint32_t i = 0; i < c->warp_count; i++)
        post_event(c, i, 0);
}

static void run_all(struct clock *c)
{
    const struct mosaic_run *run = c->run;
    bool warm = false;
    while (c->waiting > 0 && c->running > 0) {
        const uint32_t id = pop_event(c);
        if (run->quota == 0 && c->now >= run->end)
            break;
        if (!warm && c->now >= run->warm) {
            c->at_warm = mosaic_mmu_count(c->mmu);
            warm = true;
        }
        handle_event(c, id);
    }
    for (uint32_t a = 0; a < run->app_count && run->quota == 0; a++)
        c->out->cycles[a] = run->end - run->warm;
}

static void collect_result(const struct clock *c)
{
    const struct mosaic_mmu_counts all = mosaic_mmu_count(c->mmu);
    const struct mosaic_mmu_counts *before = &c->at_warm;
    c->out->mmu = (struct mosaic_mmu_counts){
        .l1_lookups = all.l1_lookups - before->l1_lookups,
        .l1_misses = all.l1_misses - before->l1_misses,
        .l2_lookups = all.l2_lookups - before->l2_lookups,
        .l2_misses = all.l2_misses - before->l2_misses,
        .l2_large_lookups = all.l2_large_lookups - before->l2_large_lookups,
        .l2_large_misses = all.l2_large_misses - before->l2_large_misses,
        .walks = all.walks - before->walks,
        .faults = all.faults - before->faults};
    c->out->frames = frames_count(c->frames);
    c->out->bloat = frames_bloat(c->frames);
}

enum status mosaic_time_run(const struct mosaic_run *run, struct mosaic_result *out,
                            struct err *err)
{
    struct clock *c = calloc(1, sizeof *c);
    enum status s = STATUS_OK;
    if (!c)
        return err_set(err, STATUS_NO_MEMORY, "cannot allocate the simulation: out of memory");
    *out = (struct mosaic_result){0};
    c->run = run;
    c->out = out;
    for (uint32_t a = 0; a < run->app_count; a++)
        c->warp_count += run->cores[a] * MOSAIC_WARPS;
    c->running = c->warp_count;
    c->frames = mosaic_time_frames(run, c->layouts, &out->full);
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
