/* test_slurm_parts.c: the parts of the plugin for Slurm, without Slurm. The tests check that
 * fetching ends within the deadline for any behavior of the peer. They also check the GPUs of a
 * task, and the lines that may be added to the environment of a job. */
#include "clients/slurm/devices.h"
#include "clients/slurm/fetch.h"
#include "clients/slurm/variables.h"
#include "tests/unit/support/raw_daemon.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { SHORT_MS = 60, LONG_MS = 3600000 };

/* ---- fetch ---- */

static char body[1024];

static bool get(struct raw_daemon *d, uint32_t deadline_ms, struct fetch *f, int *status)
{
    bool fine;

    raw_start(d);
    fine = fetch_open(f, d->path, deadline_ms) && fetch_get(f, "/x", body, sizeof(body), status);
    return fine;
}

static void test_fetch(void **state)
{
    struct raw_daemon d = {.answer = raw_http(200, "A=1\n")};
    struct fetch f;
    int status = 0;

    (void)state;
    assert_true(get(&d, LONG_MS, &f, &status));
    assert_int_equal(status, 200);
    assert_string_equal(body, "A=1\n");
    assert_int_equal(strncmp(d.last, "GET /x HTTP/1.1\r\nHost: ", 23), 0);
    assert_true(fcntl(f.fd, F_GETFD) & FD_CLOEXEC);
    for (int i = 0; i < 3; i++) /* the connection stays open */
        assert_true(fetch_get(&f, "/y", body, sizeof(body), &status));
    assert_int_equal(atomic_load(&d.requests), 4);
    fetch_close(&f);
    fetch_close(&f);
    assert_false(fetch_get(&f, "/y", body, sizeof(body), &status));
    raw_stop(&d);
}

static void test_fetch_drops(void **state)
{
    struct raw_daemon d = {.answer = raw_http(409, "{}"), .drips = true};
    struct fetch f;
    int status = 0;

    (void)state;
    assert_true(get(&d, LONG_MS, &f, &status));
    assert_int_equal(status, 409);
    assert_string_equal(body, "{}");
    fetch_close(&f);
    raw_stop(&d);
}

#define HEAD200  "HTTP/1.1 200 OK\r\n"
#define PLAIN    "Content-Type: text/plain\r\n"
#define LENGTH_1 "Content-Length: 1\r\n"

static void test_fetch_refuses(void **state)
{
    static const char *const wrong[] = {
        "what do you want?\r\n\r\n",
        "HTTP/1.0 200 OK\r\n" PLAIN LENGTH_1 "\r\nx",
        "HTTP/1.1 2000 OK\r\n" PLAIN LENGTH_1 "\r\nx",
        "HTTP/1.1 99 OK\r\n" PLAIN LENGTH_1 "\r\nx",
        "HTTP/1.1 20 OK\r\n" PLAIN LENGTH_1 "\r\nx",
        "HTTP/1.1 200\r\n\r\n",
        HEAD200 PLAIN "\r\nx",
        HEAD200 LENGTH_1 "\r\nx",
        HEAD200 "Content-Type: application/json\r\n" LENGTH_1 "\r\nx",
        HEAD200 PLAIN LENGTH_1 LENGTH_1 "\r\nx",
        HEAD200 PLAIN LENGTH_1 "Content-Length: 2\r\n\r\nxy",
        HEAD200 PLAIN LENGTH_1 "Transfer-Encoding: chunked\r\n\r\nx",
        HEAD200 PLAIN LENGTH_1 "Content-Encoding: gzip\r\n\r\nx",
        HEAD200 PLAIN "Content-Length: -1\r\n\r\nx",
        HEAD200 PLAIN "Content-Length: 1x\r\n\r\nx",
        HEAD200 PLAIN "Content-Length: \r\n\r\nx",
        HEAD200 PLAIN "Content-Length: 2147483648\r\n\r\nx",
        HEAD200 PLAIN "Content-Length: 18446744073709551617\r\n\r\nx",
        HEAD200 PLAIN
        "Content-Length: 1024\r\n\r\nx", /* the text has no room for the end of the answer */
        HEAD200 PLAIN LENGTH_1 "\r\nxy",
        HEAD200 PLAIN LENGTH_1 " folded: line\r\n\r\nx",
        HEAD200 PLAIN LENGTH_1 "no colon\r\n\r\nx",
        "\r\n\r\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        struct raw_daemon d = {.answer = wrong[i], .closes = true};
        struct fetch f;
        int status = 0;
        if (get(&d, LONG_MS, &f, &status))
            fail_msg("taken: %s", wrong[i]);
        assert_int_equal(f.fd, -1);
        assert_true(f.why[0] != '\0');
        raw_stop(&d);
    }
}

static void test_fetch_without_end(void **state)
{
    static const char zero[] = "HTTP/1.1 200 OK\r\nX: \0\r\n\r\n";
    struct raw_daemon silent = {.answer = NULL};
    struct raw_daemon drips = {
        .answer = "HTTP/1.1 200 OK\r\nX: 1\r\n", .drips = true, .endless = true};
    struct raw_daemon pours = {.answer = "HTTP/1.1 200 OK\r\nX: 1\r\n", .endless = true};
    struct raw_daemon nul = {.answer = zero, .bytes = sizeof(zero) - 1};
    struct raw_daemon half = {.answer = HEAD200 PLAIN "Content-Length: 9\r\n\r\nx", .closes = true};
    struct raw_daemon slow = {.answer = HEAD200 PLAIN "Content-Length: 9\r\n\r\nx"};
    struct raw_daemon *const all[] = {&silent, &drips, &pours, &nul, &half, &slow};

    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        struct fetch f;
        int status = 0;
        assert_false(get(all[i], SHORT_MS, &f, &status));
        assert_int_equal(f.fd, -1);
        if (i < 2 || i == 5)
            assert_non_null(strstr(f.why, "deadline"));
        raw_stop(all[i]);
    }
}

/* No process accepts connections, so the queue is full and each connect fails immediately. */
static void test_fetch_full_queue(void **state)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX, .sun_path = "/tmp/reach-full-"};
    const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    struct fetch waiting[8];
    bool full = false;

    (void)state;
    (void)snprintf(to.sun_path, sizeof(to.sun_path), "/tmp/reach-full-%d", (int)getpid());
    unlink(to.sun_path);
    assert_int_equal(bind(listener, (struct sockaddr *)&to, sizeof(to)), 0);
    assert_int_equal(listen(listener, 1), 0);
    for (size_t i = 0; i < 8; i++) {
        if (!fetch_open(&waiting[i], to.sun_path, SHORT_MS)) {
            assert_non_null(strstr(waiting[i].why, "deadline"));
            full = true;
        }
    }
    assert_true(full);
    for (size_t i = 0; i < 8; i++)
        fetch_close(&waiting[i]);
    close(listener);
    unlink(to.sun_path);
}

static void test_fetch_nobody(void **state)
{
    char path[200];
    struct fetch f;

    (void)state;
    assert_false(fetch_open(&f, "/nowhere/at/all", LONG_MS));
    assert_non_null(strstr(f.why, "no daemon: "));
    assert_false(fetch_open(&f, "/dev/null", LONG_MS));
    memset(path, 'x', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    assert_false(fetch_open(&f, path, LONG_MS));
    assert_non_null(strstr(f.why, "too long"));
}

/* ---- devices ---- */

static void test_devices(void **state)
{
    static const struct {
        const char *visible;
        const char *node;
        const char *order;
        const char *files;
        const char *names; /* NULL if the GPUs are unknown */
    } cases[] = {
        {"0,1", "", "PCI_BUS_ID", "", "pci:0,pci:1"},
        {"0,1", "", "", "", "cuda:0,cuda:1"}, /* CUDA numbers the fastest GPU first */
        {"0,1", "", "FASTEST_FIRST", "", "cuda:0,cuda:1"},
        {"3", "3", "", "", "cuda:3"},
        {"0,1", "2,3", "", "",
         "cuda:2,cuda:3"}, /* constrained: the numbers count inside the job, */
        {"0,1", "2,3", "PCI_BUS_ID", "", "pci:2,pci:3"}, /* and CUDA chooses the order */
        {"2,3", "2,3", "PCI_BUS_ID", "", "pci:2,pci:3"}, /* not constrained */
        {"0", "3", "", "", "pci:3"},                     /* constrained to a single GPU */
        {"2", "2,3", "PCI_BUS_ID", "", "pci:2"},         /* a task bound to one GPU of the step */
        {"0", "2,3", "", "", "pci:2"},                   /* the same task, constrained */
        {"1", "2,3", "", "", "pci:3"},                   /* */
        {"1", "0,1", "PCI_BUS_ID", "", "pci:1"},         /* both readings name the same GPU */
        {"1", "1,2", "", "", NULL}, /* either GPU 1 of the node or the second GPU of the step */
        {"5", "0,1", "", "", NULL}, /* neither */
        {"GPU-1,GPU-2", "0,1", "", "", "GPU-1,GPU-2"},
        {"MIG-12-34", "", "", "", "MIG-12-34"},
        {"0", "GPU-1", "PCI_BUS_ID", "", "pci:0"}, /* the step has no numbers for the translation */
        {"GPU-1,0", "0,1", "PCI_BUS_ID", "", "GPU-1,pci:1"},
        {"1,-1,0", "", "PCI_BUS_ID", "", "pci:1"}, /* CUDA ignores the list from -1 on */
        {"-1", "0", "", "", NULL},
        {"", "0", "", "", NULL},
        {"NoDevFiles", "", "", "", "NoDevFiles"}, /* reachd reports that this GPU is unknown */
        {"0,,1", "", "", "", NULL},
        {"0,", "", "", "", NULL},
        {",0", "", "", "", NULL},
        /* The cgroup leaves some device files, whose order need not be the order of Slurm. */
        {"0", "6", "", "0", "pci:0@0"},
        {"0,1", "4,6", "PCI_BUS_ID", "2,0", "pci:0@2,0,pci:1@2,0"},
        {"1", "4,6", "", "0,2", "cuda:1@0,2"}, /* CUDA numbers the fastest GPU first */
        {"0", "", "", "3", "pci:0@3"},
        {"GPU-1,0", "", "", "3", "GPU-1,pci:0@3"},
        {"-1", "", "", "3", NULL},
        {"0 1", "", "", "", NULL},
        {"../../x", "", "", "", NULL},
        {"MIG-GPU-1/0/0", "", "", "", NULL},
        {"0", "0,", "", "", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char got[512] = "";
        struct devices d;
        const bool known =
            devices_read(cases[i].visible, cases[i].node, cases[i].order, cases[i].files, &d);
        for (uint32_t k = 0; known && k < d.count; k++)
            snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%s", k ? "," : "",
                     d.names[k]);
        if (known != (cases[i].names != NULL) || (known && strcmp(got, cases[i].names) != 0))
            fail_msg("\"%s\" of \"%s\": %s", cases[i].visible, cases[i].node,
                     known ? got : "unknown");
    }
}

static void test_devices_many(void **state)
{
    char text[200] = "";
    struct devices d;

    (void)state;
    for (int i = 0; i < DEVICES_MAX; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%d", i ? "," : "", i);
    assert_true(devices_read(text, "", "", "", &d));
    assert_int_equal(d.count, DEVICES_MAX);
    strcat(text, ",99");
    assert_false(devices_read(text, "", "", "", &d));
    memset(text, 'x', DEVICE_NAME_BYTES);
    text[DEVICE_NAME_BYTES] = '\0';
    assert_false(devices_read(text, "", "", "", &d));
}

/* ---- variables ---- */

static void test_lines(void **state)
{
    static const char *const fine[] = {"REACH_JOB={\"x\":1}\n",
                                       "REACH_A=\nREACH_JOB=v2\nREACH_B_C=a=b\n"};
    static const char *const wrong[] = {
        "",
        "REACH_JOB=v1",
        "REACH_JOB=\n",
        "REACH_A=1\n",
        "\nREACH_JOB=v1\n",
        "PATH=x\nREACH_JOB=v1\n",
        "REACH_=1\nREACH_JOB=v1\n",
        "REACH_a=1\nREACH_JOB=v1\n",
        "REACH_A1=1\nREACH_JOB=v1\n",
        "REACH_A 1\nREACH_JOB=v1\n",
        "REACH_JOB=v1\t\n",
        "REACH_JOB=v1\r\n",
        "REACH_JOB=v\xc3\xa4\n",
        "LD_PRELOAD=/x\nREACH_JOB=v1\n",
        "REACH_A\nB=1\nREACH_JOB=v1\n",
        "<html>\n",
        "REACH_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=1\nREACH_JOB=v1\n",
    };
    char many[512] = "REACH_JOB=v1\n";

    (void)state;
    for (size_t i = 0; i < sizeof(fine) / sizeof(*fine); i++)
        assert_true(variables_check(fine[i]));
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        if (variables_check(wrong[i]))
            fail_msg("taken: %s", wrong[i]);
    }
    for (int i = 0; i < VARIABLES_MAX_LINES - 1; i++)
        strcat(many, "REACH_A=1\n");
    assert_true(variables_check(many));
    strcat(many, "REACH_A=1\n");
    assert_false(variables_check(many));
}

static void test_numbers(void **state)
{
    char text[] = "REACH_SCOPE_BYTES=5\nREACH_JOB={\"a\":\"=\"}\n";
    char name[VARIABLES_NAME_BYTES];
    char *rest = text;

    (void)state;
    assert_string_equal(variables_next(&rest, 7, name), "5");
    assert_string_equal(name, "REACH_SCOPE_BYTES_7");
    assert_string_equal(variables_next(&rest, 31, name), "{\"a\":\"=\"}");
    assert_string_equal(name, "REACH_JOB_31");
    assert_null(variables_next(&rest, 31, name));
}

static void test_room(void **state)
{
    char a[] = "A=1";
    char job[] = "REACH_JOB_3=v1";
    char own[] = "REACH_JOBS=1";
    char *const none[] = {a, own, NULL};
    char *const some[] = {a, job, NULL};
    struct rlimit before;
    struct rlimit small;
    struct rlimit set;

    (void)state;
    assert_false(variables_any(NULL));
    assert_false(variables_any(none));
    assert_true(variables_any(some));
    assert_int_equal(getrlimit(RLIMIT_STACK, &before), 0);
    small = (struct rlimit){
        1 << 20, before.rlim_max}; /* 256 KiB are set aside for arguments and environment */
    assert_int_equal(setrlimit(RLIMIT_STACK, &small), 0);
    assert_int_equal(getrlimit(RLIMIT_STACK, &set), 0);
    if (set.rlim_cur != small.rlim_cur)
        skip(); /* qemu-user ignores the limit */
    assert_true(variables_fit(some, (128 << 10) - 100));
    assert_false(variables_fit(some, 128 << 10));
    assert_int_equal(setrlimit(RLIMIT_STACK, &before), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fetch),
        cmocka_unit_test(test_fetch_drops),
        cmocka_unit_test(test_fetch_refuses),
        cmocka_unit_test(test_fetch_without_end),
        cmocka_unit_test(test_fetch_full_queue),
        cmocka_unit_test(test_fetch_nobody),
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_devices_many),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
