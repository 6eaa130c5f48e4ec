/* test_spank.c: the SPANK plugin with stand-ins for Slurm and for the daemon. For any behavior of
 * the daemon, every hook returns 0, and a job gets either all variables or none. */
#include "tests/unit/support/raw_daemon.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if __has_include(<slurm/spank.h>)
#include <slurm/spank.h>

/* ---- Slurm's side: the environment of one task, and a log ---- */

enum { SLOTS = 400 };

static char *env[SLOTS + 1];
static int count;
static struct spank_option option;
static int debug_lines;
static int error_lines;

static int find(const char *name)
{
    const size_t n = strlen(name);

    for (int i = 0; i < count; i++) {
        if (strncmp(env[i], name, n) == 0 && env[i][n] == '=')
            return i;
    }
    return -1;
}

static const char *value_of(const char *name)
{
    const int i = find(name);

    return i < 0 ? NULL : env[i] + strlen(name) + 1;
}

spank_err_t spank_unsetenv(spank_t spank, const char *var)
{
    const int i = find(var);

    (void)spank;
    if (i < 0)
        return ESPANK_BAD_ARG;
    free(env[i]);
    env[i] = env[--count];
    env[count] = NULL;
    return ESPANK_SUCCESS;
}

spank_err_t spank_setenv(spank_t spank, const char *var, const char *val, int overwrite)
{
    char *text = NULL;

    if (find(var) >= 0 && !overwrite)
        return ESPANK_ENV_EXISTS;
    (void)spank_unsetenv(spank, var);
    assert_true(count < SLOTS && asprintf(&text, "%s=%s", var, val) > 0);
    env[count++] = text;
    env[count] = NULL;
    return ESPANK_SUCCESS;
}

spank_err_t spank_getenv(spank_t spank, const char *var, char *buf, int len)
{
    const char *value = value_of(var);

    (void)spank;
    if (!value)
        return ESPANK_ENV_NOEXIST;
    (void)snprintf(buf, (size_t)len, "%s", value);
    return strlen(value) < (size_t)len ? ESPANK_SUCCESS : ESPANK_NOSPACE;
}

spank_err_t spank_get_item(spank_t spank, spank_item_t item, ...)
{
    va_list args;

    (void)spank;
    assert_int_equal(item, S_JOB_ENV);
    va_start(args, item);
    *va_arg(args, char ***) = env;
    va_end(args);
    return ESPANK_SUCCESS;
}

spank_err_t spank_option_register(spank_t spank, struct spank_option *opt)
{
    (void)spank;
    option = *opt;
    return ESPANK_SUCCESS;
}

void slurm_debug(const char *format, ...)
{
    (void)format;
    debug_lines++;
}

void slurm_error(const char *format, ...)
{
    (void)format;
    error_lines++;
}

/* ---- the device files; this function replaces access() of the C library ---- */

static const char *files; /* for each /dev/nvidiaN: '+' allowed, '-' forbidden by a cgroup, '.' by
                             rights; there are no others */

int access(const char *path, int mode)
{
    unsigned n = 0;

    (void)mode;
    if (sscanf(path, "/dev/nvidia%u", &n) == 1 && files && n < strlen(files) && files[n] == '+')
        return 0;
    errno = !files || n >= strlen(files) ? ENOENT : files[n] == '-' ? EPERM : EACCES;
    return -1;
}

/* ---- one task ---- */

static int open_files(void)
{
    DIR *all = opendir("/proc/self/fd");
    int n = 0;

    assert_non_null(all);
    while (readdir(all))
        n++;
    closedir(all);
    return n;
}

static void begin(const char *visible)
{
    while (count > 0)
        free(env[--count]);
    env[0] = NULL;
    debug_lines = 0;
    error_lines = 0;
    (void)spank_setenv(NULL, "PATH", "/bin", 1);
    if (visible)
        (void)spank_setenv(NULL, "CUDA_VISIBLE_DEVICES", visible, 1);
}

/* Calls the hooks in the order of slurmstepd; `more` is an additional argument in
 * plugstack.conf. */
static void run(const char *path, const char *more)
{
    char socket[128];
    char deadline[] = "deadline_ms=1000"; /* the largest value that the plugin accepts */
    char on[] = "default=auto";
    char room[] = "max_kib=128";
    char last[64];
    char *av[] = {socket, deadline, on, room, last};

    (void)snprintf(socket, sizeof(socket), "socket=%s", path);
    (void)snprintf(last, sizeof(last), "%s", more ? more : "");
    assert_int_equal(slurm_spank_init(NULL, more ? 5 : 4, av), 0);
    assert_int_equal(slurm_spank_task_init_privileged(NULL, 0, NULL), 0);
    assert_int_equal(slurm_spank_task_init(NULL, 0, NULL), 0);
}

#define LINES "REACH_SCOPE_BYTES=5\nREACH_JOB={\"a\":1}\n"

static void test_variables_arrive(void **state)
{
    struct raw_daemon d = {.answer = raw_http(200, LINES)};

    (void)state;
    raw_start(&d);
    begin("0,GPU-7");
    run(d.path, NULL);
    assert_non_null(strstr(d.last, "GET /v1/gpus/GPU-7/environment HTTP/1.1\r\n"));
    assert_int_equal(atomic_load(&d.requests), 2);
    assert_string_equal(value_of("REACH_JOB_0"), "{\"a\":1}");
    assert_string_equal(value_of("REACH_SCOPE_BYTES_0"), "5");
    assert_string_equal(value_of("REACH_JOB_1"), "{\"a\":1}");
    assert_string_equal(value_of("PATH"), "/bin");
    assert_int_equal(count, 2 + 4);
    assert_int_equal(debug_lines, 0);
    raw_stop(&d);
}

/* Variables of an enclosing step are always removed, even if there are no new ones. */
static void test_inherited(void **state)
{
    struct raw_daemon d = {.answer = raw_http(200, LINES)};

    (void)state;
    raw_start(&d);
    for (int i = 0; i < 2; i++) {
        begin("0");
        (void)spank_setenv(NULL, "REACH_JOB_0", "old", 1);
        (void)spank_setenv(NULL, "REACH_JOB_1", "old", 1);
        (void)spank_setenv(NULL, "REACH_WINDOWS_0", "old", 1);
        (void)spank_setenv(NULL, "REACH_LIBRARY", "mine", 1);
        run(i ? "/nowhere" : d.path, NULL);
        assert_string_equal(value_of("REACH_LIBRARY"), "mine");
        assert_null(value_of("REACH_JOB_1"));
        assert_null(value_of("REACH_WINDOWS_0"));
        assert_int_equal(value_of("REACH_JOB_0") == NULL, i);
    }
    raw_stop(&d);
}

static void nothing_came(int lines, const char *what)
{
    if (count != 2)
        fail_msg("%s: %d variables, the last %s", what, count, env[count - 1]);
    if (debug_lines != lines)
        fail_msg("%s: %d lines in the log", what, debug_lines);
    assert_int_equal(error_lines, 0);
}

static void test_no_answer_no_change(void **state)
{
    static const char huge[] =
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2147483648\r\n\r\nREACH_";
    struct raw_daemon all[] = {
        {.answer = NULL},                             /* hung */
        {.answer = "what do you want?\r\n\r\n"},      /* no HTTP */
        {.answer = raw_http(200, "LD_PRELOAD=/x\n")}, /* no reachd */
        {.answer = huge, .endless = true},
        {.answer = "HTTP/1.1 2", .closes = true},
        {.answer = "", .bytes = 0, .closes = true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        char what[32];
        (void)snprintf(what, sizeof(what), "daemon %zu", i);
        raw_start(&all[i]);
        begin("0");
        run(all[i].path, i == 0 ? "deadline_ms=40" : NULL);
        nothing_came(1, what);
        raw_stop(&all[i]);
    }
    begin("0");
    run("/nowhere/reachd.sock", NULL);
    nothing_came(1, "no daemon");
}

/* A GPU that is not measured or is unknown to reachd gets no variables, which is not an error. */
static void test_unknown_gpu(void **state)
{
    static const int statuses[] = {404, 409, 500, 503};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct raw_daemon d = {.answer = raw_http(statuses[i], "{}")};
        raw_start(&d);
        begin("0,1");
        run(d.path, NULL);
        nothing_came(i < 2 ? 2 : 1, "refused");
        assert_int_equal(atomic_load(&d.requests), i < 2 ? 2 : 1);
        raw_stop(&d);
    }
}

static void test_no_gpus(void **state)
{
    struct raw_daemon d = {.answer = raw_http(200, LINES)};

    (void)state;
    raw_start(&d);
    begin(NULL);
    run(d.path, NULL);
    assert_int_equal(count, 1);
    assert_int_equal(debug_lines, 0);
    assert_int_equal(atomic_load(&d.requests), 0);
    raw_stop(&d);
}

/* The numbers of a constrained task count the GPUs whose device files it may open, whatever numbers
 * Slurm gives to them. */
static void test_constrained(void **state)
{
    static const struct {
        const char *files;
        const char *order;
        const char *name;
    } cases[] = {
        {"++++", "", "cuda:0"},   {"..+", "", "cuda:0"},       {"-----", "", "cuda:0"},
        {"----+", "", "pci:0@4"}, {"+-.-+", "", "cuda:0@0,4"}, {"+---+", "PCI_BUS_ID", "pci:0@0,4"},
    };
    struct raw_daemon d = {.answer = raw_http(200, LINES)};
    char wanted[64];

    (void)state;
    raw_start(&d);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        begin("0");
        (void)spank_setenv(NULL, "CUDA_DEVICE_ORDER", cases[i].order, 1);
        (void)spank_setenv(NULL, "SLURM_STEP_GPUS", "0", 1);
        files = cases[i].files;
        run(d.path, NULL);
        files = NULL;
        (void)snprintf(wanted, sizeof(wanted), "GET /v1/gpus/%s/environment HTTP/1.1\r\n",
                       cases[i].name);
        if (!strstr(d.last, wanted))
            fail_msg("%s: %.80s", cases[i].files, d.last);
        assert_non_null(value_of("REACH_JOB_0"));
    }
    raw_stop(&d);
}

/* A list that does not fit is no list of some of the files. */
static void test_many_files(void **state)
{
    char many[257] = "";
    struct raw_daemon d = {.answer = raw_http(200, LINES)};

    (void)state;
    raw_start(&d);
    memset(many, '+', sizeof(many) - 1);
    many[0] = '-';
    files = many;
    begin("0");
    run(d.path, NULL);
    files = NULL;
    assert_non_null(strstr(d.last, "GET /v1/gpus/cuda:0/environment"));
    raw_stop(&d);
}

static void test_room(void **state)
{
    char *lines = calloc(1, 40 << 10);
    struct raw_daemon d = {.answer = NULL};

    (void)state;
    assert_non_null(lines);
    strcpy(lines, "REACH_JOB=");
    memset(lines + strlen(lines), 'x', 30 << 10);
    strcat(lines, "\n");
    d.answer = raw_http(200, lines);
    raw_start(&d);
    begin("0,1,2");
    run(d.path, "max_kib=64"); /* there is room for two variables */
    assert_non_null(value_of("REACH_JOB_1"));
    assert_null(value_of("REACH_JOB_2"));
    assert_int_equal(debug_lines, 1);
    raw_stop(&d);
    free(lines);
}

/* ---- messages ---- */

static void test_option(void **state)
{
    struct raw_daemon d = {.answer = raw_http(200, LINES)};

    (void)state;
    raw_start(&d);
    begin("0");
    run(d.path, "default=off");
    assert_int_equal(count, 2);
    assert_int_equal(atomic_load(&d.requests), 0);
    assert_string_equal(option.name, "reach");
    assert_int_equal(option.has_arg, 1);
    assert_int_equal(option.cb(option.val, "auto", 1),
                     0); /* the option of the user overrides plugstack.conf */
    assert_int_equal(slurm_spank_task_init_privileged(NULL, 0, NULL), 0);
    assert_int_equal(slurm_spank_task_init(NULL, 0, NULL), 0);
    assert_non_null(value_of("REACH_JOB_0"));
    assert_int_equal(option.cb(option.val, "off", 1), 0);
    (void)spank_unsetenv(NULL, "REACH_JOB_0");
    assert_int_equal(slurm_spank_task_init_privileged(NULL, 0, NULL), 0);
    assert_int_equal(slurm_spank_task_init(NULL, 0, NULL), 0);
    assert_null(value_of("REACH_JOB_0"));
    raw_stop(&d);
}

/* An invalid value is refused only when the option is parsed. */
static void test_wrong_word(void **state)
{
    static const char *const wrong[] = {"", "AUTO", "on", "auto ", "offf"};

    (void)state;
    begin("0");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        assert_int_equal(option.cb(option.val, wrong[i], 0), -1);
        assert_int_equal(error_lines, (int)i + 1);
        assert_int_equal(option.cb(option.val, wrong[i], 1), 0);
    }
    assert_int_equal(option.cb(option.val, NULL, 0), -1);
}

static void test_wrong_arguments(void **state)
{
    static const char *const wrong[] = {"",
                                        "socket=relative",
                                        "deadline_ms=0",
                                        "deadline_ms=1001",
                                        "deadline_ms=9999999999",
                                        "deadline_ms=5s",
                                        "max_kib=-1",
                                        "default=maybe",
                                        "verbose"};
    struct raw_daemon d = {.answer = raw_http(200, LINES)};

    (void)state;
    raw_start(&d);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        begin("0");
        run(d.path, wrong[i]); /* an invalid argument is reported and skipped; the other arguments
                                  are valid */
        assert_int_equal(debug_lines, 1);
        assert_non_null(value_of("REACH_JOB_0"));
    }
    raw_stop(&d);
}

/* The stand-in also opens files while it serves. So the number of open files is compared before the
 * first task and after the last. */
static int files_at_first;

static int count_files(void **state)
{
    (void)state;
    files_at_first = open_files();
    return 0;
}

static int let_go(void **state)
{
    (void)state;
    assert_int_equal(open_files(), files_at_first);
    while (count > 0)
        free(env[--count]);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_variables_arrive),
        cmocka_unit_test(test_inherited),
        cmocka_unit_test(test_no_answer_no_change),
        cmocka_unit_test(test_unknown_gpu),
        cmocka_unit_test(test_no_gpus),
        cmocka_unit_test(test_constrained),
        cmocka_unit_test(test_many_files),
        cmocka_unit_test(test_room),
        cmocka_unit_test(test_option),
        cmocka_unit_test(test_wrong_word),
        cmocka_unit_test(test_wrong_arguments),
    };

    return cmocka_run_group_tests(tests, count_files, let_go);
}

#else
int main(void)
{
    puts("1..0 # SKIP no slurm/spank.h (libslurm-dev): this build is without the plugin");
    return 0;
}
#endif
