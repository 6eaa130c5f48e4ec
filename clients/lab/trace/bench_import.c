/* bench_import.c: see bench_import.h. Each importer reads a text of random accesses from memory and
 * writes to /dev/null. The result is the shortest processor time of three imports.
 */
#include "clients/lab/trace/bench_import.h"

#include "base/rng.h"
#include "clients/lab/exit_status.h"
#include "clients/lab/trace/import.h"

#include <stdlib.h>
#include <time.h>

enum { TEXT_BYTES = 32 << 20, TIMES = 3, LINE_ROOM = 1024, SEED = 1 };

static double thread_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static uint64_t random_address(struct rng *rng)
{
    return 0x7f0000000000u + rng_below(rng, (uint64_t)1 << 37);
}

/* Each function writes one access to `out` and returns its length. Every second access is
 * coalesced. */
typedef int access_fn(struct rng *rng, uint32_t i, char *out);

static int nvbit_access(struct rng *rng, uint32_t i, char *out)
{
    const uint64_t base = random_address(rng);
    int n = snprintf(out, LINE_ROOM,
                     "MEMTRACE: CTX 0x000055d0c0ffee00 - grid_launch_id 0 - CTA %u,0,0 - warp %u - "
                     "LDG.E - ",
                     i / 64, i % 64);
    for (uint32_t lane = 0; lane < RLT_LANES; lane++)
        n += snprintf(out + n, LINE_ROOM - (size_t)n, "0x%016llx ",
                      (unsigned long long)(i % 2 ? random_address(rng) : base + 4 * lane));
    out[n++] = '\n';
    return n;
}

static int accelsim_access(struct rng *rng, uint32_t i, char *out)
{
    int n;
    if (i == 0)
        return snprintf(out, LINE_ROOM,
                        "-grid dim = (2,1,1)\n-block dim = (32,1,1)\n-accelsim tracer version = "
                        "5\n\n#BEGIN_TB\nthread block = 0,0,0\nwarp = 0\n#END_TB\n#BEGIN_TB\nwarp "
                        "= 0\n");
    if (i % 2)
        return snprintf(out, LINE_ROOM,
                        "0010 ffffffff 1 R1 IMAD.MOV.U32 2 R255 R255 0\n"
                        "0020 ffffffff 1 R2 LDG.E.SYS 1 R4 4 1 0x%llx 4\n",
                        (unsigned long long)random_address(rng));
    n = snprintf(out, LINE_ROOM, "0030 ffffffff 1 R2 LDG.E.SYS 1 R4 4 0 ");
    for (uint32_t lane = 0; lane < RLT_LANES; lane++)
        n += snprintf(out + n, LINE_ROOM - (size_t)n, "0x%016llx ",
                      (unsigned long long)random_address(rng));
    out[n++] = '\n';
    return n;
}

static int csv_access(struct rng *rng, uint32_t i, char *out)
{
    return snprintf(out, LINE_ROOM, "%u,0x%llx\n", i % 1024,
                    (unsigned long long)random_address(rng));
}

static enum status import_kernel(FILE *in, struct rlt_writer *out, struct import_counts *counts,
                                 struct err *err)
{
    return import_accelsim_kernel(in, rlt_write_app(out, ""), out, counts, err);
}

struct importer {
    const char *name;
    access_fn *access;
    const char *end;
    enum status (*import)(FILE *, struct rlt_writer *, struct import_counts *, struct err *);
};

static size_t write_text(const struct importer *m, char *text)
{
    struct rng rng = {SEED};
    size_t used = 0;
    for (uint32_t i = 0; used + (size_t)2 * LINE_ROOM < TEXT_BYTES; i++)
        used += (size_t)m->access(&rng, i, text + used);
    return used + (size_t)snprintf(text + used, LINE_ROOM, "%s", m->end);
}

/* Returns the time in seconds, or 0 after an error. */
static double import_once(const struct importer *m, char *text, size_t size,
                          struct import_counts *counts)
{
    FILE *in = fmemopen(text, size, "r");
    FILE *out = fopen("/dev/null", "we");
    struct rlt_writer *w = out ? rlt_writer_new(out, RLT_MIN_GRANULE) : NULL;
    struct err err = {0};
    double spent = 0;
    *counts = (struct import_counts){0};
    if (in && w) {
        const double start = thread_seconds();
        const enum status s = m->import(in, w, counts, &err);
        spent = s == STATUS_OK ? thread_seconds() - start : 0;
    }
    if (err.status != STATUS_OK)
        (void)fprintf(stderr, "reach-lab bench: %s\n", err.text);
    if (w && rlt_writer_end(w, NULL) != STATUS_OK)
        spent = 0;
    if (out)
        (void)fclose(out);
    if (in)
        (void)fclose(in);
    return spent;
}

static bool time_importer(const struct importer *m, char *text)
{
    const size_t size = write_text(m, text);
    struct import_counts counts;
    double best = 0;
    for (uint32_t i = 0; i < TIMES; i++) {
        const double spent = import_once(m, text, size, &counts);
        if (!(spent > 0))
            return false;
        best = i == 0 || spent < best ? spent : best;
    }
    printf("import, %-18s %6.0f MB/s  %5.2f M accesses of warps/s\n", m->name,
           (double)size / best * 1e-6, (double)counts.records / best * 1e-6);
    return true;
}

int bench_import(void)
{
    static const struct importer importers[] = {
        {"NVBit mem_trace", nvbit_access, "", import_nvbit},
        {"Accel-Sim .traceg", accelsim_access, "\n#END_TB\n", import_kernel},
        {"CSV", csv_access, "", import_csv}};
    char *text = malloc(TEXT_BYTES);
    bool good = text;
    for (uint32_t i = 0; good && i < sizeof importers / sizeof importers[0]; i++)
        good = time_importer(&importers[i], text);
    free(text);
    return good ? LAB_OK : LAB_ERROR;
}
