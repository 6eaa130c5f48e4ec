/* hosts.c: maps every spelling of a host to one name, and finds names in a tree.
 *
 * Names come from users and from other programs, so only listed characters are allowed. These are
 * letters, digits, '.', '-', '_', colons in brackets, and in a path characters that need no escape.
 * A name cannot be mistaken for an option, contain a user or a password, or break a line of a
 * report. */
#include "clients/fleet/hosts.h"

#include "base/text.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <inttypes.h>
#include <jansson.h>
#include <search.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

enum {
    MOST_NAME = 253, /* length of a DNS name */
    MOST_PORT = 65535,
    ROOM = 1024, /* number of names for which memory is allocated at a time */
    SHOWN_BYTES = 80,
    MOST_BRACKETS = 8,
    MOST_DIGITS = 12
};

static const char HTTP[] = "http://";
static const char HTTPS[] = "https://";
static const char UNIX[] = "unix:"; /* the path distinguishes it from a host with the name unix */
#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"
#define PATH_CHARACTERS NAME_CHARACTERS "~/"

/* The parts of a host. */
struct place {
    bool tls;
    char host[MOST_NAME + 8]; /* in brackets if it is an IPv6 address */
    uint16_t port;
    const char *path; /* "", or a path that begins with a slash and does not end with one */
    size_t path_bytes;
};

void hosts_begin(struct hosts *out, uint16_t port)
{
    *out = (struct hosts){.port = port, .most = HOSTS_MOST};
}

void hosts_free(struct hosts *take)
{
    tdestroy(take->tree, free); /* also frees the names of the list */
    free(take->names);
    *take = (struct hosts){.port = take->port};
}

/* ---- one host ---- */

/* Writes "[fe80::17]"; returns false if the text is not an IPv6 address. */
static bool parse_v6(const char *text, struct place *out)
{
    struct in6_addr v6;
    char clean[INET6_ADDRSTRLEN];

    if (inet_pton(AF_INET6, text, &v6) != 1)
        return false;
    snprintf(out->host, sizeof(out->host), "[%s]", inet_ntop(AF_INET6, &v6, clean, sizeof(clean)));
    return true;
}

/* Moves `*at` past the host. Returns NULL or an error message, like the following functions. */
static const char *parse_host(const char **at, struct place *out)
{
    const bool brackets = **at == '[';
    const size_t n = brackets ? strcspn(*at + 1, "]") : strspn(*at, NAME_CHARACTERS);
    char text[MOST_NAME + 1];

    if (n == 0)
        return "the name is missing or has characters that no name has";
    if (n > MOST_NAME)
        return "the name is too long";
    snprintf(text, sizeof(text), "%.*s", (int)n, *at + brackets);
    *at += brackets + n;
    if (brackets)
        return **at == ']' && parse_v6(text, out) ? (++*at, NULL)
                                                  : "the text in brackets is not an IPv6 address";
    if (text[0] == '-' || text[0] == '.' || strstr(text, ".."))
        return "a name does not begin with - or ., and has no two dots side by side";
    for (size_t i = 0; i <= n; i++)
        out->host[i] = (char)tolower((unsigned char)text[i]);
    return NULL;
}

static const char *parse_port(const char **at, struct place *out)
{
    unsigned long port;

    if (**at != ':')
        return NULL;
    ++*at;
    port = strtoul(isdigit((unsigned char)**at) ? *at : "", NULL, 10);
    if (port == 0 || port > MOST_PORT)
        return "a port is a number from 1 to 65535";
    *at += strspn(*at, "0123456789");
    out->port = (uint16_t)port;
    return NULL;
}

/* Reads the path, without slashes at its end. */
static const char *parse_path(const char *at, struct place *out)
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

static const char *parse_place(const char *text, uint16_t port, struct place *out)
{
    const bool tls = strncasecmp(text, HTTPS, sizeof(HTTPS) - 1) == 0;
    const bool url = tls || strncasecmp(text, HTTP, sizeof(HTTP) - 1) == 0;
    const char *at = text + (tls ? sizeof(HTTPS) - 1 : url ? sizeof(HTTP) - 1 : 0);
    const char *why;

    *out = (struct place){.tls = tls, .port = tls ? 443 : url ? 80 : port, .path = ""};
    if (!url && parse_v6(at, out))
        return NULL;
    why = parse_host(&at, out);
    if (!why)
        why = parse_port(&at, out);
    if (!why && *at != '\0' && *at != '/')
        why = strchr(at, '@') ? "it must not have a user or a password"
                              : "unexpected characters after the name";
    if (!why && *at == '/' && !url)
        why = "with a path it must be a URL: http://...";
    return why ? why : parse_path(at, out);
}

static bool is_socket(const char *text)
{
    return strncmp(text, UNIX, sizeof(UNIX) - 1) == 0 && text[sizeof(UNIX) - 1] == '/';
}

static const char *check_socket_path(const char *path)
{
    if (path[1] == '\0')
        return "unix: needs a path";
    if (strlen(path) >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
        return "the path of a socket has at most 107 bytes";
    for (; *path != '\0'; path++) {
        if (*path <= ' ' || *path == 0x7f || *path == '#' || (unsigned char)*path >= 0x80)
            return "the path of the socket has characters that a list cannot hold";
    }
    return NULL;
}

/* Writes the name of a host to out[HOSTS_NAME_BYTES]. If `tls` is set, a text that is not a URL is
 * a host with https. */
static const char *parse_name(const char *text, uint16_t port, bool tls, char *out)
{
    struct place p;
    const char *why;
    int n;

    if (strlen(text) >= HOSTS_NAME_BYTES)
        return "it is too long";
    if (is_socket(text) && !tls) {
        const char *path = text + sizeof(UNIX) - 1;
        path += strspn(path, "/") - 1;
        snprintf(out, HOSTS_NAME_BYTES, "%s%s", UNIX, path);
        return check_socket_path(path);
    }
    why = parse_place(text, port, &p);
    if (why)
        return why;
    p.tls = p.tls || (tls && !strstr(text, "://"));
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
        return err_no_memory(err, "the list of hosts");
    }
    h->names[h->count++] = copy;
    return STATUS_OK;
}

static enum status add_host(struct hosts *h, const char *text, bool tls, struct err *err)
{
    char name[HOSTS_NAME_BYTES];
    char shown[SHOWN_BYTES];
    const char *const why = parse_name(text, h->port, tls, name);

    if (!why)
        return add_name(h, name, err);
    snprintf(shown, sizeof(shown), "%s", text);
    text_sanitize(shown);
    return err_set(err, STATUS_INVALID_ARGUMENT, "\"%s\" is not a host: %s", shown, why);
}

enum status hosts_add(struct hosts *h, const char *text, struct err *err)
{
    return add_host(h, text, false, err);
}

/* ---- Slurm's host lists: from left to right, each value of a bracket is followed by every value
 * of the rest of the item. Numbers are padded to the digits of the lower bound. ---- */

struct expansion {
    hosts_fn *each; /* NULL if the call only checks and counts */
    void *self;
    uint64_t count;
    uint64_t most;
    char host[HOSTS_NAME_BYTES];
    const char *end; /* end of the last item in the expression */
    struct err *err;
};

struct range {
    uint64_t low;
    uint64_t high;
    int digits;
};

static enum status refuse_list(const struct expansion *x, const char *at, const char *why)
{
    char shown[SHOWN_BYTES];

    snprintf(shown, sizeof(shown), "%s", at);
    text_sanitize(shown);
    return err_set(x->err, STATUS_INVALID_ARGUMENT, "invalid host list: %s at \"%s\"", why, shown);
}

/* Moves `*at` past a number; returns the number of its digits, 0 if there is no number. */
static int parse_number(const char **at, uint64_t *out)
{
    const size_t digits = strspn(*at, "0123456789");

    if (digits == 0 || digits > MOST_DIGITS)
        return 0;
    *out = strtoull(*at, NULL, 10);
    *at += digits;
    return (int)digits;
}

/* Moves `*at` past "001-256" or "7". Returns NULL or an error message. */
static const char *parse_range(const char **at, struct range *out)
{
    static const char missing[] = "a number of at most 12 digits is missing";
    const char *high;
    int digits;

    out->digits = parse_number(at, &out->low);
    out->high = out->low;
    if (out->digits == 0)
        return missing;
    if (**at != '-')
        return NULL;
    high = ++*at;
    digits = parse_number(at, &out->high);
    if (digits == 0)
        return missing;
    if (digits > 1 && digits != out->digits && *high == '0')
        return "the bounds are padded to different widths";
    return out->high < out->low ? "the range is reversed" : NULL;
}

static enum status expand_item(struct expansion *x, const char *at, size_t n, int brackets);

/* Expands the item from the bracket at `at` on. */
static enum status expand_bracket(struct expansion *x, const char *at, size_t n, int brackets)
{
    const char *rest = at;
    struct range r = {.digits = 0};
    enum status s = STATUS_OK;

    if (brackets == MOST_BRACKETS)
        return refuse_list(x, at, "there are more than 8 parts");
    do {
        const char *const begin = ++rest;
        const char *const why = parse_range(&rest, &r);
        if (why)
            return refuse_list(x, begin, why);
    } while (*rest == ',');
    if (*rest++ != ']')
        return refuse_list(x, at, "a bracket is not closed");
    do {
        at++;
        (void)parse_range(&at, &r);
        for (uint64_t v = r.low; s == STATUS_OK && v <= r.high; v++)
            s = expand_item(x, rest, n + (size_t)sprintf(x->host + n, "%0*" PRIu64, r.digits, v),
                            brackets + 1);
    } while (s == STATUS_OK && *at == ',');
    return s;
}

/* Expands an item from `at` on; the host already has `n` bytes and `brackets` expanded brackets.
 */
static enum status expand_item(struct expansion *x, const char *at, size_t n, int brackets)
{
    const size_t plain = strcspn(at, "[],");

    if (plain + MOST_DIGITS >= HOSTS_NAME_BYTES - n)
        return refuse_list(x, at, "a name is too long");
    memcpy(x->host + n, at, plain);
    n += plain;
    at += plain;
    if (*at == '[')
        return expand_bracket(x, at, n, brackets);
    if (*at == ']')
        return refuse_list(x, at, "a bracket was not opened");
    if (n == 0)
        return refuse_list(x, at, "a name is missing");
    if (x->count++ == x->most)
        return err_set(x->err, STATUS_FULL, "the host list has more than %" PRIu64 " hosts",
                       x->most);
    x->host[n] = '\0';
    x->end = at;
    return x->each ? x->each(x->self, x->host, x->err) : STATUS_OK;
}

static enum status expand_items(struct expansion *x, const char *expression)
{
    enum status s = expand_item(x, expression, 0, 0);

    while (s == STATUS_OK && *x->end == ',')
        s = expand_item(x, x->end + 1, 0, 0);
    return s;
}

enum status hosts_expand(const char *expression, uint64_t most, hosts_fn *each, void *self,
                         struct err *err)
{
    struct expansion x = {.self = self, .most = most, .end = "", .err = err};
    const enum status s = expand_items(&x, expression);

    x.each = each;
    x.count = 0;
    return s == STATUS_OK ? expand_items(&x, expression) : s;
}

/* ---- other lists of hosts ---- */

static enum status add_one(void *self, const char *host, struct err *err)
{
    return hosts_add(self, host, err);
}

enum status hosts_add_slurm(struct hosts *h, const char *expression, struct err *err)
{
    return hosts_expand(expression, h->most, add_one, h, err);
}

/* Removes the comment of a line, and blanks at both ends. */
static char *trim_line(char *line)
{
    char *const begin = line + strspn(line, " \t\r");
    size_t n = strcspn(begin, "#\n");

    while (n > 0 && strchr(" \t\r", begin[n - 1]))
        n--;
    begin[n] = '\0';
    return begin;
}

enum status hosts_add_lines(struct hosts *h, const char *text, size_t bytes, struct err *err)
{
    const char *const end = text + bytes;
    enum status s = STATUS_OK;

    for (uint32_t number = 1; s == STATUS_OK && text < end; number++) {
        const char *const feed = memchr(text, '\n', (size_t)(end - text));
        const size_t n = (size_t)((feed ? feed : end) - text);
        char *const line = strndup(text, n);
        if (!line)
            return err_no_memory(err, "the list of hosts");
        const char *const host = trim_line(line);
        if (memchr(text, '\0', n))
            s = err_set(err, STATUS_INVALID_ARGUMENT, "line %u is not a host", number);
        else if (*host && hosts_add(h, host, err) != STATUS_OK)
            s = err_prefix(err, "line %u", number);
        text += n + 1;
        free(line);
    }
    return s;
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
        if (add_host(h, text, strcmp(scheme, "https") == 0, err) != STATUS_OK)
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
        text_sanitize(where.text);
        return err_set(err, STATUS_INVALID_ARGUMENT, "the file is not JSON: line %d: %s",
                       where.line, where.text);
    }
    if (!json_is_array(groups))
        s = err_set(err, STATUS_INVALID_ARGUMENT,
                    "the file is not file_sd: the top level must be a list of groups");
    json_array_foreach(groups, i, group)
    {
        if (s == STATUS_OK && add_group(h, group, err) != STATUS_OK)
            s = err_prefix(err, "group %zu", i);
    }
    json_decref(groups);
    return s;
}
