/* store_fixture.c: see store_fixture.h. If a function fails, it aborts, because forked children
 * also use these functions. */
#include "tests/unit/support/store_fixture.h"

#include "base/assert.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 512 };

char *fixture_directory(void)
{
    const char *const base = getenv("TMPDIR");
    char *path = NULL;

    REACH_ASSERT(asprintf(&path, "%s/reach-store-XXXXXX", base ? base : "/tmp") > 0);
    REACH_ASSERT(mkdtemp(path) != NULL);
    return path;
}

const char *fixture_path(const char *directory, const char *name)
{
    static _Thread_local char path[PATH_BYTES];

    REACH_ASSERT(snprintf(path, sizeof(path), "%s/%s", directory, name) < PATH_BYTES);
    return path;
}

void fixture_remove(char *take)
{
    DIR *const d = opendir(take);
    const struct dirent *e;

    while (d && (e = readdir(d)) != NULL) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            (void)remove(fixture_path(take, e->d_name));
    }
    if (d)
        closedir(d);
    (void)rmdir(take);
    free(take);
}

struct gpu_identity fixture_gpu(const char *uuid)
{
    struct gpu_identity gpu = {.name = "Simulated",
                               .compute_major = 9,
                               .sm_count = 4,
                               .memory_bytes = (uint64_t)80 << 30,
                               .driver_version = "none",
                               .cuda_version = "0.0",
                               .origin = ORIGIN_SIMULATED};

    (void)snprintf(gpu.uuid, sizeof(gpu.uuid), "%s", uuid);
    return gpu;
}

struct gpu_limits fixture_limits(void)
{
    return (struct gpu_limits){.arena = ARENA_SIMULATED,
                               .range_bytes = (uint64_t)1 << 40,
                               .backing_bytes = 1 << 30,
                               .granule_bytes = 2 << 20,
                               .device_memory_bytes = 1 << 30,
                               .free_bytes = (uint64_t)79 << 30,
                               .sm_count = 4};
}

struct observation fixture_observation(uint32_t number, uint32_t count)
{
    struct observation o = {
        .spec = {.kind = PROBE_CHASE,
                 .stride_bytes = 2 << 20,
                 .point_count = 1,
                 .points = {1 + number},
                 .samples = count,
                 .warm_laps = 1,
                 .sm_count = 1},
        .result = {.sm_count = 4, .sm_ids = {0, 1, 2, 3}, .value_count = count},
    };

    o.result.values = calloc(count, sizeof(uint32_t));
    REACH_ASSERT(o.result.values);
    for (uint32_t i = 0; i < count; i++)
        o.result.values[i] = 600 + number + i;
    o.result.conditions.started_at = 1700000000 + number;
    o.result.conditions.duration_ns = 1000 + number;
    o.result.conditions.arena = ARENA_SIMULATED;
    return o;
}

void fixture_fingerprint(const char *uuid, uint32_t number, struct fingerprint *out)
{
    fingerprint_init(out);
    out->gpu = fixture_gpu(uuid);
    out->depth = DEPTH_FULL;
    out->taken_at = 1700000000 + number;
    out->duration_ms = number;
    out->topology.partition.group_count = 2;
    for (uint16_t sm = 0; sm < 4; sm++)
        out->topology.partition.group_of_sm[sm] = sm / 2;
    out->topology.groups[0].sm_count = out->topology.groups[1].sm_count = 2;
    out->throughput.plateau_gbps = KNOWN_F64(1000.0 + number / 3.0);
}

static enum status add(struct store *store, int64_t run, uint32_t number, struct err *err)
{
    struct observation o = fixture_observation(number, 40);
    const enum status s = store_add_observation(store, run, &o, NULL, err);

    observation_free(&o);
    return s;
}

enum status fixture_store_run(struct store *store, const char *uuid, uint32_t number,
                              uint32_t count, int64_t *out_run, struct err *err)
{
    const struct gpu_identity gpu = fixture_gpu(uuid);
    const struct gpu_limits limits = fixture_limits();
    struct fingerprint fp;
    enum status s;

    s = store_begin_run(store, &gpu, &limits, DEPTH_FULL, 1700000000 + number, out_run, err);
    for (uint32_t i = 0; s == STATUS_OK && i < count; i++)
        s = add(store, *out_run, number + i, err);
    if (s != STATUS_OK)
        return s;
    fixture_fingerprint(uuid, number, &fp);
    return store_finish_run(store, *out_run, &fp, &fp, err);
}

char *fixture_read(const char *path, size_t *out_size)
{
    FILE *const f = fopen(path, "rb");
    struct stat st;
    char *data;

    if (!f)
        return NULL;
    REACH_ASSERT(fstat(fileno(f), &st) == 0);
    data = malloc((size_t)st.st_size + 1);
    REACH_ASSERT(data);
    *out_size = fread(data, 1, (size_t)st.st_size, f);
    fclose(f);
    return data;
}

void fixture_write(const char *path, const void *data, size_t size)
{
    FILE *const f = fopen(path, "wb");

    REACH_ASSERT(f);
    REACH_ASSERT(fwrite(data, 1, size, f) == size);
    REACH_ASSERT(fclose(f) == 0);
}
