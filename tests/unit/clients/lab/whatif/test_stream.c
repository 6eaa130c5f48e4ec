/* test_stream.c: the groups of SMs that get the blocks of random traces. */
#include "clients/lab/whatif/stream.h"

#include "base/rng.h"
#include "tests/unit/support/written_trace.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { SEEDS = 200, MOST_KERNELS = 6, SMS = 64, GROUPS = 8 };

static struct sim_desc machine = {.sm_count = SMS, .level_count = 1};

/* Writes up to MOST_KERNELS kernels that access memory in one block of `one_in`, each beside a
 * kernel without accesses. */
static void write_kernels(struct rng *rng, uint32_t one_in, struct rlt_writer *w)
{
    const uint32_t app = rlt_write_app(w, "");
    const uint64_t kernels = 1 + rng_below(rng, MOST_KERNELS);
    struct rlt_record r = {.mask = 1, .line_count = 1};

    for (uint64_t k = 0; k < kernels; k++) {
        const uint32_t blocks = 1 + (uint32_t)rng_below(rng, 100);
        const uint32_t grid = (uint32_t)rng_next(rng) / 2; /* 0 is possible, too */
        (void)rlt_write_kernel(w, &(struct rlt_kernel){.app = app, .grid = {grid, grid, grid}});
        r.kernel =
            rlt_write_kernel(w, &(struct rlt_kernel){.app = app, .grid = {blocks * one_in, 1, 1}});
        for (r.block = 0; r.block < blocks; r.block++) {
            r.lines[0] = rng_below(rng, 1 << 20);
            rlt_write_record(w, &r);
        }
    }
}

static uint32_t groups_of(uint64_t seed, uint32_t one_in)
{
    uint16_t sms[REACH_MAX_SMS];
    struct rng rng = {seed};
    struct written_trace written;
    uint32_t groups;

    written_trace_begin(&written);
    write_kernels(&rng, one_in, written.w);
    struct trace t = written_trace_load(&written);
    const uint32_t count = stream_sms(&t, &machine, sms, &groups);
    assert_int_equal(count, groups * (SMS / GROUPS));
    trace_free(&t);
    return groups;
}

/* A launch without accesses has no blocks in the trace, and the others are complete. */
static void a_complete_trace_uses_all_groups(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        if (groups_of(seed, 1) != GROUPS)
            fail_msg("seed %llu: a complete trace does not use all groups",
                     (unsigned long long)seed);
    }
}

static void one_block_in_n_uses_one_group_in_n(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        for (uint32_t one_in = 2; one_in <= 2 * GROUPS; one_in *= 2) {
            if (groups_of(seed, one_in) != (one_in < GROUPS ? GROUPS / one_in : 1))
                fail_msg("seed %llu: one block in %u", (unsigned long long)seed, one_in);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_complete_trace_uses_all_groups),
        cmocka_unit_test(one_block_in_n_uses_one_group_in_n),
    };

    machine.levels[0].instance_count = GROUPS;
    for (uint32_t sm = 0; sm < SMS; sm++)
        machine.levels[0].instance_of_sm[sm] = (uint16_t)(sm % GROUPS);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
