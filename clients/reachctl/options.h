/* options.h: the command line. */
#pragma once

#include "planner/params.h"

#include <stdbool.h>
#include <stdint.h>

/* Exit statuses. --help lists them, and scripts rely on them. */
enum exit_code {
    EXIT_DONE = 0,
    EXIT_FAILED = 1,      /* the daemon refused the request, or a measurement failed */
    EXIT_USAGE = 2,       /* invalid command line */
    EXIT_UNREACHABLE = 3, /* no daemon responds */
    EXIT_PARTLY = 4,      /* survey: some hosts failed */

    /* health: 1 means a problem of the node, 3 that its state is unknown. */

    /* diff has the statuses of diff(1); 0 means no difference. */
    EXIT_DIFF_CHANGED = 1,
    EXIT_DIFF_OTHER = 2,
    EXIT_DIFF_TROUBLE = 3, /* the fingerprints could not be compared, or the usage is invalid */
};

/* Options that only some commands take: X(ID, field of struct options, name, argument of getopt).
 * Options of requests to the planner are in planner/params.h. */
#define OPTIONS_ALL(X)                                                                             \
    X(GPU, gpu, "gpu", required_argument)                                                          \
    X(DEPTH, depth, "depth", required_argument)                                                    \
    X(WAIT, wait, "wait", no_argument)                                                             \
    X(LOST, lost, "lost", no_argument)                                                             \
    X(RUN, run, "run", required_argument)                                                          \
    X(CSV, csv, "csv", no_argument)                                                                \
    X(ALL, all, "all", no_argument)                                                                \
    X(AT, at, "at", required_argument)                                                             \
    X(GPU_NAME, gpu_name, "gpu-name", required_argument)                                           \
    X(EXPORT, export_dir, "export", required_argument)                                             \
    X(EVIDENCE, evidence, "evidence", no_argument)                                                 \
    X(STATE, state, "state", required_argument)                                                    \
    X(HOSTS, hosts, "hosts", required_argument)                                                    \
    X(FILE_SD, file_sd, "file-sd", required_argument)                                              \
    X(SLURM, slurm, "slurm", required_argument)                                                    \
    X(DB, db, "db", required_argument)                                                             \
    X(PORT, port, "port", required_argument)                                                       \
    X(CA, ca, "ca", required_argument)                                                             \
    X(DEADLINE, deadline, "deadline", required_argument)                                           \
    X(HOST_LIMIT, host_limit, "host-deadline", required_argument)                                  \
    X(AT_ONCE, at_once, "concurrency", required_argument)                                          \
    X(ATTEMPTS, attempts, "attempts", required_argument)                                           \
    X(FORMAT, format, "format", required_argument)                                                 \
    X(SURVEY, survey, "survey", required_argument)                                                 \
    X(MODEL, model, "model", required_argument)                                                    \
    X(FINGERPRINT, fingerprint, "fingerprint", required_argument)                                  \
    X(REFERENCE, reference, "reference", required_argument)                                        \
    X(SVG, svg, "svg", no_argument)                                                                \
    X(BYTES, bytes, "bytes", required_argument)

#define OPTIONS_ID(id, field, name, argument)    OPTION_##id,
#define OPTIONS_FIELD(id, field, name, argument) const char *field;
enum option_id { OPTIONS_ALL(OPTIONS_ID) OPTION_COUNT };

/* Options that may be repeated, in the order of the command line. */
enum { OPTIONS_MOST_SOURCES = 64 };
struct option_source {
    enum option_id id; /* OPTION_HOSTS, OPTION_FILE_SD, OPTION_SLURM */
    const char *value;
};

/* The command line. Strings are borrowed from it. */
struct options {
    const char *command;     /* its name */
    const char *socket_path; /* NULL if it was not given, like every other string */
    const char *url;
    bool json;
    union { /* each option is a field and an element of `value`; the value of a switch is "true" */
        struct {
            OPTIONS_ALL(OPTIONS_FIELD)
        };
        const char *value[OPTION_COUNT];
    };
    const char *params[PARAM_MOST_ROWS]; /* values by row of planner/params.h */
    struct option_source sources[OPTIONS_MOST_SOURCES];
    int source_count;    /* can exceed the size of `sources` */
    const char *operand; /* BYTES, an ID or the first file; NULL if there is none */
    const char *second;  /* the second operand; NULL if there is none */
    int operand_count;   /* of all */
    char **operands;
};

/* Returns the value of the parameter with this name; NULL if it was not given. */
const char *options_param(const struct options *options, const char *name);

struct client;

/* A command runs, prints and returns an exit code. */
typedef enum exit_code command_fn(struct client *client, const struct options *options);

command_fn command_forget;
command_fn command_gpus;
command_fn command_health;
command_fn command_measure;
command_fn command_show;
command_fn command_answer; /* scope, placement, plan, split, explain, memory, fit, caches */
command_fn command_break_even;
command_fn command_observations;
command_fn command_diff;
command_fn command_map;
command_fn command_compare;
command_fn command_share;
command_fn command_import;
command_fn command_backup;
command_fn command_export;
command_fn command_contiguity;
command_fn command_survey;
command_fn command_survey_report;
