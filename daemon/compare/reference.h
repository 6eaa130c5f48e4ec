/* reference.h: the reference set: chips that others have measured, by kind. It contains the values,
 * the median and the range of each number, and the most frequent value of each property. It is made
 * once from a folder of documents of share.h. Afterwards it is read-only and may be used on any
 * thread. A kind is a name, a compute capability, a number of SMs and a size of memory. All kinds
 * come from the documents. */
#pragma once

#include "compare/outlier.h"
#include "base/status.h"
#include "fingerprint/fingerprint.h"

struct reference_number {
    const char *name;
    uint32_t chips; /* number of chips that have the number */
    double least;
    double median;
    double most;
    double deviation;         /* median of the distances from the median */
    double *values;           /* one value per chip, owned */
    struct outlier_lent lent; /* spread that other kinds lend to a kind with few chips */
};

struct reference_property {
    const char *name;
    const char *usual; /* the most frequent value; the first in alphabetical order wins ties */
    uint32_t have;     /* number of chips that have this value */
    uint32_t chips;    /* number of chips that have any value */
};

struct reference_map {
    const char *hash;
    uint32_t chips;
};

struct reference_kind {
    const char *name;
    const char *compute_capability;
    uint32_t sm_count;
    uint64_t memory_bytes; /* size of memory of the first chip of the kind */
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
    size_t bytes; /* size of all allocations of the reference */
    char *texts;  /* buffer with all names and words */
};

/* Reads every *.json of a folder. Returns STATUS_NOT_FOUND if there is no such folder, and
 * STATUS_CORRUPT if a file in it is not a document of share.h. This is the only function of the
 * layer that does I/O. */
enum status reference_load(const char *folder, struct reference **out, struct err *err);
/* Frees a reference. `take` may be NULL. */
void reference_free(struct reference *take);

/* Finds the reference set of the running program: share/reachd/reference under the prefix of an
 * installed program, or "reference" in the folder of the program. `out` has `size` bytes. Returns
 * false if neither folder exists. */
bool reference_find_folder(char *out, size_t size);

/* Returns the kind of a chip, or NULL if it is unknown or `reference` is NULL. Two sizes of memory
 * count as equal if they differ by less than 2 %, because drivers reserve different amounts. */
const struct reference_kind *reference_find_kind(const struct reference *reference,
                                                 const struct gpu_identity *gpu);

/* Returns the number called `name`, or NULL if no chip of the kind has it. The search begins at row
 * `from`. */
const struct reference_number *reference_find_number(const struct reference_kind *kind,
                                                     uint32_t from, const char *name);
