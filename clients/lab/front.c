#include "clients/lab/front.h"

#include "clients/lab/serve.h"

#include <string.h>

enum { BUCKETS = 64, BUCKET_BITS = 6, EMPTY = 0xff };

/* Which of `values` is `value`; `count` if none is, and then it may be put there. */
static uint32_t find(uint8_t bucket[BUCKETS], const uint32_t *values, uint32_t count,
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

/* The lanes that read the same line as the one before. */
static uint32_t repeated(const uint64_t addresses[LAB_LANES], uint32_t lanes)
{
    uint32_t same = 0;
    for (uint32_t lane = 1; lane < LAB_LANES; lane++)
        same |= (uint32_t)((addresses[lane] ^ addresses[lane - 1]) >> LAB_LINE_SHIFT == 0) << lane;
    return same & lanes << 1;
}

void lab_front_coalesce(const uint64_t addresses[LAB_LANES], uint32_t lanes, uint32_t page_shift,
                        struct lab_access *out)
{
    uint8_t line_bucket[BUCKETS];
    uint8_t page_bucket[BUCKETS];
    memset(line_bucket, EMPTY, sizeof line_bucket);
    memset(page_bucket, EMPTY, sizeof page_bucket);
    uint32_t line_count = 0;
    uint32_t page_count = 0;
    uint32_t at = 0;
    for (lanes &= ~repeated(addresses, lanes); lanes != 0; lanes &= lanes - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(lanes);
        const uint32_t line = (uint32_t)(addresses[lane] >> LAB_LINE_SHIFT);
        if (find(line_bucket, out->lines, line_count, line) < line_count)
            continue;
        const uint32_t page = (uint32_t)(addresses[lane] >> page_shift);
        if (line_count == 0 || out->pages[at] != page)
            at = find(page_bucket, out->pages, page_count, page);
        if (at == page_count) {
            out->pages[at] = page;
            out->lane_of_page[at] = (uint8_t)lane;
            page_count++;
        }
        out->lines[line_count] = line;
        out->page_of_line[line_count++] = (uint8_t)at;
    }
    out->line_count = (uint8_t)line_count;
    out->page_count = (uint8_t)page_count;
}
