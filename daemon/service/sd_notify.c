/* sd_notify.c: the service manager's protocol. See sd_notify.h. */
#include "service/sd_notify.h"

#include "base/log.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { NOTIFY_USEC_PER_MSEC = 1000 };

/* Half of WATCHDOG_USEC in milliseconds, or -1. */
static int sd_notify_watchdog_ms(void)
{
    const char *usec = getenv("WATCHDOG_USEC");
    const char *pid = getenv("WATCHDOG_PID");
    long long allowed = usec ? strtoll(usec, NULL, 10) : 0;

    if (allowed <= 0 || (pid && strtol(pid, NULL, 10) != (long)getpid())) {
        return -1;
    }
    long long ms = allowed / 2 / NOTIFY_USEC_PER_MSEC;

    return ms < 1 ? 1 : ms > INT_MAX ? INT_MAX : (int)ms;
}

struct sd_notify sd_notify_open(void)
{
    struct sd_notify n = {.fd = -1, .watchdog_ms = sd_notify_watchdog_ms()};
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    size_t length = path ? strlen(path) : 0;

    if (length > 1 && length < sizeof name.sun_path && (path[0] == '/' || path[0] == '@')) {
        memcpy(name.sun_path, path, length);
        if (path[0] == '@') {
            name.sun_path[0] = '\0'; /* the abstract namespace */
        }
        n.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (n.fd >= 0 &&
            connect(n.fd, (const struct sockaddr *)&name,
                    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) < 0) {
            log_warning("cannot reach the service manager at %s: %s", path, strerror(errno));
            close(n.fd);
            n.fd = -1;
        }
    }
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
    if (n.fd < 0) {
        n.watchdog_ms = -1;
    }
    return n;
}

void sd_notify_send(const struct sd_notify *n, const char *lines)
{
    if (n->fd >= 0 && send(n->fd, lines, strlen(lines), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
        log_debug("the service manager does not listen: %s", strerror(errno));
    }
}

void sd_notify_close(struct sd_notify *n)
{
    if (n->fd >= 0) {
        close(n->fd);
    }
    *n = (struct sd_notify){.fd = -1, .watchdog_ms = -1};
}
