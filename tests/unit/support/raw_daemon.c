/* raw_daemon.c: see raw_daemon.h. */
#include "tests/unit/support/raw_daemon.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { POLL_MS = 5 };

static bool readable(const struct raw_daemon *d, int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    while (!atomic_load(&d->stop)) {
        if (poll(&p, 1, POLL_MS) > 0)
            return true;
    }
    return false;
}

/* Returns false if the client has closed the connection. */
static bool say(struct raw_daemon *d, int fd)
{
    size_t at = 0;

    while (!atomic_load(&d->stop) && at < d->bytes) {
        const size_t n = d->drips ? 1 : d->bytes - at;
        const ssize_t sent = send(fd, d->answer + at, n, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        at += (size_t)sent;
        if (d->drips)
            usleep(2000);
        if (d->endless && at == d->bytes)
            at = 0;
    }
    return !d->closes;
}

static void serve(struct raw_daemon *d, int fd)
{
    while (readable(d, fd)) {
        const ssize_t n = recv(fd, d->last, sizeof(d->last) - 1, 0);
        if (n <= 0)
            return;
        d->last[n] = '\0';
        atomic_fetch_add(&d->requests, 1);
        if (d->answer && !say(d, fd))
            return;
    }
}

static void *run(void *arg)
{
    struct raw_daemon *d = arg;

    while (readable(d, d->listener)) {
        const int fd = accept(d->listener, NULL, NULL);
        if (fd < 0)
            continue;
        serve(d, fd);
        close(fd);
    }
    return NULL;
}

void raw_start(struct raw_daemon *d)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};

    strcpy(d->folder, "/tmp/reach-raw-XXXXXX");
    assert_non_null(mkdtemp(d->folder));
    (void)snprintf(d->path, sizeof(d->path), "%s/sock", d->folder);
    strcpy(to.sun_path, d->path);
    if (d->answer && d->bytes == 0)
        d->bytes = strlen(d->answer);
    atomic_store(&d->stop, false);
    atomic_store(&d->requests, 0);
    d->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(d->listener >= 0);
    assert_int_equal(bind(d->listener, (struct sockaddr *)&to, sizeof(to)), 0);
    assert_int_equal(listen(d->listener, 8), 0);
    assert_int_equal(pthread_create(&d->thread, NULL, run, d), 0);
}

void raw_stop(struct raw_daemon *d)
{
    atomic_store(&d->stop, true);
    pthread_join(d->thread, NULL);
    close(d->listener);
    unlink(d->path);
    rmdir(d->folder);
}

const char *raw_http(int status, const char *body)
{
    static char text[256 << 10];

    (void)snprintf(text, sizeof(text),
                   "HTTP/1.1 %d X\r\nContent-Type: text/plain; charset=utf-8\r\n"
                   "Content-Length: %zu\r\n\r\n%s",
                   status, strlen(body), body);
    return text;
}
