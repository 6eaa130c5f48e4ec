/* picture.h: what reachctl map and show draw with --svg, to standard output. */
#ifndef REACHCTL_PICTURE_H
#define REACHCTL_PICTURE_H

#include "clients/reachctl/chip.h"

/* The SM groups as boxes, in a box for each class of groups by what a miss costs if there are
 * several, colored and labeled by window. */
void picture_map(const struct chip *chip);

/* Throughput over bytes: naive, windows by group, and windows without regard to groups. False if
 * the fingerprint has no curve. */
bool picture_curve(const struct fingerprint *fp, const char *id);

#endif
