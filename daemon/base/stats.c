/* stats.c: order statistics by selection, which is linear; stats_select.h says how.
 *
 *     median of {4, 1, 3, 2}:  the third smallest is 3, the largest before it 2  ->  2.5
 *     q = 0.9 of ten values:   rank ceil(9.0) = 9th smallest  ->  index 8
 *
 * Where there is no memory for a copy of many values they are counted instead, which takes longer
 * and gives the same.
 *
 * Values must not be NaN: it has no rank. (The functions end all the same, with some value.)
 */
#include "base/stats.h"

#include "base/assert.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SELECT_TYPE double
#define SELECT_NAME select_f64
#include "base/stats_select.h"
#undef SELECT_TYPE
#undef SELECT_NAME

#define SELECT_TYPE uint32_t
#define SELECT_NAME select_u32
#include "base/stats_select.h"
#undef SELECT_TYPE
#undef SELECT_NAME

enum { STACK_VALUES = 512 }; /* copies up to this size need no allocation */

/* Where the product of q and n is whole it may come out a little too large: 0.7 * 10 is
 * 7.000000000000001. Taking off this much of n keeps it from reaching the next rank. */
static const double rank_slack = 1e-9;

/* Index of the nearest rank: the ceil(q n)-th smallest, and the smallest for q = 0. */
static size_t rank_of(size_t n, double q)
{
    REACH_ASSERT(n >= 1 && q >= 0 && q <= 1);
    const double rank = ceil((q - rank_slack) * (double)n);

    return rank < 1 ? 0 : (size_t)rank - 1;
}

static double middle(double lower, double upper)
{
    return lower + (upper - lower) / 2;
}

double stats_median_f64(double *v, size_t n)
{
    REACH_ASSERT(n >= 1);
    const double upper = select_f64(v, n, n / 2);
    double lower = v[0];

    if (n % 2 == 1)
        return upper;
    /* Selecting has left all smaller ones before the middle: the largest of them is the other. */
    for (size_t i = 1; i < n / 2; i++)
        lower = v[i] > lower ? v[i] : lower;
    return middle(lower, upper);
}

double stats_median_u32(uint32_t *v, size_t n)
{
    REACH_ASSERT(n >= 1);
    const uint32_t upper = select_u32(v, n, n / 2);
    uint32_t lower = v[0];

    if (n % 2 == 1)
        return upper;
    for (size_t i = 1; i < n / 2; i++)
        lower = v[i] > lower ? v[i] : lower;
    return middle(lower, upper);
}

double stats_quantile_f64(double *v, size_t n, double q)
{
    return select_f64(v, n, rank_of(n, q));
}

uint32_t stats_quantile_u32(uint32_t *v, size_t n, double q)
{
    return select_u32(v, n, rank_of(n, q));
}

/* ---- without memory for a copy --------------------------------------------------------------- */

/* Values that must stay as they are: of one array, or their distances from a center. */
struct untouched {
    const double *f64; /* one of the two */
    const uint32_t *u32;
    size_t n;
    bool distances;
    double center;
};

static double value_at(const struct untouched *v, size_t i)
{
    const double x = v->f64 ? v->f64[i] : v->u32[i];

    return v->distances ? fabs(x - v->center) : x;
}

/* A whole number that orders as the value does: negative ones have their bits turned round. */
static uint64_t key_of(double x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

static double value_of(uint64_t key)
{
    const uint64_t bits = key >> 63 ? key ^ (uint64_t)1 << 63 : ~key;
    double x;

    memcpy(&x, &bits, sizeof(x));
    return x;
}

/* The k-th smallest, k from 0, by halving the range of keys 64 times and counting. */
static double count_down(const struct untouched *v, size_t k)
{
    uint64_t low = 0, high = UINT64_MAX;

    while (low < high) {
        const uint64_t mid = low + (high - low) / 2;
        size_t below = 0;

        for (size_t i = 0; i < v->n; i++)
            below += key_of(value_at(v, i)) <= mid;
        if (below > k)
            high = mid;
        else
            low = mid + 1;
    }
    return value_of(low);
}

static double median_untouched(const struct untouched *v)
{
    const double upper = count_down(v, v->n / 2);

    return v->n % 2 == 1 ? upper : middle(count_down(v, v->n / 2 - 1), upper);
}

/* ---- of what must not be changed ---------------------------------------------------------------
 */

/* `few` where n values fit into it, else memory that release() gives back; NULL without memory. */
static void *room_for(size_t n, size_t bytes, void *few)
{
    REACH_ASSERT(n >= 1);
    return n <= STACK_VALUES ? few : calloc(n, bytes);
}

static void release(void *p, const void *few)
{
    if (p != few)
        free(p);
}

double stats_median_of_f64(const double *v, size_t n)
{
    double few[STACK_VALUES];
    double *copy = room_for(n, sizeof(*copy), few);

    if (!copy)
        return median_untouched(&(struct untouched){.f64 = v, .n = n});
    memcpy(copy, v, n * sizeof(*copy));
    const double median = stats_median_f64(copy, n);
    release(copy, few);
    return median;
}

double stats_median_of_u32(const uint32_t *v, size_t n)
{
    uint32_t few[STACK_VALUES];
    uint32_t *copy = room_for(n, sizeof(*copy), few);

    if (!copy)
        return median_untouched(&(struct untouched){.u32 = v, .n = n});
    memcpy(copy, v, n * sizeof(*copy));
    const double median = stats_median_u32(copy, n);
    release(copy, few);
    return median;
}

double stats_mad_of_f64(const double *v, size_t n)
{
    double few[STACK_VALUES];
    double *deviation = room_for(n, sizeof(*deviation), few);
    const double median = stats_median_of_f64(v, n);

    if (!deviation)
        return median_untouched(
            &(struct untouched){.f64 = v, .n = n, .distances = true, .center = median});
    for (size_t i = 0; i < n; i++)
        deviation[i] = fabs(v[i] - median);
    const double mad = stats_median_f64(deviation, n);
    release(deviation, few);
    return mad;
}

double stats_mad_of_u32(const uint32_t *v, size_t n)
{
    double few[STACK_VALUES];
    double *deviation = room_for(n, sizeof(*deviation), few);
    const double median = stats_median_of_u32(v, n);

    if (!deviation)
        return median_untouched(
            &(struct untouched){.u32 = v, .n = n, .distances = true, .center = median});
    for (size_t i = 0; i < n; i++)
        deviation[i] = fabs((double)v[i] - median);
    const double mad = stats_median_f64(deviation, n);
    release(deviation, few);
    return mad;
}
