/* coalescer.h: reduces the lines of a warp's lanes to distinct lines and distinct pages (Pichai,
 * Hsu and Bhattacharjee 2014, section 6.2). The functions are pure. */
#pragma once

#include <stdint.h>

enum { LAB_LANES = 32, LAB_LINE_SHIFT = 7, LAB_PAGE_SHIFT = 12 };

/* One memory instruction of one warp. Lines and pages are in the order of the lanes. */
struct lab_access {
    uint8_t line_count, page_count;
    uint8_t page_of_line[LAB_LANES]; /* index into pages[] */
    uint8_t home_of_page[LAB_LANES]; /* home warp of the first lane that uses the page */
    uint32_t lines[LAB_LANES];       /* byte address >> LAB_LINE_SHIFT */
    uint32_t pages[LAB_LANES];       /* byte address >> LAB_PAGE_SHIFT */
};

/* Coalesces `count` lines, 1 to LAB_LANES, which may repeat. homes[i] is the home warp of the lane
 * of lines[i]: the warp of the block to which it belongs. */
void lab_coalesce(const uint32_t *lines, const uint8_t *homes, uint32_t count,
                  struct lab_access *out);
