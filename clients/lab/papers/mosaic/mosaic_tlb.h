/* mosaic_tlb.h: a TLB with entries of one size. Lookup and fill are separate calls, because a miss
 * takes time. Sets have `ways` entries and replace the least recently used entry. A TLB with one
 * set is fully associative. The functions are not thread-safe. */
#ifndef REACH_CLIENTS_LAB_PAPERS_MOSAIC_MOSAIC_TLB_H
#define REACH_CLIENTS_LAB_PAPERS_MOSAIC_MOSAIC_TLB_H

#include <stdbool.h>
#include <stdint.h>

struct mosaic_tlb;

/* `entries` is a multiple of `ways`, 1 or more. Returns NULL if out of memory. */
struct mosaic_tlb *mosaic_tlb_new(uint32_t entries, uint32_t ways);
void mosaic_tlb_free(struct mosaic_tlb *take);

/* Looks up a key below 2^32 - 1. Returns whether it is present. A present key becomes the youngest
 * of its set. */
bool mosaic_tlb_hit(struct mosaic_tlb *t, uint32_t key);

/* Replaces the oldest entry of the set by the key, unless the key is present. */
void mosaic_tlb_fill(struct mosaic_tlb *t, uint32_t key);

#endif
