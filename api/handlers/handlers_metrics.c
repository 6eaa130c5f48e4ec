/* handlers_metrics.c: writes the page of metrics: the process, HTTP, measurements and the database.
 * The metrics of the GPUs are in api/encode/metrics.c. A client may prefer OpenMetrics.
 */
#include "api/handlers/handlers.h"

#include "api/decode/decode.h"
#include "api/encode/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const char PLAIN_TYPE[] = "text/plain; version=0.0.4; charset=utf-8";
static const char OPEN_TYPE[] = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/* ---- the process ---- */

/* Returns the resident memory of the process, or 0 if it is not known. */
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

static void process_metrics(const struct metrics_page *p, const struct handlers_context *c)
{
    metrics_family(p, "reachd_build_info", METRICS_GAUGE, "The version of this daemon.");
    fputs("reachd_build_info{", p->out);
    metrics_label(p, "version", c->daemon_version);
    fputs("} 1\n", p->out);
    metrics_single(p, "process_start_time_seconds", METRICS_GAUGE,
                   "When the server began, since 1970.", (double)c->stats->started_at);
    metrics_single(p, "process_resident_memory_bytes", METRICS_GAUGE, "Memory in use.",
                   resident_bytes());
    metrics_single(p, "process_cpu_seconds", METRICS_COUNTER, "CPU time, without workers.",
                   cpu_seconds());
}

static void http_metrics(const struct metrics_page *p, const struct handlers_context *c)
{
    const struct stats *s = c->stats;

    metrics_family(p, "reachd_http_answers", METRICS_COUNTER,
                   "HTTP answers, by the class of their status.");
    for (int i = 2; i < STATS_CLASSES; i++)
        fprintf(p->out, "reachd_http_answers_total{class=\"%dxx\"} %" PRIu64 "\n", i,
                s->answers[i]);
    metrics_single(p, "reachd_http_not_modified", METRICS_COUNTER,
                   "Answers without a body, because the client has it (304).",
                   (double)s->not_modified);
    metrics_single(p, "reachd_http_unauthorized", METRICS_COUNTER,
                   "Requests refused because they have no valid token (401).",
                   (double)s->unauthorized);
    metrics_single(p, "reachd_http_connections", METRICS_GAUGE, "Open connections, of all sockets.",
                   (double)s->connections);
    metrics_single(p, "reachd_http_connections_timed_out", METRICS_COUNTER,
                   "Connections ended for taking too long.", (double)s->connections_timed_out);
}

/* ---- measurements and the database ---- */

static void results_metric(const struct metrics_page *p, const char *name, enum metrics_kind kind,
                           const char *help, const struct api_results *results)
{
    const char *const total = kind == METRICS_COUNTER ? "_total" : "";

    metrics_family(p, name, kind, help);
    fprintf(p->out, "%s%s{kind=\"fingerprint\"} %" PRIu64 "\n", name, total, results->fingerprints);
    fprintf(p->out, "%s%s{kind=\"observation\"} %" PRIu64 "\n", name, total, results->observations);
}

static void database_metrics(const struct metrics_page *p, const struct api_health *now)
{
    metrics_single(p, "reachd_database_ok", METRICS_GAUGE,
                   "1: results can be stored; 0: they cannot, and are kept in memory.",
                   now->database.status == STATUS_OK);
    results_metric(p, "reachd_database_unwritten_results", METRICS_GAUGE,
                   "Results in memory that could not be stored yet.", &now->unwritten);
    results_metric(p, "reachd_database_dropped_results", METRICS_COUNTER,
                   "Results that were dropped before they could be stored, for lack of memory.",
                   &now->dropped);
    metrics_single(p, "reachd_database_failed_writes", METRICS_COUNTER,
                   "Writes to the database that failed.", (double)now->failed_writes);
    metrics_single(p, "reachd_database_damaged_rows", METRICS_COUNTER,
                   "Rows that failed their check and were dropped.", (double)now->damaged_rows);
    metrics_single(p, "reachd_database_files_quarantined", METRICS_COUNTER,
                   "Database files that were unusable and were moved to quarantine.",
                   (double)now->quarantined);
}

static void measurement_metrics(const struct metrics_page *p, const struct handlers_context *c)
{
    struct api_health now = {.measurements_queued = 0};

    c->backend->health(c->backend->self, &now);
    metrics_family(p, "reachd_measurements", METRICS_GAUGE,
                   "Measurements and checks that have not ended.");
    fprintf(p->out, "reachd_measurements{state=\"queued\"} %" PRIu64 "\n", now.measurements_queued);
    fprintf(p->out, "reachd_measurements{state=\"running\"} %" PRIu64 "\n",
            now.measurements_running);
    metrics_family(p, "reachd_measurements_ended", METRICS_COUNTER,
                   "Measurements and checks that have ended.");
    fprintf(p->out, "reachd_measurements_ended_total{state=\"done\"} %" PRIu64 "\n",
            now.measurements_done);
    fprintf(p->out, "reachd_measurements_ended_total{state=\"failed\"} %" PRIu64 "\n",
            now.measurements_failed);
    database_metrics(p, &now);
}

void handlers_metrics(struct handlers_context *c, const struct request *request,
                      struct reply *reply)
{
    struct metrics_page p = {.is_open =
                                 accept_weight(request->accept, "application/openmetrics-text") >
                                 accept_weight(request->accept, "text/plain")};
    char *text = NULL;
    size_t bytes = 0;

    p.out = open_memstream(&text, &bytes);
    if (!p.out) {
        reply_document(reply, NULL);
        return;
    }
    process_metrics(&p, c);
    http_metrics(&p, c);
    measurement_metrics(&p, c);
    metrics_gpu(&p, c->snapshot);
    if (p.is_open)
        fputs("# EOF\n", p.out);
    if (fclose(p.out) != 0) { /* no memory */
        free(text);
        text = NULL;
    }
    reply_once(reply, HTTP_OK,
               document_new_typed(p.is_open ? OPEN_TYPE : PLAIN_TYPE, text, bytes, ""));
    reply->vary = "Accept";
}
