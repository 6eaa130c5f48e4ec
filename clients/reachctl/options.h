/* options.h: what the command line asked for. */
#ifndef REACHCTL_OPTIONS_H
#define REACHCTL_OPTIONS_H

#include <stdbool.h>

/* What the shell gets. In --help, and scripts rely on it. */
enum exit_code {
    EXIT_DONE = 0,
    EXIT_FAILED = 1,      /* the daemon refused, or a measurement failed */
    EXIT_USAGE = 2,       /* the command line makes no sense */
    EXIT_UNREACHABLE = 3, /* no daemon answers */

    /* fingerprint diff speaks as diff does: 0 the same. */
    EXIT_DIFF_CHANGED = 1,
    EXIT_DIFF_OTHER = 2,
    EXIT_DIFF_TROUBLE = 3, /* whatever kept the two from being compared, wrong usage too */
};

/* Options that only some commands take: bits of options.given and of a command's row. */
enum option_bit {
    OPTION_GPU = 1 << 0,
    OPTION_DEPTH = 1 << 1,
    OPTION_FOLLOW = 1 << 2,
    OPTION_WINDOWS = 1 << 3,
    OPTION_GRANULARITY = 1 << 4,
    OPTION_RUN = 1 << 5,
    OPTION_CSV = 1 << 6,
    OPTION_AT = 1 << 7,
    OPTION_ACCESS = 1 << 8,
    OPTION_GPU_NAME = 1 << 9,
    OPTION_EXPORT = 1 << 10,
    OPTION_EVIDENCE = 1 << 11,
    OPTION_ELEMENT = 1 << 12,
    OPTION_TRANSACTION = 1 << 13,
    OPTION_RESERVE = 1 << 14,
    OPTION_ACCESSES = 1 << 15,
    OPTION_FIXED = 1 << 16,
    OPTION_ONCE = 1 << 17,
    OPTION_INPUT_BYTES = 1 << 18,
    OPTION_INPUT_GBPS = 1 << 19,
    OPTION_LOOK_GPS = 1 << 20,
    OPTION_INSIDE_GBPS = 1 << 21,
    OPTION_WEIGHT = 1 << 22,
    OPTION_GBPS = 1 << 23,
    OPTION_OUTPUT_BYTES = 1 << 24,
    OPTION_DEAL_BYTES = 1 << 25,
    OPTION_STATE = 1 << 26,
    OPTION_END = 1 << 27, /* one beyond the last */
};

struct options {
    const char *socket_path; /* NULL: not given */
    const char *url;         /* NULL: not given */
    const char *gpu;         /* index or UUID; "0" unless given */
    bool json;
    unsigned given; /* option_bit of those that were there */
    const char *depth;
    const char *windows;
    const char *granularity;
    const char *run;
    const char *at;
    const char *access;
    const char *gpu_name;
    const char *export_dir;
    /* Of plan, split and explain, as the daemon takes them. */
    const char *element;
    const char *transaction;
    const char *reserve;
    const char *accesses;
    const char *input_bytes;
    const char *input_gbps;
    const char *look_gps;
    const char *inside_gbps;
    const char *output_bytes;
    const char *deal_bytes;
    const char *weight;
    const char *gbps;
    const char *state;   /* path of the daemon's state file */
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
command_fn command_import;
command_fn command_backup;

#endif
