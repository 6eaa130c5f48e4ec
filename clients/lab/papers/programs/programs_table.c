/* programs_table.c: reach-lab-papers table. Each thread runs one machine on one program at a time.
 */
#include "clients/lab/papers/programs/programs_command.h"

#include "base/units.h"
#include "clients/lab/exit_status.h"
#include "clients/lab/papers/programs/mechanisms.h"
#include "clients/lab/trace/options.h"
#include "clients/lab/whatif/whatif.h"
#include "clients/lab/whatif/whatif_command.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_PROGRAMS = 64, MOST_MACHINES = 32, MOST_THREADS = 64, GAP = 4, PATH_BYTES = 4096 };

struct program {
    char name[RLT_NAME_BYTES];
    struct trace trace;
    double touched_bytes, warp_accesses; /* of the whole launch */
    double misses, measured_ns;          /* report of reach-profile */
    bool limited;                        /* reach-profile found that misses limit the launch */
    struct whatif_answer chip;
    struct mechanism_result results[MOST_MACHINES];
};

struct table {
    struct fingerprint fp;
    struct program programs[MOST_PROGRAMS];
    uint32_t count;
    atomic_uint next;
    atomic_bool failed;
    struct err err; /* the error of the first run that failed; set while `failed` changes */
};

/* ---- reading ---- */

/* Returns the length of the name before the suffix, or 0 if the file is not a trace. */
static size_t name_length(const char *file)
{
    const char *const dot = strstr(file, ".rlt");
    const bool is_trace = dot && (strcmp(dot, ".rlt") == 0 || strcmp(dot, ".rlt.xz") == 0);
    return is_trace && dot - file < RLT_NAME_BYTES ? (size_t)(dot - file) : 0;
}

static int is_trace(const struct dirent *entry)
{
    return name_length(entry->d_name) > 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static enum status read_report(const char *folder, struct program *p, struct err *err)
{
    char path[PATH_BYTES];
    const char *verdict = "";
    json_error_t why;
    (void)snprintf(path, sizeof path, "%s/%s.json", folder, p->name);
    json_t *json = json_load_file(path, 0, &why);
    if (!json)
        return err_set(err, STATUS_CORRUPT, "cannot read the report %s: %s", path, why.text);
    const int bad =
        json_unpack_ex(json, &why, 0, "{s:F, s:{s:F}, s:{s:F, s:F, s:s}}", "touched_bytes",
                       &p->touched_bytes, "launch", "warp_accesses", &p->warp_accesses, "report",
                       "misses", &p->misses, "measured_ns", &p->measured_ns, "verdict", &verdict);
    p->limited = bad == 0 && strcmp(verdict, "limited") == 0;
    json_decref(json);
    return bad ? err_set(err, STATUS_CORRUPT, "invalid report %s: %s", path, why.text) : STATUS_OK;
}

static enum status read_program(const char *folder, const char *file, struct option_list *l,
                                struct program *p, struct err *err)
{
    char path[PATH_BYTES];
    (void)snprintf(p->name, sizeof p->name, "%.*s", (int)name_length(file), file);
    (void)snprintf(path, sizeof path, "%s/%s", folder, file);
    return option_load_trace(l, path, &p->trace) ? read_report(folder, p, err) : STATUS_IO;
}

static enum status read_folder(const char *folder, struct option_list *l, struct table *t,
                               struct err *err)
{
    char path[PATH_BYTES];
    struct dirent **files = NULL;
    const int count = scandir(folder, &files, is_trace, by_name);
    enum status s;
    if (count < 0)
        return err_set(err, STATUS_IO, "cannot read the folder %s: %s", folder, strerror(errno));
    (void)snprintf(path, sizeof path, "%s/fingerprint.json", folder);
    s = count > 0 && count <= MOST_PROGRAMS
            ? whatif_load_fingerprint(path, &t->fp, err)
            : err_set(err, STATUS_NOT_APPLICABLE, "%s has %d traces; it must have 1 to %d", folder,
                      count, MOST_PROGRAMS);
    for (int i = 0; i < count; i++) {
        if (s == STATUS_OK)
            s = read_program(folder, files[i]->d_name, l, &t->programs[t->count++], err);
        free(files[i]);
    }
    free(files);
    return s;
}

/* ---- running ---- */

/* Runs machine number `which`, or what-if behind the last machine. */
static enum status run_one(const struct table *t, struct program *p, uint32_t which, uint32_t count,
                           struct err *err)
{
    const struct whatif_options options = {.contiguous = -1, .questions = 1 << WHATIF_AS_IT_IS};
    return which < count ? mechanism_run(which, &p->trace, GAP, &p->results[which], err)
                         : whatif_ask(&t->fp, &p->trace, &options, &p->chip, err);
}

static void *run_worker(void *arg)
{
    struct table *t = arg;
    uint32_t count;
    (void)mechanisms(&count);
    for (uint32_t i = atomic_fetch_add(&t->next, 1); i < t->count * (count + 1);
         i = atomic_fetch_add(&t->next, 1)) {
        struct program *p = &t->programs[i / (count + 1)];
        struct err err = {0};
        if (run_one(t, p, i % (count + 1), count, &err) != STATUS_OK &&
            !atomic_exchange(&t->failed, true))
            (void)err_set(&t->err, err.status, "%s: %s", p->name, err.text);
    }
    return NULL;
}

static enum status run_all(struct table *t, struct err *err)
{
    pthread_t threads[MOST_THREADS];
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t started = 0;
    while (started + 1 < processors && started < MOST_THREADS &&
           pthread_create(&threads[started], NULL, run_worker, t) == 0)
        started++;
    (void)run_worker(t);
    while (started > 0)
        (void)pthread_join(threads[--started], NULL);
    return atomic_load(&t->failed) ? err_set(err, t->err.status, "%s", t->err.text) : STATUS_OK;
}

/* ---- printing ---- */

static const struct whatif_row *as_it_is(const struct whatif_answer *a)
{
    const struct whatif_row *r = a->rows;
    while (r->question != WHATIF_AS_IT_IS)
        r++;
    return r;
}

/* The speed of a launch shows its misses only if misses limit it. The misses are then the measured
 * time of a line divided by the cost of a miss. */
static void print_chip(const struct program *p)
{
    const struct whatif_row *r = as_it_is(&p->chip);
    const double lines =
        p->warp_accesses * (double)p->trace.line_count / (double)p->trace.record_count;
    const double by_speed = p->measured_ns / lines / p->chip.miss_ns;
    printf("| %s | %.2f | %.0f | %.2f |", p->name, p->touched_bytes / (double)GIB, p->warp_accesses,
           (double)p->trace.line_count / p->trace.record_count);
    if (!r->known) {
        printf(" | %.2f | | | |\n", 100 * p->misses);
        return;
    }
    printf(" %.2f | %.2f |", 100 * r->walk_share, 100 * p->misses);
    if (p->limited)
        printf(" %.2f | %+.1f %% |", 100 * by_speed, 100 * (r->walk_share / by_speed - 1));
    else
        printf(" | |");
    printf(" %s | %+.0f %% |\n", bound_name(r->bound), 100 * (r->ns_at_worst / r->ns - 1));
}

static void print_head(const char *title, bool speed)
{
    uint32_t count;
    const struct mechanism *m = mechanisms(&count);
    printf("\n%s\n\n| program |", title);
    for (uint32_t i = 0; i < count; i++) {
        if (m[i].against)
            printf(" %s |", m[i].name);
    }
    printf("\n|---|");
    for (uint32_t i = 0; i < count; i++)
        printf("%s", m[i].against ? "---|" : "");
    if (!speed)
        return;
    printf("\n| compared with |");
    for (uint32_t i = 0; i < count; i++) {
        if (m[i].against)
            printf(" %s |", m[i].against);
    }
    printf("\n| the papers' programs |");
    for (uint32_t i = 0; i < count; i++) {
        if (m[i].against)
            printf(" %s |", m[i].paper);
    }
}

static void print_program(const struct program *p, bool speed)
{
    uint32_t count;
    const struct mechanism *m = mechanisms(&count);
    printf("\n| %s |", p->name);
    for (uint32_t i = 0; i < count; i++) {
        const struct mechanism_result *r = &p->results[i];
        if (!m[i].against)
            continue;
        const struct mechanism_result *base = &p->results[mechanism_find(m[i].against)];
        if (speed)
            printf(" %+.1f |", 100 * ((double)base->cycles / (double)r->cycles - 1));
        else
            printf(" %.1f |", 100 * (double)r->misses / (double)r->lookups);
    }
}

static void print_tables(const struct table *t)
{
    printf("%s, simulated with its fingerprint. Misses are in %% of the lines.\n\n",
           t->fp.gpu.name);
    puts("| program | GiB | accesses of warps | lines of an access | misses, model | misses, "
         "reach-profile | misses by speed | model to speed | bound | time in scattered memory |\n"
         "|---|---|---|---|---|---|---|---|---|---|");
    for (uint32_t i = 0; i < t->count; i++)
        print_chip(&t->programs[i]);
    print_head("Change of speed in %:", true);
    for (uint32_t i = 0; i < t->count; i++)
        print_program(&t->programs[i], true);
    print_head(
        "\nTLB misses as a percentage of the lookups of pages. On Pichai's machines they are "
        "misses of a core's TLB, on Mosaic's machines misses of both levels:",
        false);
    for (uint32_t i = 0; i < t->count; i++)
        print_program(&t->programs[i], false);
    (void)putchar('\n');
}

int programs_table_command(int argc, char **argv)
{
    struct option_list l = {argc, argv, "table", false};
    struct err err = {0};
    enum status s;
    if (!option_end(&l, 1))
        return LAB_ERROR;
    struct table *t = calloc(1, sizeof *t);
    if (!t) {
        (void)fprintf(stderr, "reach-lab-papers table: out of memory\n");
        return LAB_ERROR;
    }
    s = read_folder(l.argv[0], &l, t, &err);
    if (s == STATUS_OK)
        s = run_all(t, &err);
    if (s == STATUS_OK)
        print_tables(t);
    if (err.status != STATUS_OK)
        (void)fprintf(stderr, "reach-lab-papers table: %s\n", err.text);
    for (uint32_t i = 0; i < t->count; i++)
        trace_free(&t->programs[i].trace);
    free(t);
    return s == STATUS_OK ? LAB_OK : LAB_ERROR;
}
