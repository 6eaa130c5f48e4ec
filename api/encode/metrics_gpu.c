/* metrics_gpu.c: see metrics_gpu.h. */
#include "api/encode/metrics_gpu.h"

#include "fingerprint/fingerprint.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum { KILO = 1000 };
#define GIGA 1e9

/* A number of a fingerprint or of one of its levels: where it stands and what makes it a base unit.
 */
enum number { NUMBER_U32 = 0, NUMBER_U64, NUMBER_F64 };
struct gauge {
    const char *name;
    const char *help;
    enum number number;
    size_t offset; /* of a maybe_u32, maybe_u64 or maybe_f64 */
    double factor;
};

#define OF_FINGERPRINT(field) offsetof(struct fingerprint, field)
#define OF_LEVEL(field)       offsetof(struct tlb_level, field)

static const struct gauge of_fingerprint[] = {
    {"reachd_gpu_reach_bytes", "Bytes that an SM group reaches without a miss.", NUMBER_U64,
     OF_FINGERPRINT(windows.reach_bytes), 1},
    {"reachd_gpu_recommended_window_bytes",
     "Window for an SM group, of a base that is not aligned.", NUMBER_U64,
     OF_FINGERPRINT(windows.recommended_bytes), 1},
    {"reachd_gpu_full_sms", "SMs of the smallest regular die that explains the groups.", NUMBER_U32,
     OF_FINGERPRINT(topology.full_sm_count), 1},
    {"reachd_gpu_nominal_group_sms", "SMs of a group of that die.", NUMBER_U32,
     OF_FINGERPRINT(topology.nominal_group_sms), 1},
    {"reachd_gpu_disabled_sms", "SMs of that die that this chip does without.", NUMBER_U32,
     OF_FINGERPRINT(topology.disabled.sm_count), 1},
    {"reachd_gpu_disabled_candidates", "Sets of disabled SMs that explain the groups.", NUMBER_U32,
     OF_FINGERPRINT(topology.disabled.candidate_count), 1},
    {"reachd_gpu_lost_groups", "Groups of that die of which nothing is left.", NUMBER_U32,
     OF_FINGERPRINT(topology.disabled.lost_groups), 1},
    {"reachd_gpu_group_confidence_ratio", "Least agreement of any SM's votes for its group.",
     NUMBER_F64, OF_FINGERPRINT(topology.confidence), 1},
    {"reachd_gpu_plateau_bytes_per_second", "Random reads of 128 bytes inside the reach.",
     NUMBER_F64, OF_FINGERPRINT(throughput.plateau_gbps), GIGA},
    {"reachd_gpu_whole_memory_bytes_per_second",
     "Random reads of 128 bytes over the largest region probed.", NUMBER_F64,
     OF_FINGERPRINT(throughput.whole_memory_gbps), GIGA},
};

static const struct gauge of_level[] = {
    {"reachd_gpu_tlb_entries", "Entries of a TLB level.", NUMBER_U32, OF_LEVEL(entries), 1},
    {"reachd_gpu_tlb_entry_bytes", "Bytes that one entry of a TLB level translates.", NUMBER_U64,
     OF_LEVEL(entry_bytes), 1},
    {"reachd_gpu_tlb_reach_bytes", "Bytes that a TLB level translates without a miss.", NUMBER_U64,
     OF_LEVEL(reach_bytes), 1},
    {"reachd_gpu_tlb_miss_penalty_cycles", "SM cycles that a miss in a TLB level costs.",
     NUMBER_F64, OF_LEVEL(miss_penalty_cycles), 1},
};

/* Of the value at `base`, in base units. NaN: not known. */
static double value_of(const struct gauge *g, const void *base)
{
    const char *const at = (const char *)base + g->offset;
    struct maybe_u32 u32;
    struct maybe_u64 u64;
    struct maybe_f64 f64;

    switch (g->number) {
    case NUMBER_U32:
        memcpy(&u32, at, sizeof(u32));
        return IS_KNOWN(u32) ? u32.v * g->factor : NAN;
    case NUMBER_U64:
        memcpy(&u64, at, sizeof(u64));
        return IS_KNOWN(u64) ? (double)u64.v * g->factor : NAN;
    case NUMBER_F64:
        memcpy(&f64, at, sizeof(f64));
        return IS_KNOWN(f64) ? f64.v * g->factor : NAN;
    }
    return NAN;
}

/* The name and the label that all samples of a GPU begin with. */
static void begin(const struct metrics_page *p, const char *name, const struct snapshot_gpu *gpu)
{
    fprintf(p->out, "%s{", name);
    metrics_label(p, "gpu", gpu->identity.uuid);
}

static void also(const struct metrics_page *p, const char *name, const char *value)
{
    fputc(',', p->out);
    metrics_label(p, name, value);
}

static void end(const struct metrics_page *p, double value)
{
    fprintf(p->out, "} %.17g\n", value);
}

/* ---- the GPUs themselves ---- */

static void identities(const struct metrics_page *p, const struct snapshot *s)
{
    metrics_single(p, "reachd_gpus", METRICS_GAUGE, "GPUs of this node.", s->gpu_count);
    metrics_family(p, "reachd_gpu_info", METRICS_GAUGE,
                   "Name of a GPU, and whether it is measured or simulated.");
    for (uint32_t i = 0; i < s->gpu_count; i++) {
        begin(p, "reachd_gpu_info", &s->gpus[i]);
        also(p, "name", s->gpus[i].identity.name);
        also(p, "origin", origin_name(s->gpus[i].identity.origin));
        end(p, 1);
    }
    metrics_family(p, "reachd_gpu_sms", METRICS_GAUGE, "SMs that a GPU has.");
    for (uint32_t i = 0; i < s->gpu_count; i++) {
        begin(p, "reachd_gpu_sms", &s->gpus[i]);
        end(p, s->gpus[i].identity.sm_count);
    }
    metrics_family(p, "reachd_gpu_memory_bytes", METRICS_GAUGE, "Memory of a GPU.");
    for (uint32_t i = 0; i < s->gpu_count; i++) {
        begin(p, "reachd_gpu_memory_bytes", &s->gpus[i]);
        end(p, (double)s->gpus[i].identity.memory_bytes);
    }
}

static void states(const struct metrics_page *p, const struct snapshot *s)
{
    metrics_family(p, "reachd_gpu_state", METRICS_GAUGE, "1 for the state that a GPU is in.");
    for (uint32_t i = 0; i < s->gpu_count; i++) {
        for (int state = GPU_STATE_UNKNOWN; state <= GPU_STATE_STALE; state++) {
            begin(p, "reachd_gpu_state", &s->gpus[i]);
            also(p, "state", gpu_state_name((enum gpu_state)state));
            end(p, s->gpus[i].state == (enum gpu_state)state);
        }
    }
}

/* ---- their fingerprints ---- */

/* The next GPU with a fingerprint, from `*i` on; NULL behind the last. */
static const struct snapshot_gpu *next(const struct snapshot *s, uint32_t *i)
{
    while (*i < s->gpu_count && !s->gpus[*i].has_fingerprint)
        (*i)++;
    return *i < s->gpu_count ? &s->gpus[(*i)++] : NULL;
}

static void infos(const struct metrics_page *p, const struct snapshot *s)
{
    const struct snapshot_gpu *gpu;
    char map[FINGERPRINT_MAP_HASH_BYTES];

    metrics_family(p, "reachd_gpu_fingerprint_info", METRICS_GAUGE,
                   "What a fingerprint says beside numbers; an empty label is not known.");
    for (uint32_t i = 0; (gpu = next(s, &i));) {
        const struct fingerprint *const fp = &gpu->fingerprint;
        begin(p, "reachd_gpu_fingerprint_info", gpu);
        also(p, "model", fp->gpu.name);
        also(p, "signature", fp->topology.disabled.signature);
        also(p, "map", fingerprint_map_hash(&fp->topology.partition, map));
        also(p, "origin", origin_name(fp->gpu.origin));
        also(p, "driver", fp->gpu.driver_version);
        also(p, "depth", depth_name(fp->depth));
        end(p, 1);
    }
}

static void conditions(const struct metrics_page *p, const struct snapshot *s)
{
    const struct snapshot_gpu *gpu;

    metrics_family(p, "reachd_gpu_fingerprint_timestamp_seconds", METRICS_GAUGE,
                   "When the fingerprint that is served was taken, since 1970.");
    for (uint32_t i = 0; (gpu = next(s, &i));) {
        begin(p, "reachd_gpu_fingerprint_timestamp_seconds", gpu);
        end(p, (double)gpu->fingerprint.taken_at);
    }
    metrics_family(p, "reachd_gpu_fingerprint_duration_seconds", METRICS_GAUGE,
                   "How long its measurement took.");
    for (uint32_t i = 0; (gpu = next(s, &i));) {
        begin(p, "reachd_gpu_fingerprint_duration_seconds", gpu);
        end(p, (double)gpu->fingerprint.duration_ms / KILO);
    }
    metrics_family(p, "reachd_gpu_fingerprint_stale", METRICS_GAUGE,
                   "1: the fingerprint that is served is known to be of before a change.");
    for (uint32_t i = 0; (gpu = next(s, &i));) {
        begin(p, "reachd_gpu_fingerprint_stale", gpu);
        end(p, gpu->fingerprint_stale);
    }
    metrics_family(p, "reachd_gpu_fingerprint_verdict", METRICS_GAUGE,
                   "1 for the verdict on its measurement: had something else a hand in it?");
    for (uint32_t i = 0; (gpu = next(s, &i));) {
        for (int v = VERDICT_CLEAN; v <= VERDICT_UNUSABLE; v++) {
            begin(p, "reachd_gpu_fingerprint_verdict", gpu);
            also(p, "verdict", verdict_name((enum verdict)v));
            end(p, gpu->fingerprint.conditions.verdict == (enum verdict)v);
        }
    }
}

static void counts(const struct metrics_page *p, const struct snapshot *s)
{
    const struct snapshot_gpu *gpu;

    metrics_family(p, "reachd_gpu_groups", METRICS_GAUGE,
                   "SM groups: SMs that share a TLB. None where they are not known.");
    for (uint32_t i = 0; (gpu = next(s, &i));) {
        if (gpu->fingerprint.topology.partition.group_count > 0) {
            begin(p, "reachd_gpu_groups", gpu);
            end(p, gpu->fingerprint.topology.partition.group_count);
        }
    }
    metrics_family(p, "reachd_gpu_tlb_levels", METRICS_GAUGE, "TLB levels that were seen.");
    for (uint32_t i = 0; (gpu = next(s, &i));) {
        begin(p, "reachd_gpu_tlb_levels", gpu);
        end(p, gpu->fingerprint.level_count);
    }
}

static void numbers(const struct metrics_page *p, const struct snapshot *s)
{
    for (size_t k = 0; k < sizeof(of_fingerprint) / sizeof(of_fingerprint[0]); k++) {
        const struct gauge *const g = &of_fingerprint[k];
        const struct snapshot_gpu *gpu;
        metrics_family(p, g->name, METRICS_GAUGE, g->help);
        for (uint32_t i = 0; (gpu = next(s, &i));) {
            const double value = value_of(g, &gpu->fingerprint);
            if (isnan(value))
                continue;
            begin(p, g->name, gpu);
            end(p, value);
        }
    }
}

static void level_numbers(const struct metrics_page *p, const struct gauge *g,
                          const struct snapshot_gpu *gpu)
{
    for (uint32_t l = 0; l < gpu->fingerprint.level_count; l++) {
        const struct tlb_level *const level = &gpu->fingerprint.levels[l];
        const double value = value_of(g, level);
        if (isnan(value))
            continue;
        begin(p, g->name, gpu);
        fprintf(p->out, ",level=\"%u\"", level->level);
        end(p, value);
    }
}

static void levels(const struct metrics_page *p, const struct snapshot *s)
{
    for (size_t k = 0; k < sizeof(of_level) / sizeof(of_level[0]); k++) {
        const struct snapshot_gpu *gpu;
        metrics_family(p, of_level[k].name, METRICS_GAUGE, of_level[k].help);
        for (uint32_t i = 0; (gpu = next(s, &i));)
            level_numbers(p, &of_level[k], gpu);
    }
}

void metrics_gpu(const struct metrics_page *p, const struct snapshot *s)
{
    identities(p, s);
    states(p, s);
    infos(p, s);
    conditions(p, s);
    counts(p, s);
    numbers(p, s);
    levels(p, s);
}
