/* hosts.h: the hosts of a survey.
 *
 * A host has one name, in one spelling, so that it gets one request and is found again next time,
 * however it was written:
 *
 *     n17:17322                        a name or an address with its port, by http
 *     [fe80::17]:17322                 an IPv6 address
 *     https://gate.example:443/n17     what needs more: TLS, or a path before the API's
 *     unix:/run/reachd/reachd.sock     a socket on this machine
 *
 * Nothing here looks a name up. One thread at a time for each list.
 */
#ifndef REACH_CLIENTS_FLEET_HOSTS_H
#define REACH_CLIENTS_FLEET_HOSTS_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

enum {
    HOSTS_MOST = 65536,     /* of one survey */
    HOSTS_NAME_BYTES = 256, /* of one, with its end */
    HOSTS_DEFAULT_PORT = 17322
};

struct hosts {
    uint16_t port;  /* where a host names none; in URLs it is the scheme's */
    uint32_t most;  /* 1..HOSTS_MOST */
    uint32_t count; /* different ones */
    uint32_t again; /* that were named once more */
    char **names;   /* in the order in which they came */
    void *tree;     /* the same, to be found */
};

void hosts_begin(struct hosts *out, uint16_t port);
void hosts_free(struct hosts *take);

/* One host: a name or address, with a port or without, an http or https URL, unix:/path. A
 * URL may have nothing but scheme, host, port and path.
 * STATUS_INVALID_ARGUMENT names what is wrong, STATUS_FULL: more than `most`. */
enum status hosts_add(struct hosts *h, const char *text, struct err *err);

/* One host a line; blanks around it, empty lines and what follows a # are left out. */
enum status hosts_add_lines(struct hosts *h, const char *text, size_t bytes, struct err *err);

/* Prometheus' file_sd JSON: [{"targets": ["n1:17322"], "labels": {"__scheme__": "https"}}]. Other
 * labels are Prometheus' business. */
enum status hosts_add_file_sd(struct hosts *h, const char *text, size_t bytes, struct err *err);

/* Slurm's host list expressions, as SLURM_JOB_NODELIST and sinfo write them:
 *
 *     n[001-256]          n001 n002 .. n256: as many digits as the lower bound has
 *     a[1-3,7]b[01-02]    a1b01 a1b02 a2b01 .. a7b02: the last bracket varies fastest
 *     login,n[1-2]        login n1 n2
 *
 * STATUS_INVALID_ARGUMENT: what is wrong with the expression; STATUS_FULL: it has more than `most`
 * hosts. Then `each` was not called; if it returns other than STATUS_OK, that ends the expansion.
 */
typedef enum status hosts_fn(void *self, const char *host, struct err *err);
enum status hosts_expand(const char *expression, uint64_t most, hosts_fn *each, void *self,
                         struct err *err);
/* Adds them. */
enum status hosts_add_slurm(struct hosts *h, const char *expression, struct err *err);

/* The URL before the API's path, and for unix: the path of the socket (NULL otherwise). `name` is
 * one of a list; `out_url` has room for HOSTS_NAME_BYTES + 8; the path is inside `name`. */
const char *hosts_url(const char *name, char *out_url);

#endif
