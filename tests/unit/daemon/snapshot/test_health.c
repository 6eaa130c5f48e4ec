/* test_health.c: the problems of random nodes. The test makes each node from the truth about its
 * slots, so the wanted problems do not come from the view. The seed is printed, and TEST_SEED
 * repeats it. */
#include "snapshot/health.h"

#include "base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { NODES = 2000, SLOTS = 8, INSTANCES = 3 };

/* What is true about a slot of the node. */
enum truth { EMPTY = 0, USABLE, IN_USE, BROKEN, UNIDENTIFIED, GONE, TRUTHS };

static uint64_t seed;

struct seen {
    uint32_t counts[HEALTH_KINDS];
    bool ordered; /* problems of the node come first, then the GPUs by index */
    const struct snapshot_gpu *last;
    char missing[400];
};

static void see(void *self, enum health_kind kind, const struct snapshot_gpu *gpu,
                const struct err *why)
{
    struct seen *const seen = self;

    seen->counts[kind]++;
    seen->ordered = seen->ordered && (gpu ? gpu > seen->last : !seen->last);
    seen->last = gpu;
    assert_true(why->text[0] && err_next_step(why)[0]);
    if (kind == HEALTH_GPUS_MISSING)
        (void)snprintf(seen->missing, sizeof seen->missing, "%s", why->text);
}

/* Adds a GPU or an instance of slot `slot`. */
static void add(struct snapshot *s, uint32_t slot, uint32_t instance, enum truth truth)
{
    struct snapshot_gpu *const gpu = &s->gpus[s->gpu_count++];
    struct gpu_identity *const id = &gpu->identity;

    *gpu = (struct snapshot_gpu){.state = GPU_STATE_READY};
    (void)snprintf(id->uuid, sizeof id->uuid, "GPU-%u-%u", slot, instance);
    (void)snprintf(id->pci_bus_id, sizeof id->pci_bus_id, "0000:%02x:00.0", slot + 1);
    if (truth == IN_USE)
        err_set(&gpu->last_error, STATUS_GPU_BUSY, "another process excludes this one");
    if (truth == BROKEN)
        err_set(&gpu->last_error, STATUS_GPU_FAULT, "a kernel failed");
    if (truth == UNIDENTIFIED)
        err_set(&gpu->last_error, STATUS_DEADLINE, "the driver does not answer");
    if (truth == GONE)
        err_set(&gpu->last_error, STATUS_NOT_FOUND, "the driver shows no such GPU");
    gpu->unidentified = truth == UNIDENTIFIED;
    gpu->state = truth == GONE                                                 ? GPU_STATE_LOST
                 : truth == IN_USE || truth == BROKEN || truth == UNIDENTIFIED ? GPU_STATE_FAILED
                                                                               : GPU_STATE_READY;
}

static void random_nodes_have_their_problems(void **state)
{
    struct snapshot *const s = snapshot_draft(SLOTS * (1 + INSTANCES));
    struct rng rng = {.state = seed};

    (void)state;
    for (int n = 0; n < NODES; n++) {
        uint32_t found = 0;
        uint32_t gone = 0;
        uint32_t broken = 0;

        s->gpu_count = 0;
        s->expected_gpus = (uint32_t)rng_below(&rng, SLOTS + 1);
        for (uint32_t slot = 0; slot < SLOTS; slot++) {
            const enum truth truth = (enum truth)rng_below(&rng, TRUTHS);
            const uint32_t instances =
                truth == USABLE ? (uint32_t)rng_below(&rng, INSTANCES + 1) : 0;

            if (truth == EMPTY)
                continue;
            for (uint32_t i = 0; i <= instances; i++)
                add(s, slot, i, truth);
            found += truth == USABLE || truth == IN_USE || truth == BROKEN;
            gone += truth == GONE;
            broken += truth == BROKEN || truth == UNIDENTIFIED;
        }
        struct seen seen = {.ordered = true};
        const bool missing = found < s->expected_gpus;
        const uint32_t count = health_visit(s, see, &seen);

        assert_int_equal(health_count_found(s), found);
        assert_int_equal(health_count_missing(s), missing ? s->expected_gpus - found : 0);
        assert_int_equal(seen.counts[HEALTH_GPUS_MISSING], missing);
        assert_int_equal(seen.counts[HEALTH_GPU_LOST], gone);
        assert_int_equal(seen.counts[HEALTH_GPU_FAILED], broken);
        assert_int_equal(count, missing + gone + broken);
        assert_true(seen.ordered);
        if (missing) {
            char wanted[60];

            (void)snprintf(wanted, sizeof wanted, "%u of %u expected GPUs were found", found,
                           s->expected_gpus);
            assert_string_equal(seen.missing, wanted);
        }
    }
    snapshot_discard(s);
}

/* GPUs without an address are separate GPUs. */
static void gpus_without_an_address_count_each(void **state)
{
    struct snapshot *const s = snapshot_draft(3);

    (void)state;
    assert_int_equal(health_count_found(s), 3);
    snapshot_discard(s);
}

/* Nothing is missing while the GPUs are not counted. */
static void an_uncounted_node_has_no_problem(void **state)
{
    struct snapshot *const s = snapshot_draft(1);
    struct seen seen = {.ordered = true};

    (void)state;
    s->expected_gpus = 4;
    s->gpus[0].state = GPU_STATE_LOST;
    err_set(&s->gpus[0].last_error, STATUS_NOT_FOUND, "the driver shows no such GPU");
    s->discovering = true;
    assert_int_equal(health_visit(s, see, &seen), 0);
    s->discovering = false;
    s->stored_only = true;
    assert_int_equal(health_visit(s, see, &seen), 0);
    assert_int_equal(health_count_missing(s), 0);
    s->stored_only = false;
    assert_int_equal(health_visit(s, see, &seen), 2);
    snapshot_discard(s);
}

/* A quick check counts until a newer measurement. Before the first check, the fingerprint has the
 * link. */
static void the_newest_look_counts(void **state)
{
    struct snapshot *const s = snapshot_draft(1);
    struct snapshot_gpu *const gpu = &s->gpus[0];
    struct fingerprint_conditions *const c = &gpu->fingerprint.conditions;
    struct seen seen = {.ordered = true};

    (void)state;
    fingerprint_init(&gpu->fingerprint);
    gpu->state = GPU_STATE_READY;
    gpu->fingerprint.taken_at = 100;
    c->pcie_generation = KNOWN_U32(5);
    c->pcie_generation_used = KNOWN_U32(3);
    assert_int_equal(health_visit(s, see, &seen), 0); /* there is no fingerprint */
    gpu->has_fingerprint = true;
    assert_int_equal(health_visit(s, see, &(struct seen){.ordered = true}), 1);
    gpu->check = (struct snapshot_check){.checked_at = 99, .drift = "slow", .link = "slow"};
    seen = (struct seen){.ordered = true};
    assert_int_equal(health_visit(s, see, &seen), 1);
    assert_int_equal(seen.counts[HEALTH_LINK_DEGRADED], 1);
    gpu->check.checked_at = 100;
    assert_int_equal(health_visit(s, see, &(struct seen){.ordered = false}), 2);
    gpu->check = (struct snapshot_check){.checked_at = 200}; /* the link was repaired */
    assert_int_equal(health_visit(s, see, &seen), 0);
    gpu->check.drift[0] = 'x';
    seen = (struct seen){.ordered = true};
    assert_int_equal(health_visit(s, see, &seen), 1);
    assert_int_equal(seen.counts[HEALTH_GPU_DRIFT], 1);
    gpu->state = GPU_STATE_LOST; /* the GPU itself is the problem */
    err_set(&gpu->last_error, STATUS_NOT_FOUND, "the driver shows no such GPU");
    seen = (struct seen){.ordered = true};
    assert_int_equal(health_visit(s, see, &seen), 1);
    assert_int_equal(seen.counts[HEALTH_GPU_LOST], 1);
    snapshot_discard(s);
}

static void kinds_have_names(void **state)
{
    (void)state;
    assert_string_equal(health_kind_name(HEALTH_GPUS_MISSING), "gpus-missing");
    assert_string_equal(health_kind_name(HEALTH_GPU_LOST), "gpu-lost");
    assert_string_equal(health_kind_name(HEALTH_GPU_FAILED), "gpu-failed");
    assert_string_equal(health_kind_name(HEALTH_LINK_DEGRADED), "link-degraded");
    assert_string_equal(health_kind_name(HEALTH_GPU_DRIFT), "gpu-drift");
}

int main(void)
{
    const char *const given = getenv("TEST_SEED");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_nodes_have_their_problems),
        cmocka_unit_test(gpus_without_an_address_count_each),
        cmocka_unit_test(an_uncounted_node_has_no_problem),
        cmocka_unit_test(the_newest_look_counts),
        cmocka_unit_test(kinds_have_names),
    };

    seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    printf("seed %llu (TEST_SEED)\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
