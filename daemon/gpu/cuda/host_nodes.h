/* host_nodes.h: the NUMA nodes of the host, and the node of new pages. The kernel puts a new page
 * on the node of the CPU that touches the page first. So a thread on CPUs of a node, and the
 * threads that it starts, allocate there. Nodes have numbers below 64. It needs Linux. */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

/* Returns the nodes that have both CPUs and memory, as bits. Returns 0 if the kernel does not
 * report nodes. */
uint64_t host_nodes_list(void);

/* Keeps the calling thread on the CPUs of a node, and reports its CPUs before. Returns false and
 * changes nothing if there is no such node, or if the process may use none of its CPUs. */
bool host_nodes_bind(int node, cpu_set_t *out_before);
void host_nodes_unbind(const cpu_set_t *before);

/* Returns the share of the pages of a mapping that is on a node, or 0 if it is not known. */
double host_nodes_share(const void *mapping, int node);

/* Parts of the functions above, for tests. The first reads a list such as "0-3,8" into a set of its
 * numbers. The second returns the share that a line of /proc/self/numa_maps reports. */
void host_nodes_parse(const char *list, cpu_set_t *out);
double host_nodes_line_share(const char *line, int node);
