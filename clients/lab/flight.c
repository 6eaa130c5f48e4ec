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
#include <string.h>

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

struct walk {
    uint64_t entry, page;
    uint64_t ready_ps; /* WAITING: there is no room for it yet */
    uint16_t sm;
    bool filled; /* the entry is there: an earlier walk for it is done */
};

static const uint64_t WAITING = UINT64_MAX;

struct group {
    uint32_t count, started;
    struct walk walks[FLIGHT_MAX_WALKS + REACH_MAX_SMS];
};

struct sm {
    uint64_t at_ps;
    uint64_t memory_ps; /* until which memory works for it */
    size_t next, end;   /* in order[] */
    bool waits;         /* for room for the walk of its next access */
};

struct flying {
    const struct flight *f;
    const struct stream *s;
    struct sim_mmu *mmu;
    uint32_t level_count, entry_shift, page_shift;
    uint64_t walked, server_ps;
    const uint16_t *group_of_sm;
    uint32_t heap_count;
    uint16_t heap[REACH_MAX_SMS]; /* SMs, the earliest first */
    struct sm sms[REACH_MAX_SMS];
    struct group groups[REACH_MAX_SMS];
    uint32_t order[]; /* accesses of the stream, by SM */
};

static void fill(struct group *g, uint64_t entry)
{
    for (uint32_t i = 0; i < g->count; i++)
        g->walks[i].filled = g->walks[i].filled || g->walks[i].entry == entry;
}

static void end_walks(struct group *g, uint64_t now_ps)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < g->count; i++) {
        if (g->walks[i].ready_ps <= now_ps)
            fill(g, g->walks[i].entry);
    }
    for (uint32_t i = 0; i < g->count; i++) {
        if (g->walks[i].ready_ps > now_ps)
            g->walks[kept++] = g->walks[i];
        else
            g->started--;
    }
    g->count = kept;
}

/* A walk for this entry is under way; *same_page: one for the very page. */
static bool is_under_way(const struct group *g, uint64_t entry, uint64_t page, bool *same_page)
{
    bool found = false;
    *same_page = false;
    for (uint32_t i = 0; i < g->count; i++) {
        const struct walk *w = &g->walks[i];
        found = found || (w->entry == entry && !w->filled);
        *same_page = *same_page || (w->page == page && !w->filled);
    }
    return found;
}

static uint64_t first_ready(const struct group *g)
{
    uint64_t first = WAITING;
    for (uint32_t i = 0; i < g->count; i++)
        first = g->walks[i].ready_ps < first ? g->walks[i].ready_ps : first;
    return first;
}

static uint32_t place_of(const struct group *g, uint32_t sm)
{
    uint32_t i = 0;
    while (g->walks[i].ready_ps != WAITING || g->walks[i].sm != sm)
        i++;
    return i;
}

/* Waiting walks get room in the order in which they came. */
static bool has_room(const struct flying *x, uint32_t id, uint32_t place)
{
    const struct group *g = &x->groups[id];
    uint32_t before = g->started;
    for (uint32_t i = 0; i < place; i++)
        before += g->walks[i].ready_ps == WAITING && !g->walks[i].filled;
    return before < x->f->walks[id];
}

static void start_walk(struct flying *x, uint32_t id, uint32_t place, uint64_t now_ps)
{
    struct group *g = &x->groups[id];
    x->server_ps = (x->server_ps > now_ps ? x->server_ps : now_ps) + x->f->walk_ps;
    g->walks[place].ready_ps = x->server_ps + x->f->latency_ps[id];
    g->started++;
    x->walked++;
}

/* The SM goes on, as far as memory lets it. */
static void next(const struct flying *x, struct sm *sm)
{
    const uint64_t ahead = x->f->ahead_ps;
    sm->memory_ps = (sm->memory_ps > sm->at_ps ? sm->memory_ps : sm->at_ps) + x->f->access_ps;
    sm->at_ps += x->f->cycle_ps;
    if (sm->memory_ps > sm->at_ps + ahead)
        sm->at_ps = sm->memory_ps - ahead;
    sm->next++;
}

/* The walk that the next access of this SM needs, at its place; *place is g->count if it needs
 * none: it hits, or joins a walk for its page. */
static void look_up(struct flying *x, uint32_t at, uint32_t *place)
{
    struct group *g = &x->groups[x->group_of_sm[at]];
    const uint64_t va = stream_address(x->s, x->order[x->sms[at].next]);
    const struct walk walk = {va >> x->entry_shift, va >> x->page_shift, WAITING, (uint16_t)at,
                              false};
    const bool missed = sim_mmu_access(x->mmu, at, va) == x->level_count;
    bool joins;
    const bool late = is_under_way(g, walk.entry, walk.page, &joins);
    *place = g->count;
    if ((missed || late) && !joins)
        g->walks[g->count++] = walk;
}

/* One access of this SM, or a wait for room; sets when the SM goes on. */
static void step(struct flying *x, uint32_t at)
{
    struct sm *sm = &x->sms[at];
    const uint32_t id = x->group_of_sm[at];
    struct group *g = &x->groups[id];
    uint32_t place;
    end_walks(g, sm->at_ps);
    if (sm->waits)
        place = place_of(g, at);
    else
        look_up(x, at, &place);
    sm->waits = place < g->count && !g->walks[place].filled && !has_room(x, id, place);
    if (sm->waits) {
        /* Room that is left is for those who came before, and they are due now. */
        sm->at_ps = g->started < x->f->walks[id] ? sm->at_ps + 1 : first_ready(g);
        return;
    }
    if (place < g->count && g->walks[place].filled)
        memmove(&g->walks[place], &g->walks[place + 1], (--g->count - place) * sizeof g->walks[0]);
    else if (place < g->count)
        start_walk(x, id, place, sm->at_ps);
    next(x, sm);
}

/* ---- turns ---- */

/* Those ready at the same time in the order of their positions. */
static bool is_before(const struct flying *x, uint16_t a, uint16_t b)
{
    const uint64_t first = x->sms[a].at_ps;
    const uint64_t second = x->sms[b].at_ps;
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
    x->group_of_sm = last->instance_of_sm;
    while (last->entry_bytes >> (x->entry_shift + 1) > 0)
        x->entry_shift++;
    x->page_shift = f->page_shift;
    queue(x, from, to, machine->sm_count);
    for (uint32_t i = 0; i < machine->sm_count; i++) {
        if (x->sms[i].next < x->sms[i].end)
            x->heap[x->heap_count++] = (uint16_t)i;
    }
    while (x->heap_count > 0) {
        step(x, x->heap[0]);
        if (x->sms[x->heap[0]].next == x->sms[x->heap[0]].end)
            x->heap[0] = x->heap[--x->heap_count];
        sink(x);
    }
    *walks = x->walked;
    free(x);
    return STATUS_OK;
}
