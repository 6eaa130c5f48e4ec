/* listen.c: opens the sockets that the daemon serves. See listen.h.
 *
 * Jobs use the loopback, which is open to every local user. The Unix socket and the port for health
 * probes are for administrators, and have connection slots that no job can take. A connection
 * attempt shows whether the name of a socket was left by a killed daemon.
 */
#include "service/listen.h"

#include "base/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { LISTEN_BACKLOG = 512, LISTEN_FIRST_PASSED_FD = 3, LISTEN_SOCKET_MODE = 0660 };

/* Writes an address in the form "127.0.0.1:17322", or the path of a Unix socket. */
static void listen_name(const struct sockaddr *address, socklen_t length, char *out,
                        size_t out_size)
{
    char host[80], port[16];

    if (address->sa_family == AF_UNIX) {
        snprintf(out, out_size, "%s", ((const struct sockaddr_un *)address)->sun_path);
    } else if (getnameinfo(address, length, host, sizeof host, port, sizeof port,
                           NI_NUMERICHOST | NI_NUMERICSERV) == 0) {
        bool v6 = address->sa_family == AF_INET6;

        snprintf(out, out_size, "%s%s%s:%s", v6 ? "[" : "", host, v6 ? "]" : "", port);
    } else {
        snprintf(out, out_size, "?");
    }
}

/* Adds a socket under the name of its address. */
static void listen_add(struct listen_set *set, int fd, enum listen_role role)
{
    struct sockaddr_storage address = {0};
    socklen_t length = sizeof address;

    (void)getsockname(fd, (struct sockaddr *)&address, &length);
    listen_name((const struct sockaddr *)&address, length, set->addresses[set->count],
                sizeof set->addresses[0]);
    set->roles[set->count] = role;
    set->fds[set->count++] = fd;
}

/* Returns the role of descriptor `i`, by its name in the list "a:b:c" and by its family. */
static enum listen_role listen_inherited_role(const char *names, int i, int fd)
{
    struct sockaddr_storage address = {0};
    socklen_t length = sizeof address;

    for (; names && i > 0; i--) {
        names = strchr(names, ':');
        names = names ? names + 1 : NULL;
    }
    if (names) {
        const char *health = strstr(names, "health");

        if (health && health < names + strcspn(names, ":"))
            return LISTEN_HEALTH;
    }
    bool named = getsockname(fd, (struct sockaddr *)&address, &length) == 0;

    return named && address.ss_family == AF_UNIX ? LISTEN_UNIX : LISTEN_TCP;
}

/* Takes the sockets that systemd passes: descriptors 3, 4, ... (sd_listen_fds(3)). */
static enum status listen_inherited(struct listen_set *set, struct err *err)
{
    const char *pid = getenv("LISTEN_PID");
    const char *count_text = getenv("LISTEN_FDS");
    const char *names = getenv("LISTEN_FDNAMES");
    long count = count_text ? strtol(count_text, NULL, 10) : 0;
    bool ours = pid && strtol(pid, NULL, 10) == (long)getpid();

    if (!ours || count <= 0)
        return STATUS_OK;
    if (count > LISTEN_MAX)
        return err_set(err, STATUS_INVALID_ARGUMENT, "%ld sockets were passed; at most %d are used",
                       count, LISTEN_MAX);
    for (int fd = LISTEN_FIRST_PASSED_FD; fd < LISTEN_FIRST_PASSED_FD + (int)count; fd++) {
        int listening = 0;
        socklen_t length = sizeof listening;

        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &length) < 0 || !listening)
            return err_set(
                err, STATUS_INVALID_ARGUMENT,
                "descriptor %d, passed by the service manager, is not a listening socket", fd);
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
        listen_add(set, fd, listen_inherited_role(names, fd - LISTEN_FIRST_PASSED_FD, fd));
    }
    return STATUS_OK;
}

/* Clears the variables, so that workers do not use these sockets. */
static void listen_forget_inherited(void)
{
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
}

/* Splits "[::1]:17322" or "127.0.0.1:17322" in place. The host of ":17322" is NULL, which means all
 * addresses. */
static void listen_split(char *text, const char **host, const char **port)
{
    char *colon = strrchr(text, ':');

    *colon = '\0';
    *port = colon + 1;
    if (text[0] == '[' && colon > text && colon[-1] == ']') {
        colon[-1] = '\0';
        text++;
    }
    *host = *text ? text : NULL;
}

/* Returns a new socket. A socket of IPv6 that is bound to all addresses serves those of IPv4 too,
 * whatever the default of the system (net.ipv6.bindv6only). Returns -1 and sets errno on failure.
 */
static int listen_socket(int family)
{
    const int on = 1;
    const int off = 0;
    const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (fd >= 0 && family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    return fd;
}

/* Takes another port of the same host, under the name of the requested port. So a check
 * (--check-config) does not fail because a running daemon has the address. The check does fail if
 * the other socket is in the same configuration. */
static bool listen_stand_in(const struct addrinfo *asked, enum listen_role role,
                            struct listen_set *set)
{
    char name[LISTEN_TEXT_BYTES];
    struct sockaddr_storage address = {0};

    listen_name(asked->ai_addr, asked->ai_addrlen, name, sizeof name);
    for (uint32_t i = 0; i < set->count; i++) {
        if (strcmp(set->addresses[i], name) == 0)
            return false;
    }
    memcpy(&address, asked->ai_addr, asked->ai_addrlen);
    ((struct sockaddr_in *)&address)->sin_port = 0; /* at the same place in sockaddr_in6 */
    int fd = listen_socket(asked->ai_family);

    if (fd < 0)
        return false;
    if (bind(fd, (struct sockaddr *)&address, asked->ai_addrlen) < 0) {
        close(fd);
        return false;
    }
    listen_add(set, fd, role);
    snprintf(set->addresses[set->count - 1], sizeof set->addresses[0], "%s", name);
    return true;
}

/* Binds a socket to the address. */
static enum status listen_bind(const struct addrinfo *address, const char *name,
                               enum listen_role role, struct listen_set *set, struct err *err)
{
    int fd = listen_socket(address->ai_family);

    if (fd >= 0 && bind(fd, address->ai_addr, address->ai_addrlen) == 0 &&
        listen(fd, LISTEN_BACKLOG) == 0) {
        listen_add(set, fd, role);
        return STATUS_OK;
    }
    const int error = errno;

    if (fd >= 0)
        close(fd);
    if (error == EADDRINUSE && set->checking && listen_stand_in(address, role, set))
        return STATUS_OK;
    return err_set(err, error == EADDRINUSE ? STATUS_CONFLICT : STATUS_IO,
                   "cannot listen on %s: %s", name, strerror(error));
}

/* Returns the family of a socket for all addresses: IPv6, which includes IPv4, if the kernel has
 * it.
 */
static int listen_family(void)
{
    const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return AF_INET;
    close(fd);
    return AF_INET6;
}

static enum status listen_tcp(const char *address, enum listen_role role, struct listen_set *set,
                              struct err *err)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    const char *host, *port;
    char text[LISTEN_TEXT_BYTES];

    snprintf(text, sizeof text, "%s", address);
    listen_split(text, &host, &port);
    if (strspn(port, "0123456789") != strlen(port) || !*port ||
        strtoul(port, NULL, 10) > UINT16_MAX)
        return err_set(err, STATUS_INVALID_ARGUMENT,
                       "cannot listen on %s: the port must be 0 to 65535", address);
    if (!host)
        hints.ai_family = listen_family();
    int error = getaddrinfo(host, port, &hints, &found);

    if (error)
        return err_set(err, STATUS_INVALID_ARGUMENT, "cannot listen on %s: %s", address,
                       gai_strerror(error));
    enum status status = listen_bind(found, address, role, set, err);

    freeaddrinfo(found);
    return status;
}

static bool listen_is_socket(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

/* Removes the name of a socket if no process listens on it. */
static enum status listen_clear(const struct sockaddr_un *name, struct err *err)
{
    struct stat st;

    if (lstat(name->sun_path, &st) < 0)
        return STATUS_OK;
    if (!S_ISSOCK(st.st_mode))
        return err_set(err, STATUS_CONFLICT,
                       "%s exists and is not a socket; reachd does not replace the file",
                       name->sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool alive = fd >= 0 && connect(fd, (const struct sockaddr *)name, sizeof *name) == 0;

    if (fd >= 0)
        close(fd);
    if (alive)
        return err_set(err, STATUS_CONFLICT, "another process serves %s", name->sun_path);
    if (unlink(name->sun_path) < 0)
        return err_set(err, STATUS_IO, "cannot remove %s: %s", name->sun_path, strerror(errno));
    return STATUS_OK;
}

static enum status listen_unix(const char *path, struct listen_set *set, struct err *err)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    char directory[sizeof name.sun_path];

    if (strlen(path) >= sizeof name.sun_path)
        return err_set(err, STATUS_INVALID_ARGUMENT, "the socket's path is longer than %zu bytes",
                       sizeof name.sun_path - 1);
    snprintf(name.sun_path, sizeof name.sun_path, "%s", path);
    snprintf(directory, sizeof directory, "%s", path);
    const char *parent = dirname(directory);
    const bool made = mkdir(parent, 0755) == 0;

    if (!made && errno != EEXIST)
        return err_set(err, STATUS_IO, "cannot create %s: %s", parent, strerror(errno));
    if (made && set->checking)
        snprintf(set->made_directory, sizeof set->made_directory, "%s", parent);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    /* A connection attempt would start a service that waits behind its socket. */
    if (fd >= 0 && set->checking && listen_is_socket(path)) {
        listen_add(set, fd, LISTEN_UNIX);
        return STATUS_OK;
    }
    enum status status = listen_clear(&name, err);

    if (status) {
        if (fd >= 0)
            close(fd);
        return status;
    }
    if (fd < 0 || bind(fd, (const struct sockaddr *)&name, sizeof name) < 0 ||
        chmod(path, LISTEN_SOCKET_MODE) < 0 || listen(fd, LISTEN_BACKLOG) < 0) {
        status = err_set(err, STATUS_IO, "cannot listen on %s: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return status;
    }
    listen_add(set, fd, LISTEN_UNIX);
    snprintf(set->unlink_path, sizeof set->unlink_path, "%s", path);
    return STATUS_OK;
}

/* Returns an error about a requested socket, and logs an error about a default socket. */
static enum status listen_tolerate(enum status status, bool given, const struct err *local,
                                   struct err *err)
{
    if (status && given)
        return err_set(err, status, "%s", local->text);
    if (status)
        log_warning("%s; continuing without this address", local->text);
    return STATUS_OK;
}

/* Returns the address of `listen` with the next port. If the port of `listen` is 0, the next port
 * is 0 too. Returns "" if there is no next port. */
static void listen_next_port(const char *listen, char *out, size_t out_size)
{
    const char *colon = strrchr(listen, ':');
    unsigned long port = strtoul(colon + 1, NULL, 10);

    if (port == UINT16_MAX) {
        out[0] = '\0';
    } else {
        snprintf(out, out_size, "%.*s:%lu", (int)(colon - listen), listen, port ? port + 1 : 0);
    }
}

static enum status listen_health(const struct config *config, struct listen_set *set,
                                 struct err *err)
{
    char address[LISTEN_TEXT_BYTES] = "";
    struct err local = {0};

    if (config->health) {
        snprintf(address, sizeof address, "%s", config->health);
    } else if (!config->health_given && config->listen) {
        listen_next_port(config->listen, address, sizeof address);
    }
    if (!address[0])
        return STATUS_OK;
    return listen_tolerate(listen_tcp(address, LISTEN_HEALTH, set, &local), config->health_given,
                           &local, err);
}

enum status listen_open(const struct config *config, struct listen_set *out, struct err *err)
{
    struct err local = {0};
    enum status status;

    *out = (struct listen_set){.checking = config->mode == CONFIG_CHECK};
    status = listen_inherited(out, err);
    listen_forget_inherited();
    if (status || out->count)
        return status;
    if (config->listen) {
        /* Clients find the daemon by its port, so the port is left out only on request. */
        status = listen_tcp(config->listen, LISTEN_TCP, out, err);
    }
    if (!status && config->socket) {
        status = listen_unix(config->socket, out, &local);
        status = listen_tolerate(status, config->socket_given, &local, err);
    }
    status = status ? status : listen_health(config, out, err);
    if (!status && out->count == 0)
        status = err_set(err, STATUS_INVALID_ARGUMENT,
                         "no port and no socket to serve: set --listen or --socket");
    if (status)
        listen_close(out);
    return status;
}

static bool listen_is_local(int fd)
{
    struct sockaddr_storage address = {0};
    socklen_t length = sizeof address;

    if (getsockname(fd, (struct sockaddr *)&address, &length) < 0)
        return false;
    if (address.ss_family == AF_INET6) {
        const struct in6_addr *a = &((const struct sockaddr_in6 *)&address)->sin6_addr;

        return IN6_IS_ADDR_LOOPBACK(a) || (IN6_IS_ADDR_V4MAPPED(a) && a->s6_addr[12] == 127);
    }
    if (address.ss_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)&address)->sin_addr.s_addr) >> 24 == 127;
    return address.ss_family == AF_UNIX;
}

enum status listen_check_local(const struct listen_set *set, struct err *err)
{
    for (uint32_t i = 0; i < set->count; i++) {
        /* Nothing can be changed over the port for probes, and probes often come from another
         * machine. */
        if (set->roles[i] != LISTEN_HEALTH && !listen_is_local(set->fds[i]))
            return err_set(err, STATUS_INVALID_ARGUMENT,
                           "%s can be reached from other machines and requires a token: serve a "
                           "loopback address, or set --token-file",
                           set->addresses[i]);
    }
    return STATUS_OK;
}

void listen_close(struct listen_set *set)
{
    for (uint32_t i = 0; i < set->count; i++) {
        if (set->fds[i] >= 0)
            close(set->fds[i]);
    }
    set->count = 0;
    if (set->unlink_path[0])
        unlink(set->unlink_path);
    if (set->made_directory[0])
        rmdir(set->made_directory);
}
