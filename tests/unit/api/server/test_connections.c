/* test_connections.c: finds the connections that are past their deadline, and compares them with
 * one clock per connection. */
#include "api/server/connections.h"

#include "base/rng.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PLACES = 24, STEPS = 4000, DEADLINE = 1000 };

/* A connection is a pair of sockets. The far end is readable when the near end is shut down. */
struct place {
    struct connection *client; /* NULL if the place is free */
    int far;
    int near;
    nsec_t since;
    bool answered;
};

static void open_place(struct connections *all, struct place *p, nsec_t now)
{
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    p->near = pair[0];
    p->far = pair[1];
    p->client = connections_add(all, p->near, now);
    assert_non_null(p->client);
    p->since = now;
    p->answered = false;
}

static void close_place(struct connections *all, struct place *p)
{
    connections_remove(all, p->client);
    close(p->near);
    close(p->far);
    p->client = NULL;
}

static bool is_cut(const struct place *p)
{
    char byte;

    return recv(p->far, &byte, 1, MSG_DONTWAIT) == 0;
}

/* Connections that are due are cut and all others are not. The next due time is neither past nor
 * late. */
static void reap(struct connections *all, struct place *places, nsec_t now)
{
    nsec_t next_due = 0;
    uint64_t wanted = 0;
    uint64_t cut = 0;
    const nsec_t again = connections_reap(all, now, DEADLINE, &cut);

    for (int i = 0; i < PLACES; i++) {
        struct place *p = &places[i];
        if (!p->client)
            continue;
        const bool due = now - p->since >= DEADLINE;
        assert_int_equal(is_cut(p), due);
        wanted += due;
        if (due)
            close_place(all, p);
        else if (next_due == 0 || p->since + DEADLINE < next_due)
            next_due = p->since + DEADLINE;
    }
    assert_int_equal(cut, wanted);
    assert_true(again == 0 || again > now);
    if (next_due > 0)
        assert_true(again > 0 && again <= (next_due > now + 8 ? next_due : now + 8));
}

static void test_against_each_clock(void **state)
{
    const char *given = getenv("REACH_SEED");
    struct rng rng = {.state = given ? strtoull(given, NULL, 0) : 20261121};
    struct place places[PLACES] = {{0}};
    struct connections all = {0};
    nsec_t now = 5000;
    uint32_t open = 0;

    (void)state;
    print_message("# REACH_SEED=%llu\n", (unsigned long long)rng.state);
    for (int step = 0; step < STEPS; step++) {
        struct place *p = &places[rng_below(&rng, PLACES)];
        now += (nsec_t)rng_below(&rng, 100);
        if (!p->client) {
            open_place(&all, p, now);
        } else if (p->client->in_request) {
            connections_end(&all, p->client, now);
            p->since = now;
            p->answered = true;
        } else if (rng_below(&rng, 8) == 0) {
            close_place(&all, p);
        } else {
            connections_begin(&all, p->client, now);
            p->since = p->answered ? now : p->since; /* the time of the first request counts from
                                                        the opening of the connection */
        }
        if (rng_below(&rng, 4) == 0)
            reap(&all, places, now);
        open = 0;
        for (int i = 0; i < PLACES; i++)
            open += places[i].client != NULL;
        assert_int_equal(all.count, open);
    }
    for (int i = 0; i < PLACES; i++)
        if (places[i].client)
            close_place(&all, &places[i]);
    assert_null(all.first);
    assert_int_equal(all.in_request, 0);
}

static void test_nobody(void **state)
{
    struct connections all = {0};
    uint64_t cut = 0;

    (void)state;
    assert_int_equal(connections_reap(&all, 7, DEADLINE, &cut), 0);
    assert_int_equal(cut, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_each_clock),
        cmocka_unit_test(test_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
