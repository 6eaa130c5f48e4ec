/* disturbance.c: see disturbance.h.
 *
 * If two processes use a GPU, each has it alone for a time slice of milliseconds. A probe that is
 * cut in two shows one of three signs. The load that was under way took a million cycles. All
 * cached data is gone, so pages that fit miss once. A throughput run ends late. The rules below
 * look for each sign. A rule that compares cycles takes its scale from the observation itself, so
 * no rule depends on the chip.
 */
#include "analysis/disturbance.h"

#include "analysis/levels/control.h"
#include "analysis/levels/sweep.h"
#include "analysis/structure/traces.h"
#include "base/stats.h"
#include "base/units.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

/* NVML's throttle reasons for which the hardware itself halves clocks or more. A power cap, a
 * thermal limit in software and an idle clock are part of normal work. */
enum { SLOWDOWN_HARDWARE = 0x8, SLOWDOWN_THERMAL = 0x40, SLOWDOWN_POWER_BRAKE = 0x80 };

/* The SM clock before and after a probe without a reference may differ by this share. The clock of
 * memory does not change. So with a larger difference, a load of 300 cycles would move by more than
 * the smallest penalty. */
#define CLOCK_TOLERANCE 0.1

/* Repeats of a throughput measurement may differ by this share. On a quiet GPU they differ by 1
 * %. */
#define READ_TOLERANCE 0.1
/* A run may take this multiple of the requested time. */
#define READ_OVERTIME 1.25
/* The same multiple for memory behind a slow link. Accesses by all SMs at once take longer to come
 * back from there. */
#define FAR_OVERTIME 3.0
/* Smaller regions are not judged, because they measure caches. The first region also measures a
 * clock that is still rising. */
#define READ_SMALLEST_BYTES (32 * MIB)

/* A curve may fall by CURVE_TOLERANCE_CYCLES, or by the spread of the loads of the lower point. */
#define CURVE_TOLERANCE_CYCLES 8.0
#define SPREAD_QUANTILE        0.95

/* FEWEST_BYSTANDERS is the least number of SMs whose median loss counts. All loads of a point of
 * shared memory together take less time than LOADS_TOGETHER single loads. */
enum { FEWEST_BYSTANDERS = 3, LOADS_TOGETHER = 10 };

/* No cache that the loads of a probe reach answers in fewer cycles. If most loads take fewer
 * cycles, the kernel does not wait for them. */
enum { LEAST_CYCLES = 20 };

/* Keeps the worse verdict, and the first of two equally bad verdicts. */
__attribute__((format(printf, 3, 4))) static void
blame(struct assessment *out, enum verdict verdict, const char *format, ...)
{
    va_list args;
    if (verdict <= out->verdict)
        return;
    out->verdict = verdict;
    va_start(args, format);
    vsnprintf(out->message, sizeof out->message, format, args);
    va_end(args);
}

static void classify_faults(const struct probe_conditions *c, struct assessment *out)
{
    if (IS_KNOWN(c->uncorrected_errors) && c->uncorrected_errors.v > 0)
        blame(out, VERDICT_UNUSABLE, "%llu memory errors that ECC could not correct",
              (unsigned long long)c->uncorrected_errors.v);
    if (IS_KNOWN(c->xid) && c->xid.v > 0)
        blame(out, VERDICT_DISTURBED, "the driver reported Xid %llu", (unsigned long long)c->xid.v);
}

/* On-chip memory has the clock of its SM, so its times in cycles do not change. */
static void classify_clock(const struct observation *o, struct assessment *out)
{
    const struct probe_conditions *c = &o->result.conditions;
    if (!IS_KNOWN(c->sm_clock_before_khz) || !IS_KNOWN(c->sm_clock_khz) ||
        probe_has_reference(&o->spec) || o->spec.kind == PROBE_SHARED || o->spec.kind == PROBE_PEER)
        return;
    const double before = c->sm_clock_before_khz.v;
    const double after = c->sm_clock_khz.v;
    if (fabs(before - after) > CLOCK_TOLERANCE * fmax(before, after))
        blame(out, VERDICT_DISTURBED, "the SM clock went from %.0f to %.0f MHz", before / 1000,
              after / 1000);
}

/* Under MPS other processes share the TLBs at all times. The measurement finds only the remaining
 * entries, and no probe can distinguish this state from a smaller TLB. */
static void classify_concurrency(const struct probe_conditions *c, struct assessment *out)
{
    if (IS_KNOWN(c->concurrent_processes) && c->concurrent_processes.v > 0)
        blame(out, VERDICT_DISTURBED, "%u other clients of MPS may use the TLBs at the same time",
              c->concurrent_processes.v);
}

static void classify_throttling(const struct probe_conditions *c, struct assessment *out)
{
    const uint64_t mask = SLOWDOWN_HARDWARE | SLOWDOWN_THERMAL | SLOWDOWN_POWER_BRAKE;
    if (IS_KNOWN(c->throttle_reasons) && (c->throttle_reasons.v & mask) != 0)
        blame(out, VERDICT_DISTURBED, "the hardware limits its clocks (throttle reasons 0x%llx)",
              (unsigned long long)c->throttle_reasons.v);
}

/* Finds loads during which the SM was taken away, and probes whose loads were not timed. */
static void classify_loads(const struct observation *o, struct assessment *out)
{
    const size_t n = o->result.value_count;
    size_t away = 0;
    size_t nothing = 0;
    size_t too_quick = 0;
    const uint32_t least = o->spec.kind == PROBE_CACHE ? 0 : LEAST_CYCLES; /* L1 is faster */
    /* A probe without a load times only the clock, so values of 0 are normal there. */
    const bool any_load = o->spec.kind != PROBE_CACHE || o->spec.path != PATH_NONE;
    for (size_t i = 0; i < n; i++) {
        away += o->result.values[i] > DISTURBANCE_AWAY_CYCLES;
        nothing += any_load && o->result.values[i] == 0;
        too_quick += o->result.values[i] < least;
    }
    /* A hit in the constant cache takes fewer cycles, without the clock's own cycles. */
    if (o->spec.kind != PROBE_CACHE && too_quick * 2 > n && nothing * 2 <= n)
        blame(out, VERDICT_UNUSABLE,
              "%zu of %zu loads took less than %d cycles: the timer does not work", too_quick, n,
              LEAST_CYCLES);
    if (nothing * 2 > n)
        blame(out, VERDICT_UNUSABLE, "%zu of %zu loads took no time", nothing, n);
    else if (nothing > 0)
        blame(out, VERDICT_DISTURBED,
              "%zu of %zu loads were interrupted each time: the time slices of other processes "
              "leave too little",
              nothing, n);
    if (away > 0)
        blame(out, VERDICT_DISTURBED,
              "%zu of %zu loads took more than %u cycles: another process had the GPU in between",
              away, n, DISTURBANCE_AWAY_CYCLES);
}

/* Shared memory belongs to one SM, so an SM that takes this long was taken away. */
static void classify_onchip(const struct observation *o, struct assessment *out)
{
    const uint32_t most = DISTURBANCE_AWAY_CYCLES * LOADS_TOGETHER;
    const size_t away = stats_count_above_u32(o->result.values, o->result.value_count, most);

    if (away > 0)
        blame(out, VERDICT_DISTURBED,
              "%zu of %zu runs took more than %u cycles: another process had the GPU in between",
              away, o->result.value_count, most);
}

/* More pages cannot miss less, because a longer footprint only adds pages to each set. The rule
 * needs ascending points, which every plan has. */
static void classify_curve(const struct observation *o, struct assessment *out)
{
    double highest = 0;
    for (uint32_t p = 0; p < o->spec.point_count; p++) {
        const double median = sweep_median(o, p);
        if (p > 0 && o->spec.points[p] < o->spec.points[p - 1])
            return;
        if (median > highest)
            highest = median;
        else if (highest - median > CURVE_TOLERANCE_CYCLES &&
                 highest - median > sweep_spread(o, p, 1 - SPREAD_QUANTILE, SPREAD_QUANTILE))
            blame(out, VERDICT_DISTURBED,
                  "%llu pages took %.0f cycles a load, fewer pages took up to %.0f: not monotone",
                  (unsigned long long)o->spec.points[p], median, highest);
    }
}

/* Finds entries that are present in one lap and gone in the next. */
static void classify_control(const struct observation *o, struct assessment *out)
{
    const uint32_t flushes = control_flushes(o);
    if (flushes > 0)
        blame(out, VERDICT_DISTURBED,
              "translations of a footprint that fits were taken away %u times while it was walked",
              flushes);
}

/* The reference of an entry test, a refinement or a confirmation must fit, because thresholds come
 * from it. */
static void classify_reference(const struct observation *o, struct assessment *out)
{
    const bool has_reference = o->spec.point_count >= 2 &&
                               o->spec.point_count < LEVELS_SWEEP_POINTS && !trace_is(&o->spec);
    if (has_reference && control_runs(o, 0) > 0)
        blame(out, VERDICT_DISTURBED,
              "translations of the reference, %llu pages, were taken away while it was walked",
              (unsigned long long)o->spec.points[0]);
}

/* The loss and the control of one SM in one repeat of a round, in cycles. Both are medians over the
 * slice. */
struct seen {
    double loss;
    double control;
};

static struct seen scan(const struct observation *o, uint32_t repeat, uint32_t sm)
{
    const uint32_t *control = observation_round(o, repeat, 0, sm);
    const uint32_t *after = observation_round(o, repeat, 1, sm);
    double differences[PROBE_MAX_SLICE];
    for (uint32_t j = 0; j < o->spec.slice_pages; j++)
        differences[j] = (double)after[j] - (double)control[j];
    return (struct seen){.loss = stats_median_f64(differences, o->spec.slice_pages),
                         .control = stats_median_u32(control, o->spec.slice_pages)};
}

/* Returns the median loss of this SM over all repeats, in cycles. */
static double usual_loss(const struct observation *o, uint32_t sm)
{
    double losses[PROBE_MAX_REPEATS];
    for (uint32_t r = 0; r < o->spec.repeats; r++)
        losses[r] = scan(o, r, sm).loss;
    return stats_median_f64(losses, o->spec.repeats);
}

/* A loss of one SM by chance is noise, and votes remove it. A loss of half of the SMs in one
 * repeat, and not in the others, came from outside. */
static void classify_repeats(const struct observation *o, struct assessment *out)
{
    const uint32_t sms = o->result.sm_count;
    const uint32_t pivot = probe_sm_position(o->result.sm_ids, sms, o->spec.sms[0]);
    const double half = pivot < sms ? usual_loss(o, pivot) / 2 : 0;
    double lowest = INFINITY;
    double highest = 0;
    bool bystander[REACH_MAX_SMS];

    if (o->spec.repeats < 2 || half < CURVE_TOLERANCE_CYCLES / 2)
        return;
    for (uint32_t i = 0; i < sms; i++)
        bystander[i] = usual_loss(o, i) <= half;
    for (uint32_t r = 0; r < o->spec.repeats; r++) {
        double controls[REACH_MAX_SMS];
        double losses[REACH_MAX_SMS];
        uint32_t n = 0;
        for (uint32_t i = 0; i < sms; i++) {
            const struct seen s = scan(o, r, i);
            controls[i] = s.control;
            if (bystander[i])
                losses[n++] = s.loss;
        }
        const double control = stats_median_f64(controls, sms);
        lowest = fmin(lowest, control);
        highest = fmax(highest, control);
        if (n >= FEWEST_BYSTANDERS && fabs(stats_median_f64(losses, n)) > half)
            blame(out, VERDICT_DISTURBED,
                  "repeat %u: SMs without a loss in the other repeats lost the pages of the pivot",
                  r + 1);
    }
    if (highest - lowest > half)
        blame(out, VERDICT_DISTURBED,
              "the repeats disagree: undisturbed pages took %.0f cycles in one, %.0f in another",
              lowest, highest);
}

static uint64_t region_of(const struct observation *o, uint32_t p)
{
    return o->spec.kind == PROBE_CONCURRENCY ? o->spec.region_bytes : o->spec.points[p];
}

static void classify_reads(const struct observation *o, struct assessment *out)
{
    const size_t columns = (size_t)o->result.sm_count + 1;
    const double overtime = o->spec.memory == MEMORY_DEVICE ? READ_OVERTIME : FAR_OVERTIME;
    for (uint32_t p = 0; p < o->spec.point_count; p++) {
        double least = INFINITY;
        double most = 0;
        if (region_of(o, p) < READ_SMALLEST_BYTES)
            continue;
        for (uint32_t r = 0; r < o->spec.repeats; r++) {
            const double ns = o->result.values[((size_t)p * o->spec.repeats + r) * columns];
            const double gbps = observation_read_gbps(o, p, r);
            least = fmin(least, gbps);
            most = fmax(most, gbps);
            if (ns > overtime * 1000.0 * o->spec.duration_us)
                blame(out, VERDICT_DISTURBED,
                      "a read of %u us took %.0f: another process had the GPU in between",
                      o->spec.duration_us, ns / 1000);
        }
        /* Writes over a link are buffered on the way and come in bursts. */
        if (o->spec.memory != MEMORY_DEVICE && o->spec.access == ACCESS_WRITE)
            continue;
        if (most - least > READ_TOLERANCE * most)
            blame(out, VERDICT_DISTURBED,
                  "the repeats disagree: %.0f and %.0f GB/s over the same %llu MiB", least, most,
                  (unsigned long long)(region_of(o, p) / MIB));
    }
}

/* A read that stays in a cache measures no level: it warms the GPU up. */
static bool is_warm_up(const struct probe_spec *spec)
{
    bool small = spec->kind == PROBE_READ;
    for (uint32_t p = 0; p < spec->point_count; p++)
        small = small && spec->points[p] < READ_SMALLEST_BYTES;
    return small;
}

void disturbance_classify(const struct observation *o, struct assessment *out)
{
    const struct probe_conditions *c = &o->result.conditions;

    *out = (struct assessment){.verdict = VERDICT_CLEAN};
    classify_faults(c, out);
    if (is_warm_up(&o->spec) || probe_is_absent(&o->spec, &o->result))
        return;
    if (o->spec.kind == PROBE_READ || o->spec.kind == PROBE_CONCURRENCY ||
        o->spec.kind == PROBE_WORKING_SET_READ) {
        classify_throttling(c, out);
        classify_reads(o, out);
        return;
    }
    classify_concurrency(c, out);
    classify_clock(o, out);
    if (o->spec.kind == PROBE_SHARED || o->spec.kind == PROBE_PEER) {
        classify_onchip(o, out);
        return;
    }
    classify_loads(o, out);
    if (o->spec.kind == PROBE_CHASE && o->spec.memory == MEMORY_DEVICE)
        classify_curve(o, out);
    if (control_is(&o->spec))
        classify_control(o, out);
    else if (o->spec.kind == PROBE_CHASE && o->spec.memory == MEMORY_DEVICE)
        classify_reference(o, out);
    if (o->spec.kind == PROBE_ROUND)
        classify_repeats(o, out);
}
