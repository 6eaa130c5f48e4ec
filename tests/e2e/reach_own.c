/* reach_own.c: makes the first steps of a job in a container.
 *
 *     reach_own URI BYTES
 *
 * It lists the visible GPUs and gets the answers of the reachd at URI about them. It prints one
 * line of JSON for each device of the CUDA driver, in the driver's order. The line contains the
 * number of the device in this process and the UUID that libreach makes of its 16 bytes. It also
 * contains the GPU and the fingerprint of the answer for that UUID, and the number of that GPU in
 * the daemon's list. At the end are the GPU of the answer for the number of the device, and the
 * verdict of libreach on that answer. */
#include "clients/c/reach.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int cu_init(unsigned flags);
typedef int cu_count(int *count);
typedef int cu_get(int *device, int ordinal);
typedef int cu_uuid(unsigned char *bytes, int device);

static struct {
    cu_init *init;
    cu_count *count;
    cu_get *get;
    cu_uuid *uuid;
} driver;

static void *must_find(void *library, const char *name)
{
    void *const found = library ? dlsym(library, name) : NULL;

    if (!found) {
        fprintf(stderr, "reach_own: %s\n", dlerror());
        exit(1);
    }
    return found;
}

static void open_driver(void)
{
    void *const library = dlopen("libcuda.so.1", RTLD_NOW);

    *(void **)&driver.init = must_find(library, "cuInit");
    *(void **)&driver.count = must_find(library, "cuDeviceGetCount");
    *(void **)&driver.get = must_find(library, "cuDeviceGet");
    *(void **)&driver.uuid = must_find(library, "cuDeviceGetUuid_v2");
}

static struct reach_answer *ask(struct reach *reach, const char *gpu, uint64_t bytes)
{
    const struct reach_placement_request request = {.size = sizeof(request), .bytes = bytes};
    struct reach_answer *answer = NULL;
    struct reach_error error;

    if (reach_get_placement(reach, gpu, &request, &answer, &error) != REACH_OK)
        fprintf(stderr, "reach_own: GPU %s: %s\n", gpu, error.text);
    return answer;
}

/* Returns the place of a GPU in the list of the daemon, or -1 if it is not there. */
static int number_of(struct reach *reach, const char *uuid)
{
    struct reach_answer *gpus = NULL;
    int number = -1;

    if (reach_get_gpus(reach, &gpus, NULL) == REACH_OK) {
        for (uint32_t i = 0; i < reach_answer_gpu_count(gpus); i++) {
            if (strcmp(reach_answer_gpu(gpus, i)->uuid, uuid) == 0)
                number = (int)reach_answer_gpu(gpus, i)->index;
        }
    }
    reach_answer_free(gpus);
    return number;
}

static bool try_device(struct reach *reach, int ordinal, uint64_t bytes)
{
    struct reach_answer *own = NULL;
    struct reach_answer *other = NULL;
    char uuid[REACH_UUID_BYTES];
    char number[16];
    unsigned char raw[16];
    bool good = false;
    int device;

    if (driver.get(&device, ordinal) != 0 || driver.uuid(raw, device) != 0)
        return false;
    reach_uuid_text(raw, false, uuid);
    snprintf(number, sizeof(number), "%d", ordinal);
    own = ask(reach, uuid, bytes);
    if (own && reach_answer_check_gpu(own, uuid, NULL) == REACH_OK) {
        const struct reach_provenance *const p = reach_answer_provenance(own);
        other = ask(reach, number, bytes);
        printf("{\"device\": %d, \"uuid\": \"%s\", \"answer\": \"%s\", \"fingerprint\": \"%s\", "
               "\"of_daemon\": %d, \"by_number\": \"%s\", \"check\": \"%s\"}\n",
               ordinal, uuid, p->gpu_uuid, p->fingerprint_id, number_of(reach, p->gpu_uuid),
               other ? reach_answer_provenance(other)->gpu_uuid : "",
               reach_status_name(reach_answer_check_gpu(other, uuid, NULL)));
        good = true;
    }
    reach_answer_free(own);
    reach_answer_free(other);
    return good;
}

int main(int argc, char **argv)
{
    struct reach_error error;
    struct reach *reach;
    int count = 0;
    bool good = true;

    if (argc != 3)
        return fprintf(stderr, "usage: reach_own URI BYTES\n"), 2;
    open_driver();
    if (reach_open(argv[1], &reach, &error) != REACH_OK)
        return fprintf(stderr, "reach_own: %s\n", error.text), 1;
    good = reach_set_timeout_ms(reach, 600000, NULL) == REACH_OK && driver.init(0) == 0 &&
           driver.count(&count) == 0;
    for (int i = 0; good && i < count; i++)
        good = try_device(reach, i, strtoull(argv[2], NULL, 10));
    reach_close(reach);
    return good ? 0 : 1;
}
