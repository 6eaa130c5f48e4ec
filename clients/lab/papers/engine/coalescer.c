/* coalescer.c: see coalescer.h. Hash tables find the distinct lines and pages. */
#include "clients/lab/papers/engine/coalescer.h"

#include <string.h>

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

void lab_coalesce(const uint32_t *lines, const uint8_t *homes, uint32_t count,
                  struct lab_access *out)
{
    uint8_t line_bucket[BUCKETS];
    uint8_t page_bucket[BUCKETS];
    uint32_t line_count = 0;
    uint32_t page_count = 0;
    uint32_t at = 0;
    memset(line_bucket, EMPTY, sizeof line_bucket);
    memset(page_bucket, EMPTY, sizeof page_bucket);
    for (uint32_t i = 0; i < count; i++) {
        if ((i > 0 && lines[i] == lines[i - 1]) ||
            find_value(line_bucket, out->lines, line_count, lines[i]) < line_count)
            continue;
        const uint32_t page = lines[i] >> (LAB_PAGE_SHIFT - LAB_LINE_SHIFT);
        if (line_count == 0 || out->pages[at] != page)
            at = find_value(page_bucket, out->pages, page_count, page);
        if (at == page_count) {
            out->pages[at] = page;
            out->home_of_page[at] = homes[i];
            page_count++;
        }
        out->lines[line_count] = lines[i];
        out->page_of_line[line_count++] = (uint8_t)at;
    }
    out->line_count = (uint8_t)line_count;
    out->page_count = (uint8_t)page_count;
}
