/* job_main.c: the course of every job (job.h). */
#include "job.h"

#include <stdlib.h>
#include <string.h>

enum { OK = 0, FAILED = 1, WRONG_OPTIONS = 2 };

/* What lasts from size to size. */
struct course {
    const struct job *job;
    const struct job_options *options;
    struct reach *reach;
    char gpu[REACH_UUID_BYTES];
    uint64_t reach_bytes;
    uint32_t sm_slots;
    struct job_run runs[JOB_MAX_SIZES];
};

static bool failed(const struct reach_error *error, char *why)
{
    snprintf(why, JOB_TEXT_BYTES, "%s", error->text);
    return false;
}

/* What one group reaches, and the ids that SMs have. */
static bool ask_chip(struct course *c, char *why)
{
    const struct reach_fingerprint *fingerprint;
    struct reach_answer *answer = NULL;
    struct reach_error error;

    if (reach_get_fingerprint(c->reach, c->gpu, &answer, &error) != REACH_OK)
        return failed(&error, why);
    fingerprint = reach_answer_fingerprint(answer);
    c->sm_slots = fingerprint->sm_slots;
    c->reach_bytes =
        fingerprint->recommended_bytes.known ? (uint64_t)fingerprint->recommended_bytes.value : 0;
    if (!c->reach_bytes)
        snprintf(why, JOB_TEXT_BYTES, "the fingerprint of %s does not know the reach (%s)", c->gpu,
                 fingerprint->recommended_bytes.reason);
    reach_answer_free(answer);
    return c->reach_bytes != 0;
}

/* A plan for another GPU, or of a stale fingerprint, is an error: libreach says which. */
static bool ask_plan(const struct course *c, struct job_run *run, char *why)
{
    const bool measured = !c->options->dry_run;
    struct reach_error error;
    struct reach_job ask;

    memset(&ask, 0, sizeof ask);
    c->job->describe(c->job->state, c->options, &ask);
    ask.size = sizeof ask;
    ask.bytes = run->bytes;
    ask.in_reach_gbps = measured ? run->inside_gbps : 0;
    ask.scan_gps = measured ? run->scan_rate : 0;
    if (reach_get_plan(c->reach, c->gpu, &ask, &run->plan, &error) != REACH_OK ||
        (measured && reach_answer_check_gpu(run->plan, c->gpu, &error) != REACH_OK))
        return failed(&error, why);
    run->way_count = job_ways_make(c->job->variants(c->options), run->plan, run->ways);
    return true;
}

/* What the planner cannot know: how fast this very job is inside the reach, and at looking. */
static bool calibrate(const struct course *c, struct job_run *run, char *why)
{
    double inside_ms = 0, look_ms = 0;
    struct reach_job said;

    memset(&said, 0, sizeof said);
    c->job->describe(c->job->state, c->options, &said);
    if (!c->job->inside(c->job->state, &inside_ms, why) ||
        !c->job->look(c->job->state, &look_ms, why))
        return false;
    run->useful_bytes = (double)said.accesses * said.transaction_bytes;
    run->inside_gbps = run->useful_bytes / (inside_ms * 1e6);
    run->scan_rate = (double)said.accesses / (look_ms * 1e6);
    return true;
}

static bool do_size(const struct course *c, uint32_t i, struct job_run *run, char *why)
{
    run->bytes = c->options->bytes[i];
    if (c->options->dry_run) {
        if (run->bytes == 0) {
            snprintf(why, JOB_TEXT_BYTES, "--dry-run has no memory to be the largest: name sizes");
            return false;
        }
        return ask_plan(c, run, why);
    }
    run->repeats = c->options->repeats;
    return c->job->prepare(c->job->state, &run->bytes, c->reach_bytes, run, why) &&
           calibrate(c, run, why) && ask_plan(c, run, why) &&
           job_measure(c->job, run, c->sm_slots, why);
}

static bool all_right(const struct job_run *run)
{
    bool right = true;

    for (uint32_t i = 0; i < run->way_count && run->repeats; i++)
        right = right && run->ways[i].right;
    return right;
}

static bool do_sizes(struct course *c, char *why)
{
    bool right = true;

    for (uint32_t i = 0; i < c->options->size_count; i++) {
        if (!do_size(c, i, &c->runs[i], why))
            return false;
        job_report(stdout, c->job, c->options, &c->runs[i]);
        fflush(stdout);
        right = right && all_right(&c->runs[i]);
    }
    if (c->options->json &&
        !job_write_json(c->options->json, c->job, c->options, c->runs, c->options->size_count, why))
        return false;
    if (!right)
        snprintf(why, JOB_TEXT_BYTES, "the strategies have not all found the same");
    return right;
}

static bool begin(struct course *c, char *why)
{
    struct reach_error error;

    if (reach_open(c->options->where, &c->reach, &error) != REACH_OK)
        return failed(&error, why);
    snprintf(c->gpu, sizeof c->gpu, "%s", c->options->gpu);
    if (!c->options->dry_run &&
        !c->job->open(c->job->state, c->options, atoi(c->options->gpu), c->gpu, why)) // NOLINT
        return false;
    return ask_chip(c, why);
}

int job_main(int argc, char **argv, const struct job *job)
{
    struct job_options options;
    char why[JOB_TEXT_BYTES] = "";

    if (!job_options_parse(argc, argv, job, &options, why)) {
        fprintf(stderr, "%s: %s\n", job->name, why);
        return WRONG_OPTIONS;
    }
    if (options.help) {
        job_options_help(stdout, job);
        return OK;
    }
    struct course *c = calloc(1, sizeof *c);

    if (!c) {
        fprintf(stderr, "%s: no memory\n", job->name);
        return FAILED;
    }
    c->job = job;
    c->options = &options;
    const bool good = begin(c, why) && do_sizes(c, why);

    if (!good)
        fprintf(stderr, "%s: %s\n", job->name, why);
    if (!options.dry_run)
        job->close(job->state);
    for (uint32_t i = 0; i < JOB_MAX_SIZES; i++)
        reach_answer_free(c->runs[i].plan);
    reach_close(c->reach);
    free(c);
    return good ? OK : FAILED;
}
