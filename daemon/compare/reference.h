/* reference.h: the chips that others have measured, by kind: of each number what each chip has, the
 * median and the range, of each property what most have. Made once from a folder of documents of
 * share.h, then read only: any thread. A kind is a name, a compute capability, a number of SMs and
 * a size of memory, all from the documents; no kind is known here.
 */
#ifndef REACH_COMPARE_REFERENCE_H
#define REACH_COMPARE_REFERENCE_H

#include "compare/outlier.h"
#include "base/status.h"
#include "fingerprint/fingerprint.h"

struct reference_number {
    const char *name;
    uint32_t chips; /* that have it */
    double least;
    double median;
    double most;
    double deviation;         /* median distance from the median */
    double *values;           /* of each of them, owned */
    struct outlier_lent lent; /* by other kinds, to a kind with few chips */
};

struct reference_property {
    const char *name;
    const char *usual; /* what most have; of equal numbers the first in order */
    uint32_t have;     /* chips that have that */
    uint32_t chips;    /* that have any */
};

struct reference_map {
    const char *hash;
    uint32_t chips;
};

struct reference_kind {
    const char *name;
    const char *compute_capability;
    uint32_t sm_count;
    uint64_t memory_bytes; /* of its first chip */
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
    size_t bytes; /* of it all */
    char *texts;  /* all names */
};

/* Reads every *.json of a folder. STATUS_NOT_FOUND: there is no such folder. STATUS_CORRUPT: a file
 * in it is no document of share.h. The only function of this layer that does I/O. */
enum status reference_load(const char *folder, struct reference **out, struct err *err);
/* NULL is fine. */
void reference_free(struct reference *take);

/* The folder beside the program that runs: share/reachd/reference under the prefix of an installed
 * program, else "reference" in the program's own folder. `out` has `size` bytes; false if neither
 * is there. */
bool reference_find_folder(char *out, size_t size);

/* The kind of a chip; NULL: unknown, also without a reference. Two sizes of memory are the same if
 * they differ by less than 2 %: drivers reserve different amounts. */
const struct reference_kind *reference_find_kind(const struct reference *reference,
                                                 const struct gpu_identity *gpu);

/* The number of that name, looked for from row `from` on; NULL: no chip of the kind has it. */
const struct reference_number *reference_find_number(const struct reference_kind *kind,
                                                     uint32_t from, const char *name);

#endif
