/* cuda_launch.c: see cuda_launch.h. */
#include "gpu/cuda/cuda_launch.h"

#include "kernels/abi.h"

#include <sched.h>
#include <time.h>

#define KERNEL_NAME(kernel, name) #name,
static const char *const kernel_names[CUDA_KERNELS] = {CUDA_KERNEL_LIST(KERNEL_NAME)};

const char *cuda_launch_name(enum cuda_kernel kernel)
{
    return kernel_names[kernel];
}

struct reach_grid cuda_launch_grid(const struct cuda_probe *p)
{
    return (struct reach_grid){
        .arrived = p->scratch + CUDA_AT_ARRIVED,
        .gave_up = p->scratch + CUDA_AT_GAVE_UP,
        .away = p->scratch + CUDA_AT_AWAY,
        .positions = p->scratch + CUDA_AT_POSITIONS,
        .limit_ns = p->deadline_ns,
        .blocks = p->sm_count,
        .sm_slots = REACH_MAX_SMS,
    };
}

/* Polls the stream, because a blocking call could block indefinitely. Probes take milliseconds.
 * Polls without a pause for the first two milliseconds and then sleeps between polls. */
static enum status wait_stream(const struct cuda_probe *p, const char *name, struct err *err)
{
    const nsec_t start = clock_monotonic();
    for (;;) {
        const cu_result r = p->api->cuStreamQuery(p->stream);
        const nsec_t waited = clock_monotonic() - start;
        if (r != CU_ERROR_NOT_READY)
            return cuda_api_check(p->api, r, name, err);
        if (waited > p->deadline_ns + NSEC_PER_SEC)
            return err_set(err, STATUS_DEADLINE, "%s did not end within %llu ms", name,
                           (unsigned long long)(waited / NSEC_PER_MSEC));
        if (waited < 2 * NSEC_PER_MSEC)
            sched_yield();
        else
            nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    }
}

static struct cu_launch_config config_of(const struct cuda_probe *p, struct cuda_shape shape,
                                         struct cu_launch_attribute *attribute)
{
    *attribute = (struct cu_launch_attribute){.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                              .cluster = {shape.cluster_sms, 1, 1}};
    return (struct cu_launch_config){.grid = {shape.blocks, 1, 1},
                                     .block = {shape.threads, 1, 1},
                                     .shared_bytes = shape.shared_bytes,
                                     .stream = p->stream,
                                     .attributes = attribute,
                                     .attribute_count = 1};
}

enum status cuda_launch_shape(const struct cuda_probe *p, enum cuda_kernel kernel,
                              struct cuda_shape shape, void *args, struct err *err)
{
    const struct cuda_api *api = p->api;
    const char *name = kernel_names[kernel];
    void *parameters[] = {args};
    struct cu_launch_attribute attribute;
    const struct cu_launch_config config = config_of(p, shape, &attribute);
    uint32_t gave_up = 0;
    cu_result r;
    enum status s = CUDA_CALL(api, err, cuMemsetD8, p->scratch, 0, CUDA_AT_POSITIONS);
    if (s != STATUS_OK)
        return s;
    if (shape.cluster_sms > 0)
        r = api->cuLaunchKernelEx(&config, p->kernels[kernel], parameters, NULL);
    else
        r = api->cuLaunchKernel(p->kernels[kernel], shape.blocks, 1, 1, shape.threads, 1, 1,
                                shape.shared_bytes, p->stream, parameters, NULL);
    s = cuda_api_check(api, r, name, err);
    if (s != STATUS_OK)
        return s;
    s = wait_stream(p, name, err);
    if (s != STATUS_OK)
        return s;
    s = CUDA_CALL(api, err, cuMemcpyDtoH, &gave_up, p->scratch + CUDA_AT_GAVE_UP, sizeof gave_up);
    if (s == STATUS_OK && gave_up)
        return err_set(err, STATUS_DEADLINE, "%s: the blocks did not meet within %llu ms", name,
                       (unsigned long long)(p->deadline_ns / NSEC_PER_MSEC));
    return s;
}

enum status cuda_launch(const struct cuda_probe *p, enum cuda_kernel kernel, unsigned threads,
                        void *args, struct err *err)
{
    return cuda_launch_shape(p, kernel,
                             (struct cuda_shape){.threads = threads,
                                                 .blocks = p->sm_count,
                                                 .shared_bytes = p->shared_bytes},
                             args, err);
}

enum status cuda_launch_put(const struct cuda_probe *p, const void *table, size_t bytes,
                            struct err *err)
{
    return CUDA_CALL(p->api, err, cuMemcpyHtoD, p->scratch + CUDA_AT_TABLE, table, bytes);
}

enum status cuda_launch_read(const struct cuda_probe *p, uint32_t at, void *out, size_t bytes,
                             struct err *err)
{
    return CUDA_CALL(p->api, err, cuMemcpyDtoH, out, p->scratch + at, bytes);
}

unsigned cuda_launch_clusters(const struct cuda_probe *p, unsigned cluster_sms)
{
    const struct cuda_shape shape = {REACH_PEER_THREADS, cluster_sms, cluster_sms, p->shared_bytes};
    struct cu_launch_attribute attribute;
    const struct cu_launch_config config = config_of(p, shape, &attribute);
    int clusters = 0;

    if (p->api->cuOccupancyMaxActiveClusters(&clusters, p->kernels[KERNEL_PEER], &config) !=
        CU_SUCCESS)
        return 0;
    return clusters > 0 ? (unsigned)clusters : 0;
}
