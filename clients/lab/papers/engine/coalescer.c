/* coalescer.c: see coalescer.h. Hash tables find the distinct lines and pages. */
#include "clients/lab/papers/engine/coalescer.h"

#include "clients/lab/papers/engine/shared_memory_system.h"

#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { BUCKETS = 64, BUCKET_BITS = 6, EMPTY = 0xff };

/* Returns the index of `value` in values[]. If it is missing, returns `count`, and the caller may
 * append it. */
static uint32_t find_value(uint8_t bucket[BUCKETS], const uint32_t *values, uint32_t count,
                           uint32_t value)
{
    uint32_t at = value * 0x9e3779b1u >> (32 - BUCKET_BITS);
    for (; bucket[at] != EMPTY; at = (at + 1) % BUCKETS) {
        if (values[bucket[at]] == value)
            return bucket[at];
    }
    bucket[at] = (uint8_t)count;
    return count;
}

/* Writes the lines of all lanes. Returns the lanes that have the same line as the lane before. */
static uint32_t split_lines(const uint64_t addresses[LAB_LANES], uint32_t lines[LAB_LANES])
{
    uint32_t same = 0;
#ifdef __SSE2__
    __m128i before = _mm_setzero_si128();
    for (uint32_t lane = 0; lane < LAB_LANES; lane += 4) {
        const __m128i *at = (const void *)(addresses + lane);
        const __m128i low = _mm_srli_epi64(_mm_loadu_si128(at), LAB_LINE_SHIFT);
        const __m128i high = _mm_srli_epi64(_mm_loadu_si128(at + 1), LAB_LINE_SHIFT);
        const __m128i four = _mm_castps_si128(
            _mm_shuffle_ps(_mm_castsi128_ps(low), _mm_castsi128_ps(high), _MM_SHUFFLE(2, 0, 2, 0)));
        const __m128i moved = _mm_or_si128(_mm_slli_si128(four, 4), _mm_srli_si128(before, 12));
        const __m128i equal = _mm_cmpeq_epi32(four, moved);
        _mm_storeu_si128((void *)(lines + lane), four);
        same |= (uint32_t)_mm_movemask_ps(_mm_castsi128_ps(equal)) << lane;
        before = four;
    }
    same &= ~1u;
#else
    for (uint32_t lane = 0; lane < LAB_LANES; lane++) {
        lines[lane] = (uint32_t)(addresses[lane] >> LAB_LINE_SHIFT);
        same |= (uint32_t)(lane > 0 && lines[lane] == lines[lane - 1]) << lane;
    }
#endif
    return same;
}

void lab_coalesce(const uint64_t addresses[LAB_LANES], uint32_t lanes, uint32_t page_shift,
                  struct lab_access *out)
{
    uint8_t line_bucket[BUCKETS];
    uint8_t page_bucket[BUCKETS];
    uint32_t lines[LAB_LANES];
    uint32_t line_count = 0;
    uint32_t page_count = 0;
    uint32_t at = 0;
    memset(line_bucket, EMPTY, sizeof line_bucket);
    memset(page_bucket, EMPTY, sizeof page_bucket);
    lanes &= ~(split_lines(addresses, lines) & lanes << 1);
    for (; lanes != 0; lanes &= lanes - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(lanes);
        if (find_value(line_bucket, out->lines, line_count, lines[lane]) < line_count)
            continue;
        const uint32_t page = lines[lane] >> (page_shift - LAB_LINE_SHIFT);
        if (line_count == 0 || out->pages[at] != page)
            at = find_value(page_bucket, out->pages, page_count, page);
        if (at == page_count) {
            out->pages[at] = page;
            out->lane_of_page[at] = (uint8_t)lane;
            page_count++;
        }
        out->lines[line_count] = lines[lane];
        out->page_of_line[line_count++] = (uint8_t)at;
    }
    out->line_count = (uint8_t)line_count;
    out->page_count = (uint8_t)page_count;
}
