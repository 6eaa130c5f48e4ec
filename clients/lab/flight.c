/* flight.c: see flight.h. The SMs take turns by time: each has its accesses in a queue and a time
 * at which it is ready for the next; the earliest goes on. The TLBs themselves are those of the
 * counting model, which hold an entry from its first miss on; what is under way is kept beside
 * them.
 */
#include "clients/lab/flight.h"

#include "clients/lab/lab.h"
#include "gpu/sim/sim_mmu.h"

#include <math.h>
#include <stdlib.h>

enum { READ_SEED = 1, KHZ = 1000, KHZ_OF_GHZ = 1000000 };

static const double PS_OF_NS = 1000;
static const uint64_t PS_OF_S = 1000000000000u;

/* ---- parameters ---- */

uint64_t flight_page_bytes(const struct fingerprint *fp, const struct sim_desc *machine)
{
    uint64_t least = machine->levels[0].entry_bytes;
    for (uint32_t i = 0; i < machine->level_count; i++)
        least = machine->levels[i].entry_bytes < least ? machine->levels[i].entry_bytes : least;
    for (uint32_t i = 0; i < fp->level_count; i++) {
        const struct maybe_u64 page = fp->levels[i].page_bytes;
        if (IS_KNOWN(page) && page.v > 0 && page.v < least)
            least = page.v;
    }
    return least;
}

/* The levels before the last miss too. */
static double latency_ns(const struct fingerprint *fp, const struct sim_desc *machine, uint32_t g)
{
    double cycles = fp->topology.groups[g].miss_penalty_cycles.v;
    for (uint32_t i = 0; i + 1 < machine->level_count; i++)
        cycles += machine->levels[i].miss_cycles;
    return cycles * KHZ_OF_GHZ / fp->conditions.sm_clock_khz.v;
}

/* Misses of a group at a time: misses per ns, alone beyond its reach, times ns of one. */
static double walks_of(const struct fingerprint *fp, const struct sim_desc *machine, uint32_t g,
                       double share)
{
    const double reads = fp->topology.groups[g].beyond_gbps.v / FINGERPRINT_CURVE_BYTES;
    return reads * share * latency_ns(fp, machine, g);
}

static bool has_all(const struct fingerprint *fp, const struct sim_desc *machine)
{
    const uint32_t count = fp->topology.partition.group_count;
    if (!IS_KNOWN(fp->conditions.sm_clock_khz) || fp->conditions.sm_clock_khz.v == 0 ||
        count != machine->levels[machine->level_count - 1].instance_count)
        return false;
    for (uint32_t g = 0; g < count; g++) {
        const struct sm_group *group = &fp->topology.groups[g];
        if (!IS_KNOWN(group->miss_penalty_cycles) || !(group->miss_penalty_cycles.v > 0) ||
            !IS_KNOWN(group->beyond_gbps) || !(group->beyond_gbps.v > 0))
            return false;
    }
    return count > 0;
}

bool flight_of(const struct fingerprint *fp, const struct sim_desc *machine,
               const struct flight_job *job, struct flight *out)
{
    const uint64_t page = flight_page_bytes(fp, machine);
    /* Over which region the groups were read alone: methods.md. */
    const uint64_t twice = 2 * fp->windows.reach_bytes.v;
    struct lab_reads reads = {.seed = READ_SEED,
                              .region_bytes =
                                  twice < fp->gpu.memory_bytes ? twice : fp->gpu.memory_bytes};
    struct lab_misses m;
    struct err err;
    if (!has_all(fp, machine) || lab_count_reads(machine, &reads, &m, &err) != STATUS_OK ||
        !(m.walked > 0))
        return false;
    *out = (struct flight){.walk_ps = (uint64_t)llround(job->miss_ns * PS_OF_NS),
                           .access_ps =
                               (uint64_t)llround(job->access_ns * machine->sm_count * PS_OF_NS)};
    out->cycle_ps = PS_OF_S / KHZ / fp->conditions.sm_clock_khz.v;
    out->ahead_ps = job->loads_in_flight * out->access_ps;
    while (page >> (out->page_shift + 1) > 0)
        out->page_shift++;
    for (uint32_t g = 0; g < fp->topology.partition.group_count; g++) {
        const double walks = walks_of(fp, machine, g, m.walked);
        out->latency_ps[g] = (uint64_t)llround(latency_ns(fp, machine, g) * PS_OF_NS);
        out->walks[g] = walks < 1                  ? 1
                        : walks > FLIGHT_MAX_WALKS ? FLIGHT_MAX_WALKS
                                                   : (uint32_t)lround(walks);
    }
    return true;
}

/* ---- what is under way ---- */

static const uint64_t NEVER = UINT64_MAX;

/* Walks, or SMs that wait for room for theirs, first come first. */
struct walks {
    uint32_t count;
    uint32_t entry[REACH_MAX_SMS], page[REACH_MAX_SMS];
    uint64_t ready_ps[REACH_MAX_SMS]; /* of a walk */
    uint16_t sm[REACH_MAX_SMS];       /* that waits */
    bool filled[REACH_MAX_SMS];       /* the entry is there: an earlier walk for it is done */
};

struct group {
    uint64_t at_ps;    /* when the first of its SMs goes on */
    uint64_t ready_ps; /* when the first of its walks is done */
    uint32_t sm_count;
    uint16_t sms[REACH_MAX_SMS];
    struct walks walks, waiting;
};

struct sm {
    uint64_t at_ps;     /* NEVER: it waits behind another, or is done */
    uint64_t memory_ps; /* until which memory works for it */
    size_t next, end;   /* in order[] */
    bool waits;         /* for room for the walk of its next access */
};

struct flying {
    const struct flight *f;
    const struct stream *s;
    struct sim_mmu *mmu;
    uint32_t level_count, entry_shift;
    uint64_t walked, server_ps;
    uint32_t heap_count;
    uint16_t heap[REACH_MAX_SMS]; /* groups, the earliest first */
    struct sm sms[REACH_MAX_SMS];
    struct group groups[REACH_MAX_SMS];
    uint32_t order[]; /* accesses of the stream, by SM */
};

static void add_walk(struct walks *w, uint32_t entry, uint32_t page)
{
    w->entry[w->count] = entry;
    w->page[w->count] = page;
    w->filled[w->count++] = false;
}

static void fill(struct walks *w, uint32_t entry)
{
    for (uint32_t i = 0; i < w->count; i++)
        w->filled[i] = w->filled[i] || w->entry[i] == entry;
}

/* One for this entry is under way; *same_page: one for the very page. */
static bool has_entry(const struct walks *w, uint32_t entry, uint32_t page, bool *same_page)
{
    bool found = false;
    for (uint32_t i = 0; i < w->count; i++) {
        const bool same = w->entry[i] == entry && !w->filled[i];
        found = found || same;
        *same_page = *same_page || (same && w->page[i] == page);
    }
    return found;
}

static void set_first_ready(struct group *g)
{
    g->ready_ps = NEVER;
    for (uint32_t i = 0; i < g->walks.count; i++)
        g->ready_ps = g->walks.ready_ps[i] < g->ready_ps ? g->walks.ready_ps[i] : g->ready_ps;
}

/* The first that waits goes on as soon as there is room. */
static void call_first(struct flying *x, const struct group *g, uint32_t id, uint64_t now_ps)
{
    if (g->waiting.count > 0)
        x->sms[g->waiting.sm[0]].at_ps = g->walks.count < x->f->walks[id] ? now_ps : g->ready_ps;
}

/* Those whose entry is there go on at once. */
static void end_walks(struct flying *x, struct group *g, uint32_t id, uint64_t now_ps)
{
    struct walks *w = &g->walks;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < w->count; i++) {
        if (w->ready_ps[i] <= now_ps) {
            fill(w, w->entry[i]);
            fill(&g->waiting, w->entry[i]);
        }
    }
    for (uint32_t i = 0; i < w->count; i++) {
        if (w->ready_ps[i] <= now_ps)
            continue;
        w->entry[kept] = w->entry[i];
        w->page[kept] = w->page[i];
        w->filled[kept] = w->filled[i];
        w->ready_ps[kept++] = w->ready_ps[i];
    }
    w->count = kept;
    set_first_ready(g);
    for (uint32_t i = 0; i < g->waiting.count; i++) {
        if (g->waiting.filled[i])
            x->sms[g->waiting.sm[i]].at_ps = now_ps;
    }
    call_first(x, g, id, now_ps);
}

static void start_walk(struct flying *x, struct group *g, uint32_t id, uint64_t va, uint64_t now_ps)
{
    struct walks *w = &g->walks;
    x->server_ps = (x->server_ps > now_ps ? x->server_ps : now_ps) + x->f->walk_ps;
    w->ready_ps[w->count] = x->server_ps + x->f->latency_ps[id];
    g->ready_ps = w->ready_ps[w->count] < g->ready_ps ? w->ready_ps[w->count] : g->ready_ps;
    add_walk(w, (uint32_t)(va >> x->entry_shift), (uint32_t)(va >> x->f->page_shift));
    x->walked++;
}

/* Takes the SM out of those that wait; true if it still needs its walk. */
static bool stop_waiting(struct walks *w, uint32_t sm)
{
    uint32_t i = 0;
    while (w->sm[i] != sm)
        i++;
    const bool needed = !w->filled[i];
    for (w->count--; i < w->count; i++) {
        w->entry[i] = w->entry[i + 1];
        w->page[i] = w->page[i + 1];
        w->sm[i] = w->sm[i + 1];
        w->filled[i] = w->filled[i + 1];
    }
    return needed;
}

/* The access needs a walk of its own: no entry is there, and no walk for its page is under way. */
static bool needs_walk(struct flying *x, const struct group *g, uint32_t sm, uint64_t va)
{
    const uint32_t entry = (uint32_t)(va >> x->entry_shift);
    const uint32_t page = (uint32_t)(va >> x->f->page_shift);
    const bool missed = sim_mmu_access(x->mmu, sm, va) == x->level_count;
    bool joins = false;
    bool late = has_entry(&g->walks, entry, page, &joins);
    late = has_entry(&g->waiting, entry, page, &joins) || late;
    return (missed || late) && !joins;
}

/* The SM goes on, as far as memory lets it. */
static void go_on(const struct flying *x, struct sm *sm)
{
    const uint64_t ahead_ps = x->f->ahead_ps;
    sm->memory_ps = (sm->memory_ps > sm->at_ps ? sm->memory_ps : sm->at_ps) + x->f->access_ps;
    sm->at_ps += x->f->cycle_ps;
    if (sm->memory_ps > sm->at_ps + ahead_ps)
        sm->at_ps = sm->memory_ps - ahead_ps;
    if (++sm->next == sm->end)
        sm->at_ps = NEVER;
}

/* One access of this SM, or a wait for room; sets when the SM goes on. */
static void step(struct flying *x, struct group *g, uint32_t id, uint32_t at)
{
    struct sm *sm = &x->sms[at];
    const uint64_t now_ps = sm->at_ps;
    const uint64_t va = stream_address(x->s, x->order[sm->next]);
    const bool waited = sm->waits;
    bool needs;
    if (now_ps >= g->ready_ps)
        end_walks(x, g, id, now_ps);
    needs = waited ? stop_waiting(&g->waiting, at) : needs_walk(x, g, at, va);
    /* Only the first in the queue is woken, so an SM that waited need not look at the queue. */
    sm->waits = needs && (g->walks.count >= x->f->walks[id] || (!waited && g->waiting.count > 0));
    if (sm->waits) {
        g->waiting.sm[g->waiting.count] = (uint16_t)at;
        add_walk(&g->waiting, (uint32_t)(va >> x->entry_shift), (uint32_t)(va >> x->f->page_shift));
        sm->at_ps = NEVER;
        call_first(x, g, id, now_ps);
        return;
    }
    if (needs)
        start_walk(x, g, id, va, now_ps);
    go_on(x, sm);
    if (waited)
        call_first(x, g, id, now_ps);
}

/* ---- turns ---- */

/* Of SMs and groups ready at the same time the one with the lower position. */
static uint32_t first_of(const struct flying *x, const struct group *g)
{
    uint32_t first = g->sms[0];
    for (uint32_t i = 1; i < g->sm_count; i++)
        first = x->sms[g->sms[i]].at_ps < x->sms[first].at_ps ? g->sms[i] : first;
    return first;
}

static bool is_before(const struct flying *x, uint16_t a, uint16_t b)
{
    const uint64_t first = x->groups[a].at_ps;
    const uint64_t second = x->groups[b].at_ps;
    return first < second || (first == second && a < b);
}

/* The root of the heap has become later. */
static void sink(struct flying *x)
{
    const uint16_t moved = x->heap[0];
    uint32_t at = 0;
    for (uint32_t child = 1; child < x->heap_count; child = 2 * at + 1) {
        if (child + 1 < x->heap_count && is_before(x, x->heap[child + 1], x->heap[child]))
            child++;
        if (is_before(x, moved, x->heap[child]))
            break;
        x->heap[at] = x->heap[child];
        at = child;
    }
    x->heap[at] = moved;
}

static void run(struct flying *x)
{
    while (x->heap_count > 0) {
        const uint32_t id = x->heap[0];
        struct group *g = &x->groups[id];
        step(x, g, id, first_of(x, g));
        g->at_ps = x->sms[first_of(x, g)].at_ps;
        if (g->at_ps == NEVER)
            x->heap[0] = x->heap[--x->heap_count];
        sink(x);
    }
}

/* The accesses that ask for a translation, by SM in the order of the stream. */
static void queue(struct flying *x, size_t from, size_t to, uint32_t sm_count)
{
    size_t at = 0;
    for (uint32_t i = 0; i < sm_count; i++)
        x->sms[i] = (struct sm){0};
    for (size_t i = from; i < to; i++)
        x->sms[x->s->sms[i]].end += !(x->s->classes[i] & STREAM_SHARED);
    for (uint32_t i = 0; i < sm_count; i++) {
        x->sms[i].next = at;
        at += x->sms[i].end;
        x->sms[i].end = x->sms[i].next;
    }
    for (size_t i = from; i < to; i++) {
        if (!(x->s->classes[i] & STREAM_SHARED))
            x->order[x->sms[x->s->sms[i]].end++] = (uint32_t)i;
    }
}

/* All start at 0, so any order of the groups is a heap. */
static void set_groups(struct flying *x, const struct sim_desc *machine,
                       const struct sim_level *last)
{
    for (uint32_t i = 0; i < machine->sm_count; i++) {
        struct group *g = &x->groups[last->instance_of_sm[i]];
        if (x->sms[i].next < x->sms[i].end)
            g->sms[g->sm_count++] = (uint16_t)i;
    }
    for (uint32_t i = 0; i < last->instance_count; i++) {
        x->groups[i].ready_ps = NEVER;
        if (x->groups[i].sm_count > 0)
            x->heap[x->heap_count++] = (uint16_t)i;
    }
}

enum status flight_count(const struct flight *f, const struct sim_desc *machine,
                         struct sim_mmu *mmu, const struct stream *s, size_t from, size_t to,
                         uint64_t *walks, struct err *err)
{
    const struct sim_level *last = &machine->levels[machine->level_count - 1];
    struct flying *x = calloc(1, sizeof *x + s->count * sizeof x->order[0]);
    if (!x)
        return err_set(err, STATUS_NO_MEMORY, "no memory for %zu accesses: sample fewer warps",
                       s->count);
    x->f = f;
    x->s = s;
    x->mmu = mmu;
    x->level_count = machine->level_count;
    while (last->entry_bytes >> (x->entry_shift + 1) > 0)
        x->entry_shift++;
    queue(x, from, to, machine->sm_count);
    set_groups(x, machine, last);
    run(x);
    *walks = x->walked;
    free(x);
    return STATUS_OK;
}
