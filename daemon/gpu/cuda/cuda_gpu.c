/* cuda_gpu.c: the cuda source: a real device through libcuda.so.1. It opens the device's primary
 * context in this (worker) process, allocates the arena, runs probes and releases everything. It
 * never resets a device and never changes clocks or modes.
 *
 * Its parts are cuda_api (the driver's symbols), cuda_list (the list of GPUs), nvml (the management
 * library), cuda_arena (the memory that probes touch) and cuda_probe (launches).
 */
#include "gpu/gpu.h"

#include "base/units.h"
#include "gpu/cuda/cuda_api.h"
#include "gpu/cuda/cuda_arena.h"
#include "gpu/cuda/cuda_list.h"
#include "gpu/cuda/cuda_probe.h"
#include "gpu/cuda/host_memory.h"
#include "gpu/cuda/host_nodes.h"
#include "gpu/cuda/nvml.h"

#include <stdlib.h>
#include <string.h>

/* The virtual range is twice as long as the memory. A group's reach can be as long as the memory,
 * and a sharing round thrashes with more pages than it primes. */
enum { RANGE_FACTOR = 2, DEFAULT_DEADLINE_MS = 30000 };
#define DEFAULT_MEMORY_LIMIT_BYTES (1126 * MIB)
/* The memory of a context before any probe: about 500 MiB on today's chips. */
#define CONTEXT_BYTES (512 * MIB)

struct cuda_gpu {
    struct gpu base; /* the first member (gpu.h) */
    struct cuda_api api;
    struct nvml *nvml;
    cu_device device;
    cu_context context;
    struct cuda_arena arena;
    struct cuda_memory memory;
    struct cuda_probe probe;
    struct gpu_identity identity;
    bool unified; /* true if the memory of the device is also memory of the host */
    struct gpu_limits limits;
    struct maybe_u32 other_processes; /* number when the GPU was opened */
    struct maybe_u32 concurrent_processes;
    struct maybe_u32 busy_percent_before; /* read before the first kernel of this process */
    struct maybe_u32 pcie_generation;     /* highest generation of the link so far */
};

static struct cuda_gpu *cuda_of(struct gpu *gpu)
{
    return (struct cuda_gpu *)gpu;
}

static enum status find_device(struct cuda_gpu *g, const char *uuid, struct err *err)
{
    int count = 0;
    enum status s = CUDA_CALL(&g->api, err, cuDeviceGetCount, &count);
    for (int i = 0; i < count && s == STATUS_OK; i++) {
        struct gpu_identity id = {.uuid = ""};
        s = CUDA_CALL(&g->api, err, cuDeviceGet, &g->device, i);
        if (s == STATUS_OK)
            s = cuda_identify_uuid(&g->api, g->device, &id, err);
        if (s == STATUS_OK && strcasecmp(id.uuid, uuid) == 0)
            return cuda_identify(&g->api, g->nvml, g->device, &g->identity, err);
    }
    return s != STATUS_OK ? s : err_set(err, STATUS_NOT_FOUND, "the driver shows no GPU %s", uuid);
}

/* Explains why a context cannot be created. If the memory is too small for a context, the driver
 * may report "unknown error". */
static enum status explain_no_context(const struct cuda_gpu *g, enum status failure,
                                      struct err *err)
{
    const struct maybe_u64 free_bytes = nvml_free_bytes(g->nvml);
    if (!IS_KNOWN(free_bytes) || (failure == STATUS_GPU_FAULT && free_bytes.v >= CONTEXT_BYTES))
        return failure;
    return err_set(err, STATUS_GPU_NO_MEMORY,
                   "cannot create a CUDA context: %llu MiB of device memory are free; a context "
                   "needs several hundred MiB, and a measurement %llu MiB more",
                   (unsigned long long)(free_bytes.v / MIB),
                   (unsigned long long)((CUDA_ARENA_LEAST_BYTES + CUDA_SCRATCH_BYTES) / MIB));
}

/* Checks for gpu_options.idle_only. A process list may lack the processes of other containers, so
 * the share of time with kernels counts too. */
static enum status check_idle(struct cuda_gpu *g, struct err *err)
{
    const struct maybe_u32 processes = nvml_processes(g->nvml);
    const struct maybe_u32 busy = nvml_busy_percent(g->nvml);
    int mode = 0;
    enum status s = CUDA_CALL(&g->api, err, cuDeviceGetAttribute, &mode,
                              CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, g->device);

    if (s != STATUS_OK)
        return s;
    if (!IS_KNOWN(processes))
        return err_set(err, STATUS_NOT_SUPPORTED, "NVML does not report whether the GPU is in use");
    if (processes.v > 0)
        return err_set(err, STATUS_GPU_BUSY, "the GPU is in use by %u processes", processes.v);
    if (IS_KNOWN(busy) && busy.v > 0)
        return err_set(err, STATUS_GPU_BUSY, "the GPU was busy for %u %% of the last second",
                       busy.v);
    return mode == CU_COMPUTEMODE_EXCLUSIVE_PROCESS
               ? err_set(err, STATUS_GPU_BUSY,
                         "the GPU is in compute mode \"exclusive process\", and a check would "
                         "exclude a job")
               : STATUS_OK;
}

static enum status make_context(struct cuda_gpu *g, struct err *err)
{
    int mode = 0;
    enum status s = CUDA_CALL(&g->api, err, cuDeviceGetAttribute, &mode,
                              CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, g->device);
    if (s == STATUS_OK && mode == CU_COMPUTEMODE_PROHIBITED)
        s = err_set(err, STATUS_GPU_BUSY, "the GPU is in compute mode \"prohibited\"");
    if (s != STATUS_OK)
        return s;
    s = CUDA_CALL(&g->api, err, cuDevicePrimaryCtxRetain, &g->context, g->device);
    if (s != STATUS_OK) {
        g->context = NULL;
        return s == STATUS_GPU_FAULT || s == STATUS_GPU_NO_MEMORY ? explain_no_context(g, s, err)
                                                                  : s;
    }
    return CUDA_CALL(&g->api, err, cuCtxSetCurrent, g->context);
}

static void cuda_close(struct gpu *take)
{
    struct cuda_gpu *g = cuda_of(take);
    if (g->api.library) {
        if (g->probe.api)
            cuda_probe_close(&g->probe);
        if (g->memory.api)
            cuda_memory_close(&g->memory);
        if (g->arena.api)
            cuda_arena_close(&g->arena);
        if (g->context)
            g->api.cuDevicePrimaryCtxRelease(g->device);
        nvml_close(g->nvml);
        cuda_api_close(&g->api);
    }
    free(g);
}

static bool is_unified(const struct cuda_gpu *g)
{
    static const int attributes[] = {
        CU_DEVICE_ATTRIBUTE_INTEGRATED,
        CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES};
    int value = 0;

    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++)
        if (g->api.cuDeviceGetAttribute(&value, attributes[i], g->device) == CU_SUCCESS && value)
            return true;
    return false;
}

/* Finds the free memory that probes may use. If the memory is also memory of the host, the limit of
 * host memory applies, and the driver may not report the free memory. */
static enum status find_free_bytes(const struct cuda_gpu *g, uint64_t *out, struct err *err)
{
    const struct maybe_u64 by_nvml = nvml_free_bytes(g->nvml);
    const uint64_t most = g->unified ? host_memory_share() : UINT64_MAX;
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    enum status s = CUDA_CALL(&g->api, err, cuMemGetInfo, &free_bytes, &total_bytes);

    if (s == STATUS_NOT_SUPPORTED && (g->unified || IS_KNOWN(by_nvml))) {
        free_bytes = IS_KNOWN(by_nvml) ? by_nvml.v : g->identity.memory_bytes;
        s = STATUS_OK;
    }
    *out = free_bytes < most ? free_bytes : most;
    return s;
}

/* Sets the limits of the memory that probes of other kinds of memory may take, and lists the other
 * devices. */
static enum status prepare_memory(struct cuda_gpu *g, const struct gpu_options *options,
                                  uint64_t limit_bytes, uint64_t free_bytes, struct err *err)
{
    const uint64_t held = cuda_arena_device_bytes(&g->arena) + CUDA_SCRATCH_BYTES;
    struct cuda_memory *const m = &g->memory;
    int count = 0;
    enum status s = CUDA_CALL(&g->api, err, cuDeviceGetCount, &count);

    *m = (struct cuda_memory){.api = &g->api,
                              .vmm = g->arena.kind == ARENA_ALIAS,
                              .device = g->device,
                              .unified = g->unified,
                              .state = options->state,
                              .host_limit_bytes = options->host_memory_bytes};
    if (options->memory_limit_bytes)
        m->managed_bytes = limit_bytes > held ? limit_bytes - held : 0;
    else
        m->managed_bytes = free_bytes > held ? (free_bytes - held) / 4 * 3 : 0;
    for (int i = 0; s == STATUS_OK && i < count && m->peer_count < REACH_MAX_GPUS; i++) {
        s = CUDA_CALL(&g->api, err, cuDeviceGet, &m->peers[m->peer_count], i);
        m->peer_count += m->peers[m->peer_count] != g->device;
    }
    return s;
}

/* Asks for an attribute that earlier drivers do not have. They return CU_ERROR_INVALID_VALUE. */
static struct maybe_u32 ask_recent_attribute(const struct cuda_gpu *g, int attribute)
{
    int value = 0;
    const cu_result r = g->api.cuDeviceGetAttribute(&value, attribute, g->device);

    if (r == CU_ERROR_INVALID_VALUE || r == CU_ERROR_NOT_SUPPORTED)
        return UNKNOWN_U32(REASON_NOT_SUPPORTED);
    return r == CU_SUCCESS && value > 0 ? KNOWN_U32((uint32_t)value)
                                        : UNKNOWN_U32(REASON_NOT_REPORTED);
}

/* Sets the limits, which do not change while the GPU is open. */
static void set_limits(struct cuda_gpu *g, const struct gpu_options *options, uint64_t free_bytes)
{
    g->limits = (struct gpu_limits){
        .arena = g->arena.kind,
        .range_bytes = g->arena.range_bytes,
        .backing_bytes = g->arena.plain ? g->arena.range_bytes : g->arena.bulk.handle_bytes,
        .granule_bytes = g->arena.granule_bytes,
        .device_memory_bytes = cuda_arena_device_bytes(&g->arena) + CUDA_SCRATCH_BYTES,
        .free_bytes = free_bytes,
        .sm_count = g->probe.sm_count,
        .host_memory_bytes = cuda_memory_host_bytes(&g->memory),
        .host_total_bytes = host_memory_total(),
        .memory_ms = options->memory_ms,
        .peer_count = g->memory.peer_count,
        .host_nodes = host_nodes_list(),
        .shared_sm_bytes = g->probe.sm_shared_bytes,
        .shared_block_bytes = g->probe.shared_block_bytes,
        .cluster_sms = g->probe.cluster_sms,
        .pcie_generation = nvml_pcie_generation(g->nvml),
        .pcie_lanes_supported = nvml_pcie_lanes_supported(g->nvml),
        .pcie_lanes = nvml_pcie_lanes(g->nvml),
        .locality_domains = ask_recent_attribute(g, CU_DEVICE_ATTRIBUTE_LOCALITY_DOMAIN_COUNT),
        .locality_domain_sms =
            ask_recent_attribute(g, CU_DEVICE_ATTRIBUTE_LOCALITY_DOMAIN_MULTIPROCESSOR_COUNT),
    };
}

/* Returns the number of other processes whose kernels may run at the same time as kernels of this
 * process. There are such processes only under MPS. Drivers before CUDA 12.4 do not report whether
 * this process is a client. */
static struct maybe_u32 count_concurrent(const struct cuda_gpu *g)
{
    int is_client = 0;
    const struct maybe_u32 clients = nvml_other_mps_clients(g->nvml);
    if (g->api.cuDeviceGetAttribute(&is_client, CU_DEVICE_ATTRIBUTE_MPS_ENABLED, g->device))
        return UNKNOWN_U32(REASON_NOT_REPORTED);
    if (!is_client)
        return KNOWN_U32(0);
    return IS_KNOWN(clients) ? clients : g->other_processes;
}

static enum status cuda_open(const struct gpu_options *options, const char *uuid, struct gpu **out,
                             struct err *err)
{
    const uint64_t limit =
        options->memory_limit_bytes ? options->memory_limit_bytes : DEFAULT_MEMORY_LIMIT_BYTES;
    const uint32_t deadline_ms = options->deadline_ms ? options->deadline_ms : DEFAULT_DEADLINE_MS;
    struct cuda_gpu *g = calloc(1, sizeof *g);
    uint64_t free_bytes = 0;
    enum status s;

    if (!g)
        return err_no_memory(err, "a GPU");
    g->base.ops = &cuda_gpu_ops;
    if (options->alone)
        cuda_show_alone(uuid);
    else
        cuda_show_instance(uuid);
    s = cuda_api_open(options->libcuda, &g->api, err);
    if (s != STATUS_OK)
        goto out;
    g->nvml = nvml_open();
    s = find_device(g, uuid, err);
    if (s == STATUS_OK && options->idle_only)
        s = check_idle(g, err);
    if (s == STATUS_OK)
        s = make_context(g, err);
    if (s != STATUS_OK)
        goto out;
    g->unified = is_unified(g);
    s = find_free_bytes(g, &free_bytes, err);
    if (s != STATUS_OK)
        goto out;
    g->other_processes = nvml_other_processes(g->nvml);
    g->concurrent_processes = count_concurrent(g);
    g->busy_percent_before = nvml_busy_percent(g->nvml);
    nvml_watch(g->nvml);
    s = cuda_probe_open(&g->api, g->device, deadline_ms * NSEC_PER_MSEC, &g->probe, err);
    if (s == STATUS_OK)
        s = cuda_arena_open(
            &g->api, g->device, limit > CUDA_SCRATCH_BYTES ? limit - CUDA_SCRATCH_BYTES : 0,
            free_bytes, g->identity.memory_bytes * RANGE_FACTOR, options->no_vmm, &g->arena, err);
    if (s == STATUS_OK)
        s = prepare_memory(g, options, limit, free_bytes, err);
    if (s == STATUS_OK)
        set_limits(g, options, free_bytes);
out:
    if (s != STATUS_OK) {
        cuda_close(&g->base);
        return s;
    }
    *out = &g->base;
    return STATUS_OK;
}

static void cuda_describe(const struct gpu *gpu, struct gpu_identity *identity,
                          struct gpu_limits *limits)
{
    const struct cuda_gpu *g = (const struct cuda_gpu *)gpu;
    if (identity)
        *identity = g->identity;
    if (limits)
        *limits = g->limits;
}

/* Records the GPU that owns the memory of a probe, and the size of that GPU's memory. */
static enum status note_peer(struct cuda_gpu *g, cu_device device, struct probe_conditions *out,
                             struct err *err)
{
    struct gpu_identity peer = {.uuid = ""};
    size_t bytes = 0;
    enum status s = cuda_identify_uuid(&g->api, device, &peer, err);

    if (s == STATUS_OK)
        s = CUDA_CALL(&g->api, err, cuDeviceTotalMem, &bytes, device);
    memcpy(out->peer_uuid, peer.uuid, sizeof out->peer_uuid);
    out->peer_memory_bytes = KNOWN_U64(bytes);
    return s;
}

/* Makes the range of a probe of other memory. Records the range, or the reason if there is no
 * range. */
static enum status use_memory(struct cuda_gpu *g, const struct probe_spec *spec,
                              struct probe_result *out, struct err *err)
{
    enum reason reason;
    enum status s = cuda_memory_use(&g->memory, spec, &reason, err);

    if (s != STATUS_OK || spec->memory == MEMORY_DEVICE)
        return s;
    out->conditions.memory_bytes =
        reason == REASON_NONE ? KNOWN_U64(g->memory.range.bytes) : UNKNOWN_U64(reason);
    if (spec->memory == MEMORY_PEER)
        s = note_peer(g, g->memory.peers[spec->peer], &out->conditions, err);
    cuda_probe_name_sms(&g->probe, out);
    return s;
}

/* Reads the generation of the link, until it is the highest that the link supports. */
static struct maybe_u32 read_link(struct cuda_gpu *g)
{
    const struct maybe_u32 best = g->limits.pcie_generation;

    if (!IS_KNOWN(g->pcie_generation) || !IS_KNOWN(best) || g->pcie_generation.v < best.v)
        maybe_u32_raise(&g->pcie_generation, nvml_pcie_generation_used(g->nvml));
    return g->pcie_generation;
}

static enum status cuda_run(struct gpu *gpu, const struct probe_spec *spec,
                            struct probe_result *out, struct err *err)
{
    struct cuda_gpu *g = cuda_of(gpu);
    const nsec_t start = clock_monotonic();
    const nsec_t mapping_ns = g->arena.spent_ns;
    nsec_t ended;
    enum status s;

    probe_conditions_init(&g->limits, &out->conditions);
    out->conditions.started_at = clock_wall_seconds();
    out->conditions.other_processes = g->other_processes;
    out->conditions.concurrent_processes = g->concurrent_processes;
    out->conditions.busy_percent_before = g->busy_percent_before;
    out->conditions.sm_clock_before_khz = nvml_sm_clock_khz(g->nvml);
    ended = clock_monotonic();
    s = use_memory(g, spec, out, err);
    out->time.memory_ns = clock_monotonic() - ended;
    if (s == STATUS_OK && !probe_is_absent(spec, out))
        s = spec->kind == PROBE_WORKING_SET_READ
                ? cuda_working_set_read(&g->probe, &g->arena, spec, out, err)
                : cuda_probe_run(&g->probe, &g->arena, &g->memory, spec, out, err);
    if (s != STATUS_OK)
        return s;
    ended = clock_monotonic();
    out->conditions.duration_ns = ended - start;
    nvml_read_conditions(g->nvml, &out->conditions);
    out->conditions.pcie_generation = read_link(g);
    out->time.memory_ns += g->arena.spent_ns - mapping_ns;
    out->time.query_ns = clock_monotonic() - ended;
    return STATUS_OK;
}

const struct gpu_ops cuda_gpu_ops = {
    .name = "cuda",
    .list = cuda_list,
    .open = cuda_open,
    .describe = cuda_describe,
    .run = cuda_run,
    .close = cuda_close,
};
