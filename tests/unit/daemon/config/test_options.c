/* test_options.c: options on the command line, in the environment and in a file. */
#include "config/config.h"
#include "config/config_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { TEXT_BYTES = 400, RANDOM_CASES = 2000 };

static char folder[] = "/tmp/reach-options-XXXXXX";
static char path[80];

static int make_folder(void **state)
{
    (void)state;
    unsetenv("REACHD_CONFIG");
    snprintf(path, sizeof path, "%s", mkdtemp(folder) ? folder : "");
    strcat(path, "/reachd.conf");
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static void write_file(const char *text)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* Parses "reachd --config PATH" and up to two more arguments. A config points into the arguments,
 * so they exist until the next call. */
static enum status parse(struct config *out, const char *first, const char *second, struct err *err)
{
    static char name[] = "reachd", option[] = "--config", a[TEXT_BYTES], b[TEXT_BYTES];
    char *argv[] = {name, option, path, first ? a : NULL, second ? b : NULL, NULL};

    snprintf(a, sizeof a, "%s", first ? first : "");
    snprintf(b, sizeof b, "%s", second ? second : "");
    return config_parse(first ? second ? 5 : 4 : 3, argv, out, err);
}

/* Returns a valid value of an option that is not its default. */
static const char *sample(const struct config_option *o)
{
    switch (o->type) {
    case CONFIG_PLACE:
        return o->check ? "[::1]:80" : "/tmp/place";
    case CONFIG_BYTES:
        return "3M";
    case CONFIG_NUMBER:
        return "7";
    case CONFIG_DURATION:
        return "2h";
    case CONFIG_SWITCH:
        return o->on ? "no" : "yes";
    case CONFIG_WORD:
        return o->words[1].name;
    case CONFIG_TEXT:
    case CONFIG_LIST:
    case CONFIG_DEPTHS:
    case CONFIG_FLAG:
        break;
    }
    return "some text";
}

static void variable(const char *name, char out[64])
{
    snprintf(out, 64, "REACHD_%s", name);
    for (char *s = out; *s; s++) {
        *s = *s == '-' ? '_' : *s >= 'a' && *s <= 'z' ? (char)(*s - 'a' + 'A') : *s;
    }
}

static void test_every_option_in_every_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < config_option_count; i++) {
        const struct config_option *o = &config_options[i];
        struct config plain = config_defaults(), file, environment, line;
        struct err err = {0};
        char text[TEXT_BYTES], name[64], shown[40];

        if (o->section == CONFIG_ONCE) {
            continue;
        }
        snprintf(text, sizeof text, "# a comment\n\n  %s =  %s \t\r\n", o->name, sample(o));
        write_file(text);
        assert_int_equal(parse(&file, NULL, NULL, &err), STATUS_OK);
        assert_string_equal(file.file, path);
        write_file("");
        variable(o->name, name);
        setenv(name, sample(o), 1);
        assert_int_equal(parse(&environment, NULL, NULL, &err), STATUS_OK);
        assert_string_equal(environment.unknown_variable, "");
        unsetenv(name);
        if (o->type == CONFIG_SWITCH) {
            snprintf(text, sizeof text, "--%s%s", o->on ? "no-" : "", o->name);
        } else {
            snprintf(text, sizeof text, "--%s=%s", o->name, sample(o));
        }
        assert_int_equal(parse(&line, text, NULL, &err), STATUS_OK);
        const char *value = config_show(&line, o, 0, shown, sizeof shown);

        if (!value || strcmp(value, sample(o)) != 0) {
            print_error("%s: %s\n", o->name, value ? value : "nothing");
        }
        assert_string_equal(value, sample(o));
        assert_true(config_same(&file, &line, o) && config_same(&environment, &line, o));
        assert_false(config_same(&plain, &line, o));
        config_free(&file);
        config_free(&environment);
        config_free(&line);
    }
}

static void test_the_later_place_wins(void **state)
{
    struct config c;
    struct err err = {0};

    (void)state;
    write_file("log-level = error\nlog-format = json\nlisten = 127.0.0.1:1\n"
               "simulate = k80\nsimulate = p100\nmeasure-on-start = no\n");
    setenv("REACHD_LISTEN", "127.0.0.1:2", 1);
    setenv("REACHD_LOG_FORMAT", "", 1); /* an empty variable counts as not set */
    assert_int_equal(parse(&c, "--listen=127.0.0.1:3", "--measure-on-start", &err), STATUS_OK);
    assert_string_equal(c.listen, "127.0.0.1:3");
    assert_int_equal(c.log_level, LOG_LEVEL_ERROR);
    assert_int_equal(c.log_format, LOG_FORMAT_JSON);
    assert_true(c.measure_on_start);
    assert_string_equal(c.simulated[1], "p100");
    config_free(&c);

    setenv("REACHD_SIMULATE", "h200; k80 ;a100-80g", 1);
    assert_int_equal(parse(&c, NULL, NULL, &err), STATUS_OK);
    assert_string_equal(c.listen, "127.0.0.1:2");
    assert_string_equal(c.simulated[0], "h200");
    assert_string_equal(c.simulated[1], "k80");
    assert_string_equal(c.simulated[2], "a100-80g");
    assert_null(c.simulated[3]);
    config_free(&c);
    assert_int_equal(parse(&c, "--simulate", "h100-80g", &err), STATUS_OK);
    assert_string_equal(c.simulated[0], "h100-80g");
    assert_null(c.simulated[1]);
    config_free(&c);
    unsetenv("REACHD_SIMULATE");
    unsetenv("REACHD_LISTEN");
    unsetenv("REACHD_LOG_FORMAT");
}

/* Every wrong file is refused, with its name, the line and the option. */
static void test_wrong_files(void **state)
{
    static const char *const cases[][2] = {
        {"log-level = loud", ":1: log-level must be one of"},
        {"\n\nnonsense = 1", ":3: nonsense is not an option"},
        {"listen", ":1: listen: a line must be NAME = VALUE"},
        {"= 3", ":1:  is not an option"},
        {"[section]", ":1: [section]: a line must be"},
        {"log-rate = 1\nlog-rate = 2", ":2: log-rate is given twice"},
        {"log-rate =", ":1: log-rate needs a value"},
        {"log-rate = -1", ":1: log-rate must be a number from 0"},
        {"log-rate = 5 # five", ":1: log-rate must be a number"},
        {"probe-deadline-ms = 0", "must be a number from 1"},
        {"demo = maybe", ":1: demo must be yes or no"},
        {"demo = YES", "must be yes or no"},
        {"measure = quick", ":1: measure belongs on the command line"},
        {"help = yes", "belongs on the command line"},
        {"config = /x", "belongs on the command line"},
        {"memory-limit = 0", "must not be 0"},
        {"listen = 17322", "must be ADDRESS:PORT"},
    };
    struct config c;
    struct err err = {0};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_file(cases[i][0]);
        assert_int_equal(parse(&c, NULL, NULL, &err), STATUS_INVALID_ARGUMENT);
        if (!strstr(err.text, cases[i][1]) || !strstr(err.text, path)) {
            print_error("%s: %s\n", cases[i][0], err.text);
        }
        assert_non_null(strstr(err.text, cases[i][1]));
        assert_non_null(strstr(err.text, path));
        assert_int_equal(c.blame, CONFIG_FILE);
        config_free(&c);
    }
    assert_int_equal(config_read_text(&c, "x", "demo = no\0\n", 11, &err), STATUS_INVALID_ARGUMENT);
}

static void test_files_that_are_none(void **state)
{
    char name[] = "reachd", none[] = "--config=none", zero[] = "--config=/dev/zero",
         nowhere[] = "--config=/nowhere/reachd.conf";
    struct config c;
    struct err err = {0};

    (void)state;
    assert_int_equal(config_parse(2, (char *[]){name, none, NULL}, &c, &err), STATUS_OK);
    assert_null(c.file);
    config_free(&c);
    assert_int_equal(config_parse(2, (char *[]){name, zero, NULL}, &c, &err),
                     STATUS_INVALID_ARGUMENT);
    assert_int_equal(config_parse(2, (char *[]){name, nowhere, NULL}, &c, &err),
                     STATUS_INVALID_ARGUMENT);
    assert_int_equal(c.blame, CONFIG_FILE);

    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(parse(&c, NULL, NULL, &err), STATUS_INVALID_ARGUMENT);
    unlink(path);
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    for (int i = 0; i <= CONFIG_MAX_FILE_BYTES; i++) {
        fputc('#', file);
    }
    fclose(file);
    assert_int_equal(parse(&c, NULL, NULL, &err), STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "65536"));

    setenv("REACHD_CONFIG", path, 1);
    write_file("log-rate = 9\n");
    assert_int_equal(config_parse(1, (char *[]){name, NULL}, &c, &err), STATUS_OK);
    assert_int_equal(c.log_rate, 9);
    config_free(&c);
    unsetenv("REACHD_CONFIG");
}

static void test_wrong_environment(void **state)
{
    struct config c;
    struct err err = {0};

    (void)state;
    write_file("");
    setenv("REACHD_LOG_RATE", "many", 1);
    assert_int_equal(parse(&c, NULL, NULL, &err), STATUS_INVALID_ARGUMENT);
    assert_string_equal(err.text,
                        "REACHD_LOG_RATE must be a number from 0 to 1000000, not \"many\"");
    assert_int_equal(c.blame, CONFIG_ENVIRONMENT);
    unsetenv("REACHD_LOG_RATE");
    setenv("REACHD_LOGRATE", "5", 1);
    assert_int_equal(parse(&c, NULL, NULL, &err), STATUS_OK);
    assert_string_equal(c.unknown_variable, "REACHD_LOGRATE");
    config_free(&c);
    unsetenv("REACHD_LOGRATE");
    assert_int_equal(parse(&c, "--log-rate=x", NULL, &err), STATUS_INVALID_ARGUMENT);
    assert_int_equal(c.blame, CONFIG_COMMAND_LINE);
    config_free(&c);
}

/* Options that may change while the daemon serves are changed. The other options are reported, and
 * texts keep their addresses. */
static void test_renew(void **state)
{
    struct config old = config_defaults(), fresh = config_defaults();
    const char *const text = "log-level = debug\nlog-rate = 3\nstate = /elsewhere\n"
                             "simulate = k80\ndemo = yes\n";
    char others[100];
    struct err err = {0};

    (void)state;
    assert_int_equal(config_read_text(&fresh, "x", text, strlen(text), &err), STATUS_OK);
    config_reload(&old, &fresh, others, sizeof others);
    assert_int_equal(old.log_level, LOG_LEVEL_DEBUG);
    assert_int_equal(old.log_rate, 3);
    assert_string_equal(others, "state demo simulate");
    assert_string_equal(old.state, config_defaults().state);
    assert_null(old.simulated[0]);
    config_free(&fresh);
    for (size_t i = 0; i < config_option_count; i++) {
        const struct config_option *o = &config_options[i];

        assert_true(!o->live || o->type == CONFIG_BYTES || o->type == CONFIG_NUMBER ||
                    o->type == CONFIG_SWITCH || o->type == CONFIG_WORD);
    }
}

/* ---- random files ------------------------------------------------------------------------ */

static size_t random_file(char *out, size_t size)
{
    size_t used = 0;
    const int lines = rand() % 8;

    for (int i = 0; i < lines && used < size - 100; i++) {
        const struct config_option *o = &config_options[(size_t)rand() % config_option_count];

        used += (size_t)snprintf(out + used, size - used, "%s%s = %s\n", rand() % 9 ? "" : "#",
                                 o->name, rand() % 9 ? sample(o) : "no");
    }
    for (int i = rand() % 12; i > 9 && used > 0; i--) {
        out[(size_t)rand() % used] = (char)rand();
    }
    return used;
}

/* A file is refused with a reason. Otherwise, the output of --check-config for the file is a config
 * with the same values. */
static void test_printed_and_read_again(void **state)
{
    const char *given = getenv("TEST_SEED");
    const unsigned seed = given ? (unsigned)strtoul(given, NULL, 10) : (unsigned)time(NULL);
    unsigned taken = 0;

    (void)state;
    print_message("# TEST_SEED=%u\n", seed);
    srand(seed);
    for (int n = 0; n < RANDOM_CASES; n++) {
        struct config one = config_defaults(), other = config_defaults();
        struct err err = {0};
        char text[1000], *printed = NULL;
        size_t size = random_file(text, sizeof text), printed_size = 0;

        if (config_read_text(&one, "one", text, size, &err)) {
            assert_true(err.text[0] != '\0');
            config_free(&one);
            continue;
        }
        taken++;
        FILE *out = open_memstream(&printed, &printed_size);

        config_print(&one, out);
        fclose(out);
        assert_int_equal(config_read_text(&other, "other", printed, printed_size, &err), STATUS_OK);
        for (size_t i = 0; i < config_option_count; i++) {
            assert_true(config_options[i].section == CONFIG_ONCE ||
                        config_same(&one, &other, &config_options[i]));
        }
        free(printed);
        config_free(&one);
        config_free(&other);
    }
    assert_true(taken > RANDOM_CASES / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_option_in_every_place),
        cmocka_unit_test(test_the_later_place_wins),
        cmocka_unit_test(test_wrong_files),
        cmocka_unit_test(test_files_that_are_none),
        cmocka_unit_test(test_wrong_environment),
        cmocka_unit_test(test_renew),
        cmocka_unit_test(test_printed_and_read_again),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
