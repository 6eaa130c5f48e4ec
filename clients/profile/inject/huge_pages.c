/* huge_pages.c: see huge_pages.h. */
#include "clients/profile/inject/huge_pages.h"

#include <inttypes.h>
#include <stdbool.h>
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

double huge_pages_share(FILE *smaps, uint64_t address, uint64_t bytes)
{
    char line[LINE_ROOM];
    uint64_t begin, end, kib;
    double all = 0, huge = 0;
    bool overlaps = false;

    while (fgets(line, sizeof line, smaps)) {
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &begin, &end) == 2) {
            overlaps = begin < address + bytes && address < end;
            all += overlaps ? (double)(end - begin) : 0;
        } else if (overlaps && is_huge_line(line) &&
                   sscanf(strchr(line, ':') + 1, "%" SCNu64 " kB", &kib) == 1) {
            huge += (double)kib * 1024;
        }
    }
    return all > 0 ? huge / all : 0;
}
