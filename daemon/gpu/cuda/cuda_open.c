/* cuda_open.c: loads the device code, allocates its scratch memory, and reads the properties of the
 * device (cuda_probe.h). */
#include "gpu/cuda/cuda_cache.h"
#include "gpu/cuda/cuda_probe.h"

#include "kernels/abi.h"

enum { CLUSTER_CODE = 90 }; /* first architecture on which device code can use clusters */

extern const unsigned char reach_fatbin_start[];
extern const unsigned char reach_fatbin_end[];

/* Finds the SM ids: one block runs on each SM. Writes the position of every SM. */
static enum status run_census(struct cuda_probe *p, struct err *err)
{
    struct reach_census_args args = {.grid = cuda_launch_grid(p),
                                     .seen = p->scratch + CUDA_AT_TABLE};
    uint32_t seen[REACH_MAX_SMS] = {0};
    uint32_t positions[REACH_MAX_SMS] = {0};
    uint32_t n = 0;
    enum status s = cuda_launch_put(p, seen, sizeof seen, err);
    if (s == STATUS_OK)
        s = cuda_launch(p, KERNEL_CENSUS, CUDA_WARP, &args, err);
    if (s == STATUS_OK)
        s = cuda_launch_read(p, CUDA_AT_TABLE, seen, sizeof seen, err);
    if (s != STATUS_OK)
        return s;
    for (uint32_t id = 0; id < REACH_MAX_SMS; id++) {
        if (seen[id] == 0)
            continue;
        positions[id] = n;
        p->sm_ids[n++] = (uint16_t)id;
    }
    if (n != p->sm_count)
        return err_set(err, STATUS_GPU_BUSY,
                       "%u blocks of one SM each ran on %u SMs; another process may limit the SMs",
                       p->sm_count, n);
    return CUDA_CALL(p->api, err, cuMemcpyHtoD, p->scratch + CUDA_AT_POSITIONS, positions,
                     sizeof positions);
}

/* Chooses the shared memory of a block: more than half of an SM's, so that no second block fits. */
static enum status choose_shared(const struct cuda_api *api, cu_device device,
                                 struct cuda_probe *out, struct err *err)
{
    int per_sm = 0;
    int per_block = 0;
    enum status s = CUDA_CALL(api, err, cuDeviceGetAttribute, &per_sm,
                              CU_DEVICE_ATTRIBUTE_SHARED_MEMORY_PER_MULTIPROCESSOR, device);
    if (s == STATUS_OK)
        s = CUDA_CALL(api, err, cuDeviceGetAttribute, &per_block,
                      CU_DEVICE_ATTRIBUTE_SHARED_MEMORY_PER_BLOCK_OPTIN, device);
    if (s != STATUS_OK)
        return s;
    out->sm_shared_bytes = (unsigned)per_sm;
    out->shared_block_bytes = (unsigned)per_block;
    out->shared_bytes = (unsigned)per_sm / 2 + 1024;
    if (per_block < (int)out->shared_bytes ||
        out->shared_bytes < REACH_CHASE_MAX_SAMPLES * sizeof(uint32_t))
        return err_set(err, STATUS_NOT_SUPPORTED,
                       "a block may have %d of an SM's %d bytes of shared memory; a probe needs "
                       "more than half to keep one block on each SM",
                       per_block, per_sm);
    return STATUS_OK;
}

static enum status load_kernels(struct cuda_probe *p, struct err *err)
{
    const struct cuda_api *api = p->api;
    enum status s;

    if (&reach_fatbin_start[0] == &reach_fatbin_end[0])
        return err_set(err, STATUS_NOT_SUPPORTED,
                       "this build has no device code: built without nvcc");
    s = CUDA_CALL(api, err, cuModuleLoadData, &p->module, reach_fatbin_start);
    if (s != STATUS_OK) {
        p->module = NULL;
        return s;
    }
    for (int k = 0; k < CUDA_KERNELS && s == STATUS_OK; k++) {
        s = cuda_api_check(api,
                           api->cuModuleGetFunction(&p->kernels[k], p->module,
                                                    cuda_launch_name((enum cuda_kernel)k)),
                           cuda_launch_name((enum cuda_kernel)k), err);
        if (s == STATUS_OK)
            s = CUDA_CALL(api, err, cuFuncSetAttribute, p->kernels[k],
                          CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                          (int)(k == KERNEL_CACHE ? cuda_cache_most_shared(p) : p->shared_bytes));
    }
    return s;
}

/* Returns the number of SMs of the largest cluster. Returns 0 if the driver, the chip or the device
 * code has no clusters. */
static unsigned largest_cluster(const struct cuda_probe *p, cu_device device)
{
    const struct cuda_api *api = p->api;
    cu_function f = p->kernels[KERNEL_PEER];
    unsigned sms = PROBE_MAX_CLUSTER;
    int has_clusters = 0;
    int code = 0;

    if (!api->cuLaunchKernelEx || !api->cuOccupancyMaxActiveClusters || !api->cuFuncGetAttribute ||
        api->cuDeviceGetAttribute(&has_clusters, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, device) !=
            CU_SUCCESS ||
        !has_clusters ||
        api->cuFuncGetAttribute(&code, CU_FUNC_ATTRIBUTE_PTX_VERSION, f) != CU_SUCCESS ||
        code < CLUSTER_CODE)
        return 0;
    /* Clusters of more than eight blocks must be requested; if the driver refuses, eight is the
     * maximum. */
    (void)api->cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
    while (sms > 1 && cuda_launch_clusters(p, sms) == 0)
        sms--;
    return sms > 1 ? sms : 0;
}

enum status cuda_probe_open(const struct cuda_api *api, cu_device device, nsec_t deadline_ns,
                            struct cuda_probe *out, struct err *err)
{
    struct cuda_probe p = {.api = api, .deadline_ns = deadline_ns};
    int sms = 0;
    enum status s = CUDA_CALL(api, err, cuDeviceGetAttribute, &sms,
                              CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
    if (s == STATUS_OK && (sms < 1 || sms > REACH_MAX_SMS))
        s = err_set(err, STATUS_NOT_SUPPORTED, "the GPU has %d SMs; at most %d are supported", sms,
                    REACH_MAX_SMS);
    if (s != STATUS_OK)
        goto out;
    p.sm_count = (uint32_t)sms;
    s = choose_shared(api, device, &p, err);
    if (s == STATUS_OK)
        s = load_kernels(&p, err);
    if (s != STATUS_OK)
        goto out;
    s = CUDA_CALL(api, err, cuStreamCreate, &p.stream, 0);
    if (s != STATUS_OK) {
        p.stream = NULL;
        goto out;
    }
    s = CUDA_CALL(api, err, cuMemAlloc, &p.scratch, CUDA_SCRATCH_BYTES);
    if (s != STATUS_OK) {
        p.scratch = 0;
        goto out;
    }
    s = run_census(&p, err);
    if (s == STATUS_OK)
        p.cluster_sms = largest_cluster(&p, device);
out:
    if (s != STATUS_OK)
        cuda_probe_close(&p);
    *out = p;
    return s;
}

void cuda_probe_close(struct cuda_probe *probe)
{
    if (probe->scratch)
        probe->api->cuMemFree(probe->scratch);
    if (probe->stream)
        probe->api->cuStreamDestroy(probe->stream);
    if (probe->module)
        probe->api->cuModuleUnload(probe->module);
    *probe = (struct cuda_probe){.api = probe->api};
}
