/* sides.c: see sides.h.
 *
 * The time of one line of one SM is the least of its repeats, because every disturbance delays an
 * atomic. The lines of an SM are in two modes if one gap between them is wide. It must be
 * CLEAR_TIMES as wide as any other gap. It must also be NOISE_TIMES as wide as the difference
 * between the two least repeats of a line. The gap is looked for away from both ends, because the
 * few slowest lines lie apart.
 */
#include "analysis/caches/sides.h"

#include "analysis/sharing/sharing.h"
#include "base/divisor.h"
#include "base/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CLEAR_TIMES 3.0
#define NOISE_TIMES 5.0
#define MAYBE_SHARE 0.5  /* share of the required gap above which a single mode is not certain */
#define LEAST_SHARE 0.1  /* least share of the lines in either mode */
#define BULK_SHARE  0.01 /* share of the lines at either end whose gaps do not count */
#define ALIKE_SHARE 0.99 /* least share of the lines on which two SMs agree */
#define INNER_LOW   0.1  /* quantiles between which two sets of lines must not overlap */
#define INNER_HIGH  0.9

enum {
    REPEATS = 5,
    WARM_LAPS = 1,
    FINE_SMS = 2,
    FINE_LINES = 1024,
    MAP_GRANULES = 64,
    LEAST_CHANGES = 6, /* least number of changes at odd multiples of the granule */
    FINE_STEPS = 2
};

/* Distances of the lines of the fine step, in this order. The lines cover 128 KiB and 4 MiB, which
 * the nearest TLB level of every chip translates. */
static const uint64_t fine_strides[FINE_STEPS] = {PROBE_LINE_BYTES, 32 * PROBE_LINE_BYTES};

enum modes { MODES_ONE = 0, MODES_MAYBE, MODES_TWO };

/* The modes of the lines of one SM. */
struct split {
    enum modes modes;
    double border; /* cycles above which a line is far, if there are two modes */
    double margin; /* 0..1, as in struct evidence */
};

/* ---- one SM ---- */

/* Writes the least cycles of each of the spec.samples lines. Returns the median excess of a line's
 * second least repeat, which is the uncertainty of the least. */
static double least_cycles(const struct observation *o, uint32_t sm, double *out)
{
    double excess[FINE_LINES];

    for (uint32_t k = 0; k < o->spec.samples; k++) {
        double second = INFINITY;
        out[k] = INFINITY;
        for (uint32_t r = 0; r < o->spec.repeats; r++) {
            const double cycles = observation_sides(o, r, sm)[k];
            second = fmin(second, fmax(cycles, out[k]));
            out[k] = fmin(out[k], cycles);
        }
        excess[k] = second - out[k];
    }
    return stats_median_f64(excess, o->spec.samples);
}

static int by_value(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Finds the modes of n lines with these cycles, and sorts `v`. */
static struct split split_lines(double *v, uint32_t n, double noise)
{
    const uint32_t bulk = (uint32_t)(n * BULK_SHARE) + 1;
    const uint32_t least = (uint32_t)(n * LEAST_SHARE);
    struct split s = {.modes = MODES_ONE};
    double widest = 0;
    double next = 0;

    qsort(v, n, sizeof v[0], by_value);
    for (uint32_t i = bulk; i + 1 + bulk < n; i++) {
        const double gap = v[i + 1] - v[i];
        const bool inner = i + 1 >= least && i + 1 + least <= n;
        if (inner && gap > widest) {
            next = fmax(next, widest);
            widest = gap;
            s.border = (v[i] + v[i + 1]) / 2;
        } else {
            next = fmax(next, gap);
        }
    }
    const double needed = fmax(fmax(CLEAR_TIMES * next, NOISE_TIMES * noise), 1);
    if (widest > needed)
        s = (struct split){MODES_TWO, s.border, 1 - needed / widest};
    else if (widest > MAYBE_SHARE * needed)
        s.modes = MODES_MAYBE;
    return s;
}

/* Finds which lines are far from this SM. */
static struct split split_sm(const struct observation *o, uint32_t sm, bool *out_far)
{
    double cycles[FINE_LINES];
    double sorted[FINE_LINES];
    const double noise = least_cycles(o, sm, cycles);

    memcpy(sorted, cycles, o->spec.samples * sizeof cycles[0]);
    const struct split s = split_lines(sorted, o->spec.samples, noise);
    for (uint32_t k = 0; k < o->spec.samples; k++)
        out_far[k] = s.modes == MODES_TWO && cycles[k] > s.border;
    return s;
}

/* ---- the fine step ---- */

/* Makes the spec for `count` SMs, which are `step` places apart in `sm_ids`. */
static struct probe_spec spec_of(const uint16_t *sm_ids, uint32_t count, uint32_t step,
                                 uint64_t stride_bytes, uint32_t samples)
{
    struct probe_spec spec = {.kind = PROBE_SIDES,
                              .stride_bytes = stride_bytes,
                              .samples = samples,
                              .warm_laps = WARM_LAPS,
                              .repeats = REPEATS,
                              .sm_count = count};
    for (uint32_t i = 0; i < count; i++)
        spec.sms[i] = sm_ids[i * step];
    return spec;
}

static const struct observation *find(const struct observation_set *set,
                                      const struct probe_spec *spec)
{
    for (const struct observation *o = NULL; (o = observation_next(set, o, PROBE_SIDES));)
        if (o->spec.stride_bytes == spec->stride_bytes && o->spec.samples == spec->samples &&
            o->spec.sm_count == spec->sm_count)
            return o;
    return NULL;
}

/* The result of the fine step at one distance. */
struct fine {
    enum modes modes; /* the fewest modes that any of its SMs shows */
    bool alike;       /* its SMs divide the lines into the same two sets, maybe exchanged */
    bool exchanged;
    uint64_t granule_bytes; /* 0 if there are too few changes */
    double margin;
};

/* Returns the granule in lines: all changes from near to far and back are whole multiples of it.
 * Returns 0 if too few changes are at odd multiples, because the granule might then be twice as
 * long. */
static uint32_t find_granule(const bool *far, uint32_t n)
{
    uint32_t granule = 0;
    uint32_t changes = 0;

    for (uint32_t k = 1; k < n; k++)
        granule = far[k] != far[k - 1] ? (uint32_t)greatest_common_divisor(granule, k) : granule;
    for (uint32_t k = granule; granule > 0 && k < n; k += 2 * granule)
        changes += far[k] != far[k - 1];
    return changes >= LEAST_CHANGES ? granule : 0;
}

static struct fine read_fine(const struct observation *o)
{
    bool far[FINE_SMS][FINE_LINES];
    struct fine f = {.modes = MODES_TWO, .margin = 1};
    uint32_t same = 0;

    for (uint32_t i = 0; i < o->spec.sm_count; i++) {
        const struct split s = split_sm(o, i, far[i]);
        f.modes = s.modes < f.modes ? s.modes : f.modes;
        f.margin = fmin(f.margin, s.margin);
    }
    if (f.modes != MODES_TWO)
        return f;
    for (uint32_t k = 0; k < FINE_LINES; k++)
        same += far[0][k] == far[o->spec.sm_count - 1][k];
    f.exchanged = same < FINE_LINES / 2;
    f.alike = (f.exchanged ? FINE_LINES - same : same) >= ALIKE_SHARE * FINE_LINES;
    f.granule_bytes = find_granule(far[0], FINE_LINES) * o->spec.stride_bytes;
    return f;
}

/* ---- the map ---- */

enum side { SIDE_NEAR = 0, SIDE_FAR, SIDE_UNSURE };

/* The cycles of another SM for the lines that are near (far = false) or far from the first SM. */
struct view {
    enum side side; /* side of the lines that are near the first SM */
    double near_cycles, far_cycles;
};

static struct view view_of(const double *cycles, const bool *far, uint32_t n)
{
    double sets[2][FINE_LINES];
    uint32_t counts[2] = {0, 0};
    struct view v = {.side = SIDE_UNSURE};

    for (uint32_t k = 0; k < n; k++)
        sets[far[k]][counts[far[k]]++] = cycles[k];
    if (counts[0] == 0 || counts[1] == 0)
        return v;
    const double a = stats_median_f64(sets[0], counts[0]);
    const double b = stats_median_f64(sets[1], counts[1]);
    if (stats_quantile_f64(sets[0], counts[0], INNER_HIGH) <
        stats_quantile_f64(sets[1], counts[1], INNER_LOW))
        v.side = SIDE_NEAR;
    else if (stats_quantile_f64(sets[1], counts[1], INNER_HIGH) <
             stats_quantile_f64(sets[0], counts[0], INNER_LOW))
        v.side = SIDE_FAR;
    v.near_cycles = fmin(a, b);
    v.far_cycles = fmax(a, b);
    return v;
}

static void unknown(struct fingerprint_l2 *l2, enum reason reason)
{
    *l2 = (struct fingerprint_l2){.sides = UNKNOWN_U32(reason)};
    for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++)
        l2->side_of_sm.group_of_sm[sm] = FINGERPRINT_NO_GROUP;
    l2->granule_bytes = UNKNOWN_U64(reason);
    l2->atomic_near_cycles = l2->atomic_far_cycles = UNKNOWN_F64(reason);
}

static void not_observable(struct fingerprint_l2 *l2)
{
    unknown(l2, REASON_NO_CONTRAST);
    l2->sides = NOT_OBSERVABLE_U32(REASON_NO_CONTRAST);
    l2->granule_bytes = NOT_OBSERVABLE_U64(REASON_NO_CONTRAST);
    l2->atomic_near_cycles = l2->atomic_far_cycles = NOT_OBSERVABLE_F64(REASON_NO_CONTRAST);
}

/* Reads the near and the far cycles: the medians over all SMs, and the agreement of the repeats. */
static void read_cycles(const struct observation *o, const bool *far, struct fingerprint_l2 *l2)
{
    double near_of_repeat[PROBE_MAX_REPEATS];
    double far_of_repeat[PROBE_MAX_REPEATS];

    for (uint32_t r = 0; r < o->spec.repeats; r++) {
        double near_of_sm[REACH_MAX_SMS];
        double far_of_sm[REACH_MAX_SMS];
        for (uint32_t i = 0; i < o->spec.sm_count; i++) {
            const uint32_t *const row = observation_sides(o, r, i);
            double cycles[MAP_GRANULES];
            for (uint32_t k = 0; k < MAP_GRANULES; k++)
                cycles[k] = row[k];
            const struct view v = view_of(cycles, far, MAP_GRANULES);
            near_of_sm[i] = v.near_cycles;
            far_of_sm[i] = v.far_cycles;
        }
        near_of_repeat[r] = stats_median_f64(near_of_sm, o->spec.sm_count);
        far_of_repeat[r] = stats_median_f64(far_of_sm, o->spec.sm_count);
    }
    l2->atomic_near_cycles = KNOWN_F64(stats_median_f64(near_of_repeat, o->spec.repeats));
    l2->atomic_far_cycles = KNOWN_F64(stats_median_f64(far_of_repeat, o->spec.repeats));
    l2->evidence.atomic_near_cycles =
        evidence_of_repeats(EVIDENCE_SIDES, near_of_repeat, o->spec.repeats);
    l2->evidence.atomic_far_cycles =
        evidence_of_repeats(EVIDENCE_SIDES, far_of_repeat, o->spec.repeats);
}

/* Finds the side of each SM. Returns false with the reason if a side is not clear or all SMs are on
 * one side. */
static bool place_sms(const struct observation *o, const bool *far, bool exchanged,
                      struct fingerprint_l2 *l2)
{
    const uint32_t sms = o->spec.sm_count;
    uint32_t on_side[2] = {0, 0};

    for (uint32_t i = 0; i < sms; i++) {
        double cycles[FINE_LINES];
        (void)least_cycles(o, i, cycles);
        const struct view v = view_of(cycles, far, o->spec.samples);
        if (v.side == SIDE_UNSURE) {
            unknown(l2, REASON_NO_CONTRAST);
            return false;
        }
        l2->side_of_sm.group_of_sm[o->spec.sms[i]] = (uint16_t)v.side;
        on_side[v.side]++;
    }
    const bool apart = l2->side_of_sm.group_of_sm[o->spec.sms[0]] !=
                       l2->side_of_sm.group_of_sm[o->spec.sms[sms / FINE_SMS]];
    if (sms >= FINE_SMS && apart != exchanged) {
        unknown(l2, REASON_DISAGREEMENT);
        return false;
    }
    if (on_side[SIDE_NEAR] == 0 || on_side[SIDE_FAR] == 0) {
        unknown(l2, REASON_IRREGULAR);
        return false;
    }
    l2->side_of_sm.group_count = 2;
    return true;
}

static void read_map(const struct observation *o, const struct fine *fine,
                     struct fingerprint_l2 *l2)
{
    bool far[FINE_LINES];
    const struct split s = split_sm(o, 0, far);

    if (s.modes != MODES_TWO) {
        unknown(l2, s.modes == MODES_ONE ? REASON_DISAGREEMENT : REASON_NO_CONTRAST);
        return;
    }
    if (!place_sms(o, far, fine->exchanged, l2))
        return;
    l2->sides = KNOWN_U32(2);
    l2->granule_bytes = KNOWN_U64(fine->granule_bytes);
    l2->evidence.sides =
        evidence_make(EVIDENCE_SIDES, o->spec.repeats, fmin(s.margin, fine->margin));
    l2->evidence.granule_bytes = evidence_make(EVIDENCE_SIDES, o->spec.repeats, fine->margin);
    read_cycles(o, far, l2);
}

/* ---- the whole ---- */

/* Finds the probe, or requests it if the GPU can run it. */
static const struct observation *find_or_ask(const struct observation_set *set,
                                             const struct probe_spec *spec,
                                             struct sides_estimate *out)
{
    const struct observation *const o = find(set, spec);

    if (o)
        return o;
    out->asks = probe_check(spec, &set->limits, NULL) == STATUS_OK;
    out->ask = *spec;
    unknown(&out->found, out->asks ? REASON_NOT_MEASURED : REASON_NO_DEVICE_MEMORY);
    return NULL;
}

void sides_estimate(const struct observation_set *set, struct sides_estimate *out)
{
    uint16_t sm_ids[REACH_MAX_SMS];
    const uint32_t sms = sharing_sm_ids(set, sm_ids);
    enum modes most = MODES_ONE;
    struct fine fine = {.modes = MODES_ONE};

    out->asks = false;
    unknown(&out->found, REASON_NOT_MEASURED);
    for (uint32_t i = 0; sms > 0 && i < FINE_STEPS && fine.granule_bytes == 0; i++) {
        const struct probe_spec spec = spec_of(sm_ids, sms < FINE_SMS ? sms : FINE_SMS,
                                               sms / FINE_SMS, fine_strides[i], FINE_LINES);
        const struct observation *const o = find_or_ask(set, &spec, out);
        if (!o)
            return;
        fine = read_fine(o);
        if (i > 0 && fine.granule_bytes == spec.stride_bytes)
            fine.granule_bytes = 0; /* the previous distance should have shown this length */
        most = fine.modes > most ? fine.modes : most;
    }
    if (sms == 0)
        return;
    if (most == MODES_ONE)
        not_observable(&out->found);
    else if (fine.granule_bytes == 0)
        unknown(&out->found, most == MODES_TWO ? REASON_IRREGULAR : REASON_NO_CONTRAST);
    else if (!fine.alike)
        unknown(&out->found, REASON_DISAGREEMENT);
    else {
        const struct probe_spec spec = spec_of(sm_ids, sms, 1, fine.granule_bytes, MAP_GRANULES);
        const struct observation *const o = find_or_ask(set, &spec, out);
        if (o)
            read_map(o, &fine, &out->found);
    }
}

void sides_derive(const struct observation_set *set, struct fingerprint *out)
{
    struct sides_estimate estimate;

    sides_estimate(set, &estimate);
    if (!estimate.asks)
        out->l2 = estimate.found;
}
