/* huge_pages.h: finds out whether memory of the process lies in huge pages. */
#pragma once

#include <stdint.h>
#include <stdio.h>

/* Returns the share of the mappings that overlap `bytes` bytes at `address` that lies in huge
 * pages, from 0 to 1, transparent or of hugetlbfs. `smaps` is the text of /proc/PID/smaps (proc(5))
 * and is read to its end. Returns 0 if no mapping overlaps them. */
double huge_pages_share(FILE *smaps, uint64_t address, uint64_t bytes);
