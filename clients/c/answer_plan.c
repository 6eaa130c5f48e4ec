/* answer_plan.c: the planner's answers, from the daemon's JSON. */
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

enum reach_status answer_plan(const json_t *json, void *out, struct reach_error *error)
{
    struct reach_plan *plan = out;
    enum reach_status status;
    struct json_in in;
    struct err err;

    json_in_begin(&in, json, "", JSON_IN_LENIENT, STATUS_PROTOCOL, &err);
    answer_read_basis(&in, &plan->basis);
    json_in_u64(&in, "bytes", &plan->bytes);
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
