/* store_cases.h: steps that the cmocka cases of the store share. If a step fails, it fails the
 * current case. Functions without cmocka are in store_fixture.h. */
#pragma once

#include "store/store.h"

/* The state of a case is the path of a directory. */
int fixture_set_up(void **state);
int fixture_tear_down(void **state);

struct store *fixture_open(const char *path);
/* Stores a complete run with `count` observations and returns its number. */
int64_t fixture_run(struct store *store, const char *uuid, uint32_t number, uint32_t count);
/* Runs SQL on the file like another program does. */
void fixture_tamper(const char *path, const char *sql);
