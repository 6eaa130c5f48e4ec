/* order.c: see order.h. */
#include "clients/fleet/order.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

/* A double as a key that sorts as it does. */
static uint64_t key_of(double v)
{
    uint64_t bits;

    if (v == 0)
        v = 0; /* one zero */
    memcpy(&bits, &v, sizeof(bits));
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

static double value_of(uint64_t key)
{
    const uint64_t bits = key >> 63 ? key & ~((uint64_t)1 << 63) : ~key;
    double v;

    memcpy(&v, &bits, sizeof(v));
    return v;
}

/* A part more, empty. Pointers to parts end here. */
static struct order_part *add_part(struct order *o, uint64_t low, uint64_t high)
{
    struct order_part *p;

    if (o->part_count == o->room) {
        struct order_part *const more = realloc(o->part, (o->room + 1) * sizeof(*more));
        if (!more) {
            o->no_memory = true;
            return NULL;
        }
        o->part = more;
        o->room++;
    }
    p = &o->part[o->part_count++];
    p->low = low;
    p->high = high;
    p->below = 0;
    p->inside = 0;
    p->held = true;
    p->held_count = 0;
    return p;
}

void order_begin(struct order *o)
{
    struct order_part *const part = o->part;
    const uint32_t room = o->room;

    *o = (struct order){.least = UINT64_MAX, .part = part, .room = room};
    (void)add_part(o, 0, UINT64_MAX);
}

void order_free(struct order *o)
{
    free(o->part);
    o->part = NULL;
    o->room = 0;
}

static void hold(struct order_part *p, uint64_t key, uint64_t weight)
{
    p->inside += weight;
    if (p->held_count < ORDER_HELD)
        p->u.kept[p->held_count++] = (struct order_held){.key = key, .weight = weight};
    else
        p->held = false;
}

void order_add(struct order *o, double v, uint64_t weight)
{
    const uint64_t key = key_of(v);

    if (key < o->least)
        o->least = key;
    if (key > o->most)
        o->most = key;
    o->n += weight;
    o->different++;
    if (!o->no_memory && o->part[0].held)
        hold(&o->part[0], key, weight);
}

double order_least(const struct order *o)
{
    return value_of(o->least);
}

double order_most(const struct order *o)
{
    return value_of(o->most);
}

static int by_key(const void *a, const void *b)
{
    const struct order_held *const x = a;
    const struct order_held *const y = b;

    return (x->key > y->key) - (x->key < y->key);
}

/* The key at `rank` of a part that is held, sorted. */
static uint64_t held_at(const struct order_part *p, uint64_t rank)
{
    uint64_t before = p->below;

    for (uint32_t i = 0; i < p->held_count; i++) {
        before += p->u.kept[i].weight;
        if (rank < before)
            return p->u.kept[i].key;
    }
    REACH_ASSERT(false); /* the numbers of this pass were not those of the first */
    return 0;
}

static void take_held(struct order *o, uint32_t part)
{
    struct order_part *const p = &o->part[part];

    qsort(p->u.kept, p->held_count, sizeof(p->u.kept[0]), by_key);
    for (uint32_t i = 0; i < o->places; i++) {
        if (o->done[i] || o->part_of[i] != part)
            continue;
        o->found[i] = held_at(p, o->ranks[i]);
        o->done[i] = true;
    }
}

/* Makes a part ready for a pass: with few numbers left they are held, else they go into bins. */
static void ready(struct order_part *p, uint64_t inside)
{
    p->held = inside <= ORDER_HELD;
    p->held_count = 0;
    p->inside = 0;
    if (p->held)
        return;
    for (uint32_t i = 0; i < ORDER_BINS; i++) {
        p->u.bins[i].count = 0;
        p->u.bins[i].least = UINT64_MAX;
        p->u.bins[i].most = 0;
    }
}

void order_want(struct order *o, const uint64_t *ranks, uint32_t count)
{
    REACH_ASSERT(count <= ORDER_PLACES);
    o->places = count;
    for (uint32_t i = 0; i < count; i++) {
        REACH_ASSERT(ranks[i] < o->n);
        o->ranks[i] = ranks[i];
        o->done[i] = o->least == o->most || o->no_memory;
        o->found[i] = o->least;
        o->part_of[i] = 0;
    }
    if (o->no_memory || order_done(o))
        return;
    if (o->part[0].held) {
        take_held(o, 0);
        return;
    }
    o->part[0].low = o->least;
    o->part[0].high = o->most;
    ready(&o->part[0], o->n);
}

bool order_done(const struct order *o)
{
    for (uint32_t i = 0; i < o->places; i++) {
        if (!o->done[i])
            return false;
    }
    return true;
}

/* Keys a bin of the part is wide, but for the last, which may be narrower. */
static uint64_t bin_width(const struct order_part *p)
{
    return (p->high - p->low) / ORDER_BINS + 1;
}

static void into_part(struct order_part *p, uint64_t key, uint64_t weight)
{
    uint64_t bin;

    if (p->held) {
        hold(p, key, weight);
        return;
    }
    bin = (key - p->low) / bin_width(p);
    p->inside += weight;
    p->u.bins[bin].count += weight;
    if (key < p->u.bins[bin].least)
        p->u.bins[bin].least = key;
    if (key > p->u.bins[bin].most)
        p->u.bins[bin].most = key;
}

void order_again(struct order *o, double v, uint64_t weight)
{
    const uint64_t key = key_of(v);

    for (uint32_t i = 0; i < o->part_count; i++) {
        struct order_part *const p = &o->part[i];
        if (key >= p->low && key <= p->high)
            into_part(p, key, weight);
    }
}

/* What one bin says about a place that lies in it. */
struct narrowed {
    uint64_t low;
    uint64_t high;
    uint64_t below;
    uint64_t inside;
};

static struct narrowed find_bin(const struct order_part *p, uint64_t rank)
{
    uint64_t below = p->below;
    uint32_t bin = 0;

    while (bin + 1 < ORDER_BINS && rank >= below + p->u.bins[bin].count)
        below += p->u.bins[bin++].count;
    return (struct narrowed){.low = p->u.bins[bin].least,
                             .high = p->u.bins[bin].most,
                             .below = below,
                             .inside = p->u.bins[bin].count};
}

/* The part with these bounds, made where there is none. */
static uint32_t part_for(struct order *o, const struct narrowed *n)
{
    struct order_part *p;

    for (uint32_t i = 0; i < o->part_count; i++) {
        if (o->part[i].low == n->low && o->part[i].high == n->high)
            return i;
    }
    p = add_part(o, n->low, n->high);
    if (!p)
        return 0;
    p->below = n->below;
    ready(p, n->inside);
    return o->part_count - 1;
}

void order_pass_end(struct order *o)
{
    struct narrowed next[ORDER_PLACES];

    for (uint32_t i = 0; i < o->part_count; i++) {
        if (o->part[i].held)
            take_held(o, i);
    }
    for (uint32_t i = 0; i < o->places; i++) {
        if (o->done[i])
            continue;
        next[i] = find_bin(&o->part[o->part_of[i]], o->ranks[i]);
        if (next[i].low == next[i].high) {
            o->found[i] = next[i].low;
            o->done[i] = true;
        }
    }
    o->part_count = 0;
    for (uint32_t i = 0; i < o->places; i++) {
        if (!o->done[i])
            o->part_of[i] = part_for(o, &next[i]);
    }
    for (uint32_t i = 0; i < o->places; i++)
        o->done[i] = o->done[i] || o->no_memory;
}

double order_value(const struct order *o, uint32_t place)
{
    return value_of(o->found[place]);
}

/* stats.h: the nearest rank, ceil(q * n), from 0. */
static uint64_t quarter_rank(uint64_t n, uint64_t quarters)
{
    const uint64_t rank = (quarters * n + 3) / 4;

    return rank < 1 ? 0 : rank - 1;
}

void order_want_quartiles(struct order *o)
{
    const uint64_t ranks[] = {quarter_rank(o->n, 1), (o->n - 1) / 2, o->n / 2,
                              quarter_rank(o->n, 3)};

    order_want(o, ranks, 4);
}

void order_want_median(struct order *o)
{
    const uint64_t ranks[] = {(o->n - 1) / 2, o->n / 2};

    order_want(o, ranks, 2);
}

double order_median(const struct order *o, uint32_t first_place)
{
    const double low = order_value(o, first_place);
    const double high = order_value(o, first_place + 1);

    return low + (high - low) / 2;
}
