/* coalescer.c: see coalescer.h. */
#include "clients/lab/papers/engine/coalescer.h"

/* Returns the index of `value` in values[], or `count` if it is missing. */
static uint32_t find_value(const uint32_t *values, uint32_t count, uint32_t value)
{
    uint32_t at = 0;
    while (at < count && values[at] != value)
        at++;
    return at;
}

void lab_coalesce(const uint32_t *lines, const uint8_t *homes, uint32_t count,
                  struct lab_access *out)
{
    uint32_t line_count = 0;
    uint32_t page_count = 0;
    uint32_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        if ((i > 0 && lines[i] == lines[i - 1]) ||
            find_value(out->lines, line_count, lines[i]) < line_count)
            continue;
        const uint32_t page = lines[i] >> (LAB_PAGE_SHIFT - LAB_LINE_SHIFT);
        if (line_count == 0 || out->pages[at] != page)
            at = find_value(out->pages, page_count, page);
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
