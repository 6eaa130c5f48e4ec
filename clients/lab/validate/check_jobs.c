/* check_jobs.c: see check_jobs.h. The jobs are sampling, gather and grouping at each measured size:
 * naive, in windows and in scopes. Their results are in the folders visit-jobs-KIND-CHIP.
 *
 * The trace is from reach-lab gen, with the jobs' own hash. The job measured the speed within the
 * reach. The check uses the fingerprint of the chip that ran the jobs. If that chip has none, the
 * check uses the chip of the same kind with the median speed over all memory. A grouping tries
 * blocks of 256, 512 and 1024 threads and keeps the fastest, and so does this check. No parameter
 * is fitted.
 */
#include "clients/lab/validate/check_jobs.h"

#include "base/units.h"
#include "clients/lab/exit_status.h"
#include "clients/lab/trace/gen_jobs.h"
#include "clients/lab/trace/trace_load.h"
#include "clients/lab/validate/measured.h"
#include "clients/lab/whatif/whatif.h"

#include <dirent.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 64, MAX_CHIPS = 64, ITEMS = 1 << 20, ROW_BYTES = 128 };

static const double BAND = 0.05;

/* A job of clients/examples. */
struct measured_job {
    const char *name;
    double moved;                     /* bytes in the trace per byte that the job counts */
    double input_bytes, output_bytes; /* bytes per access, from the job's own request */
    uint64_t reserve_bytes;           /* reserve in the job's own request */
    uint64_t launch_accesses; /* accesses of the trace per launch: all samples, a batch of bags, or
                                 two per value of a chunk */
    uint32_t threads[3];
    uint32_t threads_count;
};

static const struct measured_job jobs[] = {
    {"sampling", 1, 0, 0, 0, 268435456, {1024}, 1},
    {"gather", 1, 4, 2, 64 << 20, 1048576 * 64, {1024}, 1},
    {"grouping", 2, 2, 0, 1 << 30, (128 << 20) / 4 * 2, {256, 512, 1024}, 3}};

/* ---- files ---- */

struct chip {
    char name[NAME_BYTES];
    double gbps;
};

static int by_gbps(const void *a, const void *b)
{
    const struct chip *x = a;
    const struct chip *y = b;
    if (x->gbps != y->gbps)
        return x->gbps < y->gbps ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Finds the fingerprint for a visit such as "visit-jobs-h200-685236fe-2026-11-21". The name
 * contains kind and chip. Sets `out_name` to the chip of the fingerprint. */
static bool find_fingerprint(const char *folder, const char *visit, struct fingerprint *out,
                             char out_name[NAME_BYTES])
{
    static struct chip chips[MAX_CHIPS];
    uint32_t count = 0;
    struct dirent **names = NULL;
    char kind[NAME_BYTES] = "";
    char id[NAME_BYTES] = "";
    const int found = scandir(folder, &names, NULL, alphasort);
    if (sscanf(visit, "visit-jobs-%31[^-]-%31[^-]", kind, id) != 2)
        id[0] = '\0';
    for (int i = 0; i < found; i++) {
        const char *name = names[i]->d_name;
        char prefix[NAME_BYTES];
        (void)snprintf(prefix, sizeof prefix, "nvidia-%.31s-", kind);
        if (id[0] && strncmp(name, prefix, strlen(prefix)) == 0 && count < MAX_CHIPS &&
            measured_fingerprint(folder, name, out, NULL)) {
            const bool is_chip = strstr(name, id);
            (void)snprintf(chips[count].name, NAME_BYTES, "%.*s", NAME_BYTES - 1, name);
            chips[count++].gbps = is_chip ? -1 : out->throughput.whole_memory_gbps.v;
        }
        free(names[i]);
    }
    free(names);
    if (count == 0)
        return false;
    qsort(chips, count, sizeof chips[0], by_gbps);
    memcpy(out_name, chips[chips[0].gbps < 0 ? 0 : count / 2].name, NAME_BYTES);
    return measured_fingerprint(folder, out_name, out, NULL);
}

/* ---- one size ---- */

static bool make_trace(const struct gen_job *job, struct trace *out)
{
    char *text = NULL;
    size_t size = 0;
    struct err err = {0};
    FILE *to = open_memstream(&text, &size);
    struct rlt_writer *w = to ? rlt_writer_new(to, RLT_MIN_GRANULE) : NULL;
    bool good = w && gen_job(job, w, &err) == STATUS_OK;
    if (w && rlt_writer_end(w, NULL) != STATUS_OK)
        good = false;
    if (to)
        (void)fclose(to);
    FILE *from = good ? fmemopen(text, size, "r") : NULL;
    good = from && trace_load(from, out, &err) == STATUS_OK;
    if (from)
        (void)fclose(from);
    free(text);
    return good;
}

static void keep_best(const struct whatif_answer *a, double best[WHATIF_QUESTION_COUNT])
{
    for (uint32_t i = 0; i < a->row_count; i++) {
        const struct whatif_row *r = &a->rows[i];
        if (r->known)
            best[r->question] = fmax(best[r->question], r->gbps);
    }
}

/* A measured GPU and the counts that all answers about it share. */
struct measured_gpu {
    struct fingerprint fp;
    struct whatif_shared shared;
};

/* Sets the GB/s of each question in the bytes that the job counts, or 0 if the question has no
 * number. Returns false after an error. */
static bool predict(struct measured_gpu *gpu, const struct measured_job *j, uint64_t bytes,
                    double in_reach_gbps, double best[WHATIF_QUESTION_COUNT])
{
    const struct whatif_options options = {.contiguous = 1,
                                           .sm_blocks = 1,
                                           .input_bytes = j->input_bytes,
                                           .output_bytes = j->output_bytes,
                                           .reserve_bytes = j->reserve_bytes,
                                           .launch_accesses = j->launch_accesses,
                                           .in_reach_gbps = in_reach_gbps * j->moved,
                                           .questions = 1 << WHATIF_WINDOWS | 1 << WHATIF_SCOPES,
                                           .shared = &gpu->shared};
    struct whatif_answer *answer = malloc(sizeof *answer);
    bool good = answer;
    for (uint32_t i = 0; i < WHATIF_QUESTION_COUNT; i++)
        best[i] = 0;
    for (uint32_t i = 0; good && i < j->threads_count; i++) {
        const struct gen_job job = {j->name, bytes, ITEMS, ROW_BYTES, j->threads[i], 1};
        struct trace t = {0};
        struct err err = {0};
        good =
            make_trace(&job, &t) && whatif_ask(&gpu->fp, &t, &options, answer, &err) == STATUS_OK;
        if (good)
            keep_best(answer, best);
        else
            (void)fprintf(stderr, "reach-lab check jobs: %s: %s\n", j->name, err.text);
        trace_free(&t);
    }
    for (uint32_t i = 0; i < WHATIF_QUESTION_COUNT; i++)
        best[i] /= j->moved;
    free(answer);
    return good;
}

static void judge_strategy(const struct measured_job *j, uint64_t bytes, const json_t *way,
                           const double best[WHATIF_QUESTION_COUNT], struct measured_tally *tally)
{
    static const struct {
        const char *label;
        enum whatif_question question;
    } strategies[] = {{"naive", WHATIF_AS_IT_IS},
                      {"scopes", WHATIF_SCOPES},
                      {"filtered windows", WHATIF_WINDOWS}};
    const char *label = json_string_value(json_object_get(way, "label"));
    const double measured = json_number_value(json_object_get(way, "gbps"));
    for (size_t i = 0; label && i < sizeof strategies / sizeof strategies[0]; i++) {
        const double gbps = best[strategies[i].question];
        const double off = gbps / measured - 1;
        if (strcmp(label, strategies[i].label) != 0 || !(measured > 0) || !(gbps > 0))
            continue;
        printf("V2  %-8s %6.1f GiB %-16s %+6.1f %%: %4.0f GB/s for %4.0f  within %.0f %%  %s\n",
               j->name, (double)bytes / GIB, label, 100 * off, gbps, measured, 100 * BAND,
               fabs(off) <= BAND ? "reproduced" : "not reproduced");
        tally->reproduced += fabs(off) <= BAND;
        tally->not_reproduced += fabs(off) > BAND;
    }
}

/* Returns the speed within the reach that the job measured. Results of 2026-11-21 contain it under
 * an older name. */
static double own_in_reach_gbps(const json_t *size)
{
    const json_t *value = json_object_get(size, "in_reach_gbps");
    return json_number_value(value ? value : json_object_get(size, "inside_gbps"));
}

static void check_job(const char *folder, const char *visit, struct measured_gpu *gpu,
                      const struct measured_job *j, struct measured_tally *tally)
{
    char path[MEASURED_PATH_BYTES];
    const json_t *size;
    size_t i;
    (void)snprintf(path, sizeof path, "%s/%s/%s.json", folder, visit, j->name);
    json_t *json = json_load_file(path, 0, NULL);
    json_array_foreach(json_object_get(json, "sizes"), i, size)
    {
        const uint64_t bytes = (uint64_t)json_integer_value(json_object_get(size, "bytes"));
        const double in_reach_gbps = own_in_reach_gbps(size);
        double best[WHATIF_QUESTION_COUNT];
        const json_t *way;
        size_t k;
        if (!predict(gpu, j, bytes, in_reach_gbps, best)) {
            tally->failed = true;
            break;
        }
        json_array_foreach(json_object_get(size, "choices"), k, way)
        {
            judge_strategy(j, bytes, way, best, tally);
        }
    }
    json_decref(json);
}

/* ---- all ---- */

static void check_visit(const char *folder, const char *visit, struct measured_tally *tally)
{
    struct measured_gpu *gpu = calloc(1, sizeof *gpu);
    char name[NAME_BYTES];
    if (!gpu || !find_fingerprint(folder, visit, &gpu->fp, name)) {
        printf("V2  %s left out: no fingerprint of this kind\n", visit);
    } else {
        printf("%s, fingerprint of %s\n", visit, name);
        for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++)
            check_job(folder, visit, gpu, &jobs[i], tally);
    }
    free(gpu);
}

int check_jobs(const char *folder)
{
    struct measured_tally tally = {0};
    if (!measured_each(folder, "visit-jobs-", check_visit, &tally))
        return LAB_ERROR;
    printf("%u reproduced, %u not reproduced\n", tally.reproduced, tally.not_reproduced);
    return measured_exit(&tally);
}
