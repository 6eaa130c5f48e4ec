/* pichai_command.c: see pichai_command.h. */
#include "clients/lab/papers/pichai/pichai_command.h"

#include "base/format_number.h"
#include "base/json_writer.h"
#include "clients/lab/exit_status.h"
#include "clients/lab/papers/engine/compact.h"
#include "clients/lab/papers/pichai/pichai_exact.h"
#include "clients/lab/papers/pichai/pichai_picture.h"
#include "clients/lab/papers/pichai/pichai_runs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 14, BAND_BYTES = 96 };
static const double UNBOUNDED = 1e8;

/* ---- targets ---- */

static const char *format_number(double v, char *out, size_t size)
{
    (void)snprintf(out, size,
                   !isfinite(v)    ? "-"
                   : fabs(v) >= 10 ? "%.0f"
                   : fabs(v) >= 1  ? "%.1f"
                                   : "%.2f",
                   v);
    return out;
}

static void print_band(const struct pichai_part *p)
{
    char low[BAND_BYTES];
    char high[BAND_BYTES];
    const char *over = p->over == EACH     ? " each"
                       : p->over == MEAN   ? " mean"
                       : p->over == OTHERS ? " each"
                                           : "";
    (void)snprintf(low, sizeof low, "%g", p->low);
    (void)snprintf(high, sizeof high, "%g", p->high);
    if (p->low < -UNBOUNDED)
        printf("at most %s", high);
    else if (p->high > UNBOUNDED)
        printf("at least %s", low);
    else if (p->low < p->high)
        printf("%s to %s", low, high);
    else
        printf("%s", low);
    if (p->over == AT_LEAST)
        printf(" in %u of %d", p->which, LAB_JOBS);
    printf("%s", over);
}

static bool covers_job(const struct pichai_part *p, uint32_t job)
{
    return p->over == ONE_JOB  ? job == p->which
           : p->over == OTHERS ? job != LAB_BFS && job != LAB_MUMMERGPU
                               : true;
}

static void print_part(const struct pichai_runs *runs, const struct pichai_target *t, uint32_t part)
{
    const struct pichai_part *p = &t->parts[part];
    char number[BAND_BYTES];
    printf("%-4s %-22s", part == 0 ? t->id : "", p->what);
    for (uint32_t job = 0; job < LAB_JOBS; job++)
        printf(" %7s", covers_job(p, job)
                           ? format_number(pichai_value(runs, p, job), number, sizeof number)
                           : "");
    if (p->over == ONE_JOB || p->over == OTHERS)
        printf(" %7s  ", "");
    else
        printf(" %7s  ", format_number(pichai_value(runs, p, LAB_JOBS), number, sizeof number));
    print_band(p);
    puts(pichai_part_holds(runs, p) ? "  yes" : "  no");
}

static bool target_holds(const struct pichai_runs *runs, const struct pichai_target *t)
{
    for (uint32_t i = 0; i < t->part_count; i++) {
        if (!pichai_part_holds(runs, &t->parts[i]))
            return false;
    }
    return true;
}

static const char *verdict_name(bool good)
{
    return good ? "reproduced" : "not reproduced";
}

static void print_target(const struct pichai_runs *runs, const struct pichai_target *t)
{
    for (uint32_t i = 0; i < t->part_count; i++)
        print_part(runs, t, i);
    printf("     figure %u: %s: %s\n", t->figure, t->paper, verdict_name(target_holds(runs, t)));
}

static void print_jobs(const char *first)
{
    printf("%-27s", first);
    for (uint32_t job = 0; job < LAB_JOBS; job++)
        printf(" %7.7s", lab_gen_work((enum lab_job)job)->name);
    puts("    mean");
}

enum { EXACT_TARGETS = 3 };

/* Prints U1 to U3. Returns the number that hold. */
static uint32_t check_exact(void)
{
    struct pichai_exact e = {0};
    const bool done = pichai_exact(&e);
    const bool walks = done && e.serial_loads == 12 && e.scheduled_loads == 7;
    const bool packing = done && e.stack_fetches == 6 && e.packed_fetches == 3 &&
                         e.packed_misses[0] == 2 && e.packed_misses[1] == 3 &&
                         e.packed_misses[2] == 2 && e.aware_misses == 2;
    const bool matrix = done && e.matrix_bits == 48 * 47 * 3;
    printf("U1   figure 8: %u loads one walk after the other, %u scheduled; 12 and 7 exactly: %s\n",
           e.serial_loads, e.scheduled_loads, verdict_name(walks));
    printf("U2   figure 19: %u fetches, packed %u; misses %u+%u+%u, TLB-aware %u in the first two; "
           "equal to the paper's 6, 3, 2+3+2, 2: %s\n",
           e.stack_fetches, e.packed_fetches, e.packed_misses[0], e.packed_misses[1],
           e.packed_misses[2], e.aware_misses, verdict_name(packing));
    printf("U3   section 8.2: the common page matrix takes %u bits; 48 x 47 x 3 exactly: %s\n",
           e.matrix_bits, verdict_name(matrix));
    return (uint32_t)walks + (uint32_t)packing + (uint32_t)matrix;
}

static bool is_named(const char *id, char *const *ids, int count)
{
    bool found = count == 0;
    for (int i = 0; i < count; i++)
        found = found || strcmp(id, ids[i]) == 0;
    return found;
}

static bool all_known(char *const *ids, int count)
{
    uint32_t targets;
    const struct pichai_target *t = pichai_targets(&targets);
    for (int i = 0; i < count; i++) {
        bool known = false;
        for (uint32_t k = 0; k < targets; k++)
            known = known || strcmp(t[k].id, ids[i]) == 0;
        if (!known) {
            (void)fprintf(stderr, "reach-lab-papers: unknown target %s; targets are P1 to P18\n",
                          ids[i]);
            return false;
        }
    }
    return true;
}

/* Reads the options and moves the other arguments to the front. Returns their number. After an
 * error, reports it and returns -1. */
static int read_options(int count, char **arguments, struct pichai_options *out)
{
    static const uint32_t most = 64;
    int kept = 0;
    for (int i = 0; i < count; i++) {
        char *name = arguments[i];
        uint32_t *number = strcmp(name, "--warps") == 0     ? &out->warps
                           : strcmp(name, "--gap") == 0     ? &out->gap_times
                           : strcmp(name, "--threads") == 0 ? &out->threads
                                                            : NULL;
        bool *flag = strcmp(name, "--json") == 0     ? &out->json
                     : strcmp(name, "--svg") == 0    ? &out->svg
                     : strcmp(name, "--fitted") == 0 ? &out->fitted
                                                     : NULL;
        char *end = NULL;
        if (strncmp(name, "--", 2) != 0) {
            arguments[kept++] = name;
            continue;
        }
        if (flag) {
            *flag = true;
            continue;
        }
        const unsigned long value = number && i + 1 < count ? strtoul(arguments[++i], &end, 10) : 0;
        if (!end || *end != '\0' || end == arguments[i] || value > most) {
            (void)fprintf(stderr,
                          "reach-lab-papers: invalid option %s: use --json, --svg, --fitted, or "
                          "--warps, --gap "
                          "and --threads with a number up to %u\n",
                          name, most);
            return -1;
        }
        *number = (uint32_t)value;
    }
    return kept;
}

/* Makes runs with the options of the command line. Sets `*out_count` to the number of other
 * arguments. After an error, reports it and returns NULL. */
static struct pichai_runs *new_runs(int count, char **arguments, int *out_count)
{
    static const uint32_t of_block = 16; /* warps of the largest block of a job */
    struct pichai_runs *runs = calloc(1, sizeof *runs);
    if (!runs) {
        (void)fprintf(stderr, "reach-lab-papers: cannot allocate the runs: out of memory\n");
        return NULL;
    }
    runs->blocks = PICHAI_BLOCKS;
    *out_count = read_options(count, arguments, &runs->options);
    if (*out_count >= 0 && runs->options.warps % of_block == 0 &&
        runs->options.warps <= LAB_MATRIX_WARPS)
        return runs;
    if (*out_count >= 0)
        (void)fprintf(stderr, "reach-lab-papers: --warps must be 16, 32 or 48\n");
    free(runs);
    return NULL;
}

static bool run_all(struct pichai_runs *runs)
{
    struct err err = {0};
    const bool good = pichai_runs_execute(runs, &err) == STATUS_OK;
    if (!good)
        (void)fprintf(stderr, "reach-lab-papers: %s\n", err.text);
    return good;
}

/* ---- parameters that the text does not give ---- */

static const struct pichai_variation variations[] = {
    {.what = "as it is"},
    {.what = "jobs fitted to all inputs (--fitted)", .fitted = true},
    {.what = "32 warps of a core", .warps = 32},
    {.what = "twice the instructions without memory", .gap_times = 2},
    {.what = "four times the instructions", .gap_times = 4},
    {.what = "a data cache of 4 ways", .l1_ways = 4},
    {.what = "a hit in it takes 4 cycles", .l1_cycles = 4},
    {.what = "a hit in the shared cache takes 20 cycles", .cache_cycles = 20},
    {.what = "it takes 100 cycles", .cache_cycles = 100},
    {.what = "memory takes 32 cycles in addition", .dram_cycles = 32},
    {.what = "memory takes 200 cycles in addition", .dram_cycles = 200},
    {.what = "memory channels at a third of their peak", .dram_busy = 80},
    {.what = "all paths twice as wide", .faster = 2},
    {.what = "walks keep the upper two levels' last entries", .remembers = true},
    {.what = "all that makes walks fast, and four times the gap",
     .gap_times = 4,
     .cache_cycles = 20,
     .dram_cycles = 32,
     .faster = 8,
     .remembers = true},
};

static uint32_t print_held(const struct pichai_runs *runs)
{
    uint32_t targets;
    uint32_t good = 0;
    const struct pichai_target *t = pichai_targets(&targets);
    for (uint32_t i = 0; i < targets; i++) {
        if (!target_holds(runs, &t[i]))
            continue;
        printf(" %s", t[i].id);
        good++;
    }
    return good;
}

static void print_key_numbers(const struct pichai_runs *runs)
{
    const struct pichai_part loss = {.metric = LOSS, .a = NAIVE_128_3, .b = NO_TLB};
    const struct pichai_part left = {.metric = LOSS, .a = AUGMENTED, .b = NO_TLB};
    const struct pichai_part idle = {.metric = IDLE, .a = AUGMENTED};
    const struct pichai_part cost = {.metric = MISS_COST, .a = NAIVE_128_3, .b = NO_TLB};
    printf("%6.0f %6.0f %6.0f %6.1f ", pichai_value(runs, &loss, LAB_JOBS),
           pichai_value(runs, &left, LAB_JOBS), pichai_value(runs, &idle, LAB_JOBS),
           pichai_value(runs, &cost, LAB_JOBS));
}

static int check_varied(void)
{
    uint32_t targets;
    const struct pichai_target *t = pichai_targets(&targets);
    struct pichai_runs *runs = calloc(1, sizeof *runs);
    puts("Pichai 2014, simulated, with one value that the paper does not state changed in each\n"
         "row: % that naive (paper 20-50) and augmented TLBs (below 10) lose, % idle (4-6), a TLB\n"
         "miss in L1 misses (2), and the targets of P1 to P18 within their bands");
    printf("%-52s %6s %6s %6s %6s\n", "", "naive", "augm.", "idle", "miss");
    for (uint32_t i = 0; runs && i < sizeof variations / sizeof variations[0]; i++) {
        memset(runs, 0, sizeof *runs);
        runs->blocks = PICHAI_BLOCKS;
        runs->variation = variations[i];
        for (uint32_t k = 0; k < targets; k++)
            pichai_runs_want_target(runs, &t[k]);
        if (!run_all(runs))
            break;
        printf("%-52s ", variations[i].what);
        print_key_numbers(runs);
        (void)print_held(runs);
        putchar('\n');
        (void)fflush(stdout);
    }
    free(runs);
    return runs ? LAB_OK : LAB_ERROR;
}

static int check_targets(int count, char **arguments)
{
    uint32_t targets;
    uint32_t good = 0;
    uint32_t asked = EXACT_TARGETS;
    int named = 0;
    const struct pichai_target *t = pichai_targets(&targets);
    struct pichai_runs *runs = new_runs(count, arguments, &named);
    if (!runs || !all_known(arguments, named)) {
        free(runs);
        return LAB_ERROR;
    }
    for (uint32_t i = 0; i < targets; i++) {
        if (is_named(t[i].id, arguments, named))
            pichai_runs_want_target(runs, &t[i]);
    }
    if (!run_all(runs)) {
        free(runs);
        return LAB_ERROR;
    }
    print_jobs(runs->options.fitted ? "Pichai, simulated, fitted" : "Pichai 2014, simulated");
    for (uint32_t i = 0; i < targets; i++) {
        if (!is_named(t[i].id, arguments, named))
            continue;
        print_target(runs, &t[i]);
        good += target_holds(runs, &t[i]);
        asked++;
    }
    good += check_exact();
    printf("%u of %u reproduced\n", good, asked);
    free(runs);
    return good == asked ? LAB_OK : LAB_DIFFERS;
}

int pichai_check(int argc, char **argv)
{
    const bool is_varied = argc == 1 && strcmp(argv[0], "--varied") == 0;
    return is_varied ? check_varied() : check_targets(argc, argv);
}

/* ---- figures ---- */

static void print_figure(const struct pichai_runs *runs, const struct pichai_figure *f)
{
    printf("Pichai 2014, figure %u: %s (simulated)\n%-*s", f->number, f->title, WIDTH, "");
    for (uint32_t i = 0; i < f->column_count; i++)
        printf(" %11s", f->columns[i].title);
    putchar('\n');
    for (uint32_t job = 0; job <= LAB_JOBS; job++) {
        printf("%-*s", WIDTH, job < LAB_JOBS ? lab_gen_work((enum lab_job)job)->name : "mean");
        for (uint32_t i = 0; i < f->column_count; i++) {
            const struct pichai_part part = pichai_column_part(&f->columns[i]);
            printf(" %11.3f", pichai_value(runs, &part, job));
        }
        putchar('\n');
    }
}

static void write_rows(struct json_writer *t, const struct pichai_runs *runs,
                       const struct pichai_figure *f)
{
    json_writer_open(t, "rows", '[');
    for (uint32_t job = 0; job < LAB_JOBS; job++) {
        json_writer_open(t, NULL, '{');
        json_writer_text(t, "job", lab_gen_work((enum lab_job)job)->name);
        for (uint32_t i = 0; i < f->column_count; i++) {
            const struct pichai_part part = pichai_column_part(&f->columns[i]);
            const double value = pichai_value(runs, &part, job);
            json_writer_real(t, f->columns[i].title, round_six_digits(value));
        }
        json_writer_close(t, '}');
    }
    json_writer_close(t, ']');
}

static void write_part(struct json_writer *t, const struct pichai_runs *runs,
                       const struct pichai_part *p)
{
    const double value = pichai_value(runs, p, p->over == ONE_JOB ? p->which : LAB_JOBS);
    json_writer_open(t, NULL, '{');
    json_writer_text(t, "what", p->what);
    json_writer_real(t, "value", round_six_digits(value));
    json_writer_bool(t, "within", pichai_part_holds(runs, p));
    if (p->low > -UNBOUNDED)
        json_writer_real(t, "low", p->low);
    if (p->high < UNBOUNDED)
        json_writer_real(t, "high", p->high);
    json_writer_close(t, '}');
}

static void write_targets(struct json_writer *t, const struct pichai_runs *runs, uint32_t figure)
{
    uint32_t count;
    const struct pichai_target *targets = pichai_targets(&count);
    json_writer_open(t, "targets", '[');
    for (uint32_t i = 0; i < count; i++) {
        const struct pichai_target *target = &targets[i];
        if (target->figure != figure)
            continue;
        json_writer_open(t, NULL, '{');
        json_writer_text(t, "id", target->id);
        json_writer_text(t, "paper", target->paper);
        json_writer_bool(t, "reproduced", target_holds(runs, target));
        json_writer_open(t, "parts", '[');
        for (uint32_t k = 0; k < target->part_count; k++)
            write_part(t, runs, &target->parts[k]);
        json_writer_close(t, ']');
        json_writer_close(t, '}');
    }
    json_writer_close(t, ']');
}

static void print_json(const struct pichai_runs *runs, const struct pichai_figure *f)
{
    struct json_writer t;
    json_writer_begin(&t, 0);
    t.indent = 1;
    json_writer_open(&t, NULL, '{');
    json_writer_text(&t, "paper", "pichai2014");
    json_writer_u64(&t, "figure", f->number);
    json_writer_text(&t, "title", f->title);
    json_writer_bool(&t, "simulated", true);
    write_rows(&t, runs, f);
    write_targets(&t, runs, f->number);
    json_writer_close(&t, '}');
    (void)json_writer_print(&t, stdout, NULL); /* the end of the program checks the stream */
}

static const struct pichai_figure *find_figure(const char *number)
{
    uint32_t count;
    const struct pichai_figure *f = pichai_figures(&count);
    for (uint32_t i = 0; i < count; i++) {
        char text[BAND_BYTES];
        (void)snprintf(text, sizeof text, "%u", f[i].number);
        if (strcmp(text, number) == 0)
            return &f[i];
    }
    (void)fprintf(stderr, "reach-lab-papers: unknown figure %s; figures are", number);
    for (uint32_t i = 0; i < count; i++)
        (void)fprintf(stderr, " %u", f[i].number);
    (void)fprintf(stderr, "\n");
    return NULL;
}

int pichai_figure_command(int argc, char **argv)
{
    uint32_t targets;
    int named = 0;
    const struct pichai_target *t = pichai_targets(&targets);
    struct pichai_runs *runs = new_runs(argc, argv, &named);
    const struct pichai_figure *f = runs ? find_figure(named == 1 ? argv[0] : "") : NULL;
    if (!f) {
        free(runs);
        return LAB_ERROR;
    }
    pichai_runs_want_figure(runs, f);
    for (uint32_t i = 0; i < targets; i++) {
        if (t[i].figure == f->number)
            pichai_runs_want_target(runs, &t[i]);
    }
    if (!run_all(runs)) {
        free(runs);
        return LAB_ERROR;
    }
    const bool text = !runs->options.json && !runs->options.svg;
    if (runs->options.json)
        print_json(runs, f);
    else if (runs->options.svg)
        pichai_print_svg(runs, f);
    else
        print_figure(runs, f);
    for (uint32_t i = 0; i < targets && text; i++) {
        if (t[i].figure == f->number)
            print_target(runs, &t[i]);
    }
    free(runs);
    return LAB_OK;
}
