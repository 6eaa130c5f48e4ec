/* banks.c: see banks.h.
 *
 * The cycles of one point are the median over the SMs of the least of its repeats, because every
 * disturbance delays a load.
 */
#include "analysis/onchip/banks.h"

#include "analysis/sharing/sharing.h"
#include "base/little.h"
#include "base/stats.h"

#include <math.h>

#define FIT_SHARE      0.05 /* largest error of a line, as a share of the range of the cycles */
#define CLEAR_TIMES    3.0  /* factor by which any other number of banks must fit worse */
#define CONTRAST_SHARE 0.1  /* least range of the cycles, as a share of the latency */
#define ENOUGH_SHARE   0.95 /* least share of the highest throughput that is enough */

enum {
    WARP = 32,
    SMS = 8, /* that work */
    STRIDES = 33,
    REPEATS = 3,
    WARM_LAPS = 1,
    CHASE_LOADS = 64,
    SPEED_LOADS = 1024,
    MOST_BANK_WORDS = WARP * 4
};

static const uint32_t widths[FINGERPRINT_SHARED_WIDTHS] = {4, 8, 16};
static const uint32_t bank_counts[] = {8, 16, 32, 64, 128};
static const uint32_t bank_lengths[] = {4, 8, 16};
enum {
    COUNTS = sizeof bank_counts / sizeof bank_counts[0],
    LENGTHS = sizeof bank_lengths / sizeof bank_lengths[0]
};

/* Numbers of warps, and of loads that each warp has in flight. First the warps of a block increase,
 * then the loads of each warp. */
static const struct {
    uint32_t warps, in_flight;
} concurrencies[] = {{1, 1}, {2, 1}, {4, 1}, {8, 1}, {16, 1}, {32, 1}, {32, 2}, {32, 4}, {32, 8}};
enum { CONCURRENCIES = sizeof concurrencies / sizeof concurrencies[0] };

/* ---- the model ---- */

/* Returns the highest number of different words in one bank that `lanes` lanes, starting at lane
 * `first`, need. */
static uint32_t most_words(uint32_t banks, uint32_t bank_bytes, uint32_t first, uint32_t lanes,
                           uint32_t width, uint64_t stride)
{
    uint64_t words[MOST_BANK_WORDS];
    uint32_t count = 0;
    uint32_t most = 0;

    for (uint32_t lane = first; lane < first + lanes; lane++) {
        const uint64_t last = (lane * stride + width - 1) / bank_bytes;
        for (uint64_t word = lane * stride / bank_bytes; word <= last; word++) {
            uint32_t in_bank = 1;
            bool is_new = true;
            for (uint32_t k = 0; k < count; k++) {
                is_new = is_new && words[k] != word;
                in_bank += words[k] % banks == word % banks;
            }
            if (!is_new)
                continue;
            words[count++] = word;
            most = in_bank > most ? in_bank : most;
        }
    }
    return most;
}

uint32_t banks_passes(uint32_t banks, uint32_t bank_bytes, uint32_t width_bytes,
                      uint64_t stride_bytes)
{
    const uint32_t at_once = banks * bank_bytes / width_bytes;
    const uint32_t lanes = at_once < 1 ? 1 : at_once < WARP ? at_once : WARP;
    uint32_t sum = 0;

    for (uint32_t first = 0; first < WARP; first += lanes)
        sum += most_words(banks, bank_bytes, first, lanes, width_bytes, stride_bytes);
    return sum;
}

/* ---- the probes ---- */

/* Makes a spec without points, on SMs from one end of the ids to the other. */
static struct probe_spec new_spec(const uint16_t *sm_ids, uint32_t sms, uint32_t width)
{
    struct probe_spec spec = {.kind = PROBE_SHARED,
                              .transaction_bytes = width,
                              .warm_laps = WARM_LAPS,
                              .repeats = REPEATS,
                              .sm_count = sms < SMS ? sms : SMS};
    for (uint32_t i = 0; i < spec.sm_count; i++)
        spec.sms[i] = sm_ids[(uint64_t)i * sms / spec.sm_count];
    return spec;
}

static struct probe_spec stride_spec(const uint16_t *sm_ids, uint32_t sms, uint32_t width)
{
    struct probe_spec spec = new_spec(sm_ids, sms, width);

    spec.samples = CHASE_LOADS;
    spec.warps = spec.in_flight = 1;
    spec.point_count = STRIDES;
    for (uint32_t i = 0; i < STRIDES; i++)
        spec.points[i] = (uint64_t)(i + 1) * width;
    return spec;
}

static struct probe_spec speed_spec(const uint16_t *sm_ids, uint32_t sms, uint32_t width,
                                    uint32_t k)
{
    struct probe_spec spec = new_spec(sm_ids, sms, width);

    spec.samples = SPEED_LOADS;
    spec.warps = concurrencies[k].warps;
    spec.in_flight = concurrencies[k].in_flight;
    spec.point_count = 1;
    spec.points[0] = width;
    return spec;
}

static const struct observation *find(const struct observation_set *set,
                                      const struct probe_spec *spec)
{
    for (const struct observation *o = NULL; (o = observation_next(set, o, PROBE_SHARED));)
        if (o->spec.transaction_bytes == spec->transaction_bytes && o->spec.warps == spec->warps &&
            o->spec.in_flight == spec->in_flight && o->spec.point_count == spec->point_count)
            return o;
    return NULL;
}

static uint32_t add_missing(const struct observation_set *set, const struct probe_spec *spec,
                            struct probe_spec *out, uint32_t count, uint32_t max)
{
    if (count == max || find(set, spec) || probe_check(spec, &set->limits, NULL) != STATUS_OK)
        return count;
    out[count] = *spec;
    return count + 1;
}

uint32_t banks_missing(const struct observation_set *set, struct probe_spec *out, uint32_t max)
{
    uint16_t sm_ids[REACH_MAX_SMS];
    const uint32_t sms = sharing_sm_ids(set, sm_ids);
    uint32_t count = 0;

    for (uint32_t w = 0; sms > 0 && w < FINGERPRINT_SHARED_WIDTHS; w++) {
        struct probe_spec spec = stride_spec(sm_ids, sms, widths[w]);
        count = add_missing(set, &spec, out, count, max);
        for (uint32_t f = 0; f < CONCURRENCIES; f++) {
            spec = speed_spec(sm_ids, sms, widths[w], f);
            count = add_missing(set, &spec, out, count, max);
        }
    }
    return count;
}

/* ---- cycles ---- */

/* Returns the cycles of point `p` in one repeat, as the median of the SMs. If `repeat` is the
 * number of repeats, the least cycles of all repeats count. */
static double cycles_of(const struct observation *o, uint32_t p, uint32_t repeat)
{
    double of_sm[REACH_MAX_SMS];

    for (uint32_t i = 0; i < o->spec.sm_count; i++) {
        of_sm[i] = INFINITY;
        for (uint32_t r = 0; r < o->spec.repeats; r++)
            if (repeat == r || repeat == o->spec.repeats)
                of_sm[i] = fmin(of_sm[i], observation_shared(o, r, i)[p]);
    }
    return stats_median_f64(of_sm, o->spec.sm_count);
}

static double least_cycles(const struct observation *o, uint32_t p)
{
    return cycles_of(o, p, o->spec.repeats);
}

static struct evidence evidence_of_point(const struct observation *o, uint32_t p)
{
    double of_repeat[PROBE_MAX_REPEATS];

    for (uint32_t r = 0; r < o->spec.repeats; r++)
        of_repeat[r] = cycles_of(o, p, r);
    return evidence_of_repeats(EVIDENCE_BANKS, of_repeat, o->spec.repeats);
}

/* ---- banks ---- */

/* A straight line through the cycles over the passes. */
struct line {
    double slope; /* cycles of one more pass */
    double error; /* root mean square of the residuals, in cycles */
};

static struct line fit(const double *cycles, const double *passes, uint32_t n)
{
    double x = 0, y = 0, xx = 0, xy = 0, left = 0;

    for (uint32_t i = 0; i < n; i++) {
        x += passes[i] / n;
        y += cycles[i] / n;
    }
    for (uint32_t i = 0; i < n; i++) {
        xx += (passes[i] - x) * (passes[i] - x);
        xy += (passes[i] - x) * (cycles[i] - y);
    }
    const double slope = xx > 0 ? xy / xx : 0;
    for (uint32_t i = 0; i < n; i++)
        left += pow(cycles[i] - y - slope * (passes[i] - x), 2);
    return (struct line){.slope = slope, .error = sqrt(left / n)};
}

/* The loads of one width: cycles of one load at each distance. */
struct series {
    const struct observation *o; /* NULL if this width was not measured */
    double cycles[STRIDES];
    double low, range;
    double extra; /* cycles of a walk that are not cycles of its loads */
};

/* Returns the cycles of a walk besides its loads. If one warp makes more loads of the same kind,
 * its time grows by the latency of each. The remainder is the time of the clock and of entering and
 * leaving the loop. */
static double extra_cycles(const struct observation_set *set, const struct observation *chase,
                           const uint16_t *sm_ids, uint32_t sms)
{
    const struct probe_spec spec = speed_spec(sm_ids, sms, chase->spec.transaction_bytes, 0);
    const struct observation *const o = find(set, &spec);

    if (!o)
        return 0;
    const double each = (least_cycles(o, 0) - least_cycles(chase, 0)) /
                        ((double)o->spec.samples - chase->spec.samples);
    return fmax(least_cycles(chase, 0) - each * chase->spec.samples, 0);
}

static struct series read_series(const struct observation_set *set, const uint16_t *sm_ids,
                                 uint32_t sms, uint32_t width)
{
    const struct probe_spec spec = stride_spec(sm_ids, sms, width);
    struct series s = {.o = find(set, &spec), .low = INFINITY};
    double high = 0;

    if (s.o)
        s.extra = extra_cycles(set, s.o, sm_ids, sms);
    for (uint32_t i = 0; s.o && i < STRIDES; i++) {
        s.cycles[i] = (least_cycles(s.o, i) - s.extra) / s.o->spec.samples;
        s.low = fmin(s.low, s.cycles[i]);
        high = fmax(high, s.cycles[i]);
    }
    s.range = high - s.low;
    return s;
}

static void count_passes(const struct series *s, uint32_t banks, uint32_t bank_bytes, double *out)
{
    for (uint32_t i = 0; i < STRIDES; i++)
        out[i] =
            banks_passes(banks, bank_bytes, s->o->spec.transaction_bytes, s->o->spec.points[i]);
}

/* Returns the cycles of each pass if the total speed of the banks limits the load with most. */
static double cycles_of_each(const struct series *s, const double *passes)
{
    double most = 1;

    for (uint32_t i = 0; i < STRIDES; i++)
        most = fmax(most, passes[i]);
    return (s->low + s->range) / most;
}

/* Returns the root mean square error, in cycles, if two limits hide each other: the latency, which
 * grows by `conflict` cycles with a pass, and the total speed of the banks, which gives each pass
 * `each` cycles. The larger one is the time of a load. */
static double limits_error(const struct series *s, const double *passes, double each,
                           double conflict)
{
    double left = 0;

    for (uint32_t i = 0; i < STRIDES; i++)
        left += pow(s->cycles[i] - fmax(s->low + conflict * (passes[i] - 1), each * passes[i]), 2);
    return sqrt(left / STRIDES);
}

/* Returns the cycles by which the latency grows with a pass, from the loads for which the total
 * speed of the banks is no limit; 0 if there are none. */
static double hidden_conflict(const struct series *s, const double *passes, double each)
{
    double sum = 0;
    double weight = 0;

    for (uint32_t i = 0; i < STRIDES; i++) {
        if (passes[i] > 1 && each * passes[i] < s->low) {
            sum += (s->cycles[i] - s->low) * (passes[i] - 1);
            weight += (passes[i] - 1) * (passes[i] - 1);
        }
    }
    return weight > 0 ? fmax(sum / weight, 0) : 0;
}

/* Finds the number and the length of banks that fit the loads of 4 bytes best, and clearly better
 * than all others. */
static void find_banks(const struct series *s, struct fingerprint_shared *out)
{
    struct line best = {.error = INFINITY};
    double passes[STRIDES];
    double next = INFINITY;
    double both[COUNTS * LENGTHS]; /* errors of two limits that hide each other */
    double other = INFINITY;       /* least error of another explanation than the best */
    uint32_t at = 0;

    if (s->range < CONTRAST_SHARE * s->low) {
        out->banks = out->bank_bytes = NOT_OBSERVABLE_U32(REASON_NO_CONTRAST);
        return;
    }
    for (uint32_t k = 0; k < COUNTS * LENGTHS; k++) {
        count_passes(s, bank_counts[k / LENGTHS], bank_lengths[k % LENGTHS], passes);
        const struct line l = fit(s->cycles, passes, STRIDES);
        const double each = cycles_of_each(s, passes);
        other = fmin(other, limits_error(s, passes, each, 0));
        both[k] = limits_error(s, passes, each, hidden_conflict(s, passes, each));
        if (l.error < best.error) {
            next = best.error;
            best = l;
            at = k;
        } else {
            next = fmin(next, l.error);
        }
    }
    for (uint32_t k = 0; k < COUNTS * LENGTHS; k++)
        other = k == at ? other : fmin(other, both[k]);
    if (best.error > FIT_SHARE * s->range || next < CLEAR_TIMES * best.error || best.slope <= 0 ||
        other <= best.error) {
        out->banks = out->bank_bytes = UNKNOWN_U32(REASON_IRREGULAR);
        return;
    }
    out->banks = KNOWN_U32(bank_counts[at / LENGTHS]);
    out->bank_bytes = KNOWN_U32(bank_lengths[at % LENGTHS]);
    out->evidence.banks = evidence_make(
        EVIDENCE_BANKS, s->o->spec.repeats,
        fmin(1 - best.error / (FIT_SHARE * s->range), 1 - CLEAR_TIMES * best.error / next));
}

static void fill_latency(const struct series *s, const struct fingerprint_shared *banks,
                         struct shared_width *out)
{
    double passes[STRIDES];

    if (!s->o)
        return;
    out->latency_cycles = KNOWN_F64(s->cycles[0]); /* lanes are side by side */
    out->evidence.latency_cycles = evidence_of_point(s->o, 0);
    if (!IS_KNOWN(banks->banks)) {
        out->conflict_cycles = (struct maybe_f64){banks->banks.known, banks->banks.reason, 0};
        return;
    }
    count_passes(s, banks->banks.v, banks->bank_bytes.v, passes);
    const struct line l = fit(s->cycles, passes, STRIDES);
    if (l.error > FIT_SHARE * s->range || l.slope <= 0) {
        out->conflict_cycles = UNKNOWN_F64(REASON_IRREGULAR);
        return;
    }
    out->conflict_cycles = KNOWN_F64(l.slope);
    out->evidence.conflict_cycles =
        evidence_make(EVIDENCE_BANKS, s->o->spec.repeats, 1 - l.error / (FIT_SHARE * s->range));
}

static void fill_strides(const struct series *s, struct fingerprint_shared *out)
{
    for (uint32_t i = 0; s->o && i < STRIDES; i++) {
        struct shared_stride *const k = &out->strides[out->stride_count++];
        k->width_bytes = s->o->spec.transaction_bytes;
        k->stride_bytes = (uint32_t)s->o->spec.points[i];
        k->cycles = KNOWN_F64(s->cycles[i]);
        k->passes = IS_KNOWN(out->banks)
                        ? KNOWN_U32(banks_passes(out->banks.v, out->bank_bytes.v, k->width_bytes,
                                                 k->stride_bytes))
                        : (struct maybe_u32){out->banks.known, out->banks.reason, 0};
    }
}

/* ---- throughput ---- */

static double bytes_per_cycle(const struct observation *o)
{
    const struct probe_spec *const s = &o->spec;
    return (double)s->warps * s->samples * WARP * s->transaction_bytes / least_cycles(o, 0);
}

/* Fills in the highest speed, and the number of loads in flight that reaches it. */
static void fill_speed(const struct observation_set *set, const uint16_t *sm_ids, uint32_t sms,
                       struct shared_width *out)
{
    const struct observation *o[CONCURRENCIES];
    double speed[CONCURRENCIES];
    uint32_t best = 0;
    uint32_t enough = CONCURRENCIES;

    for (uint32_t f = 0; f < CONCURRENCIES; f++) {
        const struct probe_spec spec = speed_spec(sm_ids, sms, out->width_bytes, f);
        o[f] = find(set, &spec);
        if (!o[f])
            return;
        speed[f] = bytes_per_cycle(o[f]);
        best = speed[f] > speed[best] ? f : best;
    }
    while (enough > 0 && speed[enough - 1] >= ENOUGH_SHARE * speed[best])
        enough--;
    /* only the most loads in flight reach it, so it may still grow */
    if (enough + 1 >= CONCURRENCIES) {
        out->bytes_per_cycle = UNKNOWN_F64(REASON_TOO_LITTLE_DATA);
        out->loads_enough = UNKNOWN_U32(REASON_TOO_LITTLE_DATA);
        return;
    }
    out->bytes_per_cycle = KNOWN_F64(speed[best]);
    out->evidence.bytes_per_cycle = evidence_of_point(o[best], 0);
    out->loads_enough = KNOWN_U32(concurrencies[enough].warps * concurrencies[enough].in_flight);
    const double above = speed[enough] / speed[best] - ENOUGH_SHARE;
    const double below = enough > 0 ? ENOUGH_SHARE - speed[enough - 1] / speed[best] : 1;
    out->evidence.loads_enough = evidence_make(EVIDENCE_BANKS, o[enough]->spec.repeats,
                                               fmin(above, below) / (1 - ENOUGH_SHARE));
}

/* Fills in the number of loads in flight that keeps all banks busy, by Little's law. */
static void fill_needed(const struct fingerprint_shared *banks, struct shared_width *out)
{
    if (IS_KNOWN(banks->banks) && IS_KNOWN(out->latency_cycles))
        out->loads_needed = KNOWN_U32((uint32_t)lround(
            little_loads(out->latency_cycles.v, (double)banks->banks.v * banks->bank_bytes.v,
                         (double)WARP * out->width_bytes)));
    else
        out->loads_needed = (struct maybe_u32){banks->banks.known, banks->banks.reason, 0};
}

void banks_derive(const struct observation_set *set, struct fingerprint *out)
{
    struct fingerprint_shared *const shared = &out->shared;
    uint16_t sm_ids[REACH_MAX_SMS];
    const uint32_t sms = sharing_sm_ids(set, sm_ids);
    struct series series[FINGERPRINT_SHARED_WIDTHS];

    if (sms == 0 || !observation_next(set, NULL, PROBE_SHARED))
        return;
    if (set->limits.shared_sm_bytes > 0)
        shared->sm_bytes = KNOWN_U64(set->limits.shared_sm_bytes);
    if (set->limits.shared_block_bytes > 0)
        shared->block_bytes = KNOWN_U64(set->limits.shared_block_bytes);
    for (uint32_t w = 0; w < FINGERPRINT_SHARED_WIDTHS; w++)
        series[w] = read_series(set, sm_ids, sms, widths[w]);
    if (series[0].o)
        find_banks(&series[0], shared);
    for (uint32_t w = 0; w < FINGERPRINT_SHARED_WIDTHS; w++) {
        struct shared_width *const width = &shared->widths[shared->width_count++];
        width->width_bytes = widths[w];
        fill_latency(&series[w], shared, width);
        fill_speed(set, sm_ids, sms, width);
        fill_needed(shared, width);
        fill_strides(&series[w], shared);
    }
}
