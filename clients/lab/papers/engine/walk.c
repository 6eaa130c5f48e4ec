/* walk.c: see walk.h. */
#include "clients/lab/papers/engine/walk.h"

#include "clients/lab/papers/engine/shared_memory_system.h"

/* Tables begin above all data. Each level has the lines of 2^34 bytes. */
static const uint32_t FIRST_TABLE_LINE = 1u << 31;
enum { LEVEL_LINES_SHIFT = 27 };

static uint64_t entry_number(uint64_t page, uint32_t level)
{
    return page >> (LAB_LEVEL_BITS * (LAB_LEVELS - 1 - level));
}

uint32_t lab_walk_serial(const uint64_t *pages, uint32_t count, struct lab_walk_load *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t level = 0; level < LAB_LEVELS; level++)
            out[n++] = (struct lab_walk_load){entry_number(pages[i], level), level};
    }
    return n;
}

/* Sorts in ascending order, so that equal entries and entries of one line are neighbors. */
static void sort_pages(uint64_t *values, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        const uint64_t value = values[i];
        uint32_t at = i;
        for (; at > 0 && values[at - 1] > value; at--)
            values[at] = values[at - 1];
        values[at] = value;
    }
}

uint32_t lab_walk_scheduled(const uint64_t *pages, uint32_t count, struct lab_walk_load *out)
{
    uint64_t sorted[LAB_MAX_WALKS];
    uint32_t n = 0;
    for (uint32_t i = 0; i < count; i++)
        sorted[i] = pages[i];
    sort_pages(sorted, count);
    for (uint32_t level = 0; level < LAB_LEVELS; level++) {
        for (uint32_t i = 0; i < count; i++) {
            const uint64_t entry = entry_number(sorted[i], level);
            out[n] = (struct lab_walk_load){entry, level};
            n += i == 0 || entry != entry_number(sorted[i - 1], level);
        }
    }
    return n;
}

uint32_t lab_walk_line(const struct lab_walk_load *load)
{
    return FIRST_TABLE_LINE + (load->level << LEVEL_LINES_SHIFT) +
           (uint32_t)(load->entry >> (LAB_LINE_SHIFT - LAB_ENTRY_SHIFT));
}
