/* page_tables.h: finds P6 of Mei and Chu 2016, section 5.2, from a walk over pages that no TLB
 * level holds. The functions are pure.
 *
 * Some GPUs cache only the entries of one stretch of memory (512 MB on Kepler and Maxwell). The
 * first load of each stretch then takes longer than the loads after it. Stretches are powers of two
 * long. The start of the first one is unknown, because only the distance of the pages is known.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum page_tables_finding {
    PAGE_TABLES_NONE = 0, /* no stretch has a slower first load */
    PAGE_TABLES_UNSURE,
    PAGE_TABLES_FOUND
};

struct page_tables {
    enum page_tables_finding finding;
    double cycles;  /* additional cycles of the first load */
    double margin;  /* 0..1, as in struct evidence; also valid with PAGE_TABLES_NONE */
    uint32_t loads; /* number of first loads */
};

/* loads[i] is the load of the page at i * stride_bytes. Loads of at most `threshold` cycles did not
 * come from memory and do not count. There are at most PAGE_TABLES_MOST loads. */
enum { PAGE_TABLES_MOST = 4096 };
void page_tables_find(const uint32_t *loads, uint32_t count, uint64_t stride_bytes,
                      double threshold, struct page_tables *out);
