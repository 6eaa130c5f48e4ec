/* stats.c: order statistics by quickselect (Hoare, "Find", 1961).
 *
 * select(v, n, k) reorders v until v[k] is what sorting would put there, everything before it is
 * no larger and everything behind no smaller. The pivot is the median of first, middle and last,
 * so sorted input, which sweeps produce all the time, is the good case and not the bad one. Equal
 * values stop both scans, so a flat curve splits in the middle as well. Worst case O(n^2), on
 * average about 3 n comparisons.
 *
 *     median of {4, 1, 3, 2}:  k = 2 gives 3, the largest before it is 2  ->  2.5
 *     q = 0.9 of ten values:   rank ceil(9.0) = 9th  ->  index 8
 *
 * Values of f64 functions must not be NaN: it compares false with everything and has no rank.
 */
#include "base/stats.h"

#include "base/assert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STACK_VALUES = 512 }; /* copies up to this size need no allocation */

/* The same ten lines for two types; a macro, because the type of the values is all that differs. */
#define DEFINE_ORDER(type, suffix)                                                                 \
    static void swap_##suffix(type *a, type *b)                                                    \
    {                                                                                              \
        const type t = *a;                                                                         \
        *a = *b;                                                                                   \
        *b = t;                                                                                    \
    }                                                                                              \
                                                                                                   \
    /* Leaves the median of v[lo], v[mid], v[hi] in the middle, the others around it. */           \
    static type pivot_##suffix(type *v, ptrdiff_t lo, ptrdiff_t hi)                                \
    {                                                                                              \
        const ptrdiff_t mid = lo + (hi - lo) / 2;                                                  \
        if (v[mid] < v[lo])                                                                        \
            swap_##suffix(&v[mid], &v[lo]);                                                        \
        if (v[hi] < v[lo])                                                                         \
            swap_##suffix(&v[hi], &v[lo]);                                                         \
        if (v[hi] < v[mid])                                                                        \
            swap_##suffix(&v[hi], &v[mid]);                                                        \
        return v[mid];                                                                             \
    }                                                                                              \
                                                                                                   \
    static type select_##suffix(type *v, size_t n, size_t k)                                       \
    {                                                                                              \
        ptrdiff_t lo = 0, hi = (ptrdiff_t)n - 1;                                                   \
        const ptrdiff_t want = (ptrdiff_t)k;                                                       \
        while (lo < hi) {                                                                          \
            const type p = pivot_##suffix(v, lo, hi);                                              \
            ptrdiff_t i = lo, j = hi;                                                              \
            while (i <= j) {                                                                       \
                while (v[i] < p)                                                                   \
                    i++;                                                                           \
                while (p < v[j])                                                                   \
                    j--;                                                                           \
                if (i <= j)                                                                        \
                    swap_##suffix(&v[i++], &v[j--]);                                               \
            }                                                                                      \
            if (want <= j)                                                                         \
                hi = j;                                                                            \
            else if (want >= i)                                                                    \
                lo = i;                                                                            \
            else                                                                                   \
                break; /* between the two halves: equal to the pivot, and in its place */          \
        }                                                                                          \
        return v[k];                                                                               \
    }                                                                                              \
                                                                                                   \
    double stats_median_##suffix(type *v, size_t n)                                                \
    {                                                                                              \
        REACH_ASSERT(n >= 1);                                                                      \
        const type upper = select_##suffix(v, n, n / 2);                                           \
        if (n % 2 == 1)                                                                            \
            return (double)upper;                                                                  \
        type lower = v[0]; /* the largest of those that selecting left before the middle */        \
        for (size_t i = 1; i < n / 2; i++)                                                         \
            lower = v[i] > lower ? v[i] : lower;                                                   \
        return (double)lower + ((double)upper - (double)lower) / 2;                                \
    }                                                                                              \
                                                                                                   \
    type stats_quantile_##suffix(type *v, size_t n, double q)                                      \
    {                                                                                              \
        REACH_ASSERT(n >= 1);                                                                      \
        return select_##suffix(v, n, rank_of(n, q));                                               \
    }                                                                                              \
                                                                                                   \
    double stats_median_of_##suffix(const type *v, size_t n)                                       \
    {                                                                                              \
        type few[STACK_VALUES];                                                                    \
        REACH_ASSERT(n >= 1);                                                                      \
        type *copy = n <= STACK_VALUES ? few : allocate(n, sizeof(*v));                            \
        memcpy(copy, v, n * sizeof(*v));                                                           \
        const double median = stats_median_##suffix(copy, n);                                      \
        if (copy != few)                                                                           \
            free(copy);                                                                            \
        return median;                                                                             \
    }                                                                                              \
                                                                                                   \
    double stats_mad_of_##suffix(const type *v, size_t n)                                          \
    {                                                                                              \
        double few[STACK_VALUES];                                                                  \
        const double median = stats_median_of_##suffix(v, n);                                      \
        double *deviation = n <= STACK_VALUES ? few : allocate(n, sizeof(*deviation));             \
        for (size_t i = 0; i < n; i++)                                                             \
            deviation[i] = fabs((double)v[i] - median);                                            \
        const double mad = stats_median_f64(deviation, n);                                         \
        if (deviation != few)                                                                      \
            free(deviation);                                                                       \
        return mad;                                                                                \
    }

/* Index of the nearest rank: the ceil(q n)-th smallest, and the smallest for q = 0. The tiny
 * amount taken off keeps products like 0.7 * 10 = 7.000000000000001 from reaching the next rank. */
static size_t rank_of(size_t n, double q)
{
    REACH_ASSERT(q >= 0 && q <= 1);
    const double rank = ceil(q * (double)n - 1e-9 * (double)n);

    if (rank < 1)
        return 0;
    return rank > (double)n ? n - 1 : (size_t)rank - 1;
}

static void *allocate(size_t n, size_t bytes)
{
    void *p = calloc(n, bytes);

    REACH_ASSERT(p != NULL);
    return p;
}

/* f64 first: the deviations of both types are f64. */
DEFINE_ORDER(double, f64)
DEFINE_ORDER(uint32_t, u32)
