/* sim_bench.h: a simulated GPU through the contract of gpu.h, for tests of the model. */
#ifndef REACH_TESTS_UNIT_SIM_BENCH_H
#define REACH_TESTS_UNIT_SIM_BENCH_H

#include "gpu/gpu.h"
#include "gpu/sim/sim_desc.h"

/* A simulated GPU that is open, and its description. */
struct bench {
    struct sim_desc desc;
    struct gpu *gpu;
    struct gpu_identity id;
    struct gpu_limits limits;
};

/* `texts`: descriptions, ended by NULL, that outlive the options. */
struct gpu_options sim_bench_options(const char *const *texts);

/* The test fails if there is no such GPU; `gpu` is for gpu_close. */
struct bench sim_bench_open(const char *text);

/* The test fails if the probe does; the result is for probe_result_free. */
struct probe_result sim_bench_run(struct bench *b, const struct probe_spec *spec);

#endif
