/* survey.c: reachctl survey collects the fingerprints of many daemons in a database; reachctl
 * survey report prints reports about them. */
#include "clients/reachctl/client.h"

#include "clients/fleet/report.h"
#include "clients/fleet/survey.h"

#include "base/clock.h"
#include "base/json_writer.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_FILE_BYTES = 16 << 20, MOST_SECONDS = 86400, MS = 1000 };

/* ---- the database ---- */

/* Creates each directory on the way to a file. */
static enum status make_directories(char *path, struct err *err)
{
    for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        if (mkdir(path, 0755) != 0 && errno != EEXIST)
            return err_set(err, STATUS_IO, "cannot create %.200s: %s", path, strerror(errno));
        *at = '/';
    }
    return STATUS_OK;
}

/* The database is named by --db, or by REACHD_FLEET_DB in the environment, or fleet.db in the
 * user's data directory (XDG_DATA_HOME, else ~/.local/share). In the last case the path is in
 * room[PATH_MAX] and `*out_own` is true. */
static enum status name_db(const char *where, char *room, const char **out, bool *out_own,
                           struct err *err)
{
    const char *const data = getenv("XDG_DATA_HOME");
    const char *const home = getenv("HOME");
    const bool has_data = data && *data == '/';
    int n;

    *out = where ? where : getenv("REACHD_FLEET_DB");
    *out_own = !(*out && **out);
    if (!*out_own)
        return STATUS_OK;
    if (!has_data && !(home && *home == '/'))
        return err_set(err, STATUS_INVALID_ARGUMENT,
                       "no home directory is set; name a database with --db");
    n = snprintf(room, PATH_MAX, "%s%s/reachd/fleet.db", has_data ? data : home,
                 has_data ? "" : "/.local/share");
    *out = room;
    return n < PATH_MAX ? STATUS_OK
                        : err_set(err, STATUS_INVALID_ARGUMENT,
                                  "the path of the home directory is too long");
}

/* Opens the database to store a survey, or to read reports; reading creates nothing. */
static enum status open_db(const char *where, bool to_read, struct fleet_db **out, struct err *err)
{
    char room[PATH_MAX];
    const char *name;
    bool own;
    enum status s = name_db(where, room, &name, &own, err);

    *out = NULL;
    if (s == STATUS_OK && own && !to_read)
        s = make_directories(room, err);
    if (s != STATUS_OK)
        return s;
    return to_read ? fleet_open_to_read(name, out, err) : fleet_open(name, out, err);
}

/* ---- selection of hosts ---- */

static enum status add_source(struct hosts *hosts, const struct option_source *source,
                              struct err *err)
{
    enum status (*const add)(struct hosts * h, const char *text, size_t bytes, struct err *err) =
        source->id == OPTION_HOSTS ? hosts_add_lines : hosts_add_file_sd;
    char *text;
    size_t bytes;
    enum status s;

    if (source->id == OPTION_SLURM)
        return hosts_add_slurm(hosts, source->value, err);
    s = client_read_file(strcmp(source->value, "-") == 0 ? stdin : fopen(source->value, "re"),
                         source->value, MOST_FILE_BYTES, &text, &bytes, err);
    if (s == STATUS_OK && bytes > MOST_FILE_BYTES)
        s = err_set(err, STATUS_INVALID_ARGUMENT, "%.200s is larger than 16 MiB", source->value);
    else if (s == STATUS_OK && add(hosts, text, bytes, err) != STATUS_OK)
        s = err_prefix(err, "%.200s", source->value);
    free(text);
    return s;
}

static enum status add_hosts(struct hosts *hosts, const struct options *o, struct err *err)
{
    const struct option_source standard_input = {OPTION_HOSTS, "-"};
    enum status s = STATUS_OK;

    if (o->source_count > OPTIONS_MOST_SOURCES)
        return err_set(err, STATUS_INVALID_ARGUMENT, "at most %d lists of hosts can be given",
                       OPTIONS_MOST_SOURCES);
    for (int i = 0; i < o->operand_count && s == STATUS_OK; i++)
        s = strcmp(o->operands[i], "-") == 0 ? add_source(hosts, &standard_input, err)
                                             : hosts_add(hosts, o->operands[i], err);
    for (int i = 0; i < o->source_count && s == STATUS_OK; i++)
        s = add_source(hosts, &o->sources[i], err);
    if (s == STATUS_OK && hosts->count == 0)
        s = err_set(err, STATUS_INVALID_ARGUMENT, "no host given");
    return s;
}

/* ---- limits ---- */

/* An option with a number, which is multiplied by `scale`. A missing option leaves `*out`
 * unchanged.
 */
struct limit {
    const char *text;
    double least;
    double most;
    double scale;
    uint32_t *out;
    const char *what; /* the beginning of a message that ends with `text` */
};

static bool parse_limit(const struct limit *limit)
{
    char *end;
    double v;

    if (!limit->text)
        return true;
    v = strtod(limit->text, &end);
    if (end == limit->text || *end != '\0' || !(v >= limit->least && v <= limit->most))
        return false;
    *limit->out = (uint32_t)(v * limit->scale + 0.5);
    return *limit->out >= 1;
}

static enum exit_code parse_settings(const struct options *o, struct collect_settings *out,
                                     uint16_t *out_port)
{
    uint32_t port = HOSTS_DEFAULT_PORT;
    const struct limit limits[] = {
        {o->port, 1, 65535, 1, &port, "--port must be a number from 1 to 65535, not"},
        {o->at_once, 1, COLLECT_MOST_AT_ONCE, 1, &out->at_once,
         "--concurrency must be a number from 1 to 1024, not"},
        {o->attempts, 1, 100, 1, &out->attempts, "--attempts must be a number from 1 to 100, not"},
        {o->deadline, 0, MOST_SECONDS, MS, &out->all_ms,
         "--deadline must be a number of seconds, at most a day, not"},
        {o->host_limit, 0, MOST_SECONDS, MS, &out->host_ms,
         "--host-deadline must be a number of seconds, at most a day, not"},
    };

    *out = (struct collect_settings){.at_once = COLLECT_AT_ONCE,
                                     .attempts = COLLECT_ATTEMPTS,
                                     .host_ms = COLLECT_HOST_MS,
                                     .all_ms = COLLECT_ALL_MS,
                                     .most_bytes = COLLECT_MOST_BYTES,
                                     .ca_path = o->ca,
                                     .seed = clock_monotonic() ^ (uint64_t)getpid()};
    for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
        if (!parse_limit(&limits[i]))
            return client_usage_error(limits[i].what, limits[i].text);
    }
    if (o->ca && access(o->ca, R_OK) != 0)
        return client_usage_error("--ca: cannot read", o->ca);
    *out_port = (uint16_t)port;
    return EXIT_DONE;
}

/* ---- output ---- */

/* Writes one line on a terminal, which the next call overwrites. */
static void show_progress(void *self, uint32_t done, uint32_t failed, uint32_t of)
{
    nsec_t *const last = self;
    const nsec_t now = clock_monotonic();

    if (done < of && now - *last < 100 * NSEC_PER_MSEC)
        return;
    *last = now;
    fprintf(stderr, "\r%u of %u hosts, %u failed ", done, of, failed);
    if (done == of)
        fputs("\r\x1b[K", stderr);
    (void)fflush(stderr);
}

static uint32_t count_succeeded(const struct survey *s)
{
    return s->counts[FLEET_ANSWERED] + s->counts[FLEET_UNCHANGED];
}

static void print_text(const struct survey *s, const struct hosts *hosts)
{
    int width = 0;

    printf(
        "survey %lld: %u hosts, %u succeeded, %u GPUs, %u new fingerprints, %.2f s, %llu bytes\n",
        (long long)s->stored.number, s->host_count, count_succeeded(s), s->stored.gpu_count,
        s->stored.new_fingerprints, s->stored.elapsed_ms / 1000.0,
        (unsigned long long)s->received_bytes);
    if (hosts->again > 0)
        printf("  %u hosts named more than once, each requested once\n", hosts->again);
    if (s->stored.conflict_count > 0)
        printf("  %u UUIDs reported by more than one host: those GPUs do not count\n",
               s->stored.conflict_count);
    for (int i = 0; i < FLEET_OUTCOME_COUNT; i++) {
        if (s->counts[i] > 0)
            printf("  %-12s %u\n", fleet_outcome_name((enum fleet_outcome)i), s->counts[i]);
    }
    for (uint32_t i = 0; i < s->host_count; i++) {
        const int n =
            survey_is_fine(s->hosts[i].host.outcome) ? 0 : (int)strlen(s->hosts[i].host.name);
        width = n > width ? n : width;
    }
    if (width > 0)
        puts("failed:");
    for (uint32_t i = 0; i < s->host_count; i++) {
        const struct fleet_host *const h = &s->hosts[i].host;
        if (!survey_is_fine(h->outcome))
            printf("  %-*s  %-12s %s\n", width, h->name, fleet_outcome_name(h->outcome), h->detail);
    }
}

static void write_host(struct json_writer *t, const struct fleet_host *h, uint32_t gpus)
{
    json_writer_open(t, NULL, '{');
    json_writer_text(t, "host", h->name);
    json_writer_text(t, "outcome", fleet_outcome_name(h->outcome));
    json_writer_text(t, "detail", h->detail);
    json_writer_u64(t, "gpus", gpus);
    json_writer_u64(t, "attempts", h->attempts);
    json_writer_u64(t, "elapsed_ms", h->elapsed_ms);
    json_writer_u64(t, "received_bytes", h->received_bytes);
    json_writer_close(t, '}');
}

static enum status print_json(const struct survey *s, const struct hosts *hosts, struct err *err)
{
    struct json_writer t;

    json_writer_begin(&t, 0);
    json_writer_open(&t, NULL, '{');
    json_writer_i64(&t, "survey", s->stored.number);
    json_writer_u64(&t, "elapsed_ms", s->stored.elapsed_ms);
    json_writer_u64(&t, "received_bytes", s->received_bytes);
    json_writer_u64(&t, "named_again", hosts->again);
    json_writer_u64(&t, "gpus", s->stored.gpu_count);
    json_writer_u64(&t, "uuid_conflicts", s->stored.conflict_count);
    json_writer_u64(&t, "new_fingerprints", s->stored.new_fingerprints);
    json_writer_open(&t, "outcomes", '{');
    for (int i = 0; i < FLEET_OUTCOME_COUNT; i++)
        json_writer_u64(&t, fleet_outcome_name((enum fleet_outcome)i), s->counts[i]);
    json_writer_close(&t, '}');
    json_writer_open(&t, "hosts", '[');
    for (uint32_t i = 0; i < s->host_count; i++)
        write_host(&t, &s->hosts[i].host, s->hosts[i].gpu_count);
    json_writer_close(&t, ']');
    json_writer_close(&t, '}');
    return json_writer_print(&t, stdout, err);
}

static enum exit_code run_survey(const struct options *o, const struct hosts *hosts,
                                 const struct survey_settings *settings)
{
    struct fleet_db *db = NULL;
    struct survey survey = {0};
    struct err err = {0};
    enum exit_code exit_code = EXIT_DONE;
    enum status s = open_db(o->db, false, &db, &err);

    if (s == STATUS_OK)
        s = survey_run(db, hosts, settings, &survey, &err);
    if (s == STATUS_OK && o->json)
        s = print_json(&survey, hosts, &err);
    else if (s == STATUS_OK)
        print_text(&survey, hosts);
    if (s != STATUS_OK)
        exit_code = client_print_error(&err);
    else if (count_succeeded(&survey) == 0)
        exit_code = EXIT_UNREACHABLE;
    else if (count_succeeded(&survey) < survey.host_count)
        exit_code = EXIT_PARTLY;
    survey_free(&survey);
    fleet_close(db);
    return exit_code;
}

enum exit_code command_survey(struct client *client, const struct options *options)
{
    nsec_t last = 0;
    struct survey_settings settings = {.progress = isatty(STDERR_FILENO) ? show_progress : NULL,
                                       .self = &last};
    struct hosts hosts;
    struct err err = {0};
    uint16_t port = 0;
    enum exit_code exit_code = parse_settings(options, &settings.collect, &port);

    (void)client;
    if (options->url || options->socket_path)
        return client_usage_error("survey takes hosts, not --url or --socket", NULL);
    if (exit_code != EXIT_DONE)
        return exit_code;
    hosts_begin(&hosts, port);
    if (add_hosts(&hosts, options, &err) == STATUS_OK)
        exit_code = run_survey(options, &hosts, &settings);
    else
        exit_code = err.status == STATUS_INVALID_ARGUMENT || err.status == STATUS_FULL
                        ? client_usage_error(err.text, NULL)
                        : client_print_error(&err);
    hosts_free(&hosts);
    return exit_code;
}

/* ---- survey report ---- */

static enum exit_code parse_report(const struct options *o, struct fleet_report_options *out)
{
    char *end = NULL;
    unsigned bit;

    *out = (struct fleet_report_options){.model = o->model};
    for (int i = 0; i < o->operand_count; i++) {
        if (!fleet_report_from_name(o->operands[i], &bit))
            return client_usage_error("unknown report", o->operands[i]);
        out->reports |= bit;
    }
    if (o->json && o->format)
        return client_usage_error("--json and --format exclude each other", NULL);
    if (o->json)
        out->format = FLEET_FORMAT_JSON;
    if (o->format && !fleet_format_from_name(o->format, &out->format))
        return client_usage_error("--format must be table, json, csv, markdown or html, not",
                                  o->format);
    if (o->survey)
        out->survey = strtoll(o->survey, &end, 10);
    if (o->survey && (*end != '\0' || out->survey < 1))
        return client_usage_error("--survey must be the number of a survey, 1 or higher, not",
                                  o->survey);
    return EXIT_DONE;
}

enum exit_code command_survey_report(struct client *client, const struct options *options)
{
    struct fleet_report_options how;
    struct fleet_db *db = NULL;
    struct err err = {0};
    enum exit_code exit_code = parse_report(options, &how);
    enum status s;

    (void)client;
    if (options->url || options->socket_path)
        return client_usage_error(
            "survey report reads a database and does not take --url or --socket", NULL);
    if (exit_code != EXIT_DONE)
        return exit_code;
    s = open_db(options->db, true, &db, &err);
    if (s == STATUS_OK)
        s = fleet_report(db, &how, stdout, &err);
    fleet_close(db);
    if (s == STATUS_OK)
        return EXIT_DONE;
    (void)client_print_error(&err);
    return s == STATUS_INVALID_ARGUMENT ? EXIT_USAGE : EXIT_FAILED;
}
