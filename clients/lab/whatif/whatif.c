/* whatif.c: counts walks on the trace and computes their time. The cost of a miss is derived from
 * the largest region of the measured curve. It is the time in this region divided by the misses
 * that the model counts there.
 */
#include "clients/lab/whatif/whatif.h"

#include "base/rng.h"
#include "base/units.h"
#include "clients/lab/whatif/machine.h"
#include "clients/lab/whatif/random_reads.h"
#include "clients/lab/whatif/stream_walks.h"
#include "clients/lab/whatif/whatif_context.h"
#include "clients/lab/whatif/whatif_place.h"
#include "clients/lab/whatif/whatif_rows.h"
#include "fingerprint/fingerprint_json.h"
#include "planner/access_cost.h"
#include "planner/next_step.h"
#include "planner/reach_limit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    CURVE_SEED = 1,
    CURVE_READS = 1 << 20,
    CURVE_SHIFT = 12,
    MOVES_TO_ADD = 2, /* an addition in memory reads and writes the number */
    FIRST_BUFFER_LOG2 = 10,
    LAST_BUFFER_LOG2 = 20
};

/* The cost of a miss is not visible in a curve that falls by a smaller factor. */
static const double VISIBLE = 1.02;

/* ---- costs ---- */

static enum access access_kind(enum rlt_kind kind)
{
    return kind == RLT_STORE ? ACCESS_WRITE : kind == RLT_ATOMIC ? ACCESS_ATOMIC : ACCESS_READ;
}

/* Sets the memory time per line for each class of the trace. */
static enum status set_memory_ns(struct whatif_context *c, struct err *err)
{
    const struct reach_limit limit = {.observed = true,
                                      .reach_bytes = c->fp->windows.reach_bytes.v};
    const struct trace *t = c->trace;
    for (uint32_t i = 0; i < t->record_count; i++) {
        const struct trace_record *r = &t->records[i];
        double *ns = &c->memory_ns[r->kind * STREAM_KIND_CLASSES + r->sectors - 1u];
        c->atomic_bound =
            c->atomic_bound || (r->kind == RLT_ATOMIC && c->options->in_reach_gbps > 0);
        if (!(*ns > 0)) {
            struct access_cost cost;
            access_cost_read(&c->fp->throughput, &limit, access_kind((enum rlt_kind)r->kind),
                             r->sectors * (uint32_t)TRACE_SECTOR_BYTES, &cost);
            if (!IS_KNOWN(cost.in_reach_ns))
                access_cost_read(&c->fp->throughput, &limit, ACCESS_READ,
                                 r->sectors * (uint32_t)TRACE_SECTOR_BYTES, &cost);
            if (!IS_KNOWN(cost.in_reach_ns))
                return err_set_hint(err, STATUS_INCONCLUSIVE,
                                    next_step_full(c->fp, cost.in_reach_ns.reason),
                                    "the fingerprint has no speed within the reach");
            *ns = cost.in_reach_ns.v;
        }
        c->all_memory_ns += *ns * r->line_count;
    }
    c->read_ns = c->options->input_bytes * (double)t->line_count / c->fp->throughput.plateau_gbps.v;
    c->add_ns = c->options->output_bytes * MOVES_TO_ADD * (double)t->line_count /
                c->fp->throughput.plateau_gbps.v;
    if (c->options->in_reach_gbps > 0) {
        const double whole = (double)t->moved_bytes / c->options->in_reach_gbps;
        const double own = fmax(whole - c->read_ns, 0);
        for (uint32_t i = 0; i < STREAM_CLASSES; i++)
            c->memory_ns[i] *= own / c->all_memory_ns;
        c->all_memory_ns = own;
    }
    return STATUS_OK;
}

static enum status set_miss_ns(struct whatif_context *c, struct err *err)
{
    const struct throughput *t = &c->fp->throughput;
    const struct curve_point *largest = t->curve_count > 0 ? &t->curve[t->curve_count - 1] : NULL;
    const struct maybe_f64 factor = contiguity_factor(&c->fp->contiguity);
    struct random_reads reads = {.seed = CURVE_SEED};
    enum status s;
    if (!largest || !(largest->naive_gbps.v > 0) ||
        t->plateau_gbps.v < largest->naive_gbps.v * VISIBLE ||
        largest->region_bytes <= c->fp->windows.reach_bytes.v)
        return err_set_hint(err, STATUS_INCONCLUSIVE, next_step_full(c->fp, REASON_NO_CONTRAST),
                            "the curve of the fingerprint does not show what a miss costs");
    reads.region_bytes = largest->region_bytes;
    s = random_reads_share(&c->machine, &reads, &c->shared->curve_walks, err);
    if (s != STATUS_OK)
        return s;
    if (!(c->shared->curve_walks > 0))
        return err_set(err, STATUS_INCONCLUSIVE,
                       "the model predicts no miss on the curve of the fingerprint");
    c->out->miss_ns = FINGERPRINT_CURVE_BYTES / largest->naive_gbps.v / c->shared->curve_walks;
    if (IS_KNOWN(factor))
        c->out->scattered_factor = factor.v;
    return STATUS_OK;
}

/* ---- questions ---- */

static enum status count_all(const struct whatif_context *c, const struct stream *s,
                             const struct sim_desc *machine, uint64_t *out, struct err *err)
{
    return stream_walks_count(s, machine, whatif_miss_queue(c), c->options->cold, &s->count, 1, out,
                              err);
}

static enum status deal(const struct whatif_context *c, const struct sim_desc *machine,
                        uint32_t sm_blocks, struct stream *out, struct err *err)
{
    const struct stream_rules rules = {.sm_blocks = sm_blocks,
                                       .page_bytes = miss_queue_page_bytes(c->fp, machine),
                                       .data_cache = c->has_data_cache ? &c->data_cache : NULL};
    return stream_deal(c->trace, machine, &rules, out, err);
}

static enum status add_as_it_is(struct whatif_context *c, struct err *err)
{
    enum status s = deal(c, &c->machine, c->options->sm_blocks, &c->stream, err);
    if (s == STATUS_OK)
        s = count_all(c, &c->stream, &c->machine, &c->walks, err);
    if (s == STATUS_OK)
        (void)whatif_add_row(c, WHATIF_AS_IT_IS, 0, whatif_memory_ns(c), (double)c->walks);
    return s;
}

static enum status add_contiguity(struct whatif_context *c, struct err *err)
{
    static const double shares[] = {1, 0.9, 0.5, 0};
    (void)err;
    if (!(c->out->scattered_factor > 0)) {
        (void)whatif_add_unknown_row(c, WHATIF_CONTIGUITY,
                                     "the cost of a miss in scattered memory was not measured");
        return STATUS_OK;
    }
    for (uint32_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        struct whatif_row *r =
            whatif_add_row(c, WHATIF_CONTIGUITY, shares[i], whatif_memory_ns(c), (double)c->walks);
        const double ns = whatif_time_ns(c, whatif_memory_ns(c), (double)c->walks, 1 - shares[i]);
        whatif_set_times(c, r, ns, ns);
        r->bound = whatif_time_ns(c, 0, (double)c->walks, 1 - shares[i]) > whatif_memory_ns(c)
                       ? BOUND_TRANSLATION
                       : BOUND_MEMORY;
    }
    return STATUS_OK;
}

/* Varies the entry size of the last level and keeps the number of entries. Entries of nearer levels
 * are never larger. */
static enum status add_entry(struct whatif_context *c, struct err *err)
{
    static const uint64_t sizes[] = {64 * KIB, 2 * MIB, 32 * MIB, 128 * MIB};
    struct sim_level *last = &c->machine.levels[c->machine.level_count - 1];
    enum status s = STATUS_OK;
    for (uint32_t i = 0; s == STATUS_OK && i < sizeof sizes / sizeof sizes[0]; i++) {
        struct sim_desc *other;
        struct stream stream = {0};
        struct whatif_row *r;
        uint64_t walks = 0;
        if (sizes[i] == last->entry_bytes || sizes[i] < c->trace->granule_bytes)
            continue;
        other = malloc(sizeof *other);
        if (!other)
            return err_set(err, STATUS_NO_MEMORY,
                           "cannot allocate the machine with other entries: out of memory");
        *other = c->machine;
        for (uint32_t l = 0; l < other->level_count; l++) {
            struct sim_level *level = &other->levels[l];
            if (level->entry_bytes > sizes[i] || l + 1 == other->level_count)
                level->entry_bytes = sizes[i];
        }
        s = deal(c, other, c->options->sm_blocks, &stream, err);
        if (s == STATUS_OK)
            s = count_all(c, &stream, other, &walks, err);
        if (s == STATUS_OK) {
            r = whatif_add_row(c, WHATIF_ENTRY, (double)sizes[i], whatif_memory_ns(c),
                               (double)walks);
            (void)snprintf(
                r->note, sizeof r->note,
                "no such chip was measured; a miss is assumed to cost as much as on this one");
        }
        stream_free(&stream);
        free(other);
    }
    return s;
}

static enum status add_order(struct whatif_context *c, struct err *err)
{
    const uint64_t entry = c->machine.levels[c->machine.level_count - 1].entry_bytes;
    enum status s = STATUS_OK;
    for (uint32_t log2 = FIRST_BUFFER_LOG2; s == STATUS_OK && log2 <= LAST_BUFFER_LOG2; log2 += 2) {
        struct stream sorted = {0};
        uint64_t walks = 0;
        if (1u << log2 > c->stream.count)
            break;
        s = stream_sort(&c->stream, entry, 1u << log2, c->machine.sm_count, &sorted, err);
        if (s == STATUS_OK)
            s = count_all(c, &sorted, &c->machine, &walks, err);
        if (s == STATUS_OK)
            (void)snprintf(
                whatif_add_row(c, WHATIF_ORDER, 1u << log2, whatif_memory_ns(c), (double)walks)
                    ->note,
                WHATIF_NOTE_BYTES, "the cost of sorting is not included");
        stream_free(&sorted);
    }
    return s;
}

static enum status add_blocks(struct whatif_context *c, struct err *err)
{
    uint16_t sms[REACH_MAX_SMS];
    uint32_t groups;
    const uint32_t sm_count = stream_sms(c->trace, &c->machine, sms, &groups);
    const uint32_t each = (c->trace->block_count - 1) / sm_count + 1;
    const uint32_t most = each < STREAM_SM_BLOCKS ? each : STREAM_SM_BLOCKS;
    enum status s = STATUS_OK;
    for (uint32_t blocks = 1; s == STATUS_OK && blocks <= most; blocks *= 2) {
        struct stream stream = {0};
        uint64_t walks = 0;
        s = deal(c, &c->machine, blocks, &stream, err);
        if (s == STATUS_OK)
            s = count_all(c, &stream, &c->machine, &walks, err);
        if (s == STATUS_OK)
            (void)snprintf(
                whatif_add_row(c, WHATIF_BLOCKS, blocks, whatif_memory_ns(c), (double)walks)->note,
                WHATIF_NOTE_BYTES, "counts misses only; few warps may not keep memory busy");
        stream_free(&stream);
    }
    return s;
}

/* ---- all ---- */

static enum status check_options(const struct whatif_options *o, struct err *err)
{
    if (o->contiguous > 1 || isnan(o->contiguous))
        return err_set_field(err, STATUS_INVALID_ARGUMENT, "contiguous",
                             "contiguous must be a share from 0 to 1");
    if (!(o->in_reach_gbps >= 0) || o->in_reach_gbps > STRATEGY_MAX_RATE)
        return err_set_field(err, STATUS_INVALID_ARGUMENT, "in-reach-gbps",
                             "in-reach-gbps must be from 0 to 10^6");
    if (!(o->input_bytes >= 0) || !(o->output_bytes >= 0) ||
        o->input_bytes > STRATEGY_MAX_INPUT_BYTES || o->output_bytes > STRATEGY_MAX_INPUT_BYTES)
        return err_set_field(err, STATUS_INVALID_ARGUMENT, "input-bytes",
                             "input-bytes and output-bytes must be from 0 to 2^20");
    if (o->sm_blocks > STREAM_SM_BLOCKS)
        return err_set_field(err, STATUS_INVALID_ARGUMENT, "blocks",
                             "blocks of an SM must be from 1 to %d", STREAM_SM_BLOCKS);
    return STATUS_OK;
}

static int by_time(const void *a, const void *b)
{
    const struct whatif_row *x = a;
    const struct whatif_row *y = b;
    if (x->known != y->known)
        return x->known ? -1 : 1;
    if (x->ns != y->ns)
        return x->ns < y->ns ? -1 : 1;
    if (x->question != y->question)
        return x->question < y->question ? -1 : 1;
    return (x->value > y->value) - (x->value < y->value);
}

/* Each resident warp issues one piece at a time. */
static void set_miss_queue(struct whatif_context *c)
{
    const struct miss_queue_job job = {
        .miss_ns = c->out->miss_ns,
        .access_ns = whatif_memory_ns(c) / (double)c->out->accesses,
        .loads_in_flight =
            (uint64_t)stream_sm_warps(c->trace, c->options->sm_blocks) * STREAM_PIECE,
        .beyond_walks = &c->shared->beyond_walks};
    c->models_inflight = miss_queue_from_fingerprint(c->fp, &c->machine, &job, &c->miss_queue);
}

/* Counts the walks of random reads over the largest region of the curve, with misses in flight. */
static enum status count_in_flight(const struct whatif_context *c,
                                   const struct curve_point *largest, uint64_t *walks,
                                   struct err *err)
{
    const struct stream room = {
        .count = CURVE_READS, .unit_shift = CURVE_SHIFT, .range_bytes = largest->region_bytes};
    const size_t ends[] = {CURVE_READS};
    struct rng rng = {CURVE_SEED};
    struct stream reads;
    enum status s = stream_new(&room, &reads, err);
    for (uint32_t i = 0; s == STATUS_OK && i < CURVE_READS; i++)
        stream_append(&reads, (uint32_t)rng_below(&rng, largest->region_bytes >> CURVE_SHIFT),
                      i % c->machine.sm_count, 0);
    if (s == STATUS_OK)
        s = stream_walks_count(&reads, &c->machine, &c->miss_queue, false, ends, 1, walks, err);
    stream_free(&reads);
    return s;
}

/* Derives the cost of a miss again, with the misses in flight that the queue models. Besides the
 * fingerprint, the queue depends on two numbers. */
static enum status set_miss_ns_in_flight(struct whatif_context *c, struct err *err)
{
    const struct throughput *t = &c->fp->throughput;
    const struct curve_point *largest = &t->curve[t->curve_count - 1];
    struct whatif_shared *shared = c->shared;
    struct whatif_shared_queue q = {c->miss_queue.access_ps, c->miss_queue.ahead_ps, 0};
    enum status s = STATUS_OK;
    for (uint32_t i = 0; i < shared->queue_count && i < WHATIF_SHARED_QUEUES; i++) {
        if (shared->queues[i].access_ps == q.access_ps && shared->queues[i].ahead_ps == q.ahead_ps)
            q.walks = shared->queues[i].walks;
    }
    if (q.walks == 0) {
        s = count_in_flight(c, largest, &q.walks, err);
        if (s == STATUS_OK)
            shared->queues[shared->queue_count++ % WHATIF_SHARED_QUEUES] = q;
    }
    if (s == STATUS_OK)
        c->out->miss_ns =
            FINGERPRINT_CURVE_BYTES / largest->naive_gbps.v / ((double)q.walks / CURVE_READS);
    return s;
}

/* Chooses the shared counts, and empties them if they are of another fingerprint. */
static enum status set_shared(struct whatif_context *c, struct err *err)
{
    char id[FINGERPRINT_ID_BYTES];
    const enum status s = fingerprint_id(c->fp, id, err);
    c->shared = c->options->shared ? c->options->shared : &c->own_shared;
    if (s == STATUS_OK && strcmp(c->shared->fingerprint_id, id) != 0) {
        *c->shared = (struct whatif_shared){0};
        memcpy(c->shared->fingerprint_id, id, sizeof id);
    }
    return s;
}

/* A trace whose granule is longer than a line does not show which loads hit. If the range is large,
 * the units of the trace are longer than a line, and the cache then has lines of one unit. */
static void set_data_cache(struct whatif_context *c)
{
    const uint64_t unit_bytes = (uint64_t)1 << c->trace->unit_shift;
    uint64_t *line_bytes = &c->data_cache.levels[0].entry_bytes;
    c->has_data_cache = machine_data_cache(c->fp, &c->machine, &c->data_cache) &&
                        c->trace->granule_bytes <= *line_bytes;
    c->data_cache.range_bytes = c->trace->range_bytes;
    *line_bytes = unit_bytes > *line_bytes ? unit_bytes : *line_bytes;
}

static enum status set_up(struct whatif_context *c, struct err *err)
{
    enum status s = check_options(c->options, err);
    if (s == STATUS_OK)
        s = set_shared(c, err);
    if (s == STATUS_OK)
        s = machine_from_fingerprint(c->fp, &c->machine, err);
    if (s == STATUS_OK)
        set_data_cache(c);
    if (s == STATUS_OK)
        s = set_memory_ns(c, err);
    if (s == STATUS_OK)
        s = set_miss_ns(c, err);
    if (s == STATUS_OK)
        set_miss_queue(c);
    if (s == STATUS_OK && c->models_inflight)
        s = set_miss_ns_in_flight(c, err);
    if (s == STATUS_OK && c->options->contiguous >= 0 && c->options->contiguous < 1 &&
        !(c->out->scattered_factor > 0))
        s = err_set_hint(err, STATUS_INCONCLUSIVE,
                         next_step_full(c->fp, c->fp->contiguity.scattered_miss_ns.reason),
                         "the fingerprint has no cost of a miss in scattered memory");
    return s;
}

/* Adds a row without a number for each question. */
static enum status add_refused_rows(struct whatif_context *c, uint32_t questions, struct err *err)
{
    char why[WHATIF_NOTE_BYTES];
    (void)snprintf(why, sizeof why, "%.1f %% of the accesses to global memory are not in the trace",
                   100 * rlt_left_out_share(&c->trace->left_out, c->trace->record_count));
    for (uint32_t q = 0; q < WHATIF_QUESTION_COUNT; q++) {
        if (questions >> q & 1)
            (void)whatif_add_unknown_row(c, (enum whatif_question)q, why);
    }
    return check_options(c->options, err);
}

enum status whatif_ask(const struct fingerprint *fp, const struct trace *trace,
                       const struct whatif_options *options, struct whatif_answer *out,
                       struct err *err)
{
    typedef enum status add_rows(struct whatif_context *, struct err *);
    static add_rows *const rows_of[WHATIF_QUESTION_COUNT] = {
        add_as_it_is, add_contiguity,    add_entry,         add_order,
        add_blocks,   whatif_add_scopes, whatif_add_windows};
    struct whatif_context *c = calloc(1, sizeof *c);
    const uint32_t questions = options->questions ? options->questions | 1 : UINT32_MAX;
    enum status s;
    *out = (struct whatif_answer){.accesses = trace->line_count,
                                  .records = trace->record_count,
                                  .bytes = trace->bytes,
                                  .left_out = trace->left_out};
    if (!c)
        return err_set(err, STATUS_NO_MEMORY, "cannot allocate the answer: out of memory");
    c->fp = fp;
    c->trace = trace;
    c->options = options;
    c->out = out;
    out->refused = rlt_left_out_share(&trace->left_out, trace->record_count) > WHATIF_MOST_LEFT_OUT;
    s = out->refused ? add_refused_rows(c, questions, err) : set_up(c, err);
    out->memory_ns = whatif_memory_ns(c) / (double)out->accesses;
    for (uint32_t q = 0; s == STATUS_OK && !out->refused && q < WHATIF_QUESTION_COUNT; q++) {
        if (questions >> q & 1)
            s = rows_of[q](c, err);
    }
    qsort(out->rows, out->row_count, sizeof *out->rows, by_time);
    stream_free(&c->stream);
    free(c->plan);
    free(c);
    return s;
}
