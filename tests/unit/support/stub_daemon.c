/* stub_daemon.c: see stub_daemon.h. */
#include "tests/unit/support/stub_daemon.h"

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

enum { REQUEST_BYTES = 4096, POLL_MS = 20 };

struct connection {
    int fd; /* descriptor of the connection; -1 if the place is free */
    size_t bytes;
    char request[REQUEST_BYTES];
};

static void say(int fd, const char *text, size_t bytes)
{
    while (bytes > 0) {
        const ssize_t n = send(fd, text, bytes, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        text += n;
        bytes -= (size_t)n;
    }
}

static bool has_tag(const char *request, const char *tag)
{
    char field[160];

    snprintf(field, sizeof(field), "If-None-Match: \"%s\"", tag ? tag : "");
    return tag && strstr(request, field);
}

/* Returns true if the connection must be closed. */
static bool answer(struct stub_daemon *stub, int fd, const char *request)
{
    char target[1024] = "";
    char *text = NULL;
    struct stub_reply r;
    const char *body;
    size_t bytes = 0;
    FILE *out;

    sscanf(request, "GET %1023s", target);
    r = stub->reply(stub->cls, target);
    atomic_fetch_add(&stub->requests, 1);
    if (r.manner == STUB_SILENT || r.manner == STUB_CLOSES)
        return r.manner == STUB_CLOSES;
    body = r.body ? r.body : "";
    out = open_memstream(&text, &bytes);
    if (!out)
        abort();
    if (r.manner == STUB_BABBLES) {
        fputs("what do you want?\r\n\r\n", out);
    } else if (has_tag(request, r.tag)) {
        atomic_fetch_add(&stub->not_modified, 1);
        fprintf(out, "HTTP/1.1 304 Not Modified\r\nETag: \"%s\"\r\n\r\n", r.tag);
    } else {
        fprintf(out, "HTTP/1.1 %d X\r\nContent-Length: %zu\r\n",
                r.http_status ? r.http_status : 200, strlen(body));
        if (r.tag)
            fprintf(out, "ETag: \"%s\"\r\n", r.tag);
        if (r.id)
            fprintf(out, "X-Request-Id: %s\r\n", r.id);
        fprintf(out, "\r\n%s", body);
    }
    fclose(out);
    say(fd, text, r.manner == STUB_BREAKS ? bytes - strlen(body) / 2 : bytes);
    free(text);
    return r.manner != STUB_SAYS;
}

static void serve(struct stub_daemon *stub, struct connection *c)
{
    const ssize_t n = recv(c->fd, c->request + c->bytes, REQUEST_BYTES - 1 - c->bytes, 0);
    bool done = n <= 0;

    c->bytes += n > 0 ? (size_t)n : 0;
    c->request[c->bytes] = '\0';
    if (!done && strstr(c->request, "\r\n\r\n")) {
        done = answer(stub, c->fd, c->request);
        c->bytes = 0;
    }
    if (done) {
        close(c->fd);
        c->fd = -1;
    }
}

static void admit(struct stub_daemon *stub, struct connection *all)
{
    const int fd = accept(stub->listener, NULL, NULL);

    if (fd >= 0)
        atomic_fetch_add(&stub->connections, 1);

    for (int i = 0; fd >= 0 && i < STUB_CONNECTIONS; i++) {
        if (all[i].fd < 0) {
            all[i] = (struct connection){.fd = fd};
            return;
        }
    }
    if (fd >= 0)
        close(fd);
}

static void *run(void *cls)
{
    struct stub_daemon *stub = cls;
    struct connection *all = calloc(STUB_CONNECTIONS, sizeof(*all));
    struct pollfd fds[STUB_CONNECTIONS + 1];

    if (!all)
        abort();
    for (int i = 0; i < STUB_CONNECTIONS; i++)
        all[i].fd = -1;
    while (!atomic_load(&stub->stop)) {
        for (int i = 0; i < STUB_CONNECTIONS; i++)
            fds[i] = (struct pollfd){.fd = all[i].fd, .events = POLLIN};
        fds[STUB_CONNECTIONS] = (struct pollfd){.fd = stub->listener, .events = POLLIN};
        poll(fds, STUB_CONNECTIONS + 1, POLL_MS);
        for (int i = 0; i < STUB_CONNECTIONS; i++) {
            if (fds[i].revents)
                serve(stub, &all[i]);
        }
        if (fds[STUB_CONNECTIONS].revents)
            admit(stub, all);
    }
    for (int i = 0; i < STUB_CONNECTIONS; i++) {
        if (all[i].fd >= 0)
            close(all[i].fd);
    }
    free(all);
    return NULL;
}

void stub_start(struct stub_daemon *stub, stub_fn *reply, void *cls)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    *stub = (struct stub_daemon){.folder = "/tmp/reach-stub-XXXXXX", .reply = reply, .cls = cls};
    assert_non_null(mkdtemp(stub->folder));
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/s", stub->folder);
    snprintf(stub->where, sizeof(stub->where), "unix:%s/s", stub->folder);
    stub->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(stub->listener >= 0);
    assert_int_equal(bind(stub->listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(stub->listener, STUB_CONNECTIONS), 0);
    assert_int_equal(pthread_create(&stub->thread, NULL, run, stub), 0);
}

void stub_stop(struct stub_daemon *stub)
{
    if (atomic_exchange(&stub->stop, true))
        return;
    pthread_join(stub->thread, NULL);
    close(stub->listener);
    unlink(stub->where + strlen("unix:"));
    rmdir(stub->folder);
}
