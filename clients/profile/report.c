/* report.c: see report.h. */
#include "clients/profile/report.h"

#include "clients/profile/kernel_name.h"
#include "clients/profile/replacement.h"
#include "fingerprint/fingerprint_json.h"
#include "planner/fit.h"
#include "types/name_of.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

NAME_FUNCTION(
    report_verdict_name, enum report_verdict, [REPORT_LIMITED] = "limited",
    [REPORT_UNTIMED] = "untimed", [REPORT_UNEXPLAINED] = "unexplained", [REPORT_HIDDEN] = "hidden",
    [REPORT_IN_REACH] = "in-reach", [REPORT_IN_ORDER] = "in-order", [REPORT_IN_CACHE] = "in-cache",
    [REPORT_NO_FINGERPRINT] = "no-fingerprint", [REPORT_NOT_RECORDED] = "not-recorded",
    [REPORT_REFUSED] = "refused", [REPORT_UNKNOWN] = "unknown")

/* An option is almost as fast as another one if it gains this share of the other factor. */
static const double ALMOST = 0.8;

/* Sums of the recorded launches of one kernel. */
struct sums {
    uint32_t launches;
    double accesses, misses;
    double random_of_kind[RLT_KIND_COUNT];
    bool has_random;
    uint32_t option_count;
    struct cost_option options[LAUNCH_MAX_OPTIONS];
    uint32_t option_launches[LAUNCH_MAX_OPTIONS];
};

/* ---- launches ---- */

static void add_options(struct sums *sums, const struct launch_cost *cost)
{
    for (uint32_t i = 0; i < cost->option_count; i++) {
        const struct cost_option *const o = &cost->options[i];
        uint32_t k = 0;
        while (k < sums->option_count &&
               (sums->options[k].kind != o->kind || sums->options[k].strategy != o->strategy))
            k++;
        if (k == LAUNCH_MAX_OPTIONS)
            continue;
        if (k == sums->option_count)
            sums->options[sums->option_count++] = (struct cost_option){o->kind, o->strategy, 0};
        sums->options[k].ns += o->ns;
        sums->option_launches[k]++;
    }
}

/* Returns the time of the recorded accesses, or 0 if it is unknown. */
static uint64_t measured_ns(const struct recording_launch *l)
{
    return l->partial ? 0 : l->time_ns;
}

static void add_cost(struct report_row *row, struct sums *sums, const struct recording_launch *l,
                     const struct launch_cost *cost)
{
    if (!row->launch)
        row->launch = l;
    for (uint32_t place = 0; place < PLACE_COUNT; place++)
        if (cost->order[place] > row->order[place])
            row->order[place] = cost->order[place];
    sums->has_random = sums->has_random || cost->has_random;
    sums->random_of_kind[cost->kind] += 1;
    if (!cost->has_times)
        return;
    sums->launches++;
    sums->accesses += cost->accesses;
    sums->misses += cost->misses;
    row->predicted_ns += cost->predicted_ns;
    row->in_reach_ns += cost->in_reach_ns;
    row->translation_ns += cost->translation_ns;
    row->measured_ns += (double)measured_ns(l);
    add_options(sums, cost);
}

/* Predicts each recorded launch. Only STATUS_NO_MEMORY is returned; after another error, the note
 * has the reason. If the times of some launches are known, the other launches are left out. */
static enum status add_launches(const struct launch_context *context, struct report_row *row,
                                struct sums *sums, struct err *err)
{
    const struct recording_kernel *const k = row->kernel;
    bool timed = false;

    for (uint32_t i = 0; i < k->launch_count; i++)
        timed = timed || measured_ns(&k->recorded[i]) > 0;
    for (uint32_t i = 0; i < k->launch_count; i++) {
        const struct recording_launch *const l = &k->recorded[i];
        uint64_t touched[PLACE_COUNT] = {0};
        struct launch_cost cost;
        struct err own = {0};
        place_map_touched(context->map, l, touched);
        for (uint32_t place = 0; place < PLACE_COUNT; place++)
            row->touched[place] = fmax(row->touched[place], touched[place]);
        if (timed && measured_ns(l) == 0)
            continue;
        row->partial = row->partial || l->partial;
        const enum status s = launch_cost_predict(context, l, &cost, &own);
        if (s == STATUS_NO_MEMORY)
            return err_set(err, s, "%s", own.text);
        if (s == STATUS_OK)
            add_cost(row, sums, l, &cost);
        else
            (void)snprintf(row->note, sizeof(row->note), "%.300s", own.text);
    }
    return STATUS_OK;
}

/* ---- conclusions ---- */

static uint64_t sum_touched(const struct report_row *row)
{
    uint64_t sum = 0;

    for (uint32_t place = 0; place < PLACE_COUNT; place++)
        sum += row->touched[place];
    return sum;
}

/* Returns whether all touched memory stays in a cache of the GPU. */
static bool stays_in_cache(const struct launch_context *context, const struct report_row *row)
{
    const struct fit_request request = {.bytes = sum_touched(row),
                                        .reuse = FIT_SAME,
                                        .fingerprint_id = context->fingerprint_id,
                                        .shared_bytes = UNKNOWN_U64(REASON_NOT_REPORTED)};
    struct fit_answer answer;

    return request.bytes > 0 && fit_plan(context->fp, &request, &answer, NULL) == STATUS_OK &&
           (answer.stays == FIT_L1 || answer.stays == FIT_L2 || answer.stays == FIT_L2_NEAR);
}

static int by_factor(const void *a, const void *b)
{
    const struct report_option *const x = a;
    const struct report_option *const y = b;

    return (x->factor < y->factor) - (x->factor > y->factor);
}

/* Keeps options that are almost as fast as the fastest option of the same change, to the accesses
 * or to the memory. The options are in descending order. */
static void keep_fastest(struct report_row *row)
{
    double fastest[2] = {0};
    uint32_t kept = 0;

    for (uint32_t i = 0; i < row->option_count; i++) {
        const struct report_option o = row->options[i];
        double *const best = &fastest[o.strategy == STRATEGY_NAIVE];
        if (*best == 0)
            *best = o.factor;
        if (o.factor >= ALMOST * *best)
            row->options[kept++] = o;
    }
    row->option_count = kept;
}

/* Returns the time with which the time of an option is compared. A function that replaces the whole
 * operator has no other limits of the kernel, so its time is compared with the measured time.
 * Otherwise such limits may remain, and two predictions are compared. */
static double time_before(const struct report_row *row, enum strategy strategy)
{
    const bool replaced = strategy != STRATEGY_NAIVE && replacement_is_whole(row->kernel);

    return replaced && row->measured_ns > 0 ? row->measured_ns : row->predicted_ns;
}

/* Keeps the options that every launch has and that gain something. The gain is a part of `ns`. */
static void set_options(struct report_row *row, const struct sums *sums, double ns)
{
    for (uint32_t i = 0; i < sums->option_count; i++) {
        const double factor = time_before(row, sums->options[i].strategy) / sums->options[i].ns;
        if (sums->option_launches[i] == sums->launches && factor > 1 + STRATEGY_WORTH)
            row->options[row->option_count++] =
                (struct report_option){sums->options[i].kind, sums->options[i].strategy, factor};
    }
    qsort(row->options, row->option_count, sizeof(*row->options), by_factor);
    keep_fastest(row);
    if (row->option_count > 0)
        row->gain_ns = ns * (1 - 1 / row->options[0].factor);
}

/* Compares the predicted with the measured time. If other work hides the misses, the measured time
 * is so long that the time of the misses would hardly change it. */
static void judge_time(struct report_row *row, const struct sums *sums)
{
    const double ratio = row->measured_ns / row->predicted_ns;

    if (!(row->measured_ns > 0)) {
        row->verdict = REPORT_UNTIMED;
        set_options(row, sums, row->predicted_ns);
    } else if (ratio <= 1 + REPORT_TOLERANCE && ratio >= 1 / (1 + REPORT_TOLERANCE)) {
        row->verdict = REPORT_LIMITED;
        set_options(row, sums, (double)row->kernel->time_ns);
        row->costs = fmax(row->measured_ns / row->in_reach_ns, 1);
    } else {
        row->verdict = ratio >= 1 + 1 / REPORT_TOLERANCE ? REPORT_HIDDEN : REPORT_UNEXPLAINED;
    }
}

static bool is_large(const struct report_row *row, enum place place)
{
    return row->order[place] == ORDER_RANDOM && row->touched[place] > sum_touched(row) / 2;
}

static void judge(const struct launch_context *context, struct report_row *row,
                  const struct sums *sums)
{
    if (row->kernel->state == RECORDING_REFUSED) {
        row->verdict = REPORT_REFUSED;
        (void)snprintf(row->note, sizeof(row->note), "%.300s", row->kernel->why);
    } else if (row->kernel->state == RECORDING_TIMED || row->kernel->launch_count == 0) {
        row->verdict = REPORT_NOT_RECORDED;
    } else if (!context->fp) {
        row->verdict = REPORT_NO_FINGERPRINT;
    } else if (sums->launches == 0) {
        row->verdict = REPORT_UNKNOWN;
    } else if (is_large(row, PLACE_MANAGED) || is_large(row, PLACE_UNKNOWN)) {
        row->verdict = REPORT_UNKNOWN;
        (void)snprintf(row->note, sizeof(row->note),
                       "the location of most of its memory is unknown");
    } else {
        row->note[0] = '\0';
        row->has_times = true;
        row->misses = sums->accesses > 0 ? sums->misses / sums->accesses : 0;
        row->costs = row->in_reach_ns > 0 ? row->predicted_ns / row->in_reach_ns : 1;
        if (row->costs > 1 + STRATEGY_WORTH)
            judge_time(row, sums);
        else if (stays_in_cache(context, row))
            row->verdict = REPORT_IN_CACHE;
        else if (!sums->has_random)
            row->verdict = REPORT_IN_ORDER;
        else
            row->verdict = row->translation_ns * (1 + 1 / REPORT_TOLERANCE) > row->predicted_ns
                               ? REPORT_HIDDEN
                               : REPORT_IN_REACH;
    }
}

/* ---- rows ---- */

/* Sets the conclusions about row->kernel. */
static enum status make_row(const struct launch_context *context, struct report_row *row,
                            struct err *err)
{
    struct sums sums = {0};
    enum status s;

    row->name = kernel_name_format(row->kernel->name);
    if (!row->name)
        return err_no_memory(err, "the name of a kernel");
    s = add_launches(context, row, &sums, err);
    for (uint32_t k = 0; k < RLT_KIND_COUNT; k++)
        if (sums.random_of_kind[k] > sums.random_of_kind[row->kind])
            row->kind = (enum rlt_kind)k;
    if (s == STATUS_OK)
        judge(context, row, &sums);
    return s;
}

static int row_rank(const struct report_row *row)
{
    return row->verdict == REPORT_LIMITED ? 0 : row->verdict == REPORT_UNTIMED ? 1 : 2;
}

/* Returns a negative number if row x precedes row y. */
static int compare_gains(const struct report_row *x, const struct report_row *y)
{
    if (row_rank(x) != row_rank(y))
        return row_rank(x) - row_rank(y);
    if (x->gain_ns != y->gain_ns)
        return x->gain_ns > y->gain_ns ? -1 : 1;
    if (x->kernel->time_ns != y->kernel->time_ns)
        return x->kernel->time_ns > y->kernel->time_ns ? -1 : 1;
    return 0;
}

static int by_gain(const void *a, const void *b)
{
    const struct report_row *const x = a;
    const struct report_row *const y = b;
    const int compared = compare_gains(x, y);

    return compared ? compared : (x->kernel > y->kernel) - (x->kernel < y->kernel);
}

static enum status make_section(const struct report_source *source, struct whatif_shared *shared,
                                struct report_section *section, struct err *err)
{
    const struct recording *const r = section->recording;
    struct place_map map;
    char id[FINGERPRINT_ID_BYTES] = "";
    const struct launch_context context = {.recording = r,
                                           .map = &map,
                                           .folder = source->folder,
                                           .fp = section->fp,
                                           .fingerprint_id = id,
                                           .shared = shared};
    enum status s;

    section->rows = calloc(r->kernel_count + 1u, sizeof(*section->rows));
    if (!section->rows)
        return err_no_memory(err, "the rows of a report");
    s = place_map_make(r, section->gpu, &map, err);
    if (s == STATUS_OK && section->fp)
        s = fingerprint_id(section->fp, id, err);
    for (uint32_t k = 0; k < r->kernel_count; k++)
        if (r->kernels[k].gpu == section->gpu)
            section->time_ns += (double)r->kernels[k].time_ns;
    for (uint32_t k = 0; s == STATUS_OK && k < r->kernel_count; k++) {
        struct report_row *const row = &section->rows[section->row_count];
        if (r->kernels[k].gpu != section->gpu)
            continue;
        section->row_count++;
        row->kernel = &r->kernels[k];
        row->time_share =
            section->time_ns > 0 ? (double)row->kernel->time_ns / section->time_ns : 0;
        s = make_row(&context, row, err);
        if (row->verdict == REPORT_UNTIMED)
            section->untimed_gain_ns += row->gain_ns;
        else
            section->gain_ns += row->gain_ns;
    }
    if (section->row_count > 0)
        qsort(section->rows, section->row_count, sizeof(*section->rows), by_gain);
    place_map_free(&map);
    return s;
}

static bool uses_gpu(const struct recording *r, uint32_t gpu)
{
    bool uses = false;

    for (uint32_t k = 0; k < r->kernel_count; k++)
        uses = uses || r->kernels[k].gpu == gpu;
    return uses;
}

enum status report_make(const struct report_source *source, struct report *out, struct err *err)
{
    struct whatif_shared own = {0};
    uint32_t most = 0;
    enum status s = STATUS_OK;

    for (uint32_t i = 0; i < source->count; i++)
        most += source->recordings[i].gpu_count;
    *out = (struct report){.sections = calloc(most + 1u, sizeof(*out->sections))};
    if (!out->sections)
        return err_no_memory(err, "the report");
    for (uint32_t i = 0; i < source->count; i++) {
        const struct recording *const r = &source->recordings[i];
        for (uint32_t gpu = 0; s == STATUS_OK && gpu < r->gpu_count; gpu++) {
            struct report_section *const section = &out->sections[out->section_count];
            if (!uses_gpu(r, gpu))
                continue;
            *section = (struct report_section){.recording = r, .gpu = gpu, .why = ""};
            section->fp = source->find(source->context, &r->gpus[gpu], &section->why);
            out->section_count++;
            s = make_section(source, source->shared ? source->shared : &own, section, err);
            out->time_ns += section->time_ns;
            out->gain_ns += section->gain_ns;
            out->untimed_gain_ns += section->untimed_gain_ns;
            for (uint32_t k = 0; k < section->row_count; k++) {
                out->limited_count += section->rows[k].verdict == REPORT_LIMITED;
                out->untimed_count += section->rows[k].verdict == REPORT_UNTIMED;
            }
        }
    }
    return s;
}

void report_free(struct report *take)
{
    for (uint32_t i = 0; i < take->section_count; i++) {
        for (uint32_t k = 0; k < take->sections[i].row_count; k++)
            free(take->sections[i].rows[k].name);
        free(take->sections[i].rows);
    }
    free(take->sections);
    *take = (struct report){0};
}

bool report_first(const struct report *r, const struct report_section **out_section,
                  const struct report_row **out_row)
{
    *out_row = NULL;
    for (uint32_t i = 0; i < r->section_count; i++) {
        const struct report_section *const s = &r->sections[i];
        if (s->row_count > 0 && (!*out_row || compare_gains(&s->rows[0], *out_row) < 0)) {
            *out_section = s;
            *out_row = &s->rows[0];
        }
    }
    return *out_row != NULL;
}
