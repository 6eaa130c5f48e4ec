/* store_cases.h: steps that the store's cmocka cases share; each fails the case it runs in. What
 * needs no cmocka is in store_fixture.h. */
#ifndef REACH_TESTS_UNIT_STORE_CASES_H
#define REACH_TESTS_UNIT_STORE_CASES_H

#include "store/store.h"

/* A directory as the case's state. */
int fixture_set_up(void **state);
int fixture_tear_down(void **state);

struct store *fixture_open(const char *path);
/* The number of a whole run with `count` observations. */
int64_t fixture_run(struct store *store, const char *uuid, uint32_t number, uint32_t count);
/* SQL from outside, as from a shell. */
void fixture_tamper(const char *path, const char *sql);

#endif
