/* walk.h: page walks as loads (Pichai, Hsu and Bhattacharjee 2014, sections 6.2 and 6.3): where the
 * entries of a page table lie, which loads a set of misses needs, and in which order. Pure. */
#ifndef REACH_CLIENTS_LAB_WALK_H
#define REACH_CLIENTS_LAB_WALK_H

#include <stdint.h>

enum { LAB_LEVELS = 4, LAB_LEVEL_BITS = 9, LAB_ENTRY_SHIFT = 3, LAB_MAX_WALKS = 32 };

struct lab_walk_load {
    uint64_t entry; /* the page number without the bits of the levels below */
    uint32_t level; /* 0 is the root */
};

/* What one walker reads that takes the misses one after the other: each of the `count` pages
 * through all levels. Writes count x LAB_LEVELS loads; returns how many. */
uint32_t lab_walk_serial(const uint64_t *pages, uint32_t count, struct lab_walk_load *out);

/* The same misses together, level by level: an entry that several walks need is read once, and
 * entries of one 128-byte line follow each other, so that all but the first hit. At most
 * LAB_MAX_WALKS pages. Returns how many loads. */
uint32_t lab_walk_scheduled(const uint64_t *pages, uint32_t count, struct lab_walk_load *out);

/* The 128-byte line of an entry: above all data, each level by itself. Of pages below 2^25. */
uint32_t lab_walk_line(const struct lab_walk_load *load);

#endif
