/* options.h: the command line of random_read. Host code without CUDA. */
#ifndef REACH_EXAMPLES_OPTIONS_H
#define REACH_EXAMPLES_OPTIONS_H

#include "ask_daemon.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Strings are borrowed from the command line or static. */
struct options {
    const char *reachd; /* as reach_open takes it; NULL: its default */
    const char *gpu;    /* CUDA's index; with dry_run the daemon's index or a UUID */
    uint64_t bytes;     /* 0: the largest allocation the GPU gives */
    uint64_t lines;     /* read in each repeat, by each strategy */
    uint32_t repeats;   /* timed ones */
    uint32_t seed;
    const char *json; /* path, or NULL */
    bool dry_run;
    bool help;
};

extern const char options_help[];

/* False, and `why`, for a command line that makes no sense. */
bool options_parse(int argc, char **argv, struct options *out, char *why);

#ifdef __cplusplus
}
#endif

#endif
