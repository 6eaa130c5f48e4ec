/* reference.h: chips that others have measured, by kind. It contains the values, the median and the
 * range of each number, and the most frequent value of each property. It is made once from a folder
 * of documents of share.h and is read-only afterwards: any thread. A kind is a name, a compute
 * capability, a number of SMs and a size of memory, all from the documents; no kind is built in. */
#ifndef REACH_COMPARE_REFERENCE_H
#define REACH_COMPARE_REFERENCE_H

#include "compare/outlier.h"
#include "base/status.h"
#include "fingerprint/fingerprint.h"

struct reference_number {
    const char *name;
    uint32_t chips; /* chips that have the number */
    double least;
    double median;
    double most;
    double deviation;         /* median distance from the median */
    double *values;           /* one value per chip, owned */
    struct outlier_lent lent; /* lent by other kinds to a kind with few chips */
};

struct reference_property {
    const char *name;
    const char *usual; /* the most frequent value; the first in order wins ties */
    uint32_t have;     /* chips that have this value */
    uint32_t chips;    /* chips that have any value */
};

struct reference_map {
    const char *hash;
    uint32_t chips;
};

struct reference_kind {
    const char *name;
    const char *compute_capability;
    uint32_t sm_count;
    uint64_t memory_bytes; /* from its first chip */
    uint32_t chips;
    uint32_t number_count;
    uint32_t property_count;
    uint32_t map_count;
    struct reference_number *numbers;
    struct reference_property *properties;
    struct reference_map *maps;
};

struct reference {
    uint32_t kind_count;
    struct reference_kind *kinds;
    size_t bytes; /* size of the whole reference */
    char *texts;  /* all names */
};

/* Reads every *.json of a folder. Returns STATUS_NOT_FOUND if there is no such folder, and
 * STATUS_CORRUPT if a file in it is not a document of share.h. The only function of this layer that
 * does I/O. */
enum status reference_load(const char *folder, struct reference **out, struct err *err);
/* `take` may be NULL. */
void reference_free(struct reference *take);

/* The folder beside the program that runs: share/reachd/reference under the prefix of an installed
 * program, else "reference" in the program's own folder. `out` has `size` bytes; returns false if
 * neither exists. */
bool reference_find_folder(char *out, size_t size);

/* The kind of a chip, or NULL if it is unknown or `reference` is NULL. Two sizes of memory are the
 * same if they differ by less than 2 %, because drivers reserve different amounts. */
const struct reference_kind *reference_find_kind(const struct reference *reference,
                                                 const struct gpu_identity *gpu);

/* The number called `name`, or NULL if no chip of the kind has it. The search begins at row
 * `from`. */
const struct reference_number *reference_find_number(const struct reference_kind *kind,
                                                     uint32_t from, const char *name);

#endif
