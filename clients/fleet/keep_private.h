/* keep_private.h: what the files that keep and report share. */
#ifndef REACH_CLIENTS_FLEET_KEEP_PRIVATE_H
#define REACH_CLIENTS_FLEET_KEEP_PRIVATE_H

#include "clients/fleet/keep_engine.h"
#include "clients/fleet/keep_numbers.h"

struct fleet_db {
    const struct fleet_engine *engine;
    void *connection;           /* the engine's */
    int64_t survey;             /* that is under way; 0: none */
    struct number_names *names; /* that have a number; NULL: not read yet */
};

/* A number as a parameter. */
enum { FLEET_NUMBER_BYTES = 24 };
const char *fleet_number_text(int64_t v, char *out); /* returns `out`, of FLEET_NUMBER_BYTES */

/* fleet_query of a constant text, which stays prepared. */
enum status fleet_run(struct fleet_db *db, const char *sql, int parameter_count,
                      const char *const *parameters, fleet_row_fn *row, void *self,
                      struct err *err);
#define FLEET_VALUES(...)                                                                          \
    (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)),                      \
        (const char *const[])                                                                      \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
/* One number, the first column of the first row; `*out_found` is false where there is no row, or a
 * null in it. */
enum status fleet_run_number(struct fleet_db *db, const char *sql, int parameter_count,
                             const char *const *parameters, int64_t *out, bool *out_found,
                             struct err *err);

/* Between the two all queries see one state of the database. */
enum status fleet_read_begin(struct fleet_db *db, struct err *err);
void fleet_read_end(struct fleet_db *db);

/* Everything about one fingerprint that stands in tables of its own; row numbers. */
struct fleet_kept_fingerprint {
    int64_t id;
    int64_t kind;
    int64_t signature;
    int64_t map;
    int64_t structure;
};
/* The fingerprint of this UUID and id; keeps it where it is new. `json` may be NULL where it is
 * not. STATUS_CORRUPT: it is none, or another GPU's, or is neither given nor kept. */
enum status fleet_keep_fingerprint(struct fleet_db *db, const struct fleet_gpu *gpu,
                                   struct fleet_kept_fingerprint *out, struct err *err);
/* The names of numbers, read when first asked for; borrowed until a survey ends. */
enum status fleet_names(struct fleet_db *db, const struct number_names **out, struct err *err);
/* The row of (model, origin). */
enum status fleet_keep_kind(struct fleet_db *db, const char *model, const char *origin,
                            int64_t *out, struct err *err);

#endif
