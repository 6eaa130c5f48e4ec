/* trace_commands.c: see trace_commands.h. */
#include "clients/lab/trace/trace_commands.h"

#include "base/json_writer.h"
#include "base/format_size.h"
#include "base/units.h"
#include "clients/lab/exit_status.h"
#include "clients/lab/trace/gen_jobs.h"
#include "clients/lab/trace/import.h"
#include "clients/lab/trace/options.h"
#include "clients/lab/trace/sample.h"
#include "clients/lab/trace/unpack.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { DEFAULT_COUNT = 1 << 20, DEFAULT_ROW_BYTES = 128, TEXT_BYTES = 32 };

static int report(const char *command, const struct err *err)
{
    (void)fprintf(stderr, "reach-lab %s: %s\n", command, err->text);
    return LAB_ERROR;
}

/* Returns a writer to stdout. Returns NULL after an error and reports the error. */
static struct rlt_writer *open_stdout(const char *command, uint64_t granule_bytes)
{
    struct err err = {0};
    struct rlt_writer *w = NULL;
    if (isatty(STDOUT_FILENO))
        (void)err_set(&err, STATUS_INVALID_ARGUMENT,
                      "a trace is binary: redirect the output to a file");
    else if (granule_bytes < RLT_MIN_GRANULE || granule_bytes > RLT_MAX_GRANULE ||
             (granule_bytes & (granule_bytes - 1)) != 0)
        (void)err_set(&err, STATUS_INVALID_ARGUMENT,
                      "granule must be a power of two from 128 bytes to 64 MiB");
    else
        w = rlt_writer_new(stdout, (uint32_t)granule_bytes);
    if (!w)
        (void)report(command, &err);
    return w;
}

/* Writes the end of the trace. After an error the end is missing, so that every reader rejects the
 * trace. */
static enum status end_trace(struct rlt_writer *w, enum status s, struct err *err)
{
    if (s == STATUS_OK)
        return rlt_writer_end(w, err);
    rlt_writer_abandon(w);
    return s;
}

/* ---- gen ---- */

int trace_command_gen(int argc, char **argv)
{
    struct option_list l = {argc - 1, argv + 1, "gen", false};
    struct gen_job job = {
        .bytes = 64 * GIB, .count = DEFAULT_COUNT, .row_bytes = DEFAULT_ROW_BYTES, .seed = 1};
    uint64_t granule = RLT_MIN_GRANULE;
    uint64_t number;
    struct err err = {0};
    struct rlt_writer *w;
    enum status s;
    if (argc < 1)
        return report("gen", &(struct err){.text = "missing job; see --help"});
    job.name = argv[0];
    for (int left = l.argc + 1; left != l.argc;) {
        left = l.argc;
        (void)option_bytes(&l, "--bytes", &job.bytes);
        (void)option_bytes(&l, "--granule", &granule);
        (void)option_count(&l, "--count", &job.count);
        if (option_count(&l, "--row-bytes", &number))
            job.row_bytes = number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
        if (option_count(&l, "--threads", &number))
            job.threads = number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
        if (option_count(&l, "--seed", &number))
            job.seed = (uint32_t)number;
    }
    if (!option_end(&l, 0) || !(w = open_stdout("gen", granule)))
        return LAB_ERROR;
    s = gen_job(&job, w, &err);
    s = end_trace(w, s, &err);
    if (s != STATUS_OK)
        return report("gen", &err);
    return LAB_OK;
}

/* ---- import ---- */

typedef enum status import_text_fn(FILE *in, struct rlt_writer *out, struct import_counts *counts,
                                   struct err *err);

static enum status import_from(const char *kind, const char *path, struct rlt_writer *w,
                               struct import_counts *counts, struct err *err)
{
    import_text_fn *const import = strcmp(kind, "nvbit") == 0 ? import_nvbit : import_csv;
    struct unpack u;
    enum status s;
    if (strcmp(kind, "accelsim") == 0)
        return import_accelsim(path, w, counts, err);
    if (strcmp(path, "-") == 0)
        return import(stdin, w, counts, err);
    s = unpack_open(path, &u, err);
    return s == STATUS_OK ? unpack_close(&u, import(u.in, w, counts, err), err) : s;
}

int trace_command_import(int argc, char **argv)
{
    struct option_list l = {argc - 1, argv + 1, "import", false};
    struct import_counts counts = {0};
    uint64_t granule = RLT_MIN_GRANULE;
    struct err err = {0};
    struct rlt_writer *w;
    enum status s;
    if (argc < 1 || (strcmp(argv[0], "nvbit") != 0 && strcmp(argv[0], "accelsim") != 0 &&
                     strcmp(argv[0], "csv") != 0))
        return report("import",
                      &(struct err){.text = "the first argument must be nvbit, accelsim or csv"});
    (void)option_bytes(&l, "--granule", &granule);
    if (!option_end(&l, 1) || !(w = open_stdout("import", granule)))
        return LAB_ERROR;
    s = import_from(argv[0], l.argv[0], w, &counts, &err);
    s = end_trace(w, s, &err);
    if (s != STATUS_OK)
        return report("import", &err);
    (void)fprintf(
        stderr,
        "reach-lab import: %llu accesses of warps; left out: %llu to shared, local or "
        "constant memory, %llu without an active lane, %llu lines of the program itself\n",
        (unsigned long long)counts.records, (unsigned long long)counts.other_memory,
        (unsigned long long)counts.idle, (unsigned long long)counts.other_lines);
    left_out_print(&counts.left_out, counts.records, stderr);
    return LAB_OK;
}

/* ---- info ---- */

static enum status print_json(const struct trace *trace, struct err *err)
{
    struct json_writer t;
    json_writer_begin(&t, 0);
    t.indent = 2;
    json_writer_open(&t, NULL, '{');
    json_writer_u64(&t, "records", trace->record_count);
    json_writer_u64(&t, "loads", trace->kinds[RLT_LOAD]);
    json_writer_u64(&t, "stores", trace->kinds[RLT_STORE]);
    json_writer_u64(&t, "atomics", trace->kinds[RLT_ATOMIC]);
    json_writer_u64(&t, "lines", trace->line_count);
    json_writer_u64(&t, "moved_bytes", trace->moved_bytes);
    json_writer_u64(&t, "granule_bytes", trace->granule_bytes);
    json_writer_u64(&t, "blocks", trace->block_count);
    json_writer_u64(&t, "warps", trace->warp_count);
    json_writer_u64(&t, "regions", trace->region_count);
    json_writer_u64(&t, "bytes", trace->bytes);
    json_writer_u64(&t, "instructions_between", trace->gaps);
    left_out_write(&t, &trace->left_out, trace->record_count);
    json_writer_open(&t, "kernels", '[');
    for (uint32_t i = 0; i < trace->kernel_count; i++)
        json_writer_text(&t, NULL, trace->kernels[i].name);
    json_writer_close(&t, ']');
    json_writer_close(&t, '}');
    return json_writer_print(&t, stdout, err);
}

static void print_info(const struct trace *t)
{
    char bytes[TEXT_BYTES];
    char granule[TEXT_BYTES];
    printf("%u records: %llu loads, %llu stores, %llu atomics; %.2f lines of %s each\n",
           t->record_count, (unsigned long long)t->kinds[RLT_LOAD],
           (unsigned long long)t->kinds[RLT_STORE], (unsigned long long)t->kinds[RLT_ATOMIC],
           (double)t->line_count / t->record_count, format_size(t->granule_bytes, granule));
    left_out_print(&t->left_out, t->record_count, stdout);
    printf("%u warps of %u blocks of %u kernels\n", t->warp_count, t->block_count, t->kernel_count);
    printf("%s in %u regions\n", format_size(t->bytes, bytes), t->region_count);
    for (uint32_t i = 0; i < t->region_count; i++)
        printf("  0x%012llx  %s\n", (unsigned long long)t->regions[i].base,
               format_size(t->regions[i].bytes, bytes));
    for (uint32_t i = 0; i < t->kernel_count; i++) {
        const struct rlt_kernel *k = &t->kernels[i];
        printf("  kernel %u  %u x %u x %u blocks of %u x %u x %u threads  %s\n", i, k->grid[0],
               k->grid[1], k->grid[2], k->block[0], k->block[1], k->block[2], k->name);
    }
}

int trace_command_info(int argc, char **argv)
{
    struct option_list l = {argc, argv, "info", false};
    const bool as_json = option_flag(&l, "--json");
    struct trace t = {0};
    struct err err = {0};
    int result = LAB_OK;
    if (!option_end(&l, 1) || !option_load_trace(&l, l.argv[0], &t))
        result = LAB_ERROR;
    else if (!as_json)
        print_info(&t);
    else if (print_json(&t, &err) != STATUS_OK)
        result = report("info", &err);
    trace_free(&t);
    return result;
}

/* ---- sample ---- */

int trace_command_sample(int argc, char **argv)
{
    struct option_list l = {argc, argv, "sample", false};
    uint64_t every = 0;
    struct err err = {0};
    FILE *in;
    enum status s;
    (void)option_count(&l, "--one-in", &every);
    if (!option_end(&l, 1))
        return LAB_ERROR;
    if (every == 0)
        return report("sample", &(struct err){.text = "--one-in must be 1 or more"});
    if (isatty(STDOUT_FILENO))
        return report("sample",
                      &(struct err){.text = "a trace is binary: redirect the output to a file"});
    if (!(in = option_open_file(&l, l.argv[0])))
        return LAB_ERROR;
    s = sample_blocks(in, every, stdout, &err);
    if (in != stdin)
        (void)fclose(in);
    return s == STATUS_OK ? LAB_OK : report("sample", &err);
}
