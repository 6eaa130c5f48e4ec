/* coalescer.h: reduces the addresses of a warp's lanes to distinct cache lines and distinct pages
 * (Pichai, Hsu and Bhattacharjee 2014, section 6.2). The functions are pure. */
#ifndef REACH_CLIENTS_LAB_PAPERS_ENGINE_COALESCER_H
#define REACH_CLIENTS_LAB_PAPERS_ENGINE_COALESCER_H

#include <stdint.h>

enum { LAB_LANES = 32 };

/* One memory instruction of one warp. Lines and pages are in the order of the lanes. */
struct lab_access {
    uint8_t line_count, page_count;
    uint8_t page_of_line[LAB_LANES]; /* index into pages[] */
    uint8_t lane_of_page[LAB_LANES]; /* first lane that uses the page */
    uint32_t lines[LAB_LANES];       /* byte address >> LAB_LINE_SHIFT */
    uint32_t pages[LAB_LANES];       /* byte address >> page_shift */
};

/* Coalesces the byte addresses of the lanes in `lanes`. Addresses are below 2^38. A page is at
 * least as large as a line. */
void lab_coalesce(const uint64_t addresses[LAB_LANES], uint32_t lanes, uint32_t page_shift,
                  struct lab_access *out);

#endif
