/* diagnose_find.c: derives the findings from the times of random reads.
 *
 * Let R bytes be reached. A share of (1 - R / B) of the random reads over B bytes misses
 * (docs/contiguity.md). The time of a read is the larger one of two: the time of the memory, and
 * this share of the price of a miss. So two regions out of reach give R and the price, and a known
 * R gives the price alone. The price lies between the prices of contiguous and of scattered memory.
 *
 * Entries are found with pieces of 4 KiB at a stride. A longer stride leaves fewer pieces, and
 * reads are fast once every piece has an entry. In a region of 1.6 times 2^k reaches this stride is
 * 2^(k+1) entry lengths: the pieces then take 0.8 of all entries. Half the stride needs 1.6 times
 * all entries.
 */
#include "clients/cuda/diagnose/diagnose_parts.h"

enum {
    L2_PARTS_DEVICE = 16, /* multiple of the L2 over which few reads hit in it */
    L2_PARTS_FAR = 4,     /* multiple of the L2 that suffices for slow memory far away */
    PIECE_LOG2 = 12,
    LEAST_PIECES = 64,
    BISECTIONS = 5
};
#define PART_LEAST_BYTES ((uint64_t)64 << 20)
#define TIME_LIMIT_NS    70000000 /* time after which no further search begins */

static const double FAST = 0.9;          /* a lower ratio to the part's rate means out of reach */
static const double SLOW_NS = 1.3;       /* ratio to the part's time at which misses show clearly */
static const double SAME = 0.1;          /* largest difference of two runs over the same memory */
static const double REGION = 1.6;        /* reaches in a search region, times a power of two */
static const double PRICES_AGREE = 0.02; /* relative error of prices; see docs/contiguity.md */

/* Times of one diagnosis, in ns per access. */
struct times {
    enum diagnose_kernel kernel;
    double part;
    double all;
    double spread; /* relative difference of two runs over all of the memory */
    double reach;  /* reach in bytes; 0 if not known */
};

static const char *const WITHIN = "all of it is within the reach, where nothing misses";
static const char *const TOO_LITTLE = "too little of it is out of reach";
static const char *const TOO_LATE =
    "the search did not end in time; call again when the GPU is idle";
static const char *const HIDDEN = "compression makes the reads slower than misses would";
static const char *const TOO_SHORT =
    "the memory is too short to compare it with a part of it that L2 does not hold";

static bool is_at_device(enum reach_memory memory)
{
    return memory == REACH_MEMORY_DEVICE || memory == REACH_MEMORY_MANAGED_DEVICE;
}

static bool is_yes(struct reach_finding f)
{
    return f.known && f.value != 0;
}

/* Returns why the misses do not show. */
static const char *why_hidden(const struct diagnose *d)
{
    const uint64_t reach = d->options.reach_bytes[d->found.memory];

    if (d->unread)
        return d->unread;
    if (!d->found.out_of_reach.known)
        return d->found.out_of_reach.reason;
    if (is_yes(d->found.compressible))
        return HIDDEN;
    if (d->found.part_bytes == 0)
        return TOO_SHORT;
    return reach > 0 && d->found.bytes > reach ? TOO_LITTLE : WITHIN;
}

static uint64_t part_of(const struct diagnose *d)
{
    const uint64_t reach = d->options.reach_bytes[d->found.memory];
    const uint64_t parts = is_at_device(d->found.memory) || d->found.memory == REACH_MEMORY_PEER
                               ? L2_PARTS_DEVICE
                               : L2_PARTS_FAR;
    uint64_t part = parts * d->l2_bytes;

    part = part > PART_LEAST_BYTES ? part : PART_LEAST_BYTES;
    return reach > 0 && part > reach / 2 ? reach / 2 : part;
}

/* Alternates between the two regions, so that a change of clocks shows. The first run is not
 * counted. */
static enum reach_alloc_status time_both(struct diagnose *d, struct times *t,
                                         struct reach_alloc_error *error)
{
    const uint64_t part = part_of(d);
    const bool comparable = d->found.bytes >= 2 * part;
    double first;
    double again;
    enum reach_alloc_status s = read_ns(d, t->kernel, d->found.bytes, 0, &first, error);

    if (s == REACH_ALLOC_OK && !d->unread)
        s = read_ns(d, t->kernel, d->found.bytes, 0, &first, error);
    if (s == REACH_ALLOC_OK && !d->unread && comparable)
        s = read_ns(d, t->kernel, part, 0, &t->part, error);
    if (s == REACH_ALLOC_OK && !d->unread)
        s = read_ns(d, t->kernel, d->found.bytes, 0, &again, error);
    if (s != REACH_ALLOC_OK || d->unread)
        return s;
    t->all = first < again ? first : again;
    t->spread = (first > again ? first : again) / t->all - 1;
    d->found.read_gbps = finding_make(DIAGNOSE_LINE / t->all, t->spread * DIAGNOSE_LINE / t->all);
    if (!comparable)
        return s;
    d->found.part_bytes = part;
    d->found.part_gbps = finding_make(DIAGNOSE_LINE / t->part, 0);
    d->found.gain = finding_make(t->all > t->part ? t->all / t->part : 1, t->spread);
    return s;
}

/* Returns whether reads over all of the memory are slow. Returns false if the two runs over the
 * memory differ. */
static bool is_slow(const struct diagnose *d, const struct times *t)
{
    return d->found.gain.known && t->spread <= SAME && t->part / t->all < FAST;
}

static void judge_reach(struct diagnose *d, const struct times *t)
{
    const uint64_t reach = d->options.reach_bytes[d->found.memory];

    if (t->spread > SAME)
        d->found.out_of_reach =
            finding_absent("two runs over the same memory differ by more than 10 %; "
                           "call again when the GPU is idle");
    else if (is_slow(d, t))
        d->found.out_of_reach = finding_make(1, 0);
    else if (reach > 0 && (t->part == 0 || is_yes(d->found.compressible)))
        d->found.out_of_reach = finding_make(d->found.bytes > reach, 0);
    else if (t->part == 0)
        d->found.out_of_reach = finding_absent(d->unread ? d->unread : TOO_SHORT);
    else if (is_yes(d->found.compressible))
        d->found.out_of_reach = finding_absent(HIDDEN);
    else
        d->found.out_of_reach = finding_make(0, 0);
}

/* ---- the reach ---- */

/* Bisects between a fast and a slow region. The line through the last slow region and the whole
 * memory then gives the reach. */
static enum reach_alloc_status find_reach(struct diagnose *d, struct times *t,
                                          struct reach_alloc_error *error)
{
    const double all = (double)d->found.bytes;
    uint64_t low = d->found.part_bytes;
    uint64_t high = d->found.bytes;
    double high_ns = t->all;
    enum reach_alloc_status s = REACH_ALLOC_OK;
    bool late = false;

    for (int i = 0; i < BISECTIONS; i++) {
        late = read_elapsed_ns(d) >= TIME_LIMIT_NS;
        if (late)
            break;
        const uint64_t middle = (low + high) / 2 / DIAGNOSE_LINE * DIAGNOSE_LINE;
        double ns;
        s = read_ns(d, t->kernel, middle, 0, &ns, error);
        if (s != REACH_ALLOC_OK || d->unread)
            return s;
        if (ns > SLOW_NS * t->part) {
            high = middle;
            high_ns = ns;
        } else {
            low = middle;
        }
    }
    d->found.reach_bytes = finding_absent(late ? TOO_LATE : TOO_LITTLE);
    if ((double)high < FAST * all && t->all > high_ns) {
        const double slope = (t->all - high_ns) / (1 / (double)high - 1 / all);
        const double reach = slope / (t->all + slope / all);
        d->found.reach_bytes = finding_make(reach, reach * 2 * t->spread);
        t->reach = reach;
    }
    if (d->options.reach_bytes[d->found.memory] > 0)
        t->reach = (double)d->options.reach_bytes[d->found.memory];
    return s;
}

/* ---- entries ---- */

/* Returns the shortest stride, as a power of two, at which pieces are read in less than `limit_ns`.
 * Returns 0 if there is none, or if the time is over. */
static enum reach_alloc_status find_stride(struct diagnose *d, uint64_t region, double limit_ns,
                                           uint32_t *log2, struct reach_alloc_error *error)
{
    uint32_t slow = PIECE_LOG2; /* stride of adjacent pieces */
    uint32_t fast = slow + 1;
    uint32_t beyond;
    enum reach_alloc_status s = REACH_ALLOC_OK;

    while (region >> fast >= LEAST_PIECES)
        fast++;
    beyond = fast;
    *log2 = 0;
    while (fast - slow > 1) {
        const uint32_t middle = (slow + fast) / 2;
        const uint64_t stride = (uint64_t)1 << middle;
        double ns;
        if (read_elapsed_ns(d) >= TIME_LIMIT_NS)
            return s;
        s = read_ns(d, DIAGNOSE_READ_FAR, (region >> middle) << PIECE_LOG2,
                    (uint32_t)((stride >> 7) - REACH_PIECE_LINES), &ns, error);
        if (s != REACH_ALLOC_OK || d->unread)
            return s;
        *(ns < limit_ns ? &fast : &slow) = middle;
    }
    *log2 = fast < beyond ? fast : 0;
    return s;
}

static enum reach_alloc_status find_entry(struct diagnose *d, const struct times *t,
                                          struct reach_alloc_error *error)
{
    const double all = (double)d->found.bytes;
    double region = t->reach * REGION;
    double fast_ns = 0;
    double slow_ns; /* expected time if there are REGION times more pieces than entries */
    uint32_t power = 1;
    uint32_t log2 = 0;
    enum reach_alloc_status s;

    d->found.entry_bytes = finding_absent(t->reach > 0 ? TOO_LITTLE : d->found.reach_bytes.reason);
    if (!(t->reach > 0) || region > all)
        return REACH_ALLOC_OK;
    slow_ns = (1 - 1 / REGION) * t->all / (1 - t->reach / all);
    for (; region * 2 <= all; region *= 2)
        power++;
    s = read_ns(d, DIAGNOSE_READ_FAR, d->found.part_bytes, 0, &fast_ns, error);
    if (s == REACH_ALLOC_OK && !d->unread && slow_ns > SLOW_NS * fast_ns)
        s = find_stride(d, (uint64_t)region, (fast_ns + slow_ns) / 2, &log2, error);
    d->found.entry_bytes = log2 >= power + PIECE_LOG2
                               ? finding_make((double)((uint64_t)1 << (log2 - power)), 0)
                               : finding_absent("no stride of pieces of 4 KiB shows it in time");
    return s;
}

/* ---- contiguity ---- */

static void find_contiguous(struct diagnose *d, const struct times *t)
{
    const struct reach_diagnose_options *const o = &d->options;
    const double reach = (double)o->reach_bytes[REACH_MEMORY_DEVICE];
    const double missing = 1 - reach / (double)d->found.bytes;
    const double range = o->miss_ns.scattered - o->miss_ns.contiguous;
    double share;

    if (!is_at_device(d->found.memory)) {
        d->found.contiguous = finding_absent("it concerns memory of the device");
    } else if (!(reach > 0) || !(o->miss_ns.contiguous > 0) || !(range > 0)) {
        d->found.contiguous =
            finding_absent("the reach and both prices of a miss are not given; take them from "
                           "reachd's fingerprint of depth full");
    } else if (!is_slow(d, t) || is_yes(d->found.compressible)) {
        d->found.contiguous = finding_absent(why_hidden(d));
    } else if (!(missing > 0) || t->all < SLOW_NS * t->part) {
        d->found.contiguous = finding_absent(TOO_LITTLE);
    } else {
        share = (o->miss_ns.scattered - t->all / missing) / range;
        d->found.contiguous = finding_make(share < 0   ? 0
                                           : share > 1 ? 1
                                                       : share,
                                           (t->spread + PRICES_AGREE) * t->all / missing / range);
    }
    if (reach > 0 && o->miss_ns.contiguous > 0 && is_at_device(d->found.memory) && t->part > 0) {
        const double misses_ns = missing * o->miss_ns.contiguous;
        d->found.contiguous_gbps =
            finding_make(DIAGNOSE_LINE / (misses_ns > t->part ? misses_ns : t->part), 0);
    }
}

/* ---- all of it ---- */

enum reach_alloc_status find_all(struct diagnose *d, struct reach_alloc_error *error)
{
    struct times t = {.kernel = is_at_device(d->found.memory) ? DIAGNOSE_READ : DIAGNOSE_READ_FAR};
    enum reach_alloc_status s = d->unread ? REACH_ALLOC_OK : time_both(d, &t, error);

    if (s != REACH_ALLOC_OK)
        return s;
    judge_reach(d, &t);
    if (is_slow(d, &t)) {
        s = find_reach(d, &t, error);
        if (s == REACH_ALLOC_OK && !d->unread)
            s = find_entry(d, &t, error);
    }
    if (!is_slow(d, &t) || d->unread) /* any read may set d->unread */
        d->found.reach_bytes = d->found.entry_bytes = finding_absent(why_hidden(d));
    find_contiguous(d, &t);
    return s;
}
