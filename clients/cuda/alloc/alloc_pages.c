/* alloc_pages.c: the pages behind host memory: whether the host has room for them, whether memory
 * of the caller has them, and their first write. The first write of a page decides its NUMA node,
 * and takes most of the time of a large allocation. */
#include "clients/cuda/alloc/alloc_state.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { MAX_THREADS = 64, PATH_BYTES = 512, POLL_NS = 1000 * 1000 };
#define CHUNK_BYTES ((uint64_t)64 << 20)
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* ---- room ---- */

/* Reads the number behind `key` in a file of "key: number" lines, or the first number of a file if
 * the key is "". Returns false if there is no such number. */
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

/* Returns the bytes of a cgroup that the kernel gives back when memory is short. */
static uint64_t reclaimable(const char *folder)
{
    static const char *const keys[] = {"inactive_file ", "active_file ", "slab_reclaimable "};
    char path[PATH_BYTES];
    uint64_t sum = 0, value = 0;

    (void)snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.stat", folder);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        sum += read_number(path, keys[i], &value) ? value : 0;
    return sum;
}

/* Checks the limit of one cgroup (version 2), which is a folder such as "/user.slice". */
static enum reach_alloc_status check_cgroup(const char *folder, uint64_t bytes,
                                            struct reach_alloc_error *error)
{
    char path[PATH_BYTES];
    uint64_t most = 0, held = 0;

    (void)snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.current", folder);
    if (!read_number(path, "", &held))
        return REACH_ALLOC_OK;
    (void)snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max", folder);
    if (!read_number(path, "", &most))
        return REACH_ALLOC_OK;
    const uint64_t cached = reclaimable(folder);
    held -= cached < held ? cached : held;
    if (held < most && bytes <= most - held)
        return REACH_ALLOC_OK;
    return alloc_fail(error, REACH_ALLOC_NO_MEMORY,
                      "cannot allocate %llu MiB of host memory: %s allows %llu MiB, and %llu MiB "
                      "are in use. Raise the limit of the container or service.",
                      (unsigned long long)(bytes >> 20), path, (unsigned long long)(most >> 20),
                      (unsigned long long)(held >> 20));
}

/* Checks the process's cgroup and its ancestors. */
static enum reach_alloc_status check_cgroups(uint64_t bytes, struct reach_alloc_error *error)
{
    FILE *const f = fopen("/proc/self/cgroup", "re");
    char line[256], folder[256] = "";
    enum reach_alloc_status s = check_cgroup("", bytes, error);

    while (f && !folder[0] && fgets(line, sizeof line, f))
        (void)sscanf(line, "0::%255[^\n]", folder);
    if (f)
        (void)fclose(f);
    while (s == REACH_ALLOC_OK && strlen(folder) > 1) {
        s = check_cgroup(folder, bytes, error);
        *strrchr(folder, '/') = '\0';
    }
    return s;
}

enum reach_alloc_status alloc_pages_check(uint64_t bytes, struct reach_alloc_error *error)
{
    uint64_t kib = 0;

    if (read_number("/proc/meminfo", "MemAvailable:", &kib) && kib < bytes >> 10)
        return alloc_fail(
            error, REACH_ALLOC_NO_MEMORY,
            "cannot allocate %llu MiB of host memory: the host has %llu MiB available",
            (unsigned long long)(bytes >> 20), (unsigned long long)(kib >> 10));
    return check_cgroups(bytes, error);
}

/* ---- existing memory ---- */

uint64_t alloc_page_bytes(void)
{
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Adds the pages without memory behind them. */
static void count_missing(char *memory, uint64_t bytes, uint64_t *missing)
{
    unsigned char present[2048];
    const uint64_t page = alloc_page_bytes(), step = sizeof present * page;

    for (uint64_t at = 0; at < bytes; at += step) {
        const uint64_t length = bytes - at < step ? bytes - at : step;
        if (mincore(memory + at, length, present) == 0)
            for (uint64_t i = 0; i < length / page; i++)
                *missing += present[i] & 1 ? 0 : page;
    }
}

enum reach_alloc_status alloc_pages_mapped(const void *memory, uint64_t bytes, bool *is_private,
                                           uint64_t *missing, struct reach_alloc_error *error)
{
    const uint64_t end = (uintptr_t)memory + bytes;
    FILE *const f = fopen("/proc/self/maps", "re");
    enum reach_alloc_status s = REACH_ALLOC_OK;
    uint64_t at = (uintptr_t)memory;
    char *line = NULL;
    size_t room = 0;

    if (!f)
        return alloc_fail(error, REACH_ALLOC_NOT_SUPPORTED, "cannot open /proc/self/maps: %s",
                          strerror(errno));
    while (s == REACH_ALLOC_OK && at < end && getline(&line, &room, f) > 0) {
        char *rest = line; /* such as "7f0000000000-7f0000001000 rw-p .." */
        const uint64_t from = strtoull(rest, &rest, 16);
        const uint64_t to = strtoull(rest + (*rest == '-'), &rest, 16);
        if (to <= at || strlen(rest) < 5)
            continue;
        if (from > at)
            break;
        if (rest[2] != 'w')
            s = alloc_fail(error, REACH_ALLOC_INVALID_ARGUMENT,
                           "the process cannot write memory at 0x%llx, such as a file that is "
                           "mapped for reading; copy it, or map it for writing",
                           (unsigned long long)at);
        *is_private = *is_private || rest[4] == 'p';
        at = to;
    }
    if (s == REACH_ALLOC_OK && at < end)
        s = alloc_fail(error, REACH_ALLOC_INVALID_ARGUMENT, "the process has no memory at 0x%llx",
                       (unsigned long long)at);
    free(line);
    (void)fclose(f);
    if (s == REACH_ALLOC_OK)
        count_missing((char *)(uintptr_t)memory, bytes, missing);
    return s;
}

/* ---- the first write ---- */

struct touch {
    char *memory;
    uint64_t bytes;
    const cpu_set_t *cpus;     /* CPUs of the threads; NULL means those of the process */
    atomic_uint_fast64_t next; /* first byte that no thread has taken */
    atomic_bool *written;      /* for each chunk */
    bool keep;
    atomic_int failed; /* errno of a chunk that got no pages, or 0 */
};

/* Makes the pages of a chunk present and writable and keeps their contents. Returns errno. The
 * kernel does it at once; kernels before 5.14 cannot, and other threads may write meanwhile. */
static int populate(char *from, uint64_t bytes)
{
    if (madvise(from, bytes, MADV_POPULATE_WRITE) == 0)
        return 0;
    if (errno != EINVAL)
        return errno;
    const uint64_t page = alloc_page_bytes();
    for (uint64_t at = 0; at < bytes; at += page)
        (void)__atomic_fetch_or(from + at, 0, __ATOMIC_RELAXED);
    return 0;
}

/* Writes chunks until none is left. */
static void write_chunks(struct touch *t)
{
    const uint64_t page = alloc_page_bytes();
    uint64_t from;

    while ((from = atomic_fetch_add(&t->next, CHUNK_BYTES)) < t->bytes) {
        const uint64_t to = t->bytes - from < CHUNK_BYTES ? t->bytes : from + CHUNK_BYTES;
        const int why = t->keep ? populate(t->memory + from, to - from) : 0;
        for (uint64_t at = from; at < to && !t->keep; at += page)
            *(volatile char *)(t->memory + at) = 0;
        if (why)
            atomic_store(&t->failed, why);
        atomic_store(&t->written[from / CHUNK_BYTES], true);
    }
}

static void *touch_main(void *touch)
{
    struct touch *const t = touch;

    if (t->cpus)
        (void)sched_setaffinity(0, sizeof *t->cpus, t->cpus);
    write_chunks(t);
    return NULL;
}

/* Leaves in `cpus` the CPUs of a NUMA node. Returns false, and changes nothing, if the node is not
 * known or the process may use none of its CPUs. */
static bool keep_node(int node, cpu_set_t *cpus)
{
    char path[PATH_BYTES], line[1024] = "";
    cpu_set_t of_node;
    FILE *f;

    (void)snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", node);
    f = node >= 0 ? fopen(path, "re") : NULL;
    if (!f)
        return false;
    CPU_ZERO(&of_node);
    if (fgets(line, sizeof line, f)) {
        for (char *at = line; *at >= '0' && *at <= '9';) {
            const unsigned long first = strtoul(at, &at, 10);
            const unsigned long last = *at == '-' ? strtoul(at + 1, &at, 10) : first;
            for (unsigned long cpu = first; cpu <= last && cpu < CPU_SETSIZE; cpu++)
                CPU_SET(cpu, &of_node);
            at += *at == ',';
        }
    }
    (void)fclose(f);
    CPU_AND(&of_node, &of_node, cpus);
    if (CPU_COUNT(&of_node) == 0)
        return false;
    *cpus = of_node;
    return true;
}

/* Reports each further part of the beginning of the memory that is written, until the end. */
static void follow(struct touch *t, const struct alloc_touch *options)
{
    uint64_t done = 0;

    while (done < t->bytes) {
        const uint64_t before = done;
        while (done < t->bytes && atomic_load(&t->written[done / CHUNK_BYTES]))
            done = t->bytes - done < CHUNK_BYTES ? t->bytes : done + CHUNK_BYTES;
        if (done > before)
            options->progress(options->context, done, t->bytes);
        else
            (void)nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
    }
}

enum reach_alloc_status alloc_pages_touch(char *memory, uint64_t bytes,
                                          const struct alloc_touch *options,
                                          struct reach_alloc_error *error)
{
    struct touch t = {.memory = memory, .bytes = bytes, .keep = options->keep};
    pthread_t threads[MAX_THREADS];
    cpu_set_t cpus;
    uint32_t count = options->threads;
    uint32_t started = 0;

    t.written = calloc(bytes / CHUNK_BYTES + 1, sizeof *t.written);
    if (!t.written)
        return alloc_fail(error, REACH_ALLOC_NO_MEMORY,
                          "cannot allocate the list of written pages: out of memory");
    CPU_ZERO(&cpus);
    if (sched_getaffinity(0, sizeof cpus, &cpus) == 0 && keep_node(options->node, &cpus))
        t.cpus = &cpus;
    if (count == 0) /* a machine may have more CPUs than fit into the set */
        count = (uint32_t)(CPU_COUNT(&cpus) > 0 ? CPU_COUNT(&cpus) : sysconf(_SC_NPROCESSORS_ONLN));
    count = count < MAX_THREADS ? count : MAX_THREADS;
    if (count > (bytes - 1) / CHUNK_BYTES + 1)
        count = (uint32_t)((bytes - 1) / CHUNK_BYTES + 1);
    while (started < count && pthread_create(&threads[started], NULL, touch_main, &t) == 0)
        started++;
    if (started == 0)
        write_chunks(&t);
    if (options->progress)
        follow(&t, options);
    for (uint32_t i = 0; i < started; i++)
        (void)pthread_join(threads[i], NULL);
    free(t.written);
    if (!t.failed)
        return REACH_ALLOC_OK;
    return alloc_fail(error, REACH_ALLOC_NO_MEMORY,
                      "cannot take the pages of %llu MiB of memory: %s. Check that the file, or "
                      "/dev/shm, has room (df), and the limit of the container or service.",
                      (unsigned long long)(bytes >> 20), strerror(t.failed));
}
