/* host_nodes.c: see host_nodes.h. */
#include "gpu/cuda/host_nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 64, LINE_BYTES = 4096, MOST_NODES = 64 };

void host_nodes_parse(const char *list, cpu_set_t *out)
{
    CPU_ZERO(out);
    for (char *at = (char *)(uintptr_t)list; *at >= '0' && *at <= '9'; at += *at == ',') {
        const unsigned long first = strtoul(at, &at, 10);
        const unsigned long last = *at == '-' ? strtoul(at + 1, &at, 10) : first;
        for (unsigned long i = first; i <= last && i < CPU_SETSIZE; i++)
            CPU_SET(i, out);
    }
}

/* Reads a list of the kernel. The set is empty if there is no such list. */
static void read_list(const char *path, cpu_set_t *out)
{
    char line[LINE_BYTES] = "";
    FILE *const f = fopen(path, "re");

    if (f && !fgets(line, sizeof line, f))
        line[0] = '\0';
    if (f)
        (void)fclose(f);
    host_nodes_parse(line, out);
}

uint64_t host_nodes_list(void)
{
    cpu_set_t with_cpus, with_memory;
    uint64_t nodes = 0;

    read_list("/sys/devices/system/node/has_cpu", &with_cpus);
    read_list("/sys/devices/system/node/has_memory", &with_memory);
    for (int i = 0; i < MOST_NODES; i++)
        if (CPU_ISSET(i, &with_cpus) && CPU_ISSET(i, &with_memory))
            nodes |= (uint64_t)1 << i;
    return nodes;
}

bool host_nodes_bind(int node, cpu_set_t *out_before)
{
    char path[PATH_BYTES];
    cpu_set_t cpus;

    (void)snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", node);
    read_list(path, &cpus);
    if (sched_getaffinity(0, sizeof *out_before, out_before) != 0)
        return false;
    CPU_AND(&cpus, &cpus, out_before);
    return CPU_COUNT(&cpus) > 0 && sched_setaffinity(0, sizeof cpus, &cpus) == 0;
}

void host_nodes_unbind(const cpu_set_t *before)
{
    (void)sched_setaffinity(0, sizeof *before, before);
}

double host_nodes_line_share(const char *line, int node)
{
    unsigned long there = 0, all = 0;

    for (const char *at = strstr(line, " N"); at; at = strstr(at + 1, " N")) {
        char *end = NULL;
        const long of = strtol(at + 2, &end, 10);
        const unsigned long pages = *end == '=' ? strtoul(end + 1, NULL, 10) : 0;
        all += pages;
        there += of == node ? pages : 0;
    }
    return all > 0 ? (double)there / (double)all : 0;
}

double host_nodes_share(const void *mapping, int node)
{
    FILE *const f = fopen("/proc/self/numa_maps", "re");
    char line[LINE_BYTES];
    double share = 0;

    /* Lines are in the order of addresses. The kernel may have merged adjacent mappings. */
    while (f && fgets(line, sizeof line, f) &&
           strtoull(line, NULL, 16) <= (unsigned long long)(uintptr_t)mapping)
        share = host_nodes_line_share(line, node);
    if (f)
        (void)fclose(f);
    return share;
}
