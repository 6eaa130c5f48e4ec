/* store_fixture.h: what the store's tests share: a directory that goes away, and things to store.
 */
#ifndef REACH_TESTS_UNIT_STORE_FIXTURE_H
#define REACH_TESTS_UNIT_STORE_FIXTURE_H

#include "store/store.h"

#define FIXTURE_UUID "SIM-00000000-0000-0000-0000-000000000001"

/* A fresh directory; fixture_remove takes it and all files in it away. */
char *fixture_directory(void);
void fixture_remove(char *take);
/* "directory/name", in a buffer of its own that fixture_path overwrites at the next call. */
const char *fixture_path(const char *directory, const char *name);

struct gpu_identity fixture_gpu(const char *uuid);
struct gpu_limits fixture_limits(void);
/* A chase with `count` values that depend on `number`. */
struct observation fixture_observation(uint32_t number, uint32_t count);
/* A small fingerprint of this GPU; `number` is in it. */
void fixture_fingerprint(const char *uuid, uint32_t number, struct fingerprint *out);

/* One whole run with `count` observations. Returns the first failure. */
enum status fixture_store_run(struct store *store, const char *uuid, uint32_t number,
                              uint32_t count, int64_t *out_run, struct err *err);

/* The bytes of a file, NULL where there is none; the caller frees. */
char *fixture_read(const char *path, size_t *out_size);
void fixture_write(const char *path, const void *data, size_t size);

#endif
