/* test_ranges.c: names of NVTX ranges, by a copy of NVTX for tests and, if this machine has the
 * headers, by NVTX itself. A stack belongs to a thread, so each case empties it. */
#include "clients/profile/inject/kernels.h"
#include "clients/profile/inject/ranges.h"

#include "base/rng.h"
#include "tests/fakecuda/fakenvtx.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* NVTX takes this function, as if a tool were linked into the program. */
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define HAS_NVTX 1
NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr = InitializeInjectionNvtx2;
#endif

static int begin(void **state)
{
    (void)state;
    for (int i = 0; i < RANGES_DEPTH; i++)
        (void)fakenvtx_pop(NULL);
    return ranges_innermost()[0] == '\0' ? 0 : -1;
}

static void the_innermost_range_is_named(void **state)
{
    (void)state;
    assert_int_equal(fakenvtx.tool_version, 3);
    assert_string_equal(ranges_innermost(), "");
    assert_int_equal(fakenvtx_push("model"), -2); /* like a program without a tool */
    assert_int_equal(fakenvtx_push("aten::embedding, seq = 17, op_id = 4"), -2);
    assert_string_equal(ranges_innermost(), "aten::embedding");
    assert_int_equal(fakenvtx_pop(NULL), -2);
    assert_string_equal(ranges_innermost(), "model");
    fakenvtx_pop(NULL);
    fakenvtx_pop(NULL);
    assert_string_equal(ranges_innermost(), "");
    fakenvtx_push("again");
    assert_string_equal(ranges_innermost(), "again");
}

static void each_form_of_a_name_is_read(void **state)
{
    const void *const domain = fakenvtx_create_domain("domain");
    const wchar_t wide[] = L"w\u00e9\u20ac\U0001d11e, tail";
    const wchar_t odd[] = {'o', 'd', (wchar_t)0x7fffffff, 0};
    const struct {
        const void *domain;
        int type;
        const void *message;
        const char *name;
    } cases[] = {
        {NULL, FAKENVTX_ASCII, "plain", "plain"},
        {NULL, FAKENVTX_UNICODE, wide, "w\u00e9\u20ac\U0001d11e"},
        {NULL, FAKENVTX_REGISTERED, fakenvtx_register(NULL, "registered, 1"), "registered"},
        {domain, FAKENVTX_ASCII, "in domain", "in domain"},
        {domain, FAKENVTX_REGISTERED, fakenvtx_register_wide(domain, wide),
         "w\u00e9\u20ac\U0001d11e"},
        {NULL, FAKENVTX_UNICODE, odd, "od?"},
        /* Ranges without a name leave the name of the range around them. */
        {NULL, 0, "no type", "od?"},
        {NULL, 77, "unknown type", "od?"},
        {NULL, FAKENVTX_ASCII, NULL, "od?"},
        {NULL, FAKENVTX_UNICODE, NULL, "od?"},
        {NULL, FAKENVTX_REGISTERED, NULL, "od?"},
        {NULL, FAKENVTX_REGISTERED, "not registered", "od?"},
        {NULL, FAKENVTX_ASCII, ", only a tail", "od?"},
    };
    const int count = sizeof cases / sizeof *cases;

    (void)state;
    assert_non_null(domain);
    for (int i = 0; i < count; i++) {
        assert_int_equal(fakenvtx_push_event(cases[i].domain, cases[i].type, cases[i].message), -2);
        assert_string_equal(ranges_innermost(), cases[i].name);
    }
    for (int i = count - 1; i >= 0; i--) {
        assert_string_equal(ranges_innermost(), cases[i].name);
        fakenvtx_pop(cases[i].domain);
    }
    assert_string_equal(ranges_innermost(), "");
    fakenvtx_push_wide(L"wide");
    assert_string_equal(ranges_innermost(), "wide");
}

/* An event of a program that was built with a shorter struct has no message. */
static void short_events_have_no_name(void **state)
{
    struct nvtx_event event = {.version = 1, .message_type = FAKENVTX_ASCII, .message = "name"};
    int (*const push)(const struct nvtx_event *) =
        (int (*)(const struct nvtx_event *))fakenvtx.core[FAKENVTX_RANGE_PUSH_EX];

    (void)state;
    event.bytes = offsetof(struct nvtx_event, message);
    push(&event);
    assert_string_equal(ranges_innermost(), "");
    push(NULL);
    assert_string_equal(ranges_innermost(), "");
    event.bytes = sizeof event;
    push(&event);
    assert_string_equal(ranges_innermost(), "name");
}

static void domains_are_stacks_of_their_own(void **state)
{
    const void *const a = fakenvtx_create_domain("a"), *const b = fakenvtx_create_domain("b");

    (void)state;
    assert_ptr_not_equal(a, b);
    assert_ptr_equal(fakenvtx_create_domain("a"), a);
    fakenvtx_push("default");
    fakenvtx_push_event(a, FAKENVTX_ASCII, "in a");
    fakenvtx_push_event(b, FAKENVTX_ASCII, "in b");
    fakenvtx_pop(a);
    assert_string_equal(ranges_innermost(), "in b");
    fakenvtx_pop(a); /* nothing is left in this domain */
    assert_string_equal(ranges_innermost(), "in b");
    fakenvtx_pop(NULL);
    assert_string_equal(ranges_innermost(), "in b");
    fakenvtx_pop(b);
    assert_string_equal(ranges_innermost(), "");
}

/* A cut name has whole characters. */
static void long_names_are_cut(void **state)
{
    (void)state;
    for (size_t before = RANGES_NAME_BYTES - 6; before <= RANGES_NAME_BYTES + 2; before++) {
        char text[2 * RANGES_NAME_BYTES] = "";
        wchar_t wide[2 * RANGES_NAME_BYTES] = L"";
        for (size_t i = 0; i < before; i++) {
            text[i] = 'n';
            wide[i] = L'n';
        }
        memcpy(text + before, "\u20ac", 4);
        wide[before] = L'\u20ac';
        const size_t kept = before + 3 < RANGES_NAME_BYTES   ? before + 3
                            : before < RANGES_NAME_BYTES - 1 ? before
                                                             : RANGES_NAME_BYTES - 1;
        fakenvtx_push(text);
        assert_int_equal(strlen(ranges_innermost()), kept);
        assert_memory_equal(ranges_innermost(), text, kept);
        fakenvtx_pop(NULL);
        fakenvtx_push_wide(wide);
        assert_int_equal(strlen(ranges_innermost()), kept);
        fakenvtx_pop(NULL);
    }
}

/* Random ranges of three domains, compared with a list that has no limit. */
static void random_ranges(void **state)
{
    enum { STEPS = 200000, ROOM = 1024 };
    static struct {
        int domain;
        char name[16];
    } model[ROOM];
    const char *const given = getenv("TEST_SEED");
    struct rng rng = {given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL)};
    const void *const domains[] = {NULL, fakenvtx_create_domain("1"), fakenvtx_create_domain("2")};
    unsigned count = 0, forgotten = 0, deepest = 0;

    (void)state;
    print_message("# TEST_SEED=%llu\n", (unsigned long long)rng.state);
    for (int i = 0; i < STEPS; i++) {
        const int domain = (int)rng_below(&rng, 3);
        const bool grows = i / 500 % 2 == 0;
        if (count < ROOM && rng_below(&rng, 5) < (grows ? 3 : 2)) {
            model[count].domain = domain;
            (void)snprintf(model[count].name, sizeof model[count].name, "range %d", i);
            fakenvtx_push_event(domains[domain], FAKENVTX_ASCII, model[count].name);
            count++;
            if (count - forgotten > RANGES_DEPTH)
                forgotten++;
        } else {
            unsigned at = count;
            while (at > forgotten && model[at - 1].domain != domain)
                at--;
            fakenvtx_pop(domains[domain]);
            if (at > forgotten) {
                memmove(&model[at - 1], &model[at], (count - at) * sizeof *model);
                count--;
            }
        }
        deepest = count > deepest ? count : deepest;
        assert_string_equal(ranges_innermost(), count > forgotten ? model[count - 1].name : "");
    }
    assert_true(deepest > RANGES_DEPTH);
    for (int i = 0; i < RANGES_DEPTH; i++) {
        fakenvtx_pop(domains[1]);
        fakenvtx_pop(domains[2]);
    }
}

static atomic_uint wrong;

static void *use_thread(void *name)
{
    for (int i = 0; i < 2000; i++) {
        char text[32];
        (void)snprintf(text, sizeof text, "%s %d", (const char *)name, i % 100);
        fakenvtx_push_event(NULL, FAKENVTX_REGISTERED, fakenvtx_register(NULL, text));
        wrong += strcmp(ranges_innermost(), text) != 0;
        fakenvtx_pop(NULL);
        wrong += ranges_innermost()[0] != '\0';
    }
    return NULL;
}

static void threads_have_stacks_of_their_own(void **state)
{
    static char names[4][8] = {"one", "two", "three", "four"};
    pthread_t threads[4];

    (void)state;
    fakenvtx_push("main");
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_thread, names[i]), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(wrong, 0);
    assert_string_equal(ranges_innermost(), "main");
}

static void a_kernel_has_the_range_of_its_first_launch(void **state)
{
    static const uint32_t one[3] = {1, 1, 1};
    static const char *const ranges[] = {"aten::index_select, seq = 3", "later"};
    struct kernel k;
    enum kernel_step step;
    uint32_t shape, i = 0;

    (void)state;
    (void)kernels_launch("a", "outside", 0, one, one, false, false, &shape, &step);
    for (int r = 0; r < 2; r++) {
        fakenvtx_push(ranges[r]);
        (void)kernels_launch("b", "inside", 0, one, one, false, false, &shape, &step);
        (void)kernels_launch("a", "outside", 0, one, one, false, false, &shape, &step);
        fakenvtx_pop(NULL);
    }
    for (; kernels_get(i, &k); i++)
        assert_string_equal(k.operator, strcmp(k.name, "inside") == 0 ? "aten::index_select" : "");
    assert_int_equal(i, 2);
}

static const void *get_no_table(uint32_t id)
{
    (void)id;
    return NULL;
}

static const void *get_short_table(uint32_t id)
{
    static const struct nvtx_callbacks callbacks = {sizeof callbacks - 1, NULL};

    (void)id;
    return &callbacks;
}

static void other_versions_of_nvtx_are_safe(void **state)
{
    (void)state;
    assert_false(InitializeInjectionNvtx2(get_no_table));
    assert_false(InitializeInjectionNvtx2(get_short_table));
    memset(fakenvtx.core, 0, sizeof fakenvtx.core);
    memset(fakenvtx.core2, 0, sizeof fakenvtx.core2);
    fakenvtx.core_count = FAKENVTX_RANGE_POP; /* the table ends before this function */
    fakenvtx.core2_count = 0;
    assert_true(fakenvtx_attach(InitializeInjectionNvtx2));
    assert_non_null(fakenvtx.core[FAKENVTX_RANGE_PUSH_W]);
    assert_null(fakenvtx.core[FAKENVTX_RANGE_POP]);
    assert_null(fakenvtx.core2[FAKENVTX_DOMAIN_RANGE_POP]);
    fakenvtx.core_count = FAKENVTX_CORE_COUNT;
    fakenvtx.core2_count = FAKENVTX_CORE2_COUNT;
    assert_true(fakenvtx_attach(InitializeInjectionNvtx2));
    assert_null(fakenvtx.core[FAKENVTX_MARK_A]); /* still does nothing */
    assert_null(fakenvtx.core2[FAKENVTX_INITIALIZE]);
}

static void nvtx_itself_reports_ranges(void **state)
{
    (void)state;
#ifdef HAS_NVTX
    unsetenv("NVTX_INJECTION64_PATH");
    nvtxDomainHandle_t domain = nvtxDomainCreateA("domain of NVTX");
    nvtxEventAttributes_t event = {.version = NVTX_VERSION,
                                   .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                   .messageType = NVTX_MESSAGE_TYPE_REGISTERED};
    assert_non_null(domain);
    assert_int_equal(nvtxRangePushA("a"), NVTX_NO_PUSH_POP_TRACKING);
    assert_string_equal(ranges_innermost(), "a");
    assert_int_equal(nvtxRangePushW(L"w"), NVTX_NO_PUSH_POP_TRACKING);
    assert_string_equal(ranges_innermost(), "w");
    event.message.registered = nvtxDomainRegisterStringA(domain, "registered, 1");
    nvtxDomainRangePushEx(domain, &event);
    assert_string_equal(ranges_innermost(), "registered");
    event.messageType = NVTX_MESSAGE_TYPE_UNICODE;
    event.message.unicode = L"event";
    nvtxRangePushEx(&event);
    assert_string_equal(ranges_innermost(), "event");
    nvtxMarkA("mark");
    nvtxRangeEnd(nvtxRangeStartA("not a stack"));
    assert_string_equal(ranges_innermost(), "event");
    nvtxDomainRangePop(domain);
    nvtxRangePop();
    assert_string_equal(ranges_innermost(), "w");
    nvtxRangePop();
    assert_string_equal(ranges_innermost(), "a");
    nvtxDomainDestroy(domain);
#else
    print_message("# this machine has no headers of NVTX\n");
    skip();
#endif
}

/* The last test, because strings are kept for the life of the process. */
static void strings_without_room_have_no_name(void **state)
{
    char text[32];
    const void *last = "", *const first = fakenvtx_register(NULL, "string 0");
    int i = 0;

    (void)state;
    assert_non_null(first);
    for (; last && i <= RANGES_STRINGS; i++) {
        (void)snprintf(text, sizeof text, "string %d", i);
        last = fakenvtx_register(NULL, text);
    }
    assert_null(last);
    assert_ptr_equal(fakenvtx_register(NULL, "string 0"), first);
    fakenvtx_push("outer");
    fakenvtx_push_event(NULL, FAKENVTX_REGISTERED, last);
    assert_string_equal(ranges_innermost(), "outer");
    fakenvtx_pop(NULL);
    fakenvtx_push_event(NULL, FAKENVTX_REGISTERED, first);
    assert_string_equal(ranges_innermost(), "string 0");
    assert_null(fakenvtx_create_domain("new"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_innermost_range_is_named, begin),
        cmocka_unit_test_setup(each_form_of_a_name_is_read, begin),
        cmocka_unit_test_setup(short_events_have_no_name, begin),
        cmocka_unit_test_setup(domains_are_stacks_of_their_own, begin),
        cmocka_unit_test_setup(long_names_are_cut, begin),
        cmocka_unit_test_setup(random_ranges, begin),
        cmocka_unit_test_setup(threads_have_stacks_of_their_own, begin),
        cmocka_unit_test_setup(a_kernel_has_the_range_of_its_first_launch, begin),
        cmocka_unit_test_setup(other_versions_of_nvtx_are_safe, begin),
        cmocka_unit_test_setup(nvtx_itself_reports_ranges, begin),
        cmocka_unit_test_setup(strings_without_room_have_no_name, begin),
    };

    if (fakenvtx_push("without a tool") != -2 || !fakenvtx_attach(InitializeInjectionNvtx2))
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
