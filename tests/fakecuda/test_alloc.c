/* test_alloc.c: the allocators of libreach-cuda over the stand-in driver. It checks where arrays
 * lie, which resources are held, and that no failing driver call loses or leaks memory. */
#include "base/units.h"
#include "base/rng.h"
#include "clients/cuda/alloc/alloc_state.h"
#include "tests/fakecuda/driver_library.h"
#include "tests/share.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define FAR_MEMORY "50/1@2000,64K,64+90,0+0,20"
#define SMALL                                                                                      \
    "gpu=cc=9.0 sms=2 memory=256M l1=8@2M/sm;miss=20 plateau=100 host_memory=1G "                  \
    "host-registered=" FAR_MEMORY " host-virtual=" FAR_MEMORY " managed-host=" FAR_MEMORY

enum { MAX_ARRAYS = 40, MAX_RANDOM = 16 };
static const uint64_t FRAME = 4 * MIB;

typedef bool fake_copy_fn(void *to, uint64_t device_to, const void *from, uint64_t device_from,
                          uint64_t bytes);

static fakecuda_limit_runs_fn *limit_runs;
static fake_copy_fn *copy;
static uint64_t seed;

static int load_library(void **state)
{
    const char *const given = getenv("TEST_SEED");

    if (driver_load(state) != 0)
        return -1;
    driver_resolve(*state, "fakecuda_limit_runs", &limit_runs);
    driver_resolve(*state, "fake_copy", &copy);
    seed = given ? strtoull(given, NULL, 0) : (uint64_t)getpid() * 2654435761U;
    print_message("TEST_SEED=%llu\n", (unsigned long long)seed);
    return 0;
}

/* ---- pools ---- */

static void begin(const char *faults)
{
    char control[512];
    (void)snprintf(control, sizeof control, "%s|%s", SMALL, faults);
    if (driver_start(control) != 0)
        fail_msg("%s", control);
}

static struct reach_pool_options options_of(uint64_t keep_bytes)
{
    return (struct reach_pool_options){.size = sizeof(struct reach_pool_options),
                                       .driver = driver_library,
                                       .frame_bytes = FRAME,
                                       .keep_bytes = keep_bytes};
}

static struct reach_pool *open_pool(uint64_t keep_bytes)
{
    const struct reach_pool_options o = options_of(keep_bytes);
    struct reach_alloc_error e = {.text = ""};
    struct reach_pool *pool;
    if (reach_pool_open(&o, &pool, &e) != REACH_ALLOC_OK)
        fail_msg("%s", e.text);
    return pool;
}

static struct reach_alloc_stats stats_of(struct reach_pool *pool)
{
    struct reach_alloc_stats s = {.size = sizeof s};
    assert_int_equal(reach_alloc_stats(pool, &s, NULL), REACH_ALLOC_OK);
    return s;
}

/* Checks the state after the last pool was closed. */
static void check_nothing_held(void)
{
    struct fakecuda_report r;
    driver_report(&r);
    if (r.misuses)
        fail_msg("misuse: %s", r.first_misuse);
    assert_int_equal(r.handles, 0);
    assert_int_equal(r.mappings, 0);
    assert_int_equal(r.reservations, 0);
    assert_int_equal(r.allocations, 0);
    assert_int_equal(r.events, 0);
    assert_int_equal(r.contexts, 0);
    assert_int_equal(r.device_bytes, 0);
}

/* ---- arrays of the test ---- */

struct array {
    uint64_t address;
    uint64_t bytes;
};

struct world {
    struct reach_pool *pool;
    struct array arrays[MAX_ARRAYS];
    uint32_t count;
    uint64_t bytes; /* sum of the lengths of the arrays, each rounded up to 512 */
};

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + 511) / 512 * 512;
}

/* Writes values that depend on the address and the size of an array to its first and last byte. */
static void stamp(const struct array *a)
{
    const uint8_t first = (uint8_t)(a->address >> 9);
    const uint8_t last = (uint8_t)(a->bytes * 31 + (a->address >> 9));
    assert_true(copy(NULL, a->address, &first, 0, 1));
    if (a->bytes > 1)
        assert_true(copy(NULL, a->address + a->bytes - 1, &last, 0, 1));
}

static void check_stamp(const struct array *a)
{
    uint8_t first;
    uint8_t last;
    assert_true(copy(&first, 0, NULL, a->address, 1));
    assert_true(copy(&last, 0, NULL, a->address + a->bytes - 1, 1));
    assert_int_equal(first, (uint8_t)(a->address >> 9));
    if (a->bytes > 1)
        assert_int_equal(last, (uint8_t)(a->bytes * 31 + (a->address >> 9)));
}

static void check_place(const struct world *w, const struct array *a)
{
    if (a->bytes >= FRAME)
        assert_int_equal(a->address % FRAME, 0);
    else
        assert_int_equal(a->address / FRAME, (a->address + a->bytes - 1) / FRAME);
    assert_int_equal(a->address % 512, 0);
    for (uint32_t i = 0; i < w->count; i++) {
        const struct array *b = &w->arrays[i];
        assert_true(a->address + a->bytes <= b->address || b->address + b->bytes <= a->address);
    }
}

/* Returns false if the driver reported an error. */
static bool allocate_on(struct world *w, uint64_t bytes, void *stream)
{
    struct reach_alloc_error e = {.text = ""};
    struct array *a = &w->arrays[w->count];
    void *p;
    if (reach_device_alloc(w->pool, bytes, stream, &p, &e) != REACH_ALLOC_OK) {
        assert_null(p);
        assert_true(e.status != REACH_ALLOC_OK && e.text[0] != '\0');
        return false;
    }
    *a = (struct array){(uintptr_t)p, bytes};
    check_place(w, a);
    stamp(a);
    w->count++;
    w->bytes += rounded(bytes);
    return true;
}

static bool allocate(struct world *w, uint64_t bytes)
{
    return allocate_on(w, bytes, REACH_NO_STREAM);
}

static bool release(struct world *w, uint32_t i, void *stream)
{
    const struct array a = w->arrays[i];
    check_stamp(&a);
    if (reach_device_free(w->pool, (void *)(uintptr_t)a.address, stream, NULL) != REACH_ALLOC_OK)
        return false;
    w->arrays[i] = w->arrays[--w->count];
    w->bytes -= rounded(a.bytes);
    return true;
}

/* Returns whether the first try succeeded. A failed try changes nothing, so the second one
 * succeeds. */
static bool release_in_the_end(struct world *w, uint32_t i, void *stream)
{
    const bool first = release(w, i, stream);
    if (!first)
        assert_true(release(w, i, stream));
    return first;
}

/* Most sizes are small. Some sizes are one or a few frames, with or without a remainder. */
static uint64_t random_bytes(struct rng *rng)
{
    const uint64_t kind = rng_below(rng, 8);
    return kind < 5   ? 1 + rng_below(rng, 100 * KIB)
           : kind < 7 ? 1 + rng_below(rng, FRAME)
                      : FRAME * (1 + rng_below(rng, 3)) + rng_below(rng, 2) * rng_below(rng, FRAME);
}

/* Makes `steps` random allocations and frees; a failed call must change nothing. Returns the number
 * of failures. */
static uint32_t random_steps(struct world *w, struct rng *rng, uint32_t steps)
{
    static void *const streams[] = {NULL, (void *)7, REACH_NO_STREAM};
    uint32_t failed = 0;
    for (uint32_t i = 0; i < steps; i++) {
        if (w->count < MAX_RANDOM && (w->count == 0 || rng_below(rng, 5) < 3))
            failed += !allocate_on(w, random_bytes(rng), streams[rng_below(rng, 3)]);
        else
            failed += !release_in_the_end(w, (uint32_t)rng_below(rng, w->count),
                                          streams[rng_below(rng, 3)]);
    }
    return failed;
}

/* A freed array is pending and counts as allocated until its stream has reached the free. */
static void check_stats(const struct world *w)
{
    const struct reach_alloc_stats s = stats_of(w->pool);
    struct fakecuda_report r;
    driver_report(&r);
    assert_int_equal(s.arrays - s.pending_arrays, w->count);
    assert_true(s.array_bytes >= w->bytes);
    assert_int_equal(s.frames, s.frames_whole + s.frames_scattered);
    assert_int_equal(s.device_bytes, s.frames * FRAME);
    assert_true(s.array_bytes <= s.device_bytes);
    assert_int_equal(r.events, s.pending_arrays);
}

static void release_all(struct world *w)
{
    while (w->count > 0)
        assert_true(release(w, w->count - 1, REACH_NO_STREAM));
}

/* ---- tests ---- */

static void arrays_lie_in_frames_and_never_overlap(void **state)
{
    (void)state;
    for (uint32_t run = 0; run < 20; run++) {
        struct rng rng = {seed + run};
        begin("");
        struct world w = {.pool = open_pool(run % 2 ? 16 * MIB : 0)};
        struct fakecuda_report r;
        for (uint32_t i = 0; i < 20; i++) {
            assert_int_equal(random_steps(&w, &rng, 50), 0);
            check_stats(&w);
            driver_report(&r);
            assert_int_equal(r.device_bytes, stats_of(w.pool).device_bytes);
        }
        for (uint32_t i = 0; i < w.count; i++)
            check_stamp(&w.arrays[i]);
        reach_pool_close(w.pool); /* closes the pool with arrays and pending frees */
        check_nothing_held();
    }
}

static void pools_share_no_frame(void **state)
{
    (void)state;
    struct rng rng = {seed};
    begin("");
    struct world a = {.pool = open_pool(0)};
    struct world b = {.pool = open_pool(0)};
    for (uint32_t i = 0; i < MAX_ARRAYS / 4; i++) {
        assert_true(allocate(&a, random_bytes(&rng)));
        assert_true(allocate(&b, random_bytes(&rng)));
    }
    for (uint32_t i = 0; i < a.count; i++) {
        for (uint32_t k = 0; k < b.count; k++) {
            const struct array *x = &a.arrays[i];
            const struct array *y = &b.arrays[k];
            assert_true((x->address + x->bytes - 1) / FRAME < y->address / FRAME ||
                        (y->address + y->bytes - 1) / FRAME < x->address / FRAME);
        }
    }
    void *foreign = (void *)(uintptr_t)b.arrays[0].address;
    assert_int_equal(reach_device_free(a.pool, foreign, NULL, NULL), REACH_ALLOC_INVALID_ARGUMENT);
    reach_pool_close(a.pool);
    reach_pool_close(b.pool);
    check_nothing_held();
}

/* 40 arrays of 3/32 of a frame each take four frames. */
static void small_arrays_are_packed(void **state)
{
    (void)state;
    begin("");
    struct world w = {.pool = open_pool(0)};
    for (uint32_t i = 0; i < 40; i++)
        assert_true(allocate(&w, FRAME / 32 * 3));
    assert_int_equal(stats_of(w.pool).frames, 4);
    release_all(&w);
    assert_int_equal(stats_of(w.pool).frames, 0);
    assert_true(allocate(&w, 2 * FRAME + 1)); /* the remainder shares the frame of the array */
    assert_true(allocate(&w, FRAME / 2));
    assert_int_equal(stats_of(w.pool).frames, 3);
    reach_pool_close(w.pool);
    check_nothing_held();
}

static void kept_frames_are_used_first(void **state)
{
    (void)state;
    begin("");
    struct world w = {.pool = open_pool(4 * FRAME)};
    assert_true(allocate(&w, 4 * FRAME));
    assert_true(allocate(&w, 4 * FRAME));
    const uint64_t second = w.arrays[1].address;
    release_all(&w); /* frees the second array first, so that its frames are kept */
    assert_int_equal(stats_of(w.pool).frames, 4);
    assert_int_equal(stats_of(w.pool).frames_free, 4);
    assert_true(allocate(&w, 4 * FRAME));
    assert_int_equal(w.arrays[0].address, second);
    assert_int_equal(driver_uses("cuMemCreate"), 8);
    reach_pool_close(w.pool);
    check_nothing_held();
}

static void memory_is_reused_only_after_its_stream(void **state)
{
    (void)state;
    begin("");
    struct world w = {.pool = open_pool(FRAME)};
    assert_true(allocate(&w, FRAME));
    const uint64_t first = w.arrays[0].address;
    assert_true(release(&w, 0, (void *)7));
    assert_int_equal(stats_of(w.pool).pending_arrays, 1);
    assert_int_equal(reach_device_free(w.pool, (void *)(uintptr_t)first, NULL, NULL),
                     REACH_ALLOC_INVALID_ARGUMENT);
    assert_true(allocate(&w, FRAME)); /* the stream has not reached the free */
    assert_int_not_equal(w.arrays[0].address, first);
    assert_true(allocate(&w, FRAME)); /* it has */
    assert_int_equal(w.arrays[1].address, first);
    assert_int_equal(stats_of(w.pool).pending_arrays, 0);
    assert_int_equal(driver_uses("cuMemCreate"), 2);
    reach_pool_close(w.pool);
    check_nothing_held();
}

static void the_same_stream_reuses_the_same_size_at_once(void **state)
{
    (void)state;
    static void *const per_thread = (void *)2; /* each thread uses its own stream */
    begin("");
    struct world w = {.pool = open_pool(0)};
    assert_true(allocate_on(&w, FRAME, (void *)7));
    const uint64_t first = w.arrays[0].address;
    assert_true(release(&w, 0, (void *)7));
    assert_true(allocate_on(&w, FRAME, (void *)7));
    assert_int_equal(w.arrays[0].address, first);
    assert_int_equal(stats_of(w.pool).pending_arrays, 0);
    assert_int_equal(stats_of(w.pool).arrays, 1);
    assert_true(release(&w, 0, (void *)7));
    assert_true(allocate_on(&w, 2 * FRAME, (void *)7)); /* another size */
    assert_int_not_equal(w.arrays[0].address, first);
    reach_pool_close(w.pool);

    w = (struct world){.pool = open_pool(0)};
    assert_true(allocate_on(&w, FRAME, per_thread));
    const uint64_t second = w.arrays[0].address;
    assert_true(release(&w, 0, per_thread));
    assert_true(allocate_on(&w, FRAME, per_thread));
    assert_int_not_equal(w.arrays[0].address, second);
    reach_pool_close(w.pool);
    check_nothing_held();
}

/* A job that keeps reusing one array still returns the other memory that it freed. */
static void reuse_settles_other_frees(void **state)
{
    (void)state;
    begin("");
    struct world w = {.pool = open_pool(0)};
    assert_true(allocate_on(&w, 2 * FRAME, (void *)7));
    assert_true(allocate_on(&w, FRAME, (void *)7));
    assert_true(release(&w, 0, (void *)7));
    for (int i = 0; i < 2; i++) { /* the stream reaches the free at the next query */
        assert_true(release(&w, 0, (void *)7));
        assert_true(allocate_on(&w, FRAME, (void *)7));
    }
    assert_int_equal(stats_of(w.pool).pending_arrays, 0);
    assert_int_equal(stats_of(w.pool).array_bytes, FRAME);
    reach_pool_close(w.pool);
    check_nothing_held();
}

static void a_full_device_waits_for_pending_frees(void **state)
{
    (void)state;
    begin("");
    struct world w = {.pool = open_pool(0)};
    assert_true(allocate(&w, 200 * MIB));
    assert_false(allocate(&w, 100 * MIB));
    check_stats(&w);
    assert_int_equal(stats_of(w.pool).frames, 50);
    assert_true(release(&w, 0, NULL));
    assert_true(allocate(&w, 100 * MIB));
    reach_pool_close(w.pool);
    check_nothing_held();
}

/* ---- scattered memory ---- */

static void fill_scattered(struct world *w, struct rng *rng)
{
    limit_runs(2 * MIB);
    while (w->count < 12)
        assert_true(allocate(w, random_bytes(rng)));
}

static enum reach_alloc_status compact(struct reach_pool *pool, uint64_t max_frames,
                                       struct reach_compaction *done)
{
    const struct reach_compact_options o = {
        .size = sizeof o, .max_frames = max_frames, .gain_ns = 0.5};
    *done = (struct reach_compaction){.size = sizeof *done};
    return reach_compact(pool, &o, done, NULL);
}

static void compaction_keeps_addresses_and_data(void **state)
{
    (void)state;
    struct rng rng = {seed};
    struct reach_compaction done;
    begin("");
    struct world w = {.pool = open_pool(0)};
    fill_scattered(&w, &rng);
    const struct reach_alloc_stats before = stats_of(w.pool);
    assert_int_equal(before.frames_scattered, before.frames);
    assert_true(before.frames > 0);

    assert_int_equal(compact(w.pool, 0, &done), REACH_ALLOC_OK); /* no run of free frames is left */
    assert_int_equal(done.frames, 0);
    assert_int_equal(done.frames_left, before.frames);

    limit_runs(0);
    assert_int_equal(compact(w.pool, 0, &done), REACH_ALLOC_OK);
    assert_int_equal(done.frames, before.frames);
    assert_int_equal(done.frames_left, 0);
    assert_true(done.ns > 0 && done.break_even_misses == (double)done.ns / 0.5);
    assert_int_equal(stats_of(w.pool).frames_whole, before.frames);
    assert_int_equal(stats_of(w.pool).compacted_frames, before.frames);
    release_all(&w); /* checks the data */
    reach_pool_close(w.pool);
    check_nothing_held();
}

static bool is_odd(void *context, const void *frame, uint64_t frame_bytes)
{
    (*(uint32_t *)context)++;
    return (uintptr_t)frame / frame_bytes % 2 == 1;
}

static void the_caller_says_which_frames_are_scattered(void **state)
{
    (void)state;
    uint32_t asked = 0;
    begin("");
    struct world w = {.pool = open_pool(0)};
    assert_true(allocate(&w, 8 * FRAME));
    struct reach_compact_options o = {
        .size = sizeof o, .max_frames = 3, .is_scattered = is_odd, .context = &asked};
    struct reach_compaction done = {.size = sizeof done};
    assert_int_equal(reach_compact(w.pool, &o, &done, NULL), REACH_ALLOC_OK);
    assert_int_equal(asked, 8);
    assert_int_equal(done.frames, 3);
    assert_int_equal(done.frames_left, 1);
    assert_true(done.break_even_misses == 0);
    assert_int_equal(stats_of(w.pool).frames_scattered, 1);
    release_all(&w);
    reach_pool_close(w.pool);
    check_nothing_held();
}

/* ---- failures ---- */

/* Runs the whole life of a pool: in scattered memory, in contiguous memory, and with compaction.
 * `faults` is empty or makes one call fail; `hit` reports whether the caller received the failure.
 * Returns the number of driver calls. */
static uint64_t life(const char *faults, uint32_t steps, bool *hit)
{
    const struct reach_pool_options o = options_of(8 * MIB);
    struct rng rng = {seed};
    struct reach_compaction done;
    struct fakecuda_report r;
    struct world w = {.pool = NULL};
    uint32_t failed = 0;
    begin(faults);
    *hit = reach_pool_open(&o, &w.pool, NULL) != REACH_ALLOC_OK;
    if (!*hit) {
        failed += random_steps(&w, &rng, steps / 2);
        limit_runs(2 * MIB);
        failed += random_steps(&w, &rng, steps - steps / 2);
        limit_runs(0);
        failed +=
            compact(w.pool, 3, &done) != REACH_ALLOC_OK; /* copies take most of the time here */
        for (uint32_t i = 0; i < w.count; i++)
            check_stamp(&w.arrays[i]);
        check_stats(&w);
        for (uint32_t i = w.count; i-- > 0;)
            failed += !release_in_the_end(&w, i, NULL);
        reach_pool_close(w.pool);
    } else {
        assert_null(w.pool);
    }
    *hit = *hit || failed > 0;
    driver_report(&r);
    assert_int_equal(r.faults, faults[0] ? 1 : 0);
    check_nothing_held();
    return r.calls;
}

/* Makes 1000 allocations and frees while the nth call of the driver fails, once with out of memory
 * and once with another error. n takes every value, or every 200th value from a start that the seed
 * chooses. */
static void nothing_is_lost_whichever_call_fails(void **state)
{
    (void)state;
    bool hit;
    uint32_t hits = 0;
    const uint64_t calls = life("", 1000, &hit);
    const uint32_t step = test_part(1, 200, 1000);
    assert_false(hit);
    for (uint64_t n = 1 + seed % step; n <= calls; n += step) {
        for (int result = 1; result <= 2; result++) {
            char fault[64];
            (void)snprintf(fault, sizeof fault, "fail=*@%llu=%d", (unsigned long long)n, result);
            (void)life(fault, 1000, &hit);
            hits += hit;
        }
    }
    print_message("%llu calls, each %uth failed, seen by the caller %u times\n",
                  (unsigned long long)calls, step, hits);
}

/* Fails each driver call of a short life of a pool in turn, in all builds. The caller must receive
 * some of the failures, because opening needs some of the calls. */
static void a_short_life_survives_every_failure(void **state)
{
    (void)state;
    bool hit;
    uint32_t hits = 0;
    const uint64_t calls = life("", 40, &hit);
    for (uint64_t n = 1; n <= calls; n++) {
        char fault[64];
        (void)snprintf(fault, sizeof fault, "fail=*@%llu=%d", (unsigned long long)n,
                       1 + (int)(n % 2));
        (void)life(fault, 40, &hit);
        hits += hit;
    }
    print_message("%llu calls, each failed once, seen by the caller %u times\n",
                  (unsigned long long)calls, hits);
    assert_true(hits > 0);
}

static void errors_name_the_call_and_what_to_do(void **state)
{
    (void)state;
    struct reach_alloc_error e;
    struct reach_pool *pool;
    struct reach_pool_options o = options_of(0);
    void *p;

    begin("");
    o.frame_bytes = 3 * MIB;
    assert_int_equal(reach_pool_open(&o, &pool, &e), REACH_ALLOC_INVALID_ARGUMENT);
    assert_non_null(strstr(e.text, "power of two"));
    o.size = 0;
    assert_int_equal(reach_pool_open(&o, &pool, &e), REACH_ALLOC_INVALID_ARGUMENT);
    o = options_of(0);
    o.driver = "/nowhere/libcuda.so.1";
    assert_int_equal(reach_pool_open(&o, &pool, &e), REACH_ALLOC_NO_DRIVER);
    o = options_of(0);
    o.device = 5;
    assert_int_not_equal(reach_pool_open(&o, &pool, &e), REACH_ALLOC_OK);
    assert_string_equal(e.call, "cuDeviceGet");
    begin("novmm");
    o = options_of(0);
    assert_int_equal(reach_pool_open(&o, &pool, &e), REACH_ALLOC_NOT_SUPPORTED);
    check_nothing_held();

    begin("");
    o.frame_bytes = 0;
    assert_int_equal(reach_pool_open(&o, &pool, &e), REACH_ALLOC_OK);
    assert_true(stats_of(pool).frame_is_granularity);
    assert_int_equal(stats_of(pool).frame_bytes, 2 * MIB);
    assert_int_equal(reach_device_alloc(pool, 0, NULL, &p, &e), REACH_ALLOC_INVALID_ARGUMENT);
    assert_int_equal(reach_device_alloc(pool, 512 * MIB, NULL, &p, &e), REACH_ALLOC_NO_MEMORY);
    assert_string_equal(e.call, "cuMemCreate");
    assert_int_equal(e.driver_result, 2);
    assert_non_null(strstr(e.text, "Free memory"));
    assert_int_equal(reach_device_alloc(pool, 5 * MIB, NULL, &p, &e), REACH_ALLOC_OK);
    assert_int_equal(reach_device_free(pool, (char *)p + 4 * MIB, NULL, &e),
                     REACH_ALLOC_INVALID_ARGUMENT);
    reach_pool_close(pool);
    check_nothing_held();
}

/* Every later call fails, and the process releases the resources that it held. */
static void a_lost_context_is_an_error(void **state)
{
    (void)state;
    struct reach_alloc_error e;
    struct reach_compaction done;
    void *p;
    begin("fail=cuCtxSynchronize@1=700");
    struct reach_pool *pool = open_pool(0);
    assert_int_equal(reach_device_alloc(pool, FRAME, NULL, &p, &e), REACH_ALLOC_OK);
    assert_int_equal(compact(pool, 0, &done), REACH_ALLOC_DRIVER_FAILED);
    assert_int_equal(reach_device_free(pool, p, NULL, &e), REACH_ALLOC_DRIVER_FAILED);
    assert_non_null(strstr(e.text, "every call"));
    reach_pool_close(pool);
    check_nothing_held();
}

/* ---- host memory ---- */

static struct reach_host_options host_of(int kind, uint64_t bytes)
{
    return (struct reach_host_options){.size = sizeof(struct reach_host_options),
                                       .kind = (enum reach_host_kind)kind,
                                       .bytes = bytes};
}

static void every_kind_of_host_memory(void **state)
{
    (void)state;
    struct reach_pool_options o = options_of(0);
    struct reach_host_options host;
    struct reach_pool *pool;
    enum reach_host_kind used;
    void *p[4];

    begin("");
    o.host_order[0] = REACH_HOST_MANAGED;
    o.host_order[1] = REACH_HOST_PINNED;
    assert_int_equal(reach_pool_open(&o, &pool, NULL), REACH_ALLOC_OK);
    for (int k = REACH_HOST_BEST; k <= REACH_HOST_VMM; k++) {
        host = host_of(k, 3 * MIB);
        assert_int_equal(reach_host_alloc(pool, &host, &p[k], &used, NULL), REACH_ALLOC_OK);
        assert_int_equal(used, k == REACH_HOST_BEST ? REACH_HOST_MANAGED : k);
    }
    /* Each has whole huge pages. */
    assert_int_equal(stats_of(pool).host_bytes, 16 * MIB);
    assert_int_equal(reach_host_free(pool, p[1], NULL, NULL), REACH_ALLOC_OK);
    assert_int_equal(reach_host_free(pool, p[1], NULL, NULL), REACH_ALLOC_INVALID_ARGUMENT);
    assert_int_equal(reach_host_free(pool, p[3], REACH_NO_STREAM, NULL), REACH_ALLOC_OK);
    host = host_of(9, 1);
    assert_int_equal(reach_host_alloc(pool, &host, &p[0], NULL, NULL),
                     REACH_ALLOC_INVALID_ARGUMENT);
    reach_pool_close(pool);
    check_nothing_held();

    begin("fail=cuMemAdvise=801");
    assert_int_equal(reach_pool_open(&o, &pool, NULL), REACH_ALLOC_OK);
    host = host_of(REACH_HOST_BEST, MIB);
    assert_int_equal(reach_host_alloc(pool, &host, &p[0], &used, NULL), REACH_ALLOC_OK);
    assert_int_equal(used, REACH_HOST_PINNED);
    reach_pool_close(pool);
    check_nothing_held();
}

static void add_progress(void *context, uint64_t done_bytes, uint64_t bytes)
{
    uint64_t *const seen = context;

    assert_true(done_bytes >= seen[0] && done_bytes <= bytes);
    assert_int_equal(driver_uses("cuMemHostRegister"), 0);
    seen[0] = done_bytes;
    seen[1] = bytes;
}

/* More memory than one piece, with more threads than the machine has, or one. The driver receives
 * pinned memory after the last page is written. */
static void large_host_memory_is_made_in_pieces(void **state)
{
    (void)state;
    struct reach_pool_options o = options_of(0);
    struct reach_pool *pool;

    for (int k = REACH_HOST_PINNED; k <= REACH_HOST_VMM; k++) {
        void *memory = NULL;
        uint64_t seen[2] = {0};
        struct reach_host_options host = host_of(k, 259 * MIB);
        begin("");
        assert_int_equal(reach_pool_open(&o, &pool, NULL), REACH_ALLOC_OK);
        host.piece_bytes = 128 * MIB;
        host.threads = k == REACH_HOST_PINNED ? 40 : 1;
        host.node = k == REACH_HOST_MANAGED ? 1 : REACH_HOST_ANY_NODE;
        host.progress = add_progress;
        host.context = seen;
        assert_int_equal(reach_host_alloc(pool, &host, &memory, NULL, NULL), REACH_ALLOC_OK);
        char *const p = memory;
        assert_int_equal(seen[0], 260 * MIB);
        assert_int_equal(seen[1], 260 * MIB);
        if (k != REACH_HOST_VMM) { /* the stand-in driver gives handles no pages of the process */
            assert_int_equal(p[0] | p[200 * MIB] | p[259 * MIB - 1], 0);
            p[259 * MIB - 1] = 1;
        }
        if (k == REACH_HOST_PINNED)
            assert_int_equal(driver_uses("cuMemHostRegister"), 3);
        if (k == REACH_HOST_VMM)
            assert_int_equal(driver_uses("cuMemCreate"), 5);
        assert_int_equal(reach_host_free(pool, p, NULL, NULL), REACH_ALLOC_OK);
        reach_pool_close(pool);
        check_nothing_held();
    }
}

/* A failure after the first pieces gives all of them back. */
static void a_later_piece_may_fail(void **state)
{
    (void)state;
    static const struct {
        enum reach_host_kind kind;
        const char *fault;
    } cases[] = {{REACH_HOST_PINNED, "fail=cuMemHostRegister@2=1"},
                 {REACH_HOST_PINNED, "fail=cuMemHostGetDevicePointer@2=1"},
                 {REACH_HOST_VMM, "fail=cuMemCreate@3=2"},
                 {REACH_HOST_VMM, "fail=cuMemMap@2=1"},
                 {REACH_HOST_VMM, "fail=cuMemSetAccess@1=1"}};
    const struct reach_pool_options o = options_of(0);

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct reach_host_options host = host_of(cases[i].kind, 259 * MIB);
        struct reach_pool *pool;
        void *p = &pool;
        host.piece_bytes = 128 * MIB;
        begin(cases[i].fault);
        assert_int_equal(reach_pool_open(&o, &pool, NULL), REACH_ALLOC_OK);
        assert_int_not_equal(reach_host_alloc(pool, &host, &p, NULL, NULL), REACH_ALLOC_OK);
        assert_null(p);
        assert_int_equal(stats_of(pool).host_bytes, 0);
        reach_pool_close(pool);
        check_nothing_held();
    }
}

/* ---- memory of the caller ---- */

static char *map(uint64_t bytes, int access, int flags)
{
    char *const p = mmap(NULL, bytes, access, flags | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(p, MAP_FAILED);
    return p;
}

/* qemu-user returns 0 for advice that it ignores. A kernel before 5.14 returns an error. */
static bool advice_is_ignored(void)
{
    const size_t page = (size_t)getpagesize();
    char *const p = map(page, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    unsigned char present = 1;
    const bool is_ignored = madvise(p, page, 23) == 0 && /* MADV_POPULATE_WRITE */
                            mincore(p, page, &present) == 0 && !(present & 1);

    assert_int_equal(munmap(p, page), 0);
    return is_ignored;
}

/* Registers random parts of memory with contents, in pieces. The contents stay, all pages exist,
 * and whole pages are registered and unregistered. */
static void memory_of_the_caller_is_registered_in_place(void **state)
{
    (void)state;
    const uint64_t room = 259 * MIB, page = (uint64_t)getpagesize();
    struct rng r = {.state = seed};
    struct reach_alloc_error e = {.text = ""};

    for (int i = 0; i < 6; i++) {
        char *const p = map(room, PROT_READ | PROT_WRITE, i % 2 ? MAP_SHARED : MAP_PRIVATE);
        const uint64_t from = rng_below(&r, 3 * page), bytes = 1 + rng_below(&r, room - from);
        const uint64_t first = from / page * page, end = (from + bytes + page - 1) / page * page;
        struct reach_host_options host =
            host_of(i % 3 ? REACH_HOST_PINNED : REACH_HOST_BEST, bytes);
        uint64_t seen[2] = {0};
        unsigned char present = 0;
        begin("");
        struct reach_pool *const pool = open_pool(0);
        host.piece_bytes = 64 * MIB;
        host.progress = add_progress;
        host.context = seen;
        p[from] = 5;
        p[from + bytes - 1] = 7;
        if (reach_host_register(pool, &host, p + from, &e) != REACH_ALLOC_OK)
            fail_msg("%s", e.text);
        assert_int_equal(seen[0], end - first);
        assert_int_equal(stats_of(pool).host_bytes, end - first);
        assert_int_equal(driver_uses("cuMemHostRegister"),
                         (end - first + 64 * MIB - 1) / (64 * MIB));
        assert_int_equal(p[from + bytes - 1], 7);
        assert_int_equal(p[from], bytes == 1 ? 7 : 5);
        assert_int_equal(mincore(p + first + (end - first) / 2 / page * page, page, &present), 0);
        assert_true(present & 1 || advice_is_ignored());
        host.progress = NULL;
        assert_int_equal(reach_host_register(pool, &host, p + from, &e),
                         REACH_ALLOC_INVALID_ARGUMENT);
        assert_non_null(strstr(e.text, "that other memory shares, are already pinned"));
        assert_int_equal(reach_host_free(pool, p + first + page + 1, NULL, NULL),
                         REACH_ALLOC_INVALID_ARGUMENT);
        if (i < 4)
            assert_int_equal(reach_host_free(pool, p + from, NULL, NULL), REACH_ALLOC_OK);
        reach_pool_close(pool);
        check_nothing_held();
        p[from] = 1; /* still mapped */
        assert_int_equal(munmap(p, room), 0);
    }
}

/* A child has the data beside the memory, and shared memory, but no private page of the memory. */
static void a_child_has_the_pages_beside_registered_memory(void **state)
{
    (void)state;
    const uint64_t page = (uint64_t)getpagesize();

    if (advice_is_ignored())
        skip();
    for (int is_shared = 0; is_shared < 2; is_shared++)
        for (int is_freed = 0; is_freed < 2; is_freed++) {
            char *const p =
                map(3 * page, PROT_READ | PROT_WRITE, is_shared ? MAP_SHARED : MAP_PRIVATE);
            const struct reach_host_options host = host_of(REACH_HOST_PINNED, 3 * page - 32);
            int status = -1;
            begin("");
            struct reach_pool *const pool = open_pool(0);
            assert_int_equal(reach_host_register(pool, &host, p + 16, NULL), REACH_ALLOC_OK);
            assert_int_not_equal(reach_host_register(pool, &host, p + 16, NULL), REACH_ALLOC_OK);
            if (is_freed)
                assert_int_equal(reach_host_free(pool, p + 16, NULL, NULL), REACH_ALLOC_OK);
            const pid_t child = fork();
            if (child == 0) {
                unsigned char present;
                const bool is_there = mincore(p + page, page, &present) == 0;
                _exit(p[0] == 0 && p[3 * page - 1] == 0 && is_there == (is_shared || is_freed) &&
                              reach_host_register(pool, &host, p + 16, NULL) != REACH_ALLOC_OK
                          ? 0
                          : 1);
            }
            assert_int_equal(waitpid(child, &status, 0), child);
            assert_int_equal(status, 0);
            reach_pool_close(pool);
            check_nothing_held();
            assert_int_equal(munmap(p, 3 * page), 0);
        }
}

static void memory_that_cannot_be_registered_is_refused(void **state)
{
    (void)state;
    const uint64_t page = (uint64_t)getpagesize();
    char name[] = "/dev/shm/reach-test-alloc-XXXXXX";
    struct reach_host_options host = host_of(REACH_HOST_PINNED, 3 * page);
    struct reach_alloc_error e;
    char *p = map(3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE);

    begin("");
    struct reach_pool *const pool = open_pool(0);
    assert_int_equal(mprotect(p + page, page, PROT_READ), 0);
    assert_int_equal(reach_host_register(pool, &host, p, &e), REACH_ALLOC_INVALID_ARGUMENT);
    assert_non_null(strstr(e.text, "cannot write memory at"));
    assert_int_equal(munmap(p + page, page), 0);
    assert_int_equal(reach_host_register(pool, &host, p, &e), REACH_ALLOC_INVALID_ARGUMENT);
    assert_non_null(strstr(e.text, "has no memory at"));
    assert_int_equal(reach_host_register(pool, &host, NULL, &e), REACH_ALLOC_INVALID_ARGUMENT);
    host.kind = REACH_HOST_MANAGED;
    assert_int_equal(reach_host_register(pool, &host, p, &e), REACH_ALLOC_INVALID_ARGUMENT);
    host.kind = REACH_HOST_PINNED;
    host.size = 8;
    assert_int_equal(reach_host_register(pool, &host, p, &e), REACH_ALLOC_INVALID_ARGUMENT);
    (void)munmap(p, page);
    (void)munmap(p + 2 * page, page);

    /* The file ends before the mapping: a write would end the process. */
    const int file = mkstemp(name);
    assert_true(file >= 0);
    assert_int_equal(unlink(name), 0);
    assert_int_equal(ftruncate(file, (off_t)page), 0);
    p = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    assert_ptr_not_equal(p, MAP_FAILED);
    if (!advice_is_ignored() &&
        madvise(p, page, 23) == 0) { /* MADV_POPULATE_WRITE: older kernels do not report it */
        host = host_of(REACH_HOST_PINNED, 3 * page);
        assert_int_equal(reach_host_register(pool, &host, p, &e), REACH_ALLOC_NO_MEMORY);
        assert_non_null(strstr(e.text, "/dev/shm, has room"));
    }
    (void)munmap(p, 3 * page);
    (void)close(file);
    assert_int_equal(driver_uses("cuMemHostRegister"), 0);
    reach_pool_close(pool);
    check_nothing_held();
}

static void registering_survives_every_failure(void **state)
{
    (void)state;
    const uint64_t bytes = 5 * MIB;
    char *const p = map(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    const struct reach_pool_options o = options_of(0);

    for (uint64_t n = 1; n < 40; n++) {
        struct reach_host_options host = host_of(REACH_HOST_PINNED, bytes);
        struct reach_pool *pool;
        char fault[64];
        host.piece_bytes = 2 * MIB;
        (void)snprintf(fault, sizeof fault, "fail=*@%llu=1", (unsigned long long)n);
        begin(fault);
        if (reach_pool_open(&o, &pool, NULL) == REACH_ALLOC_OK) {
            if (reach_host_register(pool, &host, p, NULL) == REACH_ALLOC_OK &&
                reach_host_free(pool, p, NULL, NULL) != REACH_ALLOC_OK)
                assert_int_equal(reach_host_free(pool, p, NULL, NULL), REACH_ALLOC_OK);
            assert_int_equal(stats_of(pool).host_bytes, 0);
            reach_pool_close(pool);
        }
        check_nothing_held();
    }
    assert_int_equal(munmap(p, bytes), 0);
}

static void wrong_host_options_are_refused(void **state)
{
    (void)state;
    const int32_t device = 0;
    const struct reach_pool_options o = options_of(0);
    struct reach_host_options host = host_of(REACH_HOST_MANAGED, MIB);
    struct reach_alloc_error e;
    struct reach_pool *pool;
    void *p;

    begin("");
    assert_int_equal(reach_pool_open(&o, &pool, NULL), REACH_ALLOC_OK);
    assert_int_equal(reach_host_alloc(pool, NULL, &p, NULL, &e), REACH_ALLOC_INVALID_ARGUMENT);
    host.size = 8;
    assert_int_equal(reach_host_alloc(pool, &host, &p, NULL, &e), REACH_ALLOC_INVALID_ARGUMENT);
    host = host_of(REACH_HOST_MANAGED, 0);
    assert_int_equal(reach_host_alloc(pool, &host, &p, NULL, &e), REACH_ALLOC_INVALID_ARGUMENT);
    host = host_of(REACH_HOST_MANAGED, MIB);
    host.device_count = 1;
    assert_int_equal(reach_host_alloc(pool, &host, &p, NULL, &e), REACH_ALLOC_INVALID_ARGUMENT);
    host.devices = &device;
    host.piece_bytes = MIB;
    assert_int_equal(reach_host_alloc(pool, &host, &p, NULL, &e), REACH_ALLOC_INVALID_ARGUMENT);
    host.piece_bytes = 0;
    assert_int_equal(reach_host_alloc(pool, &host, &p, NULL, &e), REACH_ALLOC_OK);
    /* No machine has a petabyte: the call is refused before it takes a page. */
    for (int k = REACH_HOST_BEST; k <= REACH_HOST_VMM; k++) {
        host = host_of(k, (uint64_t)1 << 50);
        assert_int_equal(reach_host_alloc(pool, &host, &p, NULL, &e), REACH_ALLOC_NO_MEMORY);
        assert_null(p);
        assert_non_null(strstr(e.text, "cannot allocate 1073741824 MiB of host memory: "));
    }
    reach_pool_close(pool);
    check_nothing_held();
}

static void host_memory_survives_every_failure(void **state)
{
    (void)state;
    const struct reach_pool_options o = options_of(0);
    for (uint64_t n = 1; n < 60; n++) {
        char fault[64];
        struct reach_pool *pool;
        void *p;
        (void)snprintf(fault, sizeof fault, "fail=*@%llu=1", (unsigned long long)n);
        begin(fault);
        if (reach_pool_open(&o, &pool, NULL) == REACH_ALLOC_OK) {
            for (int k = REACH_HOST_PINNED; k <= REACH_HOST_VMM; k++) {
                const struct reach_host_options host = host_of(k, 3 * MIB);
                const enum reach_alloc_status s = reach_host_alloc(pool, &host, &p, NULL, NULL);
                assert_true((s == REACH_ALLOC_OK) == (p != NULL));
                if (reach_host_free(pool, p, NULL, NULL) != REACH_ALLOC_OK)
                    assert_int_equal(reach_host_free(pool, p, NULL, NULL), REACH_ALLOC_OK);
            }
            assert_int_equal(stats_of(pool).host_bytes, 0);
            reach_pool_close(pool);
        }
        check_nothing_held();
    }
}

/* ---- threads, PyTorch ---- */

static void *work(void *pool)
{
    for (uint32_t i = 0; i < 500; i++) {
        void *p = NULL;
        if (reach_device_alloc(pool, 1 + i * 977 % FRAME, REACH_NO_STREAM, &p, NULL) !=
                REACH_ALLOC_OK ||
            reach_device_free(pool, p, i % 2 ? NULL : REACH_NO_STREAM, NULL) != REACH_ALLOC_OK)
            return NULL;
    }
    return pool;
}

static void threads_share_a_pool(void **state)
{
    (void)state;
    pthread_t threads[4];
    begin("");
    struct reach_pool *pool = open_pool(0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, pool), 0);
    for (int i = 0; i < 4; i++) {
        void *result;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_ptr_equal(result, pool);
    }
    assert_int_equal(stats_of(pool).arrays, stats_of(pool).pending_arrays);
    reach_pool_close(pool);
    check_nothing_held();
}

static void pytorch_gets_and_gives_back(void **state)
{
    (void)state;
    const struct reach_pool_options o = options_of(0);
    struct reach_pool *pool;
    struct reach_pool *again;
    begin("");
    assert_int_equal(reach_torch_open(&o, &pool, NULL), REACH_ALLOC_OK);
    assert_int_equal(reach_torch_open(&o, &again, NULL), REACH_ALLOC_OK);
    assert_ptr_equal(pool, again);
    void *p = reach_torch_malloc(20 * MIB, 0, NULL);
    assert_non_null(p);
    assert_int_equal((uintptr_t)p % FRAME, 0);
    assert_null(reach_torch_malloc((ptrdiff_t)(512 * MIB), 0, NULL));
    assert_null(reach_torch_malloc(MIB, -1, NULL));
    assert_int_equal(stats_of(pool).arrays, 1);
    reach_torch_free(p, 20 * MIB, 0, NULL);
    assert_int_equal(stats_of(pool).pending_arrays, 1);
    reach_pool_close(pool); /* the process ends here */
}

/* The lock of the parent is held, like during a call of another thread. */
static void a_child_neither_uses_a_pool_nor_waits(void **state)
{
    (void)state;
    begin("");
    struct reach_pool *pool = open_pool(0);
    void *array = NULL;
    int status = -1;
    assert_int_equal(reach_device_alloc(pool, MIB, NULL, &array, NULL), REACH_ALLOC_OK);
    (void)pthread_mutex_lock(&pool->lock);
    const pid_t child = fork();
    if (child == 0) {
        struct reach_alloc_stats stats = {.size = sizeof stats};
        struct reach_alloc_error e = {.text = ""};
        void *p = NULL;
        const bool refused =
            reach_device_alloc(pool, MIB, NULL, &p, &e) == REACH_ALLOC_INVALID_ARGUMENT &&
            strstr(e.text, "CUDA does not work after a fork") &&
            reach_device_free(pool, array, NULL, NULL) == REACH_ALLOC_INVALID_ARGUMENT &&
            reach_alloc_stats(pool, &stats, NULL) == REACH_ALLOC_INVALID_ARGUMENT;
        reach_pool_close(pool);
        _exit(refused ? 0 : 1);
    }
    (void)pthread_mutex_unlock(&pool->lock);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(stats_of(pool).arrays, 1);
    reach_pool_close(pool);
    check_nothing_held();
}

/* ---- locality domains ---- */

/* Opens a pool of the domain `domain`, from 1. */
static enum reach_alloc_status open_domain(uint64_t domain, struct reach_pool **out,
                                           struct reach_alloc_error *e)
{
    struct reach_pool_options o = options_of(0);

    o.domain = domain;
    return reach_pool_open(&o, out, e);
}

/* Returns the domain of a device address, from 0, or -1. */
static int domain_at(const struct reach_pool *pool, uint64_t address)
{
    enum { POINTER_DOMAIN = 22 };
    void *context = NULL;
    int domain = 0;

    assert_int_equal(pool->driver.cuCtxPushCurrent(pool->context), 0);
    assert_int_equal(pool->driver.cuPointerGetAttribute(&domain, POINTER_DOMAIN, address), 0);
    assert_int_equal(pool->driver.cuCtxPopCurrent(&context), 0);
    return domain;
}

static void memory_of_a_pool_is_in_its_domain(void **state)
{
    static const uint64_t lengths[] = {KIB, 3 * MIB, 9 * MIB};
    enum { LENGTHS = sizeof lengths / sizeof lengths[0] };
    struct reach_alloc_error e = {.text = ""};
    char control[512];

    (void)state;
    (void)snprintf(control, sizeof control, "%s domains=2@1|", SMALL);
    for (uint64_t domain = 0; domain < 3; domain++) {
        struct reach_pool *pool = NULL;
        assert_int_equal(driver_start(control), 0);
        assert_int_equal(open_domain(domain, &pool, &e), REACH_ALLOC_OK);
        for (size_t i = 0; i < 2 * LENGTHS; i++) {
            const uint64_t bytes = lengths[i % LENGTHS];
            void *p = NULL;
            limit_runs(i < LENGTHS ? 0 : 2 * MIB); /* later frames are assembled from pieces */
            assert_int_equal(reach_device_alloc(pool, bytes, NULL, &p, &e), REACH_ALLOC_OK);
            for (uint64_t at = 0; at < bytes; at += MIB)
                assert_int_equal(domain_at(pool, (uint64_t)(uintptr_t)p + at), (int)domain - 1);
        }
        reach_pool_close(pool);
        limit_runs(0);
        check_nothing_held();
    }
}

static void the_pool_of_pytorch_has_one_domain(void **state)
{
    (void)state;
    struct reach_pool_options o = options_of(0);
    struct reach_alloc_error e;
    struct reach_pool *pool;
    struct reach_pool *again;
    char control[512];

    (void)snprintf(control, sizeof control, "%s|%s domains=2@1|", SMALL, SMALL);
    assert_int_equal(driver_start(control), 0);
    o.device = 1; /* the pools of PyTorch stay open, and another test opens the pool of device 0 */
    o.domain = 2;
    assert_int_equal(reach_torch_open(&o, &pool, &e), REACH_ALLOC_OK);
    void *p = reach_torch_malloc(MIB, 1, NULL);
    assert_int_equal(domain_at(pool, (uint64_t)(uintptr_t)p), 1);
    for (o.domain = 0; o.domain < 3; o.domain += 2) {
        assert_int_equal(reach_torch_open(&o, &again, &e), REACH_ALLOC_OK);
        assert_ptr_equal(pool, again);
    }
    o.domain = 1;
    assert_int_equal(reach_torch_open(&o, &again, &e), REACH_ALLOC_INVALID_ARGUMENT);
    assert_null(again);
    assert_non_null(strstr(e.text, "another domain than 1"));
    o.size = offsetof(struct reach_pool_options, domain); /* the options of an earlier version */
    assert_int_equal(reach_torch_open(&o, &again, &e), REACH_ALLOC_OK);
    reach_torch_free(p, MIB, 1, NULL);
    reach_pool_close(pool); /* no later test uses it */
}

static void a_domain_that_is_not_there_is_refused(void **state)
{
    struct reach_alloc_error e = {.text = ""};
    struct reach_pool *pool = NULL;
    char control[512];

    (void)state;
    begin("");
    assert_int_equal(open_domain(1, &pool, &e), REACH_ALLOC_NOT_SUPPORTED);
    assert_non_null(strstr(e.text, "CUDA 13.4"));
    assert_null(pool);
    (void)snprintf(control, sizeof control, "%s domains=2@1|", SMALL);
    assert_int_equal(driver_start(control), 0);
    for (uint64_t domain = 3; domain < UINT64_MAX / 2; domain *= 1000) {
        assert_int_equal(open_domain(domain, &pool, &e), REACH_ALLOC_INVALID_ARGUMENT);
        assert_non_null(strstr(e.text, "has 2 locality domains"));
    }
    (void)snprintf(control, sizeof control, "%s domains=2@1|fail=cuDeviceGetAttribute@2=999",
                   SMALL);
    assert_int_equal(driver_start(control), 0);
    assert_int_equal(open_domain(1, &pool, &e), REACH_ALLOC_DRIVER_FAILED);
    assert_string_equal(e.call, "cuDeviceGetAttribute");
    check_nothing_held();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_lie_in_frames_and_never_overlap),
        cmocka_unit_test(pools_share_no_frame),
        cmocka_unit_test(small_arrays_are_packed),
        cmocka_unit_test(kept_frames_are_used_first),
        cmocka_unit_test(memory_is_reused_only_after_its_stream),
        cmocka_unit_test(the_same_stream_reuses_the_same_size_at_once),
        cmocka_unit_test(reuse_settles_other_frees),
        cmocka_unit_test(a_full_device_waits_for_pending_frees),
        cmocka_unit_test(compaction_keeps_addresses_and_data),
        cmocka_unit_test(the_caller_says_which_frames_are_scattered),
        cmocka_unit_test(a_short_life_survives_every_failure),
        cmocka_unit_test(nothing_is_lost_whichever_call_fails),
        cmocka_unit_test(errors_name_the_call_and_what_to_do),
        cmocka_unit_test(a_lost_context_is_an_error),
        cmocka_unit_test(every_kind_of_host_memory),
        cmocka_unit_test(large_host_memory_is_made_in_pieces),
        cmocka_unit_test(a_later_piece_may_fail),
        cmocka_unit_test(memory_of_the_caller_is_registered_in_place),
        cmocka_unit_test(a_child_has_the_pages_beside_registered_memory),
        cmocka_unit_test(memory_that_cannot_be_registered_is_refused),
        cmocka_unit_test(registering_survives_every_failure),
        cmocka_unit_test(wrong_host_options_are_refused),
        cmocka_unit_test(host_memory_survives_every_failure),
        cmocka_unit_test(threads_share_a_pool),
        cmocka_unit_test(a_child_neither_uses_a_pool_nor_waits),
        cmocka_unit_test(memory_of_a_pool_is_in_its_domain),
        cmocka_unit_test(a_domain_that_is_not_there_is_refused),
        cmocka_unit_test(the_pool_of_pytorch_has_one_domain),
        cmocka_unit_test(pytorch_gets_and_gives_back),
    };
    return cmocka_run_group_tests(tests, load_library, driver_unload);
}
