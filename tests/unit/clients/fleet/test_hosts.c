/* test_hosts.c: every spelling of a host becomes one name, and other texts are refused with a
 * reason. Expanded host lists are compared with an independent expansion, on random lists.
 * TEST_SEED repeats a run. */
#include "clients/fleet/hosts.h"

#include "base/rng.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

enum { CASES = 3000, TEXT_BYTES = 65536 };

static struct rng rng;

static void one_spelling(void **state)
{
    static const char *const pairs[][2] = {
        {"n17", "n17:17322"},
        {"N17.Example.COM", "n17.example.com:17322"},
        {"n17:1", "n17:1"},
        {"n17:065535", "n17:65535"},
        {"10.0.0.7", "10.0.0.7:17322"},
        {"under_score-1", "under_score-1:17322"},
        {"::1", "[::1]:17322"},
        {"[::1]", "[::1]:17322"},
        {"[FE80:0:0:0:0:0:0:17]:99", "[fe80::17]:99"},
        {"http://n17", "n17:80"},
        {"HTTP://n17:17322/", "n17:17322"},
        {"http://n17:17322///", "n17:17322"},
        {"http://gate/n17/", "http://gate:80/n17"},
        {"https://gate", "https://gate:443"},
        {"https://gate:8443/a/b%2Fc~d", "https://gate:8443/a/b%2Fc~d"},
        {"https://[::1]/x", "https://[::1]:443/x"},
        {"unix:/run/reachd/reachd.sock", "unix:/run/reachd/reachd.sock"},
        {"unix:///run/r.sock", "unix:/run/r.sock"},
        {"unix", "unix:17322"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(pairs); i++) {
        struct hosts h;
        struct err err = {0};
        hosts_begin(&h, HOSTS_DEFAULT_PORT);
        if (hosts_add(&h, pairs[i][0], &err) != STATUS_OK)
            fail_msg("%s: %s", pairs[i][0], err.text);
        assert_string_equal(h.names[0], pairs[i][1]);
        /* The parsed name is a spelling of itself, for any default port. */
        h.port = 1;
        assert_int_equal(hosts_add(&h, h.names[0], &err), STATUS_OK);
        assert_int_equal(h.count, 1);
        assert_int_equal(h.again, 1);
        hosts_free(&h);
    }
}

static void what_is_no_host(void **state)
{
    static char long_name[300];
    static char long_path[130] = "unix:/";
    static const char *const bad[][2] = {
        {"", "name"},
        {"-", "does not begin"},
        {"--db", "does not begin"},
        {".x", "does not begin"},
        {"a..b", "two dots"},
        {"a b", "after the name"},
        {"n[1-2]", "after the name"},
        {"a:0", "port"},
        {"a:65536", "port"},
        {"a:99999999999999999999", "port"},
        {"a:", "port"},
        {"a:-1", "port"},
        {"a:80x", "after the name"},
        {"a:80/x", "must be a URL"},
        {"[::1", "brackets"},
        {"[::g]", "brackets"},
        {"[]", "name"},
        {"[::1%eth0]:5", "brackets"},
        {"http://", "name"},
        {"https:///x", "name"},
        {"http://user@n1", "user or a password"},
        {"http://user:secret@n1", "port"},
        {"user@n1", "user or a password"},
        {"http://n1/?a=1", "nothing else"},
        {"http://n1/#x", "nothing else"},
        {"http://n1/%zz", "nothing else"},
        {"http://n1/%1", "nothing else"},
        {"http://n1/a b", "nothing else"},
        {"ftp://n1", "port"},
        {"n1\n", "after the name"},
        {"n\x1b[31m1", "after the name"},
        {"n\xc3\xa4", "after the name"},
        {"unix:", "port"},
        {"unix:run/x", "port"},
        {"unix:/", "needs a path"},
        {"unix:/a b", "cannot hold"},
        {"unix:/a\n", "cannot hold"},
        {long_name, "too long"},
        {long_path, "107 bytes"},
    };

    (void)state;
    memset(long_name, 'a', 254);
    memset(long_path + 6, 'a', 107);
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct hosts h;
        struct err err = {0};
        hosts_begin(&h, HOSTS_DEFAULT_PORT);
        if (hosts_add(&h, bad[i][0], &err) != STATUS_INVALID_ARGUMENT)
            fail_msg("\"%s\" was taken as %s", bad[i][0], h.names[0]);
        if (!strstr(err.text, bad[i][1]))
            fail_msg("\"%s\": %s", bad[i][0], err.text);
        assert_null(strpbrk(err.text, "\n\x1b"));
        assert_int_equal(h.count, 0);
        hosts_free(&h);
    }
}

static void asked_by(void **state)
{
    char url[HOSTS_NAME_BYTES + 8];

    (void)state;
    assert_null(hosts_url("n1:17322", url));
    assert_string_equal(url, "http://n1:17322");
    assert_null(hosts_url("https://n1:443/x", url));
    assert_string_equal(url, "https://n1:443/x");
    assert_string_equal(hosts_url("unix:/run/r.sock", url), "/run/r.sock");
    assert_string_equal(url, "http://localhost");
}

/* ---- lists ---- */

static void is_list(const struct hosts *h, const char *const *names, size_t count)
{
    assert_int_equal(h->count, count);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(h->names[i], names[i]);
}

static void lines(void **state)
{
    static const char text[] = "# the rack by the door\r\n"
                               "n1\r\n\n   \t\n"
                               "\tn2:99  # its second port\n"
                               "n1:17322\n#n4\nhttps://n3\nn5";
    static const char *const names[] = {"n1:17322", "n2:99", "https://n3:443", "n5:17322"};
    struct hosts h;
    struct err err = {0};

    (void)state;
    hosts_begin(&h, HOSTS_DEFAULT_PORT);
    assert_int_equal(hosts_add_lines(&h, text, sizeof(text) - 1, &err), STATUS_OK);
    is_list(&h, names, COUNT(names));
    assert_int_equal(h.again, 1);
    assert_int_equal(hosts_add_lines(&h, "a\nb c\n", 6, &err), STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "line 2"));
    assert_int_equal(hosts_add_lines(&h, "a\0b\n", 4, &err), STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "line 1"));
    hosts_free(&h);
}

static void file_sd(void **state)
{
    static const char text[] =
        "[{\"targets\": [\"n1:9\", \"n2\"], \"labels\": {\"rack\": \"7\"}},"
        " {\"targets\": [\"n3:8443\", \"[::1]:5\", \"n1:9\"],"
        "  \"labels\": {\"__scheme__\": \"https\", \"__metrics_path__\": \"/m\"}},"
        " {\"targets\": [], \"labels\": {}}, {\"targets\": [\"n4\"]}]";
    static const char *const names[] = {
        "n1:9", "n2:17322", "https://n3:8443", "https://[::1]:5", "https://n1:9", "n4:17322"};
    static const char *const bad[][2] = {
        {"{}", "list of groups"},
        {"[", "not JSON"},
        {"[] x", "not JSON"},
        {"[1]", "group 0"},
        {"[{\"targets\": \"n1\"}]", "not a list"},
        {"[{\"targets\": []}, {\"targets\": [1]}]", "group 1: target 0"},
        {"[{\"targets\": [\"a b\"]}]", "after the name"},
        {"[{\"targets\": [\"a\"], \"labels\": {\"__scheme__\": \"gopher\"}}]", "neither"},
        {"[{\"targets\": [\"a\"], \"labels\": {\"__scheme__\": 1}}]", "neither"},
        {"[{\"targets\": [\"a\"], \"targets\": [\"b\"]}]", "not JSON"},
        {"[{\"targets\": [\"a@b\"], \"labels\": {\"__scheme__\": \"https\"}}]", "user"},
    };
    struct hosts h;
    struct err err = {0};

    (void)state;
    hosts_begin(&h, HOSTS_DEFAULT_PORT);
    assert_int_equal(hosts_add_file_sd(&h, text, sizeof(text) - 1, &err), STATUS_OK);
    is_list(&h, names, COUNT(names));
    hosts_free(&h);
    for (size_t i = 0; i < COUNT(bad); i++) {
        hosts_begin(&h, HOSTS_DEFAULT_PORT);
        if (hosts_add_file_sd(&h, bad[i][0], strlen(bad[i][0]), &err) != STATUS_INVALID_ARGUMENT ||
            !strstr(err.text, bad[i][1]))
            fail_msg("%s: %s", bad[i][0], err.text);
        hosts_free(&h);
    }
}

static void no_more_than_so_many(void **state)
{
    struct hosts h;
    struct err err = {0};
    char text[32];

    (void)state;
    hosts_begin(&h, 5);
    h.most = 1000;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 1000; i++) {
            snprintf(text, sizeof(text), "n%d", i);
            assert_int_equal(hosts_add(&h, text, &err), STATUS_OK);
        }
    }
    assert_int_equal(h.again, 1000);
    assert_int_equal(hosts_add(&h, "one-more", &err), STATUS_FULL);
    for (int i = 0; i < 1000; i++) {
        snprintf(text, sizeof(text), "n%d:5", i);
        assert_string_equal(h.names[i], text);
    }
    hosts_free(&h);
}

/* ---- Slurm ---- */

struct text {
    char bytes[TEXT_BYTES];
    size_t n;
};

static void put(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(struct text *t, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    t->n += (size_t)vsnprintf(t->bytes + t->n, sizeof(t->bytes) - t->n, format, args);
    va_end(args);
    assert_true(t->n < sizeof(t->bytes));
}

static enum status append(void *self, const char *host, struct err *err)
{
    (void)err;
    put(self, "%s ", host);
    return STATUS_OK;
}

/* The lists have the form of `scontrol show hostnames` of Slurm 22.05, but on one line. */
static void slurm_lists(void **state)
{
    static const char *const pairs[][2] = {
        {"n1", "n1 "},
        {"n[1]", "n1 "},
        {"n[1-3]", "n1 n2 n3 "},
        {"n[001-003]", "n001 n002 n003 "},
        {"n[08-11]", "n08 n09 n10 n11 "},
        {"n[8-11]", "n8 n9 n10 n11 "},
        {"n[099-101]", "n099 n100 n101 "},
        {"a[1-3,7]b[01-02]", "a1b01 a1b02 a2b01 a2b02 a3b01 a3b02 a7b01 a7b02 "},
        {"login,n[1-2],x[3]-ib", "login n1 n2 x3-ib "},
        {"n[1-2].cluster:99", "n1.cluster:99 n2.cluster:99 "},
        {"[1-2]", "1 2 "},
        {"n[00-01][5,4]", "n005 n004 n015 n014 "},
    };
    static const char *const bad[][2] = {
        {"", "missing"},           {",", "missing"},
        {"a,", "missing"},         {"a,,b", "missing"},
        {"n[", "missing"},         {"n[]", "missing"},
        {"n[1", "not closed"},     {"n[1-", "missing"},
        {"n[1-2", "not closed"},   {"n]", "not opened"},
        {"n[1]]", "not opened"},   {"n[2-1]", "reversed"},
        {"n[1,]", "missing"},      {"n[a]", "missing"},
        {"n[1-2,[3]]", "missing"}, {"n[-1]", "missing"},
        {"n[1-010]", "different"}, {"n[1234567890123]", "12 digits"},
        {"n[1 ]", "not closed"},   {"[1][1][1][1][1][1][1][1][1]", "8 parts"},
    };
    struct text *const t = malloc(sizeof(*t));

    (void)state;
    assert_non_null(t);
    for (size_t i = 0; i < COUNT(pairs); i++) {
        struct err err = {0};
        t->n = 0;
        assert_int_equal(hosts_expand(pairs[i][0], 100, append, t, &err), STATUS_OK);
        assert_string_equal(t->bytes, pairs[i][1]);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct err err = {0};
        t->n = 0;
        if (hosts_expand(bad[i][0], 100, append, t, &err) != STATUS_INVALID_ARGUMENT ||
            !strstr(err.text, bad[i][1]))
            fail_msg("%s: %s", bad[i][0], err.text);
        assert_int_equal(t->n, 0); /* an error leaves the list empty */
    }
    free(t);
}

/* The expansion of a list that is too large does not begin. */
static void slurm_limits(void **state)
{
    static const char *const large[] = {
        "n[1-101]",          "n[1-10]x[1-11]",
        "n[0-999999999999]", "a[0-999999999999]b[0-999999999999]c[0-999999999999]d[0-999999999999]",
        "n[1-60],m[1-41]",   "[0-999999999999,0-999999999999,0-999999999999]",
    };
    struct text *const t = calloc(1, sizeof(*t));

    (void)state;
    assert_non_null(t);
    for (size_t i = 0; i < COUNT(large); i++) {
        struct err err = {0};
        assert_int_equal(hosts_expand(large[i], 100, append, t, &err), STATUS_FULL);
        assert_int_equal(t->n, 0);
    }
    assert_int_equal(hosts_expand("n[1-100]", 100, append, t, NULL), STATUS_OK);
    free(t);
}

/* Makes a random item and appends its expression to `expression`. The item replaces each of the
 * `*count` names with several names. */
static void random_item(struct text *expression, char (*names)[64], uint32_t *count, uint32_t room)
{
    static char grown[4096][64];
    const uint64_t parts = 1 + rng_below(&rng, 3);

    *count = 1;
    names[0][0] = '\0';
    for (uint64_t p = 0; p < parts; p++) {
        const char letter = (char)('a' + rng_below(&rng, 26));
        const uint64_t ranges = rng_below(&rng, 4);
        uint32_t n = 0;
        char values[64][16];
        uint32_t value_count = 0;

        put(expression, "%c", letter);
        for (uint64_t r = 0; r < ranges; r++) {
            const uint64_t low = rng_below(&rng, rng_below(&rng, 2) ? 12 : 1200);
            const uint64_t high = low + rng_below(&rng, 5);
            const int width = (int)rng_below(&rng, 6);
            const bool single = high == low && rng_below(&rng, 2);
            put(expression, r == 0 ? "[%0*" PRIu64 : ",%0*" PRIu64, width, low);
            /* The upper bound has the padding of the lower bound, or none. Without padding the
             * bound has no leading zero. */
            if (!single)
                put(expression, "-%0*" PRIu64, rng_below(&rng, 2) ? width : 0, high);
            for (uint64_t v = low; v <= high; v++)
                snprintf(values[value_count++], sizeof(values[0]), "%0*" PRIu64, width, v);
        }
        if (ranges > 0)
            put(expression, "]");
        else
            values[value_count++][0] = '\0';
        for (uint32_t i = 0; i < *count; i++) {
            for (uint32_t k = 0; k < value_count && n < room; k++)
                snprintf(grown[n++], sizeof(grown[0]), "%.40s%c%.15s", names[i], letter, values[k]);
        }
        memcpy(names, grown, n * sizeof(grown[0]));
        *count = n;
    }
}

static void slurm_random(void **state)
{
    enum { MOST = 4096 };
    static char names[MOST][64];
    struct text *const expression = malloc(sizeof(*expression));
    struct text *const wanted = malloc(sizeof(*wanted));
    struct text *const got = malloc(sizeof(*got));
    uint64_t largest = 0;

    (void)state;
    assert_true(expression && wanted && got);
    for (int i = 0; i < CASES; i++) {
        struct err err = {0};
        uint32_t count;
        expression->n = wanted->n = got->n = 0;
        wanted->bytes[0] = got->bytes[0] = '\0';
        do {
            if (expression->n > 0)
                put(expression, ",");
            random_item(expression, names, &count, MOST);
            for (uint32_t k = 0; k < count; k++)
                put(wanted, "%s ", names[k]);
        } while (rng_below(&rng, 3) == 0 && wanted->n < TEXT_BYTES / 4);
        if (hosts_expand(expression->bytes, 1 << 20, append, got, &err) != STATUS_OK)
            fail_msg("%s: %s", expression->bytes, err.text);
        if (strcmp(got->bytes, wanted->bytes) != 0)
            fail_msg("%s gave %.2000s, not %.2000s", expression->bytes, got->bytes, wanted->bytes);
        largest = got->n > largest ? got->n : largest;
    }
    assert_true(largest > 1000);
    free(expression);
    free(wanted);
    free(got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_spelling), cmocka_unit_test(what_is_no_host),
        cmocka_unit_test(asked_by),     cmocka_unit_test(lines),
        cmocka_unit_test(file_sd),      cmocka_unit_test(no_more_than_so_many),
        cmocka_unit_test(slurm_lists),  cmocka_unit_test(slurm_limits),
        cmocka_unit_test(slurm_random),
    };
    const char *const given = getenv("TEST_SEED");

    rng.state = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    print_message("# TEST_SEED=%" PRIu64 "\n", rng.state);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
