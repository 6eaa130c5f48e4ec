/* params_help.h: the parameters of requests as options of the command line. */
#ifndef REACHCTL_PARAMS_HELP_H
#define REACHCTL_PARAMS_HELP_H

#include "planner/params.h"

enum { OPTION_NAME_BYTES = 32 };

/* "no-sm-binding". `out` has OPTION_NAME_BYTES. Returns `out`. */
const char *params_option_name(const struct param *p, char *out);

/* Prints all parameters but the first, the bytes, which are operands. */
void params_help_print(void);

#endif
