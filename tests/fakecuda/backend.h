/* backend.h: shared parts of the tests of the CUDA backend over the stand-in driver: a small GPU, a
 * probe of each kind, and the check for leaks. */
#pragma once

#include "base/units.h"
#include "gpu/gpu.h"
#include "observe/observe.h"
#include "tests/fakecuda/driver_library.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

/* The build may have no device code; the stand-in does not read any. */
extern const unsigned char reach_fatbin_start[];
extern const unsigned char reach_fatbin_end[];
const unsigned char reach_fatbin_start[16] = {0};
const unsigned char reach_fatbin_end[1] = {0};

/* A small GPU. A whole run on it makes few calls and still finds a result of every kind. */
#define SMALL                                                                                      \
    "gpu=cc=9.0 sms=6 smids=0-3,8-9 memory=2G l1=8@2M/sm;miss=20 "                                 \
    "l2=64@2M/0,1,8:2,3,9;miss=100;miss_ns=20 noise=gauss:1 plateau=100 frame=8M@2"

static inline void begin(const char *control)
{
    if (driver_start(control) != 0)
        fail_msg("%s", control);
}

static inline struct gpu_options real(void)
{
    return (struct gpu_options){.libcuda = driver_library};
}

/* Opens the first GPU of `control`. */
static inline struct gpu *open_first(const char *control, struct gpu_identity *id)
{
    const struct gpu_options options = real();
    struct gpu *gpu = NULL;
    struct err err = {0};
    uint32_t n = 0;

    begin(control);
    if (gpu_list(&options, id, 1, &n, &err) != STATUS_OK ||
        gpu_open(&options, id->uuid, &gpu, &err) != STATUS_OK)
        fail_msg("%s: %s", control, err.text);
    return gpu;
}

static inline void expect_nothing_held(const char *control)
{
    struct fakecuda_report r;
    driver_report(&r);
    if (r.misuses > 0)
        fail_msg("%s: misused %u times: %s", control, r.misuses, r.first_misuse);
    uint32_t held = r.contexts + r.modules + r.streams + r.allocations + r.handles +
                    r.reservations + r.mappings;
    if (held > 0 || r.device_bytes > 0)
        fail_msg("%s: still held: %u contexts, %u modules, %u streams, %u allocations, %u handles, "
                 "%u reservations, %u mappings, %llu bytes",
                 control, r.contexts, r.modules, r.streams, r.allocations, r.handles,
                 r.reservations, r.mappings, (unsigned long long)r.device_bytes);
}

static inline struct probe_spec chase_spec(void)
{
    return (struct probe_spec){
        .kind = PROBE_CHASE,
        .stride_bytes = 2 * MIB,
        .point_count = 3,
        .points = {8, 40, 80},
        .samples = 200,
        .warm_laps = 2,
        .sm_count = 1,
        .sms = {8},
    };
}

static inline struct probe_spec round_spec(void)
{
    return (struct probe_spec){
        .kind = PROBE_ROUND,
        .stride_bytes = 2 * MIB,
        .slice_pages = 5,
        .thrash_pages = 100,
        .warm_laps = 1,
        .repeats = 2,
        .sm_count = 1,
        .sms = {9},
    };
}

static inline struct probe_spec pairs_spec(void)
{
    struct probe_spec spec = round_spec();
    spec.kind = PROBE_PAIRS;
    spec.slice_pages = 16;
    spec.sm_count = 2;
    spec.sms[0] = 0;
    spec.sms[1] = 3;
    return spec;
}

static inline struct probe_spec sides_spec(void)
{
    return (struct probe_spec){
        .kind = PROBE_SIDES,
        .stride_bytes = 4 * KIB,
        .base_bytes = 64 * MIB,
        .samples = 64,
        .warm_laps = 1,
        .repeats = 3,
        .sm_count = 3,
        .sms = {0, 3, 9},
    };
}

static inline struct probe_spec read_spec(void)
{
    struct probe_spec spec = {
        .kind = PROBE_READ,
        .point_count = 2,
        .points = {64 * MIB, 768 * MIB},
        .repeats = 2,
        .duration_us = 500,
        .window_count = 2,
        .window_sms = 10,
    };
    spec.window_of_sm[2] = spec.window_of_sm[3] = spec.window_of_sm[9] = 1;
    return spec;
}

/* Fills the first half of the region with short runs. */
static inline struct probe_spec runs_spec(uint64_t run_bytes)
{
    struct probe_spec spec = read_spec();
    spec.point_count = 1;
    spec.points[0] = GIB;
    spec.window_count = 1;
    memset(spec.window_of_sm, 0, sizeof spec.window_of_sm);
    spec.run_bytes = run_bytes;
    spec.scattered_bytes = 512 * MIB;
    return spec;
}

static inline enum status run_probe(struct gpu *gpu, struct probe_spec spec, struct err *err)
{
    struct probe_result r;
    enum status s = gpu_run(gpu, &spec, &r, err);
    if (s == STATUS_OK)
        probe_result_free(&r);
    return s;
}

/* Returns how many accesses all SMs made per unit of time, in the first repeat of the first point
 * of a READ. */
static inline double access_rate(struct gpu *gpu, const struct probe_spec *spec)
{
    struct probe_result r;
    struct err err = {0};
    double accesses = 0;

    if (gpu_run(gpu, spec, &r, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    for (uint32_t sm = 0; sm < r.sm_count; sm++)
        accesses += r.values[1 + sm];
    accesses /= r.values[0];
    probe_result_free(&r);
    return accesses;
}
