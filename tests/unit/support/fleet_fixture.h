/* fleet_fixture.h: databases of surveys and fleets to put into them. A test that uses it runs on
 * SQLite, and on PostgreSQL where REACH_FLEET_DB has the address of a database of its own (made
 * empty before every use: give it none that matters). */
#ifndef REACH_TESTS_UNIT_FLEET_FIXTURE_H
#define REACH_TESTS_UNIT_FLEET_FIXTURE_H

#include "base/rng.h"
#include "clients/fleet/db.h"
#include "base/status.h"
#include "fingerprint/fingerprint.h"

/* Aborts the program with the sentence where something fails. */
struct fleet_db *fleet_fixture_fresh(void); /* an empty one */
struct fleet_db *fleet_fixture_again(void); /* the same once more, with what is in it */
const char *fleet_fixture_where(void);
void fleet_fixture_remove(void); /* files and all */

/* One number: the first column of the first row; -1 where there is none. */
int64_t fleet_fixture_number(struct fleet_db *db, const char *sql);

/* A chip of `model` that has lost `lost` SMs: two groups of three lose one each. Five groups of
 * three, all numbers known. `taken_at` makes fingerprints differ. */
void fleet_fixture_chip(struct fingerprint *out, const char *uuid, const char *model,
                        enum origin origin, uint32_t lost_a, uint32_t lost_b, int64_t taken_at);
/* Its JSON, from malloc, and its id. */
char *fleet_fixture_json(const struct fingerprint *fp, char *out_id);

/* A GPU as an answer lists it, with its fingerprint. */
json_t *fleet_fixture_gpu(uint32_t slot, const struct fingerprint *fp);
/* Without one. */
json_t *fleet_fixture_gpu_without(uint32_t slot, const char *uuid, const char *serial,
                                  const char *model, const char *state);
struct fleet_host fleet_fixture_host(const char *name, enum fleet_outcome outcome);
/* Adds a host that answered with these GPUs, as a survey does: what is wrong with the answer comes
 * back. `take_gpus` is an array. */
enum status fleet_fixture_add(struct fleet_db *db, uint32_t place, const struct fleet_host *host,
                              json_t *take_gpus, struct err *err);
/* Ends the survey, or the program. */
struct fleet_survey fleet_fixture_end(struct fleet_db *db);

#endif
