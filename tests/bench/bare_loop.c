/* bare_loop.c: a server that does the least possible work for an answer, as a baseline for real
 * servers.
 *
 *   bare_loop PORT BYTES
 *
 * One epoll loop reads the bytes that have arrived on a connection, ignores them, and sends one
 * answer with one call. The head and BYTES bytes of body are ready in memory. The time of an answer
 * is the time of the kernel: wake, receive, copy and send. A server over sockets can be faster only
 * if it avoids the copy.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EVENTS = 256, BACKLOG = 512, REQUEST_BYTES = 4096, HEAD_BYTES = 256, MAX_BYTES = 1 << 20 };

static int listen_on(unsigned short port)
{
    const struct sockaddr_in at = {.sin_family = AF_INET,
                                   .sin_port = htons(port),
                                   .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    const int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, (const struct sockaddr *)&at, sizeof(at)) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    close(fd);
    return -1;
}

static bool watch(int epoll_fd, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data = {.fd = fd}};

    return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

static void accept_all(int epoll_fd, int listener)
{
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            return;
        if (!watch(epoll_fd, fd))
            close(fd);
    }
}

/* Sockets block, so one client that does not read stops all others. load_client always reads. */
static void answer(int fd, const char *text, size_t bytes)
{
    char request[REQUEST_BYTES];
    ssize_t n = recv(fd, request, sizeof(request), 0);

    if (n <= 0) {
        close(fd);
        return;
    }
    while (bytes > 0) {
        n = send(fd, text, bytes, MSG_NOSIGNAL);
        if (n < 0)
            return;
        text += n;
        bytes -= (size_t)n;
    }
}

static void serve(int epoll_fd, int listener, const char *text, size_t bytes)
{
    struct epoll_event events[EVENTS];

    for (;;) {
        const int count = epoll_wait(epoll_fd, events, EVENTS, -1);
        if (count < 0 && errno != EINTR)
            return;
        for (int i = 0; i < count; i++) {
            if (events[i].data.fd == listener)
                accept_all(epoll_fd, listener);
            else
                answer(events[i].data.fd, text, bytes);
        }
    }
}

int main(int argc, char **argv)
{
    const unsigned long port = argc == 3 ? strtoul(argv[1], NULL, 10) : 0;
    const unsigned long bytes = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    static char text[HEAD_BYTES + MAX_BYTES];
    int epoll_fd;
    int listener;
    int head;

    if (port == 0 || port > 65535 || bytes == 0 || bytes > MAX_BYTES) {
        fprintf(stderr, "usage: bare_loop PORT BYTES\n");
        return 2;
    }
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    listener = listen_on((unsigned short)port);
    if (epoll_fd < 0 || listener < 0 || !watch(epoll_fd, listener)) {
        perror("bare_loop");
        return 1;
    }
    head = snprintf(
        text, HEAD_BYTES,
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %lu\r\n\r\n", bytes);
    memset(text + head, 'x', bytes);
    serve(epoll_fd, listener, text, (size_t)head + bytes);
    return 1;
}
