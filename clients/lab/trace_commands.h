/* trace_commands.h: the commands of reach-lab about traces. Each prints to stdout, and errors to
 * stderr, and returns an exit status of lab.h. `argv` is what follows the command's name.
 */
#ifndef REACH_CLIENTS_LAB_TRACE_COMMANDS_H
#define REACH_CLIENTS_LAB_TRACE_COMMANDS_H

#include "clients/lab/whatif.h"

#include <jansson.h>

int lab_gen(int argc, char **argv);     /* JOB [options] */
int lab_import(int argc, char **argv);  /* nvbit|accelsim|csv [--granule B] FILE|- */
int lab_info(int argc, char **argv);    /* [--json] TRACE|- */
int lab_what_if(int argc, char **argv); /* [options] FINGERPRINT TRACE|- */

/* V2: what-if beside the jobs measured in a folder like docs/measurements. */
int lab_check_jobs(const char *folder);

/* The speed of the importers. */
int lab_bench_traces(void);

/* The answer as a table, or as JSON. False: nothing could be written. */
bool whatif_print(const struct fingerprint *fp, const struct whatif_answer *answer, FILE *out);
bool whatif_print_json(const struct fingerprint *fp, const struct whatif_answer *answer, FILE *out);

/* What is left out of `records` accesses: a line for each kind of reason, none if nothing is. */
void left_out_print(const struct rlt_left_out *l, uint64_t records, FILE *out);
/* {"share", "copies", "textures", "unknown", "lost"} */
json_t *left_out_json(const struct rlt_left_out *l, uint64_t records);

/* What an option of a command needs: the text behind it. */
struct option_list {
    int argc; /* that are left */
    char **argv;
    const char *command;
    bool failed; /* and it was said why */
};
/* The value of `--name VALUE` at the front, which is then taken away; NULL: it is not there. */
const char *option_value(struct option_list *l, const char *name);
bool option_flag(struct option_list *l, const char *name);
/* Numbers; on failure l->failed is set and what is wrong was printed. */
bool option_bytes(struct option_list *l, const char *name, uint64_t *out);
bool option_count(struct option_list *l, const char *name, uint64_t *out);
bool option_real(struct option_list *l, const char *name, double *out);
/* Says that it does not know what is in front, or that `wanted` words are not what is left. True if
 * all is well. */
bool option_end(struct option_list *l, int wanted);

/* Opens a file, or stdin for "-". NULL: it was said why. */
FILE *trace_open(const char *path);

#endif
