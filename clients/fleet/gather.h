/* gather.h: the numbers of all GPUs of one kind, each brought to quartiles and to its median
 * absolute deviation, exactly and in little memory: what is too much to hold goes through a
 * temporary file (order.h).
 *
 *     gather_reset(g);
 *     for every GPU, every number:  gather_put(g, gather_slot(g, id, name), known, v, weight);
 *     gather_finish(g, err);
 *     for (i < g->count) ... g->numbers[i].median
 */
#ifndef REACH_CLIENTS_FLEET_GATHER_H
#define REACH_CLIENTS_FLEET_GATHER_H

#include "clients/fleet/keep_numbers.h"
#include "clients/fleet/order.h"

#include <stdio.h>

enum {
    GATHER_MAX_NUMBERS = 1024, /* of one kind; a fingerprint has up to 330 */
    GATHER_NONE = GATHER_MAX_NUMBERS,
    GATHER_STRUCTURE = NUMBER_MAX_NAMES /* for `id`: a number of the structure, found by name */
};

struct gather_number {
    char name[NUMBER_NAME_BYTES];
    uint32_t id;  /* GATHER_STRUCTURE: of the structure */
    uint32_t was; /* its slot before gather_finish */
    bool judged;  /* numbers_is_judged */
    uint64_t n;   /* GPUs that know it */
    uint64_t unknown;
    uint64_t unobservable;
    /* Where n > 0: */
    double least;
    double lower; /* quartile */
    double median;
    double upper;
    double most;
    double mad; /* median of the distances from the median */
};

struct gather {
    struct gather_number *numbers; /* owned; those of the structure first, then by id */
    uint32_t count;
    uint64_t left_out;            /* values of numbers beyond GATHER_MAX_NUMBERS */
    struct order *orders;         /* owned, by slot */
    uint16_t *slot_of;            /* owned: slot + 1 by id */
    uint16_t *place_of;           /* owned: place in `numbers` by the slot before gather_finish */
    FILE *spool;                  /* owned */
    struct gather_spooled *chunk; /* owned: what waits to be written, or was read */
    uint32_t waiting;
    bool failed; /* the temporary file */
};

enum status gather_new(struct gather **out, struct err *err);
void gather_free(struct gather *take);
void gather_reset(struct gather *g);
/* Where this number goes; GATHER_NONE where there are too many. `name` is read where it is new. */
uint32_t gather_slot(struct gather *g, uint32_t id, const char *name);
/* Its slot, or GATHER_NONE: asks only. */
uint32_t gather_find(const struct gather *g, uint32_t id);
/* `weight` GPUs have this value; where it is one, `who` is told again by gather_each. */
void gather_put(struct gather *g, uint32_t slot, enum known known, double v, uint32_t weight,
                uint32_t who);
enum status gather_finish(struct gather *g, struct err *err);

/* After gather_finish: all values once more, in the order in which they came. Returns what `each`
 * returns, where that is not STATUS_OK. */
typedef enum status gather_fn(void *self, const struct gather_number *number, double v,
                              uint32_t who, struct err *err);
enum status gather_each(struct gather *g, gather_fn *each, void *self, struct err *err);

#endif
