/* check_chips.h: compares the model of translation with measured GPUs. */
#ifndef REACH_CLIENTS_LAB_VALIDATE_CHECK_CHIPS_H
#define REACH_CLIENTS_LAB_VALIDATE_CHECK_CHIPS_H

/* Prints the targets V1, V3 and V4 for the GPUs in a folder like docs/measurements. Returns an exit
 * status. */
int check_chips(const char *folder);

#endif
