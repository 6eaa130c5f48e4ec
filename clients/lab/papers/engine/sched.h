/* sched.h: selects the warp that issues next and the warps that may load. The orders are round
 * robin, oldest first, and greedy-then-oldest. Cache-conscious scheduling (CCWS) follows Rogers,
 * O'Connor and Aamodt 2012. Pichai, Hsu and Bhattacharjee 2014, section 7, add TA-CCWS and TCWS.
 * TA-CCWS weights lines whose page also missed the TLB. The victim tags of TCWS are pages. Times
 * are cycles. Only one thread may use a scheduler at a time.
 */
#pragma once

#include "clients/lab/papers/engine/cache.h"

/* Greedy: the warp that issued last continues while it can. */
enum lab_order { LAB_ROUND_ROBIN = 0, LAB_GREEDY_OLDEST, LAB_OLDEST };
enum lab_locality { LAB_NO_LOCALITY = 0, LAB_OF_LINES, LAB_OF_PAGES };
enum { LAB_MAX_WARPS = 64, LAB_DEPTHS = 4 };

/* All constants of these schedulers. Constants with [t] are in Pichai's text, and the other
 * constants are from Rogers. No constant depends on a result. A core of the released simulator
 * issues one instruction per cycle of 325 MHz. This is four cycles of the engine. */
enum {
    LAB_BASE_SCORE = 100,  /* score of a warp that lost no line */
    LAB_THROTTLE = 8,      /* K_THROTTLE */
    LAB_LINE_ENTRIES = 16, /* victim tags per warp [t] */
    LAB_LINE_WAYS = 8,     /* [t] */
    LAB_PAGE_ENTRIES = 8,  /* [t] */
    LAB_DECAY_CYCLES = 4,  /* cycles after which a score loses a point */
    LAB_FIND_CYCLES = 4    /* cycles between two selections of the warps that may load */
};

struct lab_sched_desc {
    enum lab_order order;
    enum lab_locality locality;
    uint32_t miss_weight; /* weight of a lost line whose page missed too (TA-CCWS x:1); 0 means 1 */
    uint32_t depth_weights[LAB_DEPTHS]; /* points for a TLB hit at each depth */
};

/* The scores of the warps of one core. */
struct lab_locality_state {
    struct lab_sched_desc desc;
    uint32_t warps;
    uint64_t hits;         /* hits of victim tags by warps that run */
    uint64_t instructions; /* instructions that these warps issued */
    uint32_t hits_of[LAB_MAX_WARPS];
    uint32_t instructions_of[LAB_MAX_WARPS];
    uint32_t live;     /* number of warps at found_at */
    uint64_t may_load; /* mask of the warps selected at found_at */
    uint64_t found_at;
    bool started;
    uint64_t raised;               /* mask of the warps whose score may be above the base */
    uint64_t low;                  /* mask of the warps whose score is below the base */
    uint64_t score[LAB_MAX_WARPS]; /* score at the time at[] */
    uint64_t at[LAB_MAX_WARPS];
    struct lab_cache *victims[LAB_MAX_WARPS]; /* owned */
};

/* Returns NULL if out of memory. */
struct lab_locality_state *lab_locality_new(const struct lab_sched_desc *desc, uint32_t warps);
void lab_locality_free(struct lab_locality_state *take);

static inline void lab_locality_issued(struct lab_locality_state *s, uint32_t warp)
{
    s->instructions++;
    s->instructions_of[warp]++;
}

/* Records that `warp` has ended. Its losses and instructions no longer count. */
void lab_locality_ended(struct lab_locality_state *s, uint32_t warp);
/* Records that a line or page of `warp` was evicted. */
void lab_locality_evicted(struct lab_locality_state *s, uint32_t warp, uint32_t tag);
/* Records that `warp` missed a line or page. The score of the warp rises if the tag is among its
 * victims. */
void lab_locality_missed(struct lab_locality_state *s, uint32_t warp, uint32_t tag, uint32_t weight,
                         uint64_t now);
/* Records that `warp` hit the TLB at this depth of the set (lab_cache_depth). */
void lab_locality_hit(struct lab_locality_state *s, uint32_t warp, uint32_t depth, uint64_t now);
/* Returns the warps of `live` that may load. */
uint64_t lab_locality_may_load(struct lab_locality_state *s, uint64_t live, uint64_t now);

/* Returns the first warp of `ready` after `last`, in a circle. `ready` must not be empty. */
static inline uint32_t lab_sched_next(uint64_t ready, uint32_t last)
{
    const uint64_t after = last >= LAB_MAX_WARPS - 1 ? 0 : ready & (~(uint64_t)0 << (last + 1));
    return (uint32_t)__builtin_ctzll(after ? after : ready);
}
