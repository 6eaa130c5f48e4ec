/* order.h: exact order statistics of many numbers in little memory: the values that stand at given
 * places of the sorted row, found in a few passes over the numbers.
 *
 * The first pass knows least, greatest and number; a short row is held whole and is done with it.
 * Of a long one, each further pass deals the part that may hold a place out into bins and keeps the
 * bin that does, until so few are left that they are held. Doubles are compared as 64-bit keys in
 * the same order, so this ends whatever the numbers are. (Munro and Paterson, Selection and sorting
 * with limited storage, 1980, is the classic on selection in passes.)
 *
 *     order_begin(&o);
 *     for all:  order_add(&o, v, weight);
 *     order_want(&o, ranks, count);
 *     while (!order_done(&o)) {
 *         for all:  order_again(&o, v, weight);      (the same numbers, in any order)
 *         order_pass_end(&o);
 *     }
 *     order_value(&o, 0), ...
 */
#ifndef REACH_CLIENTS_FLEET_ORDER_H
#define REACH_CLIENTS_FLEET_ORDER_H

#include <stdbool.h>
#include <stdint.h>

enum { ORDER_HELD = 512, ORDER_BINS = 256, ORDER_PLACES = 4 };

struct order_held {
    uint64_t key;
    uint64_t weight;
};

/* The numbers from key `low` to key `high`, one of which stands at a place. */
struct order_part {
    uint64_t low;
    uint64_t high;
    uint64_t below; /* numbers below `low` */
    uint64_t inside;
    bool held; /* whole: few enough */
    uint32_t held_count;
    union {
        struct order_held kept[ORDER_HELD];
        struct {
            uint64_t count;
            uint64_t least; /* keys that were seen */
            uint64_t most;
        } bins[ORDER_BINS];
    } u;
};

struct order {
    uint64_t n;         /* numbers, by weight */
    uint64_t different; /* calls of order_add: each may be another number */
    uint64_t least;     /* key */
    uint64_t most;
    uint32_t places;
    uint64_t ranks[ORDER_PLACES]; /* from 0 */
    uint64_t found[ORDER_PLACES]; /* keys */
    bool done[ORDER_PLACES];
    uint32_t part_of[ORDER_PLACES]; /* which part may hold it */
    uint32_t part_count;
    uint32_t room;           /* parts that have memory */
    struct order_part *part; /* owned */
    bool no_memory;
};

void order_begin(struct order *o);
void order_free(struct order *o); /* what it holds, not itself */
/* `v` is finite; -0.0 counts as 0.0. */
void order_add(struct order *o, double v, uint64_t weight);
double order_least(const struct order *o); /* n >= 1 */
double order_most(const struct order *o);
/* At most ORDER_PLACES, each below n. */
void order_want(struct order *o, const uint64_t *ranks, uint32_t count);
bool order_done(const struct order *o);
void order_again(struct order *o, double v, uint64_t weight);
void order_pass_end(struct order *o);
double order_value(const struct order *o, uint32_t place);

/* Places of the quartiles and of the two middle values (stats.h: quartiles by nearest rank, the
 * median is the mean of the two middle values): lower quartile, middle, middle, upper quartile. */
void order_want_quartiles(struct order *o);
/* The two middle ones alone. */
void order_want_median(struct order *o);
/* After order_want_median at 0, after order_want_quartiles at 1. */
double order_median(const struct order *o, uint32_t first_place);

#endif
