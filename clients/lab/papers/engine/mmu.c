/* mmu.c: see mmu.h (Pichai, Hsu and Bhattacharjee 2014, section 6). Only the misses of one warp are
 * walked at a time, because there are no misses under misses. */
#include "clients/lab/papers/engine/mmu.h"

#include "clients/lab/papers/engine/l1_queue.h"

/* ---- lookups ---- */

static __attribute__((noinline)) void look_up_pages(struct lab_core *c, uint32_t warp)
{
    const struct lab_access *a = &c->warps[warp].access;
    struct lab_translation *t = &c->translations[warp];
    uint16_t *slots = t->slots;
    uint32_t hits = 0;
    for (uint32_t i = 0; i < a->page_count; i++) {
        const uint32_t slot = lab_cache_find(c->tlb, a->pages[i]);
        *slots = (uint16_t)slot;
        slots += slot != LAB_NO_SLOT;
        hits |= (uint32_t)(slot != LAB_NO_SLOT) << i;
    }
    t->hits = hits;
    t->hit_count = (uint16_t)__builtin_popcount(hits);
    t->missed = lab_low_bits(a->page_count) & ~hits;
    t->cycles = c->lookup_cycles[a->page_count];
    c->translated |= c->waiting & lab_bit(warp);
}

/* Returns the state of the warp's pages in the TLB. Does not change the machine. */
static const struct lab_translation *current_translation(struct lab_core *c, uint32_t warp)
{
    if (!(c->translated & lab_bit(warp)))
        look_up_pages(c, warp);
    return &c->translations[warp];
}

/* Reports a TLB hit to the scheduler and to the common page matrix. */
static void report_hit(struct lab_core *c, uint32_t warp, uint32_t slot, uint32_t home,
                       uint64_t now)
{
    const struct lab_sched_desc *sched = &c->machine->sched;
    if (sched->locality == LAB_OF_PAGES && sched->depth_weights[0] > 0)
        lab_locality_hit(c->locality, warp, lab_cache_depth(c->tlb, slot), now);
    if (c->machine->compact.bits > 0) {
        const uint32_t first = warp - warp % c->job->block_warps;
        lab_matrix_hit(&c->matrix, &c->tlb->slots[slot].history, first + home, now);
    }
}

static __attribute__((noinline)) void report_hits(struct lab_core *c, uint32_t warp,
                                                  const struct lab_translation *t, uint64_t now)
{
    const struct lab_access *a = &c->warps[warp].access;
    const uint16_t *slot = t->slots;
    for (uint32_t hits = t->hits; hits != 0; hits &= hits - 1) {
        report_hit(c, warp, *slot, a->home_of_page[__builtin_ctz(hits)], now);
        lab_cache_use(c->tlb, *slot++);
    }
}

uint32_t lab_mmu_lookup(struct lab_core *c, uint32_t warp, uint64_t now)
{
    if (!c->tlb)
        return 0;
    const struct lab_translation *t = current_translation(c, warp);
    if (c->machine->sched.locality == LAB_OF_PAGES || c->machine->compact.bits > 0) {
        report_hits(c, warp, t, now);
    } else {
        uint32_t *used = lab_cache_used(c->tlb, 0);
        const uint32_t before = c->tlb->now;
        for (uint32_t i = 0; i < t->hit_count; i++)
            used[t->slots[i]] = before + i + 1;
        c->tlb->now = before + t->hit_count;
    }
    c->lookups_free = now + t->cycles;
    return t->missed;
}

bool lab_mmu_must_wait(struct lab_core *c, uint32_t warp)
{
    return c->walks_active && (c->waiting & lab_bit(warp)) &&
           current_translation(c, warp)->missed != 0;
}

/* ---- walks ---- */

static void fill_tlb(struct lab_core *c, uint32_t page, uint64_t now)
{
    const struct lab_walks *w = &c->walks;
    uint32_t evicted;
    c->counts.miss_cycles += now - w->start;
    if (lab_cache_find(c->tlb, page) != LAB_NO_SLOT)
        return;
    const uint32_t slot = lab_cache_fill(c->tlb, page, &evicted);
    if (evicted != 0 && c->machine->sched.locality == LAB_OF_PAGES)
        lab_locality_evicted(c->locality, c->tlb->slots[slot].owner, evicted);
    c->tlb->slots[slot].owner = (uint8_t)w->warp;
    c->tlb->slots[slot].history = 0;
    c->translated = 0;
}

static void end_walks(struct lab_core *c, uint64_t now)
{
    const uint32_t warp = c->walks.warp;
    struct lab_warp *w = &c->warps[warp];
    const uint32_t all = lab_low_bits(w->access.page_count);
    c->walks_active = false;
    c->swapped = 0;
    w->walking = false;
    lab_l1_queue_add(c, warp, c->machine->tlb.overlap ? w->missed : all, true, now);
}

static uint64_t read_entry(struct lab_core *c, const struct lab_walk_load *load, uint64_t now)
{
    bool hit;
    const uint64_t there =
        lab_memory_read_entry(c->engine->memory, c->id, lab_walk_line(load), now, &hit);
    c->counts.walk_loads++;
    c->counts.walk_hits += hit;
    return there;
}

/* Starts the loads of the next level of all walks, one per cycle. The level after that starts when
 * all loads have returned. */
static void step_level(struct lab_core *c, uint64_t now)
{
    struct lab_walks *w = &c->walks;
    uint32_t *next = &w->next[0];
    uint64_t there = now;
    if (*next == w->load_count) {
        for (uint32_t i = 0; i < w->count; i++)
            fill_tlb(c, (uint32_t)w->pages[i], now);
        end_walks(c, now);
        return;
    }
    const uint32_t level = w->loads[*next].level;
    for (uint64_t at = now; *next < w->load_count && w->loads[*next].level == level; at++) {
        const uint64_t this = read_entry(c, &w->loads[(*next)++], at);
        there = this > there ? this : there;
    }
    lab_events_push(&c->events, there, lab_event_code(LAB_LOAD_READY, 0));
}

/* Starts the next load of walker k. This walker walks pages k, k + walkers and so on, with
 * LAB_LEVELS loads per page. next[k] counts the loads. */
static void step_serial(struct lab_core *c, uint32_t walker, uint64_t now)
{
    struct lab_walks *w = &c->walks;
    const uint32_t walkers = c->machine->tlb.walkers;
    const uint32_t done = w->next[walker];
    const uint32_t page = walker + done / LAB_LEVELS * walkers;
    if (done > 0 && done % LAB_LEVELS == 0)
        fill_tlb(c, (uint32_t)w->pages[page - walkers], now);
    if (page >= w->count) {
        if (--w->walkers_busy == 0)
            end_walks(c, now);
        return;
    }
    w->next[walker]++;
    const uint64_t there = read_entry(c, &w->loads[page * LAB_LEVELS + done % LAB_LEVELS], now);
    lab_events_push(&c->events, there, lab_event_code(LAB_LOAD_READY, walker));
}

void lab_mmu_advance_walk(struct lab_core *c, uint32_t walker, uint64_t now)
{
    if (c->machine->tlb.scheduled_walks)
        step_level(c, now);
    else
        step_serial(c, walker, now);
}

void lab_mmu_start_walks(struct lab_core *c, uint32_t warp, uint64_t now)
{
    struct lab_walks *w = &c->walks;
    const struct lab_warp *of = &c->warps[warp];
    const uint32_t walkers = c->machine->tlb.scheduled_walks ? 1 : c->machine->tlb.walkers;
    c->walks_active = true;
    w->warp = warp;
    w->start = now;
    w->count = 0;
    for (uint32_t left = of->missed; left != 0; left &= left - 1) {
        const uint32_t page = of->access.pages[__builtin_ctz(left)];
        if (c->machine->sched.locality == LAB_OF_PAGES)
            lab_locality_missed(c->locality, warp, page, 1, now);
        w->pages[w->count++] = page;
    }
    w->load_count = c->machine->tlb.scheduled_walks
                        ? lab_walk_scheduled(w->pages, w->count, w->loads)
                        : lab_walk_serial(w->pages, w->count, w->loads);
    w->walkers_busy = walkers < w->count ? walkers : w->count;
    for (uint32_t k = 0; k < w->walkers_busy; k++) {
        w->next[k] = 0;
        lab_events_push(&c->events, now, lab_event_code(LAB_LOAD_READY, k));
    }
}
