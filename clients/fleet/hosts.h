/* hosts.h: the hosts of a survey.
 *
 * A host has one name in one spelling, so that it gets one request and the next survey finds it
 * again:
 *
 *     n17:17322                        a name or an address with its port, by http
 *     [fe80::17]:17322                 an IPv6 address
 *     https://gate.example:443/n17     TLS, or a path that precedes the path of the API
 *     unix:/run/reachd/reachd.sock     a socket on this machine
 *
 * This module resolves no names. Only one thread may use a list at a time.
 */
#pragma once

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

enum {
    HOSTS_MOST = 65536,     /* most hosts of one survey */
    HOSTS_NAME_BYTES = 256, /* size of a name */
    HOSTS_DEFAULT_PORT = 17322
};

struct hosts {
    uint16_t port;  /* port of hosts without a port; URLs have the port of their scheme */
    uint32_t most;  /* 1..HOSTS_MOST */
    uint32_t count; /* different hosts */
    uint32_t again; /* number of names that were given more than once */
    char **names;   /* in the order of their first occurrence */
    void *tree;     /* the same names, for searches */
};

void hosts_begin(struct hosts *out, uint16_t port);
void hosts_free(struct hosts *take);

/* Adds one host: a name or address, with or without a port, an http or https URL, or unix:/path. A
 * URL may only have scheme, host, port and path. Returns STATUS_INVALID_ARGUMENT if the text is not
 * a host, STATUS_FULL if the list has `most` hosts. */
enum status hosts_add(struct hosts *h, const char *text, struct err *err);

/* Adds one host per line. Surrounding blanks, empty lines, and comments after a # are ignored. */
enum status hosts_add_lines(struct hosts *h, const char *text, size_t bytes, struct err *err);

/* Adds the targets of Prometheus' file_sd JSON: [{"targets": ["n1:17322"], "labels": {"__scheme__":
 * "https"}}]. Other labels are ignored. */
enum status hosts_add_file_sd(struct hosts *h, const char *text, size_t bytes, struct err *err);

/* Expands a host list expression of Slurm, the format of SLURM_JOB_NODELIST and sinfo:
 *
 *     n[001-256]          n001 n002 .. n256, with the digits of the lower bound
 *     a[1-3,7]b[01-02]    a1b01 a1b02 a2b01 .. a7b02; the last bracket varies fastest
 *     login,n[1-2]        login n1 n2
 *
 * Returns STATUS_INVALID_ARGUMENT if the expression is invalid, STATUS_FULL if it has more than
 * `most` hosts. In both cases `each` is not called. If `each` does not return STATUS_OK, its status
 * ends the expansion. */
typedef enum status hosts_fn(void *self, const char *host, struct err *err);
enum status hosts_expand(const char *expression, uint64_t most, hosts_fn *each, void *self,
                         struct err *err);
/* Adds the hosts of a host list expression. */
enum status hosts_add_slurm(struct hosts *h, const char *expression, struct err *err);

/* Writes the URL that precedes the path of the API to out_url[HOSTS_NAME_BYTES + 8]. Returns the
 * path of the socket, inside `name`, if the host is unix:/path, and NULL otherwise. `name` is a
 * name of a list. */
const char *hosts_url(const char *name, char *out_url);
