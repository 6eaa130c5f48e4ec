/* cuda_list.c: lists the GPUs of the node.
 *
 * Each GPU and each MIG instance is identified in a separate process, to which the driver shows no
 * other GPU (CUDA_VISIBLE_DEVICES). So a GPU that is slow, hangs or fails does not disturb the
 * others, and the order in which CUDA numbers devices does not matter. The driver shows at most one
 * MIG instance to a process anyway. All processes run at once, up to a deadline. They are started
 * before this process calls the driver.
 *
 * The names come from CUDA_VISIBLE_DEVICES if it is set, else from NVML. Without NVML the names are
 * the numbers of the devices. One more process counts the devices.
 *
 * MPS can divide a GPU into MLOPart devices. NVML lists the GPU, and CUDA lists its devices, which
 * have the PCI address of the GPU and UUIDs of their own. If CUDA does not list a GPU that NVML
 * lists, all devices are therefore asked by number too.
 */
#include "gpu/cuda/cuda_list.h"

#include "base/clock.h"
#include "base/log.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define VISIBLE_DEVICES "CUDA_VISIBLE_DEVICES"

/* The calls for one GPU take microseconds. The start of a driver that no process has open takes
 * seconds. On some nodes the start takes seconds for each GPU in turn. */
enum { IDENTIFY_MS = 20000 };
enum { FIRST_FD = 3, UUID_CHARS = 40 };

/* A device that may belong to the node, and the process that identifies it. */
struct candidate {
    /* Entry of CUDA_VISIBLE_DEVICES: a UUID, the beginning of a UUID, or a number. */
    char name[sizeof(((struct gpu_identity *)NULL)->uuid)];
    struct gpu_listed gpu; /* at first the report of NVML, later the answer of the process */
    bool divided;          /* divided into MIG instances, so CUDA cannot identify it */
    pid_t pid;
    int fd; /* pipe of the answer; -1 if the process has ended */
};

struct candidates {
    uint32_t count;
    struct candidate items[REACH_MAX_GPUS];
};

/* Writes the answer of a process that identifies a device. It runs in that process. */
typedef enum status ask_fn(const struct gpu_options *options, const char *name,
                           struct gpu_listed *out, struct err *err);

static void print_uuid(const struct cu_uuid *uuid, bool mig, char *out, size_t out_size)
{
    const unsigned char *b = uuid->bytes;
    snprintf(out, out_size,
             "%s-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             mig ? "MIG" : "GPU", b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10],
             b[11], b[12], b[13], b[14], b[15]);
}

enum status cuda_identify_uuid(const struct cuda_api *api, cu_device device,
                               struct gpu_identity *out, struct err *err)
{
    struct cu_uuid uuid;
    struct cu_uuid instance;
    enum status s = CUDA_CALL(api, err, cuDeviceGetUuid, &uuid, device);
    if (s != STATUS_OK)
        return s;
    if (!api->cuDeviceGetUuid_v2 || api->cuDeviceGetUuid_v2(&instance, device) != CU_SUCCESS)
        instance = uuid;
    out->mig = memcmp(&uuid, &instance, sizeof uuid) != 0;
    print_uuid(&instance, out->mig, out->uuid, sizeof out->uuid);
    return STATUS_OK;
}

static enum status identify_attributes(const struct cuda_api *api, cu_device device,
                                       struct gpu_identity *out, struct err *err)
{
    static const int attributes[] = {
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
        CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE};
    int values[sizeof attributes / sizeof attributes[0]] = {0};
    enum status s = STATUS_OK;

    for (size_t i = 0; s == STATUS_OK && i < sizeof attributes / sizeof attributes[0]; i++)
        s = CUDA_CALL(api, err, cuDeviceGetAttribute, &values[i], attributes[i], device);
    out->compute_major = (uint32_t)values[0];
    out->compute_minor = (uint32_t)values[1];
    out->sm_count = (uint32_t)values[2];
    out->l2_cache_bytes = (uint64_t)values[3];
    return s;
}

enum status cuda_identify(const struct cuda_api *api, struct nvml *nvml, cu_device device,
                          struct gpu_identity *out, struct err *err)
{
    size_t bytes = 0;
    enum status s;

    memset(out, 0, sizeof *out);
    out->origin = api->is_stand_in ? ORIGIN_SIMULATED : ORIGIN_MEASURED;
    s = cuda_identify_uuid(api, device, out, err);
    if (s == STATUS_OK)
        s = identify_attributes(api, device, out, err);
    if (s == STATUS_OK)
        s = CUDA_CALL(api, err, cuDeviceGetName, out->name, sizeof out->name, device);
    if (s == STATUS_OK)
        s = CUDA_CALL(api, err, cuDeviceTotalMem, &bytes, device);
    if (s == STATUS_OK)
        s = CUDA_CALL(api, err, cuDeviceGetPCIBusId, out->pci_bus_id, sizeof out->pci_bus_id,
                      device);
    if (s != STATUS_OK)
        return s;
    out->name[sizeof out->name - 1] = '\0';
    out->memory_bytes = bytes;
    snprintf(out->cuda_version, sizeof out->cuda_version, "%d.%d", api->driver_version / 1000,
             api->driver_version % 1000 / 10);
    nvml_identify(nvml, out);
    if (out->driver_version[0] == '\0')
        snprintf(out->driver_version, sizeof out->driver_version, "CUDA %s", out->cuda_version);
    return STATUS_OK;
}

/* ---- the processes ---- */

void cuda_show_alone(const char *uuid)
{
    (void)setenv(VISIBLE_DEVICES, uuid, 1);
}

void cuda_show_instance(const char *uuid)
{
    if (strncmp(uuid, "MIG-", 4) == 0 && !getenv(VISIBLE_DEVICES))
        cuda_show_alone(uuid);
}

/* Returns whether the device is the GPU of this name. */
static bool is_named(const struct gpu_identity *id, const char *name)
{
    const bool is_number = isdigit((unsigned char)name[0]);

    return is_number || strlen(name) < 4 ||
           strncasecmp(id->uuid + 4, name + 4, strlen(name) - 4) == 0;
}

/* Reports the device called `name`. The driver shows no other device, unless the driver was called
 * before. */
static enum status find_named(const struct cuda_api *api, const char *name, cu_device *out,
                              struct err *err)
{
    const bool is_number = isdigit((unsigned char)name[0]);
    int count = 0;
    enum status s = CUDA_CALL(api, err, cuDeviceGetCount, &count);
    int i = count == 1 || !is_number ? 0 : (int)strtol(name, NULL, 10);

    for (; s == STATUS_OK && i < count; i++) {
        struct gpu_identity id = {.uuid = ""};
        s = CUDA_CALL(api, err, cuDeviceGet, out, i);
        if (s == STATUS_OK && count > 1 && !is_number)
            s = cuda_identify_uuid(api, *out, &id, err);
        if (s != STATUS_OK || count == 1 || is_named(&id, name))
            return s;
    }
    return s != STATUS_OK ? s : err_set(err, STATUS_NO_DRIVER, "the driver does not list the GPU");
}

static enum status ask_identity(const struct gpu_options *options, const char *name,
                                struct gpu_listed *out, struct err *err)
{
    struct gpu_identity id = {.uuid = ""};
    struct cuda_api api;
    struct nvml *nvml = NULL;
    cu_device device = 0;
    enum status s = cuda_api_open(options->libcuda, &api, err);

    if (s != STATUS_OK)
        return s;
    nvml = nvml_open();
    s = find_named(&api, name, &device, err);
    if (s == STATUS_OK)
        s = cuda_identify(&api, nvml, device, &id, err);
    if (s == STATUS_OK && !is_named(&id, name))
        s = err_set(err, STATUS_NO_DRIVER, "the driver does not list the GPU");
    if (s == STATUS_OK || !out->identity.uuid[0])
        out->identity = id;
    out->identity.origin = id.origin;
    out->minor = nvml_minor(nvml);
    nvml_close(nvml);
    cuda_api_close(&api);
    return s;
}

/* Reports the number of devices in `sm_count`, which has no other use here. */
static enum status ask_count(const struct gpu_options *options, const char *name,
                             struct gpu_listed *out, struct err *err)
{
    struct cuda_api api;
    int count = 0;
    enum status s = cuda_api_open(options->libcuda, &api, err);

    (void)name;
    if (s != STATUS_OK)
        return s;
    s = CUDA_CALL(&api, err, cuDeviceGetCount, &count);
    if (s == STATUS_OK && count == 0)
        s = err_set(err, STATUS_NO_DRIVER, "the driver shows no device");
    out->identity.sm_count = (uint32_t)count;
    cuda_api_close(&api);
    return s;
}

/* Writes the answer and ends the process. The process also ends if the worker ends. */
static _Noreturn void answer_and_exit(const struct gpu_options *options, ask_fn *ask,
                                      struct candidate *c, int fd)
{
    sigset_t none;

    if (fd > FIRST_FD)
        (void)close_range(FIRST_FD, (unsigned)fd - 1, 0); /* closes the worker's connection */
    (void)close_range((unsigned)fd + 1, ~0U, 0);
    sigemptyset(&none);
    (void)signal(SIGTERM, SIG_DFL);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (c->name[0])
        cuda_show_alone(c->name);
    c->gpu.error.status = ask(options, c->name, &c->gpu, &c->gpu.error);
    _exit(write(fd, &c->gpu, sizeof c->gpu) == (ssize_t)sizeof c->gpu ? 0 : 1);
}

/* ---- the parent of the processes ---- */

static bool start(const struct gpu_options *options, ask_fn *ask, struct candidate *c)
{
    int ends[2];

    c->fd = -1;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    c->pid = fork(); /* a worker has one thread */
    if (c->pid == 0)
        answer_and_exit(options, ask, c, ends[1]);
    close(ends[1]);
    c->fd = ends[0];
    if (c->pid > 0)
        return true;
    close(c->fd);
    c->fd = -1;
    return false;
}

/* Ends the process of a candidate. Waits for its end if it has answered. */
static void finish(struct candidate *c, bool answered)
{
    close(c->fd);
    c->fd = -1;
    if (!answered)
        (void)kill(c->pid, SIGTERM);
    while (waitpid(c->pid, NULL, answered ? 0 : WNOHANG) < 0 && errno == EINTR) {
    }
}

/* Reads the answer, or finds that the process has ended. The answer is one write of less than a
 * page. */
static void receive(struct candidate *c)
{
    struct gpu_listed answer;
    ssize_t n;

    do {
        n = read(c->fd, &answer, sizeof answer);
    } while (n < 0 && errno == EINTR);
    finish(c, true);
    if (n == (ssize_t)sizeof answer)
        c->gpu = answer;
    else
        err_set(&c->gpu.error, STATUS_GPU_FAULT, "the process that identifies the GPU crashed");
}

/* Queries all candidates at once. `answered` is called for each candidate that answers in time. */
static void ask_all(const struct gpu_options *options, ask_fn *ask, struct candidates *all,
                    void (*answered)(void *self, struct candidate *c), void *self)
{
    const uint32_t most_ms = options->identify_ms ? options->identify_ms : IDENTIFY_MS;
    const nsec_t end = clock_monotonic() + most_ms * NSEC_PER_MSEC;
    struct pollfd fds[REACH_MAX_GPUS];
    uint32_t left = 0;

    for (uint32_t i = 0; i < all->count; i++) {
        struct candidate *const c = &all->items[i];
        c->fd = -1;
        if (!c->divided && start(options, ask, c))
            left++;
        else if (!c->divided)
            err_set(&c->gpu.error, STATUS_NO_MEMORY,
                    "cannot start a process to identify the GPU: %s", strerror(errno));
    }
    while (left > 0) {
        const nsec_t now = clock_monotonic();
        for (uint32_t i = 0; i < all->count; i++)
            fds[i] = (struct pollfd){.fd = all->items[i].fd, .events = POLLIN};
        if (now >= end ||
            (poll(fds, all->count, (int)((end - now) / NSEC_PER_MSEC) + 1) < 0 && errno != EINTR))
            break;
        for (uint32_t i = 0; i < all->count; i++) {
            if (fds[i].fd < 0 || !fds[i].revents)
                continue;
            receive(&all->items[i]);
            left--;
            if (answered)
                answered(self, &all->items[i]);
        }
    }
    for (uint32_t i = 0; i < all->count; i++) {
        struct candidate *const c = &all->items[i];
        if (c->fd < 0)
            continue;
        finish(c, false);
        err_set(&c->gpu.error, STATUS_GPU_HUNG, "the driver did not identify the GPU within %u ms",
                most_ms);
    }
}

/* ---- names ---- */

/* Makes a candidate of each entry of CUDA_VISIBLE_DEVICES. */
static enum status names_of_variable(const char *list, struct candidates *out, struct err *err)
{
    out->count = 0;
    if (!*list || strcmp(list, "-1") == 0)
        return err_set(err, STATUS_NO_DRIVER,
                       VISIBLE_DEVICES " is \"%s\", which hides every GPU from reachd", list);
    while (*list && out->count < REACH_MAX_GPUS) {
        struct candidate *const c = &out->items[out->count++];
        const size_t n = strcspn(list, ",");

        *c = (struct candidate){.fd = -1};
        (void)snprintf(c->name, sizeof c->name, "%.*s", (int)n, list);
        list += n + (list[n] == ',');
    }
    return STATUS_OK;
}

static void names_of_nvml(struct candidates *out)
{
    struct gpu_identity gpus[REACH_MAX_GPUS];
    struct nvml *const nvml = nvml_open();
    const uint32_t count = nvml_list(nvml, gpus, REACH_MAX_GPUS);

    nvml_close(nvml);
    if (count == REACH_MAX_GPUS)
        log_warning("only %d GPUs and MIG instances are served", REACH_MAX_GPUS);
    out->count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct candidate *const c = &out->items[i];
        *c = (struct candidate){.gpu.identity = gpus[i], .fd = -1};
        memcpy(c->name, gpus[i].uuid, sizeof c->name);
        c->divided = gpus[i].mig && gpus[i].name[0] != '\0';
    }
}

/* Makes a candidate of each device that the driver shows; its name is its number. */
static enum status names_by_number(const struct gpu_options *options, struct candidates *out,
                                   struct err *err)
{
    out->count = 1;
    out->items[0] = (struct candidate){.fd = -1};
    ask_all(options, ask_count, out, NULL, NULL);

    const struct gpu_listed first = out->items[0].gpu;
    const uint32_t count = first.identity.sm_count;

    out->count = 0;
    if (first.error.status != STATUS_OK)
        return err_set(err, first.error.status, "%s", first.error.text);
    for (uint32_t i = 0; i < count && i < REACH_MAX_GPUS; i++) {
        out->items[i] = (struct candidate){.fd = -1};
        (void)snprintf(out->items[i].name, sizeof out->items[i].name, "%u", i);
        out->count++;
    }
    return STATUS_OK;
}

/* ---- the list ---- */

struct listing {
    gpu_found_fn *found;
    void *self;
    const struct candidates *reported; /* candidates that are not reported again; may be NULL */
};

static bool is_reported(const struct candidates *all, const struct candidate *c)
{
    for (uint32_t i = 0; all && i < all->count; i++)
        if (all->items[i].gpu.error.status == STATUS_OK && !all->items[i].divided &&
            strcmp(all->items[i].gpu.identity.uuid, c->gpu.identity.uuid) == 0)
            return true;
    return false;
}

static void report_good(void *self, struct candidate *c)
{
    const struct listing *const l = self;

    if (c->gpu.error.status == STATUS_OK && !is_reported(l->reported, c))
        l->found(l->self, &c->gpu);
}

/* Returns whether the driver does not list the candidate. */
static bool is_unlisted(const struct candidate *c)
{
    return !c->divided && c->gpu.error.status == STATUS_NO_DRIVER;
}

/* Marks the GPUs that MLOPart divides: CUDA does not list them, but lists devices at their address.
 */
static void mark_divided(struct candidates *all, const struct candidates *numbered)
{
    for (uint32_t i = 0; i < all->count; i++) {
        struct candidate *const c = &all->items[i];
        for (uint32_t k = 0; is_unlisted(c) && k < numbered->count; k++) {
            const struct candidate *const part = &numbered->items[k];
            if (part->gpu.error.status != STATUS_OK || !part->gpu.identity.mlopart ||
                !identity_is_same_address(&part->gpu.identity, &c->gpu.identity))
                continue;
            c->divided = true;
            c->gpu.error = (struct err){.status = STATUS_OK};
            c->gpu.identity.mlopart = true;
            c->gpu.identity.sm_count = 0;
            c->gpu.identity.origin = part->gpu.identity.origin;
        }
    }
}

/* Returns whether no candidate found a working driver. */
static bool all_without_driver(const struct candidates *all)
{
    bool any = false;

    for (uint32_t i = 0; i < all->count; i++) {
        const enum status s = all->items[i].gpu.error.status;
        any = any || !all->items[i].divided;
        if (!all->items[i].divided && s != STATUS_NO_DRIVER && s != STATUS_DRIVER_TOO_OLD)
            return false;
    }
    return any;
}

static bool any_unlisted(const struct candidates *all)
{
    for (uint32_t i = 0; i < all->count; i++)
        if (is_unlisted(&all->items[i]))
            return true;
    return false;
}

/* Reports the GPUs that are divided, and those that the driver did not identify. An entry of
 * CUDA_VISIBLE_DEVICES that names no GPU is skipped. */
static void report_others(struct candidates *all, bool by_variable, const struct listing *l)
{
    for (uint32_t i = 0; i < all->count; i++) {
        struct candidate *const c = &all->items[i];
        struct gpu_identity *const id = &c->gpu.identity;
        if (!id->uuid[0] && strlen(c->name) == UUID_CHARS)
            memcpy(id->uuid, c->name, sizeof id->uuid);
        if (!id->uuid[0] && c->gpu.error.status != STATUS_OK)
            err_prefix(&c->gpu.error, "device %s", c->name);
        if (!id->name[0])
            (void)snprintf(id->name, sizeof id->name, "unknown");
        if (by_variable && c->gpu.error.status == STATUS_NO_DRIVER)
            log_warning("\"%s\" in " VISIBLE_DEVICES " names no GPU", c->name);
        else if (c->divided || c->gpu.error.status != STATUS_OK)
            l->found(l->self, &c->gpu);
    }
}

/* Asks the devices by number. If CUDA lists none of the GPUs of `all`, those that are not divided
 * are removed, and the devices take their place. */
static enum status list_by_number(const struct gpu_options *options, struct candidates *all,
                                  const struct listing *l, struct err *err)
{
    const bool alone = all->count == 0 || all_without_driver(all);
    struct listing others = *l;
    struct candidates *const numbered = calloc(1, sizeof *numbered);
    uint32_t kept = 0;
    enum status s;

    if (!numbered)
        return err_no_memory(err, "a list of GPUs");
    others.reported = all;
    s = names_by_number(options, numbered, err);
    if (s != STATUS_OK)
        goto out;
    ask_all(options, ask_identity, numbered, report_good, &others);
    mark_divided(all, numbered);
    for (uint32_t i = 0; alone && i < all->count; i++)
        if (all->items[i].divided)
            all->items[kept++] = all->items[i];
    if (alone) {
        all->count = kept;
        report_others(numbered, false, l);
    }
out:
    free(numbered);
    return alone ? s : STATUS_OK;
}

enum status cuda_list(const struct gpu_options *options, gpu_found_fn *found, void *self,
                      struct err *err)
{
    struct listing l = {.found = found, .self = self};
    const char *const visible = getenv(VISIBLE_DEVICES);
    struct candidates *const all = calloc(1, sizeof *all);
    enum status s = STATUS_OK;

    if (!all)
        return err_no_memory(err, "a list of GPUs");
    if (visible)
        s = names_of_variable(visible, all, err);
    else
        names_of_nvml(all);
    if (s == STATUS_OK)
        ask_all(options, ask_identity, all, report_good, &l);
    if (s == STATUS_OK && !visible && (all->count == 0 || any_unlisted(all))) {
        s = list_by_number(options, all, &l, err);
    } else if (s == STATUS_OK && all_without_driver(all)) {
        s = err_set(err, all->items[0].gpu.error.status, "%s, with " VISIBLE_DEVICES "=%s",
                    all->items[0].gpu.error.text, visible);
    }
    if (s == STATUS_OK)
        report_others(all, visible != NULL, &l);
    free(all);
    return s;
}
