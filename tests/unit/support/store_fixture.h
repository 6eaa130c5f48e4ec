/* store_fixture.h: a temporary directory and data to store, for all tests of the store. */
#pragma once

#include "store/store.h"

#define FIXTURE_UUID "SIM-00000000-0000-0000-0000-000000000001"

/* Returns a fresh directory; fixture_remove removes it and all files in it. */
char *fixture_directory(void);
void fixture_remove(char *take);
/* Returns "directory/name", in a buffer of its own that the next call of fixture_path
 * overwrites. */
const char *fixture_path(const char *directory, const char *name);

struct gpu_identity fixture_gpu(const char *uuid);
struct gpu_limits fixture_limits(void);
/* Makes a chase with `count` values that depend on `number`. */
struct observation fixture_observation(uint32_t number, uint32_t count);
/* Makes a small fingerprint of this GPU that contains `number`. */
void fixture_fingerprint(const char *uuid, uint32_t number, struct fingerprint *out);

/* Stores one complete run with `count` observations. Returns the first failure. */
enum status fixture_store_run(struct store *store, const char *uuid, uint32_t number,
                              uint32_t count, int64_t *out_run, struct err *err);

/* Returns the bytes of a file, or NULL if there is none; the caller frees them. */
char *fixture_read(const char *path, size_t *out_size);
void fixture_write(const char *path, const void *data, size_t size);
