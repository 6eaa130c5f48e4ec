/* sim_bench.h: a simulated GPU through the contract of gpu.h, for tests of the model. */
#ifndef REACH_TESTS_UNIT_SIM_BENCH_H
#define REACH_TESTS_UNIT_SIM_BENCH_H

#include "gpu/gpu.h"
#include "gpu/sim/sim_desc.h"

/* An open simulated GPU and its description. */
struct bench {
    struct sim_desc desc;
    struct gpu *gpu;
    struct gpu_identity id;
    struct gpu_limits limits;
};

/* `texts` are descriptions, ended by NULL, that outlive the options. */
struct gpu_options sim_bench_options(const char *const *texts);

/* Fails the test if there is no such GPU; the caller calls gpu_close for `gpu`. */
struct bench sim_bench_open(const char *text);

/* Fails the test if the probe fails; the caller calls probe_result_free for the result. */
struct probe_result sim_bench_run(struct bench *b, const struct probe_spec *spec);

#endif
