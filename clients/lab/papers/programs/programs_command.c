/* programs_command.c: see programs_command.h. */
#include "clients/lab/papers/programs/programs_command.h"

#include "base/clock.h"
#include "clients/lab/exit_status.h"
#include "clients/lab/papers/programs/mechanisms.h"
#include "clients/lab/trace/options.h"
#include "clients/lab/whatif/whatif.h"
#include "clients/lab/whatif/whatif_command.h"

#include <stdio.h>
#include <string.h>

/* The papers report that less than a quarter of their instructions access memory. Recorders do not
 * count the others. */
enum { DEFAULT_GAP = 4, MOST_GAP = 255, MOST_MECHANISMS = 32 };

static double percent(uint64_t part, uint64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

static void print_result(const struct mechanism *m, const struct mechanism_result *r,
                         const struct mechanism_result *against)
{
    printf("%-18s %12llu %12llu %11llu %7.2f %%", m->name, (unsigned long long)r->cycles,
           (unsigned long long)r->instructions, (unsigned long long)r->lookups,
           percent(r->misses, r->lookups));
    if (m->against)
        printf("  %+7.1f %% to %-10s %s", percent(against->cycles, r->cycles) - 100, m->against,
               m->paper);
    (void)putchar('\n');
}

/* Counts the misses on the GPU of a fingerprint. */
static enum status run_gpu(const char *path, const struct trace *trace, struct err *err)
{
    const struct whatif_options options = {.contiguous = -1, .questions = 1 << WHATIF_AS_IT_IS};
    static struct fingerprint fp; /* too large for the stack */
    static struct whatif_answer a;
    enum status s = whatif_load_fingerprint(path, &fp, err);
    if (s == STATUS_OK)
        s = whatif_ask(&fp, trace, &options, &a, err);
    if (s == STATUS_OK && a.rows[0].known)
        printf("%s: %.2f %% of %llu lines miss all levels; %.4f ns per line in contiguous memory, "
               "%.4f ns in scattered memory\n",
               fp.gpu.name, 100 * a.rows[0].walk_share, (unsigned long long)a.accesses,
               a.rows[0].ns, a.rows[0].ns_at_worst);
    else if (s == STATUS_OK)
        s = err_set(err, STATUS_NOT_APPLICABLE, "%s", a.rows[0].note);
    return s;
}

/* Runs one machine and the machine that it is compared with, or all machines. */
static enum status run_machines(const char *name, const struct trace *trace, uint32_t gap,
                                struct err *err)
{
    struct mechanism_result results[MOST_MECHANISMS] = {0};
    bool done[MOST_MECHANISMS] = {false};
    uint32_t count;
    const struct mechanism *const m = mechanisms(&count);
    const bool all = strcmp(name, "all") == 0;
    const uint32_t only = mechanism_find(name);
    enum status s = STATUS_OK;
    if (!all && only == UINT32_MAX && strstr(name, ".json"))
        return run_gpu(name, trace, err);
    if (!all && only == UINT32_MAX)
        return err_set(err, STATUS_INVALID_ARGUMENT,
                       "unknown machine \"%s\": use all, a row of all, or FINGERPRINT.json", name);
    printf("%-18s %12s %12s %11s %9s  %s\n", "machine", "cycles", "instructions", "TLB lookups",
           "misses", "speed; the paper's own programs");
    for (uint32_t i = 0; i < count && s == STATUS_OK; i++) {
        const uint32_t against = m[i].against ? mechanism_find(m[i].against) : i;
        if (!all && i != only)
            continue;
        if (!done[against])
            s = mechanism_run(against, trace, gap, &results[against], err);
        done[against] = true;
        if (s == STATUS_OK && !done[i])
            s = mechanism_run(i, trace, gap, &results[i], err);
        done[i] = true;
        if (s == STATUS_OK)
            print_result(&m[i], &results[i], &results[against]);
    }
    return s;
}

int programs_run_command(int argc, char **argv)
{
    struct option_list l = {argc, argv, "run", false};
    struct trace trace = {0};
    struct err err = {0};
    uint64_t gap = DEFAULT_GAP;
    enum status s = STATUS_IO;
    (void)option_count(&l, "--gap", &gap);
    if (gap > MOST_GAP)
        s = err_set(&err, STATUS_INVALID_ARGUMENT, "--gap must be 0 to %d", MOST_GAP);
    else if (option_end(&l, 2) && option_load_trace(&l, l.argv[1], &trace))
        s = run_machines(l.argv[0], &trace, (uint32_t)gap, &err);
    if (err.status != STATUS_OK)
        (void)fprintf(stderr, "reach-lab-papers run: %s\n", err.text);
    trace_free(&trace);
    return s == STATUS_OK ? LAB_OK : LAB_ERROR;
}

/* ---- bench ---- */

int programs_bench_command(int argc, char **argv)
{
    struct option_list l = {argc, argv, "bench", false};
    nsec_t spent = 0;
    uint64_t done = 0;
    for (int i = 0; i < argc; i++) {
        struct trace trace = {0};
        struct mechanism_result r = {0};
        struct err err = {0};
        const bool good = option_load_trace(&l, argv[i], &trace);
        const nsec_t start = clock_thread();
        if (good)
            (void)mechanism_run(mechanism_find("augmented"), &trace, DEFAULT_GAP, &r, &err);
        const nsec_t took = clock_thread() - start;
        trace_free(&trace);
        if (err.status != STATUS_OK)
            (void)fprintf(stderr, "reach-lab-papers bench: %s: %s\n", argv[i], err.text);
        if (!good || err.status != STATUS_OK)
            return LAB_ERROR;
        printf("%6.1f M warp instructions/s  %s\n", (double)r.instructions / (double)took * 1e3,
               argv[i]);
        spent += took;
        done += r.instructions;
    }
    printf("%6.1f M warp instructions/s  all\n", (double)done / (double)spent * 1e3);
    return LAB_OK;
}
