/* options.h: what the command line asked for. */
#ifndef REACHCTL_OPTIONS_H
#define REACHCTL_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* What the shell gets. In --help, and scripts rely on it. */
enum exit_code {
    EXIT_DONE = 0,
    EXIT_FAILED = 1,      /* the daemon refused, or a measurement failed */
    EXIT_USAGE = 2,       /* the command line makes no sense */
    EXIT_UNREACHABLE = 3, /* no daemon answers */
    EXIT_PARTLY = 4,      /* of survey: some hosts were not heard */

    /* fingerprint diff speaks as diff does: 0 the same. */
    EXIT_DIFF_CHANGED = 1,
    EXIT_DIFF_OTHER = 2,
    EXIT_DIFF_TROUBLE = 3, /* whatever kept the two from being compared, wrong usage too */
};

/* Options that only some commands take: bits of options.given and of a command's row. */
#define OPTION_BIT(n)       (UINT64_C(1) << (n))
#define OPTION_GPU          OPTION_BIT(0)
#define OPTION_DEPTH        OPTION_BIT(1)
#define OPTION_FOLLOW       OPTION_BIT(2)
#define OPTION_WINDOWS      OPTION_BIT(3)
#define OPTION_GRANULARITY  OPTION_BIT(4)
#define OPTION_RUN          OPTION_BIT(5)
#define OPTION_CSV          OPTION_BIT(6)
#define OPTION_AT           OPTION_BIT(7)
#define OPTION_ACCESS       OPTION_BIT(8)
#define OPTION_GPU_NAME     OPTION_BIT(9)
#define OPTION_EXPORT       OPTION_BIT(10)
#define OPTION_EVIDENCE     OPTION_BIT(11)
#define OPTION_ELEMENT      OPTION_BIT(12)
#define OPTION_TRANSACTION  OPTION_BIT(13)
#define OPTION_RESERVE      OPTION_BIT(14)
#define OPTION_ACCESSES     OPTION_BIT(15)
#define OPTION_FIXED        OPTION_BIT(16)
#define OPTION_ONCE         OPTION_BIT(17)
#define OPTION_INPUT_BYTES  OPTION_BIT(18)
#define OPTION_INPUT_GBPS   OPTION_BIT(19)
#define OPTION_SCAN_GPS     OPTION_BIT(20)
#define OPTION_INSIDE_GBPS  OPTION_BIT(21)
#define OPTION_WEIGHT       OPTION_BIT(22)
#define OPTION_GBPS         OPTION_BIT(23)
#define OPTION_OUTPUT_BYTES OPTION_BIT(24)
#define OPTION_DEAL_BYTES   OPTION_BIT(25)
#define OPTION_STATE        OPTION_BIT(26)
#define OPTION_DIR          OPTION_BIT(27)
#define OPTION_NAMESPACE    OPTION_BIT(28)
#define OPTION_EVERY        OPTION_BIT(29)
#define OPTION_EXPIRES      OPTION_BIT(30)
#define OPTION_HOSTS        OPTION_BIT(31)
#define OPTION_FILE_SD      OPTION_BIT(32)
#define OPTION_SLURM        OPTION_BIT(33)
#define OPTION_DB           OPTION_BIT(34)
#define OPTION_PORT         OPTION_BIT(35)
#define OPTION_CA           OPTION_BIT(36)
#define OPTION_DEADLINE     OPTION_BIT(37)
#define OPTION_HOST_LIMIT   OPTION_BIT(38)
#define OPTION_AT_ONCE      OPTION_BIT(39)
#define OPTION_ATTEMPTS     OPTION_BIT(40)
#define OPTION_MERGE        OPTION_BIT(41)
#define OPTION_FORMAT       OPTION_BIT(42)
#define OPTION_SURVEY       OPTION_BIT(43)
#define OPTION_MODEL        OPTION_BIT(44)
enum { OPTION_COUNT = 45 }; /* at most 64 */

/* Options that may come again, in the order in which they came. */
enum { OPTIONS_MOST_SOURCES = 64 };
struct option_source {
    uint64_t bit; /* OPTION_HOSTS, OPTION_FILE_SD, OPTION_SLURM */
    const char *value;
};

/* Options that are parameters of a request: --input-bytes is input_bytes of the API. */
#define OPTION_PARAMS                                                                              \
    (OPTION_WINDOWS | OPTION_GRANULARITY | OPTION_ACCESS | OPTION_ELEMENT | OPTION_TRANSACTION |   \
     OPTION_RESERVE | OPTION_ACCESSES | OPTION_FIXED | OPTION_ONCE | OPTION_INPUT_BYTES |          \
     OPTION_INPUT_GBPS | OPTION_SCAN_GPS | OPTION_INSIDE_GBPS | OPTION_WEIGHT | OPTION_GBPS |      \
     OPTION_OUTPUT_BYTES | OPTION_DEAL_BYTES)
enum { OPTIONS_MAX_PARAMS = 17 };
struct option_param {
    const char *name;  /* of the option, without its dashes in front */
    const char *value; /* "true" for a switch */
};

struct options {
    const char *socket_path; /* NULL: not given */
    const char *url;         /* NULL: not given */
    const char *gpu;         /* index or UUID; "0" unless given */
    bool json;
    uint64_t given; /* OPTION_ bits of those that were there */
    struct option_param params[OPTIONS_MAX_PARAMS];
    uint32_t param_count;
    const char *depth;
    const char *run;
    const char *at;
    const char *gpu_name;
    const char *export_dir;
    const char *dir; /* of feature files */
    const char *label_namespace;
    const char *every;
    const char *merge; /* path of a topology */
    const char *expires;
    const char *state; /* path of the daemon's state file */
    /* Of survey. */
    struct option_source sources[OPTIONS_MOST_SOURCES];
    int source_count; /* may be more than there is room for */
    const char *db;
    const char *port;
    const char *ca;
    const char *deadline;
    const char *host_limit;
    const char *at_once;
    const char *attempts;
    const char *format; /* of survey report, and the next two */
    const char *survey;
    const char *model;
    const char *operand; /* BYTES, an ID or the first file; NULL: none */
    const char *second;  /* operand; NULL: none */
    int operand_count;   /* of them all */
    char **operands;     /* borrowed from the command line */
};

struct client;

/* One command: runs, prints, returns an exit code. */
typedef enum exit_code command_fn(struct client *client, const struct options *options);

command_fn command_gpus;
command_fn command_fingerprint;
command_fn command_show;
command_fn command_scope;
command_fn command_placement;
command_fn command_plan;
command_fn command_split;
command_fn command_explain;
command_fn command_observations;
command_fn command_diff;
command_fn command_map;
command_fn command_nfd;
command_fn command_hwloc;
command_fn command_import;
command_fn command_backup;
command_fn command_survey;
command_fn command_survey_report;

#endif
