/* l1_queue.c: see l1_queue.h. The data cache accepts one line at a time, and a line that misses
 * waits for a free miss register. */
#include "clients/lab/papers/engine/l1_queue.h"

/* Schedules the end of the warp's instruction if no line and no walk is pending. */
static void complete_if_ready(struct lab_core *c, uint32_t warp)
{
    const struct lab_warp *w = &c->warps[warp];
    if (w->queued_lines == 0 && !w->walking)
        lab_events_push(&c->events, w->ready, lab_event_code(LAB_WARP_READY, warp));
}

static void report_line_miss(struct lab_core *c, const struct lab_line *l, uint64_t at)
{
    struct lab_locality_state *s = c->locality;
    const uint32_t x = c->machine->sched.miss_weight;
    if (s && c->machine->sched.locality == LAB_OF_LINES)
        lab_locality_missed(s, l->warp, l->line, l->page_missed && x > 0 ? x : 1, at);
}

/* Reads one line in cycle `at`. `slot` is its slot in the cache or LAB_NO_SLOT. Returns the cycle
 * in which the data is available. A miss takes the oldest miss register. */
static uint64_t read_line(struct lab_core *c, const struct lab_line *l, uint32_t slot, uint64_t at)
{
    c->counts.lines++;
    if (slot != LAB_NO_SLOT) {
        const uint64_t hit = at + c->machine->l1_cycles;
        lab_cache_use(c->l1, slot);
        return c->l1->slots[slot].ready > hit ? c->l1->slots[slot].ready : hit;
    }
    bool shared_hit;
    uint32_t evicted;
    report_line_miss(c, l, at);
    slot = lab_cache_fill(c->l1, l->line, &evicted);
    if (evicted != 0 && c->locality && c->machine->sched.locality == LAB_OF_LINES)
        lab_locality_evicted(c->locality, c->l1->slots[slot].owner, evicted);
    const uint64_t there =
        lab_memory_read(c->engine->memory, c->id, l->line, at + c->machine->l1_busy, &shared_hit);
    c->l1->slots[slot].owner = l->warp;
    c->l1->slots[slot].ready = there;
    c->mshrs[c->mshr_next] = there;
    c->mshr_next = (c->mshr_next + 1) % LAB_MSHRS;
    c->counts.line_misses++;
    c->counts.line_cycles += there - l->earliest;
    return there;
}

void lab_l1_queue_drain(struct lab_core *c)
{
    while (c->queue_count > 0 && !c->queue_event) {
        const struct lab_line *l = &c->queue[c->queue_first];
        const uint64_t at = c->lines_free > l->earliest ? c->lines_free : l->earliest;
        const uint32_t slot = lab_cache_find(c->l1, l->line);
        if (slot == LAB_NO_SLOT && c->mshrs[c->mshr_next] > at) {
            c->lines_free = c->mshrs[c->mshr_next];
            c->queue_event = true;
            lab_events_push(&c->events, c->lines_free, lab_event_code(LAB_L1_READY, 0));
            return;
        }
        const uint32_t warp = l->warp;
        struct lab_warp *w = &c->warps[warp];
        const uint64_t there = read_line(c, l, slot, at);
        c->lines_free = at + c->machine->l1_busy;
        c->queue_first = (c->queue_first + 1) % LAB_QUEUE;
        c->queue_count--;
        w->ready = there > w->ready ? there : w->ready;
        if (--w->queued_lines == 0)
            complete_if_ready(c, warp);
    }
}

void lab_l1_queue_add(struct lab_core *c, uint32_t warp, uint32_t pages, bool missed, uint64_t now)
{
    struct lab_warp *w = &c->warps[warp];
    const uint64_t last_page = c->wait_of_page[w->access.page_count - 1];
    uint32_t queued = 0;
    if (c->queue_count == 0)
        c->queue_first = 0;
    for (uint32_t i = 0; i < w->access.line_count; i++) {
        const uint32_t page = w->access.page_of_line[i];
        if (!(pages >> page & 1))
            continue;
        /* Without overlap, lines wait until the lookups of all pages are done. */
        const uint64_t wait = missed                    ? 0
                              : c->machine->tlb.overlap ? c->wait_of_page[page]
                                                        : last_page;
        c->queue[(c->queue_first + c->queue_count++) % LAB_QUEUE] =
            (struct lab_line){now + wait, w->access.lines[i], (uint8_t)warp, missed};
        queued++;
    }
    w->queued_lines += queued;
    if (queued > 0)
        lab_l1_queue_drain(c);
    else
        complete_if_ready(c, warp);
}
