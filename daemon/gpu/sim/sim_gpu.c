/* sim_gpu.c: the simulated source: GPUs that are described by a text and answer the same probes as
 * real ones. All its results carry the origin "simulated". See gpu/gpu.h for the contract,
 * sim_desc.h for the text, and sim_profiles.h for the GPUs that have a name. This file has the
 * identity and the limits of a GPU. Its parts are sim_machine (the probes), sim_read (throughput)
 * and sim_mmu (translation). */
#include "gpu/gpu.h"

#include "base/hash.h"
#include "base/units.h"
#include "gpu/sim/sim_machine.h"
#include "gpu/sim/sim_profiles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_MEMORY_LIMIT (GIB + GIB / 10)
#define BACKING_BYTES        (512 * MIB)
#define DEFAULT_GRANULE      (2 * MIB)
enum { HOST_SHARE = 4 }; /* host memory is divided by this, like on a real GPU */

struct sim_gpu {
    struct gpu base;
    struct sim_desc desc;
    struct gpu_identity identity;
    struct gpu_limits limits;
    struct sim_machine *machine;
    /* The machine of another kind of memory. There is one at a time, like on a real GPU. */
    struct sim_machine *memory;
    struct probe_spec memory_spec; /* the probe for which `memory` was made */
    uint64_t memory_bytes;
};

static const char default_driver[] = "simulated";

void sim_gpu_identity(const struct sim_desc *desc, uint32_t twin, struct gpu_identity *out)
{
    const uint64_t a = hash_bytes(desc->text_hash, &twin, sizeof twin);
    const uint64_t b = hash_bytes(a, &desc->text_hash, sizeof desc->text_hash);

    memset(out, 0, sizeof *out);
    (void)snprintf(out->uuid, sizeof out->uuid, "SIM-%08x-%04x-%04x-%04x-%012llx",
                   (unsigned)(a >> 32), (unsigned)(a >> 16) & 0xffff, (unsigned)a & 0xffff,
                   (unsigned)(b >> 48), (unsigned long long)(b & 0xffffffffffff));
    if (desc->uuid[0] && twin == 0)
        (void)snprintf(out->uuid, sizeof out->uuid, "%s", desc->uuid);
    (void)snprintf(out->serial, sizeof out->serial, "%.31s", desc->serial);
    (void)snprintf(out->name, sizeof out->name, "%s (simulated)",
                   desc->name[0] ? desc->name : "GPU");
    (void)snprintf(out->driver_version, sizeof out->driver_version, "%.31s",
                   desc->driver[0] ? desc->driver : default_driver);
    out->compute_major = desc->cc_major;
    out->compute_minor = desc->cc_minor;
    out->sm_count = desc->sm_count;
    out->memory_bytes = desc->memory_bytes;
    out->l2_cache_bytes = desc->l2_cache_bytes;
    out->origin = ORIGIN_SIMULATED;
}

/* Returns the number of the first `n` texts that describe the same GPU, and would give it the same
 * UUID. */
static uint32_t count_twins(const char *const *texts, uint32_t n, const struct sim_desc *desc)
{
    struct gpu_identity id;
    uint32_t twins = 0;
    sim_gpu_identity(desc, 0, &id);
    for (uint32_t i = 0; i < n; i++) {
        struct sim_desc other;
        struct gpu_identity other_id;
        if (sim_profiles_parse(texts[i], &other, NULL) != STATUS_OK)
            continue;
        sim_gpu_identity(&other, 0, &other_id);
        twins += strcmp(other_id.uuid, id.uuid) == 0;
    }
    return twins;
}

/* Reports the `n`th GPU of the options, and its identity. */
static enum status describe_nth(const struct gpu_options *options, uint32_t n,
                                struct sim_desc *desc, struct gpu_identity *id, struct err *err)
{
    if (n == REACH_MAX_GPUS)
        return err_set(err, STATUS_INVALID_ARGUMENT, "more than %d simulated GPUs", REACH_MAX_GPUS);
    enum status s = sim_profiles_parse(options->simulated[n], desc, err);
    if (s == STATUS_OK)
        sim_gpu_identity(desc, count_twins(options->simulated, n, desc), id);
    return s;
}

static enum status sim_list(const struct gpu_options *options, gpu_found_fn *found, void *self,
                            struct err *err)
{
    const char *const *texts = options->simulated;
    struct gpu_listed gpus[REACH_MAX_GPUS] = {{.error = {.status = STATUS_OK}}};
    struct gpu_identity id;
    struct sim_desc desc;
    uint32_t count = 0;
    for (; texts && texts[count]; count++) {
        enum status s = describe_nth(options, count, &desc, &id, err);
        if (s != STATUS_OK)
            return s;
        gpus[count].identity = id;
        gpus[count].minor = KNOWN_U32(count);
    }
    for (uint32_t i = 0; i < count; i++)
        found(self, &gpus[i]);
    return STATUS_OK;
}

static struct maybe_u32 known_if_given(uint32_t number)
{
    return number > 0 ? KNOWN_U32(number) : UNKNOWN_U32(REASON_NOT_MEASURED);
}

/* Simulated memory costs nothing, but the limits of a real GPU apply here too. */
static void set_limits(struct sim_gpu *gpu, const struct gpu_options *options)
{
    const struct sim_desc *d = &gpu->desc;
    uint64_t most =
        options->memory_limit_bytes ? options->memory_limit_bytes : DEFAULT_MEMORY_LIMIT;
    most = most < d->memory_bytes ? most : d->memory_bytes;
    uint64_t granule = d->granule_bytes ? d->granule_bytes : DEFAULT_GRANULE;
    uint64_t backing = most;
    uint64_t range = sim_desc_range(d);
    if (options->no_vmm)
        range = backing = most / granule * granule;
    else if (backing > BACKING_BYTES)
        backing = BACKING_BYTES;
    gpu->limits = (struct gpu_limits){
        .arena = ARENA_SIMULATED,
        .range_bytes = range,
        .backing_bytes = backing,
        .granule_bytes = granule,
        .device_memory_bytes = backing,
        .free_bytes = d->memory_bytes,
        .sm_count = d->sm_count,
        .host_memory_bytes = d->host_memory_bytes / HOST_SHARE,
        .host_total_bytes = d->host_memory_bytes,
        .memory_ms = options->memory_ms,
        .peer_count = d->kinds[MEMORY_PEER].gbps > 0,
        .host_nodes = ((uint64_t)1 << d->host_nodes) - 1,
        .shared_sm_bytes = d->shared.sm_bytes,
        .shared_block_bytes = d->shared.block_bytes,
        .cluster_sms = d->clusters.largest,
        .locality_domains = known_if_given(d->domains),
        .locality_domain_sms = known_if_given(d->domain_sms),
        .pcie_generation = known_if_given(d->pcie_generation),
        .pcie_lanes_supported = known_if_given(d->pcie_lanes),
        .pcie_lanes = known_if_given(sim_desc_lanes(d)),
    };
    if (options->host_memory_bytes && options->host_memory_bytes < gpu->limits.host_memory_bytes)
        gpu->limits.host_memory_bytes = options->host_memory_bytes;
}

static void sim_close(struct gpu *take)
{
    struct sim_gpu *gpu = (struct sim_gpu *)take;
    sim_machine_free(gpu->memory);
    sim_machine_free(gpu->machine);
    free(gpu);
}

enum status sim_gpu_new(const struct sim_desc *desc, const struct gpu_identity *identity,
                        const struct gpu_options *options, struct gpu **out, struct err *err)
{
    struct sim_gpu *gpu;
    if (options->idle_only && desc->neighbor_loads > 0)
        return err_set(err, STATUS_GPU_BUSY, "the GPU is in use by a simulated neighbor");
    gpu = calloc(1, sizeof *gpu);
    if (!gpu)
        return err_no_memory(err, "a simulated GPU");
    gpu->base.ops = &sim_gpu_ops;
    gpu->desc = *desc;
    gpu->identity = *identity;
    set_limits(gpu, options);
    gpu->machine = sim_machine_new(&gpu->desc);
    if (!gpu->machine) {
        sim_close(&gpu->base);
        return err_no_memory(err, "the MMU of a simulated GPU");
    }
    *out = &gpu->base;
    return STATUS_OK;
}

/* Opens the GPU with this UUID. */
static enum status sim_open(const struct gpu_options *options, const char *uuid, struct gpu **out,
                            struct err *err)
{
    const char *const *texts = options->simulated;
    struct gpu_identity id;
    struct sim_desc desc;
    for (uint32_t n = 0; texts && texts[n]; n++) {
        enum status s = describe_nth(options, n, &desc, &id, err);
        if (s == STATUS_OK && strcmp(id.uuid, uuid) == 0)
            s = sim_gpu_new(&desc, &id, options, out, err);
        else if (s == STATUS_OK)
            continue;
        return s;
    }
    return err_set(err, STATUS_NOT_FOUND, "there is no simulated GPU with UUID %.64s", uuid);
}

static void sim_describe(const struct gpu *gpu, struct gpu_identity *identity,
                         struct gpu_limits *limits)
{
    const struct sim_gpu *sim = (const struct sim_gpu *)gpu;
    if (identity)
        *identity = sim->identity;
    if (limits)
        *limits = sim->limits;
}

static struct maybe_u32 clock_of(const struct sim_gpu *gpu)
{
    const double khz = gpu->desc.clock_khz * sim_machine_clock_factor(gpu->machine);
    return gpu->desc.clock_khz ? KNOWN_U32((uint32_t)khz) : UNKNOWN_U32(REASON_NOT_REPORTED);
}

/* Reports the machine that answers a probe, and makes it if needed. The machine is NULL if there is
 * no such memory; `out` then has the reason. */
static enum status use_memory(struct sim_gpu *sim, const struct probe_spec *spec,
                              struct sim_machine **out_machine, struct probe_conditions *out,
                              struct err *err)
{
    const struct sim_kind *const kind = &sim->desc.kinds[spec->memory];
    const bool aliased = spec->memory == MEMORY_HOST_VIRTUAL || spec->memory == MEMORY_PEER;
    const uint64_t need = probe_range_bytes(spec, sim->desc.sm_count);
    struct sim_desc desc;

    *out_machine = sim->machine;
    if (spec->memory == MEMORY_DEVICE)
        return STATUS_OK;
    *out_machine = NULL;
    if (spec->memory == MEMORY_PEER) {
        snprintf(out->peer_uuid, sizeof out->peer_uuid, "SIM-PEER-%u", spec->peer);
        out->peer_memory_bytes = KNOWN_U64(sim->desc.memory_bytes);
    }
    if (spec->node > sim->desc.host_nodes)
        out->memory_bytes = UNKNOWN_U64(REASON_NOT_PERMITTED);
    else if (!(kind->gbps > 0))
        out->memory_bytes = UNKNOWN_U64(kind->refused ? kind->refused : REASON_NOT_SUPPORTED);
    else if (memory_kind_is_host(spec->memory) && !aliased && need > sim->limits.host_memory_bytes)
        out->memory_bytes = UNKNOWN_U64(REASON_NO_HOST_MEMORY);
    else
        out->memory_bytes = KNOWN_U64(need);
    if (!IS_KNOWN(out->memory_bytes))
        return STATUS_OK;
    if (!sim->memory || !probe_same_memory(&sim->memory_spec, spec) || need > sim->memory_bytes) {
        sim_machine_free(sim->memory);
        sim_kind_desc(&sim->desc, spec->memory, spec->node, need, &desc);
        sim->memory = sim_machine_new(&desc);
        sim->memory_spec = *spec;
        sim->memory_bytes = need;
    }
    out->memory_bytes = KNOWN_U64(sim->memory_bytes);
    *out_machine = sim->memory;
    return sim->memory ? STATUS_OK : err_no_memory(err, "another MMU");
}

static enum status sim_run(struct gpu *gpu, const struct probe_spec *spec, struct probe_result *out,
                           struct err *err)
{
    struct sim_gpu *sim = (struct sim_gpu *)gpu;
    const struct sim_desc *d = &sim->desc;
    nsec_t start = clock_monotonic();
    probe_conditions_init(&sim->limits, &out->conditions);
    out->conditions.sm_clock_before_khz = clock_of(sim);
    out->conditions.started_at = clock_wall_seconds();
    if (d->neighbor_loads > 0)
        out->conditions.other_processes = KNOWN_U32(1);
    out->sm_count = d->sm_count;
    memcpy(out->sm_ids, d->sm_ids, sizeof out->sm_ids);
    struct sim_machine *machine = NULL;
    enum status s = use_memory(sim, spec, &machine, &out->conditions, err);
    if (s != STATUS_OK || !machine)
        return s;
    out->value_count = probe_value_count(spec, d->sm_count);
    out->values = calloc(out->value_count, sizeof *out->values);
    if (!out->values)
        return err_no_memory(err, "%zu values", out->value_count);
    s = sim_machine_run(machine, spec, 0, out->values, err);
    if (spec->kind == PROBE_CHASE || spec->kind == PROBE_ROUND || spec->kind == PROBE_PAIRS)
        out->conditions.interruptions = KNOWN_U32(sim_machine_interruptions(machine));
    out->conditions.duration_ns = clock_monotonic() - start;
    out->conditions.sm_clock_khz = clock_of(sim);
    out->conditions.pcie_generation = known_if_given(sim_desc_generation(d));
    return s;
}

const struct gpu_ops sim_gpu_ops = {
    .name = "simulated",
    .list = sim_list,
    .open = sim_open,
    .describe = sim_describe,
    .run = sim_run,
    .close = sim_close,
};
