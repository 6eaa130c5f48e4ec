/* keep_numbers.h: the numbers of a fingerprint in the form they are kept in.
 *
 * Two kinds. The structure is what a model has by its design (levels, entries, page sizes): a text
 * of lines "name=value", of which a fleet has few, so it stands once in the database. The measured
 * numbers differ from one measurement to the next: one text of cells a fingerprint,
 *
 *     IIII=VVVVVVVVVVVVVVVV   number IIII (hexadecimal, fleet_number), the double's bits
 *     IIII?                   not known        IIII!   not observable
 *
 * which reads back exactly and a hundred times faster than a table with a row a number. In a
 * structure "?" and "!" stand for the value. What there is one of for every group or SM is kept as
 * least, median and most, so that chips with other groups compare.
 */
#ifndef REACH_CLIENTS_FLEET_KEEP_NUMBERS_H
#define REACH_CLIENTS_FLEET_KEEP_NUMBERS_H

#include "fingerprint/fingerprint.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    NUMBER_MAX_NAMES = 0x10000, /* of all fingerprints together */
    NUMBER_NAME_BYTES = 96,
    NUMBER_CELL_BYTES = 21 /* of a known one */
};

/* ---- writing ---- */

typedef void number_fn(void *self, const char *name, enum known known, double v);
/* Every measured number of `fp`, always in the same order. */
void numbers_visit(const struct fingerprint *fp, number_fn *visit, void *self);
/* The text of the structure, from malloc; NULL without memory. */
char *numbers_structure(const struct fingerprint *fp);

/* Names by their numbers. */
struct number_names;
struct number_names *number_names_new(void); /* NULL without memory */
void number_names_free(struct number_names *take);
/* Adds the next one: the first has number 0. STATUS_FULL, STATUS_NO_MEMORY. */
enum status number_names_add(struct number_names *names, const char *name, struct err *err);
uint32_t number_names_count(const struct number_names *names);
/* NUMBER_MAX_NAMES where it is not there. */
uint32_t number_names_find(const struct number_names *names, const char *name);
/* Borrowed; NULL where there is none. */
const char *number_names_get(const struct number_names *names, uint32_t id);

/* Appends one cell; returns where the next one goes. `at` has room for NUMBER_CELL_BYTES + 1. */
char *numbers_put(char *at, uint32_t id, enum known known, double v);

/* ---- reading ---- */

struct number_cell {
    uint32_t id;
    enum known known;
    double v; /* 0 where it is not known */
};
/* Reads the cell at `*at` and moves on. False at the end of the text, and where it is no cell. */
bool numbers_get(const char **at, struct number_cell *out);

struct structure_line {
    char name[NUMBER_NAME_BYTES];
    char value[NUMBER_NAME_BYTES];
    enum known known;
    bool is_number; /* and then `v` is it */
    double v;
};
/* Reads the line at `*at` and moves on; false at the end. */
bool numbers_structure_line(const char **at, struct structure_line *out);

/* May a GPU be told from the others by this number? Not by how long it took, in which the host has
 * a hand, nor by what it has lost, which the signatures count. */
bool numbers_is_judged(const char *name);

#endif
