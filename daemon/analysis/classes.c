/* classes.c: see classes.h.
 *
 *   .. ...        .  .. .        The gaps are 8 2 1 1 1, widest first. The first is more than three
 *                                times the second, so there are two classes. If the gaps are
 *                                8 3 1 1, no gap is that much wider, so there is one class.
 */
#include "analysis/classes.h"

#include "base/assert.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#define CLEAR_TIMES 3.0
#define NOISE_TIMES 5.0

enum { FEWEST_OF_A_CLASS = 2 };

struct ranked {
    double value;
    uint32_t place; /* index in the caller's array */
};

struct gap {
    double width;
    uint32_t after; /* rank of the preceding value */
};

static int by_value(const void *left, const void *right)
{
    const struct ranked *a = left;
    const struct ranked *b = right;
    return (a->value > b->value) - (a->value < b->value);
}

static int widest_first(const void *left, const void *right)
{
    const struct gap *a = left;
    const struct gap *b = right;
    return (a->width < b->width) - (a->width > b->width);
}

/* Sorts the values; `out` has n elements. */
static void rank(const double *values, uint32_t n, struct ranked *out)
{
    REACH_ASSERT(n >= 1 && n <= CLASSES_MAX_VALUES);
    for (uint32_t i = 0; i < n; i++)
        out[i] = (struct ranked){.value = values[i], .place = i};
    qsort(out, n, sizeof out[0], by_value);
}

/* Writes the class of each rank. Returns whether these gaps leave enough values in every class. */
static bool make_classes(const struct gap *gaps, uint32_t splits, uint32_t n, uint32_t *class_of)
{
    bool border[CLASSES_MAX_VALUES] = {false};
    uint32_t members[CLASSES_MAX] = {0};
    uint32_t class = 0;

    for (uint32_t i = 0; i < splits; i++)
        border[gaps[i].after] = true;
    for (uint32_t r = 0; r < n; r++) {
        class_of[r] = class;
        members[class] += 1;
        class += border[r];
    }
    while (class > 0 && members[class] >= FEWEST_OF_A_CLASS)
        class --;
    return members[class] >= FEWEST_OF_A_CLASS;
}

/* Returns the number of the widest gaps that are clear: the fewest that are followed by a far
 * narrower one. */
static uint32_t count_splits(const struct gap *gaps, uint32_t n, double noise)
{
    for (uint32_t k = 1; k < CLASSES_MAX && k < n; k++) {
        const double inside = k + 1 < n ? gaps[k].width : 0;
        const double clear = gaps[k - 1].width;
        if (clear <= NOISE_TIMES * noise || !(clear > 0))
            return 0;
        if (clear > CLEAR_TIMES * inside)
            return k;
    }
    return 0;
}

uint32_t classes_split(const double *values, uint32_t n, double noise, uint32_t *out_class)
{
    struct ranked ranked[CLASSES_MAX_VALUES] = {{0}};
    struct gap gaps[CLASSES_MAX_VALUES] = {{0}};
    uint32_t class_of[CLASSES_MAX_VALUES];

    rank(values, n, ranked);
    for (uint32_t i = 0; i + 1 < n; i++)
        gaps[i] = (struct gap){.width = ranked[i + 1].value - ranked[i].value, .after = i};
    qsort(gaps, n - 1, sizeof gaps[0], widest_first);
    uint32_t splits = count_splits(gaps, n, noise);
    if (!make_classes(gaps, splits, n, class_of) && splits > 0) {
        splits = 0;
        (void)make_classes(gaps, 0, n, class_of);
    }
    for (uint32_t r = 0; r < n; r++)
        out_class[ranked[r].place] = class_of[r];
    return splits + 1;
}

double classes_margin(const double *values, uint32_t n, double noise, const uint32_t *class)
{
    struct ranked ranked[CLASSES_MAX_VALUES] = {{0}};
    double clear = INFINITY; /* the narrowest gap between two classes */
    double inside = 0;       /* the widest gap within a class; `next` is the second widest */
    double next = 0;

    rank(values, n, ranked);
    for (uint32_t i = 0; i + 1 < n; i++) {
        const double width = ranked[i + 1].value - ranked[i].value;
        if (class[ranked[i + 1].place] != class[ranked[i].place]) {
            clear = fmin(clear, width);
            continue;
        }
        next = fmax(next, fmin(inside, width));
        inside = fmax(inside, width);
    }
    if (isfinite(clear))
        return 1 - fmax(CLEAR_TIMES * inside, NOISE_TIMES * noise) / clear;
    const double needed = fmax(CLEAR_TIMES * next, NOISE_TIMES * noise);
    return n > 1 && needed > 0 ? fmax(0, 1 - inside / needed) : 0;
}
