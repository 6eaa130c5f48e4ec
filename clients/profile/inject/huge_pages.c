/* huge_pages.c: see huge_pages.h. */
#include "clients/profile/inject/huge_pages.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_ROOM = 512 }; /* only names of mappings are longer, and begin another line here */

static bool is_huge_line(const char *line)
{
    static const char *const keys[] = {"AnonHugePages:", "ShmemPmdMapped:", "FilePmdMapped:",
                                       "Shared_Hugetlb:", "Private_Hugetlb:"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (strncmp(line, keys[i], strlen(keys[i])) == 0)
            return true;
    }
    return false;
}

/* Reads the first line of a mapping, "BEGIN-END rw-p ..". */
static bool read_range(const char *line, uint64_t *begin, uint64_t *end)
{
    char *rest;
    *begin = strtoull(line, &rest, 16);
    if (rest == line || *rest != '-')
        return false;
    const char *const second = rest + 1;
    *end = strtoull(second, &rest, 16);
    return rest != second && *rest == ' ';
}

double huge_pages_share(FILE *smaps, uint64_t address, uint64_t bytes)
{
    char line[LINE_ROOM];
    uint64_t begin, end;
    double all = 0, huge = 0;
    bool overlaps = false;

    while (fgets(line, sizeof line, smaps)) {
        if (read_range(line, &begin, &end)) {
            overlaps = begin < address + bytes && address < end;
            all += overlaps ? (double)(end - begin) : 0;
        } else if (overlaps && is_huge_line(line)) {
            huge += (double)strtoull(strchr(line, ':') + 1, NULL, 10) * 1024;
        }
    }
    return all > 0 ? huge / all : 0;
}
