/* frames.c: allocates pages, merges frames in place, and compacts frames.
 *
 * One table contains the virtual page in each physical page, and another table contains the place
 * of each virtual page. Only GPU-MMU has a list of free pages. The other designs search a frame
 * from a hint. A frame has a count of used pages. Its owner is the program, foreign data, or no
 * one.
 */
#include "clients/lab/papers/mosaic/frames.h"

#include "base/rng.h"

#include <stdlib.h>
#include <string.h>

enum owner { UNOWNED = 0, PROGRAM, FOREIGN };
static const uint32_t FOREIGN_PAGE = UINT32_MAX - 1;

struct frame {
    uint16_t used;        /* number of used pages */
    uint16_t hint;        /* no page before this place is free */
    enum owner owner : 8; /* owner, which gets the free pages */
    bool merged;
};

struct frames {
    struct frames_config c;
    struct frames_counts counts;
    struct frame *frames;
    uint32_t *holder; /* virtual page in each physical page */
    uint32_t *place;  /* physical page of each virtual page */
    uint32_t open;    /* FRAMES_COCOA: last frame that gave a page, or no frame */
    uint32_t *pool;   /* FRAMES_BASE: free pages */
    uint32_t pool_count;
    uint32_t free_frames;  /* number of frames without an owner */
    uint32_t next_frame;   /* frame at which the search for a free frame continues */
    uint32_t next_channel; /* channel at which compaction continues */
    struct rng rng;
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
    f->open = FRAMES_NONE;
    f->frames = calloc(config->frame_count, sizeof *f->frames);
    f->holder = malloc(page_count(f) * sizeof *f->holder);
    f->pool = malloc((config->policy == FRAMES_BASE ? page_count(f) : 1) * sizeof *f->pool);
    f->place = malloc(config->pages * sizeof *f->place);
    if (!f->frames || !f->holder || !f->pool || !f->place) {
        frames_free(f);
        return NULL;
    }
    memset(f->place, 0xff, config->pages * sizeof *f->place);
    memset(f->holder, 0xff, page_count(f) * sizeof *f->holder);
    for (uint32_t p = 0; config->policy == FRAMES_BASE && p < page_count(f); p++)
        f->pool[f->pool_count++] = p;
    return f;
}

void frames_free(struct frames *take)
{
    if (!take)
        return;
    free(take->place);
    free(take->pool);
    free(take->holder);
    free(take->frames);
    free(take);
}

/* ---- one frame ---- */

/* Returns the number of free pages that a frame reserves for the program. */
static uint32_t reserved_pages(const struct frame *fr)
{
    return fr->owner == PROGRAM ? (uint32_t)FRAMES_PAGES - fr->used : 0u;
}

static void set_owner(struct frames *f, uint32_t frame, enum owner owner)
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
    fr->used++;
    f->counts.reserved -= fr->owner == PROGRAM;
    f->holder[physical] = holder;
    if (holder != FOREIGN_PAGE) {
        f->place[holder] = physical;
        f->counts.used_pages++;
    }
}

/* Makes a page free and returns its holder. The owner of its frame does not change. */
static uint32_t free_page(struct frames *f, uint32_t physical)
{
    struct frame *fr = &f->frames[physical / FRAMES_PAGES];
    const uint32_t holder = f->holder[physical];
    fr->used--;
    f->counts.reserved += fr->owner == PROGRAM;
    fr->hint = physical % FRAMES_PAGES < fr->hint ? physical % FRAMES_PAGES : fr->hint;
    f->holder[physical] = FRAMES_NONE;
    f->counts.used_pages -= holder != FOREIGN_PAGE;
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

static bool has_room(const struct frame *fr, enum owner owner)
{
    return fr->owner == owner && !fr->merged && fr->used < FRAMES_PAGES;
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
    set_holder(f, to, free_page(f, from));
    f->counts.copied_pages++;
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
    return true;
}

/* Returns the emptiest frame of a channel that belongs to the program or to foreign data. */
static uint32_t find_emptiest(const struct frames *f, uint32_t channel)
{
    uint32_t best = FRAMES_NONE;
    for (uint32_t i = channel; i < f->c.frame_count; i += f->c.channels) {
        const struct frame *fr = &f->frames[i];
        if (fr->owner != UNOWNED && !fr->merged &&
            (best == FRAMES_NONE || fr->used < f->frames[best].used))
            best = i;
    }
    return best;
}

/* Makes a free frame in one channel. The channels take turns. */
static bool make_frame(struct frames *f)
{
    for (uint32_t i = 0; i < f->c.channels; i++) {
        const uint32_t channel = f->next_channel;
        f->next_channel = (f->next_channel + 1) % f->c.channels;
        const uint32_t frame = find_emptiest(f, channel);
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

static uint32_t take_frame(struct frames *f)
{
    const uint32_t frame = find_free_frame(f);
    if (frame != FRAMES_NONE)
        set_owner(f, frame, PROGRAM);
    return frame;
}

/* Takes a free frame. If there is none, compaction makes one. */
static uint32_t take_or_make_frame(struct frames *f)
{
    const uint32_t frame = take_frame(f);
    return frame == FRAMES_NONE && f->c.compact && make_frame(f) ? take_frame(f) : frame;
}

/* Takes a frame with foreign data, against Mosaic's soft guarantee. */
static uint32_t take_mixed_frame(struct frames *f)
{
    const uint32_t first = (uint32_t)rng_below(&f->rng, f->c.frame_count);
    for (uint32_t i = 0; i < f->c.frame_count; i++) {
        const uint32_t frame = (first + i) % f->c.frame_count;
        if (!has_room(&f->frames[frame], FOREIGN))
            continue;
        set_owner(f, frame, PROGRAM);
        f->counts.mixed_frames++;
        return frame;
    }
    return FRAMES_NONE;
}

/* Only the frame `open` of the program has room, because no page is freed. Compaction does not
 * empty this frame, because its pages would need room in another frame of the program. */
static bool place_single(struct frames *f, uint32_t page)
{
    if (f->open == FRAMES_NONE || !has_room(&f->frames[f->open], PROGRAM))
        f->open = take_frame(f);
    if (f->open == FRAMES_NONE)
        f->open = take_mixed_frame(f);
    if (f->open == FRAMES_NONE)
        f->open = take_or_make_frame(f);
    if (f->open == FRAMES_NONE)
        return false;
    set_holder(f, find_free_page(f, f->open), page);
    if (f->counts.reserved > f->counts.most_reserved)
        f->counts.most_reserved = f->counts.reserved;
    return true;
}

/* Places an aligned region of 2 MiB in a frame and merges the frame. All pages are in place, so no
 * page moves. */
static bool place_large(struct frames *f, uint32_t page)
{
    const uint32_t frame = take_or_make_frame(f);
    if (frame == FRAMES_NONE)
        return false;
    for (uint32_t i = 0; i < FRAMES_PAGES; i++) {
        f->holder[frame * FRAMES_PAGES + i] = page + i;
        f->place[page + i] = frame * FRAMES_PAGES + i;
    }
    f->frames[frame].used = FRAMES_PAGES;
    f->counts.used_pages += FRAMES_PAGES;
    f->counts.reserved -= FRAMES_PAGES;
    f->frames[frame].merged = true;
    f->counts.merges++;
    return true;
}

/* Allocates pages [page, end), of which each aligned 2 MiB is merged if a frame is free. */
static uint32_t alloc_cocoa(struct frames *f, uint32_t page, uint32_t end)
{
    while (page < end) {
        if (page % FRAMES_PAGES == 0 && end - page >= FRAMES_PAGES && place_large(f, page)) {
            page += FRAMES_PAGES;
            continue;
        }
        const uint32_t stop = page - page % FRAMES_PAGES + FRAMES_PAGES;
        for (; page < stop && page < end; page++) {
            if (!place_single(f, page))
                return page;
        }
    }
    return end;
}

/* Returns the frame of the 2 MiB around a page, or FRAMES_NONE. */
static uint32_t find_large_frame(const struct frames *f, uint32_t page)
{
    const uint32_t *place = &f->place[page - page % FRAMES_PAGES];
    for (uint32_t i = 0; i < FRAMES_PAGES; i++) {
        if (place[i] != FRAMES_NONE)
            return place[i] / FRAMES_PAGES;
    }
    return FRAMES_NONE;
}

static uint32_t alloc_large(struct frames *f, uint32_t first, uint32_t end)
{
    uint32_t frame = FRAMES_NONE;
    for (uint32_t page = first; page < end; page++) {
        if (page == first || page % FRAMES_PAGES == 0)
            frame = find_large_frame(f, page);
        if (frame == FRAMES_NONE)
            frame = take_frame(f);
        if (frame == FRAMES_NONE)
            return page;
        f->frames[frame].merged = true;
        set_holder(f, frame * FRAMES_PAGES + page % FRAMES_PAGES, page);
    }
    return end;
}

static uint32_t alloc_base(struct frames *f, uint32_t page, uint32_t end)
{
    for (; page < end && f->pool_count > 0; page++) {
        const uint32_t at = (uint32_t)rng_below(&f->rng, f->pool_count);
        set_holder(f, f->pool[at], page);
        f->pool[at] = f->pool[--f->pool_count];
    }
    return page;
}

bool frames_alloc(struct frames *f, uint32_t first, uint32_t count)
{
    const uint32_t end = first + count;
    const uint32_t done = f->c.policy == FRAMES_BASE    ? alloc_base(f, first, end)
                          : f->c.policy == FRAMES_LARGE ? alloc_large(f, first, end)
                                                        : alloc_cocoa(f, first, end);
    f->counts.refused_pages += end - done;
    return done == end;
}

/* ---- foreign data ---- */

/* Fills `pages` places of a frame, drawn without repetition. */
static void fill_foreign(struct frames *f, uint32_t frame, uint32_t pages)
{
    set_owner(f, frame, FOREIGN);
    for (uint32_t i = 0; i < FRAMES_PAGES && pages > 0; i++) {
        if (rng_below(&f->rng, FRAMES_PAGES - i) >= pages)
            continue;
        set_holder(f, frame * FRAMES_PAGES + i, FOREIGN_PAGE);
        pages--;
    }
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
}

/* ---- queries ---- */

uint32_t frames_page(const struct frames *f, uint32_t page)
{
    return f->place[page];
}

bool frames_is_large(const struct frames *f, uint32_t page)
{
    const uint32_t physical = f->place[page];
    return physical != FRAMES_NONE && f->frames[physical / FRAMES_PAGES].merged;
}

struct frames_counts frames_count(const struct frames *f)
{
    return f->counts;
}
