/* map_json.h: the map of a chip for programs. */
#ifndef REACHCTL_MAP_JSON_H
#define REACHCTL_MAP_JSON_H

#include "clients/reachctl/chip.h"
#include "clients/reachctl/options.h"

/* Prints one object to stdout; EXIT_FAILED, with a line on stderr, without memory. */
enum exit_code map_print_json(const struct chip *chip);

#endif
