/* sim_bench.h: opens a simulated GPU through the interface of gpu.h, for tests of the model. */
#pragma once

#include "gpu/gpu.h"
#include "gpu/sim/sim_desc.h"

/* An open simulated GPU and its description. */
struct bench {
    struct sim_desc desc;
    struct gpu *gpu;
    struct gpu_identity id;
    struct gpu_limits limits;
};

/* Makes options from `texts`, which are descriptions, ended by NULL, that outlive the options. */
struct gpu_options sim_bench_options(const char *const *texts);

/* Opens a simulated GPU. Fails the test if there is no such GPU. The caller closes `gpu` with
 * gpu_close. */
struct bench sim_bench_open(const char *text);

/* Runs a probe. Fails the test if the probe fails. The caller frees the result with
 * probe_result_free. */
struct probe_result sim_bench_run(struct bench *b, const struct probe_spec *spec);
