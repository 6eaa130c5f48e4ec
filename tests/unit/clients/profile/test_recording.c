/* test_recording.c: reads recordings. Damaged recordings give an error and no crash. TEST_SEED
 * repeats a run. */
#include "clients/profile/place.h"

#include "base/rng.h"
#include "base/units.h"
#include "tests/share.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char whole[] =
    "{\"format\":\"reach-profile-recording\",\"version\":1,\"pid\":17,\"command\":\"python "
    "train.py\",\"ended\":true,\"seconds\":8.5,\"problem\":\"\",\"gpus\":[{\"uuid\":\"GPU-0\","
    "\"name\":\"H200\",\"sms\":132},{\"uuid\":\"GPU-1\",\"name\":\"H200\",\"sms\":132}],"
    "\"allocations\":[{\"gpu\":0,\"address\":8388608,\"bytes\":4194304,\"kind\":\"managed\","
    "\"at\":\"host\"},{\"gpu\":1,\"address\":4194304,\"bytes\":1048576,\"kind\":\"device\"}],"
    "\"kernels\":[{\"gpu\":1,\"name\":\"_Z1fv\",\"launches\":1200,\"time_ns\":123456789,"
    "\"timed\":40,\"state\":\"recorded\",\"why\":\"\",\"operator\":\"aten::embedding\","
    "\"recorded\":[{\"grid\":[4096,2,1],\"block\":[256,1,1],\"time_ns\":512345,\"trace\":"
    "\"kernel-1-7.rlt\",\"complete\":true,\"partial\":true,\"warp_accesses\":1000,\"lane_"
    "accesses\":32000,"
    "\"pages\":[[2,1],[4,2]],\"pages_lost\":3,\"instructions\":[{\"pc\":16,\"kind\":\"store\","
    "\"bytes\":16,\"warps\":1000,\"lanes\":32000,\"runs\":8000}]}]},{\"gpu\":0,\"name\":\"g\","
    "\"state\":\"refused\",\"why\":\"no room\",\"launches\":1,\"time_ns\":5}]}";

static struct recording parsed(const char *text)
{
    struct recording r;
    struct err err = {0};

    if (recording_parse(text, strlen(text), &r, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    return r;
}

static void every_field_is_read(void **state)
{
    struct recording r = parsed(whole);
    const struct recording_kernel *const k = &r.kernels[0];
    const struct recording_launch *const l = &k->recorded[0];

    (void)state;
    assert_int_equal(r.pid, 17);
    assert_string_equal(r.command, "python train.py");
    assert_string_equal(r.problem, "");
    assert_true(r.ended && r.seconds == 8.5);
    assert_int_equal(r.gpu_count, 2);
    assert_string_equal(r.gpus[1].uuid, "GPU-1");
    assert_string_equal(r.gpus[1].name, "H200");
    assert_int_equal(r.gpus[1].sms, 132);
    assert_int_equal(r.allocation_count, 2); /* sorted by address */
    assert_int_equal(r.allocations[0].address, 4194304);
    assert_int_equal(r.allocations[0].gpu, 1);
    assert_int_equal(r.allocations[0].kind, RECORDING_DEVICE);
    assert_int_equal(r.allocations[1].kind, RECORDING_MANAGED);
    assert_int_equal(r.allocations[1].at, RECORDING_AT_HOST);
    assert_int_equal(r.allocations[1].bytes, 4194304);
    assert_int_equal(r.kernel_count, 2);
    assert_int_equal(k->gpu, 1);
    assert_string_equal(k->name, "_Z1fv");
    assert_string_equal(k->operator, "aten::embedding");
    assert_int_equal(k->launches, 1200);
    assert_int_equal(k->time_ns, 123456789);
    assert_int_equal(k->timed, 40);
    assert_int_equal(k->state, RECORDING_RECORDED);
    assert_int_equal(k->launch_count, 1);
    assert_int_equal(l->grid[0], 4096);
    assert_int_equal(l->grid[1], 2);
    assert_int_equal(l->block[0], 256);
    assert_int_equal(l->time_ns, 512345);
    assert_string_equal(l->trace, "kernel-1-7.rlt");
    assert_true(l->complete && l->partial);
    assert_int_equal(l->warp_accesses, 1000);
    assert_int_equal(l->lane_accesses, 32000);
    assert_int_equal(l->page_run_count, 2);
    assert_int_equal(l->pages[1].first, 4);
    assert_int_equal(l->pages[1].count, 2);
    assert_int_equal(l->pages_lost, 3);
    assert_int_equal(l->instruction_count, 1);
    assert_int_equal(l->instructions[0].kind, RLT_STORE);
    assert_int_equal(l->instructions[0].runs, 8000);
    assert_int_equal(r.kernels[1].state, RECORDING_REFUSED);
    assert_string_equal(r.kernels[1].why, "no room");
    assert_string_equal(r.kernels[1].operator, "");
    assert_int_equal(r.kernels[1].launch_count, 0);
    recording_free(&r);
}

/* Replaces the first `from` by `to`. The caller frees the text. */
static char *replaced(const char *from, const char *to)
{
    const char *const at = strstr(whole, from);
    char *out = NULL;

    assert_non_null(at);
    if (asprintf(&out, "%.*s%s%s", (int)(at - whole), whole, to, at + strlen(from)) < 0)
        fail();
    return out;
}

static void invalid_fields_are_named(void **state)
{
    static const struct {
        const char *from, *to, *message;
        enum status status;
    } cases[] = {
        {"reach-profile-recording", "x", "field format", STATUS_CORRUPT},
        {"\"version\":1", "\"version\":2", "version 2", STATUS_NOT_SUPPORTED},
        {"\"pid\":17", "\"pid\":-1", "field pid", STATUS_CORRUPT},
        {"\"ended\":true", "\"ended\":1", "field ended", STATUS_CORRUPT},
        {"\"gpu\":1,\"address\"", "\"gpu\":2,\"address\"", "allocations[1].gpu", STATUS_CORRUPT},
        {"\"bytes\":4194304", "\"bytes\":0", "allocations[0].bytes", STATUS_CORRUPT},
        {"\"bytes\":4194304", "\"bytes\":9223372036854775807", "allocations[0].bytes",
         STATUS_CORRUPT},
        {"\"managed\"", "\"texture\"",
         "kind: must be device, pool, virtual, ipc, graph, pinned, registered, registered-huge or "
         "managed",
         STATUS_CORRUPT},
        {"\"at\":\"host\"", "\"at\":\"moon\"", "at: must be unknown, host or device",
         STATUS_CORRUPT},
        {"\"state\":\"recorded\"", "\"state\":\"lost\"", "kernels[0].state", STATUS_CORRUPT},
        {"[4096,2,1]", "[4096,0,1]", "recorded[0].grid", STATUS_CORRUPT},
        {"[4096,2,1]", "[4096,2]", "recorded[0].grid", STATUS_CORRUPT},
        {"kernel-1-7.rlt", "../x.rlt", "recorded[0].trace", STATUS_CORRUPT},
        {"[[2,1],[4,2]]", "[[4,2],[2,1]]", "element 1", STATUS_CORRUPT},
        {"[[2,1],[4,2]]", "[[2,3],[4,2]]", "element 1", STATUS_CORRUPT},
        {"[[2,1],[4,2]]", "[[2,0]]", "element 0", STATUS_CORRUPT},
        {"[[2,1],[4,2]]", "[[4398046511104,1]]", "element 0", STATUS_CORRUPT},
        {"\"kind\":\"store\"", "\"kind\":\"fetch\"", "kind: must be load, store", STATUS_CORRUPT},
        {"\"bytes\":16", "\"bytes\":-1", "instructions[0].bytes", STATUS_CORRUPT},
        {"\"seconds\":8.5", "\"seconds\":\"8\"", "field seconds", STATUS_CORRUPT},
        {"}]}]}", "}]}]", "JSON", STATUS_CORRUPT}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char *const text = replaced(cases[i].from, cases[i].to);
        struct recording r;
        struct err err = {0};
        assert_int_equal(recording_parse(text, strlen(text), &r, &err), cases[i].status);
        if (!strstr(err.text, cases[i].message))
            fail_msg("%s: %s", cases[i].to, err.text);
        recording_free(&r);
        free(text);
    }
}

static void files_are_named(void **state)
{
    char path[] = "/tmp/reach-recording-XXXXXX";
    const int file = mkstemp(path);
    struct recording r;
    struct err err = {0};

    (void)state;
    assert_true(file >= 0);
    assert_int_equal(recording_read(path, &r, &err), STATUS_CORRUPT);
    assert_non_null(strstr(err.text, path));
    recording_free(&r);
    assert_int_equal(write(file, whole, strlen(whole)), strlen(whole));
    assert_int_equal(recording_read(path, &r, &err), STATUS_OK);
    assert_int_equal(r.kernel_count, 2);
    recording_free(&r);
    close(file);
    unlink(path);
    assert_int_equal(recording_read(path, &r, &err), STATUS_IO);
    assert_non_null(strstr(err.text, path));
    recording_free(&r);
}

static struct rng seeded(void)
{
    const char *const given = getenv("TEST_SEED");
    const struct rng rng = {given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL)};

    print_message("# TEST_SEED=%llu\n", (unsigned long long)rng.state);
    return rng;
}

/* Changes, removes or repeats a part of a text. Returns the new length. */
static size_t damage(struct rng *rng, char *text, size_t length, size_t room)
{
    static const char *const words[] = {
        "-1",    "null", "[]",   "{}", "\"\"",   "9223372036854775807",
        "1e300", "true", "\xff", "0",  "[[1,1]]"};
    const char *const word = words[rng_below(rng, sizeof(words) / sizeof(*words))];
    const size_t at = rng_below(rng, length);
    const size_t removed = rng_below(rng, length - at < 12 ? length - at : 12);
    const size_t added = rng_below(rng, 2) ? strlen(word) : 0;

    if (rng_below(rng, 3) == 0) {
        text[at] = (char)rng_next(rng);
        return length;
    }
    if (length - removed + added > room)
        return length;
    memmove(text + at + added, text + at + removed, length - at - removed);
    memcpy(text + at, word, added);
    return length - removed + added;
}

static void damaged_recordings_are_refused_or_valid(void **state)
{
    struct rng rng = seeded();
    const uint32_t count = test_share(20000, 4000);
    uint32_t valid = 0;

    (void)state;
    for (uint32_t i = 0; i < count; i++) {
        char text[2 * sizeof(whole)];
        size_t length = strlen(whole);
        struct recording r;
        struct err err = {0};
        memcpy(text, whole, length);
        for (uint64_t k = rng_below(&rng, 3) + 1; k > 0; k--)
            length = damage(&rng, text, length, sizeof(text));
        const enum status s = recording_parse(text, length, &r, &err);
        assert_true(s == STATUS_OK ||
                    ((s == STATUS_CORRUPT || s == STATUS_NOT_SUPPORTED) && strlen(err.text) > 10));
        for (uint32_t gpu = 0; s == STATUS_OK && gpu < r.gpu_count; gpu++) {
            struct place_map map;
            uint64_t touched[PLACE_COUNT] = {0};
            assert_int_equal(place_map_make(&r, gpu, &map, NULL), STATUS_OK);
            for (uint32_t k = 0; k < r.kernel_count; k++)
                for (uint32_t l = 0; l < r.kernels[k].launch_count; l++)
                    place_map_touched(&map, &r.kernels[k].recorded[l], touched);
            place_map_free(&map);
        }
        valid += s == STATUS_OK;
        recording_free(&r);
    }
    assert_in_range(valid, count / 100, count - count / 100); /* both cases occur */
}

/* ---- memory ---- */

static void places_follow_from_allocations(void **state)
{
    struct recording_allocation a[] = {
        {.gpu = 0, .kind = RECORDING_VIRTUAL, .address = 0, .bytes = 2 * MIB},
        {.gpu = 0, .kind = RECORDING_VIRTUAL, .address = 2 * MIB, .bytes = 2 * MIB},
        {.gpu = 1, .kind = RECORDING_DEVICE, .address = 4 * MIB, .bytes = 2 * MIB},
        {.gpu = 0, .kind = RECORDING_PINNED, .address = 7 * MIB, .bytes = MIB / 2},
        {.gpu = 0, .kind = RECORDING_MANAGED, .address = 10 * MIB, .bytes = MIB},
        {.gpu = 0, .kind = RECORDING_REGISTERED, .address = 12 * MIB, .bytes = MIB},
        {.gpu = 0, .kind = RECORDING_REGISTERED_HUGE, .address = 14 * MIB, .bytes = 2 * MIB},
    };
    const struct recording r = {.allocations = a, .allocation_count = 7};
    struct recording_pages pages = {0, 8};
    const struct recording_launch all = {.pages = &pages, .page_run_count = 1};
    struct place_map map;
    uint64_t touched[PLACE_COUNT] = {0};

    (void)state;
    assert_int_equal(place_map_make(&r, 0, &map, NULL), STATUS_OK);
    assert_int_equal(map.count, 6); /* the first two are one region */
    assert_int_equal(place_map_find(&map, 4 * MIB - 1), 0);
    assert_int_equal(map.regions[place_map_find(&map, 4 * MIB)].place, PLACE_PEER);
    assert_int_equal(place_map_find(&map, 6 * MIB), UINT32_MAX);
    place_map_touched(&map, &all, touched);
    assert_int_equal(touched[PLACE_DEVICE], 4 * MIB);
    assert_int_equal(touched[PLACE_PEER], 2 * MIB);
    assert_int_equal(touched[PLACE_PINNED], MIB / 2);
    assert_int_equal(touched[PLACE_MANAGED], MIB);
    assert_int_equal(touched[PLACE_REGISTERED], MIB);
    assert_int_equal(touched[PLACE_REGISTERED_HUGE], 2 * MIB);
    assert_int_equal(touched[PLACE_UNKNOWN], 2 * MIB); /* page 4 contains nothing else */
    place_map_free(&map);
}

/* Compares the touched bytes with a count page by page. */
static void touched_bytes_are_exact(void **state)
{
    struct rng rng = seeded();

    (void)state;
    for (uint32_t round = 0; round < 500; round++) {
        enum { MOST = 12 };
        struct recording_allocation a[MOST];
        struct recording_pages pages[MOST];
        struct recording r = {.allocations = a};
        struct recording_launch l = {.pages = pages};
        struct place_map map;
        uint64_t touched[PLACE_COUNT] = {0};
        uint64_t expected[PLACE_COUNT] = {0};
        uint64_t at = 0;
        for (uint64_t k = rng_below(&rng, MOST); k > 0; k--) {
            at += rng_below(&rng, 4 * MIB);
            a[r.allocation_count] = (struct recording_allocation){
                .kind = rng_below(&rng, 2) ? RECORDING_DEVICE : RECORDING_PINNED,
                .address = at,
                .bytes = rng_below(&rng, 6 * MIB) + 1};
            at += a[r.allocation_count++].bytes;
        }
        at = 0;
        for (uint64_t k = rng_below(&rng, MOST); k > 0; k--) {
            pages[l.page_run_count].first = at + rng_below(&rng, 4);
            pages[l.page_run_count].count = rng_below(&rng, 4) + 1;
            at = pages[l.page_run_count].first + pages[l.page_run_count].count;
            l.page_run_count++;
        }
        for (uint32_t p = 0; p < l.page_run_count; p++) {
            for (uint64_t page = pages[p].first; page < pages[p].first + pages[p].count; page++) {
                uint64_t known = 0;
                for (uint32_t i = 0; i < r.allocation_count; i++) {
                    const uint64_t begin =
                        a[i].address > page * 2 * MIB ? a[i].address : page * 2 * MIB;
                    const uint64_t stop = a[i].address + a[i].bytes < (page + 1) * 2 * MIB
                                              ? a[i].address + a[i].bytes
                                              : (page + 1) * 2 * MIB;
                    const uint64_t both = stop > begin ? stop - begin : 0;
                    expected[a[i].kind == RECORDING_DEVICE ? PLACE_DEVICE : PLACE_PINNED] += both;
                    known += both;
                }
                expected[PLACE_UNKNOWN] += known == 0 ? 2 * MIB : 0;
            }
        }
        assert_int_equal(place_map_make(&r, 0, &map, NULL), STATUS_OK);
        place_map_touched(&map, &l, touched);
        assert_memory_equal(touched, expected, sizeof(touched));
        place_map_free(&map);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_is_read),
        cmocka_unit_test(invalid_fields_are_named),
        cmocka_unit_test(files_are_named),
        cmocka_unit_test(damaged_recordings_are_refused_or_valid),
        cmocka_unit_test(places_follow_from_allocations),
        cmocka_unit_test(touched_bytes_are_exact),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
