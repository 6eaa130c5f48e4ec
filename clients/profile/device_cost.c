/* device_cost.c: see device_cost.h. What-if counts the misses of the random accesses; the other
 * accesses take time of memory only. */
#include "clients/profile/device_cost.h"

#include "clients/lab/trace/trace_load.h"
#include "clients/lab/whatif/whatif.h"
#include "clients/profile/chosen.h"
#include "planner/access_cost.h"

#include <math.h>
#include <stdlib.h>

/* A trace counts misses only if it has several times more rows than there are entries. A shorter
 * trace is repeated until it fills the TLBs. A trace with few rows for each entry of the memory
 * that it spans has some entries more often than others by chance. Each repetition then moves the
 * rows, unless they are in fewer entries than evenly distributed rows would be. */
enum { FILLS_TABLE = 4, FEW_ROWS = 16, MAX_REPEATS = 256 };

void device_cost_choose(struct costing *c)
{
    for (uint32_t i = 0; i < c->pattern.class_count; i++) {
        struct access_class *const a = &c->pattern.classes[i];
        a->chosen = place_is_device(a->place) && a->random &&
                    (!c->fp || access_class_span(a) > c->fp->gpu.l2_cache_bytes);
    }
}

/* Returns the bytes over which the launch makes the accesses of a class. If the trace has lost
 * accesses, its last ones are missing, and the touched pages of the region are counted. If pages
 * are lost, too, the larger number counts. */
static double class_bytes(const struct costing *c, const struct access_class *a)
{
    const struct place_map *const map = c->context->map;
    const double span = (double)access_class_span(a);
    double touched;

    if (c->pattern.left_out.lost == 0 || a->region >= map->count)
        return span;
    touched = (double)place_map_region_touched(map, a->region, c->launch);
    return c->launch->pages_lost > 0 ? fmax(touched, span) : touched;
}

/* Returns the bytes that memory moves for the other accesses to device memory, which are loads or
 * are not. A class that stays in the L2 is moved once. */
static double other_device_bytes(const struct costing *c, bool loads)
{
    double bytes = 0;

    for (uint32_t i = 0; i < c->pattern.class_count; i++) {
        const struct access_class *const a = &c->pattern.classes[i];
        const double moved = a->scale * (double)a->moved_bytes;
        if (!place_is_device(a->place) || a->chosen || (a->kind == RLT_LOAD) != loads)
            continue;
        const double all = class_bytes(c, a);
        bytes += all <= (double)c->fp->gpu.l2_cache_bytes ? fmin(moved, all) : moved;
    }
    return bytes;
}

enum status device_cost_plan_copy(const struct costing *c, struct access_copy *out, struct err *err)
{
    const struct fingerprint_windows *const w = &c->fp->windows;
    const uint64_t span = chosen_span(&c->pattern);
    struct chosen_rows rows;
    bool even = false;
    enum status s = chosen_read_rows(c, &rows, err);

    *out = (struct access_copy){.repeats = 1};
    if (s == STATUS_OK && rows.count > 0 && IS_KNOWN(w->entry_bytes) && w->entry_bytes.v > 0) {
        const double reach = (double)w->reach_bytes.v / (double)w->entry_bytes.v;
        const double entries = reach * c->fp->topology.partition.group_count;
        const double repeats = ceil(FILLS_TABLE * entries / (double)rows.count);
        out->repeats = (uint32_t)fmin(fmax(repeats, 1), MAX_REPEATS);
        if (out->repeats > 1 && rows.count < FEW_ROWS * (span / w->entry_bytes.v))
            s = chosen_find_even(&rows, span, w->entry_bytes.v, &even, err);
        out->spread_bytes = even ? w->entry_bytes.v : 0;
    }
    free(rows.addresses);
    return s;
}

static enum status load_chosen(struct costing *c, struct trace *out, struct err *err)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *const copy = open_memstream(&text, &bytes);
    FILE *in = NULL;
    enum status s = STATUS_NO_MEMORY;

    *out = (struct trace){0};
    if (copy) {
        struct access_copy plan;
        s = device_cost_plan_copy(c, &plan, err);
        if (s == STATUS_OK)
            s = access_pattern_copy(c->trace, c->context->map, &c->pattern, &plan, copy, err);
        if (fclose(copy) != 0)
            s = STATUS_NO_MEMORY;
    }
    if (s == STATUS_OK && !(in = fmemopen(text, bytes, "r")))
        s = STATUS_NO_MEMORY;
    if (s == STATUS_OK)
        s = trace_load(in, out, err);
    else if (s == STATUS_NO_MEMORY)
        (void)err_set(err, s, "cannot allocate a part of the trace: out of memory");
    if (in)
        (void)fclose(in);
    free(text);
    return s;
}

static const struct whatif_row *find_row(const struct whatif_answer *a, enum whatif_question q)
{
    for (uint32_t i = 0; i < a->row_count; i++)
        if (a->rows[i].question == q && a->rows[i].known)
            return &a->rows[i];
    return NULL;
}

static double row_ns(const struct whatif_answer *a, enum whatif_question q, double accesses,
                     double more_ns)
{
    const struct whatif_row *const r = find_row(a, q);

    return r ? r->ns * accesses + more_ns : 0;
}

static enum status ask_whatif(struct costing *c, const struct chosen_sums *sums, double load_bytes,
                              struct whatif_answer *answer, struct err *err)
{
    const struct whatif_options options = {
        .contiguous = 1,
        .input_bytes = fmin(load_bytes / sums->lines, STRATEGY_MAX_INPUT_BYTES),
        .launch_accesses = (uint64_t)sums->lines,
        .questions = 1u << WHATIF_AS_IT_IS | 1u << WHATIF_SCOPES | 1u << WHATIF_WINDOWS,
        .shared = c->context->shared};
    struct trace trace;
    enum status s = load_chosen(c, &trace, err);

    if (s == STATUS_OK)
        s = whatif_ask(c->fp, &trace, &options, answer, err);
    trace_free(&trace);
    return s;
}

/* Sets `*out` to the time of memory for the chosen accesses, in ns. Returns STATUS_INCONCLUSIVE if
 * the fingerprint has no such speed. */
static enum status memory_time(const struct costing *c, double *out, struct err *err)
{
    const struct reach_limit limit = {.observed = true,
                                      .reach_bytes = c->fp->windows.reach_bytes.v};

    *out = 0;
    for (uint32_t i = 0; i < c->pattern.class_count; i++) {
        const struct access_class *const a = &c->pattern.classes[i];
        struct access_cost cost;
        if (!a->chosen)
            continue;
        const uint64_t each = a->moved_bytes / a->lines;
        const uint32_t bytes = each > TRACE_SECTOR_BYTES ? (uint32_t)each : TRACE_SECTOR_BYTES;
        access_cost_read(&c->fp->throughput, &limit, chosen_access(a->kind), bytes, &cost);
        if (!IS_KNOWN(cost.in_reach_ns))
            access_cost_read(&c->fp->throughput, &limit, ACCESS_READ, bytes, &cost);
        if (!IS_KNOWN(cost.in_reach_ns))
            return err_set(err, STATUS_INCONCLUSIVE, "the fingerprint has no speed of %ss",
                           rlt_kind_name(a->kind));
        *out += cost.in_reach_ns.v * a->scale * (double)a->lines;
    }
    return STATUS_OK;
}

/* Within the reach no access misses, and what-if is not needed. */
enum status device_cost_predict(struct costing *c, struct err *err)
{
    const double plateau = c->fp->throughput.plateau_gbps.v;
    struct whatif_answer *answer = NULL;
    struct chosen_sums sums;
    const struct whatif_row *now;
    enum status s;

    if (!IS_KNOWN(c->fp->throughput.plateau_gbps) || !(plateau > 0))
        return err_set(err, STATUS_INCONCLUSIVE, "the fingerprint has no speed of random reads");
    device_cost_choose(c);
    sums = chosen_sum(c);
    const double load_bytes = other_device_bytes(c, true);
    const double store_ns = other_device_bytes(c, false) / plateau;
    c->out->accesses += sums.runs;
    if (chosen_span(&c->pattern) <= c->fp->windows.reach_bytes.v) {
        s = memory_time(c, &c->device_ns, err);
        c->device_ns += load_bytes / plateau + store_ns;
        return s;
    }
    answer = calloc(1, sizeof(*answer));
    s = answer ? ask_whatif(c, &sums, load_bytes, answer, err) : err_no_memory(err, "the answer");
    if (answer && s == STATUS_OK) {
        now = find_row(answer, WHATIF_AS_IT_IS);
        c->device_ns = answer->memory_ns * sums.lines + store_ns;
        c->out->misses += now ? now->walk_share * sums.lines : 0;
        c->out->translation_ns = c->out->misses * answer->miss_ns;
        c->scopes_ns = row_ns(answer, WHATIF_SCOPES, sums.lines, store_ns);
        c->windows_ns = row_ns(answer, WHATIF_WINDOWS, sums.lines, store_ns);
    }
    free(answer);
    return s;
}
