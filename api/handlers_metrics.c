/* handlers_metrics.c: what a monitoring system collects, as Prometheus text 0.0.4, or as
 * OpenMetrics text 1.0 where the client likes that better.
 *
 * The two differ in little: OpenMetrics names a counter's family without the _total of its samples,
 * and ends with a line that says so. Units are base units, a GPU is named by its UUID, and there is
 * no series for each SM: that is what fingerprints are for.
 */
#include "api/handlers.h"

#include "api/accept.h"
#include "api/problem.h"
#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const char PLAIN_TYPE[] = "text/plain; version=0.0.4; charset=utf-8";
static const char OPEN_TYPE[] = "application/openmetrics-text; version=1.0.0; charset=utf-8";

struct page {
    FILE *out;
    bool is_open; /* OpenMetrics */
};

enum kind { GAUGE = 0, COUNTER };

/* The head of a family; `name` is without _total. */
static void family(const struct page *p, const char *name, enum kind kind, const char *help)
{
    const char *suffix = kind == COUNTER && !p->is_open ? "_total" : "";

    fprintf(p->out, "# HELP %s%s %s\n# TYPE %s%s %s\n", name, suffix, help, name, suffix,
            kind == COUNTER ? "counter" : "gauge");
}

static void single(const struct page *p, const char *name, enum kind kind, const char *help,
                   double value)
{
    family(p, name, kind, help);
    fprintf(p->out, "%s%s %.17g\n", name, kind == COUNTER ? "_total" : "", value);
}

/* The value of a label, escaped. */
static void label(const struct page *p, const char *name, const char *value)
{
    fprintf(p->out, "%s=\"", name);
    for (const char *at = value; *at; at++) {
        if (*at == '\n')
            fputs("\\n", p->out);
        else
            fprintf(p->out, "%s%c", *at == '"' || *at == '\\' ? "\\" : "", *at);
    }
    fputc('"', p->out);
}

/* ---- the process ---- */

/* 0 where it cannot be told. */
static double resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    char line[128] = "";
    unsigned long pages;

    if (!file)
        return 0;
    if (!fgets(line, sizeof(line), file))
        line[0] = '\0';
    fclose(file);
    pages = strtoul(line + strcspn(line, " "), NULL, 10); /* the second number of the line */
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static double cpu_seconds(void)
{
    struct rusage u;

    if (getrusage(RUSAGE_SELF, &u) != 0)
        return 0;
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void process_metrics(const struct page *p, const struct handlers_context *c)
{
    family(p, "reachd_build_info", GAUGE, "The version of this daemon.");
    fputs("reachd_build_info{", p->out);
    label(p, "version", c->daemon_version);
    fputs("} 1\n", p->out);
    single(p, "process_start_time_seconds", GAUGE, "When the server began, since 1970.",
           (double)c->stats->started_at);
    single(p, "process_resident_memory_bytes", GAUGE, "Memory in use.", resident_bytes());
    single(p, "process_cpu_seconds", COUNTER, "CPU time, without that of workers.", cpu_seconds());
}

static void http_metrics(const struct page *p, const struct handlers_context *c)
{
    const struct stats *s = c->stats;

    family(p, "reachd_http_answers", COUNTER, "HTTP answers, by the class of their status.");
    for (int i = 2; i < STATS_CLASSES; i++)
        fprintf(p->out, "reachd_http_answers_total{class=\"%dxx\"} %" PRIu64 "\n", i,
                s->answers[i]);
    single(p, "reachd_http_not_modified", COUNTER, "Answers that saved their body (304).",
           (double)s->not_modified);
    single(p, "reachd_http_unauthorized", COUNTER, "Changes refused for want of the token (401).",
           (double)s->unauthorized);
    single(p, "reachd_http_connections", GAUGE, "Open connections, of all sockets.",
           (double)c->connections);
    single(p, "reachd_http_connections_cut", COUNTER, "Connections ended for taking too long.",
           (double)s->connections_cut);
}

/* ---- what it knows ---- */

static void job_metrics(const struct page *p, const struct handlers_context *c)
{
    struct api_condition now = {.jobs_queued = 0};

    c->backend->condition(c->backend->self, &now);
    family(p, "reachd_jobs", GAUGE, "Measurements and checks that have not ended.");
    fprintf(p->out, "reachd_jobs{state=\"queued\"} %" PRIu64 "\n", now.jobs_queued);
    fprintf(p->out, "reachd_jobs{state=\"running\"} %" PRIu64 "\n", now.jobs_running);
    family(p, "reachd_jobs_ended", COUNTER, "Measurements and checks that have ended.");
    fprintf(p->out, "reachd_jobs_ended_total{state=\"done\"} %" PRIu64 "\n", now.jobs_done);
    fprintf(p->out, "reachd_jobs_ended_total{state=\"failed\"} %" PRIu64 "\n", now.jobs_failed);
    single(p, "reachd_database_ok", GAUGE, "1: what is measured can be kept; 0: it cannot.",
           now.database.status == STATUS_OK);
    single(p, "reachd_database_failed_writes", COUNTER, "Writes that the database did not take.",
           (double)now.failed_writes);
    single(p, "reachd_database_damaged_rows", COUNTER,
           "Rows that failed their check and were dropped.", (double)now.damaged_rows);
    single(p, "reachd_database_files_moved_aside", COUNTER,
           "Database files that could not be used and were moved aside.", (double)now.moved_aside);
}

/* One sample: the name, the label of the GPU, what else is in `more` (or ""), the value. */
static void of_gpu(const struct page *p, const char *name, const struct snapshot_gpu *gpu,
                   double value)
{
    fprintf(p->out, "%s{", name);
    label(p, "gpu", gpu->identity.uuid);
    fprintf(p->out, "} %.17g\n", value);
}

static void gpu_names(const struct page *p, const struct snapshot *s)
{
    family(p, "reachd_gpu_info", GAUGE, "Name of a GPU, and whether it is measured or simulated.");
    for (uint32_t i = 0; i < s->gpu_count; i++) {
        fputs("reachd_gpu_info{", p->out);
        label(p, "gpu", s->gpus[i].identity.uuid);
        fputc(',', p->out);
        label(p, "name", s->gpus[i].identity.name);
        fputc(',', p->out);
        label(p, "origin", origin_name(s->gpus[i].identity.origin));
        fputs("} 1\n", p->out);
    }
    family(p, "reachd_gpu_state", GAUGE, "1 for the state that a GPU is in.");
    for (uint32_t i = 0; i < s->gpu_count; i++) {
        for (int state = GPU_STATE_UNKNOWN; state <= GPU_STATE_STALE; state++) {
            fputs("reachd_gpu_state{", p->out);
            label(p, "gpu", s->gpus[i].identity.uuid);
            fprintf(p->out, ",state=\"%s\"} %d\n", gpu_state_name((enum gpu_state)state),
                    s->gpus[i].state == (enum gpu_state)state);
        }
    }
}

static void gpu_metrics(const struct page *p, const struct snapshot *s)
{
    single(p, "reachd_gpus", GAUGE, "GPUs of this node.", s->gpu_count);
    gpu_names(p, s);
    family(p, "reachd_gpu_fingerprint_timestamp_seconds", GAUGE,
           "When the fingerprint that is served was taken, since 1970.");
    for (uint32_t i = 0; i < s->gpu_count; i++) {
        if (s->gpus[i].has_fingerprint)
            of_gpu(p, "reachd_gpu_fingerprint_timestamp_seconds", &s->gpus[i],
                   (double)s->gpus[i].fingerprint.taken_at);
    }
    family(p, "reachd_gpu_fingerprint_stale", GAUGE,
           "1: the fingerprint that is served is known to be of before a change.");
    for (uint32_t i = 0; i < s->gpu_count; i++) {
        if (s->gpus[i].has_fingerprint)
            of_gpu(p, "reachd_gpu_fingerprint_stale", &s->gpus[i], s->gpus[i].fingerprint_stale);
    }
    family(p, "reachd_gpu_reach_bytes", GAUGE, "Bytes that an SM group reaches without a miss.");
    for (uint32_t i = 0; i < s->gpu_count; i++) {
        const struct maybe_u64 *reach = &s->gpus[i].fingerprint.windows.reach_bytes;
        if (s->gpus[i].has_fingerprint && IS_KNOWN(*reach))
            of_gpu(p, "reachd_gpu_reach_bytes", &s->gpus[i], (double)reach->v);
    }
}

void handlers_metrics(struct handlers_context *c, const struct request *request,
                      struct reply *reply)
{
    struct page p = {.is_open = accept_weight(request->accept, "application/openmetrics-text") >
                                accept_weight(request->accept, "text/plain")};
    char *text = NULL;
    size_t bytes = 0;

    p.out = open_memstream(&text, &bytes);
    if (!p.out) {
        problem_reply(reply, request, STATUS_NO_MEMORY, "no memory to write the metrics");
        return;
    }
    process_metrics(&p, c);
    http_metrics(&p, c);
    job_metrics(&p, c);
    gpu_metrics(&p, c->snapshot);
    if (p.is_open)
        fputs("# EOF\n", p.out);
    if (fclose(p.out) != 0) {
        free(text);
        problem_reply(reply, request, STATUS_NO_MEMORY, "no memory to write the metrics");
        return;
    }
    reply_text(reply, p.is_open ? OPEN_TYPE : PLAIN_TYPE, text, bytes);
    reply->etag[0] = '\0'; /* it is never the same twice */
    reply->varies_by_accept = true;
}
