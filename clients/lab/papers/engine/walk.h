/* walk.h: page walks as loads (Pichai, Hsu and Bhattacharjee 2014, sections 6.2 and 6.3). It
 * computes the loads for a set of misses, their order, and the addresses of page table entries.
 * The functions are pure. */
#pragma once

#include <stdint.h>

enum { LAB_LEVELS = 4, LAB_LEVEL_BITS = 9, LAB_ENTRY_SHIFT = 3, LAB_MAX_WALKS = 32 };

struct lab_walk_load {
    uint64_t entry; /* page number without the bits of the levels below */
    uint32_t level; /* 0 is the root */
};

/* Writes the loads of one walker that walks `count` pages one after another, through all levels.
 * Returns count x LAB_LEVELS. */
uint32_t lab_walk_serial(const uint64_t *pages, uint32_t count, struct lab_walk_load *out);

/* Writes the loads of all misses together, level by level. An entry that several walks need is read
 * once. Entries of one 128-byte line are adjacent, so only the first one misses. `count` is at most
 * LAB_MAX_WALKS. Returns the number of loads. */
uint32_t lab_walk_scheduled(const uint64_t *pages, uint32_t count, struct lab_walk_load *out);

/* Returns the 128-byte line of an entry, for pages below 2^25. Tables are above all data, in one
 * range per level. */
uint32_t lab_walk_line(const struct lab_walk_load *load);
