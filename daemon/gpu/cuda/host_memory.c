/* host_memory.c: see host_memory.h. */
#include "gpu/cuda/host_memory.h"

#include "base/units.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAX_THREADS = 8, HOST_SHARE = 4 /* the available memory is divided by this */ };
#define ALIGNMENT       (2 * MIB) /* a huge page if an ordinary page has 4 KiB */
#define FALLBACK_FOLDER "/var/tmp"
/* The least share of pages that must be huge if huge pages were requested. */
#define HUGE_SHARE 0.9

/* ---- the size of the memory ---- */

/* Reads the number behind `key` in a file of "key: number unit" lines, or the first number of a
 * file if the key is "". Returns false if there is no such number. */
static bool read_number(const char *path, const char *key, uint64_t *out)
{
    FILE *const f = fopen(path, "re");
    char line[256];
    bool found = false;

    while (f && !found && fgets(line, sizeof line, f)) {
        char *end = line;
        if (strncmp(line, key, strlen(key)) == 0)
            *out = strtoull(line + strlen(key), &end, 10);
        found = end > line + strlen(key);
    }
    if (f)
        (void)fclose(f);
    return found;
}

/* Returns the bytes of memory that the limit of one cgroup leaves. */
static uint64_t cgroup_left(const char *folder)
{
    char path[512];
    uint64_t most = 0, used = 0;

    (void)snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max", folder);
    if (!read_number(path, "", &most)) /* "max", or no limit */
        return UINT64_MAX;
    (void)snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.current", folder);
    return read_number(path, "", &used) && used < most ? most - used : 0;
}

/* Returns the least memory, in bytes, that the process's cgroup or one of its ancestors leaves. */
static uint64_t cgroups_left(void)
{
    FILE *const f = fopen("/proc/self/cgroup", "re");
    char line[256] = "", folder[256] = "";
    uint64_t least = cgroup_left("");

    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "0::%255[^\n]", folder) == 1)
            break;
    if (f)
        (void)fclose(f);
    for (char *end = folder + strlen(folder); folder[0]; end = strrchr(folder, '/')) {
        *end = '\0';
        const uint64_t left = folder[0] ? cgroup_left(folder) : UINT64_MAX;
        least = left < least ? left : least;
    }
    return least;
}

uint64_t host_memory_available(void)
{
    const uint64_t left = cgroups_left();
    uint64_t kib = 0;

    if (!read_number("/proc/meminfo", "MemAvailable:", &kib))
        return 0;
    return kib * KIB < left ? kib * KIB : left;
}

uint64_t host_memory_share(void)
{
    return host_memory_available() / HOST_SHARE;
}

uint64_t host_memory_total(void)
{
    uint64_t kib = 0;

    return read_number("/proc/meminfo", "MemTotal:", &kib) ? kib * KIB : 0;
}

/* ---- pages ---- */

struct part {
    char *first;
    uint64_t bytes;
    bool write;
    pthread_t thread;
    bool started;
};

static void *touch_part(void *arg)
{
    const struct part *const p = arg;
    const uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);

    for (uint64_t at = 0; at < p->bytes; at += page_bytes) {
        volatile char *const page = p->first + at;
        if (p->write)
            *page = 0;
        else
            (void)*page;
    }
    return NULL;
}

/* Touches every page with several threads, by a write or by a read. */
static void touch(void *p, uint64_t bytes, bool write)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    const uint64_t count = processors < 1             ? 1
                           : processors < MAX_THREADS ? (uint64_t)processors
                                                      : MAX_THREADS;
    const uint64_t each = (bytes / count + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
    struct part parts[MAX_THREADS] = {{NULL}};

    for (uint64_t i = 0; i < count && i * each < bytes; i++) {
        parts[i].first = (char *)p + i * each;
        parts[i].bytes = bytes - i * each < each ? bytes - i * each : each;
        parts[i].write = write;
        parts[i].started = pthread_create(&parts[i].thread, NULL, touch_part, &parts[i]) == 0;
        if (!parts[i].started)
            touch_part(&parts[i]);
    }
    for (uint64_t i = 0; i < count; i++)
        if (parts[i].started)
            (void)pthread_join(parts[i].thread, NULL);
}

void host_memory_touch(void *p, uint64_t bytes)
{
    touch(p, bytes, true);
}

static uint64_t huge_kib(void)
{
    uint64_t kib = 0;

    return read_number("/proc/self/smaps_rollup", "AnonHugePages:", &kib) ? kib : 0;
}

/* Touches the pages and returns whether they have the requested length. */
static enum status populate(void *p, uint64_t bytes, enum host_pages pages, struct err *err)
{
    const uint64_t before = pages == HOST_PAGES_HUGE ? huge_kib() : 0;
    const int advice = pages == HOST_PAGES_ORDINARY ? MADV_NOHUGEPAGE : MADV_HUGEPAGE;

    if (madvise(p, bytes, advice) != 0 && pages == HOST_PAGES_HUGE)
        return err_set(err, STATUS_NOT_SUPPORTED, "cannot get transparent huge pages: %s",
                       strerror(errno));
    host_memory_touch(p, bytes);
    if (pages == HOST_PAGES_HUGE &&
        (double)(huge_kib() - before) * (double)KIB < HUGE_SHARE * (double)bytes)
        return err_set(
            err, STATUS_NOT_SUPPORTED,
            "the kernel returned ordinary pages; see /sys/kernel/mm/transparent_hugepage");
    return STATUS_OK;
}

/* Returns the alignment of a range. A huge page has 512 MiB if an ordinary page has 64 KiB; a
 * shorter range contains none. */
static uint64_t alignment_of(uint64_t bytes)
{
    uint64_t huge = 0;

    return read_number("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "", &huge) &&
                   huge > ALIGNMENT && huge <= bytes
               ? huge
               : ALIGNMENT;
}

/* Maps addresses that are aligned to huge pages: of the file `fd`, or anonymous if it is -1. */
static enum status map_aligned(uint64_t bytes, int fd, char **out, struct err *err)
{
    const uint64_t alignment = alignment_of(bytes);
    const uint64_t more = bytes + alignment;
    char *const p = mmap(NULL, more, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    const int flags = MAP_FIXED | (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED);

    if (p == MAP_FAILED)
        return err_set(err, STATUS_NO_MEMORY, "%llu MiB of addresses: %s",
                       (unsigned long long)(bytes / MIB), strerror(errno));
    const uint64_t before = (alignment - (uintptr_t)p % alignment) % alignment;
    if (before > 0)
        (void)munmap(p, before);
    (void)munmap(p + before + bytes, more - before - bytes);
    *out = p + before;
    if (mmap(*out, bytes, PROT_READ | PROT_WRITE, flags, fd, 0) != MAP_FAILED)
        return STATUS_OK;
    err_set(err, STATUS_NO_MEMORY, "%llu MiB of pages: %s", (unsigned long long)(bytes / MIB),
            strerror(errno));
    host_memory_free(*out, bytes);
    return STATUS_NO_MEMORY;
}

enum status host_memory_map(uint64_t bytes, enum host_pages pages, void **out, struct err *err)
{
    char *p = NULL;
    enum status s = map_aligned(bytes, -1, &p, err);

    *out = NULL;
    if (s != STATUS_OK)
        return s;
    s = populate(p, bytes, pages, err);
    if (s != STATUS_OK)
        host_memory_free(p, bytes);
    else
        *out = p;
    return s;
}

/* Opens a file without a name and of this length in a folder. Returns -1 on failure. */
static int open_unnamed(const char *folder, uint64_t bytes)
{
    const int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd < 0 || ftruncate(fd, (off_t)bytes) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

enum status host_memory_map_file(const char *beside, uint64_t bytes, void **out, struct err *err)
{
    const char *const slash = beside ? strrchr(beside, '/') : NULL;
    char folder[PATH_MAX];
    char *p = NULL;
    int fd = -1;

    *out = NULL;
    if (slash && slash - beside < PATH_MAX - 1) {
        (void)snprintf(folder, sizeof folder, "%.*s", (int)(slash - beside + 1), beside);
        fd = open_unnamed(folder, bytes);
    }
    if (fd < 0)
        fd = open_unnamed(FALLBACK_FOLDER, bytes);
    if (fd < 0)
        return err_set(err, STATUS_NOT_PERMITTED, "cannot make a file of %llu MiB in %s: %s",
                       (unsigned long long)(bytes / MIB), FALLBACK_FOLDER, strerror(errno));
    const enum status s = map_aligned(bytes, fd, &p, err);
    (void)close(fd);
    if (s != STATUS_OK)
        return s;
    touch(p, bytes, false);
    *out = p;
    return STATUS_OK;
}

void host_memory_free(void *take, uint64_t bytes)
{
    (void)munmap(take, bytes);
}
