/* fleet_fixture.h: databases of surveys, and fleets to store in the databases. Tests run on SQLite,
 * and on PostgreSQL if REACH_FLEET_DB contains the address of a database. That database is emptied
 * before every use, so it must not contain other data. */
#pragma once

#include "base/rng.h"
#include "clients/fleet/db.h"
#include "base/status.h"
#include "fingerprint/fingerprint.h"

/* Each of these functions aborts the program with the error if a call fails. */
struct fleet_db *fleet_fixture_fresh(void); /* opens an empty database */
struct fleet_db *fleet_fixture_again(void); /* opens the same database again, with its data */
const char *fleet_fixture_where(void);
void fleet_fixture_remove(void); /* removes all files */

/* Returns the number in the first column of the first row, or -1 if there is no row. */
int64_t fleet_fixture_number(struct fleet_db *db, const char *sql);

/* Makes a chip of `model` with five groups of three SMs. SMs `lost_a` and `lost_b` of the die are
 * missing, from two groups. All numbers are known. `taken_at` makes fingerprints differ. */
void fleet_fixture_chip(struct fingerprint *out, const char *uuid, const char *model,
                        enum origin origin, uint32_t lost_a, uint32_t lost_b, int64_t taken_at);
/* Returns the JSON of a fingerprint, which the caller frees, and its id. */
char *fleet_fixture_json(const struct fingerprint *fp, char *out_id);

/* Returns a GPU with its fingerprint, in the form of a daemon's answer. */
json_t *fleet_fixture_gpu(uint32_t slot, const struct fingerprint *fp);
/* Returns a GPU without a fingerprint, in the same form. */
json_t *fleet_fixture_gpu_without(uint32_t slot, const char *uuid, const char *serial,
                                  const char *model, const char *state);
struct fleet_host fleet_fixture_host(const char *name, enum fleet_outcome outcome);
/* Adds a host that answered with these GPUs, like a survey does, and returns the error of the
 * answer. `take_gpus` is a JSON array. */
enum status fleet_fixture_add(struct fleet_db *db, uint32_t place, const struct fleet_host *host,
                              json_t *take_gpus, struct err *err);
/* Ends the survey; aborts the program if this fails. */
struct fleet_survey fleet_fixture_end(struct fleet_db *db);
