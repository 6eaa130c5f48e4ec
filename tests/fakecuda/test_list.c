/* test_list.c: the list of GPUs if some of them fail or hang. NVML is missing, so the name of each
 * GPU is its number. */
#include "tests/fakecuda/backend.h"

/* a limit far longer than a healthy GPU takes on a slow machine */
enum { IDENTIFY_MS = 3000, GPUS = 4 };

struct found {
    struct gpu_listed gpus[GPUS];
    uint32_t count;
};

static void add(void *self, const struct gpu_listed *gpu)
{
    struct found *const f = self;

    assert_true(f->count < GPUS);
    f->gpus[f->count++] = *gpu;
}

/* Returns whether one of the reported failures has this error and this device number. */
static bool has_error(const struct found *f, enum status status, const char *begins,
                      const char *says)
{
    for (uint32_t i = 0; i < f->count; i++) {
        const struct err *const e = &f->gpus[i].error;
        if (e->status == status && strncmp(e->text, begins, strlen(begins)) == 0 &&
            strstr(e->text, says))
            return true;
    }
    return false;
}

/* One GPU is healthy, one fails, one needs a minute for all calls, and one never answers. The
 * healthy GPU is reported before the time limit of the driver ends. Each of the other GPUs is
 * reported with its reason. */
static void a_bad_gpu_delays_no_other(void **state)
{
    struct gpu_options options = real();
    struct found f = {.count = 0};
    struct err err = {0};

    (void)state;
    options.identify_ms = IDENTIFY_MS;
    begin(SMALL "|" SMALL "|" SMALL "|" SMALL
                "|fail=cuDeviceTotalMem/1=999|hang=*/2=5000|hang=*/3");
    assert_int_equal(gpu_find(&options, add, &f, &err), STATUS_OK);
    assert_int_equal(f.count, GPUS);
    assert_int_equal(f.gpus[0].error.status, STATUS_OK);
    assert_int_equal(f.gpus[0].identity.sm_count, 6);
    assert_true(has_error(&f, STATUS_GPU_FAULT, "", "cuDeviceTotalMem"));
    assert_true(has_error(&f, STATUS_GPU_HUNG, "device 2: ", "within 3000 ms"));
    assert_true(has_error(&f, STATUS_GPU_HUNG, "device 3: ", "within 3000 ms"));
}

/* Returns the list of the healthy GPUs, or the reason if there is none. */
static void a_list_has_those_that_are_well(void **state)
{
    struct gpu_options options = real();
    struct gpu_identity id[GPUS];
    struct err err = {0};
    uint32_t n = 0;

    (void)state;
    begin(SMALL "|" SMALL "|fail=cuDeviceGetName/0=999|crash=cuDeviceTotalMem/1");
    assert_int_equal(gpu_list(&options, id, GPUS, &n, &err), STATUS_GPU_FAULT);
    begin(SMALL "|" SMALL "|crash=cuDeviceTotalMem/1");
    assert_int_equal(gpu_list(&options, id, GPUS, &n, &err), STATUS_OK);
    assert_int_equal(n, 1);
    assert_string_equal(id[0].pci_bus_id, "0000:01:00.0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bad_gpu_delays_no_other),
        cmocka_unit_test(a_list_has_those_that_are_well),
    };
    return cmocka_run_group_tests(tests, driver_load, driver_unload);
}
