/* decode.c: converts the JSON of a daemon to the structs of reach.h. No other file fills these
 * structs from JSON. Fields of a newer daemon are ignored. Texts belong to the JSON value, which
 * the answer owns. Relations between the fields are checked afterwards (check.c). */
#include "clients/c/answer.h"

#include "api/decode/planner_call.h"
#include "base/json_fields.h"
#include "fingerprint/fingerprint_read.h"
#include "snapshot/snapshot.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_ITEMS = 64,      /* longest list without another limit */
    NULL_WINDOW = 0xffff /* stands for null in window_of_sm during reading */
};

_Static_assert((int)REACH_SM_MAX == (int)REACH_MAX_SMS, "SMs of a table");

/* ---- fields ---- */

/* The words of those enums of reach.h that have an _OTHER value. Each value is the value of the
 * daemon's enum plus one. */
static const struct json_names origins = {origin_name, ORIGIN_IMPORTED + 1};
static const struct json_names states = {gpu_state_name, GPU_STATE_STALE + 1};
static const struct json_names advices = {advice_name, ADVICE_NOT_ENOUGH_GROUPS + 1};
static const struct json_names bounds = {bound_name, BOUND_LAUNCH + 1};
static const struct json_names prices = {basis_name, BASIS_COUNT};
static const struct json_names verdicts = {bottleneck_name, BOTTLENECK_NOT + 1};

/* Returns 0, which is _OTHER, for an unknown word. */
static int word_of(struct json_reader *in, const char *name, const struct json_names *words)
{
    const char *word = json_reader_word(in, name);
    unsigned value;

    if (!word && json_reader_ok(in))
        json_reader_fail(in, name, "is missing");
    value = word ? json_names_find(words, word) : words->count;
    return value < words->count ? (int)value + 1 : 0;
}

/* Returns "" if the text is missing or null. */
static const char *text_of(struct json_reader *in, const char *name)
{
    const char *text =
        json_is_null(json_object_get(in->object, name)) ? "" : json_reader_word(in, name);

    return text ? text : "";
}

static struct reach_number number_of(struct json_reader *in, const char *name)
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
        json_reader_fail(in, name, "must be a number or null");
    snprintf(field, sizeof(field), "%s_reason", name);
    n.reason = json_string_value(json_object_get(in->object, field));
    if (!n.reason)
        n.reason = "not-measured";
    return n;
}

static double real_of(struct json_reader *in, const char *name)
{
    const struct reach_number n = number_of(in, name);

    if (json_reader_ok(in) && !n.known)
        json_reader_fail(in, name, "is missing");
    return n.value;
}

static void *alloc(struct json_reader *in, struct answer_content *answer, size_t count, size_t size)
{
    void *memory = answer_alloc(answer, count, size);

    if (!memory)
        json_reader_absorb(in, err_no_memory(in->err, "an answer"));
    return memory;
}

/* Reads the fields of one object to `out`. */
typedef void read_fn(struct json_reader *in, struct answer_content *answer, void *out);

static void read_object(struct json_reader *in, const json_t *json, const char *name, int index,
                        read_fn *read, struct answer_content *answer, void *out)
{
    struct json_reader inner;

    if (!json_reader_ok(in))
        return;
    json_reader_begin_inside(&inner, in, json, name, index);
    read(&inner, answer, out);
    json_reader_absorb(in, json_reader_end(&inner));
}

/* Reads a list of objects to an array owned by the answer; returns its length. */
static uint32_t read_list(struct json_reader *in, const char *name, size_t max_count, size_t size,
                          read_fn *read, struct answer_content *answer, void *out_array)
{
    const json_t *list = json_reader_array(in, name, max_count);
    const uint32_t count = (uint32_t)json_array_size(list);
    char *array = alloc(in, answer, count, size);

    for (uint32_t i = 0; json_reader_ok(in) && i < count; i++)
        read_object(in, json_array_get(list, i), name, (int)i, read, answer, array + i * size);
    memcpy(out_array, &array, sizeof(array));
    return json_reader_ok(in) ? count : 0;
}

static void read_provenance(struct json_reader *in, struct answer_content *answer)
{
    struct reach_provenance *p = &answer->provenance;

    p->gpu_uuid = text_of(in, "gpu");
    p->fingerprint_id = text_of(in, "fingerprint_id");
    p->origin = (enum reach_origin)word_of(in, "origin", &origins);
    json_reader_bool(in, "fingerprint_stale", &p->stale);
    p->speeds_taken_at = text_of(in, "speeds_taken_at");
    if (json_reader_ok(in) && (!*p->gpu_uuid || !*p->fingerprint_id))
        json_reader_fail(in, "fingerprint_id", "the answer does not say what it rests on");
    answer->rests_on_fingerprint = true;
}

/* ---- GPUs ---- */

static void read_gpu(struct json_reader *in, struct answer_content *answer, void *to)
{
    struct reach_gpu *out = to;

    (void)answer;
    json_reader_u32(in, "index", REACH_MAX_GPUS - 1, &out->index);
    out->uuid = text_of(in, "uuid");
    out->name = text_of(in, "name");
    out->state = (enum reach_state)word_of(in, "state", &states);
    out->origin = (enum reach_origin)word_of(in, "origin", &origins);
    json_reader_u32(in, "sm_count", REACH_MAX_SMS, &out->sm_count);
    json_reader_u64(in, "memory_bytes", &out->memory_bytes);
    json_reader_bool(in, "mig", &out->mig);
    out->fingerprint_id = text_of(in, "fingerprint_id");
    json_reader_bool(in, "fingerprint_stale", &out->stale);
}

static void read_gpus(struct json_reader *in, struct answer_content *answer)
{
    answer->count = read_list(in, "gpus", REACH_MAX_GPUS, sizeof(*answer->gpus), read_gpu, answer,
                              &answer->gpus);
    if (json_reader_ok(in) && !json_object_get(in->object, "gpus"))
        json_reader_fail(in, "gpus", "is missing");
}

static void read_one_gpu(struct json_reader *in, struct answer_content *answer)
{
    answer->gpus = alloc(in, answer, 1, sizeof(*answer->gpus));
    if (!answer->gpus)
        return;
    answer->count = 1;
    read_gpu(in, answer, answer->gpus);
    if (json_reader_ok(in) && !*answer->gpus->uuid)
        json_reader_fail(in, "uuid", "is missing: a GPU without a UUID");
}

/* ---- fingerprints ---- */

/* Reads the group of each SM, or REACH_IDLE if the SM has none. Returns the highest SM id of any
 * group plus one. */
static uint32_t groups_of_sms(const struct sm_partition *p, int16_t *group_of_sm)
{
    uint32_t slots = 0;

    for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++) {
        const bool none = p->group_count == 0 || p->group_of_sm[sm] == FINGERPRINT_NO_GROUP;
        group_of_sm[sm] = none ? (int16_t)REACH_IDLE : (int16_t)p->group_of_sm[sm];
        if (!none)
            slots = sm + 1;
    }
    return slots;
}

static void describe_sides(struct json_reader *in, const struct fingerprint *fp,
                           struct answer_content *answer)
{
    struct reach_fingerprint *out = &answer->fingerprint;
    int16_t *side_of_sm = alloc(in, answer, REACH_MAX_SMS, sizeof(*side_of_sm));
    struct json_reader l2;

    if (!side_of_sm)
        return;
    json_reader_begin_inside(&l2, in, json_reader_object(in, "l2"), "l2", -1);
    out->sides = number_of(&l2, "sides");
    out->side_granule_bytes = number_of(&l2, "granule_bytes");
    out->side_near_cycles = number_of(&l2, "atomic_near_cycles");
    out->side_far_cycles = number_of(&l2, "atomic_far_cycles");
    out->side_slots = groups_of_sms(&fp->l2.side_of_sm, side_of_sm);
    out->side_of_sm = side_of_sm;
}

static void describe(struct json_reader *in, const struct fingerprint *fp,
                     struct answer_content *answer)
{
    const json_t *gpu = json_object_get(in->object, "gpu");
    const struct sm_partition *p = &fp->topology.partition;
    struct reach_fingerprint *out = &answer->fingerprint;
    int16_t *group_of_sm = alloc(in, answer, REACH_MAX_SMS, sizeof(*group_of_sm));
    const char *driver = json_string_value(json_object_get(gpu, "driver_version"));
    struct json_reader windows;
    struct json_reader throughput;

    if (!group_of_sm)
        return;
    out->name = json_string_value(json_object_get(gpu, "name"));
    out->name = out->name ? out->name : "";
    out->driver_version = driver ? driver : "";
    out->depth = text_of(in, "depth");
    out->taken_at = text_of(in, "taken_at");
    out->sm_count = fp->gpu.sm_count;
    out->memory_bytes = fp->gpu.memory_bytes;
    json_reader_begin_inside(&windows, in, json_reader_object(in, "windows"), "windows", -1);
    out->reach_bytes = number_of(&windows, "reach_bytes");
    out->entry_bytes = number_of(&windows, "entry_bytes");
    out->recommended_bytes = number_of(&windows, "recommended_bytes");
    json_reader_begin_inside(&throughput, in, json_reader_object(in, "throughput"), "throughput",
                             -1);
    out->plateau_gbps = number_of(&throughput, "plateau_gbps");
    out->whole_memory_gbps = number_of(&throughput, "whole_memory_gbps");
    out->group_count = p->group_count;
    out->group_of_sm = group_of_sm;
    out->sm_slots = groups_of_sms(p, group_of_sm);
    describe_sides(in, fp, answer);
}

/* The whole document is checked, not only the returned fields. */
static void read_fingerprint(struct json_reader *in, struct answer_content *answer)
{
    struct fingerprint *fp = calloc(1, sizeof(*fp)); /* too large for a stack */
    const json_t *gpu = json_object_get(in->object, "gpu");
    struct reach_provenance *p = &answer->provenance;

    if (!fp) {
        json_reader_absorb(in, err_no_memory(in->err, "a fingerprint"));
    } else if (json_reader_ok(in) &&
               fingerprint_from_json(answer->json, fp, in->err) != STATUS_OK) {
        json_reader_absorb(in, STATUS_PROTOCOL);
    } else if (json_reader_ok(in)) {
        p->gpu_uuid = json_string_value(json_object_get(gpu, "uuid"));
        p->fingerprint_id = text_of(in, "id");
        p->speeds_taken_at = "";
        p->origin = (enum reach_origin)word_of(in, "origin", &origins);
        if (json_reader_ok(in) && (!p->gpu_uuid || !*p->fingerprint_id))
            json_reader_fail(in, "id", "is missing");
        answer->rests_on_fingerprint = true;
        describe(in, fp, answer);
    }
    free(fp);
}

/* ---- windows and scopes ---- */

/* Returns the number of allocations of the answer, which is one if the answer has no list. */
static uint32_t allocations_of(struct json_reader *in)
{
    const size_t count =
        json_array_size(json_reader_array(in, "allocations", REACH_ALLOCATION_MAX));

    return count > 0 ? (uint32_t)count : 1;
}

static void read_range(struct json_reader *in, struct answer_content *answer, void *to)
{
    struct reach_extent *out = to;

    (void)answer;
    json_reader_u64(in, "first_byte", &out->first_byte);
    json_reader_u64(in, "length_bytes", &out->length_bytes);
}

/* Reads the parts of each object of a list, one for each allocation. If there is one allocation,
 * the object itself contains the part.
 */
static const struct reach_extent *read_parts(struct json_reader *in, const char *name,
                                             size_t max_count, uint32_t allocations,
                                             struct answer_content *answer, uint32_t *out_count)
{
    const json_t *list = json_reader_array(in, name, max_count);
    const uint32_t count = (uint32_t)json_array_size(list);
    struct reach_extent *ranges = alloc(in, answer, (size_t)count * allocations, sizeof(*ranges));

    for (uint32_t k = 0; json_reader_ok(in) && k < count; k++) {
        const json_t *one = json_array_get(list, k);
        const json_t *parts = json_object_get(one, "parts");
        if (allocations > 1 && json_array_size(parts) != allocations)
            json_reader_fail(in, name, "has an item that lacks a part of an allocation");
        for (uint32_t i = 0; i < allocations; i++)
            read_object(in, allocations > 1 ? json_array_get(parts, i) : one, name, (int)k,
                        read_range, answer, &ranges[(size_t)k * allocations + i]);
    }
    *out_count = json_reader_ok(in) ? count : 0;
    return ranges;
}

static void read_scopes(struct json_reader *in, uint32_t allocations, struct answer_content *answer,
                        struct reach_scopes *out)
{
    out->allocation_count = allocations;
    if (json_is_array(json_object_get(in->object, "scopes"))) /* null if there are too many */
        out->range =
            read_parts(in, "scopes", REACH_SCOPE_MAX, allocations, answer, &out->scope_count);
}

static void read_window(struct json_reader *in, struct answer_content *answer, void *to)
{
    struct reach_window *out = to;

    (void)answer;
    json_reader_u64(in, "first_byte", &out->first_byte);
    json_reader_u64(in, "length_bytes", &out->length_bytes);
    json_reader_u32(in, "sm_count", REACH_MAX_SMS, &out->sm_count);
    json_reader_u32(in, "group_count", REACH_MAX_GROUPS, &out->group_count);
}

/* The caller sets the allocation_count of `to`; 0 means one allocation. */
static void read_windows(struct json_reader *in, struct answer_content *answer, void *to)
{
    struct reach_windows *out = to;
    uint32_t count;
    uint16_t table[REACH_MAX_SMS];
    int16_t *window_of_sm;

    out->window_count = read_list(in, "windows", REACH_WINDOW_MAX, sizeof(*out->window),
                                  read_window, answer, &out->window);
    out->allocation_count = out->allocation_count > 0 ? out->allocation_count : 1;
    out->part = read_parts(in, "windows", REACH_WINDOW_MAX, out->allocation_count, answer, &count);
    out->sm_slots = json_reader_u16_array(in, "window_of_sm", REACH_MAX_SMS, REACH_WINDOW_MAX - 1,
                                          NULL_WINDOW, table);
    window_of_sm = alloc(in, answer, out->sm_slots, sizeof(*window_of_sm));
    for (uint32_t sm = 0; json_reader_ok(in) && sm < out->sm_slots; sm++)
        window_of_sm[sm] = table[sm] == NULL_WINDOW ? (int16_t)REACH_IDLE : (int16_t)table[sm];
    out->window_of_sm = window_of_sm;
}

/* ---- scope and placement ---- */

static void read_scope(struct json_reader *in, struct answer_content *answer)
{
    struct reach_scope *s = &answer->scope;

    read_provenance(in, answer);
    json_reader_u64(in, "bytes", &s->bytes);
    s->advice = (enum reach_advice)word_of(in, "advice", &advices);
    json_reader_u64(in, "scope_bytes", &s->scope_bytes);
    json_reader_u64(in, "passes", &s->passes);
    read_scopes(in, allocations_of(in), answer, &s->scopes);
    s->predicted_gbps = number_of(in, "predicted_gbps");
    s->naive_gbps = number_of(in, "naive_gbps");
    s->reason = text_of(in, "reason");
}

static void read_placement(struct json_reader *in, struct answer_content *answer)
{
    struct reach_placement *p = &answer->placement;

    read_provenance(in, answer);
    json_reader_u64(in, "bytes", &p->bytes);
    p->advice = (enum reach_advice)word_of(in, "advice", &advices);
    read_windows(in, answer, &p->windows);
    p->headroom_bytes = number_of(in, "headroom_bytes");
    p->predicted_gbps = number_of(in, "predicted_gbps");
    p->naive_gbps = number_of(in, "naive_gbps");
    p->reason = text_of(in, "reason");
}

/* ---- plan ---- */

static const struct json_names strategies = {strategy_name, STRATEGY_COUNT};

static void read_option(struct json_reader *in, struct answer_content *answer, void *to)
{
    struct reach_option *out = to;

    (void)answer;
    if (!json_object_get(in->object, "strategy"))
        json_reader_fail(in, "strategy", "is missing");
    json_reader_name(in, "strategy", &strategies, &out->strategy);
    json_reader_bool(in, "possible", &out->possible);
    out->gbps = number_of(in, "gbps");
    out->times_naive = number_of(in, "times_naive");
    json_reader_u64(in, "passes", &out->passes);
    json_reader_u32(in, "windows", REACH_WINDOW_MAX, &out->windows);
    json_reader_u64(in, "scope_bytes", &out->scope_bytes);
    out->extra_bytes_per_access = number_of(in, "extra_bytes_per_access").value;
    out->extra_bytes = number_of(in, "extra_bytes");
    out->bound = (enum reach_bound)word_of(in, "bound", &bounds);
    out->why = text_of(in, "why");
}

/* A strategy of a newer daemon is left out, because this library has no name for it. */
static void read_options(struct json_reader *in, struct answer_content *answer)
{
    const json_t *list = json_reader_array(in, "options", MAX_ITEMS);

    answer->options = alloc(in, answer, REACH_STRATEGY_COUNT, sizeof(*answer->options));
    for (size_t i = 0; json_reader_ok(in) && i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        const char *word = json_string_value(json_object_get(one, "strategy"));
        if (word && json_names_find(&strategies, word) == strategies.count)
            continue;
        if (answer->count == REACH_STRATEGY_COUNT)
            json_reader_fail(in, "options", "has a strategy twice");
        else
            read_object(in, one, "options", (int)i, read_option, answer,
                        &answer->options[answer->count++]);
    }
}

static void read_plan_scope(struct json_reader *in, struct answer_content *answer, void *to)
{
    struct reach_plan *out = to;

    json_reader_u64(in, "scope_bytes", &out->scope_bytes);
    json_reader_u64(in, "passes", &out->passes);
    read_scopes(in, out->windows.allocation_count, answer, &out->scopes);
}

static void read_allocation(struct json_reader *in, struct answer_content *answer, void *to)
{
    struct reach_allocation *out = to;

    (void)answer;
    json_reader_u64(in, "bytes", &out->bytes);
    out->touches = real_of(in, "touches");
    json_reader_u32(in, "element_bytes", UINT32_MAX, &out->element_bytes);
    json_reader_u32(in, "transaction_bytes", UINT32_MAX, &out->transaction_bytes);
    json_reader_u64(in, "granularity_bytes", &out->granularity_bytes);
}

/* Reads the accesses of an item: one access of the only allocation, or a list. */
static void read_item(struct json_reader *in, struct answer_content *answer,
                      struct reach_plan *plan)
{
    json_reader_u32(in, "element_bytes", UINT32_MAX, &plan->element_bytes);
    json_reader_u32(in, "transaction_bytes", UINT32_MAX, &plan->transaction_bytes);
    plan->item_bytes = plan->transaction_bytes;
    if (json_object_get(in->object, "item_bytes"))
        plan->item_bytes = real_of(in, "item_bytes");
    plan->windows.allocation_count = allocations_of(in);
    plan->allocation_count =
        read_list(in, "allocations", REACH_ALLOCATION_MAX, sizeof(*plan->allocation),
                  read_allocation, answer, &plan->allocation);
}

static void read_plan(struct json_reader *in, struct answer_content *answer)
{
    const json_t *scope = json_object_get(in->object, "scope");
    const json_t *placement = json_object_get(in->object, "placement");
    struct reach_plan *plan = &answer->plan;

    read_provenance(in, answer);
    json_reader_u64(in, "bytes", &plan->bytes);
    read_item(in, answer, plan);
    plan->price = (enum reach_price)word_of(in, "basis", &prices);
    plan->in_reach_gbps = number_of(in, "in_reach_gbps");
    plan->contiguous = number_of(in, "contiguous");
    plan->naive_contiguous_gbps = number_of(in, "naive_contiguous_gbps");
    plan->naive_scattered_gbps = number_of(in, "naive_scattered_gbps");
    plan->reason = text_of(in, "reason");
    read_options(in, answer);
    if (json_is_object(scope)) /* null if no such strategy is possible */
        read_object(in, scope, "scope", -1, read_plan_scope, answer, plan);
    if (json_is_object(placement))
        read_object(in, placement, "placement", -1, read_windows, answer, &plan->windows);
    if (!plan->scopes.range && plan->windows.allocation_count == 1)
        answer_set_scopes(answer, plan);
    plan->option_count = answer->count;
    if (answer->count > 0)
        plan->recommended = answer->options[0].strategy;
}

/* ---- split and explain ---- */

static void read_share(struct json_reader *in, struct answer_content *answer, void *to)
{
    struct reach_share *out = to;

    json_reader_u64(in, "bytes", &out->bytes);
    out->weight = real_of(in, "weight");
    json_reader_bool(in, "fits", &out->fits);
    json_reader_u32(in, "sm_count", REACH_MAX_SMS, &out->sm_count);
    json_reader_u32(in, "group_count", REACH_MAX_GROUPS, &out->group_count);
    read_windows(in, answer, &out->windows);
    out->gbps = number_of(in, "gbps");
    out->unsplit_gbps = number_of(in, "unsplit_gbps");
    out->why = text_of(in, "why");
}

static void read_split(struct json_reader *in, struct answer_content *answer)
{
    read_provenance(in, answer);
    answer->split.reason = text_of(in, "reason");
    answer->count = read_list(in, "jobs", REACH_JOB_MAX, sizeof(*answer->shares), read_share,
                              answer, &answer->shares);
    answer->split.job_count = answer->count;
}

static void read_explanation(struct json_reader *in, struct answer_content *answer)
{
    struct reach_explanation *e = &answer->explanation;
    const json_t *list;
    const char **checks;
    int verdict;

    read_provenance(in, answer);
    json_reader_u64(in, "bytes", &e->bytes);
    json_reader_u32(in, "element_bytes", UINT32_MAX, &e->element_bytes);
    json_reader_u32(in, "transaction_bytes", UINT32_MAX, &e->transaction_bytes);
    e->price = (enum reach_price)word_of(in, "basis", &prices);
    e->observed_gbps = real_of(in, "observed_gbps");
    verdict = word_of(in, "verdict", &verdicts);
    e->verdict = verdict == 0                                ? REACH_VERDICT_OTHER
                 : verdict - 1 == (int)BOTTLENECK_CANNOT_SAY ? REACH_VERDICT_CANNOT_SAY
                                                             : (enum reach_verdict)(verdict - 1);
    e->in_reach_gbps = number_of(in, "in_reach_gbps");
    e->expected_gbps = number_of(in, "expected_gbps");
    e->contiguous = number_of(in, "contiguous");
    e->naive_contiguous_gbps = number_of(in, "naive_contiguous_gbps");
    e->naive_scattered_gbps = number_of(in, "naive_scattered_gbps");
    e->loss_gbps = number_of(in, "loss_gbps");
    e->translation_share = number_of(in, "translation_share");
    e->reason = text_of(in, "reason");
    list = json_reader_array(in, "checks", MAX_ITEMS);
    checks = alloc(in, answer, json_array_size(list), sizeof(*checks));
    for (size_t i = 0; json_reader_ok(in) && i < json_array_size(list); i++) {
        checks[i] = json_string_value(json_array_get(list, i));
        if (!checks[i])
            json_reader_fail(in, "checks", "must be sentences");
    }
    e->checks = checks;
    e->check_count = (uint32_t)json_array_size(list);
}

/* ---- all kinds ---- */

enum reach_status decode_answer(struct answer_content *answer, struct reach_error *error)
{
    static void (*const readers[])(struct json_reader *, struct answer_content *) = {
        [ANSWER_GPUS] = read_gpus,
        [ANSWER_GPU] = read_one_gpu,
        [ANSWER_FINGERPRINT] = read_fingerprint,
        [ANSWER_SCOPE] = read_scope,
        [ANSWER_PLACEMENT] = read_placement,
        [ANSWER_PLAN] = read_plan,
        [ANSWER_SPLIT] = read_split,
        [ANSWER_EXPLANATION] = read_explanation,
    };
    struct json_reader in;
    struct err err;

    if (!answer->json)
        return fail_with(error, REACH_PROTOCOL, "the response is not one of reachd: not JSON");
    json_reader_begin(&in, answer->json, "", JSON_READER_LENIENT, STATUS_PROTOCOL, &err);
    readers[answer->kind](&in, answer);
    if (json_reader_end(&in) == STATUS_OK)
        return answer_check(answer, error);
    return fail_with(error, err.status == STATUS_NO_MEMORY ? REACH_NO_MEMORY : REACH_PROTOCOL,
                     "unexpected response from reachd: %s", err.text);
}
