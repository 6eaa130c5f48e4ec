/* test_snapshot.c: a view never changes, never contains parts of another view, and is freed with
 * its last reader. */
#include "snapshot/snapshot.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { READERS = 3, WRITERS = 2, PUBLICATIONS = 400, GPUS = 2 };

static void test_starts_empty(void **state)
{
    struct snapshot_cell *const cell = snapshot_cell_new();
    const struct snapshot *s;

    (void)state;
    assert_non_null(cell);
    s = snapshot_acquire(cell);
    assert_int_equal(s->generation, 1);
    assert_int_equal(s->gpu_count, 0);
    assert_null(snapshot_find(s, "0"));
    snapshot_release(s);
    snapshot_cell_free(cell);
    snapshot_cell_free(NULL);
    snapshot_release(NULL);
    snapshot_discard(NULL);
}

/* A divided GPU lacks nothing, because only its instances are measured. */
static void test_missing_topics(void **state)
{
    static const char *const topics[] = {"levels", "groups", "throughput", "caches", "memory"};
    const char *missing[SNAPSHOT_TOPICS];
    struct snapshot_gpu gpu = {.identity.sm_count = 8};

    (void)state;
    assert_int_equal(snapshot_missing(&gpu, missing), SNAPSHOT_TOPICS);
    for (uint32_t i = 0; i < SNAPSHOT_TOPICS; i++)
        assert_string_equal(missing[i], topics[i]);
    gpu.has_fingerprint = true;
    for (enum depth depth = DEPTH_QUICK; depth < DEPTH_COUNT; depth++) {
        gpu.fingerprint.depth = depth;
        assert_int_equal(snapshot_missing(&gpu, missing), depth == DEPTH_QUICK ? 3 : 0);
        assert_string_equal(missing[0], depth == DEPTH_QUICK ? "throughput" : "levels");
        missing[0] = topics[0];
    }
    gpu = (struct snapshot_gpu){.identity = {.mig = true}};
    assert_true(identity_is_divided(&gpu.identity));
    assert_int_equal(snapshot_missing(&gpu, missing), 0);
}

/* GPUs by PCI address with the device files 3, 1, 0, an unknown one, 12 and 2. The last two are
 * lost and a MIG instance, so no number counts them. */
static void test_numbers_of_some_files(void **state)
{
    static const struct {
        const char *name;
        int found; /* place of the GPU; -1 if there is a reason instead */
        const char *reason;
    } cases[] = {
        {"pci:0", 0, NULL},
        {"pci:3", 3, NULL},
        {"pci:4", -1, "shows 4"},
        {"pci:0@0", 2, NULL},
        {"pci:0@1,0", 1, NULL},
        {"pci:1@1,0", 2, NULL},
        {"pci:2@0,1,3", 2, NULL},
        {"pci:2@1,0", -1, "shows 2"},
        {"cuda:1@0,1", 2, NULL},        /* these two are of one model */
        {"cuda:0@3,1", -1, "by speed"}, /* these are not */
        {"cuda:0@3", 0, NULL},          /* one GPU has one number */
        {"pci:0@7", -1, "{7}"},         /* no GPU */
        {"pci:0@0,12", -1, "{0,12}"},   /* a lost GPU */
        {"pci:0@2", -1, "{2}"},         /* the file of an instance */
        {"pci:0@0,0", -1, "{0,0}"},     /* a list with a number twice */
        {"pci:0@", -1, "no GPU number"},
        {"pci:0@,1", -1, "no GPU number"},
        {"pci:0@1,", -1, "no GPU number"},
        {"pci:0@1x", -1, "no GPU number"},
        {"pci:@1", -1, "no GPU number"},
        {"pci:-0@1", -1, "no GPU number"},
        {"pci:00000@1", -1, "no GPU number"},
    };
    static const uint32_t minors[] = {3, 1, 0, 0, 12, 2};
    struct snapshot *const s = snapshot_draft(6);

    (void)state;
    for (uint32_t i = 0; i < 6; i++) {
        struct snapshot_gpu *const gpu = &s->gpus[i];
        (void)snprintf(gpu->identity.uuid, sizeof(gpu->identity.uuid), "GPU-%u", i);
        (void)snprintf(gpu->identity.name, sizeof(gpu->identity.name), "%s", i ? "slow" : "fast");
        gpu->identity.sm_count = 8;
        if (i != 3)
            gpu->minor = KNOWN_U32(minors[i]);
    }
    s->gpus[4].state = GPU_STATE_LOST;
    s->gpus[5].identity.mig = true;
    s->gpu_count = 6;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct err err = {.status = STATUS_OK};
        const struct snapshot_gpu *const gpu = snapshot_resolve(s, cases[i].name, &err);
        const int found = gpu ? (int)(gpu - s->gpus) : -1;
        if (found != cases[i].found || (found < 0 && !strstr(err.text, cases[i].reason)))
            fail_msg("%s: GPU %d: %s", cases[i].name, found, err.text);
    }
    snapshot_discard(s);
}

/* A reader keeps its view, even after a new view is published or the cell is freed. */
static void test_views_stay(void **state)
{
    struct snapshot_cell *const cell = snapshot_cell_new();
    struct snapshot *draft = snapshot_draft(1);
    const struct snapshot *old;
    const struct snapshot *now;

    (void)state;
    (void)snprintf(draft->gpus[0].identity.uuid, sizeof(draft->gpus[0].identity.uuid), "GPU-a");
    snapshot_publish(cell, draft);
    old = snapshot_acquire(cell);
    draft = snapshot_draft_copy(old);
    assert_string_equal(draft->gpus[0].identity.uuid, "GPU-a");
    draft->gpus[0].state = GPU_STATE_READY;
    snapshot_publish(cell, draft);
    now = snapshot_acquire(cell);
    assert_int_equal(old->generation, 2);
    assert_int_equal(now->generation, 3);
    assert_int_equal(old->gpus[0].state, GPU_STATE_UNKNOWN);
    assert_int_equal(now->gpus[0].state, GPU_STATE_READY);
    snapshot_cell_free(cell);
    assert_int_equal(now->gpus[0].state, GPU_STATE_READY);
    snapshot_release(now);
    snapshot_release(old);
    snapshot_discard(snapshot_draft(REACH_MAX_GPUS));
}

static void test_find(void **state)
{
    struct snapshot *const s = snapshot_draft(12);

    (void)state;
    for (uint32_t i = 0; i < 12; i++)
        (void)snprintf(s->gpus[i].identity.uuid, sizeof(s->gpus[i].identity.uuid), "GPU-ab%u", i);
    assert_ptr_equal(snapshot_find(s, "0"), &s->gpus[0]);
    assert_ptr_equal(snapshot_find(s, "11"), &s->gpus[11]);
    assert_ptr_equal(snapshot_find(s, "gpu-AB7"), &s->gpus[7]);
    assert_ptr_equal(snapshot_find(s, "MIG-ab7"),
                     &s->gpus[7]); /* a MIG name finds the GPU with the same hexadecimal digits */
    assert_null(snapshot_find(s, "SIM-ab7"));
    assert_null(snapshot_find(s, "12"));
    assert_null(snapshot_find(s, "GPU-ab"));
    assert_null(snapshot_find(s, "GPU-ab77"));
    assert_null(snapshot_find(s, ""));
    assert_null(snapshot_find(s, NULL));
    assert_null(snapshot_find(s, "-1"));
    assert_null(snapshot_find(s, "+1"));
    assert_null(snapshot_find(s, "01"));
    assert_null(snapshot_find(s, " 1"));
    assert_null(snapshot_find(s, "1x"));
    assert_null(snapshot_find(s, "4294967296"));
    assert_null(snapshot_find(s, "18446744073709551616"));
    snapshot_discard(s);
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(gpu_state_name(GPU_STATE_UNKNOWN), "unknown");
    assert_string_equal(gpu_state_name(GPU_STATE_MEASURING), "measuring");
    assert_string_equal(gpu_state_name(GPU_STATE_LOST), "lost");
}

/* State and results that the threads share, because cmocka asserts only in the main thread. */
struct play {
    struct snapshot_cell *cell;
    atomic_bool done;
    atomic_uint mixed;     /* number of views whose parts do not belong together */
    atomic_uint backwards; /* number of generations that decreased */
    atomic_uint views;
};

/* Checks that every part of one view has the same number. */
static void stamp(struct snapshot *s, uint32_t number)
{
    for (uint32_t i = 0; i < s->gpu_count; i++) {
        s->gpus[i].fingerprint.duration_ms = number;
        s->gpus[i].fingerprint.probe_ms = ~number;
        (void)snprintf(s->gpus[i].fingerprint_id, sizeof(s->gpus[i].fingerprint_id), "%u", number);
    }
}

static bool is_whole(const struct snapshot *s)
{
    char text[FINGERPRINT_ID_BYTES];
    const uint32_t number = s->gpu_count ? s->gpus[0].fingerprint.duration_ms : 0;

    (void)snprintf(text, sizeof(text), "%u", number);
    for (uint32_t i = 0; i < s->gpu_count; i++) {
        if (s->gpus[i].fingerprint.duration_ms != number ||
            s->gpus[i].fingerprint.probe_ms != ~number ||
            strcmp(s->gpus[i].fingerprint_id, text) != 0)
            return false;
    }
    return true;
}

static void *reader(void *argument)
{
    struct play *const play = argument;
    uint64_t last = 0;

    while (!atomic_load(&play->done)) {
        const struct snapshot *const s = snapshot_acquire(play->cell);
        if (!is_whole(s))
            atomic_fetch_add(&play->mixed, 1);
        if (s->generation < last)
            atomic_fetch_add(&play->backwards, 1);
        last = s->generation;
        atomic_fetch_add(&play->views, 1);
        snapshot_release(s);
    }
    return NULL;
}

static void *writer(void *argument)
{
    struct play *const play = argument;

    for (uint32_t i = 0; i < PUBLICATIONS; i++) {
        struct snapshot *const draft = snapshot_draft(GPUS);
        stamp(draft, i * 2654435761u);
        snapshot_publish(play->cell, draft);
    }
    return NULL;
}

static void test_concurrent(void **state)
{
    struct play play = {.cell = snapshot_cell_new()};
    pthread_t readers[READERS];
    pthread_t writers[WRITERS];
    const struct snapshot *last;

    (void)state;
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, reader, &play), 0);
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&writers[i], NULL, writer, &play), 0);
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_join(writers[i], NULL), 0);
    atomic_store(&play.done, true);
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_join(readers[i], NULL), 0);
    assert_int_equal(play.mixed, 0);
    assert_int_equal(play.backwards, 0);
    last = snapshot_acquire(play.cell);
    assert_int_equal(last->generation, 1 + WRITERS * PUBLICATIONS);
    snapshot_release(last);
    snapshot_cell_free(play.cell);
    print_message("%u views read\n", play.views);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_starts_empty),
        cmocka_unit_test(test_missing_topics),
        cmocka_unit_test(test_numbers_of_some_files),
        cmocka_unit_test(test_views_stay),
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_concurrent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
