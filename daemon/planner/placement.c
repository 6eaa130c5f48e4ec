/* placement.c: assigns SMs to windows.
 *
 * Walker: A100 80 GB memory beyond 64 GB, 2024, section 2.4. The SMs of one group share a TLB that
 * translates `reach` bytes. If all SMs of a group stay in one window of at most this length, no
 * load misses, although all groups together reach far more. (Single SMs that are assigned to
 * windows without regard to groups gain nothing, because each TLB then serves every window.)
 *
 *   memory   |<------ window 0 ------>|<------ window 1 ------>|<-- window 2 -->|
 *   groups    0  3  5                  1  4  7                  2  6
 *   SMs       50                       48                       34
 *
 * There are as few windows as the reach allows. Groups are assigned so that windows have equal
 * numbers of SMs (windows.c), or equal throughput if groups of the same size are not equally fast.
 * The lengths of windows are in proportion to these numbers. If groups are few and the memory is
 * large, the longest window can exceed the reach although equal windows would fit. In this case
 * more windows are tried first, because they cost nothing and all SMs still finish together. If no
 * number of windows helps, windows are cut at the limit, and the number with the most even windows
 * is chosen.
 *
 * Worked example: There are 132 SMs in 8 groups of 16 and 18, a reach of 64 GiB, and entries of 2
 * MiB. 137 GiB of memory need three windows, because two windows would have 68.5 GiB each.
 *
 * SMs whose group is not certain (FINGERPRINT_NO_GROUP) get no work if there is more than one
 * window. One SM in the wrong window would make its whole group miss.
 */
#include "planner/placement.h"

#include "planner/windows.h"
#include "planner/active_groups.h"
#include "planner/reach_limit.h"
#include "base/format_size.h"
#include "planner/next_step.h"

#include <stdio.h>
#include <string.h>

struct candidate {
    uint32_t windows;
    uint16_t window_of[REACH_MAX_GROUPS];
    uint32_t totals[REACH_MAX_GROUPS]; /* sum of weights in each window */
    uint64_t lengths[PLACEMENT_MAX_WINDOWS];
    struct windows_result cut;
};

struct plan {
    const struct fingerprint *fp;
    const struct placement_request *request;
    struct reach_limit limit;
    struct active_groups active;
    uint64_t unit_bytes;
    uint64_t reserved_bytes; /* part of the reach that other data of the job uses */
    char bytes_text[FORMAT_SIZE_BYTES];
    char limit_text[FORMAT_SIZE_BYTES]; /* usable bytes of the reach, or the probed range if it
                                           shows no limit */
    struct candidate best;
};

static void try_windows(const struct plan *plan, uint32_t windows, struct candidate *out)
{
    struct windows_request request = {.bytes = plan->request->bytes,
                                      .unit_bytes = plan->unit_bytes,
                                      .limit_bytes = plan->limit.usable_bytes,
                                      .shares = out->totals,
                                      .windows = windows};

    out->windows = windows;
    out->cut = (struct windows_result){.fits = false};
    if (windows_assign(plan->active.weights, plan->active.count, windows, out->window_of,
                       out->totals))
        out->cut = windows_cut(&request, out->lengths);
}

/* Finds the lowest number of windows, from `from` to `to`, for which the windows are proportional.
 * If there is no such number, finds the number with the most even windows. Returns false if no
 * number fits. `*out_empty` is true if a number was left out because one of its windows is
 * empty. */
static bool search(struct plan *plan, uint32_t from, uint32_t to, bool *out_empty)
{
    struct candidate c;
    bool found = false;

    *out_empty = false;
    for (uint32_t windows = from; windows <= to; windows++) {
        try_windows(plan, windows, &c);
        if (!c.cut.fits)
            continue;
        if (c.cut.empty) {
            *out_empty = true;
            continue;
        }
        if (!found || c.cut.proportional || c.cut.imbalance < plan->best.cut.imbalance)
            plan->best = c;
        found = true;
        if (c.cut.proportional)
            return true;
    }
    return found;
}

static void single_window(const struct plan *plan, struct placement_answer *out)
{
    const struct sm_partition *p = &plan->fp->topology.partition;
    bool all_known = plan->active.chosen || plan->active.sms == plan->fp->gpu.sm_count;

    out->window_count = 1;
    out->imbalance = 1;
    out->windows[0] = (struct placement_window){
        .first_byte = 0,
        .length_bytes = plan->request->bytes,
        .sm_count = plan->active.chosen ? plan->active.sms : plan->fp->gpu.sm_count,
        .group_count = plan->active.count};
    out->sm_slots = plan->active.slots;
    for (uint32_t sm = 0; sm < out->sm_slots; sm++)
        out->window_of_sm[sm] =
            all_known && !active_groups_has(&plan->active, p, p->group_of_sm[sm]) ? -1 : 0;
}

static void write_windows(const struct plan *plan, struct placement_answer *out)
{
    const struct sm_partition *p = &plan->fp->topology.partition;
    const struct candidate *best = &plan->best;
    uint64_t first = 0;
    uint64_t longest = 0;

    out->window_count = best->windows;
    for (uint32_t w = 0; w < best->windows; w++) {
        out->windows[w] =
            (struct placement_window){.first_byte = first, .length_bytes = best->lengths[w]};
        first += best->lengths[w];
        if (best->lengths[w] > longest)
            longest = best->lengths[w];
    }
    for (uint32_t g = 0; g < plan->active.count; g++) {
        out->windows[best->window_of[g]].sm_count += plan->active.sizes[g];
        out->windows[best->window_of[g]].group_count++;
    }
    out->headroom_bytes = plan->limit.reach_bytes - longest - plan->reserved_bytes;
    out->imbalance = best->cut.imbalance;
    out->sm_slots = plan->active.slots;
    for (uint32_t sm = 0; sm < out->sm_slots; sm++) {
        uint16_t group = p->group_of_sm[sm];
        out->window_of_sm[sm] = active_groups_has(&plan->active, p, group)
                                    ? (int16_t)best->window_of[plan->active.dense_of[group]]
                                    : -1;
    }
}

static void answer_unlimited(const struct plan *plan, struct placement_answer *out)
{
    single_window(plan, out);
    out->advice = ADVICE_NO_LIMIT_SEEN;
    out->predicted_gbps = out->naive_gbps;
    snprintf(out->reason, sizeof(out->reason),
             "No translation limit that costs speed was observable up to the %s probed, so any SM "
             "may work anywhere "
             "in %s (fingerprint %s).",
             plan->limit_text, plan->bytes_text, out->fingerprint_id);
}

static void answer_nothing_to_do(const struct plan *plan, struct placement_answer *out)
{
    single_window(plan, out);
    out->advice = ADVICE_NOTHING_TO_DO;
    out->headroom_bytes = plan->limit.reach_bytes - plan->request->bytes - plan->reserved_bytes;
    if (!IS_KNOWN(out->naive_gbps))
        out->naive_gbps = plan->fp->throughput.plateau_gbps;
    out->predicted_gbps = out->naive_gbps;
    snprintf(out->reason, sizeof(out->reason),
             "%s fit the %s that every SM group reaches without a miss, one entry of margin kept: "
             "any SM may work anywhere (fingerprint %s).",
             plan->bytes_text, plan->limit_text, out->fingerprint_id);
}

static void answer_not_enough(const struct plan *plan, uint64_t needed,
                              struct placement_answer *out)
{
    const uint64_t scope_bytes = reach_limit_scope_bytes(plan->fp, &plan->limit);
    char scope[FORMAT_SIZE_BYTES];

    out->advice = ADVICE_NOT_ENOUGH_GROUPS;
    out->predicted_gbps = UNKNOWN_F64(REASON_NOT_APPLICABLE);
    snprintf(out->reason, sizeof(out->reason),
             "%s need %llu windows of at most %s, and there are %u SM groups to work in them: make "
             "passes over scopes of %s instead, %llu of them (fingerprint %s).",
             plan->bytes_text, (unsigned long long)needed, plan->limit_text, plan->active.count,
             format_size(scope_bytes, scope),
             (unsigned long long)((plan->request->bytes - 1) / scope_bytes + 1),
             out->fingerprint_id);
}

static void answer_windows(const struct plan *plan, struct placement_answer *out)
{
    const struct maybe_f64 by_group =
        predict_gbps(&plan->fp->throughput, PREDICT_BY_GROUP, plan->request->bytes);
    const bool needed = plan->request->bytes > plan->limit.usable_bytes;
    const char *by = plan->active.weighted ? ", by throughput" : "";
    char uneven[64];

    write_windows(plan, out);
    out->advice = ADVICE_WINDOWS;
    out->predicted_gbps = IS_KNOWN(by_group) ? by_group : plan->fp->throughput.plateau_gbps;
    snprintf(uneven, sizeof(uneven), "%s", by);
    if (!plan->best.cut.proportional)
        snprintf(uneven, sizeof(uneven), "%s, uneven by %.0f%% to stay within it", by,
                 (plan->best.cut.imbalance - 1) * 100);
    snprintf(out->reason, sizeof(out->reason),
             "%s %s the %s that an SM group reaches without a miss, one entry of margin kept: %u "
             "windows%s, %u SMs of %u groups, each group in one window%s (fingerprint %s).",
             plan->bytes_text, needed ? "are more than" : "would fit", plan->limit_text,
             out->window_count, needed ? "" : ", as asked", plan->active.sms, plan->active.count,
             uneven, out->fingerprint_id);
}

/* Returns the parameter to change so that the bounds fit, or NULL if the request has neither of the
 * two. */
static const char *bounds_field(const struct placement_request *request)
{
    return request->granularity_bytes > 0 ? "granularity" : request->windows > 0 ? "windows" : NULL;
}

static enum status refuse(const struct plan *plan, uint64_t needed, bool empty, struct err *err)
{
    char unit[FORMAT_SIZE_BYTES];
    char usable[FORMAT_SIZE_BYTES];
    uint32_t asked = plan->request->windows;

    format_size_pair(plan->unit_bytes, plan->limit.usable_bytes, unit, usable);
    if (asked != 0 && asked < needed)
        return err_set_field(err, STATUS_INVALID_ARGUMENT, "windows",
                             "windows=%u would be longer than the %s that an SM group reaches: "
                             "request at least %llu",
                             asked, usable, (unsigned long long)needed);
    if (empty)
        return err_set_field(err, STATUS_INVALID_ARGUMENT, bounds_field(plan->request),
                             "window bounds at multiples of %s leave a window empty: request fewer "
                             "windows or a finer granularity",
                             unit);
    return err_set_field(
        err, STATUS_INVALID_ARGUMENT, bounds_field(plan->request),
        "window bounds at multiples of %s leave a window longer than the %s that an SM group "
        "reaches: request a finer granularity, or more windows",
        unit, usable);
}

static enum status check_request(const struct plan *plan, struct err *err)
{
    const struct placement_request *r = plan->request;

    if (r->granularity_bytes > PLACEMENT_MAX_BYTES)
        return err_set_field(err, STATUS_INVALID_ARGUMENT, "granularity",
                             "granularity is more than 1 PiB: check the number");
    if (r->windows > PLACEMENT_MAX_WINDOWS)
        return err_set_field(err, STATUS_INVALID_ARGUMENT, "windows",
                             "%u windows are more than the %d supported", r->windows,
                             PLACEMENT_MAX_WINDOWS);
    if (r->windows > 1 && plan->active.count > 0 && r->windows > plan->active.count)
        return err_set_field(
            err, STATUS_INVALID_ARGUMENT, "windows",
            "%u windows cannot be served by %u SM groups, since a group stays in one "
            "window: ask for at most %u",
            r->windows, plan->active.count, plan->active.count);
    return STATUS_OK;
}

/* Checks that the windows cover the allocation. A failure is a bug, and no job may use the answer.
 * The function returns an error instead of an assertion, because libreach must not end the
 * process. */
static enum status check_answer(const struct placement_request *r,
                                const struct placement_answer *out, struct err *err)
{
    uint64_t next = 0;
    bool sound = out->window_count > 0;

    for (uint32_t w = 0; sound && w < out->window_count; w++) {
        sound = out->windows[w].first_byte == next && out->windows[w].length_bytes > 0;
        next += out->windows[w].length_bytes;
    }
    for (uint32_t sm = 0; sound && sm < out->sm_slots; sm++)
        sound = out->window_of_sm[sm] >= -1 && out->window_of_sm[sm] < (int)out->window_count;
    return sound && next == r->bytes
               ? STATUS_OK
               : err_set(err, STATUS_INTERNAL, "the windows do not cover the allocation");
}

static enum status several_windows(struct plan *plan, struct placement_answer *out, struct err *err)
{
    const struct placement_request *r = plan->request;
    uint64_t needed = (r->bytes - 1) / plan->limit.usable_bytes + 1;
    uint32_t most =
        plan->active.count < PLACEMENT_MAX_WINDOWS ? plan->active.count : PLACEMENT_MAX_WINDOWS;
    bool empty;

    if (plan->active.count == 0)
        return err_set_hint(
            err, STATUS_NOT_APPLICABLE, next_step_full(plan->fp, REASON_TOO_LITTLE_DATA),
            "fingerprint %s lacks the SM groups that share a TLB", out->fingerprint_id);
    if (needed > most) {
        answer_not_enough(plan, needed, out);
        return STATUS_OK;
    }
    plan->unit_bytes =
        windows_unit(plan->limit.entry_bytes, r->granularity_bytes, plan->limit.usable_bytes);
    if (r->windows != 0) {
        if (!search(plan, r->windows, r->windows, &empty))
            return refuse(plan, needed, empty, err);
    } else if (!search(plan, (uint32_t)needed, most, &empty)) {
        if (plan->unit_bytes != plan->limit.entry_bytes)
            return refuse(plan, needed, empty, err);
        answer_not_enough(plan, (uint64_t)most + 1, out);
        return STATUS_OK;
    }
    answer_windows(plan, out);
    return check_answer(r, out, err);
}

enum status placement_plan(const struct fingerprint *fp, const struct placement_request *request,
                           struct placement_answer *out, struct err *err)
{
    return placement_plan_for(fp, request, NULL, out, err);
}

enum status placement_plan_for(const struct fingerprint *fp,
                               const struct placement_request *request, const bool *groups,
                               struct placement_answer *out, struct err *err)
{
    struct plan plan = {.fp = fp, .request = request};
    enum status s = reach_limit_read(fp, request->bytes, request->fingerprint_id, &plan.limit, err);
    uint64_t without_reserve = plan.limit.usable_bytes;

    if (s == STATUS_OK)
        s = reach_limit_reserve(&plan.limit, request->reserve_bytes, err);
    if (s == STATUS_OK)
        s = reach_limit_alignment(&plan.limit, request->alignment_bytes, err);
    if (s != STATUS_OK)
        return s;
    plan.reserved_bytes = without_reserve - plan.limit.usable_bytes;
    active_groups_count(fp, groups, &plan.active);
    s = check_request(&plan, err);
    if (s != STATUS_OK)
        return s;
    memset(out, 0, sizeof(*out));
    memcpy(out->fingerprint_id, plan.limit.fingerprint_id, sizeof(out->fingerprint_id));
    out->naive_gbps = predict_gbps(&fp->throughput, PREDICT_NAIVE, request->bytes);
    format_size_pair(request->bytes,
                     plan.limit.observed ? plan.limit.usable_bytes : fp->conditions.range_bytes,
                     plan.bytes_text, plan.limit_text);
    if (!plan.limit.observed)
        answer_unlimited(&plan, out);
    else if (request->bytes <= plan.limit.usable_bytes && request->windows <= 1)
        answer_nothing_to_do(&plan, out);
    else
        s = several_windows(&plan, out, err);
    if (s == STATUS_OK && out->advice != ADVICE_NOT_ENOUGH_GROUPS)
        next_step_append(fp, out->predicted_gbps, out->reason, sizeof(out->reason));
    return s;
}
