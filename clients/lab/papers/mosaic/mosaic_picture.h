/* mosaic_picture.h: draws a figure of Mosaic as SVG. */
#ifndef REACH_CLIENTS_LAB_PAPERS_MOSAIC_MOSAIC_PICTURE_H
#define REACH_CLIENTS_LAB_PAPERS_MOSAIC_MOSAIC_PICTURE_H

#include "clients/lab/papers/mosaic/mosaic_report.h"

/* Prints the numbers of the report to stdout. */
void mosaic_print_svg(const struct mosaic_report *r, const char *figure);

#endif
