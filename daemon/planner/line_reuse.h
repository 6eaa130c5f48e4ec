/* line_reuse.h: computes how often reads miss in a cache if some lines are read more often
 * than others. The function is pure, allocates nothing, and may be called on any thread. */
#pragma once

/* Reads of lines at random. The most read share x of the lines receives the share x^(1 -
 * concentration) of the reads. */
struct line_reuse {
    double concentration; /* 0..1 */
    double lines;         /* all lines, at least 1 */
    double kept_bytes;    /* bytes that the cache keeps of a line, above 0 */
    double other_bytes;   /* bytes of other data that pass through the cache for each read */
    double cache_bytes;
    double reads; /* reads since the cache was empty, or 0 if it is full at first */
};

/* Returns the share of the reads that miss, 0..1, in a cache that replaces the data that were used
 * the longest time ago (Che's approximation). */
double line_reuse_misses(const struct line_reuse *r);
