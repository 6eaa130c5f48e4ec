/* split.c: assigns groups to jobs, then makes windows for each job.
 *
 * A job needs one group for each window of its bytes, and first claims this number of groups. If
 * there are too few groups, the largest claims are reduced to one group, and these jobs miss in one
 * window. Then groups are assigned one by one, the largest first, to the job that is furthest below
 * its share of the SMs. If all remaining groups are claimed, they are assigned only to jobs with a
 * claim. Groups are not exchanged afterwards, so shares may be wrong by up to the largest group.
 */
#include "planner/split.h"

#include "planner/active_groups.h"
#include "planner/reach_limit.h"
#include "planner/access_cost.h"
#include "base/format_size.h"
#include "planner/next_step.h"

#include <stdio.h>
#include <string.h>

struct splitting {
    const struct fingerprint *fp;
    const struct split_request *request;
    struct split_answer *out;
    struct reach_limit limit;
    struct active_groups active;            /* all groups */
    struct access_cost access_cost;         /* cost of 128-byte reads */
    uint32_t claims[SPLIT_MAX_JOBS];        /* number of groups that each job still needs */
    double targets[SPLIT_MAX_JOBS];         /* SMs */
    double have[SPLIT_MAX_JOBS];            /* SMs */
    int16_t job_of_group[REACH_MAX_GROUPS]; /* indexed by the fingerprint's group number */
    uint64_t all_bytes;
};

static double weight_of(const struct split_job *job)
{
    return job->weight > 0 ? job->weight : 1;
}

/* ---- the request ---- */

static enum status check(const struct split_request *r, struct err *err)
{
    if (r->job_count == 0 || r->job_count > SPLIT_MAX_JOBS)
        return err_set_field(err, STATUS_INVALID_ARGUMENT, "bytes",
                             "bytes must name 1 to %d jobs, as in bytes=20G,40G", SPLIT_MAX_JOBS);
    for (uint32_t j = 0; j < r->job_count; j++) {
        if (r->jobs[j].bytes == 0 || r->jobs[j].bytes > PLACEMENT_MAX_BYTES)
            return err_set_field(err, STATUS_INVALID_ARGUMENT, "bytes",
                                 "bytes of job %u must be from 1 to 1 PiB: check the number", j);
        if (!(r->jobs[j].weight >= 0 && r->jobs[j].weight <= SPLIT_MAX_WEIGHT))
            return err_set_field(err, STATUS_INVALID_ARGUMENT, "weight",
                                 "weight of job %u must be a number above 0 and up to %.0f", j,
                                 SPLIT_MAX_WEIGHT);
    }
    return STATUS_OK;
}

static enum status read_chip(struct splitting *s, struct err *err)
{
    enum status status = reach_limit_read(s->fp, s->request->jobs[0].bytes,
                                          s->request->fingerprint_id, &s->limit, err);

    for (uint32_t j = 0; j < s->request->job_count; j++)
        s->all_bytes += s->request->jobs[j].bytes;
    if (status == STATUS_OK)
        status = reach_limit_check_device(s->fp, s->all_bytes, err);
    if (status != STATUS_OK)
        return status;
    active_groups_count(s->fp, NULL, &s->active);
    if (s->active.count == 0)
        return err_set_hint(
            err, STATUS_NOT_APPLICABLE, next_step_full(s->fp, REASON_TOO_LITTLE_DATA),
            "fingerprint %s lacks the SM groups that share a TLB", s->limit.fingerprint_id);
    if (s->request->job_count > s->active.count)
        return err_set_field(
            err, STATUS_INVALID_ARGUMENT, "bytes",
            "bytes names %u jobs, and there are %u SM groups: a group works for one job",
            s->request->job_count, s->active.count);
    access_cost_read(&s->fp->throughput, &s->limit, ACCESS_READ, FINGERPRINT_CURVE_BYTES,
                     &s->access_cost);
    return STATUS_OK;
}

/* ---- groups to jobs ---- */

static void claim(struct splitting *s)
{
    const struct split_request *r = s->request;
    uint64_t sum = 0;
    double weights = 0;

    for (uint32_t j = 0; j < r->job_count; j++) {
        uint64_t need = s->limit.observed ? (r->jobs[j].bytes - 1) / s->limit.usable_bytes + 1 : 1;
        s->claims[j] = need <= s->active.count ? (uint32_t)need : 1;
        sum += s->claims[j];
        weights += weight_of(&r->jobs[j]);
    }
    for (uint32_t j = 0; j < r->job_count; j++)
        s->targets[j] = s->active.sms * weight_of(&r->jobs[j]) / weights;
    while (sum > s->active.count) {
        uint32_t largest = 0;
        for (uint32_t j = 1; j < r->job_count; j++)
            largest = s->claims[j] > s->claims[largest] ? j : largest;
        sum -= s->claims[largest] - 1;
        s->claims[largest] = 1;
    }
}

/* Returns the largest group without a job, or REACH_MAX_GROUPS if all groups have a job. */
static uint32_t next_group(const struct splitting *s)
{
    uint32_t best = REACH_MAX_GROUPS;

    for (uint32_t g = 0; g < REACH_MAX_GROUPS; g++) {
        if (!s->active.in[g] || s->job_of_group[g] >= 0)
            continue;
        if (best == REACH_MAX_GROUPS ||
            s->active.sizes[s->active.dense_of[g]] > s->active.sizes[s->active.dense_of[best]])
            best = g;
    }
    return best;
}

static uint32_t neediest(const struct splitting *s, uint32_t left)
{
    uint32_t claimed = 0;
    uint32_t best = UINT32_MAX;

    for (uint32_t j = 0; j < s->request->job_count; j++)
        claimed += s->claims[j];
    for (uint32_t j = 0; j < s->request->job_count; j++) {
        if (claimed >= left && s->claims[j] == 0)
            continue;
        if (best == UINT32_MAX || s->targets[j] - s->have[j] > s->targets[best] - s->have[best])
            best = j;
    }
    return best;
}

static void assign_groups(struct splitting *s)
{
    for (uint32_t left = s->active.count; left > 0; left--) {
        const uint32_t group = next_group(s);
        const uint32_t job = neediest(s, left);
        s->job_of_group[group] = (int16_t)job;
        s->have[job] += s->active.sizes[s->active.dense_of[group]];
        if (s->claims[job] > 0)
            s->claims[job]--;
    }
}

/* ---- each job's part ---- */

/* Returns the GB/s of a share of the SMs if an access takes `ns` of the whole GPU. */
static struct maybe_f64 part_gbps(struct maybe_f64 ns, double share)
{
    if (IS_KNOWN(ns) && ns.v > 0)
        ns.v = share * FINGERPRINT_CURVE_BYTES / ns.v;
    return ns;
}

static void predict(const struct splitting *s, uint32_t j, double imbalance,
                    struct split_part *part)
{
    const double share = (double)part->sm_count / s->active.sms;
    struct maybe_f64 in_reach = s->access_cost.in_reach_ns;

    if (IS_KNOWN(in_reach))
        in_reach.v *= imbalance;
    part->gbps = part_gbps(
        part->fits ? in_reach : access_cost_naive_ns(&s->access_cost, s->request->jobs[j].bytes),
        share);
    part->unsplit_gbps = part_gbps(access_cost_naive_ns(&s->access_cost, s->all_bytes), share);
}

static void write_part(const struct splitting *s, uint32_t j, const struct placement_answer *a)
{
    struct split_answer *out = s->out;
    struct split_part *part = &out->parts[j];
    char asked[FORMAT_SIZE_BYTES];

    part->fits = a->window_count > 0;
    part->first_window = out->window_count;
    part->window_count = part->fits ? a->window_count : 1;
    if (part->fits)
        memcpy(&out->windows[out->window_count], a->windows,
               a->window_count * sizeof(a->windows[0]));
    else
        out->windows[out->window_count] =
            (struct placement_window){.length_bytes = s->request->jobs[j].bytes,
                                      .sm_count = part->sm_count,
                                      .group_count = part->group_count};
    out->window_count += part->window_count;
    for (uint32_t sm = 0; sm < out->sm_slots; sm++) {
        if (out->job_of_sm[sm] == (int16_t)j)
            out->window_of_sm[sm] = part->fits ? a->window_of_sm[sm] : 0;
    }
    predict(s, j, part->fits ? a->imbalance : 1, part);
    format_size(s->request->jobs[j].bytes, asked);
    if (part->fits)
        snprintf(part->why, sizeof(part->why), "%s in %u window%s of %u groups, %u SMs.", asked,
                 part->window_count, part->window_count == 1 ? "" : "s", part->group_count,
                 part->sm_count);
    else
        snprintf(part->why, sizeof(part->why),
                 "%s are more than %u groups reach, each in its own window: this job misses, but "
                 "makes no other job miss.",
                 asked, part->group_count);
}

static enum status plan_part(const struct splitting *s, uint32_t j, struct err *err)
{
    const struct sm_partition *p = &s->fp->topology.partition;
    struct split_part *part = &s->out->parts[j];
    const struct placement_request r = {.bytes = s->request->jobs[j].bytes,
                                        .fingerprint_id = s->limit.fingerprint_id};
    struct placement_answer a;
    bool groups[REACH_MAX_GROUPS];
    enum status status;

    for (uint32_t g = 0; g < REACH_MAX_GROUPS; g++)
        groups[g] = s->job_of_group[g] == (int16_t)j;
    status = placement_plan_for(s->fp, &r, groups, &a, err);
    if (status != STATUS_OK)
        return status;
    for (uint32_t g = 0; g < REACH_MAX_GROUPS; g++) {
        part->group_count += groups[g] ? 1 : 0;
        part->sm_count += groups[g] ? s->active.sizes[s->active.dense_of[g]] : 0;
    }
    for (uint32_t sm = 0; sm < s->out->sm_slots; sm++) {
        const uint16_t g = p->group_of_sm[sm];
        if (active_groups_has(&s->active, p, g) && groups[g])
            s->out->job_of_sm[sm] = (int16_t)j;
    }
    write_part(s, j, &a);
    return STATUS_OK;
}

static void write_reason(const struct splitting *s)
{
    struct split_answer *out = s->out;
    uint32_t fitting = 0;
    const char *shared = "";

    for (uint32_t j = 0; j < out->job_count; j++)
        fitting += out->parts[j].fits ? 1 : 0;
    for (uint32_t i = 0; i < s->fp->level_count && i < FINGERPRINT_MAX_LEVELS; i++) {
        if (s->fp->levels[i].shared_by == SHARED_GPU)
            shared = " A level that all SMs share is behind them and is not split.";
    }
    snprintf(out->reason, sizeof(out->reason),
             "%u job%s, %u groups, %u SMs: each group works for one job, so no two jobs share a "
             "TLB of the groups; %u of %u stay within the reach (fingerprint %s).%s",
             out->job_count, out->job_count == 1 ? "" : "s", s->active.count, s->active.sms,
             fitting, out->job_count, out->fingerprint_id, shared);
}

enum status split_jobs(const struct fingerprint *fp, const struct split_request *request,
                       struct split_answer *out, struct err *err)
{
    struct splitting s;
    enum status status = check(request, err);

    memset(&s, 0, sizeof(s));
    s.fp = fp;
    s.request = request;
    s.out = out;
    if (status == STATUS_OK)
        status = read_chip(&s, err);
    if (status != STATUS_OK)
        return status;
    memset(out, 0, sizeof(*out));
    memcpy(out->fingerprint_id, s.limit.fingerprint_id, sizeof(out->fingerprint_id));
    out->job_count = request->job_count;
    out->sm_slots = s.active.slots;
    memset(s.job_of_group, -1, sizeof(s.job_of_group));
    memset(out->job_of_sm, -1, sizeof(out->job_of_sm));
    memset(out->window_of_sm, -1, sizeof(out->window_of_sm));
    claim(&s);
    assign_groups(&s);
    for (uint32_t j = 0; j < request->job_count; j++) {
        status = plan_part(&s, j, err);
        if (status != STATUS_OK)
            return status;
    }
    write_reason(&s);
    next_step_append(fp, out->parts[0].gbps, out->reason, sizeof(out->reason));
    return STATUS_OK;
}
