/* metrics.c: writes pages of metrics, and the metrics of the GPUs. Words (model, signature of the
 * disabled SMs, name of the group map, origin, driver) are labels of one series per GPU, whose
 * value is 1.
 */
#include "api/encode/metrics.h"

#include "base/text.h"
#include "fingerprint/fingerprint.h"
#include "snapshot/health.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>

enum { LABEL_BYTES = 512 };

void metrics_family(const struct metrics_page *p, const char *name, enum metrics_kind kind,
                    const char *help)
{
    const char *suffix = kind == METRICS_COUNTER && !p->is_open ? "_total" : "";

    fprintf(p->out, "# HELP %s%s %s\n# TYPE %s%s %s\n", name, suffix, help, name, suffix,
            kind == METRICS_COUNTER ? "counter" : "gauge");
}

void metrics_single(const struct metrics_page *p, const char *name, enum metrics_kind kind,
                    const char *help, double value)
{
    metrics_family(p, name, kind, help);
    fprintf(p->out, "%s%s %.17g\n", name, kind == METRICS_COUNTER ? "_total" : "", value);
}

/* A collector drops a whole page if one byte is not UTF-8. */
void metrics_label(const struct metrics_page *p, const char *name, const char *value)
{
    char tidy[LABEL_BYTES];

    (void)snprintf(tidy, sizeof(tidy), "%s", value);
    text_sanitize(tidy);
    fprintf(p->out, "%s=\"", name);
    for (const char *at = tidy; *at; at++)
        fprintf(p->out, "%s%c", *at == '"' || *at == '\\' ? "\\" : "", *at);
    fputc('"', p->out);
}

/* ---- GPUs ---- */

#define GIGA 1e9

enum subject { GPU = 0, FINGERPRINT, LEVEL };
enum number { U32 = 0, U32_OR_NONE, U64, I64, MILLISECONDS, BOOL, MAYBE_U32, MAYBE_U64, MAYBE_F64 };

struct family {
    const char *name;
    const char *help;
    enum subject subject; /* all GPUs, GPUs with a fingerprint, or their TLB levels */
    enum number number;
    size_t offset; /* offset in struct snapshot_gpu or struct tlb_level */
    double factor; /* factor that converts the number to the base unit; 0 means 1 */
    /* writes the samples of a GPU if they have more labels */
    void (*write)(const struct metrics_page *p, const char *name, const struct snapshot_gpu *gpu);
};

/* Writes the name and the label at the beginning of every sample of a GPU. */
static void begin(const struct metrics_page *p, const char *name, const struct snapshot_gpu *gpu)
{
    fprintf(p->out, "%s{", name);
    metrics_label(p, "gpu", gpu->identity.uuid);
}

static void add_label(const struct metrics_page *p, const char *name, const char *value)
{
    fputc(',', p->out);
    metrics_label(p, name, value);
}

static void end(const struct metrics_page *p, double value)
{
    fprintf(p->out, "} %.17g\n", value);
}

/* ---- families with more labels ---- */

static void write_info(const struct metrics_page *p, const char *name,
                       const struct snapshot_gpu *gpu)
{
    begin(p, name, gpu);
    add_label(p, "name", gpu->identity.name);
    add_label(p, "origin", origin_name(gpu->identity.origin));
    end(p, 1);
}

static void write_state(const struct metrics_page *p, const char *name,
                        const struct snapshot_gpu *gpu)
{
    for (int state = GPU_STATE_UNKNOWN; state <= GPU_STATE_STALE; state++) {
        begin(p, name, gpu);
        add_label(p, "state", gpu_state_name((enum gpu_state)state));
        end(p, gpu->state == (enum gpu_state)state);
    }
}

static void write_error(const struct metrics_page *p, const char *name,
                        const struct snapshot_gpu *gpu)
{
    if (gpu->last_error.status == STATUS_OK)
        return;
    begin(p, name, gpu);
    add_label(p, "error", status_info(gpu->last_error.status)->slug);
    end(p, 1);
}

static void write_check(const struct metrics_page *p, const char *name,
                        const struct snapshot_gpu *gpu)
{
    if (gpu->check.checked_at == 0)
        return;
    begin(p, name, gpu);
    end(p, (double)gpu->check.checked_at);
}

static void write_fingerprint_info(const struct metrics_page *p, const char *name,
                                   const struct snapshot_gpu *gpu)
{
    const struct fingerprint *fp = &gpu->fingerprint;
    char map[FINGERPRINT_MAP_HASH_BYTES];

    begin(p, name, gpu);
    add_label(p, "model", fp->gpu.name);
    add_label(p, "signature", fp->topology.disabled.signature);
    add_label(p, "map", fingerprint_map_hash(&fp->topology.partition, map));
    add_label(p, "origin", origin_name(fp->gpu.origin));
    add_label(p, "driver", fp->gpu.driver_version);
    add_label(p, "depth", depth_name(fp->depth));
    end(p, 1);
}

static void write_verdict(const struct metrics_page *p, const char *name,
                          const struct snapshot_gpu *gpu)
{
    for (int v = VERDICT_CLEAN; v <= VERDICT_UNUSABLE; v++) {
        begin(p, name, gpu);
        add_label(p, "verdict", verdict_name((enum verdict)v));
        end(p, gpu->fingerprint.conditions.verdict == (enum verdict)v);
    }
}

/* ---- the table, in the order of the page ---- */

#define IDENTITY(field) .offset = offsetof(struct snapshot_gpu, identity.field)
#define FP(field)       .offset = offsetof(struct snapshot_gpu, fingerprint.field)
#define TLB(field)      .offset = offsetof(struct tlb_level, field)

static const struct family families[] = {
    {"reachd_gpu_info", "Name of a GPU, and whether it is measured or simulated.",
     .write = write_info},
    {"reachd_gpu_sms", "SMs that a GPU has.", GPU, U32, IDENTITY(sm_count)},
    {"reachd_gpu_memory_bytes", "Memory of a GPU.", GPU, U64, IDENTITY(memory_bytes)},
    {"reachd_gpu_state", "1 for the state that a GPU is in.", .write = write_state},
    {"reachd_gpu_error_info", "Why a GPU is lost, failed or stale: 1 with the slug of its error.",
     .write = write_error},
    {"reachd_gpu_check_timestamp_seconds",
     "When the newest quick check was made (--check-every), since 1970.", .write = write_check},
    {"reachd_gpu_fingerprint_info",
     "Properties of a fingerprint that are not numbers; an empty label is not known.", FINGERPRINT,
     .write = write_fingerprint_info},
    {"reachd_gpu_fingerprint_timestamp_seconds",
     "When the fingerprint that is served was taken, since 1970.", FINGERPRINT, I64, FP(taken_at)},
    {"reachd_gpu_fingerprint_duration_seconds", "How long its measurement took.", FINGERPRINT,
     MILLISECONDS, FP(duration_ms)},
    {"reachd_gpu_fingerprint_stale", "1: the fingerprint that is served is known to be stale.",
     FINGERPRINT, BOOL, .offset = offsetof(struct snapshot_gpu, fingerprint_stale)},
    {"reachd_gpu_fingerprint_verdict",
     "1 for the verdict on its measurement: did other work disturb it?", FINGERPRINT,
     .write = write_verdict},
    {"reachd_gpu_groups", "SM groups: SMs that share a TLB. No sample if they are not known.",
     FINGERPRINT, U32_OR_NONE, FP(topology.partition.group_count)},
    {"reachd_gpu_tlb_levels", "TLB levels that were observed.", FINGERPRINT, U32, FP(level_count)},
    {"reachd_gpu_reach_bytes", "Bytes that an SM group reaches without a miss.", FINGERPRINT,
     MAYBE_U64, FP(windows.reach_bytes)},
    {"reachd_gpu_recommended_window_bytes",
     "Longest window for an SM group at a base of any alignment.", FINGERPRINT, MAYBE_U64,
     FP(windows.recommended_bytes)},
    {"reachd_gpu_full_sms", "SMs of the smallest regular die that explains the groups.",
     FINGERPRINT, MAYBE_U32, FP(topology.full_sm_count)},
    {"reachd_gpu_nominal_group_sms", "SMs of a group of that die.", FINGERPRINT, MAYBE_U32,
     FP(topology.nominal_group_sms)},
    {"reachd_gpu_disabled_sms", "SMs of that die that are disabled on this chip.", FINGERPRINT,
     MAYBE_U32, FP(topology.disabled.sm_count)},
    {"reachd_gpu_disabled_candidates", "Sets of disabled SMs that explain the groups.", FINGERPRINT,
     MAYBE_U32, FP(topology.disabled.candidate_count)},
    {"reachd_gpu_lost_groups", "Groups of that die that have no SM on this chip.", FINGERPRINT,
     MAYBE_U32, FP(topology.disabled.lost_groups)},
    {"reachd_gpu_group_confidence_ratio", "Least agreement of any SM's votes for its group.",
     FINGERPRINT, MAYBE_F64, FP(topology.confidence)},
    {"reachd_gpu_plateau_bytes_per_second", "Random reads of 128 bytes within the reach.",
     FINGERPRINT, MAYBE_F64, FP(throughput.plateau_gbps), .factor = GIGA},
    {"reachd_gpu_whole_memory_bytes_per_second",
     "Random reads of 128 bytes over the largest region probed.", FINGERPRINT, MAYBE_F64,
     FP(throughput.whole_memory_gbps), .factor = GIGA},
    {"reachd_gpu_tlb_entries", "Entries of a TLB level.", LEVEL, MAYBE_U32, TLB(entries)},
    {"reachd_gpu_tlb_entry_bytes", "Bytes that one entry of a TLB level translates.", LEVEL,
     MAYBE_U64, TLB(entry_bytes)},
    {"reachd_gpu_tlb_reach_bytes", "Bytes that a TLB level translates without a miss.", LEVEL,
     MAYBE_U64, TLB(reach_bytes)},
    {"reachd_gpu_tlb_miss_penalty_cycles", "SM cycles that a miss in a TLB level costs.", LEVEL,
     MAYBE_F64, TLB(miss_penalty_cycles)},
};

/* Returns the number at `at`, NaN if it is not known. */
static double number_at(enum number number, const void *at)
{
    switch (number) {
    case U32:
        return *(const uint32_t *)at;
    case U32_OR_NONE:
        return *(const uint32_t *)at > 0 ? *(const uint32_t *)at : NAN;
    case U64:
        return (double)*(const uint64_t *)at;
    case I64:
        return (double)*(const int64_t *)at;
    case MILLISECONDS:
        return *(const uint32_t *)at / 1e3;
    case BOOL:
        return *(const bool *)at;
    case MAYBE_U32:
        return IS_KNOWN(*(const struct maybe_u32 *)at) ? ((const struct maybe_u32 *)at)->v : NAN;
    case MAYBE_U64:
        return IS_KNOWN(*(const struct maybe_u64 *)at) ? (double)((const struct maybe_u64 *)at)->v
                                                       : NAN;
    case MAYBE_F64:
        return IS_KNOWN(*(const struct maybe_f64 *)at) ? ((const struct maybe_f64 *)at)->v : NAN;
    }
    return NAN;
}

/* Writes the sample of the number in `object`. A NULL `level` means the GPU. */
static void write_number(const struct metrics_page *p, const struct family *f,
                         const struct snapshot_gpu *gpu, const void *object,
                         const struct tlb_level *level)
{
    const double value = number_at(f->number, (const char *)object + f->offset);

    if (isnan(value))
        return;
    begin(p, f->name, gpu);
    if (level)
        fprintf(p->out, ",level=\"%u\"", level->level);
    end(p, f->factor != 0 ? value * f->factor : value);
}

static void write_samples(const struct metrics_page *p, const struct family *f,
                          const struct snapshot_gpu *gpu)
{
    if (f->subject != GPU && !gpu->has_fingerprint)
        return;
    if (f->write)
        f->write(p, f->name, gpu);
    else if (f->subject != LEVEL)
        write_number(p, f, gpu, gpu, NULL);
    for (uint32_t l = 0; f->subject == LEVEL && l < gpu->fingerprint.level_count; l++)
        write_number(p, f, gpu, &gpu->fingerprint.levels[l], &gpu->fingerprint.levels[l]);
}

static void count_problem(void *self, enum health_kind kind, const struct snapshot_gpu *gpu,
                          const struct err *why)
{
    uint32_t *const counts = self;

    (void)gpu;
    (void)why;
    counts[kind]++;
}

/* Writes the problems that GET /v1/health describes. A number that is not known has no sample. */
static void write_health(const struct metrics_page *p, const struct snapshot *s)
{
    uint32_t counts[HEALTH_KINDS] = {0};

    metrics_family(p, "reachd_gpus_expected", METRICS_GAUGE,
                   "GPUs that this node must have (--expect-gpus).");
    if (s->expected_gpus > 0)
        fprintf(p->out, "reachd_gpus_expected %" PRIu32 "\n", s->expected_gpus);
    metrics_family(p, "reachd_gpus_found", METRICS_GAUGE,
                   "GPUs that the driver shows and identifies, without MIG instances.");
    if (health_is_counted(s))
        fprintf(p->out, "reachd_gpus_found %" PRIu32 "\n", health_count_found(s));
    (void)health_visit(s, count_problem, counts);
    metrics_family(p, "reachd_gpu_problems", METRICS_GAUGE,
                   "Problems that GET /v1/health describes, by kind.");
    for (int k = 0; k < HEALTH_KINDS; k++)
        fprintf(p->out, "reachd_gpu_problems{kind=\"%s\"} %" PRIu32 "\n",
                health_kind_name((enum health_kind)k), counts[k]);
}

void metrics_gpu(const struct metrics_page *p, const struct snapshot *s)
{
    metrics_single(p, "reachd_gpus", METRICS_GAUGE, "GPUs of this node.", s->gpu_count);
    write_health(p, s);
    for (size_t k = 0; k < sizeof(families) / sizeof(*families); k++) {
        metrics_family(p, families[k].name, METRICS_GAUGE, families[k].help);
        for (uint32_t i = 0; i < s->gpu_count; i++)
            write_samples(p, &families[k], &s->gpus[i]);
    }
}
