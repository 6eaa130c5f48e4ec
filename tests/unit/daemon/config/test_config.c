/* test_config.c: the command line, its sockets, and the protocol of the service manager. */
#include "config/config.h"
#include "service/listen.h"
#include "service/sd_notify.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { MAX_ARGUMENTS = 80 };

/* Parses a list of arguments that ends with NULL. */
static enum status parse(char **arguments, struct config *out, struct err *err)
{
    char *argv[MAX_ARGUMENTS];
    char name[] = "reachd";
    int argc = 1;

    argv[0] = name;
    while (arguments[argc - 1]) {
        argv[argc] = arguments[argc - 1];
        argc++;
    }
    argv[argc] = NULL;
    return config_parse(argc, argv, out, err);
}

#define ARGS(...) ((char *[]){__VA_ARGS__, NULL})
/* The arguments are literals that are never written to. Only this function needs the cast. */
#define A(text) ((char[]){text})

static void test_defaults(void **state)
{
    struct config c;
    struct err err = {0};

    (void)state;
    assert_int_equal(parse((char *[]){NULL}, &c, &err), STATUS_OK);
    assert_int_equal(c.mode, CONFIG_SERVE);
    assert_string_equal(c.listen, "127.0.0.1:17322");
    assert_non_null(strstr(c.state, "/reachd/reachd.db"));
    if (geteuid() == 0)
        assert_string_equal(c.state, "/var/lib/reachd/reachd.db");
    assert_true(c.measure_on_start);
    assert_false(c.state_given || c.socket_given || c.demo);
    assert_null(c.simulated[0]);
    if (geteuid() == 0) {
        assert_string_equal(c.socket, "/run/reachd/reachd.sock");
    } else {
        assert_null(c.socket);
    }
    struct gpu_options gpu = config_gpu_options(&c);

    assert_null(gpu.simulated);
    assert_null(gpu.libcuda);
    assert_int_equal(gpu.memory_limit_bytes, 0);
}

static void test_values(void **state)
{
    struct config c;
    struct err err = {0};

    (void)state;
    assert_int_equal(
        parse(ARGS(A("--listen"), A("[::1]:0"), A("--socket=/tmp/s"), A("--state"), A(":memory:"),
                   A("--simulate"), A("k80"), A("--simulate=h200"), A("--libcuda"),
                   A("/x/libcuda.so"), A("--memory-limit"), A("256MiB"), A("--probe-deadline-ms"),
                   A("500"), A("--no-vmm"), A("--no-measure-on-start"), A("--log-level"),
                   A("debug"), A("--state-fallback-memory"), A("--demo")),
              &c, &err),
        STATUS_OK);
    struct gpu_options gpu = config_gpu_options(&c);

    assert_string_equal(c.listen, "[::1]:0");
    assert_string_equal(c.socket, "/tmp/s");
    assert_true(c.socket_given && c.state_given);
    assert_string_equal(gpu.simulated[0], "k80");
    assert_string_equal(gpu.simulated[1], "h200");
    assert_null(gpu.simulated[2]);
    assert_string_equal(gpu.libcuda, "/x/libcuda.so");
    assert_int_equal(gpu.memory_limit_bytes, 256 << 20);
    assert_int_equal(gpu.deadline_ms, 500);
    assert_true(gpu.no_vmm);
    assert_false(c.measure_on_start);
    assert_true(c.state_fallback_memory && c.demo);
    assert_int_equal(c.log_level, LOG_LEVEL_DEBUG);
}

static void test_none(void **state)
{
    struct config c;
    struct err err = {0};

    (void)state;
    assert_int_equal(parse(ARGS(A("--listen"), A("none"), A("--socket"), A("none")), &c, &err),
                     STATUS_OK);
    assert_null(c.listen);
    assert_null(c.socket);
}

static void test_modes(void **state)
{
    struct config c;
    struct err err = {0};

    (void)state;
    assert_int_equal(parse(ARGS(A("--worker")), &c, &err), STATUS_OK);
    assert_int_equal(c.mode, CONFIG_WORKER);
    assert_int_equal(parse(ARGS(A("--worker=stdio")), &c, &err), STATUS_OK);
    assert_int_equal(c.mode, CONFIG_WORKER_STDIO);
    assert_int_equal(parse(ARGS(A("--help"), A("--nonsense")), &c, &err), STATUS_OK);
    assert_int_equal(c.mode, CONFIG_HELP);
    assert_int_equal(parse(ARGS(A("--version")), &c, &err), STATUS_OK);
    assert_int_equal(c.mode, CONFIG_VERSION);
    assert_int_equal(parse(ARGS(A("--check-config"), A("--listen"), A(":80")), &c, &err),
                     STATUS_OK);
    assert_int_equal(c.mode, CONFIG_CHECK);
    assert_int_equal(parse(ARGS(A("--measure"), A("quick"), A("--measure=matrix"), A("--repeat"),
                                A("50"), A("--export"), A("out")),
                           &c, &err),
                     STATUS_OK);
    assert_int_equal(c.mode, CONFIG_MEASURE);
    assert_int_equal(c.depth_count, 2);
    assert_int_equal(c.depths[1], DEPTH_MATRIX);
    assert_int_equal(c.repeats, 50);
    assert_int_equal(parse(ARGS(A("--analyze"), A("-"), A("--depth"), A("quick")), &c, &err),
                     STATUS_OK);
    assert_int_equal(c.mode, CONFIG_ANALYZE);
    assert_int_equal(c.analyze_depth, DEPTH_QUICK);
}

/* Every wrong command line is refused, and the message names the option. */
static void test_wrong(void **state)
{
    static const char *const cases[][3] = {
        {"--nonsense", NULL, "--nonsense"},
        {"nonsense", NULL, "nonsense"},
        {"--listen", NULL, "--listen"},
        {"--listen=", NULL, "--listen"},
        {"--listen", "17322", "--listen"},
        {"--list", "127.0.0.1:1", "--list"},
        {"--simulate", NULL, "--simulate"},
        {"--memory-limit", "much", "--memory-limit"},
        {"--memory-limit", "-1", "--memory-limit"},
        {"--memory-limit", "0", "--memory-limit"},
        {"--probe-deadline-ms", "0", "--probe-deadline-ms"},
        {"--probe-deadline-ms", "1s", "--probe-deadline-ms"},
        {"--probe-deadline-ms", "-5", "--probe-deadline-ms"},
        {"--probe-deadline-ms", "99999999999999999999", "--probe-deadline-ms"},
        {"--log-level", "loud", "--log-level"},
        {"--no-vmm=yes", NULL, "--no-vmm"},
        {"--measure", "deep", "--measure"},
        {"--repeat", "5", "--repeat"},
        {"--export", "x", "--export"},
        {"--depth", "quick", "--depth"},
        {"--worker", "--demo", "--worker"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char first[40], second[40];
        char *arguments[] = {first, cases[i][1] ? second : NULL, NULL};
        struct config c;
        struct err err = {0};

        snprintf(first, sizeof first, "%s", cases[i][0]);
        snprintf(second, sizeof second, "%s", cases[i][1] ? cases[i][1] : "");
        assert_int_equal(parse(arguments, &c, &err), STATUS_INVALID_ARGUMENT);
        if (!strstr(err.text, cases[i][2])) {
            print_error("%s: %s\n", cases[i][0], err.text);
        }
        assert_non_null(strstr(err.text, cases[i][2]));
    }
}

static void test_too_many(void **state)
{
    char *arguments[MAX_ARGUMENTS] = {0};
    char option[] = "--simulate=k80", depth[] = "--measure=quick";
    struct config c;
    struct err err = {0};

    (void)state;
    for (int i = 0; i < REACH_MAX_GPUS; i++) {
        arguments[i] = option;
    }
    assert_int_equal(parse(arguments, &c, &err), STATUS_OK);
    arguments[REACH_MAX_GPUS] = option;
    assert_int_equal(parse(arguments, &c, &err), STATUS_INVALID_ARGUMENT);
    memset(arguments, 0, sizeof arguments);
    for (int i = 0; i <= CONFIG_MAX_DEPTHS; i++) {
        arguments[i] = depth;
    }
    assert_int_equal(parse(arguments, &c, &err), STATUS_INVALID_ARGUMENT);
}

/* ---- sockets ----------------------------------------------------------------------------- */

static char folder[] = "/tmp/reach-config-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

static int connect_unix(const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    snprintf(name.sun_path, sizeof name.sun_path, "%s", path);
    int failed = connect(fd, (struct sockaddr *)&name, sizeof name);

    close(fd);
    return failed;
}

static void test_sockets(void **state)
{
    char path[80];
    struct stat st;
    struct listen_set set, second;
    struct err err = {0};
    struct config c = {.listen = "127.0.0.1:0", .socket = path, .socket_given = true};

    (void)state;
    snprintf(path, sizeof path, "%s/s", folder);
    assert_int_equal(listen_open(&c, &set, &err), STATUS_OK);
    assert_int_equal(set.count, 3);
    assert_int_equal(strncmp(set.addresses[0], "127.0.0.1:", 10), 0);
    assert_true(atoi(set.addresses[0] + 10) > 0);
    assert_string_equal(set.addresses[1], path);
    assert_int_equal(connect_unix(path), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0660);
    assert_int_equal(set.roles[1], LISTEN_UNIX);
    assert_int_equal(set.roles[2], LISTEN_HEALTH);

    /* A socket or port that another process uses is not taken over. */
    assert_int_equal(listen_open(&c, &second, &err), STATUS_CONFLICT);
    assert_int_equal(connect_unix(path), 0);
    c.socket_given = false; /* a default socket is left out if it is in use */
    assert_int_equal(listen_open(&c, &second, &err), STATUS_OK);
    assert_int_equal(second.count, 2);
    listen_close(&second);
    c.listen = set.addresses[0];
    assert_int_equal(listen_open(&c, &second, &err), STATUS_CONFLICT);
    listen_close(&set);
    assert_int_equal(stat(path, &st), -1);
}

/* A remote address needs a token if its clients may change something. An address for probes needs
 * no token. */
static void test_what_other_machines_may_reach(void **state)
{
    struct listen_set set;
    struct err err = {0};
    struct config c = {.listen = "127.0.0.1:0", .health = "0.0.0.0:0", .health_given = true};

    (void)state;
    assert_int_equal(listen_open(&c, &set, &err), STATUS_OK);
    assert_int_equal(set.count, 2);
    assert_int_equal(listen_check_local(&set, &err), STATUS_OK);
    listen_close(&set);
    c.listen = "0.0.0.0:0";
    c.health = "127.0.0.1:0";
    assert_int_equal(listen_open(&c, &set, &err), STATUS_OK);
    assert_int_equal(listen_check_local(&set, &err), STATUS_INVALID_ARGUMENT);
    listen_close(&set);
}

static bool no_ipv6;

/* This function replaces socket() of the C library. */
int socket(int domain, int type, int protocol)
{
    if (no_ipv6 && domain == AF_INET6) {
        errno = EAFNOSUPPORT;
        return -1;
    }
    return (int)syscall(SYS_socket, domain, type, protocol);
}

static bool can_connect(const struct sockaddr *to, socklen_t length)
{
    const int fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool can = fd >= 0 && connect(fd, to, length) == 0;

    if (fd >= 0)
        close(fd);
    return can;
}

/* ":0" serves IPv4 in each case, and IPv6 if the kernel has it. */
static void test_all_addresses(void **state)
{
    struct config c = {.listen = "127.0.0.1:0", .health = ":0", .health_given = true};
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
    struct listen_set set;
    struct err err = {0};
    const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool has_ipv6 = fd >= 0 && bind(fd, (struct sockaddr *)&v6, sizeof v6) == 0;

    (void)state;
    if (fd >= 0)
        close(fd);
    for (int without = 0; without < 2; without++) {
        no_ipv6 = without;
        assert_int_equal(listen_open(&c, &set, &err), STATUS_OK);
        no_ipv6 = false;
        v4.sin_port = v6.sin6_port = htons((uint16_t)atoi(strrchr(set.addresses[1], ':') + 1));
        assert_true(can_connect((struct sockaddr *)&v4, sizeof v4));
        assert_int_equal(can_connect((struct sockaddr *)&v6, sizeof v6), has_ipv6 && !without);
        assert_int_equal(listen_check_local(&set, &err), STATUS_OK); /* probes change nothing */
        set.roles[1] = LISTEN_TCP;
        assert_int_equal(listen_check_local(&set, &err), STATUS_INVALID_ARGUMENT);
        listen_close(&set);
    }
    no_ipv6 = true;
    c.health = "[::]:0";
    assert_int_equal(listen_open(&c, &set, &err), STATUS_IO);
    assert_string_equal(err.text,
                        "cannot listen on [::]:0: Address family not supported by protocol");
    no_ipv6 = false;
}

/* A socket that a killed daemon left is taken over. A file that is not a socket is left alone. */
static void test_a_name_left_behind(void **state)
{
    char path[80];
    struct listen_set set;
    struct err err = {0};
    struct config c = {.socket = path, .socket_given = true};

    (void)state;
    snprintf(path, sizeof path, "%s/s", folder);
    assert_int_equal(listen_open(&c, &set, &err), STATUS_OK);
    close(set.fds[0]);
    assert_int_equal(listen_open(&c, &set, &err), STATUS_OK);
    listen_close(&set);

    FILE *file = fopen(path, "we");

    assert_non_null(file);
    fputs("precious", file);
    fclose(file);
    assert_int_equal(listen_open(&c, &set, &err), STATUS_CONFLICT);
    assert_int_equal(unlink(path), 0);
}

static void test_bad_addresses(void **state)
{
    static const char *const bad[] = {"127.0.0.1:", "127.0.0.1:port", "no.such.host.invalid:1",
                                      "127.0.0.1:99999", "300.0.0.1:80"};
    char path[300];
    struct listen_set set;
    struct err err = {0};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct config c = {.listen = bad[i]};
        enum status status = listen_open(&c, &set, &err);

        if (status == STATUS_OK) {
            print_error("%s is accepted\n", bad[i]);
        }
        assert_int_not_equal(status, STATUS_OK);
    }
    struct config none = {0};

    assert_int_equal(listen_open(&none, &set, &err), STATUS_INVALID_ARGUMENT);
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    struct config longer = {.socket = path, .socket_given = true};

    assert_int_equal(listen_open(&longer, &set, &err), STATUS_INVALID_ARGUMENT);
}

/* ---- service manager --------------------------------------------------------------------- */

static void test_notify(void **state)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int manager = socket(AF_UNIX, SOCK_DGRAM, 0);
    char message[100] = {0};

    (void)state;
    snprintf(name.sun_path, sizeof name.sun_path, "%s/n", folder);
    assert_int_equal(bind(manager, (struct sockaddr *)&name, sizeof name), 0);
    setenv("NOTIFY_SOCKET", name.sun_path, 1);
    setenv("WATCHDOG_USEC", "30000000", 1);
    struct sd_notify n = sd_notify_open();

    assert_null(getenv("NOTIFY_SOCKET"));
    assert_int_equal(n.watchdog_ms, 15000);
    sd_notify_send(&n, "READY=1");
    assert_int_equal(recv(manager, message, sizeof message - 1, 0), 7);
    assert_string_equal(message, "READY=1");
    sd_notify_close(&n);
    close(manager);
    unlink(name.sun_path);
}

static void test_nobody_to_notify(void **state)
{
    (void)state;
    unsetenv("NOTIFY_SOCKET");
    setenv("WATCHDOG_USEC", "30000000", 1);
    struct sd_notify n = sd_notify_open();

    assert_int_equal(n.fd, -1);
    assert_int_equal(n.watchdog_ms, -1);
    sd_notify_send(&n, "READY=1");
    sd_notify_close(&n);

    setenv("NOTIFY_SOCKET", "/nowhere/at/all", 1);
    n = sd_notify_open();
    assert_int_equal(n.fd, -1);
    sd_notify_close(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_modes),
        cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_sockets),
        cmocka_unit_test(test_what_other_machines_may_reach),
        cmocka_unit_test(test_all_addresses),
        cmocka_unit_test(test_a_name_left_behind),
        cmocka_unit_test(test_bad_addresses),
        cmocka_unit_test(test_notify),
        cmocka_unit_test(test_nobody_to_notify),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
