/* sim_tlb.c: set-associative TLBs; a touch takes some nanoseconds.
 *
 * Each instance has a row of slots, and a set is a part of that row. A slot holds the entry's
 * number plus one, so that 0 is an empty slot. There are three kinds of sets:
 *
 *   rows (LRU, 8 or 16 ways)        the slots are in order of use, the newest first, and fill two
 *                                   or four vectors. All slots are compared at once, the slots
 *                                   before the hit move up by one, and no branch depends on hit
 *                                   or miss
 *   short (up to SHORT_WAYS ways)   the same order without vectors. With FIFO, a hit
 *                                   moves nothing. With random and cycle, slots stay, and a slot
 *                                   is overwritten: a random slot, or the next of one order
 *   long (hundreds of ways)         an index over the row (chained buckets) finds the slot, and a
 *                                   doubly linked list for each set keeps the order of use. The
 *                                   index and the list are arrays of slot numbers; nothing is
 * allocated after start
 *
 * Before any search, an instance compares the last sector that it touched. This sector is resident
 * and the newest by construction, so touching it again changes nothing. If many SMs of a group walk
 * the same pages side by side, all SMs but the first hit this sector.
 *
 * Translations that missed last may stay beside the sets (sim_recent.h). A set that has lost such a
 * translation does not take it back while it hits there.
 *
 * An entry may cover several sectors, which are filled one by one (a mask beside the tag). A
 * missing sector does not change the order of use.
 */
#include "gpu/sim/sim_tlb.h"

#include "base/rng.h"
#include "gpu/sim/sim_recent.h"

#include <stdlib.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { CACHE_LINE = 64, QUAD = 4, SHORT_WAYS = 32, NOT_POWER = -1, NO_SLOT = 0 };

/* The index and the order of a row of slots with long sets. Slot numbers are one-based; 0 (NO_SLOT)
 * ends a list. */
struct index {
    uint32_t *bucket; /* [instance][bucket_count] first slot of the chain */
    uint32_t *chain;  /* [instance][entries] next slot of the same bucket */
    uint32_t *newer;  /* [instance][entries] order of use within the set */
    uint32_t *older;
    uint32_t *newest; /* [instance][set] newest slot of the set */
    uint32_t *oldest;
    uint32_t *used;        /* [instance][set] slots in use */
    uint32_t bucket_count; /* a power of two */
};

struct sim_tlb {
    struct sim_level desc;
    uint64_t sector_bytes;
    int sector_shift; /* log2 of sector_bytes, or NOT_POWER */
    int entry_shift;  /* log2 of the sectors of an entry, or NOT_POWER */
    uint32_t set_count;
    uint32_t set_mask;     /* set_count - 1 for a power of two of equal sets, otherwise 0 */
    uint32_t equal_ways;   /* ways of each set if all sets are equal, otherwise 0 */
    uint32_t xor_shift;    /* number of bits of a set number */
    uint32_t *memory;      /* owned: all arrays of this level, those that hold translations first */
    size_t state_words;    /* number of words that hold translations */
    uint32_t *first;       /* [set_count + 1] first slot of each set within the row */
    uint32_t *set_of_turn; /* [entries] for unequal sets: the set of each turn */
    uint32_t *last;        /* [instance] sector touched last, plus one */
    uint32_t *tags;        /* [instance][entries] entry in each slot, plus one */
    uint64_t *filled; /* [instance][entries] mask of sectors; NULL if an entry has one sector */
    struct sim_recent *recent; /* [instance]; NULL if none is kept */
    uint32_t row_ways;         /* ways of each set if sets are rows of vectors, otherwise 0 */
    uint32_t set_shift;        /* log2 of a block: the entries that choose the same set */
    uint32_t *turn; /* [instance][set] place of the next victim in the cycle; policy=cycle */
    bool is_long;
    struct index index;
    struct rng rng;
};

static int log2_exact(uint64_t v)
{
    return v != 0 && (v & (v - 1)) == 0 ? __builtin_ctzll(v) : NOT_POWER;
}

/* ---- rows of vectors ---- */

#ifdef __SSE2__
enum { HAVE_ROWS = true };
/* A set of `quads` x 4 ways, LRU. The slots before the hit move up by one, in registers, because a
 * load that straddles two stores would wait for both. */
static inline __attribute__((always_inline)) bool row_lru(uint32_t *slot, uint32_t quads,
                                                          uint32_t tag)
{
    __m128i *const row = (__m128i *)(void *)slot;
    const __m128i wanted = _mm_set1_epi32((int)tag);
    __m128i was[QUAD];
    __m128i equal[QUAD];
#pragma GCC unroll 4
    for (uint32_t i = 0; i < QUAD; i++) {
        was[i] = i < quads ? _mm_loadu_si128(row + i) : wanted;
        equal[i] = i < quads ? _mm_cmpeq_epi32(was[i], wanted) : _mm_setzero_si128();
    }
    const uint32_t found = (uint32_t)_mm_movemask_epi8(
        _mm_packs_epi16(_mm_packs_epi32(equal[0], equal[1]), _mm_packs_epi32(equal[2], equal[3])));
    const uint32_t end = QUAD * quads - 1;
    const int at = __builtin_ctz(found | 1u << end);
    __m128i before = _mm_cvtsi32_si128((int)tag);
#pragma GCC unroll 4
    for (uint32_t i = 0; i < quads; i++) {
        const int first = (int)(QUAD * i);
        const __m128i stays = _mm_cmpgt_epi32(
            _mm_setr_epi32(first, first + 1, first + 2, first + 3), _mm_set1_epi32(at));
        const __m128i moved = _mm_or_si128(_mm_slli_si128(was[i], 4), before);
        before = _mm_srli_si128(was[i], 12);
        _mm_storeu_si128(
            row + i, _mm_or_si128(_mm_and_si128(stays, was[i]), _mm_andnot_si128(stays, moved)));
    }
    return found != 0;
}
#else
enum { HAVE_ROWS = false };
static inline bool row_lru(uint32_t *slot, uint32_t quads, uint32_t tag)
{
    (void)slot, (void)quads, (void)tag;
    return false; /* never called */
}
#endif

/* ---- short sets ---- */

typedef uint32_t quad __attribute__((vector_size(16), aligned(4), may_alias));
typedef uint64_t quad_halves __attribute__((vector_size(16)));

/* Returns the position of `tag` among the slots, or `ways` if no slot holds it. Compares four slots
 * at a time. */
static inline uint32_t find_tag(const uint32_t *slot, uint32_t ways, uint32_t tag)
{
    uint32_t i = 0;
    for (; i + 4 <= ways; i += 4) {
        const quad_halves equal = (quad_halves)(*(const quad *)(slot + i) == tag);
        if (equal[0] | equal[1])
            break;
    }
    while (i < ways && slot[i] != tag)
        i++;
    return i;
}

/* Moves slots 0 to `count` - 1 up by one, over slot `count`. */
static inline void shift_up(uint32_t *slot, uint32_t count)
{
    uint32_t i = count;
    for (; i >= 4; i -= 4)
        *(quad *)(slot + i - 3) = *(const quad *)(slot + i - 4);
    if (i > 2)
        slot[3] = slot[2];
    if (i > 1)
        slot[2] = slot[1];
    if (i > 0)
        slot[1] = slot[0];
}

static bool short_lru(uint32_t *slot, uint32_t ways, uint32_t tag)
{
    const uint32_t at = find_tag(slot, ways, tag);
    const bool hit = at < ways;
    shift_up(slot, hit ? at : ways - 1);
    slot[0] = tag;
    return hit;
}

static bool short_lru_sectored(uint32_t *slot, uint64_t *filled, uint32_t ways, uint32_t tag,
                               uint64_t bit)
{
    const uint32_t i = find_tag(slot, ways, tag);
    bool resident = i < ways;
    bool hit = resident && (filled[i] & bit);
    uint64_t mask = (resident ? filled[i] : 0) | bit;
    uint32_t move = resident ? i : ways - 1;
    shift_up(slot, move);
    memmove(filled + 1, filled, move * sizeof *filled);
    slot[0] = tag;
    filled[0] = mask;
    return hit;
}

/* Fills a sector of a resident entry. Returns whether it was already filled. */
static inline bool fill(uint64_t *filled, uint32_t i, uint64_t bit)
{
    const bool hit = !filled || (filled[i] & bit);
    if (filled)
        filled[i] |= bit;
    return hit;
}

/* FIFO: a hit moves no slot. */
static bool short_fifo(uint32_t *slot, uint64_t *filled, uint32_t ways, uint32_t tag, uint64_t bit)
{
    const uint32_t i = find_tag(slot, ways, tag);
    if (i < ways)
        return fill(filled, i, bit);
    shift_up(slot, ways - 1);
    slot[0] = tag;
    if (filled) {
        memmove(filled + 1, filled, (ways - 1) * sizeof *filled);
        filled[0] = bit;
    }
    return false;
}

/* Random and cycle: overwrites a slot. `turn` is the victim's place in the cycle; NULL if victims
 * are random. */
static bool short_in_place(struct sim_tlb *l, uint32_t *turn, uint32_t *slot, uint64_t *filled,
                           uint32_t ways, uint32_t tag, uint64_t bit)
{
    const uint32_t i = find_tag(slot, ways, tag);
    if (i < ways)
        return fill(filled, i, bit);
    uint32_t victim;
    if (slot[ways - 1] == 0) { /* slots fill from the first on */
        victim = find_tag(slot, ways, 0);
    } else if (turn) {
        victim = l->desc.cycle[*turn] - 1U;
        *turn = *turn + 1 == l->desc.cycle_count ? 0 : *turn + 1;
    } else {
        victim = (uint32_t)rng_below(&l->rng, ways);
    }
    slot[victim] = tag;
    if (filled)
        filled[victim] = bit;
    return false;
}

/* ---- long sets ---- */

/* The row of one instance; slot numbers are one-based. */
struct row {
    uint32_t *tags;
    uint64_t *filled;
    uint32_t *bucket, *chain, *newer, *older, *newest, *oldest, *used;
};

static struct row row_of(struct sim_tlb *l, uint32_t instance)
{
    size_t slots = (size_t)instance * l->desc.entries;
    size_t sets = (size_t)instance * l->set_count;
    return (struct row){
        .tags = l->tags + slots,
        .filled = l->filled ? l->filled + slots : NULL,
        .bucket = l->index.bucket + (size_t)instance * l->index.bucket_count,
        .chain = l->index.chain + slots,
        .newer = l->index.newer + slots,
        .older = l->index.older + slots,
        .newest = l->index.newest + sets,
        .oldest = l->index.oldest + sets,
        .used = l->index.used + sets,
    };
}

static uint32_t bucket_of(const struct sim_tlb *l, uint32_t tag)
{
    return (tag * 0x9e3779b1u >> 8) & (l->index.bucket_count - 1);
}

static void unlink_use(struct row *r, uint32_t set, uint32_t slot)
{
    uint32_t newer = r->newer[slot - 1];
    uint32_t older = r->older[slot - 1];
    if (newer != NO_SLOT)
        r->older[newer - 1] = older;
    else
        r->newest[set] = older;
    if (older != NO_SLOT)
        r->newer[older - 1] = newer;
    else
        r->oldest[set] = newer;
}

static void link_newest(struct row *r, uint32_t set, uint32_t slot)
{
    uint32_t second = r->newest[set];
    r->newer[slot - 1] = NO_SLOT;
    r->older[slot - 1] = second;
    if (second != NO_SLOT)
        r->newer[second - 1] = slot;
    else
        r->oldest[set] = slot;
    r->newest[set] = slot;
}

static void unlink_chain(const struct sim_tlb *l, struct row *r, uint32_t slot)
{
    uint32_t *from = &r->bucket[bucket_of(l, r->tags[slot - 1])];
    while (*from != slot)
        from = &r->chain[*from - 1];
    *from = r->chain[slot - 1];
}

/* Returns a free slot of the set, or the set's victim, which is removed from the index and the
 * order. */
static uint32_t long_make_room(struct sim_tlb *l, struct row *r, uint32_t set)
{
    uint32_t ways = l->first[set + 1] - l->first[set];
    if (r->used[set] < ways)
        return l->first[set] + ++r->used[set];
    uint32_t slot = r->oldest[set];
    if (l->desc.policy == SIM_RANDOM)
        slot = l->first[set] + 1 + (uint32_t)rng_below(&l->rng, ways);
    unlink_chain(l, r, slot);
    unlink_use(r, set, slot);
    return slot;
}

static bool long_touch(struct sim_tlb *l, uint32_t instance, uint32_t set, uint32_t tag,
                       uint64_t bit)
{
    struct row r = row_of(l, instance);
    uint32_t bucket = bucket_of(l, tag);
    uint32_t slot = r.bucket[bucket];
    while (slot != NO_SLOT && r.tags[slot - 1] != tag)
        slot = r.chain[slot - 1];

    bool hit = slot != NO_SLOT;
    const bool renewed = hit && l->desc.policy == SIM_LRU;
    if (renewed)
        unlink_use(&r, set, slot);
    if (!hit) {
        slot = long_make_room(l, &r, set);
        r.tags[slot - 1] = tag;
        r.chain[slot - 1] = r.bucket[bucket];
        r.bucket[bucket] = slot;
        if (r.filled)
            r.filled[slot - 1] = 0;
    }
    if (!hit || renewed)
        link_newest(&r, set, slot);
    if (r.filled) {
        hit = r.filled[slot - 1] & bit;
        r.filled[slot - 1] |= bit;
    }
    return hit;
}

/* ---- one level ---- */

static inline uint32_t set_of(const struct sim_tlb *l, uint32_t entry)
{
    if (l->set_count == 1)
        return 0;
    if (l->xor_shift > 0) {
        /* Adds the pieces of the number without carry: pairs, then pairs of pairs. */
        uint32_t folded = entry;
        for (uint32_t shift = l->xor_shift; shift < 32; shift *= 2)
            folded ^= folded >> shift;
        return folded & l->set_mask;
    }
    if (l->desc.hash == SIM_HASH_SKEW)
        return l->set_of_turn[(entry + entry / l->desc.entries) % l->desc.entries];
    if (l->set_mask > 0)
        return entry >> l->set_shift & l->set_mask;
    if (l->equal_ways > 0)
        return entry % l->set_count;
    return l->set_of_turn[entry % l->desc.entries];
}

static inline bool short_touch(struct sim_tlb *l, size_t at, uint32_t ways, uint32_t tag,
                               uint64_t bit)
{
    uint64_t *const filled = l->filled ? l->filled + at : NULL;
    if (l->desc.policy == SIM_RANDOM)
        return short_in_place(l, NULL, l->tags + at, filled, ways, tag, bit);
    if (l->desc.policy == SIM_FIFO)
        return short_fifo(l->tags + at, filled, ways, tag, bit);
    if (filled)
        return short_lru_sectored(l->tags + at, filled, ways, tag, bit);
    return short_lru(l->tags + at, ways, tag);
}

/* Touches a translation that is among the translations that missed last. It becomes the newest
 * there, and in its set if the set has it. */
static bool touch_recent(const struct sim_tlb *l, struct sim_recent *recent, uint32_t *slot,
                         uint32_t ways, uint32_t tag)
{
    const uint32_t at = find_tag(slot, ways, tag);
    recent_renew(recent, l->desc.recent, tag);
    if (at < ways) {
        shift_up(slot, at);
        slot[0] = tag;
    }
    return true;
}

/* Touches an entry of a level of rows, which has no sectors and equal sets. */
static inline __attribute__((always_inline)) bool row_touch(struct sim_tlb *l, uint32_t ways,
                                                            uint32_t instance, uint32_t entry)
{
    uint32_t *const slot = l->tags + (size_t)instance * l->desc.entries + set_of(l, entry) * ways;
    if (!l->recent)
        return row_lru(slot, ways / QUAD, entry + 1);
    struct sim_recent *const recent = &l->recent[instance];
    if (recent_has(recent, l->desc.recent, entry + 1))
        return touch_recent(l, recent, slot, ways, entry + 1);
    const bool hit = row_lru(slot, ways / QUAD, entry + 1);
    recent_add(recent, l->desc.recent, entry + 1, !hit);
    return hit;
}

static inline uint32_t entry_of(const struct sim_tlb *l, uint32_t sector)
{
    return l->entry_shift >= 0 ? sector >> l->entry_shift : sector / l->desc.sectors;
}

static inline bool set_touch(struct sim_tlb *l, uint32_t instance, uint32_t sector)
{
    const uint32_t entry = entry_of(l, sector);
    const uint64_t bit = (uint64_t)1 << (sector - entry * l->desc.sectors);
    const uint32_t tag = entry + 1;
    const uint32_t set = set_of(l, entry);
    if (l->is_long)
        return long_touch(l, instance, set, tag, bit);
    const size_t at = (size_t)instance * l->desc.entries + l->first[set];
    const uint32_t ways = l->first[set + 1] - l->first[set];
    if (l->turn)
        return short_in_place(l, &l->turn[(size_t)instance * l->set_count + set], l->tags + at,
                              l->filled ? l->filled + at : NULL, ways, tag, bit);
    if (!l->recent)
        return short_touch(l, at, ways, tag, bit);
    struct sim_recent *const recent = &l->recent[instance];
    if (recent_has(recent, l->desc.recent, tag))
        return touch_recent(l, recent, l->tags + at, ways, tag);
    const bool hit = short_lru(l->tags + at, ways, tag);
    recent_add(recent, l->desc.recent, tag, !hit);
    return hit;
}

static inline uint32_t sector_of(const struct sim_tlb *l, uint64_t va)
{
    return (uint32_t)(l->sector_shift >= 0 ? va >> l->sector_shift : va / l->sector_bytes);
}

uint32_t sim_tlb_set(const struct sim_tlb *t, uint64_t va)
{
    return set_of(t, entry_of(t, sector_of(t, va)));
}

/* If this is inlined, `ways` is a constant: the ways of the level's rows, or 0 if it has none. */
static inline __attribute__((always_inline)) bool touch(struct sim_tlb *l, uint32_t ways,
                                                        uint32_t sm, uint64_t va)
{
    const uint32_t instance = l->desc.instance_of_sm[sm];
    const uint32_t sector = sector_of(l, va);
    if (l->last[instance] == sector + 1)
        return true;
    l->last[instance] = sector + 1;
    return ways > 0 ? row_touch(l, ways, instance, sector) : set_touch(l, instance, sector);
}

bool sim_tlb_touch(struct sim_tlb *t, uint32_t sm, uint64_t va)
{
    switch (t->row_ways) {
    case 8:
        return touch(t, 8, sm, va);
    case 16:
        return touch(t, 16, sm, va);
    default:
        return touch(t, 0, sm, va);
    }
}

/* No branch depends on hit or miss, so that touches of different sets overlap in the processor. */
static inline __attribute__((always_inline)) uint32_t pass(struct sim_tlb *t, uint32_t ways,
                                                           const struct sim_load *loads,
                                                           uint32_t *which, uint32_t count)
{
    uint32_t missed = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t n = which[i];
        const bool hit = touch(t, ways, loads[n].sm, loads[n].va);
        which[missed] = n;
        missed += !hit;
    }
    return missed;
}

uint32_t sim_tlb_pass(struct sim_tlb *t, const struct sim_load *loads, uint32_t *which,
                      uint32_t count)
{
    switch (t->row_ways) {
    case 8:
        return pass(t, 8, loads, which, count);
    case 16:
        return pass(t, 16, loads, which, count);
    default:
        return pass(t, 0, loads, which, count);
    }
}

/* ---- start and end ---- */

/* Assigns the turns 0..entries-1 to the sets in rotation while these have room. */
static void assign_turns(struct sim_tlb *l)
{
    uint32_t turn = 0;
    for (uint32_t round = 0; turn < l->desc.entries; round++) {
        for (uint32_t set = 0; set < l->set_count; set++) {
            if (round < l->first[set + 1] - l->first[set])
                l->set_of_turn[turn++] = set;
        }
    }
}

static void lay_out_sets(struct sim_tlb *l)
{
    uint32_t set = 0;
    uint32_t slot = 0;
    for (uint32_t r = 0; r < l->desc.run_count; r++) {
        for (uint32_t i = 0; i < l->desc.runs[r].count; i++) {
            l->first[set++] = slot;
            slot += l->desc.runs[r].ways;
        }
    }
    l->first[set] = slot;
}

static uint32_t *carve(uint32_t **rest, size_t words)
{
    uint32_t *part = *rest;
    *rest += words;
    return part;
}

/* Allocates one block of memory for all arrays. The masks of 64 bits come first. */
static bool allocate(struct sim_tlb *l)
{
    const bool sectored = l->desc.sectors > 1;
    const size_t instances = l->desc.instance_count;
    const size_t slots = instances * l->desc.entries;
    const size_t recent =
        l->desc.recent > 0 ? instances * sizeof *l->recent / sizeof *l->memory : 0;
    const size_t sets = l->is_long ? instances * l->set_count : 0;
    const size_t links = l->is_long ? slots : 0;
    const size_t turns = l->desc.policy == SIM_CYCLE ? instances * l->set_count : 0;
    struct index *x = &l->index;
    size_t buckets = 0;
    size_t bytes = 0;

    x->bucket_count = 1;
    while (x->bucket_count < 2 * l->desc.entries)
        x->bucket_count *= 2;
    buckets = l->is_long ? instances * x->bucket_count : 0;
    l->state_words = (sectored ? 2 * slots : 0) + slots + instances + recent + buckets + 3 * links +
                     3 * sets + turns;
    bytes = (l->state_words + l->set_count + 1 + l->desc.entries) * sizeof *l->memory;
    /* A set of 8 or 16 ways lies in one line of the cache. */
    l->memory = aligned_alloc(CACHE_LINE, (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
    if (!l->memory)
        return false;
    memset(l->memory, 0, bytes);
    uint32_t *rest = l->memory;
    l->filled = sectored ? (uint64_t *)(void *)carve(&rest, 2 * slots) : NULL;
    l->tags = carve(&rest, slots);
    l->last = carve(&rest, instances);
    l->recent = recent > 0 ? (struct sim_recent *)(void *)carve(&rest, recent) : NULL;
    x->bucket = carve(&rest, buckets);
    x->chain = carve(&rest, links);
    x->newer = carve(&rest, links);
    x->older = carve(&rest, links);
    x->newest = carve(&rest, sets);
    x->oldest = carve(&rest, sets);
    x->used = carve(&rest, sets);
    l->turn = turns > 0 ? carve(&rest, turns) : NULL;
    l->first = carve(&rest, (size_t)l->set_count + 1);
    l->set_of_turn = rest;
    return true;
}

static bool level_init(struct sim_tlb *l, const struct sim_level *desc)
{
    uint32_t widest = 0;
    l->desc = *desc;
    l->sector_bytes = desc->entry_bytes / desc->sectors;
    l->sector_shift = log2_exact(l->sector_bytes);
    l->entry_shift = log2_exact(desc->sectors);
    for (uint32_t r = 0; r < desc->run_count; r++) {
        l->set_count += desc->runs[r].count;
        widest = desc->runs[r].ways > widest ? desc->runs[r].ways : widest;
    }
    l->equal_ways = desc->run_count == 1 ? desc->runs[0].ways : 0;
    l->is_long = widest > SHORT_WAYS;
    if (HAVE_ROWS && desc->policy == SIM_LRU && desc->sectors == 1 &&
        (l->equal_ways == 8 || l->equal_ways == 16))
        l->row_ways = l->equal_ways;
    if (l->equal_ways > 0 && log2_exact(l->set_count) > 0) {
        l->set_mask = l->set_count - 1;
        l->set_shift = desc->block > 0 ? (uint32_t)log2_exact(desc->block) : 0;
        l->xor_shift = desc->hash == SIM_HASH_XOR ? (uint32_t)log2_exact(l->set_count) : 0;
    }
    if (!allocate(l))
        return false;
    lay_out_sets(l);
    assign_turns(l);
    return true;
}

struct sim_tlb *sim_tlb_new(const struct sim_level *desc, uint64_t seed)
{
    struct sim_tlb *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->rng.state = seed;
    if (!level_init(t, desc)) {
        free(t);
        return NULL;
    }
    return t;
}

void sim_tlb_free(struct sim_tlb *take)
{
    if (!take)
        return;
    free(take->memory);
    free(take);
}

void sim_tlb_flush(struct sim_tlb *t)
{
    memset(t->memory, 0, t->state_words * sizeof *t->memory);
}
