/* chase.c: see chase.h. */
#include "analysis/caches/chase.h"

#include "base/stats.h"

struct probe_spec chase_spec(const struct chase *c, uint64_t stride_bytes, uint32_t samples)
{
    return (struct probe_spec){.stride_bytes = stride_bytes,
                               .path = c->path,
                               .warm_path = c->path,
                               .samples = samples,
                               .warm_laps = 2,
                               .shared_bytes = CHASE_SHARED_BYTES};
}

uint32_t chase_repeats(uint64_t n, uint32_t samples)
{
    const uint64_t laps = samples / (n ? n : 1);
    const uint64_t repeats = (CHASE_VOTES + laps - 1) / (laps ? laps : 1);

    return laps == 0 || repeats > CHASE_MOST_REPEATS ? CHASE_MOST_REPEATS : (uint32_t)repeats;
}

double chase_slow_share(const struct observation *o, uint32_t p, double threshold)
{
    uint32_t count = 0;
    const uint32_t *const row = walks_row(o, p, &count);

    return (double)stats_count_above_u32(row, count, threshold) / count;
}

void chase_set_line(struct chase *c)
{
    c->out->line_bytes = KNOWN_U64(c->line_bytes);
    c->out->evidence.line_bytes = evidence_make(EVIDENCE_TRACES, CHASE_VOTES, c->how.margin);
}
