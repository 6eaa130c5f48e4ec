/* miss_queue.c: see miss_queue.h. Each SM issues its accesses in order and has a time for the next
 * access. The SM with the earliest time issues first. The TLBs follow the counting model: an entry
 * is present after its first miss. Pending walks are kept in separate lists.
 */
#include "clients/lab/whatif/miss_queue.h"

#include "clients/lab/whatif/random_reads.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* An SM reads its units in order. A processor prefetches fewer streams than there are SMs. */
enum { READ_SEED = 1, KHZ = 1000, KHZ_OF_GHZ = 1000000, UNITS_AHEAD = 16 };

static const double PS_OF_NS = 1000;
static const uint64_t PS_OF_S = 1000000000000u;

/* ---- parameters ---- */

uint64_t miss_queue_page_bytes(const struct fingerprint *fp, const struct sim_desc *machine)
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

/* The latency includes the misses of the levels before the last. */
static double latency_ns(const struct fingerprint *fp, const struct sim_desc *machine, uint32_t g)
{
    double cycles = fp->topology.groups[g].miss_penalty_cycles.v;
    for (uint32_t i = 0; i + 1 < machine->level_count; i++)
        cycles += machine->levels[i].miss_cycles;
    return cycles * KHZ_OF_GHZ / fp->conditions.sm_clock_khz.v;
}

/* Returns the misses of a group in flight: latency times the misses per ns of the group alone out
 * of its reach. */
static double misses_in_flight(const struct fingerprint *fp, const struct sim_desc *machine,
                               uint32_t g, double share)
{
    const double reads = fp->topology.groups[g].beyond_gbps.v / FINGERPRINT_CURVE_BYTES;
    return reads * share * latency_ns(fp, machine, g);
}

static bool has_group_speeds(const struct fingerprint *fp, const struct sim_desc *machine)
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

bool miss_queue_from_fingerprint(const struct fingerprint *fp, const struct sim_desc *machine,
                                 const struct miss_queue_job *job, struct miss_queue *out)
{
    const uint64_t page = miss_queue_page_bytes(fp, machine);
    /* Each group was read alone over a region of this size (docs/methods.md). */
    const uint64_t twice = 2 * fp->windows.reach_bytes.v;
    struct random_reads reads = {.seed = READ_SEED,
                                 .region_bytes =
                                     twice < fp->gpu.memory_bytes ? twice : fp->gpu.memory_bytes};
    if (!has_group_speeds(fp, machine) ||
        random_reads_share(machine, &reads, job->beyond_walks, NULL) != STATUS_OK ||
        !(*job->beyond_walks > 0))
        return false;
    *out = (struct miss_queue){
        .walk_ps = (uint64_t)llround(job->miss_ns * PS_OF_NS),
        .access_ps = (uint64_t)llround(job->access_ns * machine->sm_count * PS_OF_NS)};
    out->cycle_ps = PS_OF_S / KHZ / fp->conditions.sm_clock_khz.v;
    out->ahead_ps = job->loads_in_flight * out->access_ps;
    while (page >> (out->page_shift + 1) > 0)
        out->page_shift++;
    for (uint32_t g = 0; g < fp->topology.partition.group_count; g++) {
        const double walks = misses_in_flight(fp, machine, g, *job->beyond_walks);
        out->latency_ps[g] = (uint64_t)llround(latency_ns(fp, machine, g) * PS_OF_NS);
        out->walks[g] = walks < 1                      ? 1
                        : walks > MISS_QUEUE_MAX_WALKS ? MISS_QUEUE_MAX_WALKS
                                                       : (uint32_t)lround(walks);
    }
    return true;
}

/* ---- pending walks ---- */

static const uint64_t NEVER = UINT64_MAX;
static const uint32_t FILLED = UINT32_MAX; /* no entry has this number */

enum { FILTER_SLOTS = 1024 }; /* a power of two */

/* Pending walks of a group, or stalled SMs of a group, in order of arrival. The walks of a group
 * take the same time, so they also end in this order. */
struct walk_list {
    uint32_t count;
    uint32_t entry[REACH_MAX_SMS]; /* FILLED if an earlier walk of the entry is done */
    uint32_t page[REACH_MAX_SMS];
    uint64_t ready_ps[REACH_MAX_SMS]; /* end of the pending walk */
    uint16_t sm[REACH_MAX_SMS];       /* SM that waits for a slot */
};

struct group {
    uint64_t ready_ps; /* time at which the first pending walk ends */
    uint32_t first;    /* position of the SM that issues next */
    uint32_t sm_count;
    uint16_t sms[REACH_MAX_SMS];     /* by position */
    uint64_t next_ps[REACH_MAX_SMS]; /* time of the next access of each SM, by position; NEVER if it
                                        waits behind another SM or is done */
    struct walk_list walks, waiting;
    uint16_t listed[FILTER_SLOTS]; /* number of elements of both lists, by the hash of the entry */
};

struct sm {
    uint64_t memory_ps; /* time at which memory is done with its accesses */
    size_t next, end;   /* range of its remaining accesses in units[] */
    uint32_t position;  /* in its group */
    bool is_stalled;    /* its next access waits for a slot for a walk */
};

/* The time at which the first SM of a group issues. */
struct turn {
    uint64_t at_ps;
    uint32_t group;
};

struct simulation {
    const struct miss_queue *queue;
    const struct stream *s;
    struct sim_mmu *mmu;
    uint32_t level_count, entry_shift;
    uint64_t walked;
    uint64_t walk_ps;   /* time between two walks of the groups that make accesses */
    uint64_t server_ps; /* time at which the walker of the GPU is free */
    uint32_t heap_count;
    struct turn heap[REACH_MAX_SMS]; /* the earliest turn is the root */
    struct sm sms[REACH_MAX_SMS];
    struct group *groups;
    uint32_t *units; /* units of the accesses, sorted by SM */
};

static uint16_t *listed(struct group *g, uint32_t entry)
{
    return &g->listed[entry % FILTER_SLOTS];
}

static void add_walk(struct group *g, struct walk_list *w, uint32_t entry, uint32_t page)
{
    w->entry[w->count] = entry;
    w->page[w->count++] = page;
    ++*listed(g, entry);
}

static void mark_filled(struct group *g, struct walk_list *w, uint32_t entry)
{
    for (uint32_t i = 0; i < w->count; i++) {
        if (w->entry[i] == entry) {
            w->entry[i] = FILLED;
            --*listed(g, entry);
        }
    }
}

/* Returns whether a walk of the entry is pending. Sets *same_page if a pending walk is of the same
 * page. */
static bool is_pending(const struct walk_list *w, uint32_t entry, uint32_t page, bool *same_page)
{
    bool found = false;
    for (uint32_t i = 0; i < w->count; i++) {
        if (w->entry[i] != entry)
            continue;
        found = true;
        *same_page = *same_page || w->page[i] == page;
    }
    return found;
}

static uint64_t *sm_next_ps(const struct simulation *x, struct group *g, uint32_t sm)
{
    return &g->next_ps[x->sms[sm].position];
}

/* Lets the first stalled SM issue as soon as a slot is free. */
static void wake_first(struct simulation *x, struct group *g, uint32_t id, uint64_t now_ps)
{
    if (g->waiting.count > 0)
        *sm_next_ps(x, g, g->waiting.sm[0]) =
            g->walks.count < x->queue->walks[id] ? now_ps : g->ready_ps;
}

/* Removes the walks that are done. Stalled SMs whose entry is filled then issue at once. */
static void end_walks(struct simulation *x, struct group *g, uint32_t id, uint64_t now_ps)
{
    struct walk_list *w = &g->walks;
    uint32_t done = 0;
    for (; done < w->count && w->ready_ps[done] <= now_ps; done++) {
        const uint32_t entry = w->entry[done];
        if (entry == FILLED)
            continue;
        mark_filled(g, w, entry);
        mark_filled(g, &g->waiting, entry);
    }
    w->count -= done;
    memmove(w->entry, w->entry + done, w->count * sizeof w->entry[0]);
    memmove(w->page, w->page + done, w->count * sizeof w->page[0]);
    memmove(w->ready_ps, w->ready_ps + done, w->count * sizeof w->ready_ps[0]);
    g->ready_ps = w->count > 0 ? w->ready_ps[0] : NEVER;
    for (uint32_t i = 0; i < g->waiting.count; i++) {
        if (g->waiting.entry[i] == FILLED)
            *sm_next_ps(x, g, g->waiting.sm[i]) = now_ps;
    }
    wake_first(x, g, id, now_ps);
}

static void start_walk(struct simulation *x, struct group *g, uint32_t id, uint64_t va,
                       uint64_t now_ps)
{
    struct walk_list *w = &g->walks;
    x->server_ps = (x->server_ps > now_ps ? x->server_ps : now_ps) + x->walk_ps;
    w->ready_ps[w->count] = x->server_ps + x->queue->latency_ps[id];
    g->ready_ps = w->ready_ps[w->count] < g->ready_ps ? w->ready_ps[w->count] : g->ready_ps;
    add_walk(g, w, (uint32_t)(va >> x->entry_shift), (uint32_t)(va >> x->queue->page_shift));
    x->walked++;
}

/* Removes an SM from the list of stalled SMs. Returns whether its access still needs a walk. */
static bool end_stall(struct group *g, uint32_t sm)
{
    struct walk_list *w = &g->waiting;
    uint32_t i = 0;
    while (w->sm[i] != sm)
        i++;
    const bool needed = w->entry[i] != FILLED;
    if (needed)
        --*listed(g, w->entry[i]);
    for (w->count--; i < w->count; i++) {
        w->entry[i] = w->entry[i + 1];
        w->page[i] = w->page[i + 1];
        w->sm[i] = w->sm[i + 1];
    }
    return needed;
}

/* Returns whether the access needs its own walk. It does if the entry is absent or pending, and no
 * walk of the same page is pending. */
static bool needs_walk(struct simulation *x, struct group *g, uint32_t sm, uint64_t va)
{
    const uint32_t entry = (uint32_t)(va >> x->entry_shift);
    const uint32_t page = (uint32_t)(va >> x->queue->page_shift);
    const bool missed = sim_mmu_access(x->mmu, sm, va) == x->level_count;
    bool joins = false;
    if (*listed(g, entry) == 0)
        return missed;
    bool pending = is_pending(&g->walks, entry, page, &joins);
    pending = is_pending(&g->waiting, entry, page, &joins) || pending;
    return (missed || pending) && !joins;
}

/* Advances the SM by one access. It may be ahead of memory by at most ahead_ps. */
static void advance_sm(const struct simulation *x, struct sm *sm, uint64_t *at_ps)
{
    const uint64_t ahead_ps = x->queue->ahead_ps;
    sm->memory_ps = (sm->memory_ps > *at_ps ? sm->memory_ps : *at_ps) + x->queue->access_ps;
    *at_ps += x->queue->cycle_ps;
    if (sm->memory_ps > *at_ps + ahead_ps)
        *at_ps = sm->memory_ps - ahead_ps;
    __builtin_prefetch(&x->units[sm->next + UNITS_AHEAD]);
    if (++sm->next == sm->end)
        *at_ps = NEVER;
}

/* Issues the next access of an SM or stalls it, and sets when the SM issues next. */
static void issue_access(struct simulation *x, struct group *g, uint32_t id)
{
    const uint32_t at = g->sms[g->first];
    struct sm *sm = &x->sms[at];
    uint64_t *next_ps = &g->next_ps[g->first];
    const uint64_t now_ps = *next_ps;
    const uint64_t va = (uint64_t)x->units[sm->next] << x->s->unit_shift;
    const bool was_stalled = sm->is_stalled;
    bool needs;
    if (now_ps >= g->ready_ps)
        end_walks(x, g, id, now_ps);
    needs = was_stalled ? end_stall(g, at) : needs_walk(x, g, at, va);
    /* Only the first stalled SM is woken, so it does not compete with other stalled SMs. */
    sm->is_stalled =
        needs && (g->walks.count >= x->queue->walks[id] || (!was_stalled && g->waiting.count > 0));
    if (sm->is_stalled) {
        g->waiting.sm[g->waiting.count] = (uint16_t)at;
        add_walk(g, &g->waiting, (uint32_t)(va >> x->entry_shift),
                 (uint32_t)(va >> x->queue->page_shift));
        *next_ps = NEVER;
        wake_first(x, g, id, now_ps);
        return;
    }
    if (needs)
        start_walk(x, g, id, va, now_ps);
    advance_sm(x, sm, next_ps);
    if (was_stalled)
        wake_first(x, g, id, now_ps);
}

/* ---- turns ---- */

/* Returns the position of the SM that issues next. The lowest position wins ties. */
static uint32_t first_position(const struct group *g)
{
    uint32_t first = 0;
    uint64_t first_ps = g->next_ps[0];
    for (uint32_t i = 1; i < g->sm_count; i++) {
        first = g->next_ps[i] < first_ps ? i : first;
        first_ps = g->next_ps[i] < first_ps ? g->next_ps[i] : first_ps;
    }
    return first;
}

static bool is_before(struct turn a, struct turn b)
{
    return a.at_ps < b.at_ps || (a.at_ps == b.at_ps && a.group < b.group);
}

/* Restores the heap after its root has become later. */
static void sift_down(struct simulation *x)
{
    const struct turn moved = x->heap[0];
    uint32_t at = 0;
    for (uint32_t child = 1; child < x->heap_count; child = 2 * at + 1) {
        if (child + 1 < x->heap_count && is_before(x->heap[child + 1], x->heap[child]))
            child++;
        if (is_before(moved, x->heap[child]))
            break;
        x->heap[at] = x->heap[child];
        at = child;
    }
    x->heap[at] = moved;
}

static void run_simulation(struct simulation *x)
{
    while (x->heap_count > 0) {
        const uint32_t id = x->heap[0].group;
        struct group *g = &x->groups[id];
        issue_access(x, g, id);
        g->first = first_position(g);
        x->heap[0].at_ps = g->next_ps[g->first];
        if (x->heap[0].at_ps == NEVER)
            x->heap[0] = x->heap[--x->heap_count];
        sift_down(x);
    }
}

/* Sorts the accesses that need a translation by SM. The sort is stable. */
static void sort_by_sm(struct simulation *x, size_t from, size_t to, uint32_t sm_count)
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
            x->units[x->sms[x->s->sms[i]].end++] = x->s->units[i];
    }
}

/* All groups start at time 0, so any order of the groups is a heap. */
static void set_groups(struct simulation *x, const struct sim_desc *machine,
                       const struct sim_level *last)
{
    for (uint32_t i = 0; i < machine->sm_count; i++) {
        struct group *g = &x->groups[last->instance_of_sm[i]];
        if (x->sms[i].next == x->sms[i].end)
            continue;
        x->sms[i].position = g->sm_count;
        g->sms[g->sm_count++] = (uint16_t)i;
    }
    for (uint32_t i = 0; i < last->instance_count; i++) {
        x->groups[i].ready_ps = NEVER;
        if (x->groups[i].sm_count > 0)
            x->heap[x->heap_count++].group = i;
    }
}

enum status miss_queue_count(const struct miss_queue *q, const struct sim_desc *machine,
                             struct sim_mmu *mmu, const struct stream *s, size_t from, size_t to,
                             uint64_t *walks, struct err *err)
{
    const struct sim_level *last = &machine->levels[machine->level_count - 1];
    struct simulation *x = calloc(1, sizeof *x);
    struct group *groups = calloc(last->instance_count, sizeof *groups);
    uint32_t *units = malloc((to - from) * sizeof *units);
    enum status status = STATUS_OK;
    if (!x || !groups || !units) {
        status =
            err_set(err, STATUS_NO_MEMORY,
                    "cannot allocate %zu accesses: out of memory; sample fewer warps", s->count);
        goto out;
    }
    x->groups = groups;
    x->units = units;
    x->queue = q;
    x->s = s;
    x->mmu = mmu;
    x->walk_ps = q->walk_ps * last->instance_count /
                 (s->group_count > 0 ? s->group_count : last->instance_count);
    x->level_count = machine->level_count;
    while (last->entry_bytes >> (x->entry_shift + 1) > 0)
        x->entry_shift++;
    sort_by_sm(x, from, to, machine->sm_count);
    set_groups(x, machine, last);
    run_simulation(x);
    *walks = x->walked;
out:
    free(units);
    free(groups);
    free(x);
    return status;
}
