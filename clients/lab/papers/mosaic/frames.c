/* frames.c: allocates pages, merges frames in place, and compacts frames.
 *
 * One table contains the owner of each physical page. One table per application contains the place
 * of each virtual page. Only GPU-MMU has a list of free pages. The other designs search a frame
 * from a hint. A frame has a count of used pages. Its owner is an application, foreign data, or
 * UNOWNED.
 */
#include "clients/lab/papers/mosaic/frames.h"

#include "base/rng.h"

#include <stdlib.h>
#include <string.h>

enum { APP_SHIFT = 28, PAGE_MASK = (1 << APP_SHIFT) - 1 };
enum owner { UNOWNED = 0xff, FOREIGN = 0xfe };
static const uint32_t FOREIGN_PAGE = UINT32_MAX - 1;

struct frame {
    uint16_t used;    /* number of used pages */
    uint16_t foreign; /* used pages of foreign data */
    uint16_t hint;    /* no page before this place is free */
    uint8_t owner;    /* owner, which gets the free pages */
    bool merged;
};

struct frames {
    struct frames_config c;
    struct frames_counts counts;
    struct frame *frames;
    uint32_t *holder;                  /* by physical page: app << APP_SHIFT | virtual page */
    uint32_t *place[FRAMES_MAX_APPS];  /* physical page of each virtual page */
    uint32_t open_of[FRAMES_MAX_APPS]; /* FRAMES_COCOA: last frame that gave a page, or no frame */
    uint32_t *pool;                    /* FRAMES_BASE: free pages; the last one is taken next */
    uint32_t pool_count;
    uint32_t free_frames;  /* number of frames without an owner */
    uint32_t next_frame;   /* frame at which the search for a free frame continues */
    uint32_t next_channel; /* channel at which compaction continues */
    struct rng rng;
    frames_forget *forget;
    void *forget_arg;
};

static uint32_t page_count(const struct frames *f)
{
    return f->c.frame_count * FRAMES_PAGES;
}

struct frames *frames_new(const struct frames_config *config)
{
    struct frames *f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    f->c = *config;
    f->rng.state = config->seed;
    f->free_frames = config->frame_count;
    f->frames = calloc(config->frame_count, sizeof *f->frames);
    f->holder = malloc(page_count(f) * sizeof *f->holder);
    f->pool = malloc((config->policy == FRAMES_BASE ? page_count(f) : 1) * sizeof *f->pool);
    bool good = f->frames && f->holder && f->pool;
    for (uint32_t a = 0; a < config->app_count; a++) {
        f->place[a] = malloc(config->app_pages * sizeof *f->place[a]);
        good = good && f->place[a];
        if (f->place[a])
            memset(f->place[a], 0xff, config->app_pages * sizeof *f->place[a]);
        f->open_of[a] = FRAMES_NONE;
    }
    if (!good) {
        frames_free(f);
        return NULL;
    }
    memset(f->holder, 0xff, page_count(f) * sizeof *f->holder);
    for (uint32_t i = 0; i < config->frame_count; i++)
        f->frames[i].owner = UNOWNED;
    for (uint32_t p = 0; config->policy == FRAMES_BASE && p < page_count(f); p++)
        f->pool[f->pool_count++] = p;
    return f;
}

void frames_free(struct frames *take)
{
    if (!take)
        return;
    for (uint32_t a = 0; a < FRAMES_MAX_APPS; a++)
        free(take->place[a]);
    free(take->pool);
    free(take->holder);
    free(take->frames);
    free(take);
}

void frames_on_change(struct frames *f, frames_forget *forget, void *arg)
{
    f->forget = forget;
    f->forget_arg = arg;
}

static void report_change(const struct frames *f, uint32_t app, uint32_t page, bool large)
{
    if (f->forget)
        f->forget(f->forget_arg, app, page, large);
}

/* ---- one frame ---- */

/* Returns the number of free pages that a frame reserves. Only the frame of an application reserves
 * pages. */
static uint32_t reserved_pages(const struct frame *fr)
{
    return fr->owner < FRAMES_MAX_APPS ? (uint32_t)FRAMES_PAGES - fr->used : 0u;
}

static void set_owner(struct frames *f, uint32_t frame, uint8_t owner)
{
    struct frame *fr = &f->frames[frame];
    f->counts.reserved -= reserved_pages(fr);
    f->free_frames -= fr->owner == UNOWNED;
    fr->owner = owner;
    f->free_frames += fr->owner == UNOWNED;
    f->counts.reserved += reserved_pages(fr);
}

static void set_holder(struct frames *f, uint32_t physical, uint32_t holder)
{
    struct frame *fr = &f->frames[physical / FRAMES_PAGES];
    f->counts.reserved -= reserved_pages(fr);
    fr->used++;
    fr->foreign += holder == FOREIGN_PAGE;
    f->counts.reserved += reserved_pages(fr);
    f->holder[physical] = holder;
    if (holder != FOREIGN_PAGE) {
        f->place[holder >> APP_SHIFT][holder & PAGE_MASK] = physical;
        f->counts.used_pages++;
    }
}

/* Makes a page free. The owner of its frame does not change. */
static uint32_t free_page(struct frames *f, uint32_t physical)
{
    struct frame *fr = &f->frames[physical / FRAMES_PAGES];
    const uint32_t holder = f->holder[physical];
    f->counts.reserved -= reserved_pages(fr);
    fr->used--;
    fr->foreign -= holder == FOREIGN_PAGE;
    fr->hint = physical % FRAMES_PAGES < fr->hint ? physical % FRAMES_PAGES : fr->hint;
    f->counts.reserved += reserved_pages(fr);
    f->holder[physical] = FRAMES_NONE;
    if (holder != FOREIGN_PAGE) {
        f->place[holder >> APP_SHIFT][holder & PAGE_MASK] = FRAMES_NONE;
        f->counts.used_pages--;
    }
    return holder;
}

/* Returns a free page of a frame that has room. */
static uint32_t find_free_page(struct frames *f, uint32_t frame)
{
    struct frame *fr = &f->frames[frame];
    while (f->holder[frame * FRAMES_PAGES + fr->hint] != FRAMES_NONE)
        fr->hint++;
    return frame * FRAMES_PAGES + fr->hint;
}

static bool has_room(const struct frame *fr, uint8_t owner)
{
    return fr->owner == owner && !fr->merged && fr->used < FRAMES_PAGES;
}

/* Splits a merged frame. Its large entry leaves all TLBs. */
static void split_frame(struct frames *f, uint32_t frame)
{
    f->frames[frame].merged = false;
    f->counts.splinters++;
    for (uint32_t i = 0; i < FRAMES_PAGES; i++) {
        const uint32_t holder = f->holder[frame * FRAMES_PAGES + i];
        if (holder == FRAMES_NONE)
            continue;
        report_change(f, holder >> APP_SHIFT, (holder & PAGE_MASK) - i, true);
        return;
    }
}

/* ---- contiguity-aware compaction ---- */

/* Returns the number of free places in other frames of the same owner and channel. */
static uint32_t room_beside(const struct frames *f, uint32_t frame)
{
    uint32_t room = 0;
    for (uint32_t i = frame % f->c.channels; i < f->c.frame_count; i += f->c.channels)
        room += i != frame && has_room(&f->frames[i], f->frames[frame].owner)
                    ? (uint32_t)FRAMES_PAGES - f->frames[i].used
                    : 0u;
    return room;
}

/* Returns the fullest frame with room, so that the emptiest frame can be freed next. */
static uint32_t find_destination(const struct frames *f, uint32_t frame)
{
    uint32_t best = FRAMES_NONE;
    for (uint32_t i = frame % f->c.channels; i < f->c.frame_count; i += f->c.channels) {
        if (i != frame && has_room(&f->frames[i], f->frames[frame].owner) &&
            (best == FRAMES_NONE || f->frames[i].used > f->frames[best].used))
            best = i;
    }
    return best;
}

static void move_page(struct frames *f, uint32_t from, uint32_t to)
{
    const uint32_t holder = free_page(f, from);
    set_holder(f, to, holder);
    f->counts.copied_pages++;
    if (holder != FOREIGN_PAGE)
        report_change(f, holder >> APP_SHIFT, holder & PAGE_MASK, false);
}

/* Moves all pages of an unmerged frame to other frames. If there is no room, moves no page and
 * returns false. */
static bool empty_frame(struct frames *f, uint32_t frame)
{
    struct frame *fr = &f->frames[frame];
    uint32_t to = FRAMES_NONE;
    if (fr->used > room_beside(f, frame))
        return false;
    for (uint32_t i = 0; i < FRAMES_PAGES && fr->used > 0; i++) {
        if (f->holder[frame * FRAMES_PAGES + i] == FRAMES_NONE)
            continue;
        if (to == FRAMES_NONE || f->frames[to].used == FRAMES_PAGES)
            to = find_destination(f, frame);
        move_page(f, frame * FRAMES_PAGES + i, find_free_page(f, to));
    }
    set_owner(f, frame, UNOWNED);
    fr->hint = 0;
    f->counts.freed_frames++;
    return true;
}

/* Returns the emptiest frame of a channel that belongs to the application or to foreign data. */
static uint32_t find_emptiest(const struct frames *f, uint32_t app, uint32_t channel)
{
    uint32_t best = FRAMES_NONE;
    for (uint32_t i = channel; i < f->c.frame_count; i += f->c.channels) {
        const struct frame *fr = &f->frames[i];
        if ((fr->owner == app || fr->owner == FOREIGN) && !fr->merged &&
            (best == FRAMES_NONE || fr->used < f->frames[best].used))
            best = i;
    }
    return best;
}

/* Makes a free frame in one channel. The channels take turns. */
static bool make_frame(struct frames *f, uint32_t app)
{
    for (uint32_t i = 0; i < f->c.channels; i++) {
        const uint32_t channel = f->next_channel;
        f->next_channel = (f->next_channel + 1) % f->c.channels;
        const uint32_t frame = find_emptiest(f, app, channel);
        if (frame != FRAMES_NONE && empty_frame(f, frame))
            return true;
    }
    return false;
}

/* ---- allocation ---- */

static uint32_t find_free_frame(struct frames *f)
{
    if (f->free_frames == 0)
        return FRAMES_NONE;
    while (f->frames[f->next_frame].owner != UNOWNED)
        f->next_frame = (f->next_frame + 1) % f->c.frame_count;
    return f->next_frame;
}

static uint32_t take_frame(struct frames *f, uint32_t app)
{
    const uint32_t frame = find_free_frame(f);
    if (frame != FRAMES_NONE)
        set_owner(f, frame, (uint8_t)app);
    return frame;
}

/* Takes a frame with foreign data, against Mosaic's soft guarantee. */
static uint32_t take_mixed_frame(struct frames *f, uint32_t app)
{
    const uint32_t first = (uint32_t)rng_below(&f->rng, f->c.frame_count);
    for (uint32_t i = 0; i < f->c.frame_count; i++) {
        const uint32_t frame = (first + i) % f->c.frame_count;
        if (!has_room(&f->frames[frame], FOREIGN))
            continue;
        set_owner(f, frame, (uint8_t)app);
        f->counts.mixed_frames++;
        return frame;
    }
    return FRAMES_NONE;
}

/* Takes the merged frame with free pages and the lowest address (the emergency list). */
static uint32_t take_emergency_frame(struct frames *f, uint32_t app)
{
    for (uint32_t i = 0; i < f->c.frame_count; i++) {
        const struct frame *fr = &f->frames[i];
        if (fr->owner != app || !fr->merged || fr->used == FRAMES_PAGES)
            continue;
        split_frame(f, i);
        f->counts.emergencies++;
        return i;
    }
    return FRAMES_NONE;
}

static uint32_t room_of_app(const struct frames *f, uint32_t app)
{
    for (uint32_t i = 0; i < f->c.frame_count; i++) {
        if (has_room(&f->frames[i], (uint8_t)app))
            return i;
    }
    return FRAMES_NONE;
}

static bool place_single(struct frames *f, uint32_t app, uint32_t page)
{
    uint32_t *frame = &f->open_of[app];
    if (*frame == FRAMES_NONE || !has_room(&f->frames[*frame], (uint8_t)app))
        *frame = room_of_app(f, app);
    if (*frame == FRAMES_NONE)
        *frame = take_frame(f, app);
    if (*frame == FRAMES_NONE)
        *frame = take_mixed_frame(f, app);
    if (*frame == FRAMES_NONE && f->c.compact && make_frame(f, app))
        *frame = take_frame(f, app);
    if (*frame == FRAMES_NONE)
        *frame = take_emergency_frame(f, app);
    if (*frame == FRAMES_NONE)
        return false;
    set_holder(f, find_free_page(f, *frame), app << APP_SHIFT | page);
    if (f->counts.reserved > f->counts.most_reserved)
        f->counts.most_reserved = f->counts.reserved;
    return true;
}

/* Places an aligned region of 2 MiB in a frame and merges the frame. All pages are in place, so no
 * page moves. */
static bool place_large(struct frames *f, uint32_t app, uint32_t page)
{
    uint32_t frame = take_frame(f, app);
    if (frame == FRAMES_NONE && f->c.compact && make_frame(f, app))
        frame = take_frame(f, app);
    if (frame == FRAMES_NONE)
        return false;
    for (uint32_t i = 0; i < FRAMES_PAGES; i++)
        set_holder(f, frame * FRAMES_PAGES + i, app << APP_SHIFT | (page + i));
    f->frames[frame].merged = true;
    f->counts.merges++;
    return true;
}

static uint32_t find_large_frame(const struct frames *f, uint32_t app, uint32_t page)
{
    const uint32_t *place = &f->place[app][page - page % FRAMES_PAGES];
    for (uint32_t i = 0; i < FRAMES_PAGES; i++) {
        if (place[i] != FRAMES_NONE)
            return place[i] / FRAMES_PAGES;
    }
    return FRAMES_NONE;
}

/* Places pages [page, end) of one 2 MiB. In a merged frame, each missing page has its place. */
static bool place_rest(struct frames *f, uint32_t app, uint32_t page, uint32_t end)
{
    const uint32_t frame = find_large_frame(f, app, page);
    const bool merged = frame != FRAMES_NONE && f->frames[frame].merged;
    for (; page < end; page++) {
        if (merged)
            set_holder(f, frame * FRAMES_PAGES + page % FRAMES_PAGES, app << APP_SHIFT | page);
        else if (!place_single(f, app, page)) {
            f->counts.refused_pages += end - page;
            return false;
        }
    }
    return true;
}

static bool alloc_cocoa(struct frames *f, uint32_t app, uint32_t first, uint32_t end)
{
    for (uint32_t page = first; page < end;) {
        const uint32_t stop = page - page % FRAMES_PAGES + FRAMES_PAGES;
        const uint32_t to = stop < end ? stop : end;
        if ((to - page < FRAMES_PAGES || !place_large(f, app, page)) &&
            !place_rest(f, app, page, to))
            return false;
        page = to;
    }
    return true;
}

static bool alloc_large(struct frames *f, uint32_t app, uint32_t first, uint32_t end)
{
    for (uint32_t page = first; page < end; page++) {
        uint32_t frame = page == first || page % FRAMES_PAGES == 0
                             ? find_large_frame(f, app, page)
                             : f->place[app][page - 1] / FRAMES_PAGES;
        if (frame == FRAMES_NONE)
            frame = take_frame(f, app);
        if (frame == FRAMES_NONE) {
            f->counts.refused_pages += end - page;
            return false;
        }
        f->frames[frame].merged = true;
        set_holder(f, frame * FRAMES_PAGES + page % FRAMES_PAGES, app << APP_SHIFT | page);
    }
    return true;
}

static bool alloc_base(struct frames *f, uint32_t app, uint32_t first, uint32_t end)
{
    for (uint32_t page = first; page < end; page++) {
        if (f->pool_count == 0) {
            f->counts.refused_pages += end - page;
            return false;
        }
        const uint32_t at = (uint32_t)rng_below(&f->rng, f->pool_count);
        set_holder(f, f->pool[at], app << APP_SHIFT | page);
        f->pool[at] = f->pool[--f->pool_count];
    }
    return true;
}

bool frames_alloc(struct frames *f, uint32_t app, uint32_t first, uint32_t count)
{
    switch (f->c.policy) {
    case FRAMES_BASE:
        return alloc_base(f, app, first, first + count);
    case FRAMES_LARGE:
        return alloc_large(f, app, first, first + count);
    case FRAMES_COCOA:
        break;
    }
    return alloc_cocoa(f, app, first, first + count);
}

/* ---- deallocation ---- */

/* Frees a frame that lost pages, splits and empties it, or keeps it. */
static void update_frame(struct frames *f, uint32_t frame)
{
    struct frame *fr = &f->frames[frame];
    if (fr->used == 0) {
        fr->merged = false;
        fr->hint = 0;
        set_owner(f, frame, UNOWNED);
    } else if (fr->used == fr->foreign) {
        set_owner(f, frame, FOREIGN);
    } else if (f->c.policy == FRAMES_COCOA && fr->merged && f->c.compact &&
               fr->used < f->c.keep_pages) {
        split_frame(f, frame);
        (void)empty_frame(f, frame);
    }
}

void frames_release(struct frames *f, uint32_t app, uint32_t first, uint32_t count)
{
    uint32_t last = FRAMES_NONE;
    for (uint32_t page = first; page < first + count; page++) {
        const uint32_t physical = f->place[app][page];
        if (physical == FRAMES_NONE)
            continue;
        const uint32_t frame = physical / FRAMES_PAGES;
        if (last != FRAMES_NONE && last != frame && f->c.policy != FRAMES_BASE)
            update_frame(f, last);
        last = frame;
        if (f->frames[frame].merged && f->frames[frame].used == 1)
            split_frame(f, frame);
        (void)free_page(f, f->place[app][page]);
        report_change(f, app, page, false);
        if (f->c.policy == FRAMES_BASE)
            f->pool[f->pool_count++] = physical;
    }
    if (last != FRAMES_NONE && f->c.policy != FRAMES_BASE)
        update_frame(f, last);
}

/* ---- foreign data ---- */

/* Fills `pages` places of a frame, drawn without repetition. */
static void fill_foreign(struct frames *f, uint32_t frame, uint32_t pages)
{
    struct frame *fr = &f->frames[frame];
    uint32_t *holder = &f->holder[frame * FRAMES_PAGES];
    fr->used += (uint16_t)pages;
    fr->foreign += (uint16_t)pages;
    for (uint32_t i = 0; i < FRAMES_PAGES && pages > 0; i++) {
        const bool drawn = rng_below(&f->rng, FRAMES_PAGES - i) < pages;
        holder[i] = drawn ? FOREIGN_PAGE : FRAMES_NONE;
        pages -= drawn;
    }
    if (f->c.policy != FRAMES_BASE)
        set_owner(f, frame, FOREIGN);
}

void frames_fragment(struct frames *f, double index, double occupancy)
{
    uint32_t left = (uint32_t)(index * f->c.frame_count + 0.5);
    const uint32_t pages = (uint32_t)(occupancy * FRAMES_PAGES + 0.5);
    for (uint32_t i = 0; i < f->c.frame_count && left > 0 && pages > 0; i++) {
        if (rng_below(&f->rng, f->c.frame_count - i) >= left)
            continue;
        fill_foreign(f, i, pages);
        left--;
    }
    if (f->c.policy != FRAMES_BASE)
        return;
    f->pool_count = 0;
    for (uint32_t p = 0; p < page_count(f); p++) {
        f->pool[f->pool_count] = p;
        f->pool_count += f->holder[p] == FRAMES_NONE;
    }
}

/* ---- queries ---- */

uint32_t frames_page(const struct frames *f, uint32_t app, uint32_t page)
{
    return f->place[app][page];
}

bool frames_is_large(const struct frames *f, uint32_t app, uint32_t page)
{
    const uint32_t physical = f->place[app][page];
    return physical != FRAMES_NONE && f->frames[physical / FRAMES_PAGES].merged;
}

struct frames_counts frames_count(const struct frames *f)
{
    return f->counts;
}

static double over_used(const struct frames *f, uint64_t pages)
{
    return f->counts.used_pages > 0 ? (double)pages / (double)f->counts.used_pages : 0;
}

double frames_bloat(const struct frames *f)
{
    return over_used(f, f->counts.reserved);
}

double frames_most_bloat(const struct frames *f)
{
    return over_used(f, f->counts.most_reserved);
}
