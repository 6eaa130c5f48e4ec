/* formats.h: readers of the two kinds of text that import.c distinguishes; see import.h. */
#ifndef REACH_IMPORT_FORMATS_H
#define REACH_IMPORT_FORMATS_H

#include "import/import.h"
#include "import/lines.h"

/* What the first line says: "#NAME: cuda MAJOR.MINOR[, reduction mode: avg|min]". */
struct import_head {
    char name[96];
    uint32_t compute_major;
    uint32_t compute_minor;
    bool smallest; /* reduction mode min: the smallest of several numbers is reported */
};

/* Reads what follows: `l` is at the line of the strides ("#,64,128,256,"). Appends MEANS. */
enum status import_read_curves(struct lines *l, struct observation_set *set, struct err *err);

/* Reads what follows: `l` is at the line of the column heads ("#   000 001"). Appends one
 * MEAN_PAIRS. */
enum status import_read_sharing(struct lines *l, const struct import_head *head,
                                struct observation_set *set, struct err *err);

#endif
