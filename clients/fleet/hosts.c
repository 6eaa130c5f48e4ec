/* hosts.c: every spelling of a host becomes one name, and a tree tells which are there.
 *
 * Names come from people and from other programs, so what a name may have is listed, not what it
 * may not have: letters, digits, '.', '-', '_', colons in brackets, and in a path what needs no
 * escape. A name cannot be taken for an option, cannot carry a user or a password, and cannot break
 * a line of a report.
 */
#include "clients/fleet/hosts.h"

#include "clients/fleet/hostlist.h"

#include "base/text.h"

#include <arpa/inet.h>
#include <jansson.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

enum {
    LINE_BYTES = HOSTS_NAME_BYTES + 64, /* of a file, longer ones are no host */
    MOST_NAME = 253,                    /* of a DNS name */
    MOST_PORT = 65535,
    ROOM = 1024, /* of names, at a time */
    SHOWN_BYTES = 80
};

static const char HTTP[] = "http://";
static const char HTTPS[] = "https://";
static const char UNIX[] = "unix:"; /* and a path: a host may be called unix */
static const char NAME_CHARACTERS[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                      "0123456789.-_";
static const char PATH_CHARACTERS[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                      "0123456789.-_~/";

/* A host taken apart. */
struct place {
    bool tls;
    char host[MOST_NAME + 8]; /* with brackets where it is an IPv6 address */
    uint16_t port;
    const char *path; /* "" or from a slash on, without one at its end */
    size_t path_bytes;
};

void hosts_begin(struct hosts *out, uint16_t port)
{
    *out = (struct hosts){.port = port, .most = HOSTS_MOST};
}

void hosts_free(struct hosts *take)
{
    tdestroy(take->tree, free); /* the names */
    free(take->names);
    *take = (struct hosts){.port = take->port};
}

static enum status refuse(struct err *err, const char *text, const char *why)
{
    char shown[SHOWN_BYTES];

    snprintf(shown, sizeof(shown), "%s", text);
    text_tidy(shown);
    return err_set(err, STATUS_INVALID_ARGUMENT, "\"%s\" is not a host: %s", shown, why);
}

/* ---- one host ---- */

/* Moves `*at` behind the host. Brackets, or without a port a bare IPv6 address. */
static const char *read_host(const char **at, size_t bytes, struct place *out)
{
    char text[MOST_NAME + 1];
    struct in6_addr v6;
    const bool brackets = **at == '[';
    const size_t room = bytes - (size_t)brackets;
    size_t n = brackets ? strcspn(*at + 1, "]") : strspn(*at, NAME_CHARACTERS);

    if (n == 0 || n > room || n > MOST_NAME)
        return n == 0 ? "the name is missing or has characters that no name has"
                      : "the name is too long";
    memcpy(text, *at + brackets, n);
    text[n] = '\0';
    if (brackets) {
        if (inet_pton(AF_INET6, text, &v6) != 1 || n + 1 > room || (*at)[n + 1] != ']')
            return "what is in brackets is not an IPv6 address";
        out->host[0] = '[';
        inet_ntop(AF_INET6, &v6, out->host + 1, sizeof(out->host) - 2);
        strcat(out->host, "]");
        *at += n + 2;
        return NULL;
    }
    if (text[0] == '-' || text[0] == '.' || strstr(text, ".."))
        return "a name does not begin with - or ., and has no two dots side by side";
    for (size_t i = 0; i <= n; i++)
        out->host[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] + ('a' - 'A') : text[i]);
    *at += n;
    return NULL;
}

static const char *read_port(const char **at, struct place *out)
{
    uint32_t port = 0;

    if (**at != ':')
        return NULL;
    do {
        (*at)++;
        if (**at >= '0' && **at <= '9')
            port = port * 10 + (uint32_t)(**at - '0');
    } while (**at >= '0' && **at <= '9' && port <= MOST_PORT);
    if (port == 0 || port > MOST_PORT)
        return "a port is a number from 1 to 65535";
    out->port = (uint16_t)port;
    return NULL;
}

/* Up to the end; slashes at the end do not count. */
static const char *read_path(const char *at, struct place *out)
{
    size_t n = 0;

    while (at[n] != '\0') {
        if (at[n] == '%' && strspn(at + n + 1, "0123456789abcdefABCDEF") >= 2)
            n += 3;
        else if (strchr(PATH_CHARACTERS, at[n]))
            n++;
        else
            return "a URL here has a scheme, a host, a port and a path, and nothing else";
    }
    while (n > 0 && at[n - 1] == '/')
        n--;
    out->path = at;
    out->path_bytes = n;
    return NULL;
}

static const char *read_place(const char *text, uint16_t port, struct place *out)
{
    const bool tls = strncasecmp(text, HTTPS, sizeof(HTTPS) - 1) == 0;
    const bool url = tls || strncasecmp(text, HTTP, sizeof(HTTP) - 1) == 0;
    const char *at = text + (tls ? sizeof(HTTPS) - 1 : url ? sizeof(HTTP) - 1 : 0);
    struct in6_addr v6;
    const char *why;

    *out = (struct place){.tls = tls, .port = tls ? 443 : url ? 80 : port, .path = ""};
    if (!url && inet_pton(AF_INET6, at, &v6) == 1) {
        out->host[0] = '[';
        inet_ntop(AF_INET6, &v6, out->host + 1, sizeof(out->host) - 2);
        strcat(out->host, "]");
        return NULL;
    }
    why = read_host(&at, strlen(at), out);
    if (!why)
        why = read_port(&at, out);
    if (!why && *at != '\0' && *at != '/')
        why = *at == '@' || strchr(at, '@') ? "it must not have a user or a password"
                                            : "unexpected characters after the name";
    if (!why && *at == '/' && !url)
        why = "with a path it must be a URL: http://...";
    return why ? why : read_path(at, out);
}

static bool is_socket(const char *text)
{
    return strncmp(text, UNIX, sizeof(UNIX) - 1) == 0 && text[sizeof(UNIX) - 1] == '/';
}

/* The one spelling; NULL, or why it is no host. `out` has HOSTS_NAME_BYTES. */
static const char *name_of(const char *text, uint16_t port, char *out)
{
    struct place p;
    const char *why;
    int n;

    if (strlen(text) >= HOSTS_NAME_BYTES)
        return "it is too long";
    if (is_socket(text)) {
        const char *path = text + sizeof(UNIX) - 1;
        while (path[0] == '/' && path[1] == '/')
            path++;
        if (path[1] == '\0')
            return "unix: needs a path";
        if (strlen(path) >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
            return "the path of a socket has at most 107 bytes";
        for (const char *c = path; *c != '\0'; c++) {
            if (*c <= ' ' || *c == 0x7f || *c == '#' || (unsigned char)*c >= 0x80)
                return "the path of the socket has characters that a list cannot hold";
        }
        snprintf(out, HOSTS_NAME_BYTES, "%s%s", UNIX, path);
        return NULL;
    }
    why = read_place(text, port, &p);
    if (why)
        return why;
    n = snprintf(out, HOSTS_NAME_BYTES, "%s%s:%u%.*s",
                 p.tls              ? HTTPS
                 : p.path_bytes > 0 ? HTTP
                                    : "",
                 p.host, p.port, (int)p.path_bytes, p.path);
    return n < HOSTS_NAME_BYTES ? NULL : "it is too long";
}

const char *hosts_url(const char *name, char *out_url)
{
    const bool by_socket = is_socket(name);

    if (by_socket)
        snprintf(out_url, HOSTS_NAME_BYTES + 8, "%slocalhost", HTTP);
    else
        snprintf(out_url, HOSTS_NAME_BYTES + 8, "%s%s", strstr(name, "://") ? "" : HTTP, name);
    return by_socket ? name + sizeof(UNIX) - 1 : NULL;
}

/* ---- the list ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static enum status add_name(struct hosts *h, const char *name, struct err *err)
{
    char **names = h->names;
    char *copy;

    if (tfind(name, &h->tree, by_name)) {
        h->again++;
        return STATUS_OK;
    }
    if (h->count == h->most)
        return err_set(err, STATUS_FULL, "there are more than %u hosts", h->most);
    if (h->count % ROOM == 0)
        names = realloc(h->names, ((size_t)h->count + ROOM) * sizeof(*names));
    copy = names ? strdup(name) : NULL;
    h->names = names ? names : h->names;
    if (!copy || !tsearch(copy, &h->tree, by_name)) {
        free(copy);
        return err_set(err, STATUS_NO_MEMORY, "no memory for the list of hosts");
    }
    h->names[h->count++] = copy;
    return STATUS_OK;
}

enum status hosts_add(struct hosts *h, const char *text, struct err *err)
{
    char name[HOSTS_NAME_BYTES];
    const char *const why = name_of(text, h->port, name);

    return why ? refuse(err, text, why) : add_name(h, name, err);
}

/* ---- from other forms ---- */

static enum status add_one(void *self, const char *host, struct err *err)
{
    return hosts_add(self, host, err);
}

enum status hosts_add_slurm(struct hosts *h, const char *expression, struct err *err)
{
    return hostlist_expand(expression, h->most, add_one, h, err);
}

enum status hosts_add_lines(struct hosts *h, const char *text, size_t bytes, struct err *err)
{
    char line[LINE_BYTES];
    uint32_t number = 0;

    while (bytes > 0) {
        const char *const feed = memchr(text, '\n', bytes);
        const size_t whole = feed ? (size_t)(feed - text) + 1 : bytes;
        const char *const mark = memchr(text, '#', whole);
        size_t n = mark ? (size_t)(mark - text) : whole;
        const char *at = text;

        number++;
        text += whole;
        bytes -= whole;
        for (; n > 0 && strchr(" \t\r\n", at[n - 1]) && at[n - 1]; n--)
            ;
        for (; n > 0 && (*at == ' ' || *at == '\t'); n--)
            at++;
        if (n == 0)
            continue;
        if (n >= sizeof(line) || memchr(at, '\0', n))
            return err_set(err, STATUS_INVALID_ARGUMENT, "line %u is not a host", number);
        memcpy(line, at, n);
        line[n] = '\0';
        if (hosts_add(h, line, err) != STATUS_OK)
            return err_prefix(err, "line %u", number);
    }
    return STATUS_OK;
}

/* A target with the scheme of its group. */
static enum status add_target(struct hosts *h, const char *target, const char *scheme,
                              struct err *err)
{
    char text[LINE_BYTES];
    struct place p;
    const char *why;

    if (strcmp(scheme, "https") != 0 || strstr(target, "://"))
        return hosts_add(h, target, err);
    why = strlen(target) < HOSTS_NAME_BYTES ? read_place(target, h->port, &p) : "it is too long";
    if (why)
        return refuse(err, target, why);
    snprintf(text, sizeof(text), "%s%s:%u", HTTPS, p.host, p.port);
    return hosts_add(h, text, err);
}

static enum status add_group(struct hosts *h, const json_t *group, struct err *err)
{
    const json_t *const targets = json_object_get(group, "targets");
    const json_t *const label = json_object_get(json_object_get(group, "labels"), "__scheme__");
    const char *const scheme = label ? json_string_value(label) : "http";
    size_t i;
    json_t *target;

    if (!json_is_array(targets))
        return err_set(err, STATUS_INVALID_ARGUMENT, "\"targets\" is not a list");
    if (!scheme || (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0))
        return err_set(err, STATUS_INVALID_ARGUMENT, "\"__scheme__\" is neither http nor https");
    json_array_foreach(targets, i, target)
    {
        const char *const text = json_string_value(target);
        if (!text)
            return err_set(err, STATUS_INVALID_ARGUMENT, "target %zu is not text", i);
        if (add_target(h, text, scheme, err) != STATUS_OK)
            return err_prefix(err, "target %zu", i);
    }
    return STATUS_OK;
}

enum status hosts_add_file_sd(struct hosts *h, const char *text, size_t bytes, struct err *err)
{
    json_error_t where;
    json_t *const groups = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &where);
    enum status s = STATUS_OK;
    size_t i;
    json_t *group;

    if (!groups) {
        text_tidy(where.text);
        return err_set(err, STATUS_INVALID_ARGUMENT, "not JSON: line %d: %s", where.line,
                       where.text);
    }
    if (!json_is_array(groups))
        s = err_set(err, STATUS_INVALID_ARGUMENT, "not file_sd: it must be a list of groups");
    json_array_foreach(groups, i, group)
    {
        if (s == STATUS_OK && add_group(h, group, err) != STATUS_OK)
            s = err_prefix(err, "group %zu", i);
    }
    json_decref(groups);
    return s;
}
