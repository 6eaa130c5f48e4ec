/* whatif.c: counts walks on the trace and prices them. A miss costs what the largest region of the
 * measured curve says, by as many misses as the same model counts there.
 */
#include "clients/lab/whatif.h"

#include "base/rng.h"
#include "base/units.h"
#include "clients/lab/lab.h"
#include "clients/lab/whatif_parts.h"
#include "planner/access_cost.h"
#include "planner/next_step.h"
#include "planner/reach_limit.h"

#include <math.h>
#include <stdlib.h>

/* To add to what is in memory is to read and to write it. */
enum {
    CURVE_SEED = 1,
    CURVE_READS = 1 << 20,
    CURVE_SHIFT = 12,
    MOVES_TO_ADD = 2,
    FIRST_BUFFER_LOG2 = 10,
    LAST_BUFFER_LOG2 = 20
};

/* A curve that falls by less does not show what a miss costs. */
static const double VISIBLE = 1.02;

/* ---- prices ---- */

static enum access access_of(enum rlt_kind kind)
{
    return kind == RLT_STORE ? ACCESS_WRITE : kind == RLT_ATOMIC ? ACCESS_ATOMIC : ACCESS_READ;
}

/* What memory takes for a line of each class of the trace. */
static enum status price_memory(struct asking *a, struct err *err)
{
    const struct reach_limit limit = {.observed = true,
                                      .reach_bytes = a->fp->windows.reach_bytes.v};
    const struct trace *t = a->trace;
    for (uint32_t i = 0; i < t->record_count; i++) {
        const struct trace_record *r = &t->records[i];
        double *ns = &a->memory_ns[r->kind * STREAM_KIND_CLASSES + r->sectors - 1u];
        a->waits = a->waits || (r->kind == RLT_ATOMIC && a->options->in_reach_gbps > 0);
        if (!(*ns > 0)) {
            struct access_cost cost;
            access_cost_read(&a->fp->throughput, &limit, access_of((enum rlt_kind)r->kind),
                             r->sectors * (uint32_t)TRACE_SECTOR_BYTES, &cost);
            if (!IS_KNOWN(cost.in_reach_ns))
                access_cost_read(&a->fp->throughput, &limit, ACCESS_READ,
                                 r->sectors * (uint32_t)TRACE_SECTOR_BYTES, &cost);
            if (!IS_KNOWN(cost.in_reach_ns))
                return err_set_hint(err, STATUS_INCONCLUSIVE,
                                    next_step_full(a->fp, cost.in_reach_ns.reason),
                                    "the fingerprint has no speed within the reach");
            *ns = cost.in_reach_ns.v;
        }
        a->all_memory_ns += *ns * r->line_count;
    }
    a->read_ns = a->options->input_bytes * (double)t->line_count / a->fp->throughput.plateau_gbps.v;
    a->add_ns = a->options->output_bytes * MOVES_TO_ADD * (double)t->line_count /
                a->fp->throughput.plateau_gbps.v;
    if (a->options->in_reach_gbps > 0) {
        const double whole = (double)t->moved_bytes / a->options->in_reach_gbps;
        const double own = fmax(whole - a->read_ns, 0);
        for (uint32_t i = 0; i < STREAM_CLASSES; i++)
            a->memory_ns[i] *= own / a->all_memory_ns;
        a->all_memory_ns = own;
    }
    return STATUS_OK;
}

static enum status price_miss(struct asking *a, struct err *err)
{
    const struct throughput *t = &a->fp->throughput;
    const struct curve_point *largest = t->curve_count > 0 ? &t->curve[t->curve_count - 1] : NULL;
    const struct fingerprint_contiguity *c = &a->fp->contiguity;
    struct lab_reads reads = {.seed = CURVE_SEED};
    struct lab_misses m;
    enum status s;
    if (!largest || !(largest->naive_gbps.v > 0) ||
        t->plateau_gbps.v < largest->naive_gbps.v * VISIBLE ||
        largest->region_bytes <= a->fp->windows.reach_bytes.v)
        return err_set_hint(err, STATUS_INCONCLUSIVE, next_step_full(a->fp, REASON_NO_CONTRAST),
                            "the curve of the fingerprint does not show what a miss costs");
    reads.region_bytes = largest->region_bytes;
    s = lab_count_reads(&a->machine, &reads, &m, err);
    if (s != STATUS_OK)
        return s;
    if (!(m.walked > 0))
        return err_set(err, STATUS_INCONCLUSIVE,
                       "the model misses nowhere on the curve of the fingerprint");
    a->out->miss_ns = FINGERPRINT_CURVE_BYTES / largest->naive_gbps.v / m.walked;
    if (IS_KNOWN(c->contiguous_miss_ns) && IS_KNOWN(c->scattered_miss_ns) &&
        c->contiguous_miss_ns.v > 0)
        a->out->scattered_factor = c->scattered_miss_ns.v / c->contiguous_miss_ns.v;
    return STATUS_OK;
}

/* ---- questions ---- */

static enum status count_all(const struct asking *a, const struct stream *s,
                             const struct sim_desc *machine, uint64_t *out, struct err *err)
{
    return stream_count(s, machine, whatif_flight(a), a->options->cold, &s->count, 1, out, err);
}

static enum status ask_as_it_is(struct asking *a, struct err *err)
{
    enum status s = stream_deal(a->trace, &a->machine, a->options->sm_blocks,
                                flight_page_bytes(a->fp, &a->machine), &a->stream, err);
    if (s == STATUS_OK)
        s = count_all(a, &a->stream, &a->machine, &a->walks, err);
    if (s == STATUS_OK)
        (void)whatif_add(a, WHATIF_AS_IT_IS, 0, whatif_memory(a), (double)a->walks);
    return s;
}

static enum status ask_contiguity(struct asking *a, struct err *err)
{
    static const double shares[] = {1, 0.9, 0.5, 0};
    (void)err;
    if (!(a->out->scattered_factor > 0)) {
        (void)whatif_add_unknown(a, WHATIF_CONTIGUITY,
                                 "the price of scattered memory was not measured");
        return STATUS_OK;
    }
    for (uint32_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        struct whatif_row *r =
            whatif_add(a, WHATIF_CONTIGUITY, shares[i], whatif_memory(a), (double)a->walks);
        const double ns = whatif_time(a, whatif_memory(a), (double)a->walks, 1 - shares[i]);
        whatif_set_times(a, r, ns, ns);
        r->bound = whatif_time(a, 0, (double)a->walks, 1 - shares[i]) > whatif_memory(a)
                       ? BOUND_TRANSLATION
                       : BOUND_MEMORY;
    }
    return STATUS_OK;
}

/* The last level with entries of another size, and as many of them; nearer ones are no larger. */
static enum status ask_entry(struct asking *a, struct err *err)
{
    static const uint64_t sizes[] = {64 * KIB, 2 * MIB, 32 * MIB, 128 * MIB};
    struct sim_level *last = &a->machine.levels[a->machine.level_count - 1];
    enum status s = STATUS_OK;
    for (uint32_t i = 0; s == STATUS_OK && i < sizeof sizes / sizeof sizes[0]; i++) {
        struct sim_desc *other;
        struct stream stream = {0};
        struct whatif_row *r;
        uint64_t walks = 0;
        if (sizes[i] == last->entry_bytes || sizes[i] < a->trace->granule_bytes)
            continue;
        other = malloc(sizeof *other);
        if (!other)
            return err_set(err, STATUS_NO_MEMORY, "no memory for another machine");
        *other = a->machine;
        for (uint32_t l = 0; l < other->level_count; l++) {
            struct sim_level *level = &other->levels[l];
            if (level->entry_bytes > sizes[i] || l + 1 == other->level_count)
                level->entry_bytes = sizes[i];
        }
        s = stream_deal(a->trace, other, a->options->sm_blocks, flight_page_bytes(a->fp, other),
                        &stream, err);
        if (s == STATUS_OK)
            s = count_all(a, &stream, other, &walks, err);
        if (s == STATUS_OK) {
            r = whatif_add(a, WHATIF_ENTRY, (double)sizes[i], whatif_memory(a), (double)walks);
            (void)snprintf(r->note, sizeof r->note,
                           "no such chip was measured; a miss costs what it costs on this one");
        }
        stream_free(&stream);
        free(other);
    }
    return s;
}

static enum status ask_order(struct asking *a, struct err *err)
{
    const uint64_t entry = a->machine.levels[a->machine.level_count - 1].entry_bytes;
    enum status s = STATUS_OK;
    for (uint32_t log2 = FIRST_BUFFER_LOG2; s == STATUS_OK && log2 <= LAST_BUFFER_LOG2; log2 += 2) {
        struct stream sorted = {0};
        uint64_t walks = 0;
        if (1u << log2 > a->stream.count)
            break;
        s = stream_sort(&a->stream, entry, 1u << log2, a->machine.sm_count, &sorted, err);
        if (s == STATUS_OK)
            s = count_all(a, &sorted, &a->machine, &walks, err);
        if (s == STATUS_OK)
            (void)snprintf(
                whatif_add(a, WHATIF_ORDER, 1u << log2, whatif_memory(a), (double)walks)->note,
                WHATIF_NOTE_BYTES, "the sorting itself is not counted");
        stream_free(&sorted);
    }
    return s;
}

static enum status ask_blocks(struct asking *a, struct err *err)
{
    const uint32_t each = (a->trace->block_count - 1) / a->machine.sm_count + 1;
    const uint32_t most = each < STREAM_SM_BLOCKS ? each : STREAM_SM_BLOCKS;
    enum status s = STATUS_OK;
    for (uint32_t blocks = 1; s == STATUS_OK && blocks <= most; blocks *= 2) {
        struct stream stream = {0};
        uint64_t walks = 0;
        s = stream_deal(a->trace, &a->machine, blocks, flight_page_bytes(a->fp, &a->machine),
                        &stream, err);
        if (s == STATUS_OK)
            s = count_all(a, &stream, &a->machine, &walks, err);
        if (s == STATUS_OK)
            (void)snprintf(
                whatif_add(a, WHATIF_BLOCKS, blocks, whatif_memory(a), (double)walks)->note,
                WHATIF_NOTE_BYTES, "misses alone: too few warps do not keep memory busy");
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

/* Warps side by side take a piece each. */
static void set_flight(struct asking *a)
{
    const struct flight_job job = {.miss_ns = a->out->miss_ns,
                                   .access_ns = whatif_memory(a) / (double)a->out->accesses,
                                   .loads_in_flight =
                                       (uint64_t)stream_sm_warps(a->trace, a->options->sm_blocks) *
                                       STREAM_PIECE};
    a->flies = flight_of(a->fp, &a->machine, &job, &a->flight);
}

/* The curve is to be true with the misses under way that were counted there too. */
static enum status price_miss_in_flight(struct asking *a, struct err *err)
{
    const struct throughput *t = &a->fp->throughput;
    const struct curve_point *largest = &t->curve[t->curve_count - 1];
    const struct stream room = {
        .count = CURVE_READS, .unit_shift = CURVE_SHIFT, .range_bytes = largest->region_bytes};
    const size_t ends[] = {CURVE_READS};
    struct rng rng = {CURVE_SEED};
    struct stream reads;
    uint64_t walks = 0;
    enum status s = stream_new(&room, &reads, err);
    for (uint32_t i = 0; s == STATUS_OK && i < CURVE_READS; i++)
        stream_append(&reads, (uint32_t)rng_below(&rng, largest->region_bytes >> CURVE_SHIFT),
                      i % a->machine.sm_count, 0);
    if (s == STATUS_OK)
        s = stream_count(&reads, &a->machine, &a->flight, false, ends, 1, &walks, err);
    if (s == STATUS_OK)
        a->out->miss_ns =
            FINGERPRINT_CURVE_BYTES / largest->naive_gbps.v / ((double)walks / CURVE_READS);
    stream_free(&reads);
    return s;
}

static enum status begin(struct asking *a, struct err *err)
{
    enum status s = check_options(a->options, err);
    if (s == STATUS_OK)
        s = lab_machine_of(a->fp, &a->machine, err);
    if (s == STATUS_OK)
        s = price_memory(a, err);
    if (s == STATUS_OK)
        s = price_miss(a, err);
    if (s == STATUS_OK)
        set_flight(a);
    if (s == STATUS_OK && a->flies)
        s = price_miss_in_flight(a, err);
    if (s == STATUS_OK && a->options->contiguous >= 0 && a->options->contiguous < 1 &&
        !(a->out->scattered_factor > 0))
        s = err_set_hint(err, STATUS_INCONCLUSIVE,
                         next_step_full(a->fp, a->fp->contiguity.scattered_miss_ns.reason),
                         "the fingerprint has no price of a miss in scattered memory");
    return s;
}

/* Instead of an answer. */
static enum status refuse(struct asking *a, uint32_t questions, struct err *err)
{
    char why[WHATIF_NOTE_BYTES];
    (void)snprintf(why, sizeof why, "%.1f %% of the accesses to global memory are not in the trace",
                   100 * rlt_left_out_share(&a->trace->left_out, a->trace->record_count));
    for (uint32_t q = 0; q < WHATIF_QUESTION_COUNT; q++) {
        if (questions >> q & 1)
            (void)whatif_add_unknown(a, (enum whatif_question)q, why);
    }
    return check_options(a->options, err);
}

enum status whatif_ask(const struct fingerprint *fp, const struct trace *trace,
                       const struct whatif_options *options, struct whatif_answer *out,
                       struct err *err)
{
    typedef enum status ask(struct asking *, struct err *);
    static ask *const asks[WHATIF_QUESTION_COUNT] = {ask_as_it_is,  ask_contiguity, ask_entry,
                                                     ask_order,     ask_blocks,     whatif_scopes,
                                                     whatif_windows};
    struct asking *a = calloc(1, sizeof *a);
    const uint32_t questions = options->questions ? options->questions | 1 : UINT32_MAX;
    enum status s;
    *out = (struct whatif_answer){.accesses = trace->line_count,
                                  .records = trace->record_count,
                                  .bytes = trace->bytes,
                                  .left_out = trace->left_out};
    if (!a)
        return err_set(err, STATUS_NO_MEMORY, "no memory for the answer");
    a->fp = fp;
    a->trace = trace;
    a->options = options;
    a->out = out;
    out->refused = rlt_left_out_share(&trace->left_out, trace->record_count) > WHATIF_MOST_LEFT_OUT;
    s = out->refused ? refuse(a, questions, err) : begin(a, err);
    out->memory_ns = whatif_memory(a) / (double)out->accesses;
    for (uint32_t q = 0; s == STATUS_OK && !out->refused && q < WHATIF_QUESTION_COUNT; q++) {
        if (questions >> q & 1)
            s = asks[q](a, err);
    }
    qsort(out->rows, out->row_count, sizeof *out->rows, by_time);
    stream_free(&a->stream);
    free(a->plan);
    free(a);
    return s;
}
