/* decode.c: the JSON of the API -> the structs of reach.h, and every check that an answer must pass
 * before a job may rely on it: fields of the right type, windows that lie side by side and cover
 * the allocation, no SM in a window that does not exist. This is the only place that decodes.
 * Fields of a newer daemon are ignored; those that an answer cannot do without are checked after
 * reading. Texts are those of the JSON value, which the answer owns. */
#include "clients/c/answer.h"

#include "base/json_in.h"
#include "fingerprint/fingerprint.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_GPUS = REACH_MAX_GPUS,
    MAX_SMS = REACH_MAX_SMS,
    MAX_GROUPS = REACH_MAX_GROUPS,
    MAX_WINDOWS = REACH_WINDOW_MAX,
    MAX_ITEMS = 64,      /* of a list whose length nothing else bounds */
    NULL_WINDOW = 0xffff /* null in window_of_sm while it is being read */
};

_Static_assert((int)REACH_SM_MAX == (int)REACH_MAX_SMS, "SMs of a table");

/* ---- fields ---- */

/* The position of the word in `words`; 0, which is "other", for one that is not there. */
static int word_of(struct json_in *in, const char *name, const char *const *words, int count)
{
    const char *word = json_in_word(in, name);

    if (!word && json_in_ok(in))
        json_in_fail(in, name, "is missing");
    for (int i = 1; word && i < count; i++) {
        if (strcmp(word, words[i]) == 0)
            return i;
    }
    return 0;
}
#define WORD(in, name, words) word_of(in, name, words, sizeof(words) / sizeof(*(words)))

static const char *const origins[] = {NULL, "measured", "simulated", "imported"};
static const char *const states[] = {NULL,     "unknown", "queued",   "measuring", "ready",
                                     "failed", "lost",    "checking", "stale"};
static const char *const advices[] = {NULL,      "nothing-to-do", "scopes",
                                      "windows", "no-limit-seen", "not-enough-groups"};
static const char *const bounds[] = {NULL, "unknown", "memory", "translation", "input", "looking"};
static const char *const prices[] = {NULL, "none", "measured", "between", "scaled", "job"};
static const char *const verdicts[] = {NULL, "translation", "partly", "not-translation",
                                       "cannot-say"};

const char *reach_origin_name(enum reach_origin origin)
{
    return (unsigned)origin < sizeof(origins) / sizeof(*origins) ? origins[origin] : NULL;
}

const char *reach_advice_name(enum reach_advice advice)
{
    return (unsigned)advice < sizeof(advices) / sizeof(*advices) ? advices[advice] : NULL;
}

/* "" for one that is missing or null. */
static const char *text_of(struct json_in *in, const char *name)
{
    const char *text =
        json_is_null(json_object_get(in->object, name)) ? "" : json_in_word(in, name);

    return text ? text : "";
}

static struct reach_number number_of(struct json_in *in, const char *name)
{
    const json_t *value = json_object_get(in->object, name);
    struct reach_number n = {.reason = ""};
    char field[96];

    if (json_is_number(value)) {
        n.known = true;
        n.value = json_number_value(value);
        return n;
    }
    if (value && !json_is_null(value))
        json_in_fail(in, name, "must be a number or null");
    snprintf(field, sizeof(field), "%s_reason", name);
    n.reason = json_string_value(json_object_get(in->object, field));
    if (!n.reason)
        n.reason = "not-measured";
    return n;
}

static double real_of(struct json_in *in, const char *name)
{
    const struct reach_number n = number_of(in, name);

    if (json_in_ok(in) && !n.known)
        json_in_fail(in, name, "is missing");
    return n.value;
}

static void *alloc(struct json_in *in, struct answer_content *answer, size_t count, size_t size)
{
    void *memory = answer_alloc(answer, count, size);

    if (!memory)
        json_in_absorb(in, err_set(in->err, STATUS_NO_MEMORY, "no memory for an answer"));
    return memory;
}

/* ---- what an answer rests on ---- */

static void read_provenance(struct json_in *in, struct answer_content *answer)
{
    struct reach_provenance *p = &answer->provenance;

    p->gpu_uuid = text_of(in, "gpu");
    p->fingerprint_id = text_of(in, "fingerprint_id");
    p->origin = (enum reach_origin)WORD(in, "origin", origins);
    json_in_bool(in, "fingerprint_stale", &p->stale);
    p->speeds_taken_at = text_of(in, "speeds_taken_at");
    if (json_in_ok(in) && (!*p->gpu_uuid || !*p->fingerprint_id))
        json_in_fail(in, "fingerprint_id", "the answer does not say what it rests on");
    answer->rests_on_fingerprint = true;
}

/* ---- GPUs ---- */

static void read_gpu(struct json_in *in, struct reach_gpu *out)
{
    json_in_u32(in, "index", MAX_GPUS - 1, &out->index);
    out->uuid = text_of(in, "uuid");
    out->name = text_of(in, "name");
    out->state = (enum reach_state)WORD(in, "state", states);
    out->origin = (enum reach_origin)WORD(in, "origin", origins);
    json_in_u32(in, "sm_count", MAX_SMS, &out->sm_count);
    json_in_u64(in, "memory_bytes", &out->memory_bytes);
    json_in_bool(in, "mig", &out->mig);
    out->fingerprint_id = text_of(in, "fingerprint_id");
    json_in_bool(in, "fingerprint_stale", &out->stale);
}

static void read_gpus(struct json_in *in, struct answer_content *answer)
{
    const json_t *list = json_in_array(in, "gpus", MAX_GPUS);

    if (!list && json_in_ok(in))
        json_in_fail(in, "gpus", "is missing");
    answer->gpus = alloc(in, answer, json_array_size(list), sizeof(*answer->gpus));
    for (uint32_t i = 0; json_in_ok(in) && i < json_array_size(list); i++) {
        struct json_in gpu;
        json_in_begin_inside(&gpu, in, json_array_get(list, i), "gpus", (int)i);
        read_gpu(&gpu, &answer->gpus[i]);
        json_in_absorb(in, json_in_end(&gpu));
        answer->count = i + 1;
    }
}

static void read_one_gpu(struct json_in *in, struct answer_content *answer)
{
    answer->gpus = alloc(in, answer, 1, sizeof(*answer->gpus));
    if (!answer->gpus)
        return;
    answer->count = 1;
    read_gpu(in, answer->gpus);
    if (json_in_ok(in) && !*answer->gpus->uuid)
        json_in_fail(in, "uuid", "is missing: a GPU without a UUID");
}

/* ---- fingerprints ---- */

static void describe(struct json_in *in, const struct fingerprint *fp,
                     struct answer_content *answer)
{
    const json_t *gpu = json_object_get(in->object, "gpu");
    const struct sm_partition *p = &fp->topology.partition;
    struct reach_fingerprint *out = &answer->fingerprint;
    int16_t *group_of_sm = alloc(in, answer, MAX_SMS, sizeof(*group_of_sm));
    const char *driver = json_string_value(json_object_get(gpu, "driver_version"));
    struct json_in windows;
    struct json_in throughput;

    if (!group_of_sm)
        return;
    out->name = json_string_value(json_object_get(gpu, "name"));
    out->name = out->name ? out->name : "";
    out->driver_version = driver ? driver : "";
    out->depth = text_of(in, "depth");
    out->taken_at = text_of(in, "taken_at");
    out->sm_count = fp->gpu.sm_count;
    out->memory_bytes = fp->gpu.memory_bytes;
    json_in_begin_inside(&windows, in, json_in_object(in, "windows"), "windows", -1);
    out->reach_bytes = number_of(&windows, "reach_bytes");
    out->entry_bytes = number_of(&windows, "entry_bytes");
    out->recommended_bytes = number_of(&windows, "recommended_bytes");
    json_in_begin_inside(&throughput, in, json_in_object(in, "throughput"), "throughput", -1);
    out->plateau_gbps = number_of(&throughput, "plateau_gbps");
    out->whole_memory_gbps = number_of(&throughput, "whole_memory_gbps");
    out->group_count = p->group_count;
    out->group_of_sm = group_of_sm;
    for (uint32_t sm = 0; sm < MAX_SMS; sm++) {
        const bool none = p->group_count == 0 || p->group_of_sm[sm] == FINGERPRINT_NO_GROUP;
        group_of_sm[sm] = none ? (int16_t)REACH_IDLE : (int16_t)p->group_of_sm[sm];
        if (!none)
            out->sm_slots = sm + 1;
    }
}

/* All of the document is checked, not only what is passed on. */
static void read_fingerprint(struct json_in *in, struct answer_content *answer)
{
    struct fingerprint *fp = calloc(1, sizeof(*fp)); /* too large for a stack */
    const json_t *gpu = json_object_get(in->object, "gpu");
    struct reach_provenance *p = &answer->provenance;

    if (!fp) {
        json_in_absorb(in, err_set(in->err, STATUS_NO_MEMORY, "no memory for a fingerprint"));
    } else if (json_in_ok(in) && fingerprint_from_json(answer->json, fp, in->err) != STATUS_OK) {
        json_in_absorb(in, STATUS_PROTOCOL);
    } else if (json_in_ok(in)) {
        p->gpu_uuid = json_string_value(json_object_get(gpu, "uuid"));
        p->fingerprint_id = text_of(in, "id");
        p->speeds_taken_at = "";
        p->origin = (enum reach_origin)WORD(in, "origin", origins);
        if (json_in_ok(in) && (!p->gpu_uuid || !*p->fingerprint_id))
            json_in_fail(in, "id", "is missing");
        answer->rests_on_fingerprint = true;
        describe(in, fp, answer);
    }
    free(fp);
}

/* ---- windows ---- */

/* Every SM of the table is in a window that exists, and each window has as many as it says. */
static void check_table(struct json_in *in, const struct reach_windows *windows)
{
    uint32_t count[MAX_WINDOWS] = {0};

    for (uint32_t sm = 0; sm < windows->sm_slots; sm++) {
        const int16_t w = windows->window_of_sm[sm];
        if (w == REACH_IDLE)
            continue;
        if (w < 0 || (uint32_t)w >= windows->window_count) {
            json_in_fail(in, "window_of_sm", "has SM %u in window %d, and there are %u", sm, w,
                         windows->window_count);
            return;
        }
        count[w]++;
    }
    for (uint32_t w = 0; w < windows->window_count; w++) {
        if (count[w] == 0 || count[w] != windows->window[w].sm_count)
            json_in_fail(in, "windows", "window %u has %u SMs, and the table has %u in it", w,
                         windows->window[w].sm_count, count[w]);
    }
}

/* They lie side by side and cover [0, bytes). */
static void check_windows(struct json_in *in, const struct reach_windows *windows, uint64_t bytes)
{
    uint64_t next = 0;

    for (uint32_t w = 0; json_in_ok(in) && w < windows->window_count; w++) {
        const struct reach_window *window = &windows->window[w];
        if (window->first_byte != next || window->length_bytes == 0 ||
            window->length_bytes > bytes - next)
            json_in_fail(in, "windows",
                         "window %u does not lie behind the one before it and within the "
                         "allocation",
                         w);
        next += window->length_bytes;
    }
    if (json_in_ok(in) && windows->window_count > 0 && next != bytes)
        json_in_fail(in, "windows", "they do not cover the allocation");
    if (json_in_ok(in))
        check_table(in, windows);
}

static void read_windows(struct json_in *in, struct answer_content *answer, uint64_t bytes,
                         struct reach_windows *out)
{
    const json_t *list = json_in_array(in, "windows", MAX_WINDOWS);
    const size_t count = json_array_size(list);
    struct reach_window *windows = alloc(in, answer, count, sizeof(*windows));
    int16_t *window_of_sm;
    uint16_t table[MAX_SMS];

    for (uint32_t i = 0; json_in_ok(in) && i < count; i++) {
        struct json_in one;
        json_in_begin_inside(&one, in, json_array_get(list, i), "windows", (int)i);
        json_in_u64(&one, "first_byte", &windows[i].first_byte);
        json_in_u64(&one, "length_bytes", &windows[i].length_bytes);
        json_in_u32(&one, "sm_count", MAX_SMS, &windows[i].sm_count);
        json_in_u32(&one, "group_count", MAX_GROUPS, &windows[i].group_count);
        json_in_absorb(in, json_in_end(&one));
        out->window_count = i + 1;
    }
    out->sm_slots =
        json_in_u16_array(in, "window_of_sm", MAX_SMS, MAX_WINDOWS - 1, NULL_WINDOW, table);
    window_of_sm = alloc(in, answer, out->sm_slots, sizeof(*window_of_sm));
    if (!json_in_ok(in))
        return;
    for (uint32_t sm = 0; sm < out->sm_slots; sm++)
        window_of_sm[sm] = table[sm] == NULL_WINDOW ? (int16_t)REACH_IDLE : (int16_t)table[sm];
    out->window = windows;
    out->window_of_sm = window_of_sm;
    check_windows(in, out, bytes);
}

/* ---- scope and placement ---- */

static void read_scope(struct json_in *in, struct answer_content *answer)
{
    struct reach_scope *s = &answer->scope;

    read_provenance(in, answer);
    json_in_u64(in, "bytes", &s->bytes);
    s->advice = (enum reach_advice)WORD(in, "advice", advices);
    json_in_u64(in, "scope_bytes", &s->scope_bytes);
    json_in_u64(in, "passes", &s->passes);
    s->predicted_gbps = number_of(in, "with_gbps");
    s->naive_gbps = number_of(in, "without_gbps");
    s->reason = text_of(in, "reason");
    if (json_in_ok(in) &&
        (s->scope_bytes == 0 || s->passes == 0 || s->scope_bytes < s->bytes / s->passes))
        json_in_fail(in, "scope_bytes",
                     "%" PRIu64 " bytes do not fit %" PRIu64 " passes of %" PRIu64, s->bytes,
                     s->passes, s->scope_bytes);
}

static void read_placement(struct json_in *in, struct answer_content *answer)
{
    struct reach_placement *p = &answer->placement;

    read_provenance(in, answer);
    json_in_u64(in, "bytes", &p->bytes);
    p->advice = (enum reach_advice)WORD(in, "advice", advices);
    read_windows(in, answer, p->bytes, &p->windows);
    p->headroom_bytes = number_of(in, "margin_bytes");
    p->predicted_gbps = number_of(in, "with_gbps");
    p->naive_gbps = number_of(in, "without_gbps");
    p->reason = text_of(in, "reason");
}

/* ---- plan ---- */

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

static void read_option(struct json_in *in, struct reach_option *out)
{
    if (!strategy_from_word(json_in_word(in, "strategy"), &out->strategy))
        json_in_fail(in, "strategy", "is missing");
    json_in_bool(in, "possible", &out->possible);
    out->gbps = number_of(in, "gbps");
    out->times_naive = number_of(in, "times_naive");
    json_in_u64(in, "passes", &out->passes);
    json_in_u32(in, "windows", MAX_WINDOWS, &out->windows);
    json_in_u64(in, "scope_bytes", &out->scope_bytes);
    out->extra_bytes_per_access = number_of(in, "extra_bytes_per_access").value;
    out->extra_bytes = number_of(in, "extra_bytes");
    out->bound = (enum reach_bound)WORD(in, "bound", bounds);
    out->why = text_of(in, "why");
}

/* A strategy of a newer daemon is left out: this library has no name for it. */
static void read_options(struct json_in *in, struct answer_content *answer)
{
    const json_t *list = json_in_array(in, "options", MAX_ITEMS);

    answer->options = alloc(in, answer, REACH_STRATEGY_COUNT, sizeof(*answer->options));
    for (size_t i = 0; json_in_ok(in) && i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        const char *word = json_string_value(json_object_get(one, "strategy"));
        enum reach_strategy known;
        struct json_in option;

        if (word && !strategy_from_word(word, &known))
            continue;
        if (answer->count == REACH_STRATEGY_COUNT) {
            json_in_fail(in, "options", "has a strategy twice");
            return;
        }
        json_in_begin_inside(&option, in, one, "options", (int)i);
        read_option(&option, &answer->options[answer->count++]);
        json_in_absorb(in, json_in_end(&option));
    }
}

/* What the strategies need; null if no such strategy is possible. */
static void read_needs(struct json_in *in, struct answer_content *answer)
{
    struct reach_plan *plan = &answer->plan;
    const json_t *scope = json_object_get(in->object, "scope");
    const json_t *placement = json_object_get(in->object, "placement");
    struct json_in inner;

    if (json_in_ok(in) && json_is_object(scope)) {
        json_in_begin_inside(&inner, in, scope, "scope", -1);
        json_in_u64(&inner, "scope_bytes", &plan->scope_bytes);
        json_in_u64(&inner, "passes", &plan->passes);
        json_in_absorb(in, json_in_end(&inner));
    }
    if (json_in_ok(in) && json_is_object(placement)) {
        json_in_begin_inside(&inner, in, placement, "placement", -1);
        read_windows(&inner, answer, plan->bytes, &plan->windows);
        json_in_absorb(in, json_in_end(&inner));
    }
}

/* Each possible strategy must have what it needs to be carried out. */
static void check_needs(struct json_in *in, const struct answer_content *answer)
{
    const struct reach_plan *plan = &answer->plan;

    if (json_in_ok(in) && (answer->count == 0 || !answer->options[0].possible))
        json_in_fail(in, "options", "nothing is possible");
    for (uint32_t i = 0; json_in_ok(in) && i < answer->count; i++) {
        const struct reach_option *o = &answer->options[i];
        if (o->possible && o->strategy == REACH_SCOPES &&
            (plan->passes == 0 || plan->scope_bytes < plan->bytes / plan->passes))
            json_in_fail(in, "scope", "scopes are possible, and there is none");
        if (o->possible && o->strategy >= REACH_WINDOWS && plan->windows.window_count == 0)
            json_in_fail(in, "placement", "windows are possible, and there are none");
    }
}

static void read_plan(struct json_in *in, struct answer_content *answer)
{
    struct reach_plan *plan = &answer->plan;

    read_provenance(in, answer);
    json_in_u64(in, "bytes", &plan->bytes);
    json_in_u32(in, "element_bytes", UINT32_MAX, &plan->element_bytes);
    json_in_u32(in, "transaction_bytes", UINT32_MAX, &plan->transaction_bytes);
    plan->price = (enum reach_price)WORD(in, "basis", prices);
    plan->in_reach_gbps = number_of(in, "inside_gbps");
    plan->reason = text_of(in, "reason");
    read_options(in, answer);
    read_needs(in, answer);
    check_needs(in, answer);
    plan->option_count = answer->count;
    if (json_in_ok(in))
        plan->recommended = answer->options[0].strategy;
}

/* ---- split ---- */

static void read_share(struct json_in *in, struct answer_content *answer, struct reach_share *out)
{
    json_in_u64(in, "bytes", &out->bytes);
    out->weight = real_of(in, "weight");
    json_in_bool(in, "fits", &out->fits);
    json_in_u32(in, "sm_count", MAX_SMS, &out->sm_count);
    json_in_u32(in, "group_count", MAX_GROUPS, &out->group_count);
    read_windows(in, answer, out->bytes, &out->windows);
    out->gbps = number_of(in, "gbps");
    out->unsplit_gbps = number_of(in, "unsplit_gbps");
    out->why = text_of(in, "why");
    if (json_in_ok(in) && out->windows.window_count == 0)
        json_in_fail(in, "windows", "a job without a window");
}

/* Marks the SMs of a share; one that works for two jobs is a failure. */
static void take_sms(struct json_in *in, const struct reach_windows *windows, bool *taken)
{
    for (uint32_t sm = 0; json_in_ok(in) && sm < windows->sm_slots; sm++) {
        if (windows->window_of_sm[sm] == REACH_IDLE)
            continue;
        if (taken[sm])
            json_in_fail(in, "jobs", "SM %u works for two of them", sm);
        taken[sm] = true;
    }
}

static void read_split(struct json_in *in, struct answer_content *answer)
{
    const json_t *jobs;
    bool taken[MAX_SMS] = {false};

    read_provenance(in, answer);
    answer->split.reason = text_of(in, "reason");
    jobs = json_in_array(in, "jobs", REACH_JOB_MAX);
    answer->shares = alloc(in, answer, json_array_size(jobs), sizeof(*answer->shares));
    for (uint32_t j = 0; json_in_ok(in) && j < json_array_size(jobs); j++) {
        struct json_in share;
        json_in_begin_inside(&share, in, json_array_get(jobs, j), "jobs", (int)j);
        read_share(&share, answer, &answer->shares[j]);
        json_in_absorb(in, json_in_end(&share));
        take_sms(in, &answer->shares[j].windows, taken);
        answer->count = j + 1;
    }
    answer->split.job_count = answer->count;
}

/* ---- explain ---- */

static void read_explanation(struct json_in *in, struct answer_content *answer)
{
    struct reach_explanation *e = &answer->explanation;
    const json_t *list;
    const char **checks;

    read_provenance(in, answer);
    json_in_u64(in, "bytes", &e->bytes);
    json_in_u32(in, "element_bytes", UINT32_MAX, &e->element_bytes);
    json_in_u32(in, "transaction_bytes", UINT32_MAX, &e->transaction_bytes);
    e->price = (enum reach_price)WORD(in, "basis", prices);
    e->observed_gbps = real_of(in, "seen_gbps");
    e->verdict = (enum reach_verdict)WORD(in, "verdict", verdicts);
    e->in_reach_gbps = number_of(in, "inside_gbps");
    e->expected_gbps = number_of(in, "here_gbps");
    e->loss_gbps = number_of(in, "loss_gbps");
    e->translation_share = number_of(in, "translation_share");
    e->reason = text_of(in, "reason");
    list = json_in_array(in, "checks", MAX_ITEMS);
    checks = alloc(in, answer, json_array_size(list), sizeof(*checks));
    for (size_t i = 0; json_in_ok(in) && i < json_array_size(list); i++) {
        checks[i] = json_string_value(json_array_get(list, i));
        if (!checks[i])
            json_in_fail(in, "checks", "must be sentences");
    }
    e->checks = checks;
    e->check_count = (uint32_t)json_array_size(list);
}

/* ---- all kinds ---- */

enum reach_status decode_answer(struct answer_content *answer, struct reach_error *error)
{
    static void (*const readers[])(struct json_in *, struct answer_content *) = {
        [ANSWER_GPUS] = read_gpus,
        [ANSWER_GPU] = read_one_gpu,
        [ANSWER_FINGERPRINT] = read_fingerprint,
        [ANSWER_SCOPE] = read_scope,
        [ANSWER_PLACEMENT] = read_placement,
        [ANSWER_PLAN] = read_plan,
        [ANSWER_SPLIT] = read_split,
        [ANSWER_EXPLANATION] = read_explanation,
    };
    struct json_in in;
    struct err err;

    if (answer->kind == ANSWER_RAW)
        return REACH_OK;
    if (!answer->json)
        return fail_with(error, REACH_PROTOCOL, "the response is not one of reachd: not JSON");
    json_in_begin(&in, answer->json, "", JSON_IN_LENIENT, STATUS_PROTOCOL, &err);
    readers[answer->kind](&in, answer);
    if (json_in_end(&in) == STATUS_OK)
        return REACH_OK;
    return fail_with(error, err.status == STATUS_NO_MEMORY ? REACH_NO_MEMORY : REACH_PROTOCOL,
                     "unexpected response from reachd: %s", err.text);
}
