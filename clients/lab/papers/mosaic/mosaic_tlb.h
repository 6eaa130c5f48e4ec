/* mosaic_tlb.h: one TLB of entries of one size, looked up and filled apart, as a miss in flight
 * needs it. Sets of `ways` entries, least recently used first out; one set is fully associative.
 * Not thread safe.
 */
#ifndef REACH_CLIENTS_LAB_PAPERS_MOSAIC_MOSAIC_TLB_H
#define REACH_CLIENTS_LAB_PAPERS_MOSAIC_MOSAIC_TLB_H

#include <stdbool.h>
#include <stdint.h>

struct mosaic_tlb;

/* `entries` is a multiple of `ways`; 0 entries never hit. NULL: no memory. */
struct mosaic_tlb *mosaic_tlb_new(uint32_t entries, uint32_t ways);
void mosaic_tlb_free(struct mosaic_tlb *take);

/* True if the key is there; it is then the youngest of its set. A key is below 2^32 - 1. */
bool mosaic_tlb_hit(struct mosaic_tlb *t, uint32_t key);

/* Puts the key in, if it is not there, in place of the oldest of its set. */
void mosaic_tlb_fill(struct mosaic_tlb *t, uint32_t key);

#endif
