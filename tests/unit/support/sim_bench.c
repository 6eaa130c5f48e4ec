/* sim_bench.c: see sim_bench.h. */
#include "tests/unit/support/sim_bench.h"

#include "gpu/sim/sim_profiles.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

struct gpu_options sim_bench_options(const char *const *texts)
{
    return (struct gpu_options){.simulated = texts};
}

struct bench sim_bench_open(const char *text)
{
    const char *const texts[] = {text, NULL};
    struct gpu_options options = sim_bench_options(texts);
    struct bench b;
    struct err err = {0};
    uint32_t n = 0;
    if (sim_profiles_parse(text, &b.desc, &err) != STATUS_OK ||
        gpu_list(&options, &b.id, 1, &n, &err) != STATUS_OK ||
        gpu_open(&options, b.id.uuid, &b.gpu, &err) != STATUS_OK)
        fail_msg("%s: %s", text, err.text);
    assert_int_equal(n, 1);
    gpu_describe(b.gpu, &b.id, &b.limits);
    return b;
}

struct probe_result sim_bench_run(struct bench *b, const struct probe_spec *spec)
{
    struct probe_result r;
    struct err err = {0};
    if (gpu_run(b->gpu, spec, &r, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    return r;
}
