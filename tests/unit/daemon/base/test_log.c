/* test_log.c: the lines of each log format. Logging never waits for a reader, and the number of
 * lines is limited. A process chooses the destination of its log once, so each case runs in a child
 * whose standard error the parent holds. */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { HANG_SECONDS = 1000, TEXT_BYTES = 1 << 20, FLOOD_LINES = 20000 };

static char text[TEXT_BYTES];

/* Runs `lines` in a child whose standard error is `fd`; -1 means no standard error. */
static pid_t start(void (*lines)(void), int fd)
{
    fflush(NULL);
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        alarm(HANG_SECONDS); /* a call that waits ends in SIGALRM */
        signal(SIGPIPE, SIG_IGN);
        unsetenv("JOURNAL_STREAM");
        if (fd < 0) {
            close(STDERR_FILENO);
        } else {
            dup2(fd, STDERR_FILENO);
        }
        lines();
        _exit(0);
    }
    return child;
}

static void ends_well(pid_t child)
{
    int status = 0;

    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* Reads `fd` to its end. */
static size_t read_all(int fd)
{
    size_t used = 0;
    ssize_t n;

    while ((n = read(fd, text + used, sizeof text - 1 - used)) > 0) {
        used += (size_t)n;
    }
    text[used] = '\0';
    return used;
}

static unsigned count_lines(void)
{
    unsigned count = 0;

    for (const char *s = text; (s = strchr(s, '\n')); s++) {
        count++;
    }
    return count;
}

/* Runs `lines` with a pipe and reads the output. */
static void logged(void (*lines)(void))
{
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    pid_t child = start(lines, ends[1]);

    close(ends[1]);
    read_all(ends[0]);
    close(ends[0]);
    ends_well(child);
}

/* ---- formats ----------------------------------------------------------------------------- */

static void a_few_lines(void)
{
    errno = ENOENT;
    log_warning("one %d", 1);
    if (errno != ENOENT) {
        _exit(1);
    }
    log_info("forged\nline\x1b[2J");
    log_debug("not shown");
    log_set_level(LOG_LEVEL_DEBUG);
    log_debug("a\"b\\c\nd");
    log_set_level(LOG_LEVEL_ERROR);
    log_warning("not shown either");
}

#define PLAIN_LINES "warning: one 1\nforged line [2J\ndebug: a\"b\\c d\n"

static void test_text(void **state)
{
    (void)state;
    logged(a_few_lines);
    assert_string_equal(text, PLAIN_LINES);
}

/* Sets JOURNAL_STREAM, like systemd does if it connects standard error to journald. */
static void a_few_lines_for_journald(void)
{
    struct stat st;
    char stream[64];

    fstat(STDERR_FILENO, &st);
    snprintf(stream, sizeof stream, "%llu:%llu", (unsigned long long)st.st_dev,
             (unsigned long long)st.st_ino);
    setenv("JOURNAL_STREAM", stream, 1);
    log_set_format(LOG_FORMAT_TEXT);
    a_few_lines();
}

static void test_text_for_journald(void **state)
{
    (void)state;
    logged(a_few_lines_for_journald);
    assert_string_equal(text, "<4>one 1\n<6>forged line [2J\n<7>a\"b\\c d\n");
}

static void a_few_json_lines(void)
{
    log_set_format(LOG_FORMAT_JSON);
    a_few_lines();
    log_error("\"quoted\" back\\slash \xc3\xa4 broken \xc3( \xff \xed\xa0\x80 end");
}

/* Returns one line of `text` as JSON and advances to the next line. */
static json_t *next_json(char **at)
{
    char *end = strchr(*at, '\n');
    json_error_t error;

    assert_non_null(end);
    json_t *line = json_loadb(*at, (size_t)(end - *at), JSON_REJECT_DUPLICATES, &error);

    if (!line) {
        print_error("%s: %.*s\n", error.text, (int)(end - *at), *at);
    }
    assert_non_null(line);
    *at = end + 1;
    return line;
}

static void check_member(json_t *line, const char *name, const char *value)
{
    const char *found = json_string_value(json_object_get(line, name));

    assert_non_null(found);
    assert_string_equal(found, value);
}

static void test_json(void **state)
{
    char *at = text;

    (void)state;
    logged(a_few_json_lines);
    assert_int_equal(count_lines(), 4);
    json_t *line = next_json(&at);

    check_member(line, "level", "warning");
    check_member(line, "message", "one 1");
    assert_true(json_is_integer(json_object_get(line, "pid")));
    assert_int_equal(strlen(json_string_value(json_object_get(line, "time"))), 24);
    json_decref(line);
    json_decref(next_json(&at));
    line = next_json(&at);
    check_member(line, "level", "debug");
    check_member(line, "message", "a\"b\\c d");
    json_decref(line);
    line = next_json(&at);
    check_member(line, "message", "\"quoted\" back\\slash \xc3\xa4 broken ?( ? ??? end");
    json_decref(line);
}

static void long_lines(void)
{
    static char quotes[5000];

    memset(quotes, '"', sizeof quotes - 1);
    log_error("%s", quotes);
    log_set_format(LOG_FORMAT_JSON);
    log_error("%s", quotes);
}

static void test_long_lines_are_cut(void **state)
{
    char *second;

    (void)state;
    logged(long_lines);
    assert_int_equal(count_lines(), 2);
    second = strchr(text, '\n') + 1;
    assert_true(second - text <= 4096 && strlen(second) <= 4096);
    json_decref(next_json(&second));
}

/* ---- journal ----------------------------------------------------------------------------- */

static char journal_path[80];

static void to_the_journal(void)
{
    log_set_journal(journal_path);
    log_set_format(LOG_FORMAT_JOURNAL);
    a_few_lines();
}

static void test_journal(void **state)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int journal = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    int null = open("/dev/null", O_WRONLY);

    (void)state;
    snprintf(journal_path, sizeof journal_path, "/tmp/reach-log-%d", (int)getpid());
    snprintf(name.sun_path, sizeof name.sun_path, "%s", journal_path);
    assert_int_equal(bind(journal, (struct sockaddr *)&name, sizeof name), 0);
    ends_well(start(to_the_journal, null));

    text[recv(journal, text, sizeof text - 1, 0)] = '\0';
    assert_string_equal(text, "PRIORITY=4\nSYSLOG_IDENTIFIER=reachd\nMESSAGE=one 1\n");
    assert_true(recv(journal, text, sizeof text - 1, 0) > 0);
    text[recv(journal, text, sizeof text - 1, 0)] = '\0';
    assert_string_equal(text, "PRIORITY=7\nSYSLOG_IDENTIFIER=reachd\nMESSAGE=a\"b\\c d\n");
    assert_int_equal(recv(journal, text, sizeof text - 1, 0), -1);
    close(journal);
    unlink(journal_path);
    close(null);

    /* No journal is listening, so the format is text. */
    logged(to_the_journal);
    assert_string_equal(text, PLAIN_LINES);
}

/* ---- no waiting, a limited number of lines ---------------------------------------------- */

static void flood(void)
{
    for (int i = 0; i < FLOOD_LINES; i++) {
        log_info("line %d, and what else there is to say about it, which is a good deal", i);
    }
    if (log_lost() == 0) {
        _exit(1);
    }
}

static void flood_the_journal(void)
{
    log_set_journal(journal_path);
    log_set_format(LOG_FORMAT_JOURNAL);
    flood();
}

/* Each of these descriptors accepts some lines and then no more, because it has no reader. */
static void test_nobody_reads(void **state)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    ends_well(start(flood, ends[1]));
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    ends_well(start(flood, ends[1]));
    close(ends[0]);
    close(ends[1]);
    int journal = socket(AF_UNIX, SOCK_DGRAM, 0);

    snprintf(name.sun_path, sizeof name.sun_path, "%s", journal_path);
    assert_int_equal(bind(journal, (struct sockaddr *)&name, sizeof name), 0);
    ends_well(start(flood_the_journal, -1));
    close(journal);
    unlink(journal_path);
}

/* The reader has closed the pipe, or there was never a reader. */
static void test_nobody_is_there(void **state)
{
    int ends[2];

    (void)state;
    ends_well(start(flood, -1));
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    ends_well(start(flood, ends[1]));
    close(ends[1]);
}

static int again[2]; /* the parent signals that it has read */

static void flood_then_one_more(void)
{
    char c;

    flood();
    if (write(again[1], "f", 1) != 1 || read(again[0], &c, 1) != 1) {
        _exit(1);
    }
    log_info("the last line");
}

static void test_what_was_lost_is_told(void **state)
{
    int ends[2];
    char c;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, again), 0);
    int parent = dup(again[0]), other = again[1];

    again[0] = again[1]; /* the child reads and writes the same end */
    again[1] = other;
    pid_t child = start(flood_then_one_more, ends[1]);

    assert_int_equal(read(parent, &c, 1), 1);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    read_all(ends[0]);
    unsigned seen = count_lines();

    assert_int_equal(write(parent, "g", 1), 1);
    ends_well(child);
    read_all(ends[0]);
    const char *told = strstr(text, " log lines are missing here: 0 above the rate, ");

    assert_non_null(told);
    assert_non_null(strstr(told, "\nthe last line\n"));
    assert_int_equal(atoi(strstr(text, "warning: ") + strlen("warning: ")) + (int)seen,
                     FLOOD_LINES);
    close(ends[0]);
    close(ends[1]);
    close(parent);
}

static void flood_with_a_rate(void)
{
    log_set_rate(20);
    flood();
    log_error("errors have a rate of their own");
    log_set_rate(0);
    log_info("the last line");
}

/* At any speed, the written lines and the reported losses add up to all lines. On a slow machine
 * some lines are written between losses, and each reports the losses before it. */
static void test_rate(void **state)
{
    unsigned missing = 0;
    unsigned lines = 0;

    (void)state;
    logged(flood_with_a_rate);
    assert_non_null(strstr(text, "errors have a rate of their own"));
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        if (strstr(line, " log lines are missing here: ")) {
            missing += (unsigned)atoi(strchr(line, ':') + 1);
        } else if (!strstr(line, "errors have a rate") && !strstr(line, "the last line")) {
            lines++;
        }
    }
    assert_int_equal(missing + lines, FLOOD_LINES);
    assert_true(lines >= 200);
    assert_true(missing > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_text_for_journald),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_long_lines_are_cut),
        cmocka_unit_test(test_journal),
        cmocka_unit_test(test_nobody_reads),
        cmocka_unit_test(test_nobody_is_there),
        cmocka_unit_test(test_what_was_lost_is_told),
        cmocka_unit_test(test_rate),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
