/* fuzz_hosts.c: reads any bytes as a list of hosts. The first byte selects the form. Every accepted
 * name is its own canonical spelling, occurs once, and can be shown. */
#include "fuzz.h"

#include "clients/fleet/hosts.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 500 };

static void check(const struct hosts *h)
{
    struct hosts again;
    char url[HOSTS_NAME_BYTES + 8];

    hosts_begin(&again, 1);
    REACH_ASSERT(h->count <= MOST);
    for (uint32_t i = 0; i < h->count; i++) {
        const char *const name = h->names[i];
        REACH_ASSERT(hosts_add(&again, name, NULL) == STATUS_OK);
        REACH_ASSERT(again.count == i + 1 && strcmp(again.names[i], name) == 0);
        for (const char *c = name; *c != '\0'; c++)
            REACH_ASSERT(*c > ' ' && *c < 0x7f);
        REACH_ASSERT(!strchr(name, '@') || strncmp(name, "unix:/", 6) == 0);
        hosts_url(name, url);
        REACH_ASSERT(strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0);
    }
    hosts_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *const text = malloc(size + 1);
    struct err err = {0};
    struct hosts h;
    enum status s;

    REACH_ASSERT(text);
    memcpy(text, data, size);
    text[size] = '\0';
    hosts_begin(&h, HOSTS_DEFAULT_PORT);
    h.most = MOST;
    switch (size > 0 ? data[0] : 0) {
    case 'l':
        s = hosts_add_lines(&h, text + 1, size - 1, &err);
        break;
    case 'p':
        s = hosts_add_file_sd(&h, text + 1, size - 1, &err);
        break;
    case 's':
        s = hosts_add_slurm(&h, text + 1, &err);
        break;
    default:
        s = hosts_add(&h, text, &err);
    }
    REACH_ASSERT(s == STATUS_OK || (err.status == s && err.text[0] != '\0'));
    check(&h);
    hosts_free(&h);
    free(text);
    return 0;
}
