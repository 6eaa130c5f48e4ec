/* mosaic_figures.c: see mosaic_figures.h. */
#include "clients/lab/papers/mosaic/mosaic_figures.h"

#include <stdlib.h>

enum { PERCENT = 100, SHRINK = 4 };

static struct mosaic_case *new_cases(uint32_t count, struct err *err)
{
    struct mosaic_case *cases = calloc(count, sizeof *cases);
    if (!cases)
        (void)err_set(err, STATUS_NO_MEMORY, "cannot allocate the simulations: out of memory");
    return cases;
}

/* ---- figure 3: page sizes without paging ---- */

enum status mosaic_page_sizes(struct mosaic_report *r, struct err *err)
{
    enum { DESIGNS = 3, COUNT = GEN_MOSAIC_APPS * DESIGNS };
    struct mosaic_case *cases = new_cases(COUNT, err);
    double base = 0;
    double large = 0;
    if (!cases)
        return STATUS_NO_MEMORY;
    for (uint32_t i = 0; i < COUNT; i++) {
        const struct mosaic_workload w = mosaic_workload(i / DESIGNS);
        cases[i].run = mosaic_workload_run(&w, (enum mosaic_design)(i % DESIGNS));
    }
    const enum status s = mosaic_run_cases(cases, COUNT, err);
    mosaic_report_row(r, "     of the ideal TLB's speed, without paging:  4 KiB   2 MiB\n");
    for (uint32_t i = 0; i < COUNT && s == STATUS_OK; i += DESIGNS) {
        const double ideal = mosaic_ipc(&cases[i].result, 0);
        const double of_base = mosaic_ipc(&cases[i + MOSAIC_BASE].result, 0) / ideal;
        const double of_large = mosaic_ipc(&cases[i + MOSAIC_LARGE].result, 0) / ideal;
        const struct gen_app *app = gen_mosaic_app(i / DESIGNS);
        mosaic_report_row(r, "     %-6s %-10s %28.3f %7.3f\n", app->name, app->class, of_base,
                          of_large);
        base += (1 - of_base) / GEN_MOSAIC_APPS;
        large += (1 - of_large) / GEN_MOSAIC_APPS;
    }
    if (s == STATUS_OK) {
        mosaic_report_number(r, "M1", "4 KiB loses (the generator is fitted to it)", PERCENT * base,
                             "%", "48.1", 40, 56);
        mosaic_report_number(r, "M1", "2 MiB loses", PERCENT * large, "%", "< 2", -5, 5);
    }
    free(cases);
    return s;
}

/* ---- figure 4: far faults while running ---- */

enum { PAGING_SIZES = 3 };
enum { BASE_THERE, BASE_COMES, LARGE_THERE, LARGE_COMES, PAGING_RUNS };
static const uint32_t paging_sizes[PAGING_SIZES] = {1, 2, 5};

/* Describes one pass over a quarter of the data. */
static struct mosaic_run paging_run(uint32_t app, uint32_t copies, uint32_t kind)
{
    const struct mosaic_workload w = mosaic_workload((copies - 1) * GEN_MOSAIC_APPS + app);
    struct mosaic_run run =
        mosaic_workload_run(&w, kind >= LARGE_THERE ? MOSAIC_LARGE : MOSAIC_BASE);
    struct gen_layout l;
    gen_mosaic_place(gen_mosaic_app(app), run.cores[0] * MOSAIC_WARPS, SHRINK, &l);
    run.warm = 0;
    run.shrink = SHRINK;
    run.quota = mosaic_pass_steps(&l);
    run.mmu.lazy = kind == BASE_COMES || kind == LARGE_COMES;
    return run;
}

static double mean_cycles(const struct mosaic_case *c)
{
    double sum = 0;
    for (uint32_t a = 0; a < c->run.app_count; a++)
        sum += (double)c->result.cycles[a] / c->run.app_count;
    return sum;
}

/* Returns the cycles of all passes of a run. Pages arrive in the first pass and are present in
 * later passes. */
static double run_cycles(const struct mosaic_case *first, const struct mosaic_case *other)
{
    const double others = gen_mosaic_app(first->run.apps[0])->passes - 1.0;
    return mean_cycles(first) + others * mean_cycles(other);
}

enum status mosaic_paging(struct mosaic_report *r, struct err *err)
{
    enum { COUNT = GEN_MOSAIC_APPS * PAGING_SIZES * PAGING_RUNS };
    struct mosaic_case *cases = new_cases(COUNT, err);
    double base[PAGING_SIZES] = {0};
    double large[PAGING_SIZES] = {0};
    if (!cases)
        return STATUS_NO_MEMORY;
    for (uint32_t i = 0; i < COUNT; i++)
        cases[i].run = paging_run(i / PAGING_RUNS / PAGING_SIZES,
                                  paging_sizes[i / PAGING_RUNS % PAGING_SIZES], i % PAGING_RUNS);
    const enum status s = mosaic_run_cases(cases, COUNT, err);
    for (uint32_t i = 0; i < COUNT && s == STATUS_OK; i += PAGING_RUNS) {
        const uint32_t size = i / PAGING_RUNS % PAGING_SIZES;
        const struct mosaic_case *c = &cases[i];
        const double there = run_cycles(&c[BASE_THERE], &c[BASE_THERE]);
        const double base_comes = run_cycles(&c[BASE_COMES], &c[BASE_THERE]);
        const double large_comes = run_cycles(&c[LARGE_COMES], &c[LARGE_THERE]);
        base[size] += PERCENT * (1 - there / base_comes) / GEN_MOSAIC_APPS;
        large[size] += PERCENT * (1 - base_comes / large_comes) / GEN_MOSAIC_APPS;
    }
    free(cases);
    if (s != STATUS_OK)
        return s;
    mosaic_report_number(r, "M2", "paging 4 KiB costs, 1 application", base[0], "%", "40.0", 25,
                         55);
    mosaic_report_number(r, "M2", "paging 4 KiB costs, 5 applications", base[2], "%", "82.3", 70,
                         92);
    mosaic_report_number(r, "M3", "2 MiB instead of 4 KiB costs, 1 application", large[0], "%",
                         "92.5", 80, PERCENT);
    mosaic_report_number(r, "M3", "2 MiB instead of 4 KiB costs, 2 applications", large[1], "%",
                         "98.0", 93, PERCENT);
    mosaic_report_number(r, "M3", "2 MiB instead of 4 KiB costs, 5 applications", large[2], "%",
                         "99.8", 98, PERCENT);
    mosaic_report_statement(r, "M3", "rising", large[0] < large[1] && large[1] < large[2]);
    return STATUS_OK;
}

/* ---- figures 8, 9, 11, 12, 13: all workloads ---- */

enum { IDEAL, BASE, MOSAIC, DESIGNS };
static const enum mosaic_design designs[DESIGNS] = {MOSAIC_IDEAL, MOSAIC_BASE, MOSAIC_MOSAIC};

struct all_cases {
    struct mosaic_case cases[MOSAIC_WORKLOADS][DESIGNS];
    const struct mosaic_alone *alone;
};

/* Means over workloads of one kind. */
struct means {
    double gain, below_ideal, over_copied, paging;
};

static struct means mean_gains(const struct all_cases *all, uint32_t first, uint32_t end)
{
    struct means m = {0};
    for (uint32_t i = first; i < end; i++) {
        const struct mosaic_case *c = all->cases[i];
        const double ideal = mosaic_weighted(&c[IDEAL], all->alone, MOSAIC_PAGED, 0);
        const double base = mosaic_weighted(&c[BASE], all->alone, MOSAIC_PAGED, 0);
        const double copied = mosaic_weighted(&c[BASE], all->alone, MOSAIC_COPIED, 0);
        const double mosaic = mosaic_weighted(&c[MOSAIC], all->alone, MOSAIC_PAGED, 0);
        const double share = PERCENT / (double)(end - first);
        m.gain += (mosaic / base - 1) * share;
        m.below_ideal += (1 - mosaic / ideal) * share;
        m.over_copied += (mosaic / copied - 1) * share;
        m.paging += (1 - base / copied) * share;
    }
    return m;
}

static void print_sizes(const struct all_cases *all, const struct mosaic_report *r)
{
    mosaic_report_row(r, "     over GPU-MMU, by applications:      Mosaic   below ideal\n");
    for (uint32_t n = 1; n <= MOSAIC_MAX_APPS; n++) {
        const struct means m = mean_gains(all, (n - 1) * GEN_MOSAIC_APPS, n * GEN_MOSAIC_APPS);
        mosaic_report_row(r, "     homogeneous    %u %21.1f%% %12.1f%%\n", n, m.gain,
                          m.below_ideal);
    }
    for (uint32_t n = 2; n <= MOSAIC_MAX_APPS; n++) {
        const uint32_t first = MOSAIC_HOMOGENEOUS + (n - 2) * MOSAIC_MIXES;
        const struct means m = mean_gains(all, first, first + MOSAIC_MIXES);
        mosaic_report_row(r, "     heterogeneous  %u %21.1f%% %12.1f%%\n", n, m.gain,
                          m.below_ideal);
    }
}

static void weighted_targets(const struct all_cases *all, struct mosaic_report *r)
{
    const struct means same = mean_gains(all, 0, MOSAIC_HOMOGENEOUS);
    const struct means mixed = mean_gains(all, MOSAIC_HOMOGENEOUS, MOSAIC_WORKLOADS);
    print_sizes(all, r);
    mosaic_report_number(r, "M5", "homogeneous: Mosaic over GPU-MMU", same.gain, "%", "+55.5", 35,
                         80);
    mosaic_report_number(r, "M5", "homogeneous: below the ideal TLB", same.below_ideal, "%", "6.8",
                         -12, 12);
    mosaic_report_number(r, "M6", "heterogeneous: Mosaic over GPU-MMU", mixed.gain, "%", "+29.7",
                         15, 50);
    mosaic_report_number(r, "M6", "heterogeneous: below the ideal TLB", mixed.below_ideal, "%",
                         "15.4", 8, 25);
    mosaic_report_statement(r, "M6", "heterogeneous workloads gain less", mixed.gain < same.gain);
    mosaic_report_number(r, "M8", "homogeneous: over GPU-MMU without paging", same.over_copied, "%",
                         "+58.5", 58.5 - 25, 58.5 + 25);
    mosaic_report_number(r, "M8", "heterogeneous: over GPU-MMU without paging", mixed.over_copied,
                         "%", "+47.5", 47.5 - 25, 47.5 + 25);
    mosaic_report_number(r, "M8", "paging alone costs GPU-MMU, homogeneous", same.paging, "%",
                         "little", -10, 10);
    mosaic_report_number(r, "M8", "paging alone costs GPU-MMU, heterogeneous", mixed.paging, "%",
                         "little", -10, 10);
}

static void application_targets(const struct all_cases *all, struct mosaic_report *r)
{
    double count = 0;
    double gain = 0;
    double sum = 0;
    double least = 1e9;
    double most = 0;
    double near[3] = {0};
    for (uint32_t i = MOSAIC_HOMOGENEOUS; i < MOSAIC_WORKLOADS; i++) {
        const struct mosaic_case *c = all->cases[i];
        for (uint32_t a = 0; a < c->run.app_count; a++) {
            const double mosaic = mosaic_whole_ipc(&c[MOSAIC], a, MOSAIC_PAGED, 0);
            const double times = mosaic / mosaic_whole_ipc(&c[BASE], a, MOSAIC_PAGED, 0);
            const double of_ideal = mosaic / mosaic_whole_ipc(&c[IDEAL], a, MOSAIC_PAGED, 0);
            count++;
            gain += times > 1;
            sum += times;
            least = times < least ? times : least;
            most = times > most ? times : most;
            for (uint32_t k = 0; k < 3; k++)
                near[k] += of_ideal >= 0.9 - 0.1 * k;
        }
    }
    mosaic_report_row(
        r, "     %.0f applications, from %.1f%% to %.1f%% of GPU-MMU (paper: 350, 66.3 to 860)\n",
        count, PERCENT * least, PERCENT * most);
    mosaic_report_number(r, "M7", "applications that gain", PERCENT * gain / count, "%", "93.6", 85,
                         PERCENT);
    mosaic_report_number(r, "M7", "their mean of GPU-MMU", PERCENT * sum / count, "%", "133.0", 115,
                         160);
    mosaic_report_number(r, "M7", "that reach 90 % of ideal", PERCENT * near[0] / count, "%", "48",
                         33, 63);
    mosaic_report_number(r, "M7", "that reach 80 % of ideal", PERCENT * near[1] / count, "%",
                         "68.9", 53.9, 83.9);
    mosaic_report_number(r, "M7", "that reach 70 % of ideal", PERCENT * near[2] / count, "%",
                         "82.3", 67.3, 97.3);
}

static double share(uint64_t part, uint64_t all)
{
    return all > 0 ? PERCENT * (double)part / (double)all : 0;
}

static void tlb_targets(const struct all_cases *all, struct mosaic_report *r)
{
    double hit[MOSAIC_MAX_APPS + 1] = {0};
    double count[MOSAIC_MAX_APPS + 1] = {0};
    double mosaic[2] = {0};
    double limited = 0;
    struct mosaic_mmu_counts sum = {0};
    for (uint32_t i = 0; i < MOSAIC_WORKLOADS; i++) {
        const struct mosaic_mmu_counts *b = &all->cases[i][BASE].result.mmu;
        const struct mosaic_mmu_counts *m = &all->cases[i][MOSAIC].result.mmu;
        const double l2 = PERCENT - share(b->l2_misses, b->l2_lookups);
        const uint32_t n = all->cases[i][BASE].run.app_count;
        if (l2 >= 98)
            continue;
        limited++;
        hit[n] += l2;
        count[n]++;
        mosaic[0] += share(m->l1_misses, m->l1_lookups);
        mosaic[1] += share(m->l2_misses, m->l2_lookups);
        sum.l2_lookups += m->l2_lookups;
        sum.l2_misses += m->l2_misses;
        sum.l2_large_lookups += m->l2_large_lookups;
        sum.l2_large_misses += m->l2_large_misses;
    }
    bool falling = true;
    for (uint32_t n = 1; n <= MOSAIC_MAX_APPS; n++) {
        hit[n] /= count[n] > 0 ? count[n] : 1;
        mosaic_report_row(r, "     GPU-MMU's second level hits with %u applications: %.1f%%\n", n,
                          hit[n]);
        falling = falling && (n < 3 || hit[n] < hit[n - 1]);
    }
    mosaic_report_row(
        r,
        "     Mosaic: %.0f%% of the second level's lookups and %.0f%% of its misses are for base "
        "pages\n",
        PERCENT - share(sum.l2_large_lookups, sum.l2_lookups),
        PERCENT - share(sum.l2_large_misses, sum.l2_misses));
    mosaic_report_number(r, "M9", "workloads with fewer than 98 % hits", limited, "", "214", 180,
                         235);
    mosaic_report_number(r, "M9", "GPU-MMU, second level hits, 2 applications", hit[2], "%", "81",
                         70, 90);
    mosaic_report_number(r, "M9", "GPU-MMU, second level hits, 5 applications", hit[5], "%", "62",
                         50, 72);
    mosaic_report_statement(r, "M9", "falling from 2 to 5", falling);
    mosaic_report_number(r, "M9", "Mosaic, first level misses", mosaic[0] / limited, "%", "< 1", 0,
                         2);
    mosaic_report_number(r, "M9", "Mosaic, second level misses", mosaic[1] / limited, "%", "< 1", 0,
                         2);
}

enum status mosaic_speedups(struct mosaic_report *r, struct err *err)
{
    struct all_cases *all = calloc(1, sizeof *all);
    if (!all)
        return err_set(err, STATUS_NO_MEMORY, "cannot allocate the simulations: out of memory");
    for (uint32_t i = 0; i < MOSAIC_WORKLOADS; i++) {
        const struct mosaic_workload w = mosaic_workload(i);
        for (uint32_t d = 0; d < DESIGNS; d++)
            all->cases[i][d].run = mosaic_workload_run(&w, designs[d]);
    }
    enum status s = mosaic_report_alone(r, err);
    all->alone = &r->alone;
    if (s == STATUS_OK)
        s = mosaic_run_cases(all->cases[0], MOSAIC_WORKLOADS * DESIGNS, err);
    if (s == STATUS_OK) {
        weighted_targets(all, r);
        application_targets(all, r);
        tlb_targets(all, r);
    }
    free(all);
    return s;
}
