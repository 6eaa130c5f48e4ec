/* test_diagnose.c: reach_diagnose over the stand-in driver. The tests check the name of each kind
 * of memory, and the reach, entries and contiguity that follow from the times of the model. They
 * also check free memory, and that a failing driver call leaves no resource held and no value
 * guessed. */
#include "base/units.h"
#include "clients/cuda/alloc/alloc_driver.h"
#include "clients/cuda/reach_diagnose.h"
#include "tests/comma_locale.h"
#include "tests/fakecuda/driver_library.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define REACH         (4 * GIB)
#define CONTIGUOUS_NS 0.313
#define SCATTERED_NS  0.585
#define FRAME         (32 * MIB)
#define BEYOND_HOST   "/2@2000,64K,2048+100,8192+350,24 "
#define CONTROL                                                                                    \
    "gpu=cc=9.0 sms=4 memory=24G l2cache=16M frame=32M@1.87 "                                      \
    "l1=128@32M/gpu;miss=90;miss_ns=0.313 plateau=4070 sm_gbps=2000 host_memory=16G "              \
    "managed-device=4070/4@800,32M,0+0,128+90,0.313 managed-host=51/2@2000,2M,0+0,0+0,0 "          \
    "host-pinned=51" BEYOND_HOST "host-virtual=51" BEYOND_HOST "host-registered=51" BEYOND_HOST    \
    "peer=375/4@1600,32M,0+0,0+0,0 domains=2@2"

typedef int prefetch_fn(uint64_t address, size_t bytes, int device, void *stream);
typedef int host_alloc_fn(void **memory, size_t bytes, unsigned flags);
typedef int host_free_fn(void *memory);
typedef int register_fn(void *memory, size_t bytes, unsigned flags);
typedef int unregister_fn(void *memory);

static fakecuda_limit_runs_fn *limit_runs;
static prefetch_fn *prefetch;
static host_alloc_fn *host_alloc;
static host_free_fn *host_free;
static register_fn *register_host;
static unregister_fn *unregister_host;
static struct alloc_driver cuda;
static void *context;

/* A diagnosis begins no search after 70 ms. A slow machine must find the same as a fast one, so
 * each look at the monotonic clock takes this time, and nothing else does. */
enum { LOOK_NS = 1000 };
static uint64_t look_ns = LOOK_NS;

int clock_gettime(clockid_t clock, struct timespec *out)
{
    static uint64_t now_ns = 1000000000;

    if (clock != CLOCK_MONOTONIC)
        return (int)syscall(SYS_clock_gettime, clock, out);
    const uint64_t ns = __atomic_add_fetch(&now_ns, look_ns, __ATOMIC_RELAXED);
    *out = (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    return 0;
}

static int load_library(void **state)
{
    if (driver_load(state) != 0)
        return -1;
    driver_resolve(*state, "fakecuda_limit_runs", &limit_runs);
    driver_resolve(*state, "cuMemPrefetchAsync", &prefetch);
    driver_resolve(*state, "cuMemHostAlloc", &host_alloc);
    driver_resolve(*state, "cuMemFreeHost", &host_free);
    driver_resolve(*state, "cuMemHostRegister_v2", &register_host);
    driver_resolve(*state, "cuMemHostUnregister", &unregister_host);
    return 0;
}

/* ---- the job: memory in its own context ---- */

#define OK(call) assert_int_equal(call, 0)

static void begin(const char *faults)
{
    char control[2048];
    (void)snprintf(control, sizeof control, "%s|%s", CONTROL, faults);
    if (driver_start(control) != 0)
        fail_msg("%s", control);
    assert_int_equal(alloc_driver_open(driver_library, &cuda, NULL), REACH_ALLOC_OK);
    OK(cuda.cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuda.cuCtxPushCurrent(context));
}

/* The job has released all resources, and its context is current like before. */
static void end(void)
{
    struct fakecuda_report r;
    void *popped;
    OK(cuda.cuCtxPopCurrent(&popped));
    assert_ptr_equal(popped, context);
    OK(cuda.cuDevicePrimaryCtxRelease(0));
    driver_report(&r);
    if (r.misuses)
        fail_msg("misuse: %s", r.first_misuse);
    assert_int_equal(r.modules + r.streams + r.allocations + r.handles + r.reservations +
                         r.mappings + r.contexts,
                     0);
    alloc_driver_close(&cuda);
}

static uint64_t take_plain(uint64_t bytes)
{
    uint64_t p = 0;
    OK(cuda.cuMemAlloc(&p, bytes));
    return p;
}

static uint64_t take_managed(uint64_t bytes, int location)
{
    uint64_t p = 0;
    OK(cuda.cuMemAllocManaged(&p, bytes, DRV_ATTACH_GLOBAL));
    if (location != DRV_NOWHERE)
        OK(cuda.cuMemAdvise(p, bytes, DRV_ADVISE_PREFERRED_LOCATION, location));
    return p;
}

/* Maps one handle repeatedly. The first `scattered` bytes are in pieces of 2 MiB, and the rest is
 * in frames.
 */
static uint64_t take_virtual(uint64_t bytes, uint64_t scattered, const struct drv_prop *prop)
{
    const struct drv_access access = {{DRV_DEVICE, 0}, DRV_READ_WRITE};
    uint64_t handle = 0;
    uint64_t p = 0;
    OK(cuda.cuMemCreate(&handle, FRAME, prop, 0));
    OK(cuda.cuMemAddressReserve(&p, bytes, FRAME, 0, 0));
    for (uint64_t at = 0; at < bytes; at += at < scattered ? 2 * MIB : FRAME)
        OK(cuda.cuMemMap(p + at, at < scattered ? 2 * MIB : FRAME, 0, handle, 0));
    OK(cuda.cuMemSetAccess(p, bytes, &access, 1));
    OK(cuda.cuMemRelease(handle));
    return p;
}

static void give_virtual(uint64_t p, uint64_t bytes)
{
    OK(cuda.cuMemUnmap(p, bytes));
    OK(cuda.cuMemAddressFree(p, bytes));
}

static const struct drv_prop device_prop = {.type = DRV_PINNED, .location = {DRV_DEVICE, 0}};

/* ---- diagnoses ---- */

static struct reach_diagnose_options options_of(bool with_numbers)
{
    struct reach_diagnose_options o = {.size = sizeof o, .driver = driver_library};
    if (with_numbers) {
        o.reach_bytes[REACH_MEMORY_DEVICE] = REACH;
        o.frame_bytes = FRAME;
        o.miss_ns.contiguous = CONTIGUOUS_NS;
        o.miss_ns.scattered = SCATTERED_NS;
    }
    return o;
}

static struct reach_diagnosis diagnose(uint64_t pointer, uint64_t bytes, bool with_numbers)
{
    const struct reach_diagnose_options o = options_of(with_numbers);
    struct reach_diagnosis found = {.size = sizeof found};
    struct reach_alloc_error e = {.text = ""};
    if (reach_diagnose((const void *)(uintptr_t)pointer, bytes, &o, &found, &e) != REACH_ALLOC_OK)
        fail_msg("%s", e.text);
    print_message("%s\n", found.text);
    return found;
}

static void assert_near(struct reach_finding f, double value, double tolerance)
{
    if (!f.known || fabs(f.value - value) > tolerance)
        fail_msg("%g is not %g +- %g (%s)", f.value, value, tolerance, f.known ? "" : f.reason);
}

static void assert_absent(struct reach_finding f, const char *why)
{
    assert_false(f.known);
    if (!strstr(f.reason, why))
        fail_msg("\"%s\" is not \"%s\"", f.reason, why);
}

/* Checks the diagnosis of an array that exceeds a reach of `reach` bytes in entries of `entry`
 * bytes. */
static void check_beyond(const struct reach_diagnosis *f, double reach, double entry)
{
    assert_near(f->out_of_reach, 1, 0);
    assert_near(f->reach_bytes, reach, reach / 10);
    assert_near(f->entry_bytes, entry, 0);
    assert_true(f->gain.known && f->gain.value > 2);
    assert_true(f->ns > 0);
}

static void device_memory_within_and_beyond(void **state)
{
    (void)state;
    begin("");
    const uint64_t p = take_plain(12 * GIB);
    struct reach_diagnosis f = diagnose(p, 12 * GIB, false);
    assert_int_equal(f.memory, REACH_MEMORY_DEVICE);
    assert_int_equal(f.bytes, 12 * GIB);
    assert_near(f.compressible, 0, 0);
    check_beyond(&f, REACH, FRAME);
    assert_absent(f.contiguous, "not given");
    assert_absent(f.contiguous_gbps, "");

    f = diagnose(p + 4, 3 * GIB, true);
    assert_int_equal(f.bytes, 3 * GIB - 128);
    assert_near(f.out_of_reach, 0, 0);
    assert_near(f.gain, 1, 0.05);
    assert_absent(f.reach_bytes, "within the reach");
    assert_absent(f.entry_bytes, "within the reach");
    assert_absent(f.contiguous, "within the reach");
    assert_near(f.contiguous_gbps, 4070, 100);

    f = diagnose(p, REACH + FRAME, true); /* reads take longer than the few misses explain */
    assert_near(f.out_of_reach, 0, 0);
    assert_absent(f.contiguous, "too little");
    f = diagnose(p, 300 * MIB, false); /* part of the array would fit into L2 */
    assert_absent(f.out_of_reach, "too short");
    assert_true(f.read_gbps.known && !f.part_gbps.known);
    assert_near(diagnose(p, 300 * MIB, true).out_of_reach, 0, 0);
    assert_absent(diagnose(p + 1, 100, false).out_of_reach, "no whole line");
    OK(cuda.cuMemFree(p));
    end();
}

static void a_search_that_takes_too_long_says_so(void **state)
{
    (void)state;
    begin("");
    const uint64_t p = take_plain(12 * GIB);
    look_ns = 70 * 1000 * 1000;
    const struct reach_diagnosis f = diagnose(p, 12 * GIB, false);
    look_ns = LOOK_NS;
    assert_near(f.out_of_reach, 1, 0);
    assert_absent(f.reach_bytes, "did not end in time");
    assert_absent(f.entry_bytes, "did not end in time");
    OK(cuda.cuMemFree(p));
    end();
}

static void a_share_of_frames_is_contiguous(void **state)
{
    (void)state;
    begin("");
    for (uint64_t half = 0; half <= 2; half++) {
        const uint64_t p = take_virtual(8 * GIB, half * 4 * GIB, &device_prop);
        const struct reach_diagnosis f = diagnose(p, 8 * GIB, true);
        assert_int_equal(f.memory, REACH_MEMORY_DEVICE);
        assert_int_equal(f.mapping_bytes, half ? 2 * MIB : FRAME);
        assert_near(f.contiguous, 1 - (double)half / 2, 0.1);
        assert_true(f.contiguous.error > 0 && f.contiguous.error < 0.2);
        assert_near(f.contiguous_gbps, 128 / (CONTIGUOUS_NS / 2), 10);
        give_virtual(p, 8 * GIB);
    }
    end();
}

static void memory_of_a_locality_domain_is_device_memory(void **state)
{
    const int device = 0;
    const int domain = 1;
    const struct drv_prop prop = {.type = DRV_PINNED,
                                  .location = {DRV_DEVICE_DOMAIN, device | domain << 8}};

    (void)state;
    begin("");
    const uint64_t p = take_virtual(8 * GIB, 0, &prop);
    assert_int_equal(diagnose(p, 8 * GIB, true).memory, REACH_MEMORY_DEVICE);
    give_virtual(p, 8 * GIB);
    end();
}

static void compressible_memory_is_slow_everywhere(void **state)
{
    (void)state;
    struct drv_prop prop = device_prop;
    prop.flags[0] = 1;
    begin("");
    const uint64_t p = take_virtual(6 * GIB, 0, &prop);
    struct reach_diagnosis f = diagnose(p, 6 * GIB, false);
    assert_near(f.compressible, 1, 0);
    assert_absent(f.out_of_reach, "compression");
    f = diagnose(p, 6 * GIB, true);
    assert_near(f.out_of_reach, 1, 0);
    assert_absent(f.contiguous, "compression");
    assert_absent(f.entry_bytes, "compression");
    give_virtual(p, 6 * GIB);
    end();
}

static void managed_memory_is_read_only_where_it_lives(void **state)
{
    (void)state;
    begin("");
    uint64_t p = take_managed(10 * GIB, DRV_NOWHERE);
    struct reach_diagnosis f = diagnose(p, 10 * GIB, true);
    assert_int_equal(f.memory, REACH_MEMORY_MANAGED);
    assert_absent(f.out_of_reach, "no location");
    OK(cuda.cuMemAdvise(p, 10 * GIB, DRV_ADVISE_PREFERRED_LOCATION, 0));
    f = diagnose(p, 10 * GIB, true);
    assert_int_equal(f.memory, REACH_MEMORY_MANAGED_DEVICE);
    assert_absent(f.out_of_reach, "not prefetched");
    assert_int_equal(driver_uses("cuLaunchKernel"), 0);
    OK(prefetch(p, 10 * GIB, 0, NULL));
    f = diagnose(p, 10 * GIB, true);
    check_beyond(&f, REACH, FRAME);
    assert_near(f.contiguous, 1, 0.1);
    OK(cuda.cuMemFree(p));

    p = take_managed(10 * GIB, DRV_CPU);
    f = diagnose(p, 10 * GIB, true);
    assert_int_equal(f.memory, REACH_MEMORY_MANAGED_HOST);
    assert_absent(f.out_of_reach, "accessed by");
    OK(cuda.cuMemAdvise(p, 10 * GIB, DRV_ADVISE_ACCESSED_BY, 0));
    f = diagnose(p, 10 * GIB, true);
    assert_near(f.out_of_reach, 0, 0);
    assert_near(f.read_gbps, 51, 2);
    assert_absent(f.contiguous, "of the device");
    OK(cuda.cuMemFree(p));
    end();
}

static void host_memory_by_kind(void **state)
{
    (void)state;
    const struct drv_prop prop = {.type = DRV_PINNED, .location = {DRV_HOST_NUMA, 0}};
    void *pinned;
    begin("");
    OK(host_alloc(&pinned, 3 * GIB, DRV_HOST_PORTABLE_MAPPED));
    struct reach_diagnosis f = diagnose((uintptr_t)pinned, 3 * GIB, false);
    assert_int_equal(f.memory, REACH_MEMORY_HOST_PINNED);
    check_beyond(&f, 512.0 * MIB, 64 * KIB);
    assert_near(diagnose((uintptr_t)pinned, 400 * MIB, false).out_of_reach, 0, 0);
    OK(host_free(pinned));

    void *own = mmap(NULL, 3 * GIB + 2 * MIB, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(own, MAP_FAILED);
    char *aligned = (char *)own + (2 * MIB - (uintptr_t)own % (2 * MIB));
    OK(register_host(aligned, 3 * GIB, DRV_HOST_PORTABLE_MAPPED));
    f = diagnose((uintptr_t)aligned, 3 * GIB, false);
    assert_int_equal(f.memory, REACH_MEMORY_HOST_REGISTERED);
    check_beyond(&f, 512.0 * MIB, 64 * KIB);
    OK(unregister_host(aligned));
    (void)munmap(own, 3 * GIB + 2 * MIB);

    const uint64_t p = take_virtual(3 * GIB, 0, &prop);
    f = diagnose(p, 3 * GIB, false);
    assert_int_equal(f.memory, REACH_MEMORY_HOST_VIRTUAL);
    check_beyond(&f, 512.0 * MIB, 64 * KIB);
    give_virtual(p, 3 * GIB);
    end();
}

static void a_peers_memory(void **state)
{
    (void)state;
    const struct drv_prop prop = {.type = DRV_PINNED, .location = {DRV_DEVICE, 1}};
    begin(CONTROL); /* a second GPU of the same kind */
    const uint64_t p = take_virtual(8 * GIB, 0, &prop);
    struct reach_diagnosis f = diagnose(p, 8 * GIB, true);
    assert_int_equal(f.memory, REACH_MEMORY_PEER);
    assert_near(f.out_of_reach, 0, 0);
    assert_near(f.read_gbps, 375, 15);
    give_virtual(p, 8 * GIB);
    end();
}

/* ---- free memory ---- */

static void the_free_memory_of_a_gpu(void **state)
{
    (void)state;
    const struct reach_diagnose_options o = options_of(true);
    struct reach_diagnosis f = {.size = sizeof f};
    begin("");
    for (int way = REACH_FREE_PLAIN; way <= REACH_FREE_FRAMES; way++) {
        OK(reach_diagnose_free((enum reach_free_way)way, &o, &f, NULL));
        print_message("%s\n", f.text);
        assert_true(f.bytes > 23 * GIB && f.bytes < f.free_bytes && f.free_bytes == 24 * GIB);
        assert_near(f.out_of_reach, 1, 0);
        assert_near(f.contiguous, 1, 0.1);
    }
    limit_runs(2 * MIB);
    OK(reach_diagnose_free(REACH_FREE_FRAMES, &o, &f, NULL));
    assert_near(f.contiguous, 0, 0.1);
    limit_runs(0);

    const uint64_t held = take_plain(21 * GIB); /* the remaining memory lies within the reach */
    OK(reach_diagnose_free(REACH_FREE_PLAIN, &o, &f, NULL));
    assert_near(f.out_of_reach, 0, 0);
    assert_absent(f.contiguous, "within the reach");
    OK(cuda.cuMemFree(held));
    end();
}

/* ---- the locale of the job ---- */

static void the_text_has_decimal_points_in_every_locale(void **state)
{
    (void)state;
    char here[REACH_DIAGNOSIS_TEXT_BYTES];
    struct reach_diagnosis f;
    begin("");
    const uint64_t p = take_plain(12 * GIB);
    if (!comma_locale_set())
        skip();
    f = diagnose(p, 12 * GIB, true);
    (void)snprintf(here, sizeof here, "%.1f", 0.5);
    assert_string_equal(here, "0,5"); /* the locale is unchanged */
    (void)setlocale(LC_NUMERIC, "C");
    (void)snprintf(here, sizeof here, "can gain up to %.1f times", f.gain.value);
    assert_non_null(strstr(f.text, here));
    OK(cuda.cuMemFree(p));
    end();
}

/* ---- failures ---- */

static void wrong_arguments(void **state)
{
    (void)state;
    struct reach_diagnose_options o = options_of(false);
    struct reach_diagnosis f = {.size = sizeof f};
    struct reach_alloc_error e;
    int mine = 0;
    begin("");
    const uint64_t p = take_plain(GIB);
    const void *const memory = (const void *)(uintptr_t)p;
    assert_int_equal(reach_diagnose(NULL, 1, &o, &f, &e), REACH_ALLOC_INVALID_ARGUMENT);
    assert_int_equal(reach_diagnose(memory, 0, &o, &f, &e), REACH_ALLOC_INVALID_ARGUMENT);
    assert_int_equal(reach_diagnose(&mine, 4, &o, &f, &e), REACH_ALLOC_INVALID_ARGUMENT);
    assert_non_null(strstr(e.text, "register the memory"));
    assert_int_equal(reach_diagnose(memory, GIB + 1, &o, &f, &e), REACH_ALLOC_INVALID_ARGUMENT);
    assert_int_equal(reach_diagnose(memory, UINT64_MAX, &o, &f, &e), REACH_ALLOC_INVALID_ARGUMENT);
    f.size = 0;
    assert_int_equal(reach_diagnose(memory, GIB, &o, &f, &e), REACH_ALLOC_INVALID_ARGUMENT);
    f.size = offsetof(struct reach_diagnosis, text);
    f.text[0] = '!'; /* an older caller has a shorter struct, without the text field */
    assert_int_equal(reach_diagnose(memory, GIB, &o, &f, &e), REACH_ALLOC_OK);
    assert_int_equal(f.text[0], '!');
    assert_int_equal(reach_diagnose_free(REACH_FREE_FRAMES, &o, &f, &e),
                     REACH_ALLOC_INVALID_ARGUMENT);
    o.size = 0;
    assert_int_equal(reach_diagnose(memory, GIB, &o, &f, &e), REACH_ALLOC_INVALID_ARGUMENT);
    o = options_of(false);
    o.driver = "/nowhere/libcuda.so.1";
    assert_int_equal(reach_diagnose(memory, GIB, &o, &f, &e), REACH_ALLOC_NO_DRIVER);
    assert_string_equal(reach_memory_name(REACH_MEMORY_HOST_VIRTUAL), "host-virtual");
    assert_string_equal(reach_memory_name((enum reach_memory)77), "unknown");
    OK(cuda.cuMemFree(p));
    end();
    o = options_of(false);
    o.device = 3; /* the stand-in driver counts this call as a misuse */
    assert_int_not_equal(reach_diagnose(memory, GIB, &o, &f, &e), REACH_ALLOC_OK);
    assert_string_equal(e.call, "cuDeviceGet");
}

static void busy_sms_are_a_reason(void **state)
{
    (void)state;
    begin("giveup=reach_read@6+");
    const uint64_t again =
        take_plain(12 * GIB); /* the kernel gives up during the search for the reach */
    assert_absent(diagnose(again, 12 * GIB, false).reach_bytes, "occupy");
    OK(cuda.cuMemFree(again));
    end();
    begin("giveup=reach_read");
    const uint64_t p = take_plain(12 * GIB);
    struct reach_diagnosis f = diagnose(p, 12 * GIB, false);
    assert_absent(f.out_of_reach, "occupy");
    assert_absent(f.reach_bytes, "occupy");
    f = diagnose(p, 12 * GIB, true);
    assert_near(f.out_of_reach, 1, 0); /* the diagnosis also accepts the GPU by its number */
    assert_absent(f.contiguous, "occupy");
    OK(cuda.cuMemFree(p));
    end();
}

/* Runs the life of some pointers while each call fails in turn. The result is an error, or the same
 * answer as without the failure if the call only releases a resource. */
static bool life(const char *faults, uint64_t *calls)
{
    const struct reach_diagnose_options o = options_of(true);
    struct reach_diagnosis f = {.size = sizeof f};
    struct fakecuda_report r;
    struct reach_alloc_error e = {.text = ""};
    char control[2048];
    bool failed = false;
    (void)snprintf(control, sizeof control, "%s|%s", CONTROL, faults);
    OK(driver_start(control));
    for (int way = REACH_FREE_PLAIN; way <= REACH_FREE_FRAMES; way++) {
        const enum reach_alloc_status s = reach_diagnose_free((enum reach_free_way)way, &o, &f, &e);
        failed |= s != REACH_ALLOC_OK;
        if (s == REACH_ALLOC_OK)
            assert_true(f.memory == REACH_MEMORY_DEVICE && f.contiguous.known);
        else
            assert_true(e.text[0] != '\0');
    }
    driver_report(&r);
    if (r.misuses)
        fail_msg("%s: misuse: %s", faults, r.first_misuse);
    assert_int_equal(r.modules + r.streams + r.allocations + r.handles + r.reservations +
                         r.mappings + r.contexts,
                     0);
    *calls = r.calls;
    return failed;
}

static void nothing_is_held_whichever_call_fails(void **state)
{
    (void)state;
    uint64_t calls = 0;
    uint64_t ignored;
    uint32_t failures = 0;
    assert_false(life("", &calls));
    /* All handles of the frames are treated alike, so a test of the first and the last handle is
     * enough. */
    for (uint64_t n = 1; n <= calls; n += n > 150 && n + 150 < calls ? 97 : 1) {
        char fault[64];
        (void)snprintf(fault, sizeof fault, "fail=*@%llu=999", (unsigned long long)n);
        failures += life(fault, &ignored);
    }
    print_message("%llu calls, %u of the failures seen\n", (unsigned long long)calls, failures);
    assert_true(failures > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(device_memory_within_and_beyond),
        cmocka_unit_test(a_search_that_takes_too_long_says_so),
        cmocka_unit_test(a_share_of_frames_is_contiguous),
        cmocka_unit_test(memory_of_a_locality_domain_is_device_memory),
        cmocka_unit_test(compressible_memory_is_slow_everywhere),
        cmocka_unit_test(managed_memory_is_read_only_where_it_lives),
        cmocka_unit_test(host_memory_by_kind),
        cmocka_unit_test(a_peers_memory),
        cmocka_unit_test(the_free_memory_of_a_gpu),
        cmocka_unit_test(the_text_has_decimal_points_in_every_locale),
        cmocka_unit_test(wrong_arguments),
        cmocka_unit_test(busy_sms_are_a_reason),
        cmocka_unit_test(nothing_is_held_whichever_call_fails),
    };
    return cmocka_run_group_tests(tests, load_library, driver_unload);
}
