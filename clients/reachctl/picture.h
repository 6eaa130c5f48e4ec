/* picture.h: the pictures of reachctl map --svg and show --svg curve, on standard output. */
#pragma once

#include "clients/reachctl/chip.h"

/* Draws each SM group as a box, colored and labeled by its window. If there are several classes of
 * groups by the cost of a miss, each class is a box around its groups. */
void picture_map(const struct chip *chip);

/* Draws throughput over bytes: naive, windows by group, and windows by SM id. Returns false if the
 * fingerprint has no curve. */
bool picture_curve(const struct fingerprint *fp, const char *id);
