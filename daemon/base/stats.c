/* stats.c: calculates order statistics by selection, which is linear.
 *
 *     median of {4, 1, 3, 2}:  the third smallest is 3, the largest before it 2  ->  2.5
 *     q = 0.9 of ten values:   rank ceil(9.0) = 9th smallest  ->  index 8
 *
 * Integers of 32 bits are exact as doubles, so there is one selection for both types. Values must
 * not be NaN, which has no rank. (With a NaN the functions return some value.)
 */
#include "base/stats.h"

#include "base/assert.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    STACK_VALUES = 512, /* copies up to this size need no allocation */
    SORTED_VALUES =
        16, /* up to this number of values, sorting while copying is faster than selecting */
};

/* If the product of q and n is whole, its double may be a little too large: 0.7 * 10 is
 * 7.000000000000001. This part of n is subtracted, so that the product does not reach the next
 * rank. */
static const double rank_slack = 1e-9;

/* Values of one array, or their distances from a center. */
struct values {
    const double *f64; /* one of these two pointers is set */
    const uint32_t *u32;
    size_t n;
    bool distances;
    double center;
};

static double value_at(const struct values *v, size_t i)
{
    const double x = v->f64 ? v->f64[i] : v->u32[i];

    return v->distances ? fabs(x - v->center) : x;
}

/* Quickselect (Hoare, "Find", 1961): reorders v until v[k] has its value of the sorted array. Then
 * no value before v[k] is larger and no value after it is smaller. Each round splits the part that
 * holds k into three: smaller than the pivot, equal, larger. So a flat curve (all values equal)
 * takes one round. The pivot is the middle of the part, so sorted input, which sweeps often
 * produce, is the best case. The function makes about 3 n comparisons on average and n^2 / 2 at
 * worst.
 *
 *     k = 2:   4 1 3 2 9   pivot 3   ->   2 1 | 3 | 9 4   ->   v[2] = 3
 */
static double quickselect(double *v, size_t n, size_t k)
{
    size_t first = 0, last = n - 1;

    for (;;) {
        const double pivot = v[first + (last - first) / 2];
        size_t equal = first, next = first, larger = last + 1;

        while (next < larger) {
            const double x = v[next];

            if (x < pivot) {
                v[next++] = v[equal];
                v[equal++] = x;
            } else if (x > pivot) {
                v[next] = v[--larger];
                v[larger] = x;
            } else {
                next++;
            }
        }
        if (k < equal)
            last = equal - 1;
        else if (k >= larger)
            first = larger;
        else
            return v[k];
    }
}

/* Copies a few values in ascending order. */
static void copy_sorted(const struct values *v, double *out)
{
    for (size_t i = 0; i < v->n; i++) {
        const double x = value_at(v, i);
        size_t at = i;

        for (; at > 0 && out[at - 1] > x; at--)
            out[at] = out[at - 1];
        out[at] = x;
    }
}

/* Returns an integer that sorts in the order of the doubles. Negative values have their bits
 * inverted. */
static uint64_t key_of(double x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

/* Finds the k-th smallest without a copy, by halving the range of keys 64 times and counting. */
static double select_by_counting(const struct values *v, size_t k)
{
    uint64_t low = 0, high = UINT64_MAX;
    double x;

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
    low = low >> 63 ? low ^ (uint64_t)1 << 63 : ~low;
    memcpy(&x, &low, sizeof(x));
    return x;
}

/* Numbers of cycles lie close together except for a few outliers, so counting each value takes a
 * fraction of the time. Returns false if a rank is among the values beyond the counters. */
static bool select_by_counters(const uint32_t *v, size_t n, size_t below, size_t k, double *out)
{
    enum { FEWEST = 32, COUNTERS = 1024 };
    uint16_t count[COUNTERS] = {0};
    uint32_t low = UINT32_MAX;
    uint32_t lower = 0;
    size_t up_to = 0;

    if (n < FEWEST || n > UINT16_MAX)
        return false;
    for (size_t i = 0; i < n; i++)
        low = v[i] < low ? v[i] : low;
    for (size_t i = 0; i < n; i++)
        count[v[i] - low < COUNTERS - 1 ? v[i] - low : COUNTERS - 1]++;
    for (uint32_t c = 0; c < COUNTERS - 1; c++) {
        if (up_to <= below)
            lower = low + c;
        up_to += count[c];
        if (up_to > k) {
            *out = below < k ? lower + (low + c - (double)lower) / 2 : low + c;
            return true;
        }
    }
    return false;
}

/* Returns the mean of the values at two ranks, which count from 0; `below` is k or k - 1. */
static double select_between(const struct values *v, size_t below, size_t k)
{
    double few[STACK_VALUES];
    double upper, lower = 0;

    REACH_ASSERT(v->n >= 1 && (v->f64 || v->u32));
    if (v->u32 && select_by_counters(v->u32, v->n, below, k, &upper))
        return upper;
    if (v->n <= SORTED_VALUES) {
        copy_sorted(v, few);
        return below < k ? few[below] + (few[k] - few[below]) / 2 : few[k];
    }
    double *const copy = v->n <= STACK_VALUES ? few : malloc(v->n * sizeof(*copy));
    if (copy) {
        for (size_t i = 0; i < v->n; i++)
            copy[i] = value_at(v, i);
        upper = quickselect(copy, v->n, k);
        /* All smaller values now come before index k. The largest of them has the rank `below`. */
        if (below < k)
            lower = quickselect(copy, k, below);
    } else {
        upper = select_by_counting(v, k);
        if (below < k)
            lower = select_by_counting(v, below);
    }
    if (copy != few)
        free(copy);
    return below < k ? lower + (upper - lower) / 2 : upper;
}

static double median(const struct values *v)
{
    return select_between(v, (v->n - 1) / 2, v->n / 2);
}

/* Returns the value of the nearest rank: the ceil(q n)-th smallest, or the smallest for q = 0. */
static double quantile(const struct values *v, double q)
{
    const double rank = ceil((q - rank_slack) * (double)v->n);
    const size_t k = rank < 1 ? 0 : (size_t)rank - 1;

    REACH_ASSERT(q >= 0 && q <= 1);
    return select_between(v, k, k);
}

double stats_median_f64(const double *v, size_t n)
{
    return median(&(struct values){.f64 = v, .n = n});
}

double stats_median_u32(const uint32_t *v, size_t n)
{
    return median(&(struct values){.u32 = v, .n = n});
}

double stats_quantile_f64(const double *v, size_t n, double q)
{
    return quantile(&(struct values){.f64 = v, .n = n}, q);
}

uint32_t stats_quantile_u32(const uint32_t *v, size_t n, double q)
{
    return (uint32_t)quantile(&(struct values){.u32 = v, .n = n}, q);
}

double stats_mad_f64(const double *v, size_t n)
{
    struct values values = {.f64 = v, .n = n};

    values.center = median(&values);
    values.distances = true;
    return median(&values);
}

uint32_t stats_count_above_u32(const uint32_t *v, size_t n, double threshold)
{
    uint32_t above = 0;

    for (size_t i = 0; i < n; i++)
        above += v[i] > threshold;
    return above;
}
