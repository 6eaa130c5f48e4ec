/* strategy_sides.c: see strategy_sides.h. */
#include "planner/strategy_sides.h"

#include "base/format_size.h"
#include "planner/set_cost.h"

#include <stdio.h>

/* Returns the throughput of reads from the near side, relative to reads from both sides. */
static struct maybe_f64 gain_of(const struct costing *c, uint32_t transaction_bytes,
                                bool *out_extrapolated)
{
    const uint64_t near_longest = set_cost_longest(c->fp, SET_NEAR);
    const uint64_t same_longest = set_cost_longest(c->fp, SET_SAME);
    const uint64_t longest = near_longest < same_longest ? near_longest : same_longest;
    const struct maybe_f64 near = set_cost_beyond_ns(c->fp, SET_NEAR, transaction_bytes, c->bytes);
    const struct maybe_f64 same = set_cost_beyond_ns(c->fp, SET_SAME, transaction_bytes, c->bytes);

    *out_extrapolated = c->bytes > longest;
    if (!IS_KNOWN(near))
        return near;
    return IS_KNOWN(same) ? KNOWN_F64(same.v / near.v) : same;
}

/* Returns the slowdown if the smaller side alone scans all positions: the number of all SMs over
 * the number of its SMs. */
static double parts_of(const struct sm_partition *side_of_sm)
{
    uint32_t count[2] = {0, 0};

    for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++)
        if (side_of_sm->group_of_sm[sm] < 2)
            count[side_of_sm->group_of_sm[sm]]++;
    const uint32_t least = count[0] < count[1] ? count[0] : count[1];

    return least > 0 ? (double)(count[0] + count[1]) / least : 2;
}

static enum sides_obstacle obstacle_of(const struct costing *c, bool in_reach)
{
    if (!IS_KNOWN(c->fp->l2.sides))
        return SIDES_NOT_KNOWN;
    if (c->job->access != ACCESS_READ)
        return SIDES_NOT_READS;
    if (c->sizes->layout.count > 1)
        return SIDES_MULTI_ALLOCATION;
    if (c->job->no_sm_binding)
        return SIDES_NO_BINDING;
    if (!in_reach)
        return SIDES_BEYOND_REACH;
    if (c->job->input_bytes > 0 && c->job->single_pass)
        return SIDES_SINGLE_PASS;
    return SIDES_POSSIBLE;
}

void sides_cost_read(const struct costing *c, bool in_reach, struct sides_cost *out)
{
    const uint64_t shortest = set_cost_shortest(c->fp, SET_NEAR);
    const double written =
        c->job->in_reach_gbps > 0 ? 0 : c->job->written_bytes * c->access_cost.stream_ns;

    *out = (struct sides_cost){.obstacle = obstacle_of(c, in_reach)};
    if (out->obstacle == SIDES_NOT_KNOWN)
        out->missing =
            (struct maybe_f64){.known = c->fp->l2.sides.known, .reason = c->fp->l2.sides.reason};
    if (out->obstacle != SIDES_POSSIBLE)
        return;
    if (shortest > 0 && c->bytes < shortest) {
        out->obstacle = SIDES_FITS_L2;
        return;
    }
    out->missing = gain_of(c, c->sizes->allocations[0].transaction_bytes, &out->extrapolated);
    if (!IS_KNOWN(out->missing) || !IS_KNOWN(c->access)) {
        out->obstacle = SIDES_NOT_MEASURED;
        return;
    }
    out->possible = true;
    out->gain = out->missing.v;
    out->cost = cost_by_part(c, (c->access.v - written) / out->gain + written,
                             c->job->input_bytes > 0 ? parts_of(&c->fp->l2.side_of_sm) : 1);
}

/* ---- words ---- */

static void obstacle_text(const struct costing *c, const struct sides_cost *sides, char *out,
                          size_t room)
{
    const char *const deeper = c->fp->depth < DEPTH_FULL ? ": measure with depth full" : "";
    char reason[REASON_TEXT_BYTES];
    char bytes[FORMAT_SIZE_BYTES];

    reason_text(sides->missing.known, sides->missing.reason, reason);
    format_size(c->bytes, bytes);
    switch (sides->obstacle) {
    case SIDES_NOT_KNOWN:
        snprintf(out, room, "The sides of the L2 are not known (%s)%s.", reason, deeper);
        break;
    case SIDES_NOT_MEASURED:
        snprintf(out, room, "The gain of near reads of %u bytes was not measured (%s)%s.",
                 c->sizes->allocations[0].transaction_bytes, reason, deeper);
        break;
    case SIDES_NOT_READS:
        snprintf(out, room, "Only reads were measured by side of the L2.");
        break;
    case SIDES_MULTI_ALLOCATION:
        snprintf(out, room, "Several allocations were not measured by side of the L2.");
        break;
    case SIDES_NO_BINDING:
        snprintf(out, room, "The work of the job cannot be bound to SMs.");
        break;
    case SIDES_SINGLE_PASS:
        snprintf(out, room, "The input of the job cannot be read again.");
        break;
    case SIDES_BEYOND_REACH:
        snprintf(out, room,
                 "%s are more than an SM group reaches: translation is the limit, and is the same "
                 "on both sides.",
                 bytes);
        break;
    default:
        snprintf(out, room, "Not needed: %s stay in the L2, whichever SM reads them.", bytes);
        break;
    }
}

void sides_text(const struct costing *c, const struct sides_cost *sides, struct maybe_f64 gbps,
                char *out, size_t room)
{
    char rate[FORMAT_RATE_BYTES];
    char longest[FORMAT_SIZE_BYTES];
    char rest[96] = "";

    if (!sides->possible) {
        obstacle_text(c, sides, out, room);
        return;
    }
    if (sides->extrapolated)
        snprintf(rest, sizeof(rest), " (on from %s, the longest set measured)",
                 format_size(set_cost_longest(c->fp, SET_NEAR), longest));
    snprintf(out, room,
             "Each SM in the granules of its own side of the L2: %s; near reads were measured %.2f "
             "times as fast%s%s.",
             format_rate(gbps, rate), sides->gain, rest,
             c->job->input_bytes > 0 ? "; both sides scan all the input" : "");
}
