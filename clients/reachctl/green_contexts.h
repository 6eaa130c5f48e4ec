/* green_contexts.h: prints the answer of split as a recipe for green contexts of CUDA. */
#pragma once

#include "clients/reachctl/client.h"

/* GETs `path`, an answer of split, and the fingerprint of the answer. Prints for each job the
 * parameters of cuDevSmResourceSplit, the SMs of its context, and the groups that two contexts
 * share; with --json as a document. Prints a message if a request fails. */
enum exit_code green_contexts_print(struct client *client, const struct options *options,
                                    const char *path);
