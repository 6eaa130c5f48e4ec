/* reach_ask.c: libreach as a command for tests. It takes the URI of a source, reads requests from
 * standard input, one per line, and answers each with one line of JSON. The line contains the
 * values that the typed functions decoded, under the names of the API. After an error it is
 * {"error": status, "text": sentence, "field": parameter}. The requests:
 *
 *     placement 0 bytes=1000 granularity=8   and the other functions of the planner
 *     check GPU-..                           whether the last answer is for this GPU
 *     allow 2          window 17             timeout 500
 *     revalidate       age              gpus
 *     get /v1/gpus/0                         prints status and body as texts
 *     locale                                 prints 0.5 in the form of this program's locale
 *
 * Like many programs, this one sets the locale from its environment.
 */
#include "clients/c/reach.h"

#include <jansson.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 4096 };

static locale_t c_locale;
static struct reach *reach;
static struct reach_error error;
static struct reach_answer *last;
static const struct reach_windows *last_windows;

/* words of enums, by value */
static const char *const states[] = {"?",      "unknown", "queued",   "measuring", "ready",
                                     "failed", "lost",    "checking", "stale"};
static const char *const bounds[] = {"?",     "unknown", "memory", "translation",
                                     "input", "scan",    "launch"};
static const char *const prices[] = {"?",      "none", "measured", "between",
                                     "scaled", "job",  "simulated"};
static const char *const verdicts[] = {"?", "translation", "partly", "not-translation",
                                       "cannot-say"};

/* ---- answers as JSON ---- */

static void set_number(json_t *o, const char *name, struct reach_number n)
{
    char reason[64];

    snprintf(reason, sizeof(reason), "%s_reason", name);
    json_object_set_new(o, name, n.known ? json_real(n.value) : json_null());
    if (!n.known)
        json_object_set_new(o, reason, json_string(n.reason));
}

static json_t *new_answer(const struct reach_answer *answer)
{
    const struct reach_provenance *p = reach_answer_provenance(answer);

    return json_pack("{s:s,s:s,s:s,s:b,s:i,s:o}", "gpu", p->gpu_uuid, "fingerprint_id",
                     p->fingerprint_id, "origin", reach_origin_name(p->origin), "fingerprint_stale",
                     p->stale, "source", (int)reach_answer_source(answer), "speeds_taken_at",
                     *p->speeds_taken_at ? json_string(p->speeds_taken_at) : json_null());
}

/* Prints "parts" of a window or of a scope if there are several allocations. */
static void set_parts(json_t *o, const struct reach_extent *ranges, uint32_t count)
{
    json_t *parts = json_array();

    for (uint32_t i = 0; i < count; i++)
        json_array_append_new(parts,
                              json_pack("{s:I,s:I}", "first_byte", (json_int_t)ranges[i].first_byte,
                                        "length_bytes", (json_int_t)ranges[i].length_bytes));
    if (count > 1)
        json_object_set(o, "parts", parts);
    json_decref(parts);
}

static void set_windows(json_t *o, const struct reach_windows *w)
{
    json_t *windows = json_array();
    json_t *table = json_array();

    for (uint32_t i = 0; i < w->window_count; i++) {
        json_t *one =
            json_pack("{s:i,s:I,s:I,s:i,s:i}", "index", (int)i, "first_byte",
                      (json_int_t)w->window[i].first_byte, "length_bytes",
                      (json_int_t)w->window[i].length_bytes, "sm_count", (int)w->window[i].sm_count,
                      "group_count", (int)w->window[i].group_count);
        set_parts(one, &w->part[i * w->allocation_count], w->allocation_count);
        json_array_append_new(windows, one);
    }
    for (uint32_t sm = 0; sm < w->sm_slots; sm++)
        json_array_append_new(table, w->window_of_sm[sm] == REACH_IDLE
                                         ? json_null()
                                         : json_integer(w->window_of_sm[sm]));
    json_object_set_new(o, "windows", windows);
    json_object_set_new(o, "window_of_sm", table);
}

static json_t *gpus_json(const struct reach_answer *answer)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < reach_answer_gpu_count(answer); i++) {
        const struct reach_gpu *g = reach_answer_gpu(answer, i);
        json_array_append_new(list, json_pack("{s:i,s:s,s:s,s:s,s:s,s:i,s:I,s:b,s:s,s:b}", "index",
                                              (int)g->index, "uuid", g->uuid, "name", g->name,
                                              "origin", reach_origin_name(g->origin), "state",
                                              states[g->state], "sm_count", (int)g->sm_count,
                                              "memory_bytes", (json_int_t)g->memory_bytes, "mig",
                                              g->mig, "fingerprint_id", g->fingerprint_id,
                                              "fingerprint_stale", g->stale));
    }
    return json_pack("{s:o}", "gpus", list);
}

static json_t *fingerprint_json(const struct reach_answer *answer)
{
    const struct reach_fingerprint *f = reach_answer_fingerprint(answer);
    json_t *o = new_answer(answer);
    json_t *groups = json_array();

    json_object_set_new(o, "name", json_string(f->name));
    json_object_set_new(o, "driver_version", json_string(f->driver_version));
    json_object_set_new(o, "depth", json_string(f->depth));
    json_object_set_new(o, "taken_at", json_string(f->taken_at));
    json_object_set_new(o, "sm_count", json_integer(f->sm_count));
    json_object_set_new(o, "memory_bytes", json_integer((json_int_t)f->memory_bytes));
    set_number(o, "reach_bytes", f->reach_bytes);
    set_number(o, "entry_bytes", f->entry_bytes);
    set_number(o, "recommended_bytes", f->recommended_bytes);
    set_number(o, "plateau_gbps", f->plateau_gbps);
    set_number(o, "whole_memory_gbps", f->whole_memory_gbps);
    json_object_set_new(o, "group_count", json_integer(f->group_count));
    for (uint32_t sm = 0; sm < f->sm_slots; sm++)
        json_array_append_new(groups, json_integer(f->group_of_sm[sm]));
    json_object_set_new(o, "group_of_sm", groups);
    return o;
}

/* Returns the list of scopes, or null if there are none, or too many for a list. */
static json_t *scopes_json(const struct reach_scopes *s)
{
    json_t *list = s->scope_count > 0 ? json_array() : json_null();

    for (uint32_t k = 0; k < s->scope_count; k++) {
        const struct reach_extent *ranges = &s->range[k * s->allocation_count];
        json_int_t first = 0;
        json_int_t length = 0;
        json_t *one;
        for (uint32_t i = 0; i < s->allocation_count; i++) {
            first += (json_int_t)ranges[i].first_byte;
            length += (json_int_t)ranges[i].length_bytes;
        }
        one = json_pack("{s:I,s:I}", "first_byte", first, "length_bytes", length);
        set_parts(one, ranges, s->allocation_count);
        json_array_append_new(list, one);
    }
    return list;
}

static json_t *scope_json(const struct reach_answer *answer)
{
    const struct reach_scope *s = reach_answer_scope(answer);
    json_t *o = new_answer(answer);

    json_object_set_new(o, "scopes", scopes_json(&s->scopes));

    json_object_set_new(o, "bytes", json_integer((json_int_t)s->bytes));
    json_object_set_new(o, "advice", json_string(reach_advice_name(s->advice)));
    json_object_set_new(o, "scope_bytes", json_integer((json_int_t)s->scope_bytes));
    json_object_set_new(o, "passes", json_integer((json_int_t)s->passes));
    set_number(o, "predicted_gbps", s->predicted_gbps);
    set_number(o, "naive_gbps", s->naive_gbps);
    json_object_set_new(o, "reason", json_string(s->reason));
    return o;
}

static json_t *placement_json(const struct reach_answer *answer)
{
    const struct reach_placement *p = reach_answer_placement(answer);
    json_t *o = new_answer(answer);

    json_object_set_new(o, "bytes", json_integer((json_int_t)p->bytes));
    json_object_set_new(o, "advice", json_string(reach_advice_name(p->advice)));
    json_object_set_new(o, "window_count", json_integer(p->windows.window_count));
    set_windows(o, &p->windows);
    set_number(o, "headroom_bytes", p->headroom_bytes);
    set_number(o, "predicted_gbps", p->predicted_gbps);
    set_number(o, "naive_gbps", p->naive_gbps);
    json_object_set_new(o, "reason", json_string(p->reason));
    return o;
}

static json_t *option_json(const struct reach_option *option)
{
    json_t *o = json_pack("{s:s,s:b,s:I,s:i,s:I,s:f,s:s,s:s}", "strategy",
                          reach_strategy_name(option->strategy), "possible", option->possible,
                          "passes", (json_int_t)option->passes, "windows", (int)option->windows,
                          "scope_bytes", (json_int_t)option->scope_bytes, "extra_bytes_per_access",
                          option->extra_bytes_per_access, "bound", bounds[option->bound], "why",
                          option->why);

    set_number(o, "gbps", option->gbps);
    set_number(o, "times_naive", option->times_naive);
    set_number(o, "extra_bytes", option->extra_bytes);
    return o;
}

/* Prints the accesses of an item: one access, or a list. */
static void set_item(json_t *o, const struct reach_plan *p)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < p->allocation_count; i++) {
        const struct reach_allocation *a = &p->allocation[i];
        json_array_append_new(
            list, json_pack("{s:I,s:f,s:i,s:i,s:I}", "bytes", (json_int_t)a->bytes, "touches",
                            a->touches, "element_bytes", (int)a->element_bytes, "transaction_bytes",
                            (int)a->transaction_bytes, "granularity_bytes",
                            (json_int_t)a->granularity_bytes));
    }
    if (p->allocation_count > 0) {
        json_object_set(o, "allocations", list);
        json_object_set_new(o, "item_bytes", json_real(p->item_bytes));
    } else {
        json_object_set_new(o, "element_bytes", json_integer(p->element_bytes));
        json_object_set_new(o, "transaction_bytes", json_integer(p->transaction_bytes));
    }
    json_decref(list);
}

static json_t *plan_json(const struct reach_answer *answer)
{
    const struct reach_plan *p = reach_answer_plan(answer);
    json_t *o = new_answer(answer);
    json_t *options = json_array();
    json_t *placement = json_object();

    json_object_set_new(o, "bytes", json_integer((json_int_t)p->bytes));
    set_item(o, p);
    json_object_set_new(o, "basis", json_string(prices[p->price]));
    set_number(o, "in_reach_gbps", p->in_reach_gbps);
    set_number(o, "contiguous", p->contiguous);
    set_number(o, "naive_contiguous_gbps", p->naive_contiguous_gbps);
    set_number(o, "naive_scattered_gbps", p->naive_scattered_gbps);
    json_object_set_new(o, "recommended", json_string(reach_strategy_name(p->recommended)));
    json_object_set_new(o, "reason", json_string(p->reason));
    for (uint32_t i = 0; i < p->option_count; i++)
        json_array_append_new(options, option_json(reach_answer_option(answer, i)));
    json_object_set_new(o, "options", options);
    json_object_set_new(o, "scope",
                        p->scope_bytes == 0
                            ? json_null()
                            : json_pack("{s:I,s:I}", "scope_bytes", (json_int_t)p->scope_bytes,
                                        "passes", (json_int_t)p->passes));
    if (p->scope_bytes > 0 && p->scopes.allocation_count > 1)
        json_object_set_new(json_object_get(o, "scope"), "scopes", scopes_json(&p->scopes));
    set_windows(placement, &p->windows);
    if (p->windows.window_count > 0) {
        json_object_set_new(o, "placement", placement);
    } else {
        json_decref(placement);
        json_object_set_new(o, "placement", json_null());
    }
    return o;
}

static json_t *split_json(const struct reach_answer *answer)
{
    json_t *o = new_answer(answer);
    json_t *jobs = json_array();

    json_object_set_new(o, "reason", json_string(reach_answer_split(answer)->reason));
    for (uint32_t j = 0; j < reach_answer_split(answer)->job_count; j++) {
        const struct reach_share *p = reach_answer_share(answer, j);
        json_t *part = json_pack("{s:I,s:f,s:b,s:i,s:i,s:i,s:s}", "bytes", (json_int_t)p->bytes,
                                 "weight", p->weight, "fits", p->fits, "sm_count", (int)p->sm_count,
                                 "group_count", (int)p->group_count, "window_count",
                                 (int)p->windows.window_count, "why", p->why);
        set_windows(part, &p->windows);
        set_number(part, "gbps", p->gbps);
        set_number(part, "unsplit_gbps", p->unsplit_gbps);
        json_array_append_new(jobs, part);
    }
    json_object_set_new(o, "jobs", jobs);
    return o;
}

static json_t *explanation_json(const struct reach_answer *answer)
{
    const struct reach_explanation *e = reach_answer_explanation(answer);
    json_t *o = new_answer(answer);
    json_t *checks = json_array();

    json_object_set_new(o, "bytes", json_integer((json_int_t)e->bytes));
    json_object_set_new(o, "element_bytes", json_integer(e->element_bytes));
    json_object_set_new(o, "transaction_bytes", json_integer(e->transaction_bytes));
    json_object_set_new(o, "basis", json_string(prices[e->price]));
    json_object_set_new(o, "observed_gbps", json_real(e->observed_gbps));
    json_object_set_new(o, "verdict", json_string(verdicts[e->verdict]));
    set_number(o, "in_reach_gbps", e->in_reach_gbps);
    set_number(o, "contiguous", e->contiguous);
    set_number(o, "naive_contiguous_gbps", e->naive_contiguous_gbps);
    set_number(o, "naive_scattered_gbps", e->naive_scattered_gbps);
    set_number(o, "expected_gbps", e->expected_gbps);
    set_number(o, "loss_gbps", e->loss_gbps);
    set_number(o, "translation_share", e->translation_share);
    json_object_set_new(o, "reason", json_string(e->reason));
    for (uint32_t i = 0; i < e->check_count; i++)
        json_array_append_new(checks, json_string(e->checks[i]));
    json_object_set_new(o, "checks", checks);
    return o;
}

/* ---- questions ---- */

static const char *value_of(char **words, const char *name)
{
    const size_t length = strlen(name);

    for (; *words; words++) {
        if (strncmp(*words, name, length) == 0 && (*words)[length] == '=')
            return *words + length + 1;
    }
    return NULL;
}

static uint64_t size_of(char **words, const char *name)
{
    const char *text = value_of(words, name);

    return text ? strtoull(text, NULL, 10) : 0;
}

/* Parses a number of a request line, which has a decimal point in every locale. */
static double number_of(const char *text, char **end)
{
    return strtod_l(text, end, c_locale);
}

static double real_of(char **words, const char *name)
{
    const char *text = value_of(words, name);

    return text ? number_of(text, NULL) : 0;
}

static double scattered_of(char **words)
{
    return value_of(words, "contiguous") ? 1 - real_of(words, "contiguous") : 0;
}

static enum reach_access access_of(char **words)
{
    const char *text = value_of(words, "access");

    for (int a = 0; text && a < 3; a++) {
        if (strcmp(text, reach_access_name((enum reach_access)a)) == 0)
            return (enum reach_access)a;
    }
    return text ? (enum reach_access)9 : REACH_READ;
}

static json_t *keep(struct reach_answer *take, const struct reach_windows *windows, json_t *json)
{
    reach_answer_free(last);
    last = take;
    last_windows = windows;
    return json;
}

/* Returns the next number of a list, or `without` at the end of the list. */
static double next_of(const char **text, double without)
{
    char *end;
    double v;

    if (!*text || !**text)
        return without;
    v = number_of(*text, &end);
    *text = *end == ',' ? end + 1 : end;
    return v;
}

/* Parses "bytes=1,2 touches=1,0.5 element=8,16". Returns the number of allocations, or 0 for
 * "bytes=1". */
static uint32_t allocations_of(char **w, struct reach_allocation *out)
{
    const char *bytes = value_of(w, "bytes");
    const char *touches = value_of(w, "touches");
    const char *element = value_of(w, "element");
    const char *transaction = value_of(w, "transaction");
    const char *granularity = value_of(w, "granularity");
    uint32_t count = 0;

    if (!bytes || (!strchr(bytes, ',') && !touches))
        return 0;
    for (; *bytes && count < REACH_ALLOCATION_MAX; count++) {
        struct reach_allocation *a = &out[count];
        a->bytes = (uint64_t)next_of(&bytes, 0);
        a->touches = next_of(&touches, 1);
        a->element_bytes = (uint32_t)next_of(&element, 0);
        a->transaction_bytes = (uint32_t)next_of(&transaction, 0);
        a->granularity_bytes = (uint64_t)next_of(&granularity, 0);
    }
    return count;
}

static json_t *ask_plan(const char *gpu, char **w)
{
    struct reach_allocation list[REACH_ALLOCATION_MAX];
    const struct reach_job job = {.size = sizeof(job),
                                  .bytes = size_of(w, "bytes"),
                                  .access = access_of(w),
                                  .element_bytes = (uint32_t)size_of(w, "element"),
                                  .transaction_bytes = (uint32_t)size_of(w, "transaction"),
                                  .reserve_bytes = size_of(w, "reserve"),
                                  .accesses = size_of(w, "accesses"),
                                  .no_sm_binding = value_of(w, "no_sm_binding") != NULL,
                                  .single_pass = value_of(w, "single_pass") != NULL,
                                  .input_bytes = real_of(w, "input_bytes"),
                                  .input_gbps = real_of(w, "input_gbps"),
                                  .allocation_count = allocations_of(w, list),
                                  .allocation = list,
                                  .launch_us = real_of(w, "launch_us"),
                                  .written_bytes = real_of(w, "written_bytes"),
                                  .output_bytes = real_of(w, "output_bytes"),
                                  .partition_bytes = real_of(w, "partition_bytes"),
                                  .scan_gps = real_of(w, "scan_gps"),
                                  .in_reach_gbps = real_of(w, "in_reach_gbps"),
                                  .scattered = scattered_of(w),
                                  .granularity_bytes = size_of(w, "granularity"),
                                  .windows = (uint32_t)size_of(w, "windows")};
    struct reach_answer *plan;

    if (reach_get_plan(reach, gpu, &job, &plan, &error) != REACH_OK)
        return NULL;
    return keep(plan, &reach_answer_plan(plan)->windows, plan_json(plan));
}

/* "bytes=1,2 weight=1,2" */
static json_t *ask_split(const char *gpu, char **w)
{
    uint64_t bytes[REACH_JOB_MAX];
    double weights[REACH_JOB_MAX];
    struct reach_split_request request = {.size = sizeof(request), .bytes = bytes};
    const char *size = value_of(w, "bytes");
    const char *weight = value_of(w, "weight");
    struct reach_answer *split;
    char *end;

    request.weight = weight ? weights : NULL;
    for (; size && *size && request.job_count < REACH_JOB_MAX; request.job_count++) {
        bytes[request.job_count] = strtoull(size, &end, 10);
        size = *end == ',' ? end + 1 : end;
        if (weight) {
            weights[request.job_count] = number_of(weight, &end);
            weight = *end == ',' ? end + 1 : end;
        }
    }
    if (reach_get_split(reach, gpu, &request, &split, &error) != REACH_OK)
        return NULL;
    return keep(split, &reach_answer_share(split, 0)->windows, split_json(split));
}

static json_t *ask_explain(const char *gpu, char **w)
{
    const struct reach_explain_request request = {.size = sizeof(request),
                                                  .bytes = size_of(w, "bytes"),
                                                  .access = access_of(w),
                                                  .element_bytes = (uint32_t)size_of(w, "element"),
                                                  .transaction_bytes =
                                                      (uint32_t)size_of(w, "transaction"),
                                                  .observed_gbps = real_of(w, "gbps"),
                                                  .scattered = scattered_of(w)};
    struct reach_answer *e;

    if (reach_get_explain(reach, gpu, &request, &e, &error) != REACH_OK)
        return NULL;
    return keep(e, NULL, explanation_json(e));
}

static json_t *ask(const char *question, const char *gpu, char **words)
{
    struct reach_allocation list[REACH_ALLOCATION_MAX];
    const struct reach_scope_request scope_request = {
        .size = sizeof(scope_request),
        .allocation_count = allocations_of(words, list),
        .allocation = list,
        .granularity_bytes = size_of(words, "granularity"),
        .bytes = size_of(words, "bytes"),
        .access = access_of(words)};
    const struct reach_placement_request request = {.size = sizeof(request),
                                                    .bytes = size_of(words, "bytes"),
                                                    .windows = (uint32_t)size_of(words, "windows"),
                                                    .granularity_bytes =
                                                        size_of(words, "granularity")};
    struct reach_answer *got;

    if (strcmp(question, "plan") == 0)
        return ask_plan(gpu, words);
    if (strcmp(question, "split") == 0)
        return ask_split(gpu, words);
    if (strcmp(question, "explain") == 0)
        return ask_explain(gpu, words);
    if (strcmp(question, "scope") == 0) {
        if (reach_get_scope(reach, gpu, &scope_request, &got, &error) != REACH_OK)
            return NULL;
        return keep(got, NULL, scope_json(got));
    }
    if (strcmp(question, "placement") == 0) {
        if (reach_get_placement(reach, gpu, &request, &got, &error) != REACH_OK)
            return NULL;
        return keep(got, &reach_answer_placement(got)->windows, placement_json(got));
    }
    if (reach_get_fingerprint(reach, gpu, &got, &error) != REACH_OK)
        return NULL;
    return keep(got, NULL, fingerprint_json(got));
}

static json_t *number_or_error(enum reach_status status, uint64_t value)
{
    return status == REACH_OK ? json_pack("{s:I}", "value", (json_int_t)value) : NULL;
}

/* Prints any answer as text. */
static json_t *get(const char *target)
{
    char *body = NULL;
    const enum reach_status status = reach_get(reach, target, &body, &error);
    json_t *json = json_pack("{s:s,s:i,s:s,s:s?}", "status", reach_status_name(status),
                             "http_status", status == REACH_OK ? 200 : (int)error.http_status,
                             "field", status == REACH_OK ? "" : error.field, "body", body);

    reach_free(body);
    return json;
}

static json_t *answer(char **words)
{
    const char *operand = words[1] ? words[1] : "";
    char half[8];
    struct reach_answer *gpus;
    uint32_t window = 0;
    json_t *json;

    if (strcmp(words[0], "gpus") == 0) {
        if (reach_get_gpus(reach, &gpus, &error) != REACH_OK)
            return NULL;
        json = gpus_json(gpus);
        reach_answer_free(gpus);
        return json;
    }
    if (strcmp(words[0], "locale") == 0) {
        snprintf(half, sizeof(half), "%.1f", 0.5);
        return json_pack("{s:s}", "half", half);
    }
    if (strcmp(words[0], "get") == 0)
        return get(operand);
    if (strcmp(words[0], "allow") == 0)
        return number_or_error(reach_allow(reach, (uint32_t)atoi(operand), &error), 0);
    if (strcmp(words[0], "timeout") == 0)
        return number_or_error(reach_set_timeout_ms(reach, (uint32_t)atoi(operand), &error), 0);
    if (strcmp(words[0], "check") == 0)
        return number_or_error(reach_answer_check_gpu(last, operand, &error), 0);
    if (strcmp(words[0], "revalidate") == 0)
        return number_or_error(reach_revalidate(reach, last, &error), 0);
    if (strcmp(words[0], "age") == 0)
        return number_or_error(REACH_OK, reach_answer_age_ms(last));
    if (strcmp(words[0], "window") == 0) {
        const enum reach_status status =
            reach_window_of_sm(last_windows, (uint32_t)atoi(operand), &window, &error);
        return number_or_error(status, window);
    }
    return ask(words[0], operand, words + 1);
}

static void print(json_t *take)
{
    json_t *json = take ? take
                        : json_pack("{s:s,s:s,s:s}", "error", reach_status_name(error.status),
                                    "text", error.text, "field", error.field);

    json_dumpf(json, stdout, JSON_COMPACT);
    puts("");
    fflush(stdout);
    json_decref(json);
}

int main(int argc, char **argv)
{
    char line[LINE_BYTES];

    if (argc != 2)
        return 2;
    setlocale(LC_ALL, "");
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (reach_open(argv[1], &reach, &error) != REACH_OK) {
        print(NULL);
        return 1;
    }
    while (fgets(line, sizeof(line), stdin)) {
        char *words[32] = {NULL};
        int count = 0;
        for (char *w = strtok(line, " \n"); w && count < 31; w = strtok(NULL, " \n"))
            words[count++] = w;
        if (count > 0)
            print(answer(words));
    }
    reach_answer_free(last);
    reach_close(reach);
    freelocale(c_locale);
    return 0;
}
