/* pichai_picture.h: draws a figure of Pichai 2014 as SVG. */
#ifndef REACH_CLIENTS_LAB_PAPERS_PICHAI_PICHAI_PICTURE_H
#define REACH_CLIENTS_LAB_PAPERS_PICHAI_PICHAI_PICTURE_H

#include "clients/lab/papers/pichai/pichai_runs.h"

/* Prints bars to stdout, one group for each job. */
void pichai_print_svg(const struct pichai_runs *runs, const struct pichai_figure *figure);

#endif
