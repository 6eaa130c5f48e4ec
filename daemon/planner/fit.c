/* fit.c: see fit.h.
 *
 * The place of a set is judged by speed, because a job depends on the speed only. Smaller sets that
 * are certain to be in a cache give its speed. A set is in the cache if its random reads have at
 * least 95 % of this speed.
 */
#include "planner/fit.h"

#include "types/name_of.h"
#include "planner/access_cost.h"
#include "base/format_size.h"
#include "planner/next_step.h"
#include "planner/placement.h"
#include "planner/reach_limit.h"
#include "planner/strategy.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { L2_SURELY_DIVISOR = 4 }; /* a quarter of the L2 stays in the L2 for every SM */

static const double KEPT = 0.95;
/* If the L1 keeps at most this part of what an SM reads, its size changes the speed by less than
 * the error of predictions. */
static const double L1_PART = 1.0 / 64;

NAME_FUNCTION(fit_level_name, enum fit_level, [FIT_UNKNOWN] = "unknown", [FIT_L1] = "l1",
              [FIT_L2] = "l2", [FIT_L2_NEAR] = "l2-near", [FIT_MEMORY] = "memory",
              [FIT_OUT_OF_REACH] = "out-of-reach", [FIT_BEYOND_MEMORY] = "beyond-memory")

struct fitting {
    const struct fingerprint *fp;
    const struct fit_request *request;
    struct maybe_u64 set_l1_bytes; /* L1 of an SM while the working sets were measured */
    struct reach_limit limit;
    bool reach_known; /* the reach is known, or is known to be no limit */
    enum set_spread spread;
    struct fit_answer *out;
};

static struct maybe_f64 set_gbps(const struct fitting *f, enum set_spread spread, uint64_t bytes)
{
    const uint32_t each = f->out->transaction_bytes;

    return access_cost_gbps(set_cost_ns(f->fp, spread, each, bytes), each);
}

/* Returns the length of the longest measured set of this spread that is read with at least 95 % of
 * `gbps`. */
static struct maybe_u64 longest_at(const struct fitting *f, enum set_spread spread,
                                   struct maybe_f64 gbps)
{
    struct maybe_u64 longest = UNKNOWN_U64(gbps.reason);

    for (uint32_t i = 0; IS_KNOWN(gbps) && i < f->fp->working_set_count; i++) {
        const uint64_t bytes = f->fp->working_sets[i].set_bytes;
        const struct maybe_f64 here = set_gbps(f, spread, bytes);
        if (IS_KNOWN(here) && here.v >= KEPT * gbps.v && (!IS_KNOWN(longest) || bytes > longest.v))
            longest = KNOWN_U64(bytes);
    }
    if (IS_KNOWN(gbps) && !IS_KNOWN(longest))
        longest = UNKNOWN_U64(REASON_NOT_MEASURED);
    return longest;
}

static uint64_t part_of_sm(const struct fitting *f, uint64_t bytes)
{
    const uint32_t sms =
        f->request->reuse == FIT_OWN && f->fp->gpu.sm_count > 0 ? f->fp->gpu.sm_count : 1;

    return (bytes - 1) / sms + 1;
}

/* ---- the L1 ---- */

/* Returns the size of the L1 of an SM beside `shared_bytes` of shared memory. It is the size at the
 * measured division with the least sufficient shared memory, which is written to
 * `*out_carveout`. */
static struct maybe_u64 l1_beside(const struct fingerprint *fp, uint64_t shared_bytes,
                                  struct maybe_u64 *out_carveout)
{
    const struct cache_facts *const l1 = &fp->caches[CACHE_L1];
    const struct cache_carveout *const division =
        fp->cache_count > 0 ? cache_carveout_beside(l1, shared_bytes) : NULL;
    const enum reason reason = fp->cache_count == 0 ? REASON_NOT_MEASURED : REASON_TOO_LITTLE_DATA;

    *out_carveout = UNKNOWN_U64(reason);
    if (division) {
        *out_carveout = KNOWN_U64(division->shared_bytes);
        return cache_kept_bytes(division->fits_bytes, division->size_bytes);
    }
    return fp->cache_count > 0 && l1->carveout_count == 0 && shared_bytes == 0
               ? cache_kept_bytes(l1->fits_bytes, l1->size_bytes)
               : UNKNOWN_U64(reason);
}

/* Sets the sizes of the L1 for the job and for the working sets. `shared_bytes` is the shared
 * memory of all blocks of an SM. */
static void find_l1(struct fitting *f, struct maybe_u64 shared_bytes)
{
    const struct maybe_u64 set_shared = working_set_shared_bytes(f->fp);
    struct fit_answer *const out = f->out;

    f->set_l1_bytes = IS_KNOWN(set_shared) ? l1_beside(f->fp, set_shared.v, &out->carveout_bytes)
                                           : UNKNOWN_U64(set_shared.reason);
    out->l1.size_bytes = f->set_l1_bytes;
    out->carveout_bytes = UNKNOWN_U64(REASON_NOT_APPLICABLE); /* shared memory is unknown */
    if (IS_KNOWN(shared_bytes))
        out->l1.size_bytes = l1_beside(f->fp, shared_bytes.v, &out->carveout_bytes);
}

/* ---- the levels ---- */

static struct maybe_f64 memory_gbps(const struct fitting *f)
{
    const struct throughput *const t = &f->fp->throughput;

    if (f->out->transaction_bytes == (uint32_t)FINGERPRINT_CURVE_BYTES)
        return t->plateau_gbps;
    for (uint32_t i = 0; i < t->rate_count; i++)
        if (t->rates[i].access == ACCESS_READ &&
            t->rates[i].transaction_bytes == f->out->transaction_bytes)
            return t->rates[i].plateau_gbps;
    return UNKNOWN_F64(REASON_NOT_MEASURED);
}

/* If memory is as fast as the L2, speeds cannot show the limit, and the size of the L2 is used. */
static void find_l2_keeps(struct fitting *f)
{
    const struct cache_facts *const l2 = &f->fp->caches[CACHE_L2];
    const struct maybe_f64 memory = memory_gbps(f);
    struct fit_answer *const out = f->out;

    out->l2.keeps_bytes = longest_at(f, f->spread, out->l2.gbps);
    out->near_keeps_bytes = longest_at(f, SET_NEAR, out->l2.gbps);
    if (!IS_KNOWN(out->l2.gbps) || !IS_KNOWN(memory) || memory.v < KEPT * out->l2.gbps.v)
        return;
    out->near_keeps_bytes = UNKNOWN_U64(REASON_NO_CONTRAST);
    out->l2.keeps_bytes = cache_kept_bytes(l2->fits_bytes, l2->size_bytes);
    if (!IS_KNOWN(out->l2.keeps_bytes))
        out->l2.keeps_bytes = UNKNOWN_U64(REASON_NO_CONTRAST);
}

static void find_levels(struct fitting *f)
{
    struct fit_answer *const out = f->out;
    const uint64_t l2_bytes = f->fp->gpu.l2_cache_bytes;
    const uint64_t shortest = set_cost_shortest(f->fp, f->spread);

    out->l1.latency_cycles = f->fp->caches[CACHE_L1].latency_cycles;
    out->l2.latency_cycles = f->fp->caches[CACHE_L2].latency_cycles;
    out->l2.size_bytes = l2_bytes > 0 ? KNOWN_U64(l2_bytes) : UNKNOWN_U64(REASON_NOT_REPORTED);
    out->l1.gbps =
        shortest > 0 ? set_gbps(f, f->spread, shortest) : UNKNOWN_F64(REASON_NOT_MEASURED);
    out->l2.gbps = l2_bytes > 0 ? set_gbps(f, SET_SAME, l2_bytes / L2_SURELY_DIVISOR)
                                : UNKNOWN_F64(REASON_NOT_REPORTED);
    /* If L1 and L2 are equally fast, the shortest set is in the L2 already. */
    if (IS_KNOWN(out->l1.gbps) && IS_KNOWN(out->l2.gbps) && out->l2.gbps.v >= KEPT * out->l1.gbps.v)
        out->l1.gbps = UNKNOWN_F64(REASON_NO_CONTRAST);
    out->l1.keeps_bytes = longest_at(f, f->spread, out->l1.gbps);
    find_l2_keeps(f);
}

static bool fits(struct maybe_u64 keeps, uint64_t bytes)
{
    return IS_KNOWN(keeps) && bytes <= keeps.v;
}

static enum fit_level level_of(const struct fitting *f)
{
    const struct fit_answer *const out = f->out;
    const uint64_t bytes = f->request->bytes;
    const uint64_t memory = f->fp->gpu.memory_bytes;

    if (memory > 0 && bytes > memory)
        return FIT_BEYOND_MEMORY;
    if (f->reach_known && f->limit.observed && bytes > f->limit.usable_bytes)
        return FIT_OUT_OF_REACH;
    if (fits(out->l1.keeps_bytes, bytes) &&
        (!IS_KNOWN(f->request->shared_bytes) || !IS_KNOWN(out->l1.size_bytes) ||
         part_of_sm(f, bytes) <= out->l1.size_bytes.v))
        return FIT_L1;
    if (fits(out->l2.keeps_bytes, bytes))
        return FIT_L2;
    if (f->request->reuse == FIT_SAME && fits(out->near_keeps_bytes, bytes))
        return FIT_L2_NEAR;
    if (!IS_KNOWN(out->l2.keeps_bytes) || !f->reach_known)
        return FIT_UNKNOWN;
    return FIT_MEMORY;
}

/* ---- the speeds ---- */

/* Returns whether the set was measured with an L1 of the size that this job has, or the size does
 * not matter. */
static bool is_as_measured(const struct fitting *f)
{
    const struct maybe_u64 own = f->out->l1.size_bytes;
    const struct maybe_u64 then = f->set_l1_bytes;
    const double part = (double)part_of_sm(f, f->request->bytes);

    if (!IS_KNOWN(f->request->shared_bytes))
        return true;
    if (!IS_KNOWN(own) || !IS_KNOWN(then))
        return false;
    if (own.v == then.v)
        return true;
    return part <= fmin((double)own.v, (double)then.v) * KEPT ||
           fmax((double)own.v, (double)then.v) <= part * L1_PART;
}

static struct maybe_f64 unmeasured_l1(const struct fitting *f)
{
    const struct maybe_u64 own = f->out->l1.size_bytes;
    const struct maybe_u64 missing = IS_KNOWN(own) ? f->set_l1_bytes : own;

    return UNKNOWN_F64(IS_KNOWN(missing) ? REASON_NOT_MEASURED : missing.reason);
}

static void find_speeds(struct fitting *f)
{
    struct fit_answer *const out = f->out;
    const uint64_t bytes = f->request->bytes;
    const struct maybe_f64 memory = memory_gbps(f);

    out->gbps = set_gbps(f, f->spread, bytes);
    out->near_gbps = f->request->reuse == FIT_SAME ? set_gbps(f, SET_NEAR, bytes)
                                                   : UNKNOWN_F64(REASON_NOT_APPLICABLE);
    if (!is_as_measured(f))
        out->gbps = unmeasured_l1(f);
    else if (!IS_KNOWN(out->gbps) && out->stays == FIT_MEMORY)
        out->gbps = memory;
    else if (!IS_KNOWN(out->gbps) && out->stays == FIT_OUT_OF_REACH &&
             out->transaction_bytes == (uint32_t)FINGERPRINT_CURVE_BYTES)
        out->gbps = predict_gbps(&f->fp->throughput, PREDICT_NAIVE, bytes);
    out->outside_gbps = UNKNOWN_F64(REASON_NOT_APPLICABLE);
    if (out->stays == FIT_L1)
        out->outside_gbps = out->l2.gbps;
    else if (out->stays == FIT_L2 || out->stays == FIT_L2_NEAR)
        out->outside_gbps = memory;
    else if (out->stays == FIT_MEMORY)
        out->outside_gbps = f->fp->throughput.whole_memory_gbps;
    else if (out->stays == FIT_UNKNOWN)
        out->outside_gbps = UNKNOWN_F64(REASON_NOT_MEASURED);
}

/* ---- words ---- */

static void write_reason(struct fitting *f)
{
    static const char *const places[FIT_LEVEL_COUNT] = {
        [FIT_UNKNOWN] = "the place of the set was not measured",
        [FIT_L1] = "the set stays in the L1 of each SM",
        [FIT_L2] = "the set stays in the L2",
        [FIT_L2_NEAR] = "the set stays in the L2 if each SM reads only data on its own side (plan: "
                        "sides), and otherwise in part",
        [FIT_MEMORY] = "memory answers the reads that miss the L2; the set is within the reach, so "
                       "the TLB is not the limit",
        [FIT_OUT_OF_REACH] =
            "the set is more than an SM group reaches, so translation is a limit (plan)",
        [FIT_BEYOND_MEMORY] = "the set is more than the memory of this GPU"};
    struct fit_answer *const out = f->out;
    char size[FORMAT_SIZE_BYTES];
    char part[FORMAT_SIZE_BYTES];
    char rate[FORMAT_RATE_BYTES];
    char outside[FORMAT_RATE_BYTES];
    char more[FORMAT_RATE_BYTES + 32] = "";

    if (IS_KNOWN(out->outside_gbps))
        snprintf(more, sizeof(more), ", %s outside", format_rate(out->outside_gbps, outside));
    snprintf(out->reason, sizeof(out->reason),
             "%s, of which an SM reads %s: %s; random reads of %u bytes: %s%s (fingerprint %s).",
             format_size(f->request->bytes, size), format_size(out->sm_bytes, part),
             places[out->stays], out->transaction_bytes, format_rate(out->gbps, rate), more,
             out->fingerprint_id);
}

/* Returns the size in SMs of the smallest cluster whose shared memory holds `bytes`, if each SM has
 * `block_bytes`. A size counts only if this GPU ran a cluster of this size. */
static struct maybe_u32 cluster_sms(const struct fingerprint_clusters *c, uint64_t bytes,
                                    struct maybe_u64 block_bytes)
{
    if (!IS_KNOWN(block_bytes))
        return UNKNOWN_U32(block_bytes.reason);
    if (bytes <= block_bytes.v)
        return KNOWN_U32(1);
    if (!IS_KNOWN(c->largest))
        return (struct maybe_u32){c->largest.known, c->largest.reason, 0};
    for (uint32_t i = 0; i < c->size_count; i++)
        if (IS_KNOWN(c->sizes[i].clusters) && c->sizes[i].clusters.v > 0 &&
            c->sizes[i].sms * block_bytes.v >= bytes)
            return KNOWN_U32(c->sizes[i].sms);
    return UNKNOWN_U32(REASON_NOT_APPLICABLE); /* more than the largest cluster holds */
}

static void find_advice(const struct fingerprint *fp, struct fit_answer *out)
{
    const struct maybe_u32 bank = fp->shared.bank_bytes;

    out->reach_bytes = fp->windows.reach_bytes;
    out->memory_latency_cycles = fp->latency.p4_cycles;
    out->padding_bytes = (struct maybe_u64){bank.known, bank.reason, bank.v};
    out->loads_enough = fp->parallelism.loads_enough;
    out->loads_short = fp->parallelism.loads_short;
    out->sms_enough = fp->parallelism.sms_enough;
    out->sms_short = fp->parallelism.sms_short;
    out->cluster_sms = cluster_sms(&fp->clusters, out->sm_bytes, fp->shared.block_bytes);
}

enum status fit_plan(const struct fingerprint *fp, const struct fit_request *request,
                     struct fit_answer *out, struct err *err)
{
    struct fitting f = {.fp = fp, .request = request, .out = out};
    const uint32_t blocks = request->blocks_per_sm > 0 ? request->blocks_per_sm : 1;
    struct maybe_u64 shared = request->shared_bytes;
    uint32_t element = 0;
    struct err no_limit;
    enum status s;

    memset(out, 0, sizeof(*out));
    s = reach_limit_begin(fp, request->bytes, request->fingerprint_id, out->fingerprint_id, err);
    if (s == STATUS_OK)
        s = strategy_sizes(request->element_bytes, 0, &element, &out->transaction_bytes, err);
    if (s == STATUS_OK && shared.v > PLACEMENT_MAX_BYTES)
        s = err_set_field(err, STATUS_INVALID_ARGUMENT, "shared_bytes",
                          "shared_bytes must be at most the shared memory of an SM");
    if (s != STATUS_OK)
        return s;
    f.spread = request->reuse == FIT_OWN ? SET_OWN : SET_SAME;
    /* Too many bytes or an unknown reach are results here and not errors. */
    f.reach_known =
        reach_limit_read(fp, request->bytes, out->fingerprint_id, &f.limit, &no_limit) == STATUS_OK;
    shared.v *= blocks;
    find_l1(&f, shared);
    out->sm_bytes = part_of_sm(&f, request->bytes);
    find_levels(&f);
    out->stays = level_of(&f);
    find_speeds(&f);
    find_advice(fp, out);
    write_reason(&f);
    next_step_append(fp, out->gbps, out->reason, sizeof(out->reason));
    return STATUS_OK;
}
