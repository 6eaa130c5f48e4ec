/* check_chips.h: compares the model of translation with measured GPUs. */
#pragma once

/* Prints the targets V1, V3 and V4 for the GPUs in a folder like docs/measurements. Returns an exit
 * status. */
int check_chips(const char *folder);
