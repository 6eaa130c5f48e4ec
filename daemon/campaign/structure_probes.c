/* structure_probes.c: see structure_probes.h. The analysis says which cycles it wants; here they
 * are packed into probes. */
#include "campaign/structure_probes.h"

#include "analysis/structure/sectored.h"
#include "analysis/structure/sets.h"

#include <stdio.h>

/* Turns asks into probes, several cycles each. A probe that the GPU could not run is left out. */
static void add_specs(const struct observation_set *set, struct trace_ask *asks, uint32_t count,
                      uint16_t sm, struct campaign_step *out)
{
    trace_sort(asks, count);
    for (uint32_t at = 0; at < count && out->spec_count < CAMPAIGN_MAX_SPECS;) {
        struct probe_spec *spec = &out->specs[out->spec_count];
        at += trace_spec(asks + at, count - at, sm, spec);
        if (probe_check(spec, &set->limits, NULL) == STATUS_OK)
            out->spec_count += 1;
    }
}

void structure_probes_next(const struct observation_set *set, const struct structure *s,
                           uint16_t sm, double progress, struct campaign_step *out)
{
    struct sets_estimate sets[LEVELS_MAX];
    struct sectored_estimate fill;

    sets_estimate_all(set, s, sets);
    for (uint32_t k = 0; k < s->level_count; k++) {
        add_specs(set, sets[k].asks, sets[k].ask_count, sm, out);
        sectored_estimate(set, s, k, &fill);
        add_specs(set, fill.asks, fill.ask_count, sm, out);
    }
    if (out->spec_count == 0)
        return;
    out->progress = progress;
    snprintf(out->message, sizeof out->message, "sets, ways and replacement of %u levels",
             s->level_count);
}
