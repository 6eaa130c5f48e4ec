/* rounding.c: a throughput is a quotient of two counts, and its double has seventeen digits.
 * Repeats agree to three or four of them. Six are kept: so nobody takes noise for knowledge, a
 * fingerprint is shorter to send and to read, and no conclusion comes near the digits that go,
 * since all are drawn from the full numbers before.
 */
#include "analysis/rounding.h"

#include "base/format_number.h"

static void round_one(struct maybe_f64 *m)
{
    if (IS_KNOWN(*m))
        m->v = round_six_digits(m->v);
}

static void round_topology(struct topology *t)
{
    for (uint32_t g = 0; g < t->partition.group_count; g++) {
        round_one(&t->groups[g].miss_penalty_cycles);
        round_one(&t->groups[g].random_read_gbps);
        round_one(&t->groups[g].alone_gbps);
        round_one(&t->groups[g].beyond_gbps);
    }
    for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++)
        round_one(&t->sm_miss_penalty_cycles[sm]);
    for (uint32_t i = 0; i < t->pairs.listed; i++)
        t->pairs.slow[i].ratio = round_six_digits(t->pairs.slow[i].ratio);
    round_one(&t->pairs.worst_ratio);
    round_one(&t->confidence);
}

static void round_rate(struct access_rate *rate)
{
    round_one(&rate->plateau_gbps);
    for (uint32_t i = 0; i < rate->point_count; i++) {
        round_one(&rate->points[i].naive_gbps);
        round_one(&rate->points[i].by_group_gbps);
    }
}

static void round_throughput(struct throughput *t)
{
    round_one(&t->plateau_gbps);
    round_one(&t->whole_memory_gbps);
    for (uint32_t i = 0; i < t->curve_count; i++) {
        round_one(&t->curve[i].naive_gbps);
        round_one(&t->curve[i].by_group_gbps);
        round_one(&t->curve[i].by_sm_gbps);
    }
    for (uint32_t i = 0; i < t->rate_count; i++)
        round_rate(&t->rates[i]);
}

void rounding_apply(struct fingerprint *fp)
{
    for (uint32_t i = 0; i < fp->level_count; i++) {
        round_one(&fp->levels[i].miss_penalty_cycles);
        round_one(&fp->levels[i].confidence);
    }
    round_one(&fp->beyond.walk_cycles);
    round_topology(&fp->topology);
    round_throughput(&fp->throughput);
}
