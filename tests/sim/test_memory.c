/* test_memory.c: simulated GPUs with random kinds of memory, measured and analyzed. Every field
 * must be right or "not sure". Only the memory phase of the campaign runs, with given groups, so
 * that 500 GPUs (REACH_CASES=500, the number for a release) take a minute. REACH_SEED=s runs only
 * the GPU with this seed and prints it.
 *
 * The advice (planner/memory_choices.h) is compared with probes of the same GPU. For random sizes
 * and rows, the first choice must be as fast as predicted, and no other choice with a prediction
 * may be faster.
 *
 * The right values follow from the description. A region that the table of the GPU holds is never
 * slow. In a region of four times that size at least half of the reads miss in all tables. Such a
 * region is slow if the walker cannot serve all of its misses.
 */
#include "analysis/memory/memory.h"
#include "analysis/throughput/throughput.h"
#include "base/rng.h"
#include "base/units.h"
#include "campaign/probes.h"
#include "fingerprint/fingerprint_check.h"
#include "gpu/gpu.h"
#include "gpu/sim/sim_profiles.h"
#include "planner/memory_choices.h"
#include "tests/share.h"
#include "tests/sim/sim_measure.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CASES = 50, SANITIZED_CASES = 10, MOST_STEPS = 1000, QUESTIONS = 4 };
#define PROBED_MOST   (16 * GIB)
#define NOISE         0.05
#define CERTAINLY_LOW 0.7

static struct {
    uint32_t gpus, kinds, right, not_sure, wrong;
    bool verbose;
} total;

/* Of advice, by the accesses of the request. `most` is the largest error of a right prediction.
 * Reads of 128 bytes hide translations that take less time than memory, so predictions of shorter
 * rows have a check of their own. Within the reach, translations may take 1 / 0.9 of the time of
 * 128 bytes, and a row of 64 bytes takes 0.78 of this time: 1 / 0.9 / 0.78 - 1 is 0.42. */
enum { LINES, ROWS, SHORT_ROWS, ADVICES };
static struct {
    const char *const of;
    const double most;
    uint32_t right, not_sure, wrong;
    double worst; /* largest value of |predicted / real - 1| */
} advised[ADVICES] = {[LINES] = {"reads of 128 bytes", 0.1, 0, 0, 0, 0},
                      [ROWS] = {"other rows from 128 bytes on", 0.1, 0, 0, 0, 0},
                      [SHORT_ROWS] = {"rows of 64 bytes", 0.43, 0, 0, 0, 0}};

static uint32_t count_wrong_advice(void)
{
    uint32_t wrong = 0;

    for (int i = 0; i < ADVICES; i++)
        wrong += advised[i].wrong;
    return wrong;
}

/* ---- a GPU ---- */

static uint32_t log_between(struct rng *r, uint32_t low, uint32_t high)
{
    return (uint32_t)lround(low * pow((double)high / low, rng_unit(r)));
}

static void put_kind(struct rng *r, const char *name, char *out, size_t size)
{
    /* Managed memory that is located at the device is translated like device memory, so it has a
     * long reach. */
    const bool is_far = strcmp(name, "managed-device") == 0;
    const uint32_t entry_kib = is_far ? 2048 : 4U << rng_below(r, 10);
    const uint32_t gpu_entries = log_between(r, 64 + 4096 / entry_kib, 8192);
    const size_t used = strlen(out);

    if (rng_below(r, 6) == 0) {
        (void)snprintf(out + used, size - used, " %s=%s", name,
                       rng_below(r, 2) ? "not-permitted" : "not-supported");
        return;
    }
    const bool is_flat = is_far || strcmp(name, "host-gathered") == 0 || rng_below(r, 4) == 0;
    const uint32_t group_entries = rng_below(r, 3) == 0 ? 0 : log_between(r, 16, gpu_entries / 2);
    const double gbps = log_between(r, 5, 400);
    (void)snprintf(out + used, size - used, " %s=%g/%u@%u,%uK,%u+%u,%u+%u,%g", name, gbps,
                   1U << rng_below(r, 5), log_between(r, 500, 3000), entry_kib,
                   is_flat ? 0 : group_entries, log_between(r, 20, 60), is_flat ? 0 : gpu_entries,
                   log_between(r, 150, 500), is_flat ? 0 : 128.0 / gbps * log_between(r, 1, 40));
}

/* Describes the GPU of a seed, whose host has `times` the memory. */
static void random_host(uint64_t seed, uint32_t times, char *out, size_t size)
{
    struct rng r = {seed * 7919};
    const uint32_t groups = 2 + (uint32_t)rng_below(&r, 15);

    (void)snprintf(out, size,
                   "sms=%u memory=16G l1=16@2M/%u;miss=20;miss_ns=5 noise=gauss:%u seed=%llu "
                   "read_noise=0.003 host_memory=%uG",
                   groups * 4, 4U, 1 + (unsigned)rng_below(&r, 8), (unsigned long long)seed,
                   times * (4U << rng_below(&r, 5)));
    for (int kind = MEMORY_MANAGED_DEVICE; kind < MEMORY_KIND_COUNT; kind++)
        put_kind(&r, memory_kind_name((enum memory_kind)kind), out, size);
    const size_t used = strlen(out);
    (void)snprintf(out + used, size - used, " host_nodes=%u@%u", (unsigned)rng_below(&r, 4),
                   log_between(&r, 2, 200));
}

/* ---- measured ---- */

/* Writes groups of four SMs. */
static void tell_groups(uint32_t sm_count, struct structure *out)
{
    struct sm_partition *const p = &out->sharing[0].found;

    memset(out, 0, sizeof *out);
    out->shared_by[0] = SHARED_GROUP;
    p->group_count = sm_count / 4;
    for (uint32_t id = 0; id < REACH_MAX_SMS; id++)
        p->group_of_sm[id] = id < sm_count ? (uint16_t)(id / 4) : FINGERPRINT_NO_GROUP;
}

static void measure(const char *text, struct fingerprint *fp)
{
    static struct structure s;
    static struct campaign_step step;
    struct observation_set set = {.count = 0};
    struct gpu *gpu = NULL;
    struct err err = {0};

    if (sim_open(text, &gpu, &err) != STATUS_OK)
        fail_msg("%s\n%s", err.text, text);
    gpu_describe(gpu, &set.gpu, &set.limits);
    tell_groups(set.limits.sm_count, &s);
    step.specs[0] = campaign_warm_up(1000, 1);
    step.spec_count = 1;
    for (int steps = 0; step.spec_count > 0; steps++) {
        assert_true(steps < MOST_STEPS);
        for (uint32_t i = 0; i < step.spec_count; i++) {
            struct observation o = {.spec = step.specs[i]};
            if (gpu_run(gpu, &step.specs[i], &o.result, &err) != STATUS_OK ||
                observation_set_add(&set, &o, &err) != STATUS_OK)
                fail_msg("%s\n%s", err.text, text);
        }
        step.spec_count = 0;
        (void)memory_probes_next(&set, &s, DEPTH_MEMORY, &step);
    }
    fingerprint_init(fp);
    fp->gpu = set.gpu;
    fp->topology.partition = s.sharing[0].found;
    for (uint32_t g = 0; g < fp->topology.partition.group_count; g++)
        fp->topology.groups[g].sm_count = 4;
    fp->conditions.host_memory_bytes = KNOWN_U64(1024 * GIB);
    memory_derive(&set, fp);
    fingerprint_round(fp);
    if (fingerprint_check(fp, &err) != STATUS_OK)
        fail_msg("%s\n%s", err.text, text);
    observation_set_free(&set);
    gpu_close(gpu);
}

/* ---- compared ---- */

enum score { RIGHT, NOT_SURE, WRONG };

static void count(const char *kind, const char *field, enum score s, double found)
{
    total.right += s == RIGHT;
    total.not_sure += s == NOT_SURE;
    total.wrong += s == WRONG;
    if (s == WRONG || (total.verbose && s == NOT_SURE))
        print_message("# %s.%s: %s, %g\n", kind, field, s == WRONG ? "wrong" : "not sure", found);
}

static enum score is_near(struct maybe_f64 found, double low, double high)
{
    if (!IS_KNOWN(found))
        return NOT_SURE;
    return found.v >= low * (1 - NOISE) && found.v <= high * (1 + NOISE) ? RIGHT : WRONG;
}

/* The bytes that are never slow, and the bytes that are certainly slow; 0 means that there are
 * none. The bytes that are never slow are half of the reach of the table, because earlier probes
 * leave other pages in the table. */
struct cliff {
    uint64_t fast_bytes, slow_bytes;
};

static struct cliff cliff_of(const struct sim_kind *k)
{
    const uint64_t entries = k->gpu_entries > 0 ? k->gpu_entries : k->group_entries;
    struct cliff c = {entries * k->entry_bytes / 2, 0};

    if (entries == 0 || k->miss_ns <= 0)
        c.fast_bytes = UINT64_MAX;
    else if (2 * PROBE_LINE_BYTES / k->miss_ns < CERTAINLY_LOW * k->gbps)
        c.slow_bytes = 4 * entries * k->entry_bytes;
    return c;
}

static enum score score_bounds(const struct cliff *c, uint64_t probed, struct maybe_u64 reach,
                               struct maybe_u64 onset)
{
    if (IS_KNOWN(onset) && onset.v <= c->fast_bytes)
        return WRONG;
    if (IS_KNOWN(reach) && c->slow_bytes > 0 && reach.v >= c->slow_bytes)
        return WRONG;
    if (reach.known == MAYBE_NOT_OBSERVABLE && c->slow_bytes > 0 && probed >= c->slow_bytes)
        return WRONG;
    return IS_KNOWN(reach) || reach.known == MAYBE_NOT_OBSERVABLE ? RIGHT : NOT_SURE;
}

static enum score score_entry(const struct sim_kind *k, struct maybe_u64 entry)
{
    if (!IS_KNOWN(entry))
        return NOT_SURE;
    return entry.v == k->entry_bytes ? RIGHT : WRONG;
}

static enum score score_fewest(const struct sim_kind *k, uint32_t sms, struct maybe_u32 fewest)
{
    const uint32_t needed = k->sms_to_fill < sms ? k->sms_to_fill : sms;

    if (!IS_KNOWN(fewest))
        return NOT_SURE;
    return fewest.v == needed ? RIGHT : WRONG;
}

static void compare(const struct sim_desc *d, const struct memory_facts *m)
{
    const struct sim_kind *const k = &d->kinds[m->kind];
    const char *const name = memory_kind_name(m->kind);
    const struct cliff c = cliff_of(k);
    const double low = k->latency_cycles;
    /* A GPU with fewer SMs does not saturate the link. */
    const double filled = d->sm_count < k->sms_to_fill ? (double)d->sm_count / k->sms_to_fill : 1;

    total.kinds += 1;
    if (m->kind == MEMORY_HOST_GATHERED && !(d->kinds[MEMORY_HOST_REGISTERED].gbps > 0)) {
        count(name, "reason", m->probed_bytes.reason == REASON_NOT_MEASURED ? RIGHT : WRONG, 0);
        return;
    }
    if (!(k->gbps > 0)) {
        count(name, "reason", m->probed_bytes.reason == k->refused ? RIGHT : WRONG, 0);
        return;
    }
    if (!IS_KNOWN(m->probed_bytes)) {
        count(name, "probed_bytes", WRONG, 0);
        return;
    }
    count(name, "plateau_gbps", is_near(m->plateau_gbps, k->gbps * filled, k->gbps * filled),
          m->plateau_gbps.v);
    count(name, "reach_bytes", score_bounds(&c, m->probed_bytes.v, m->reach_bytes, m->onset_bytes),
          (double)m->reach_bytes.v);
    if (m->kind == MEMORY_HOST_GATHERED)
        return; /* no SM accesses this memory */
    count(name, "group_reach_bytes",
          IS_KNOWN(m->group_onset_bytes) && m->group_onset_bytes.v <= c.fast_bytes / 2 ? WRONG
                                                                                       : RIGHT,
          (double)m->group_reach_bytes.v);
    count(name, "windows_reach_bytes",
          IS_KNOWN(m->windows_onset_bytes) && m->windows_onset_bytes.v <= c.fast_bytes ? WRONG
                                                                                       : RIGHT,
          (double)m->windows_reach_bytes.v);
    count(name, "entry_bytes", score_entry(k, m->entry_bytes), (double)m->entry_bytes.v);
    count(name, "latency_cycles",
          is_near(m->latency_cycles, low, low + k->group_miss_cycles + k->gpu_miss_cycles),
          m->latency_cycles.v);
    count(name, "beyond_latency_cycles",
          is_near(m->beyond_latency_cycles, low + k->gpu_miss_cycles,
                  low + k->group_miss_cycles + k->gpu_miss_cycles),
          m->beyond_latency_cycles.v);
    /* The model has no L2 that output fills. */
    count(name, "written_factor", IS_KNOWN(m->written_factor) ? WRONG : RIGHT, m->written_factor.v);
    count(name, "sms_to_fill", score_fewest(k, d->sm_count, m->sms_to_fill), m->sms_to_fill.v);
}

/* Registered memory that is reached is read on each node if there are several. */
static void compare_nodes(const struct sim_desc *d, const struct memory_facts *m)
{
    const struct sim_kind *const k = &d->kinds[m->kind];
    const double filled = d->sm_count < k->sms_to_fill ? (double)d->sm_count / k->sms_to_fill : 1;
    const bool is_read = m->kind == MEMORY_HOST_REGISTERED && d->host_nodes > 1 &&
                         IS_KNOWN(m->probed_bytes) &&
                         m->reach_bytes.reason != REASON_TOO_LITTLE_DATA;

    count(memory_kind_name(m->kind), "nodes",
          m->node_count == (is_read ? d->host_nodes : 0) ? RIGHT : WRONG, m->node_count);
    for (uint32_t i = 0; i < m->node_count; i++) {
        const double gbps = filled * (i > 0 ? fmin(d->far_node_gbps, k->gbps) : k->gbps);
        assert_int_equal(m->nodes[i].node, i);
        count(memory_kind_name(m->kind), "nodes.gbps", is_near(m->nodes[i].gbps, gbps, gbps),
              m->nodes[i].gbps.v);
    }
}

/* ---- advice ---- */

/* Returns the throughput of the request with one of its choices, in GB/s. */
static double real_gbps(struct gpu *gpu, const struct fingerprint *fp,
                        const struct memory_choice *w, const struct memory_request *request)
{
    static struct observation o;
    struct evidence evidence;
    struct err err = {0};

    o = (struct observation){.spec = {.kind = PROBE_READ,
                                      .repeats = 8,
                                      .duration_us = 4000,
                                      .seed = 1,
                                      .memory = w->kind,
                                      .access = request->access,
                                      .transaction_bytes = request->element_bytes,
                                      .window_count = w->windows > 0 ? w->windows : 1,
                                      .window_sms = REACH_MAX_SMS,
                                      .point_count = 1,
                                      .points = {request->bytes}}};
    if (w->windows > 0)
        read_probes_by_group(&fp->topology.partition, w->windows, o.spec.window_of_sm);
    if (gpu_run(gpu, &o.spec, &o.result, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    const double gbps = throughput_median_gbps(&o, 0, EVIDENCE_RANDOM_READS, &evidence);
    probe_result_free(&o.result);
    return gbps;
}

/* Compares the prediction of the first choice with its speed and with the other choices. */
static void score_advice(struct gpu *gpu, const struct fingerprint *fp, uint64_t bytes,
                         enum access access, uint32_t row)
{
    const struct memory_request request = {
        .bytes = bytes, .fingerprint_id = "fp", .access = access, .element_bytes = row};
    const int k = row == 0 ? LINES : row < PROBE_LINE_BYTES ? SHORT_ROWS : ROWS;
    static struct memory_answer answer;
    const struct memory_choice *const first = &answer.choices[0];
    double best = 0;
    struct err err;

    if (memory_choices_rank(fp, &request, &answer, &err) != STATUS_OK || !IS_KNOWN(first->gbps)) {
        advised[k].not_sure += 1;
        return;
    }
    const double real = real_gbps(gpu, fp, first, &request);
    const double off = fabs(first->gbps.v / real - 1);
    for (uint32_t i = 1; i < answer.choice_count; i++)
        if (IS_KNOWN(answer.choices[i].gbps))
            best = fmax(best, real_gbps(gpu, fp, &answer.choices[i], &request));
    const bool is_wrong = off > advised[k].most || real < (1 - advised[k].most) * best;
    advised[k].worst = off > advised[k].worst ? off : advised[k].worst;
    advised[k].right += !is_wrong;
    advised[k].wrong += is_wrong;
    if (is_wrong || total.verbose)
        print_message(
            "# advice over %.3f GiB, %u bytes, %s %s: %.2f GB/s predicted, %.2f real, the best of "
            "the others %.2f; %s\n",
            (double)bytes / GIB, row, memory_kind_name(first->kind), strategy_name(first->strategy),
            first->gbps.v, real, best, first->why);
}

/* Random sizes of all orders of magnitude, up to 1.5 times the largest probe of host memory. The
 * GPU that answers has a host with more memory. */
static void ask(const struct sim_desc *desc, uint64_t seed, const struct fingerprint *fp)
{
    const uint64_t most = desc->host_memory_bytes / 4 * 3 / 2 / PROBE_LINE_BYTES;
    struct rng r = {seed * 104729};
    struct gpu *gpu = NULL;
    struct err err;
    char text[2048];

    random_host(seed, 8, text, sizeof text);
    if (sim_open(text, &gpu, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    for (int i = 0; i < QUESTIONS; i++)
        score_advice(gpu, fp, MIB + PROBE_LINE_BYTES * rng_below(&r, most >> rng_below(&r, 12)),
                     ACCESS_READ, 0);
    for (int i = 0; i < QUESTIONS; i++) {
        const uint64_t bytes = MIB + PROBE_LINE_BYTES * rng_below(&r, most >> rng_below(&r, 12));
        const bool reads = rng_below(&r, 4) > 0;
        score_advice(gpu, fp, bytes, reads ? ACCESS_READ : ACCESS_ATOMIC,
                     reads ? 64U << rng_below(&r, 5) : 256);
    }
    gpu_close(gpu);
}

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *const text = getenv(name);
    return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

static void random_kinds_are_right_or_not_sure(void **state)
{
    const bool one = getenv("REACH_SEED") && !getenv("REACH_CASES");
    const uint64_t first = number_of("REACH_SEED", 1);
    const uint64_t cases = one ? 1 : number_of("REACH_CASES", test_share(CASES, SANITIZED_CASES));
    static struct fingerprint fp;
    static struct sim_desc desc;
    char text[2048];

    (void)state;
    total.verbose = one;
    for (uint64_t seed = first; seed < first + cases; seed++) {
        const uint32_t wrong = total.wrong + count_wrong_advice();
        random_host(seed, 1, text, sizeof text);
        assert_int_equal(sim_profiles_parse(text, &desc, NULL), STATUS_OK);
        measure(text, &fp);
        assert_int_equal(fp.memory_count, MEMORY_PEER - 1 + (desc.kinds[MEMORY_PEER].gbps > 0));
        for (uint32_t i = 0; i < fp.memory_count; i++) {
            compare(&desc, &fp.memory[i]);
            compare_nodes(&desc, &fp.memory[i]);
        }
        if (desc.kinds[MEMORY_PEER].gbps > 0) {
            assert_true(IS_KNOWN(fp.memory[MEMORY_PEER - 1].peer_memory_bytes));
            assert_true(fp.memory[MEMORY_PEER - 1].peer_memory_bytes.v == desc.memory_bytes);
        }
        ask(&desc, seed, &fp);
        total.gpus += 1;
        if (total.wrong + count_wrong_advice() > wrong || one)
            print_message("# REACH_SEED=%llu: %s\n", (unsigned long long)seed, text);
    }
    print_message("# %u GPUs from REACH_SEED=%llu with %u kinds: %u fields right, %u not sure, %u "
                  "wrong\n",
                  total.gpus, (unsigned long long)first, total.kinds, total.right, total.not_sure,
                  total.wrong);
    for (int i = 0; i < ADVICES; i++) {
        print_message(
            "# advice on %s: %u first choices right, %u not sure, %u wrong, the worst off "
            "by %.1f %%\n",
            advised[i].of, advised[i].right, advised[i].not_sure, advised[i].wrong,
            advised[i].worst * 100);
        assert_true(one || advised[i].right > advised[i].not_sure);
    }
    assert_int_equal(total.wrong + count_wrong_advice(), 0);
    assert_true(one || total.right > 4 * total.not_sure);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_kinds_are_right_or_not_sure)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
