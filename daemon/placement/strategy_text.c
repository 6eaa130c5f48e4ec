/* strategy_text.c: what was compared with what, in words. A number that is not known reads "not
 * known", with the reason; none is left out. */
#include "placement/strategy_text.h"

#include "placement/size_text.h"

#include <stdio.h>
#include <string.h>

enum { RATE_TEXT_BYTES = 64 };

/* "4211 GB/s", "11.3 GB/s", "not known (not-measured)". Returns `out`. */
static char *rate_text(struct maybe_f64 gbps, char *out)
{
    if (!IS_KNOWN(gbps))
        snprintf(out, RATE_TEXT_BYTES, "not known (%s)", reason_slug(gbps.reason));
    else
        snprintf(out, RATE_TEXT_BYTES, "%.*f GB/s",
                 gbps.v >= 100  ? 0
                 : gbps.v >= 10 ? 1
                                : 2,
                 gbps.v);
    return out;
}

static struct maybe_f64 inside_gbps(const struct costing *c)
{
    struct maybe_f64 v = c->price.inside_ns;

    if (IS_KNOWN(v))
        v.v = c->price.transaction_bytes / v.v;
    return v;
}

/* ", limited by translation"; "" where nobody knows. */
static const char *bound_text(enum bound b)
{
    static const char *const texts[] = {[BOUND_UNKNOWN] = "",
                                        [BOUND_MEMORY] = ", limited by memory",
                                        [BOUND_TRANSLATION] = ", limited by translation",
                                        [BOUND_INPUT] = ", limited by its input",
                                        [BOUND_LOOKING] = ", limited by looking at positions"};

    return texts[b];
}

static void fits_text(const struct costing *c, char *out, size_t out_size)
{
    char asked[SIZE_TEXT_BYTES];
    char other[SIZE_TEXT_BYTES];

    if (!c->limit.seen) {
        size_text(c->fp->conditions.range_bytes, other);
        snprintf(out, out_size, "no translation limit was observable up to the %s probed", other);
        return;
    }
    size_text_pair(c->job->bytes, c->limit.usable_bytes, asked, other);
    snprintf(out, out_size, "%s fit the %s that an SM group reaches without a miss%s", asked, other,
             c->job->reserve_bytes > 0 ? " beside the reserve" : "");
}

void strategy_text_naive(const struct costing *c, bool inside, struct strategy_option *o)
{
    char here[RATE_TEXT_BYTES];
    char there[RATE_TEXT_BYTES];
    char fits[160];

    rate_text(o->gbps, here);
    if (inside) {
        fits_text(c, fits, sizeof(fits));
        snprintf(o->why, sizeof(o->why), "One pass, any SM anywhere: %s%s; %s.", here,
                 bound_text(o->bound), fits);
        return;
    }
    snprintf(o->why, sizeof(o->why),
             "One pass, any SM anywhere: %s%s; such accesses inside the reach: %s.", here,
             bound_text(o->bound), rate_text(inside_gbps(c), there));
}

void strategy_text_scopes(const struct costing *c, struct strategy_option *o)
{
    char scope[SIZE_TEXT_BYTES];
    char rate[RATE_TEXT_BYTES];
    const char *free_look = c->look_ns > 0 ? "" : ", looking taken as free";

    snprintf(o->why, sizeof(o->why),
             "%llu passes over at most %s each: %s%s; each pass looks at every position%s.",
             (unsigned long long)o->passes, size_text(o->scope_bytes, scope),
             rate_text(o->gbps, rate), bound_text(o->bound), free_look);
}

void strategy_text_windows(const struct costing *c, const struct placement_answer *w,
                           struct strategy_option *o)
{
    char longest_text[SIZE_TEXT_BYTES];
    char rate[RATE_TEXT_BYTES];
    char how[96] = "each SM draws work of its own window";
    uint64_t longest = 0;

    for (uint32_t i = 0; i < w->window_count; i++)
        longest = w->windows[i].length_bytes > longest ? w->windows[i].length_bytes : longest;
    if (o->strategy == STRATEGY_FILTERED_WINDOWS)
        snprintf(how, sizeof(how), "the SMs of each look at all the input and keep what is theirs");
    if (o->strategy == STRATEGY_PARTITIONED_WINDOWS)
        snprintf(how, sizeof(how), "the input is dealt to them first, %.3g bytes more an access",
                 o->extra_bytes);
    snprintf(o->why, sizeof(o->why), "%u windows of whole groups, at most %s each: %s%s; %s%s.",
             w->window_count, size_text(longest, longest_text), rate_text(o->gbps, rate),
             bound_text(o->bound), how,
             o->strategy == STRATEGY_FILTERED_WINDOWS && !(c->look_ns > 0)
                 ? ", looking taken as free"
                 : "");
}

void strategy_text_needless(const struct costing *c, struct strategy_option *o)
{
    char fits[160];

    fits_text(c, fits, sizeof(fits));
    snprintf(o->why, sizeof(o->why), "Not needed, it would be naive again: %s.", fits);
}

void strategy_text_no_room(const struct costing *c, struct strategy_option *o)
{
    char reserve[SIZE_TEXT_BYTES];

    snprintf(o->why, sizeof(o->why),
             "No level of the TLB has room, beside the reserve of %s, for scopes that the job "
             "does not fit as a whole.",
             size_text(c->job->reserve_bytes, reserve));
}

void strategy_text_few_groups(const struct costing *c, struct strategy_option *o)
{
    char asked[SIZE_TEXT_BYTES];
    char usable[SIZE_TEXT_BYTES];

    size_text_pair(c->job->bytes, c->limit.usable_bytes, asked, usable);
    snprintf(
        o->why, sizeof(o->why),
        "No windows: %s need %llu or more of at most %s, and there are %u SM groups to work in "
        "them.",
        asked, (unsigned long long)((c->job->bytes - 1) / c->limit.usable_bytes + 1), usable,
        c->fp->topology.partition.group_count);
}

void strategy_text_no_windows(const struct err *why, struct strategy_option *o)
{
    snprintf(o->why, sizeof(o->why), "No windows: %.*s.", (int)sizeof(o->why) - 16, why->text);
}

void strategy_text_fixed(struct strategy_option *o)
{
    snprintf(o->why, sizeof(o->why), "The job says that its work cannot be bound to SMs.");
}

void strategy_text_once(struct strategy_option *o)
{
    snprintf(o->why, sizeof(o->why), "The job says that its input cannot be read again.");
}

void strategy_text_has_input(struct strategy_option *o)
{
    snprintf(o->why, sizeof(o->why),
             "The input says where to go, so no SM can draw work of its own window alone.");
}

/* ---- the reason ---- */

static void nothing_to_do(const struct costing *c, bool inside, struct strategy_answer *out)
{
    const struct strategy_option *next = &out->options[1];
    char fits[160];
    char naive[RATE_TEXT_BYTES];
    char other[RATE_TEXT_BYTES];

    rate_text(out->options[0].gbps, naive);
    if (inside) {
        fits_text(c, fits, sizeof(fits));
        snprintf(
            out->reason, sizeof(out->reason),
            "Nothing is worth doing: %s, and any SM may work anywhere, at %s (fingerprint %s).",
            fits, naive, out->fingerprint_id);
    } else if (!next->possible) {
        snprintf(out->reason, sizeof(out->reason),
                 "Nothing can be done: naive, at %s, is all that this job and this fingerprint "
                 "allow (fingerprint %s).",
                 naive, out->fingerprint_id);
    } else if (!IS_KNOWN(out->options[0].gbps)) {
        snprintf(out->reason, sizeof(out->reason),
                 "What naive would reach is %s, so nothing that costs passes, looks or bytes is "
                 "worth recommending (fingerprint %s).",
                 naive, out->fingerprint_id);
    } else {
        snprintf(out->reason, sizeof(out->reason),
                 "Nothing is worth doing: naive is predicted to reach %s, the best of the others, "
                 "%s, %s, and less than 3%% more is nothing (fingerprint %s).",
                 naive, strategy_name(next->strategy), rate_text(next->gbps, other),
                 out->fingerprint_id);
    }
}

static const struct strategy_option *find_naive(const struct strategy_answer *out)
{
    for (int i = 0; i < STRATEGY_COUNT; i++) {
        if (out->options[i].strategy == STRATEGY_NAIVE)
            return &out->options[i];
    }
    return &out->options[0];
}

void strategy_text_reason(const struct costing *c, bool inside, struct strategy_answer *out)
{
    const struct strategy_option *first = &out->options[0];
    char best[RATE_TEXT_BYTES];
    char naive[RATE_TEXT_BYTES];
    char next[RATE_TEXT_BYTES + 64] = "";
    char times[48] = "";
    char rate[RATE_TEXT_BYTES];

    if (first->strategy == STRATEGY_NAIVE) {
        nothing_to_do(c, inside, out);
        return;
    }
    if (!IS_KNOWN(first->gbps)) {
        snprintf(out->reason, sizeof(out->reason),
                 "%s: such accesses are %s, and windows cost nothing more than naive (fingerprint "
                 "%s).",
                 strategy_name(first->strategy), rate_text(first->gbps, best), out->fingerprint_id);
        return;
    }
    if (IS_KNOWN(first->times_naive))
        snprintf(times, sizeof(times), ", %.*f times as much", first->times_naive.v < 2 ? 2 : 1,
                 first->times_naive.v);
    if (out->options[1].possible && out->options[1].strategy != STRATEGY_NAIVE)
        snprintf(next, sizeof(next), "; next best, %s: %s", strategy_name(out->options[1].strategy),
                 rate_text(out->options[1].gbps, rate));
    snprintf(out->reason, sizeof(out->reason), "%s: %s predicted, naive %s%s%s (fingerprint %s).",
             strategy_name(first->strategy), rate_text(first->gbps, best),
             rate_text(find_naive(out)->gbps, naive), times, next, out->fingerprint_id);
}
