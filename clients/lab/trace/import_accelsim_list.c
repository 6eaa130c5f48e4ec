/* import_accelsim_list.c: reads a kernelslist.g. It has a line for each allocation, copy and
 * kernel. The traces of the kernels are in the same folder. */
#include "clients/lab/trace/import_text.h"
#include "clients/lab/trace/unpack.h"

#include <errno.h>

enum { PATH_BYTES = 4096 };

static enum status import_kernel(const char *path, uint32_t app, struct rlt_writer *out,
                                 struct import_counts *counts, struct err *err)
{
    struct unpack u;
    enum status s = unpack_open(path, &u, err);
    if (s != STATUS_OK)
        return s;
    s = import_accelsim_kernel(u.in, app, out, counts, err);
    s = unpack_close(&u, s, err);
    return s == STATUS_OK ? s : err_prefix(err, "%s", path);
}

/* "MemcpyHtoD,0x..,1024", "cudaMalloc,0x..,1024" */
static enum status import_range(const struct text *t, struct span line, const char *name,
                                uint32_t app, struct rlt_writer *out, struct err *err)
{
    struct rlt_allocation a = {.app = app};
    if (!span_hex(&line, &a.base) || !span_skip(&line, ",") || !span_decimal(&line, &a.bytes) ||
        a.base > UINT64_MAX - a.bytes)
        return text_error(t, err, "must have an address and a length");
    (void)snprintf(a.name, sizeof a.name, "%s", name);
    if (a.bytes > 0)
        rlt_write_allocation(out, &a);
    return STATUS_OK;
}

static enum status import_entry(const struct text *t, const char *list, struct span line,
                                uint32_t app, struct rlt_writer *out, struct import_counts *counts,
                                struct err *err)
{
    const char *slash = strrchr(list, '/');
    const int folder = slash ? (int)(slash - list) + 1 : 0;
    const int length = (int)(line.end - line.at);
    char path[PATH_BYTES];
    if (span_skip(&line, "MemcpyHtoD,"))
        return import_range(t, line, "MemcpyHtoD", app, out, err);
    if (span_skip(&line, "cudaMalloc,"))
        return import_range(t, line, "cudaMalloc", app, out, err);
    if (length < 6 || memcmp(line.at, "kernel", 6) != 0)
        return STATUS_OK; /* skips copies to the host and lines of newer tracers */
    if (memchr(line.at, '/', (size_t)length) || folder + length >= PATH_BYTES)
        return text_error(t, err, "names a kernel that is not in the folder of the list");
    (void)snprintf(path, sizeof path, "%.*s%.*s", folder, list, length, line.at);
    return import_kernel(path, app, out, counts, err);
}

enum status import_accelsim(const char *path, struct rlt_writer *out, struct import_counts *counts,
                            struct err *err)
{
    static const char no_access[] = "no instruction accesses memory";
    const uint32_t app = rlt_write_app(out, "");
    struct err own = {0};
    struct text text;
    struct span line;
    FILE *in;
    enum status s;
    if (strstr(path, ".traceg")) {
        s = import_kernel(path, app, out, counts, err);
        return s == STATUS_OK ? import_end(counts, no_access, out, err) : s;
    }
    in = fopen(path, "re");
    if (!in)
        return err_set(err, STATUS_IO, "cannot open %s: %s", path, strerror(errno));
    s = text_open(&text, in, &own);
    while (s == STATUS_OK && text_next_line(&text, &line, &own))
        s = import_entry(&text, path, line, app, out, counts, &own);
    text_close(&text);
    (void)fclose(in);
    if (own.status != STATUS_OK)
        return err_set(err, own.status, "%s", own.text);
    return import_end(counts, counts->bytes > 0 ? no_access : "the list names no kernel", out, err);
}
