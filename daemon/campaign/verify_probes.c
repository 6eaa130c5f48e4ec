/* verify_probes.c: see verify_probes.h.
 *
 * The estimate of the time counts the loads that one SM makes one after the other, and assumes that
 * each load misses every level. An H200 needs 7600 loads for its second level and 4600 loads for
 * each repeat of a round, at 0.3 us per load. The result is 2 ms for the level and 4 ms for each
 * group.
 */
#include "campaign/verify_probes.h"

#include "analysis/check.h"
#include "analysis/drift.h"

#include <stdio.h>
#include <string.h>

enum {
    BASE_CYCLES = 500,         /* assumed cost of a load without misses */
    USUAL_CLOCK_KHZ = 1400000, /* assumed clock if the clock was not reported */
    WARM_UP_US = 4000
};

/* Returns the number of loads that one SM makes one after the other. */
static double loads_of(const struct probe_spec *s, uint32_t sms)
{
    double loads = 0;
    if (s->kind == PROBE_CHASE) {
        for (uint32_t p = 0; p < s->point_count; p++)
            loads += (double)s->points[p] * s->warm_laps + s->samples;
        return loads;
    }
    if (s->kind == PROBE_ROUND) {
        const double primed = (double)sms * s->slice_pages;
        return s->repeats *
               (2 * (primed + 2.0 * s->flush_pages + s->slice_pages) + s->thrash_pages);
    }
    return s->sm_count * (double)sms *
           (4.0 * s->slice_pages + 6.0 * s->flush_pages + s->thrash_pages);
}

static double load_us(const struct fingerprint *fp)
{
    const struct maybe_u32 clock = fp->conditions.sm_clock_khz;
    double cycles = BASE_CYCLES;
    for (uint32_t k = 0; k < fp->level_count; k++)
        cycles += fp->levels[k].miss_penalty_cycles.v;
    return cycles * 1000 / (IS_KNOWN(clock) && clock.v > 0 ? clock.v : USUAL_CLOCK_KHZ);
}

static uint16_t first_sm(const struct fingerprint *fp, uint32_t group)
{
    uint16_t id = 0;
    while (id < REACH_MAX_SMS && fp->topology.partition.group_of_sm[id] != group)
        id++;
    return id;
}

static void add(struct campaign_step *out, const struct probe_spec *spec)
{
    if (out->spec_count < CAMPAIGN_MAX_SPECS)
        out->specs[out->spec_count++] = *spec;
}

/* Adds the warm-up and the probes of levels and groups. Returns their estimated time in
 * microseconds. */
static double add_structure(const struct fingerprint *fp, const struct gpu_limits *limits,
                            struct campaign_step *out)
{
    const uint32_t groups = fp->topology.partition.group_count;
    const double us = load_us(fp);
    const uint16_t sm = groups > 0 ? first_sm(fp, 0) : 0;
    struct probe_spec spec;
    double spent_us = WARM_UP_US;
    uint32_t rounds = 0;

    memset(out, 0, sizeof *out);
    spec = campaign_warm_up(WARM_UP_US,
                            1); /* an idle chip has a low clock, so it is warmed up first */
    add(out, &spec);
    for (uint32_t k = 0; k < fp->level_count; k++) {
        if (!check_level_test(fp, k, limits, sm, &spec))
            continue;
        spent_us += us * loads_of(&spec, fp->gpu.sm_count);
        add(out, &spec);
    }
    for (uint32_t g = 0; g < groups; g++) {
        if (!check_sharing_test(fp, limits, first_sm(fp, g), &spec))
            break;
        const double round_us = us * loads_of(&spec, fp->gpu.sm_count);
        if (rounds > 0 && spent_us + round_us > CHECK_BUDGET_US)
            break;
        spent_us += round_us;
        add(out, &spec);
        rounds += 1;
    }
    snprintf(out->message, sizeof out->message, "is it still the chip that was measured?");
    return spent_us;
}

void verify_probes(const struct fingerprint *fp, const struct gpu_limits *limits,
                   struct campaign_step *out)
{
    (void)add_structure(fp, limits, out);
    if (out->spec_count == 1)
        out->spec_count = 0; /* without other probes no warm-up is needed */
}

double verify_probes_quick(const struct fingerprint *fp, const struct gpu_limits *limits,
                           struct campaign_step *out)
{
    double us = add_structure(fp, limits, out);
    struct probe_spec spec;

    if (drift_speed_test(fp, limits, &spec)) {
        add(out, &spec);
        us += (double)spec.duration_us * spec.repeats * spec.point_count;
    }
    return us;
}

void verify_probes_place(const struct fingerprint *fp, const struct probe_result *warm_up,
                         struct campaign_step *step)
{
    if (fp->topology.partition.group_count > 0 || warm_up->sm_count == 0)
        return;
    for (uint32_t i = 0; i < step->spec_count; i++)
        if (step->specs[i].kind == PROBE_CHASE)
            step->specs[i].sms[0] = warm_up->sm_ids[0];
}
