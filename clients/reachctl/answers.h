/* answers.h: what the commands that ask for an answer have in common. */
#ifndef REACHCTL_ANSWERS_H
#define REACHCTL_ANSWERS_H

#include "clients/reachctl/options.h"

#include <jansson.h>

typedef void answers_print_fn(const json_t *answer);

/* Asks `path` and prints the answer, or its JSON with --json. */
enum exit_code answers_ask(struct client *client, const struct options *options, const char *path,
                           answers_print_fn *print);

/* The windows of an answer and the SMs of each; nothing where it has none. */
void answers_print_windows(const json_t *answer);
/* The reason, and where the numbers are from unless they are measured. */
void answers_print_foot(const json_t *answer);

#endif
