/* mosaic_sweeps.c: see mosaic_sweeps.h. */
#include "clients/lab/papers/mosaic/mosaic_sweeps.h"

#include <stdio.h>
#include <stdlib.h>

enum { PERCENT = 100, MAX_POINTS = 8 };
/* One workload in 8 is run. The part has several workloads of each number of applications and of
 * both kinds. */
enum { PART = 8 };
/* Cycles to copy a base page over its channel and by a bulk copy in DRAM. The channel reads and
 * writes 64-bit words, one per memory clock. */
static const double COPY_CYCLES = 2 * 512 / 1674e6 * 1020e6;
static const double BULK_COPY_CYCLES = 80e-9 * 1020e6;

static uint32_t workload_step(const struct mosaic_report *r)
{
    return r->whole ? 1 : PART;
}

/* ---- a sweep: the same workloads at each of some points ---- */

struct sweep {
    const struct mosaic_alone *alone;
    uint32_t points, workloads;
    struct mosaic_case *cases; /* [point][workload] */
};

/* Sets up all runs. The caller then changes one parameter per point. */
static enum status sweep_new(struct sweep *s, uint32_t points, enum mosaic_design design,
                             uint32_t part, struct err *err)
{
    s->points = points;
    s->workloads = (MOSAIC_WORKLOADS + part - 1) / part;
    s->cases = calloc((size_t)points * s->workloads, sizeof *s->cases);
    if (!s->cases)
        return err_set(err, STATUS_NO_MEMORY, "cannot allocate a sweep: out of memory");
    for (uint32_t i = 0; i < points * s->workloads; i++) {
        const struct mosaic_workload w = mosaic_workload(i % s->workloads * part);
        s->cases[i].run = mosaic_workload_run(&w, design);
    }
    return STATUS_OK;
}

static enum status sweep_run(struct mosaic_report *r, struct sweep *s, struct err *err)
{
    const enum status status = mosaic_report_alone(r, err);
    s->alone = &r->alone;
    return status == STATUS_OK ? mosaic_run_cases(s->cases, s->points * s->workloads, err) : status;
}

/* Returns the mean weighted speed-up at a point. Workloads that do not fit memory at some point are
 * left out. */
static double sweep_mean(const struct sweep *s, uint32_t point, double copy_cycles)
{
    double sum = 0;
    double count = 0;
    for (uint32_t i = 0; i < s->workloads; i++) {
        const struct mosaic_case *c = &s->cases[point * s->workloads + i];
        bool full = false;
        for (uint32_t p = 0; p < s->points; p++)
            full = full || s->cases[p * s->workloads + i].result.full;
        if (full)
            continue;
        sum += mosaic_weighted(c, s->alone, MOSAIC_PAGED,
                               copy_cycles * (double)c->result.frames.copied_pages);
        count++;
    }
    return count > 0 ? sum / count : 0;
}

/* ---- figures 14 and 15 ---- */

enum which_entries { L1_BASE, L2_BASE, L1_LARGE, L2_LARGE, WHICH };
static const uint32_t entries[WHICH][MAX_POINTS] = {
    {8, 16, 32, 64, 128, 256}, {64, 128, 256, 512, 1024}, {4, 8, 16, 32}, {32, 64, 128, 256, 512}};
static const uint32_t paper_entries[WHICH] = {128, 512, 16, 256};
static const char *const entries_names[WHICH] = {"L1 base", "L2 base", "L1 large", "L2 large"};

static void set_entries(struct mosaic_mmu_desc *d, enum which_entries which, uint32_t count)
{
    uint32_t *const fields[WHICH] = {&d->l1_base, &d->l2_base, &d->l1_large, &d->l2_large};
    *fields[which] = count;
}

struct curve {
    uint32_t count;
    double value[MAX_POINTS]; /* relative to the paper's entries */
};

static enum status entries_curve(struct mosaic_report *r, enum which_entries which,
                                 enum mosaic_design design, struct curve *out, struct err *err)
{
    struct sweep s = {0};
    uint32_t own = 0;
    out->count = 0;
    while (out->count < MAX_POINTS && entries[which][out->count] > 0)
        out->count++;
    enum status status = sweep_new(&s, out->count, design, workload_step(r), err);
    for (uint32_t i = 0; status == STATUS_OK && i < out->count * s.workloads; i++)
        set_entries(&s.cases[i].run.mmu, which, entries[which][i / s.workloads]);
    if (status == STATUS_OK)
        status = sweep_run(r, &s, err);
    for (uint32_t p = 0; status == STATUS_OK && p < out->count; p++) {
        out->value[p] = sweep_mean(&s, p, 0);
        own = entries[which][p] == paper_entries[which] ? p : own;
    }
    mosaic_report_row(r, "     %-8s %-8s", entries_names[which],
                      design == MOSAIC_BASE ? "GPU-MMU" : "Mosaic");
    const double one = out->value[own];
    for (uint32_t p = 0; p < out->count; p++) {
        out->value[p] /= one;
        mosaic_report_row(r, " %4u: %.3f", entries[which][p], out->value[p]);
    }
    mosaic_report_row(r, "\n");
    free(s.cases);
    return status;
}

/* A smaller difference is due to the order of events, not to the entries. */
static const double NOISE = 0.001;

/* Returns whether more entries are never worse. */
static bool is_rising(const struct curve *c)
{
    for (uint32_t p = 1; p < c->count; p++) {
        if (c->value[p] < c->value[p - 1] - NOISE)
            return false;
    }
    return true;
}

enum status mosaic_entries(struct mosaic_report *r, struct err *err)
{
    struct curve base[WHICH];
    struct curve mosaic[WHICH];
    for (enum which_entries e = L1_BASE; e < WHICH; e++) {
        enum status s = entries_curve(r, e, MOSAIC_BASE, &base[e], err);
        if (s == STATUS_OK)
            s = entries_curve(r, e, MOSAIC_MOSAIC, &mosaic[e], err);
        if (s != STATUS_OK)
            return s;
    }
    const double lost = PERCENT * (1 - mosaic[L1_BASE].value[0]);
    const double base_lost = PERCENT * (1 - base[L1_BASE].value[0]);
    mosaic_report_number(r, "M10", "8 base entries in L1 cost Mosaic", lost, "%", "7.6", 3, 14);
    mosaic_report_number(r, "M10", "8 base entries in L1 cost GPU-MMU", base_lost, "%", "steep",
                         2 * lost, PERCENT);
    mosaic_report_statement(r, "M10", "more base entries in L1: faster, both",
                            is_rising(&base[L1_BASE]) && is_rising(&mosaic[L1_BASE]));
    mosaic_report_statement(r, "M10", "more base entries in L2: faster, both",
                            is_rising(&base[L2_BASE]) && is_rising(&mosaic[L2_BASE]));
    for (enum which_entries e = L1_LARGE; e <= L2_LARGE; e++) {
        double most = 0;
        for (uint32_t p = 0; p < base[e].count; p++)
            most = base[e].value[p] > 1 + most   ? base[e].value[p] - 1
                   : 1 - base[e].value[p] > most ? 1 - base[e].value[p]
                                                 : most;
        mosaic_report_number(r, "M11",
                             e == L1_LARGE ? "GPU-MMU moves with large entries of L1 by"
                                           : "GPU-MMU moves with large entries of L2 by",
                             PERCENT * most, "%", "0", 0, 1);
        mosaic_report_statement(r, "M11",
                                e == L1_LARGE ? "fewer large entries in L1 cost Mosaic"
                                              : "fewer large entries in L2 cost Mosaic",
                                mosaic[e].value[0] < 1 - NOISE);
    }
    return STATUS_OK;
}

/* ---- figure 16 ---- */

/* Runs all points without compaction, then all points with compaction. */
static enum status run_fragmented(struct mosaic_report *r, struct sweep *s, const double *index,
                                  const double *occupancy, uint32_t points, struct err *err)
{
    const enum status status = sweep_new(s, 2 * points, MOSAIC_MOSAIC, workload_step(r), err);
    for (uint32_t i = 0; status == STATUS_OK && i < 2 * points * s->workloads; i++) {
        struct mosaic_run *run = &s->cases[i].run;
        run->compact = i / s->workloads >= points;
        run->fragmented = index[i / s->workloads % points];
        run->occupancy = occupancy[i / s->workloads % points];
    }
    return status == STATUS_OK ? sweep_run(r, s, err) : status;
}

struct gains {
    double none; /* without compaction, relative to memory without fragmentation */
    double word, bulk, free;
};

/* Numbers in percent. The gains of compaction are relative to no compaction at the same point. */
static struct gains gains_at(const struct sweep *s, uint32_t point, double whole)
{
    const uint32_t points = s->points / 2;
    const double none = sweep_mean(s, point, 0);
    return (struct gains){PERCENT * (none / whole - 1),
                          PERCENT * (sweep_mean(s, points + point, COPY_CYCLES) / none - 1),
                          PERCENT * (sweep_mean(s, points + point, BULK_COPY_CYCLES) / none - 1),
                          PERCENT * (sweep_mean(s, points + point, 0) / none - 1)};
}

static void print_gains(const struct mosaic_report *r, const char *name, double x,
                        const struct gains *g)
{
    mosaic_report_row(
        r,
        "     %s %5.1f%%: no CAC %+6.2f%%; over it CAC %+6.2f%%, CAC-BC %+6.2f%%, ideal CAC "
        "%+6.2f%%\n",
        name, PERCENT * x, g->none, g->word, g->bulk, g->free);
}

static enum status sweep_index(struct mosaic_report *r, struct err *err)
{
    enum { POINTS = 6 };
    static const double index[POINTS] = {0, 0.5, 0.85, 0.9, 0.95, 1};
    static const double half[POINTS] = {0.5, 0.5, 0.5, 0.5, 0.5, 0.5};
    struct gains g[POINTS];
    struct sweep s = {0};
    double most = 0;
    const enum status status = run_fragmented(r, &s, index, half, POINTS, err);
    for (uint32_t p = 0; p < POINTS && status == STATUS_OK; p++) {
        g[p] = gains_at(&s, p, sweep_mean(&s, 0, 0));
        print_gains(r, "index", index[p], &g[p]);
        most = index[p] < 0.9 && -g[p].none > most ? -g[p].none : most;
    }
    free(s.cases);
    if (status != STATUS_OK)
        return status;
    mosaic_report_number(r, "M12", "fragmentation below 90 % costs", most, "%", "minimal", 0, 3);
    mosaic_report_number(r, "M12", "CAC gains at 95 %", g[4].word, "%", "> 0", 1e-9, PERCENT);
    mosaic_report_statement(r, "M12", "CAC gains less at 100 %", g[5].word < g[4].word);
    return STATUS_OK;
}

static enum status sweep_occupancy(struct mosaic_report *r, struct err *err)
{
    enum { POINTS = 6 };
    static const double all[POINTS] = {1, 1, 1, 1, 1, 1};
    static const double occupancy[POINTS] = {0.01, 0.1, 0.25, 0.35, 0.5, 0.75};
    struct gains g[POINTS];
    struct sweep s = {0};
    const enum status status = run_fragmented(r, &s, all, occupancy, POINTS, err);
    for (uint32_t p = 0; p < POINTS && status == STATUS_OK; p++) {
        g[p] = gains_at(&s, p, sweep_mean(&s, 0, 0));
        print_gains(r, "occupancy", occupancy[p], &g[p]);
    }
    free(s.cases);
    if (status != STATUS_OK)
        return status;
    mosaic_report_statement(r, "M13", "CAC-BC pays up to 25 % occupancy",
                            g[0].bulk > 0 && g[1].bulk > 0 && g[2].bulk > 0);
    mosaic_report_statement(r, "M13", "its gain falls from 35 % on",
                            g[3].bulk > g[4].bulk && g[4].bulk > g[5].bulk);
    mosaic_report_statement(r, "M13", "it no longer pays at 50 %", g[4].bulk <= 0);
    return STATUS_OK;
}

enum status mosaic_compaction(struct mosaic_report *r, struct err *err)
{
    const enum status s = sweep_index(r, err);
    return s == STATUS_OK ? sweep_occupancy(r, err) : s;
}

/* ---- memory alone ---- */

/* Returns the mean bloat of the workloads that fit, in percent. Returns a negative number if out of
 * memory. */
static double mean_bloat(uint32_t first, uint32_t end, enum mosaic_design design, double index,
                         double occupancy, double *out_worst)
{
    double sum = 0;
    double count = 0;
    *out_worst = 0;
    for (uint32_t i = first; i < end; i++) {
        struct gen_layout layouts[MOSAIC_MAX_APPS];
        const struct mosaic_workload w = mosaic_workload(i);
        struct mosaic_run run = mosaic_workload_run(&w, design);
        bool full;
        run.fragmented = index;
        run.occupancy = occupancy;
        struct frames *f = mosaic_time_frames(&run, layouts, &full);
        if (!f)
            return -1;
        const double bloat =
            PERCENT * (design == MOSAIC_MOSAIC ? frames_most_bloat(f) : frames_bloat(f));
        frames_free(f);
        if (full)
            continue;
        *out_worst = bloat > *out_worst ? bloat : *out_worst;
        sum += bloat;
        count++;
    }
    return count > 0 ? sum / count : 0;
}

enum status mosaic_bloat(struct mosaic_report *r, struct err *err)
{
    enum { POINTS = 6 };
    static const double occupancy[POINTS] = {0.01, 0.1, 0.25, 0.35, 0.5, 0.75};
    static const double paper[POINTS] = {10.66, 7.56, 7.20, 5.22, 3.37, 2.22};
    static const char *const said[POINTS] = {"10.66", "7.56", "7.20", "5.22", "3.37", "2.22"};
    double bloat[POINTS];
    double worst = 0;
    bool falling = true;
    const double large = mean_bloat(0, GEN_MOSAIC_APPS, MOSAIC_LARGE, 0, 0, &worst);
    mosaic_report_number(r, "M4", "bloat with 2 MiB pages alone, mean", large, "%", "40.2", 25, 60);
    mosaic_report_number(r, "M4", "bloat with 2 MiB pages alone, worst", worst, "%", "367", 200,
                         1e4);
    for (uint32_t p = 0; p < POINTS; p++) {
        char what[64];
        bloat[p] = mean_bloat(0, MOSAIC_WORKLOADS, MOSAIC_MOSAIC, 1, occupancy[p], &worst);
        (void)snprintf(what, sizeof what, "Mosaic's bloat, index 1, occupancy %.0f %%",
                       PERCENT * occupancy[p]);
        mosaic_report_number(r, "M14", what, bloat[p], "%", said[p], paper[p] / 1.6,
                             paper[p] * 1.6);
        falling = falling && (p == 0 || bloat[p] < bloat[p - 1]);
    }
    mosaic_report_statement(r, "M14", "falling", falling);
    const double less = mean_bloat(0, MOSAIC_WORKLOADS, MOSAIC_MOSAIC, 0.8, 0.5, &worst);
    mosaic_report_number(r, "M14", "Mosaic's bloat, index 0.8, occupancy 50 %", less, "%", "< 1", 0,
                         1);
    if (large < 0 || less < 0 || bloat[0] < 0)
        return err_set(err, STATUS_NO_MEMORY,
                       "cannot allocate the simulated memory: out of memory");
    return STATUS_OK;
}

/* ---- section 3.1 ---- */

enum status mosaic_walk_cache(struct mosaic_report *r, struct err *err)
{
    struct sweep s = {0};
    enum status status = sweep_new(&s, 2, MOSAIC_BASE, r->whole ? 1 : 4, err);
    for (uint32_t i = 0; status == STATUS_OK && i < s.workloads; i++) {
        s.cases[i].run.mmu.l2_base = 0;
        s.cases[i].run.mmu.l2_large = 0;
        s.cases[i].run.mmu.walk_cache = 64;
    }
    if (status == STATUS_OK)
        status = sweep_run(r, &s, err);
    if (status == STATUS_OK)
        mosaic_report_number(r, "M15", "a second level instead of a walk cache gains",
                             PERCENT * (sweep_mean(&s, 1, 0) / sweep_mean(&s, 0, 0) - 1), "%",
                             "+14", 5, 25);
    free(s.cases);
    return status;
}
