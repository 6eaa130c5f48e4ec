/* launch_cost.c: see launch_cost.h. */
#include "clients/profile/launch_cost.h"

#include "clients/lab/whatif/whatif_answer.h"
#include "clients/profile/chosen.h"
#include "clients/profile/device_cost.h"
#include "clients/profile/link_cost.h"
#include "types/name_of.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <string.h>

NAME_FUNCTION(access_order_name, enum access_order, [ORDER_UNKNOWN] = "unknown",
              [ORDER_SEQUENTIAL] = "in-order", [ORDER_RANDOM] = "at-random")

/* ---- the trace ---- */

static enum status open_trace(struct costing *c, struct err *err)
{
    char path[PATH_MAX];
    const int n = snprintf(path, sizeof(path), "%s/%s", c->context->folder, c->launch->trace);

    if (c->launch->trace[0] == '\0')
        return err_set(err, STATUS_NOT_FOUND, "the launch has no trace");
    c->trace = n < (int)sizeof(path) ? fopen(path, "re") : NULL;
    return c->trace ? STATUS_OK
                    : err_set(err, STATUS_IO, "cannot open %s: %s", path, strerror(errno));
}

/* ---- order ---- */

/* A place is at random if its random classes span at least half of its touched bytes. */
static void set_orders(struct costing *c)
{
    uint64_t touched[PLACE_COUNT] = {0};

    place_map_touched(c->context->map, c->launch, touched);
    for (uint32_t place = 0; place < PLACE_COUNT; place++) {
        bool any = false;
        for (uint32_t i = 0; i < c->pattern.class_count; i++) {
            struct access_class *const a = &c->pattern.classes[i];
            any = any || a->place == place;
            a->chosen = a->place == place && a->random;
            c->out->has_random = c->out->has_random || a->chosen;
        }
        if (any)
            c->out->order[place] = chosen_span(&c->pattern) >= touched[place] / 2 + 1
                                       ? ORDER_RANDOM
                                       : ORDER_SEQUENTIAL;
    }
}

/* ---- all ---- */

/* Sets the kind of most random accesses. */
static void set_kind(struct costing *c)
{
    struct chosen_sums sums;

    for (uint32_t i = 0; i < c->pattern.class_count; i++)
        c->pattern.classes[i].chosen = c->pattern.classes[i].random;
    sums = chosen_sum(c);
    c->out->kind = chosen_kind(&sums);
}

/* Device memory limits the options of the link, and the other way around. */
static void combine_times(struct costing *c)
{
    struct launch_cost *const out = c->out;

    out->in_reach_ns = fmax(c->device_ns, c->link_in_reach_ns);
    out->predicted_ns = fmax(fmax(c->device_ns, c->link_ns), out->translation_ns);
    if (out->translation_ns >= c->link_ns)
        out->option_count = 0;
    for (uint32_t i = 0; i < out->option_count; i++)
        out->options[i].ns = fmax(out->options[i].ns, fmax(c->device_ns, out->translation_ns));
    if (out->translation_ns >= c->link_ns) {
        costing_add_option(c, MEMORY_DEVICE, STRATEGY_SCOPES,
                           c->scopes_ns > 0 ? fmax(c->scopes_ns, c->link_ns) : 0);
        costing_add_option(c, MEMORY_DEVICE, STRATEGY_WINDOWS,
                           c->windows_ns > 0 ? fmax(c->windows_ns, c->link_ns) : 0);
    }
    out->translation_ns = fmax(out->translation_ns, c->link_ns - c->link_in_reach_ns);
    out->has_times = true;
}

static enum status check_left_out(const struct costing *c, struct err *err)
{
    const double share = rlt_left_out_share(&c->pattern.left_out, c->pattern.records);

    return share > WHATIF_MOST_LEFT_OUT
               ? err_set(err, STATUS_NOT_APPLICABLE,
                         "%.0f %% of the accesses have no address in the trace", 100 * share)
               : STATUS_OK;
}

/* Returns the exact number of accesses of a kind and width, or 0 if it is unknown. */
static uint64_t count_accesses(const struct recording_launch *l, enum rlt_kind kind,
                               uint32_t width_log2)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < l->instruction_count; i++) {
        const struct recording_instruction *const n = &l->instructions[i];
        if (n->kind == kind && n->bytes >> width_log2 == 1)
            sum += n->warps;
    }
    return sum;
}

/* Returns the accesses of the launch per access in the trace, for the kinds and widths whose number
 * is unknown. The accesses of the other kinds do not count. */
static double rest_ratio(const struct costing *c)
{
    const struct recording_launch *const l = c->launch;
    double accesses = (double)l->warp_accesses;
    uint64_t records = 0;

    for (uint32_t i = 0; i < l->instruction_count; i++)
        accesses -= (double)l->instructions[i].warps;
    for (uint32_t k = 0; k < RLT_KIND_COUNT; k++) {
        for (uint32_t w = 0; w <= RLT_MAX_WIDTH_LOG2; w++)
            records += count_accesses(l, (enum rlt_kind)k, w) > 0 ? 0 : c->pattern.records_of[k][w];
    }
    return records > 0 ? accesses / (double)records : 1;
}

/* Scales each class by the exact number of accesses of its kind and width. The kinds of accesses
 * can have other shares in the trace, which misses the last accesses if the buffer was full. */
static void set_scales(struct costing *c)
{
    const struct access_pattern *const p = &c->pattern;
    const double rest = rest_ratio(c);

    for (uint32_t i = 0; i < p->class_count; i++) {
        struct access_class *const a = &p->classes[i];
        const uint64_t all = count_accesses(c->launch, a->kind, a->width_log2);
        const double ratio =
            all > 0 ? (double)all / (double)p->records_of[a->kind][a->width_log2] : rest;
        a->scale = fmax(ratio, 1);
    }
}

static enum status begin(struct costing *c, struct err *err)
{
    enum status s = open_trace(c, err);

    if (s == STATUS_OK)
        s = access_pattern_read(c->trace, c->context->map, c->launch->grid, &c->pattern, err);
    if (s == STATUS_OK && c->pattern.records == 0)
        s = err_set(err, STATUS_NOT_APPLICABLE, "the trace has no access to global memory");
    if (s != STATUS_OK)
        return s;
    set_scales(c);
    return STATUS_OK;
}

static void end(struct costing *c)
{
    access_pattern_free(&c->pattern);
    if (c->trace)
        (void)fclose(c->trace);
}

enum status launch_cost_predict(const struct launch_context *context,
                                const struct recording_launch *l, struct launch_cost *out,
                                struct err *err)
{
    struct costing c = {.context = context, .launch = l, .fp = context->fp, .out = out};
    enum status s = begin(&c, err);

    *out = (struct launch_cost){0};
    if (s == STATUS_OK) {
        set_orders(&c);
        set_kind(&c);
        s = check_left_out(&c, err);
    }
    if (s == STATUS_OK && c.fp)
        s = device_cost_predict(&c, err);
    if (s == STATUS_OK && c.fp)
        s = link_cost_predict(&c, err);
    if (s == STATUS_OK && c.fp)
        combine_times(&c);
    end(&c);
    return s;
}

/* Copies the whole trace. */
static enum status copy_all(FILE *in, FILE *out, struct err *err)
{
    char buffer[1 << 14];
    size_t n;

    while ((n = fread(buffer, 1, sizeof(buffer), in)) > 0)
        if (fwrite(buffer, 1, n, out) != n)
            return err_set(err, STATUS_IO, "cannot write the trace: %s", strerror(errno));
    return ferror(in) ? err_set(err, STATUS_IO, "cannot read the trace: %s", strerror(errno))
                      : STATUS_OK;
}

enum status launch_cost_write_trace(const struct launch_context *context,
                                    const struct recording_launch *l, FILE *out, struct err *err)
{
    struct costing c = {.context = context, .launch = l, .fp = context->fp};
    enum status s = begin(&c, err);

    if (s == STATUS_OK) {
        struct access_copy copy = {.repeats = 1};
        device_cost_choose(&c);
        if (c.fp)
            s = device_cost_plan_copy(&c, &copy, err);
        rewind(c.trace);
        if (s == STATUS_OK)
            s = chosen_span(&c.pattern) > 0
                    ? access_pattern_copy(c.trace, context->map, &c.pattern, &copy, out, err)
                    : copy_all(c.trace, out, err);
    }
    end(&c);
    return s;
}
