/* params_help.h: the parameters of requests as options of the command line. */
#ifndef REACHCTL_PARAMS_HELP_H
#define REACHCTL_PARAMS_HELP_H

#include "planner/params.h"

enum { OPTION_NAME_BYTES = 32 };

/* Writes the name of an option, "no-sm-binding", to out[OPTION_NAME_BYTES]; returns `out`. */
const char *params_option_name(const struct param *p, char *out);

/* Prints all parameters except the first one: the bytes are operands. */
void params_help_print(void);

#endif
