/* whatif_command.c: reach-lab what-if, its table and its JSON. */
#include "clients/lab/whatif/whatif_command.h"

#include "base/json_writer.h"
#include "base/format_size.h"
#include "clients/lab/exit_status.h"
#include "clients/lab/trace/options.h"
#include "clients/lab/whatif/whatif.h"
#include "fingerprint/fingerprint_read.h"
#include "planner/access_cost.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 64 };

/* ---- text ---- */

static void describe(const struct whatif_row *r, char out[TEXT_BYTES])
{
    char bytes[FORMAT_SIZE_BYTES];
    switch (r->question) {
    case WHATIF_AS_IT_IS:
        (void)snprintf(out, TEXT_BYTES, "as it is");
        break;
    case WHATIF_CONTIGUITY:
        (void)snprintf(out, TEXT_BYTES, "%.0f %% of the frames contiguous", 100 * r->value);
        break;
    case WHATIF_ENTRY:
        (void)snprintf(out, TEXT_BYTES, "TLB entries of %s",
                       format_size((uint64_t)r->value, bytes));
        break;
    case WHATIF_ORDER:
        (void)snprintf(out, TEXT_BYTES, "sorted in buffers of %.0f", r->value);
        break;
    case WHATIF_BLOCKS:
        (void)snprintf(out, TEXT_BYTES, "%.0f blocks on an SM", r->value);
        break;
    case WHATIF_SCOPES:
        (void)snprintf(out, TEXT_BYTES, "%.0f passes over scopes", r->value);
        break;
    default:
        (void)snprintf(out, TEXT_BYTES, "%.0f windows", r->value);
        break;
    }
}

static void print_row(const struct whatif_row *r, FILE *out)
{
    char what[TEXT_BYTES];
    char range[32] = "";
    if (!r->known) {
        (void)fprintf(out, "%-34s %s\n", whatif_question_name(r->question), r->note);
        return;
    }
    describe(r, what);
    if (r->ns_at_worst > r->ns)
        (void)snprintf(range, sizeof range, "- %.4f", r->ns_at_worst);
    (void)fprintf(out, "%-34s %8.4f %-9s %8.1f GB/s %6.2f %% walk  %-12s%s%s\n", what, r->ns, range,
                  r->gbps, 100 * r->walk_share, bound_name(r->bound), r->note[0] ? "; " : "",
                  r->note);
}

static void print_costs(const struct whatif_answer *a, FILE *out)
{
    (void)fprintf(out, "memory %.4f ns per access; a walk %.4f ns in contiguous memory",
                  a->memory_ns, a->miss_ns);
    if (a->scattered_factor > 0)
        (void)fprintf(out, ", %.2f times that in scattered memory", a->scattered_factor);
    (void)fprintf(out,
                  "\nns per access of the whole GPU, contiguous - scattered, fastest first:\n");
}

/* ---- recommendation ---- */

/* What-if differs by up to 5 % from measured jobs (docs/lab.md), so a smaller gain does not count.
 */
static const double LEAST_GAIN = 1.05;

/* Returns the fastest change that gains, or NULL. Other entries are another GPU, and contiguity is
 * a property of memory. Sorting has a cost that is not included, so it is the last choice. */
static const struct whatif_row *best_change(const struct whatif_answer *a, double ns)
{
    const struct whatif_row *sorting = NULL;
    for (uint32_t i = 0; i < a->row_count && a->rows[i].known; i++) {
        const struct whatif_row *r = &a->rows[i];
        if (r->ns * LEAST_GAIN > ns)
            break;
        if (r->question == WHATIF_ORDER)
            sorting = sorting ? sorting : r;
        else if (r->question != WHATIF_ENTRY && r->question != WHATIF_CONTIGUITY)
            return r;
    }
    return sorting;
}

static void recommend(const struct whatif_answer *a, char *out, size_t size)
{
    const struct whatif_row *now = a->rows;
    while (now->question != WHATIF_AS_IT_IS)
        now++;
    if (!now->known) {
        (void)snprintf(out, size, "Nothing is recommended: %s.", now->note);
        return;
    }
    const struct whatif_row *best = best_change(a, now->ns);
    const double scattered = now->ns_at_worst / now->ns;
    char gain[TEXT_BYTES];
    (void)snprintf(gain, sizeof gain, "the job is then %.2f times as fast",
                   best ? now->ns / best->ns : 1);
    if (best && best->question == WHATIF_WINDOWS)
        (void)snprintf(out, size, "Deal the accesses to %.0f windows: %s.", best->value, gain);
    else if (best && best->question == WHATIF_SCOPES)
        (void)snprintf(out, size, "Make %.0f passes over scopes: %s.", best->value, gain);
    else if (best && best->question == WHATIF_BLOCKS)
        (void)snprintf(out, size, "Run %.0f blocks on an SM at a time: %s.", best->value, gain);
    else if (best)
        (void)snprintf(
            out, size,
            "Sort the accesses by page in buffers of %.0f: %s, without the time to sort.",
            best->value, gain);
    else if (scattered > LEAST_GAIN)
        (void)snprintf(
            out, size,
            "Keep the memory of the job contiguous: scattered memory takes %.2f times as "
            "long.",
            scattered);
    else
        (void)snprintf(out, size,
                       "Leave the job as it is: no change makes it more than %.0f %% faster.",
                       100 * (LEAST_GAIN - 1));
}

/* ---- text ---- */

static bool print_text(const struct fingerprint *fp, const struct whatif_answer *a, FILE *out)
{
    char bytes[FORMAT_SIZE_BYTES];
    char advice[WHATIF_NOTE_BYTES + TEXT_BYTES];
    recommend(a, advice, sizeof advice);
    (void)fprintf(out, "%s\n\n", advice);
    (void)fprintf(out,
                  "%s (%s fingerprint), TLBs simulated on %llu accesses of %llu records over %s\n",
                  fp->gpu.name, origin_name(fp->gpu.origin), (unsigned long long)a->accesses,
                  (unsigned long long)a->records, format_size(a->bytes, bytes));
    left_out_print(&a->left_out, a->records, out);
    if (!a->refused)
        print_costs(a, out);
    for (uint32_t i = 0; i < a->row_count; i++)
        print_row(&a->rows[i], out);
    return ferror(out) == 0;
}

/* ---- JSON ---- */

static void write_row(struct json_writer *t, const struct whatif_row *r)
{
    json_writer_open(t, NULL, '{');
    json_writer_text(t, "question", whatif_question_name(r->question));
    if (r->known) {
        json_writer_real(t, "value", r->value);
        json_writer_real(t, "ns", r->ns);
        json_writer_real(t, "ns_at_worst", r->ns_at_worst);
        json_writer_real(t, "gbps", r->gbps);
        json_writer_real(t, "walk_share", r->walk_share);
        json_writer_text(t, "bound", bound_name(r->bound));
    }
    json_writer_bool(t, "known", r->known);
    json_writer_text(t, "note", r->note);
    json_writer_close(t, '}');
}

static bool print_json(const struct fingerprint *fp, const struct whatif_answer *a, FILE *out)
{
    struct json_writer t;
    char advice[WHATIF_NOTE_BYTES + TEXT_BYTES];
    recommend(a, advice, sizeof advice);
    json_writer_begin(&t, 0);
    t.indent = 2;
    json_writer_open(&t, NULL, '{');
    json_writer_text(&t, "recommendation", advice);
    json_writer_text(&t, "gpu", fp->gpu.name);
    json_writer_text(&t, "origin", origin_name(fp->gpu.origin));
    json_writer_text(&t, "walks", "simulated");
    json_writer_u64(&t, "accesses", a->accesses);
    json_writer_u64(&t, "records", a->records);
    json_writer_u64(&t, "bytes", a->bytes);
    left_out_write(&t, &a->left_out, a->records);
    json_writer_bool(&t, "refused", a->refused);
    if (!a->refused) {
        json_writer_real(&t, "memory_ns", a->memory_ns);
        json_writer_real(&t, "miss_ns", a->miss_ns);
        json_writer_real(&t, "scattered_factor", a->scattered_factor);
    }
    json_writer_open(&t, "rows", '[');
    for (uint32_t i = 0; i < a->row_count; i++)
        write_row(&t, &a->rows[i]);
    json_writer_close(&t, ']');
    json_writer_close(&t, '}');
    return json_writer_print(&t, out, NULL) == STATUS_OK;
}

/* ---- the command ---- */

static bool read_question(struct option_list *l, struct whatif_options *o)
{
    const char *name;
    if (!option_text(l, "--only", &name))
        return false;
    for (uint32_t q = 0; q < WHATIF_QUESTION_COUNT; q++) {
        if (strcmp(name, whatif_question_name((enum whatif_question)q)) == 0) {
            o->questions |= 1u << q;
            return true;
        }
    }
    (void)fprintf(stderr, "reach-lab what-if: unknown question \"%s\"; see --help\n", name);
    l->failed = true;
    return false;
}

static bool read_options(struct option_list *l, struct whatif_options *o, bool *as_json)
{
    uint64_t blocks = 0;
    *as_json = false;
    for (int left = l->argc + 1; left != l->argc;) {
        left = l->argc;
        (void)option_real(l, "--contiguous", &o->contiguous);
        (void)option_real(l, "--in-reach-gbps", &o->in_reach_gbps);
        (void)option_bytes(l, "--reserve", &o->reserve_bytes);
        (void)option_count(l, "--launch-accesses", &o->launch_accesses);
        (void)option_real(l, "--input-bytes", &o->input_bytes);
        (void)option_real(l, "--output-bytes", &o->output_bytes);
        if (option_count(l, "--blocks", &blocks))
            o->sm_blocks = blocks < UINT32_MAX ? (uint32_t)blocks : UINT32_MAX;
        o->cold = option_flag(l, "--cold") || o->cold;
        *as_json = option_flag(l, "--json") || *as_json;
        (void)read_question(l, o);
    }
    return option_end(l, 2);
}

enum status whatif_load_fingerprint(const char *path, struct fingerprint *out, struct err *err)
{
    json_error_t why;
    json_t *json = json_load_file(path, 0, &why);
    enum status s;
    if (!json)
        return err_set(err, STATUS_CORRUPT, "cannot read the fingerprint %s: %s", path, why.text);
    s = fingerprint_from_json(json, out, err);
    json_decref(json);
    return s;
}

static enum status print_answer(const struct fingerprint *fp, const struct whatif_answer *a,
                                bool as_json)
{
    if (!(as_json ? print_json : print_text)(fp, a, stdout))
        return STATUS_IO;
    if (!a->refused)
        return STATUS_OK;
    (void)fprintf(stderr,
                  "reach-lab what-if: %s, more than %.0f %%: nothing is recommended; trace the job "
                  "with plain loads and stores\n",
                  a->rows[0].note, 100 * WHATIF_MOST_LEFT_OUT);
    return STATUS_NOT_APPLICABLE;
}

int whatif_command(int argc, char **argv)
{
    struct option_list l = {argc, argv, "what-if", false};
    struct whatif_options options = {.contiguous = -1};
    struct fingerprint *fp = NULL;
    struct whatif_answer *answer = NULL;
    struct trace trace = {0};
    struct err err = {0};
    bool as_json;
    enum status s;
    if (!read_options(&l, &options, &as_json))
        return LAB_ERROR;
    fp = calloc(1, sizeof *fp);
    answer = calloc(1, sizeof *answer);
    s = fp && answer ? whatif_load_fingerprint(l.argv[0], fp, &err)
                     : err_set(&err, STATUS_NO_MEMORY, "cannot allocate the answer: out of memory");
    if (s == STATUS_OK && !option_load_trace(&l, l.argv[1], &trace))
        s = STATUS_IO;
    if (s == STATUS_OK)
        s = whatif_ask(fp, &trace, &options, answer, &err);
    if (err.status != STATUS_OK || !fp || !answer)
        (void)fprintf(stderr, "reach-lab what-if: %s\n%s%s%s", err.text,
                      err.hint ? "  next step: " : "", err.hint ? err.hint : "",
                      err.hint ? "\n" : "");
    else if (s == STATUS_OK)
        s = print_answer(fp, answer, as_json);
    trace_free(&trace);
    free(answer);
    free(fp);
    return s == STATUS_OK ? LAB_OK : LAB_ERROR;
}
