/* answer_plan.c: plan, split and explain, from the daemon's JSON. */
#include "clients/c/answer_parts.h"

#include <string.h>

static bool strategy_from_word(const char *word, enum reach_strategy *out)
{
    for (int i = 0; word && i < REACH_STRATEGY_COUNT; i++) {
        if (strcmp(word, reach_strategy_name((enum reach_strategy)i)) == 0) {
            *out = (enum reach_strategy)i;
            return true;
        }
    }
    return false;
}

static void read_option(struct json_in *in, const char *word, struct reach_option *out)
{
    struct maybe_f64 extra = UNKNOWN_F64(REASON_NOT_MEASURED);

    if (!strategy_from_word(word, &out->strategy))
        json_in_fail(in, "strategy", "is missing");
    json_in_bool(in, "possible", &out->possible);
    answer_read_number(in, "gbps", &out->gbps);
    answer_read_number(in, "times_naive", &out->times_naive);
    json_in_u64(in, "passes", &out->passes);
    json_in_u32(in, "windows", REACH_WINDOW_SLOTS, &out->windows);
    json_in_u64(in, "scope_bytes", &out->scope_bytes);
    json_in_f64_maybe(in, "extra_bytes_per_access", &extra);
    out->extra_bytes_per_access = IS_KNOWN(extra) ? extra.v : 0;
    answer_read_number(in, "extra_bytes", &out->extra_bytes);
    json_in_text(in, "bound", out->bound, sizeof(out->bound));
    json_in_text(in, "why", out->why, sizeof(out->why));
}

/* A strategy of a newer daemon is passed over: this library has no word for it. */
static void read_options(struct json_in *in, struct reach_plan *out)
{
    const json_t *list = json_in_array(in, "options", 64);

    for (size_t i = 0; json_in_ok(in) && i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        const char *word = json_string_value(json_object_get(one, "strategy"));
        enum reach_strategy known;
        struct json_in option;

        if (word && !strategy_from_word(word, &known))
            continue;
        if (out->option_count == REACH_STRATEGY_COUNT) {
            json_in_fail(in, "options", "has a strategy twice");
            return;
        }
        json_in_begin_inside(&option, in, one, "options", (int)i);
        read_option(&option, word, &out->options[out->option_count++]);
        json_in_absorb(in, json_in_end(&option));
    }
}

/* What the strategies need; null where no such strategy is possible. */
static void read_means(struct json_in *in, struct reach_plan *out)
{
    const json_t *scope = json_object_get(in->object, "scope");
    const json_t *placement = json_object_get(in->object, "placement");
    struct json_in inner;

    if (json_is_object(scope)) {
        json_in_begin_inside(&inner, in, scope, "scope", -1);
        json_in_u64(&inner, "scope_bytes", &out->scope_bytes);
        json_in_u64(&inner, "passes", &out->passes);
        json_in_absorb(in, json_in_end(&inner));
    }
    if (json_in_ok(in) && json_is_object(placement)) {
        json_in_begin_inside(&inner, in, placement, "placement", -1);
        answer_read_windows(&inner, &out->windows);
        json_in_absorb(in, json_in_end(&inner));
    }
}

/* Each possible strategy must have what it needs to be carried out. */
static void check_means(struct json_in *in, const struct reach_plan *plan)
{
    if (json_in_ok(in) && (plan->option_count == 0 || !plan->options[0].possible))
        json_in_fail(in, "options", "nothing is possible");
    for (uint32_t i = 0; json_in_ok(in) && i < plan->option_count; i++) {
        const struct reach_option *o = &plan->options[i];
        if (o->possible && o->strategy == REACH_SCOPES &&
            (plan->passes == 0 || plan->scope_bytes < plan->bytes / plan->passes))
            json_in_fail(in, "scope", "scopes are possible, and there is none");
        if (o->possible && o->strategy >= REACH_WINDOWS && plan->windows.window_count == 0)
            json_in_fail(in, "placement", "windows are possible, and there are none");
    }
}

void answer_read_price(struct json_in *in, uint32_t *out_element, uint32_t *out_transaction,
                       char *out_basis, struct reach_number *out_inside)
{
    json_in_u32(in, "element_bytes", UINT32_MAX, out_element);
    json_in_u32(in, "transaction_bytes", UINT32_MAX, out_transaction);
    json_in_text(in, "basis", out_basis, REACH_WORD_BYTES);
    answer_read_number(in, "inside_gbps", out_inside);
}

enum reach_status answer_plan(const json_t *json, void *out, struct reach_error *error)
{
    struct reach_plan *plan = out;
    enum reach_status status;
    struct json_in in;
    struct err err;

    json_in_begin(&in, json, "", JSON_IN_LENIENT, STATUS_PROTOCOL, &err);
    answer_read_basis(&in, &plan->basis);
    json_in_u64(&in, "bytes", &plan->bytes);
    answer_read_price(&in, &plan->element_bytes, &plan->transaction_bytes, plan->price_basis,
                      &plan->inside_gbps);
    json_in_text(&in, "reason", plan->reason, sizeof(plan->reason));
    read_options(&in, plan);
    read_means(&in, plan);
    check_means(&in, plan);
    status = answer_end(&in, &err, error);
    if (status != REACH_OK)
        return status;
    plan->recommended = plan->options[0].strategy;
    return answer_check_windows(&plan->windows, plan->bytes, error);
}

/* ---- split ---- */

static double read_real(struct json_in *in, const char *name)
{
    struct maybe_f64 m = UNKNOWN_F64(REASON_NOT_MEASURED);

    json_in_f64_maybe(in, name, &m);
    if (json_in_ok(in) && !IS_KNOWN(m))
        json_in_fail(in, name, "is missing");
    return IS_KNOWN(m) ? m.v : 0;
}

static void read_part(struct json_in *in, struct reach_part *out)
{
    json_in_u64(in, "bytes", &out->bytes);
    out->weight = read_real(in, "weight");
    json_in_bool(in, "fits", &out->fits);
    json_in_u32(in, "sm_count", REACH_SM_SLOTS, &out->sm_count);
    json_in_u32(in, "group_count", REACH_GROUP_SLOTS, &out->group_count);
    answer_read_windows(in, &out->windows);
    answer_read_number(in, "gbps", &out->gbps);
    answer_read_number(in, "unsplit_gbps", &out->unsplit_gbps);
    json_in_text(in, "why", out->why, sizeof(out->why));
}

/* Each part has windows, and no SM works for two jobs. */
static enum reach_status check_parts(const struct reach_split *split, struct reach_error *error)
{
    bool taken[REACH_SM_SLOTS] = {false};

    for (uint32_t j = 0; j < split->job_count; j++) {
        const struct reach_windows *w = &split->parts[j].windows;
        enum reach_status status = answer_check_windows(w, split->parts[j].bytes, error);
        if (status != REACH_OK)
            return status;
        if (w->window_count == 0)
            return fail_with(error, REACH_PROTOCOL, "job %u of the split has no window", j);
        for (uint32_t sm = 0; sm < w->sm_slots; sm++) {
            if (w->window_of_sm[sm] == REACH_IDLE)
                continue;
            if (taken[sm])
                return fail_with(error, REACH_PROTOCOL, "SM %u works for two jobs of the split",
                                 sm);
            taken[sm] = true;
        }
    }
    return REACH_OK;
}

enum reach_status answer_split(const json_t *json, void *out, struct reach_error *error)
{
    struct reach_split *split = out;
    enum reach_status status;
    const json_t *jobs;
    struct json_in in;
    struct err err;

    json_in_begin(&in, json, "", JSON_IN_LENIENT, STATUS_PROTOCOL, &err);
    answer_read_basis(&in, &split->basis);
    json_in_text(&in, "reason", split->reason, sizeof(split->reason));
    jobs = json_in_array(&in, "jobs", REACH_JOB_SLOTS);
    for (uint32_t j = 0; json_in_ok(&in) && j < json_array_size(jobs); j++) {
        struct json_in part;
        json_in_begin_inside(&part, &in, json_array_get(jobs, j), "jobs", (int)j);
        read_part(&part, &split->parts[j]);
        json_in_absorb(&in, json_in_end(&part));
        split->job_count = j + 1;
    }
    status = answer_end(&in, &err, error);
    return status == REACH_OK ? check_parts(split, error) : status;
}

/* ---- explain ---- */

static void read_checks(struct json_in *in, struct reach_explanation *out)
{
    const json_t *list = json_in_array(in, "checks", 64);

    for (size_t i = 0; i < json_array_size(list) && i < REACH_CHECK_SLOTS; i++) {
        const char *text = json_string_value(json_array_get(list, i));
        if (!text || strlen(text) >= REACH_REASON_BYTES) {
            json_in_fail(in, "checks", "must be sentences");
            return;
        }
        memcpy(out->checks[i], text, strlen(text) + 1);
        out->check_count = (uint32_t)i + 1;
    }
}

enum reach_status answer_explain(const json_t *json, void *out, struct reach_error *error)
{
    struct reach_explanation *e = out;
    struct json_in in;
    struct err err;

    json_in_begin(&in, json, "", JSON_IN_LENIENT, STATUS_PROTOCOL, &err);
    answer_read_basis(&in, &e->basis);
    json_in_u64(&in, "bytes", &e->bytes);
    answer_read_price(&in, &e->element_bytes, &e->transaction_bytes, e->price_basis,
                      &e->inside_gbps);
    e->seen_gbps = read_real(&in, "seen_gbps");
    json_in_text(&in, "verdict", e->verdict, sizeof(e->verdict));
    answer_read_number(&in, "here_gbps", &e->here_gbps);
    answer_read_number(&in, "loss_gbps", &e->loss_gbps);
    answer_read_number(&in, "translation_share", &e->translation_share);
    json_in_text(&in, "reason", e->reason, sizeof(e->reason));
    read_checks(&in, e);
    if (json_in_ok(&in) && !e->verdict[0])
        json_in_fail(&in, "verdict", "is missing");
    return answer_end(&in, &err, error);
}
