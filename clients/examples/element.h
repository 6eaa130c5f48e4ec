/* element.h: the computations of the jobs per element: the position of a sample, the contents of
 * memory there, the bucket of a value. Host and device compile the same lines, so the references on
 * the CPU check what the kernels run. The finalizers are from MurmurHash3 (Appleby, public
 * domain). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#ifdef __CUDACC__
#define ELEMENT_FN static __host__ __device__ __forceinline__
#else
#define ELEMENT_FN static inline
#endif

/* Returns the high 64 bits of a product, which spreads a hash evenly over [0, range) without a
 * division. */
ELEMENT_FN uint64_t element_scale(uint64_t hash, uint64_t range)
{
#ifdef __CUDA_ARCH__
    return __umul64hi(hash, range);
#else
    return (uint64_t)(((unsigned __int128)hash * range) >> 64);
#endif
}

/* Applies Murmur3's 64-bit finalizer, which is one to one. */
ELEMENT_FN uint64_t element_mix(uint64_t k)
{
    k = (k ^ (k >> 33)) * 0xff51afd7ed558ccdull;
    k = (k ^ (k >> 33)) * 0xc4ceb9fe1a85ec53ull;
    return k ^ (k >> 33);
}

/* Applies Murmur3's 32-bit finalizer. */
ELEMENT_FN uint32_t element_mix32(uint32_t k)
{
    k = (k ^ (k >> 16)) * 0x85ebca6bu;
    k = (k ^ (k >> 13)) * 0xc2b2ae35u;
    return k ^ (k >> 16);
}

/* Returns the i-th number of a random sequence in [0, range); i may come in any order. */
ELEMENT_FN uint64_t element_random(uint64_t i, uint32_t seed, uint64_t range)
{
    uint64_t x = (i + ((uint64_t)seed << 40) + 1) * 0x9e3779b97f4a7c15ull;

    x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93ull;
    x = (x ^ (x >> 29)) * 0x9e3779b97f4a7c15ull;
    return element_scale(x, range);
}

/* Returns whether `at` is in [first, first + length). */
ELEMENT_FN bool element_inside(uint64_t at, uint64_t first, uint64_t length)
{
    return at - first < length;
}

/* Sampling: returns the contents of word `at` of memory. */
ELEMENT_FN uint32_t element_word(uint64_t at)
{
    return (uint32_t)at * 0x9e3779b1u + (uint32_t)(at >> 32) * 0x85ebca6bu + 1;
}

/* Random reads: lines have 128 bytes. Every line and every word of a line has another value. */
enum { LINE_BYTES = 128, LINE_WORDS = LINE_BYTES / 4 };

ELEMENT_FN uint32_t element_line_word(uint32_t line, uint32_t word)
{
    return line * 0x9e3779b1u + word * 0x85ebca6bu + 1;
}

/* Gather: returns a row's number in a column. Numbers are small and whole, so sums are exact in any
 * order. */
ELEMENT_FN float element_cell(uint64_t row, uint32_t column)
{
    return (float)((element_mix32((uint32_t)row) + column * 5) & 31);
}

/* Grouping: a bucket with key 0 is empty. */
struct element_bucket {
    unsigned long long key;
    unsigned long long count;
};

/* Returns the key of a value. Each round over the same input has different keys. */
ELEMENT_FN uint64_t element_key(uint32_t value, uint32_t round)
{
    return (uint64_t)(round + 1) << 32 | value;
}

/* Returns the first bucket of the search for a key. */
ELEMENT_FN uint64_t element_bucket_of(uint64_t key, uint64_t buckets)
{
    return element_scale(element_mix(key), buckets);
}

/* Returns the next bucket of a search that stays in [first, first + length), the window of its
 * start. */
ELEMENT_FN uint64_t element_next_bucket(uint64_t at, uint64_t first, uint64_t length)
{
    return element_inside(at + 1, first, length) ? at + 1 : first;
}

/* Returns the contribution of each value of a group to the checksum. */
ELEMENT_FN uint64_t element_check(uint64_t key)
{
    return element_mix(key ^ 0x5bd1e9955bd1e995ull);
}
