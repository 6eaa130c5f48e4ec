/* import_accelsim_list.c: a kernelslist.g: a line for each allocation or copy and for each kernel,
 * whose trace lies beside the list, as text or compressed.
 */
#include "clients/lab/import_text.h"

#include <errno.h>

enum { PATH_BYTES = 4096 };

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text);
    return length >= strlen(end) && strcmp(text + length - strlen(end), end) == 0;
}

/* The program that unpacks it; NULL: it is plain text. */
static const char *unpacker_of(const char *path)
{
    return ends_with(path, ".xz") ? "xz" : ends_with(path, ".zst") ? "zstd" : NULL;
}

static FILE *open_kernel(const char *path, struct err *err)
{
    char command[PATH_BYTES + 32];
    const char *unpacker = unpacker_of(path);
    FILE *in = fopen(path, "re");
    if (!in) {
        (void)err_set(err, STATUS_IO, "cannot open %s: %s", path, strerror(errno));
        return NULL;
    }
    if (!unpacker)
        return in;
    (void)fclose(in);
    if (strchr(path, '\'')) {
        (void)err_set(err, STATUS_INVALID_ARGUMENT, "%s has a quote in its name: rename it", path);
        return NULL;
    }
    (void)snprintf(command, sizeof command, "%s -dc -- '%s'", unpacker, path);
    in = popen(command, "re");
    if (!in)
        (void)err_set(err, STATUS_IO, "cannot run %s: %s", unpacker, strerror(errno));
    return in;
}

static enum status import_kernel(const char *path, uint32_t app, struct rlt_writer *out,
                                 struct import_counts *counts, struct err *err)
{
    FILE *in = open_kernel(path, err);
    const bool packed = unpacker_of(path);
    enum status s;
    if (!in)
        return err->status;
    s = import_accelsim_kernel(in, app, out, counts, err);
    if ((packed ? pclose(in) : fclose(in)) != 0 && s == STATUS_OK)
        s = err_set(err, STATUS_CORRUPT, "it cannot be unpacked");
    return s == STATUS_OK ? s : err_prefix(err, "%s", path);
}

/* "MemcpyHtoD,0x..,1024", "cudaMalloc,0x..,1024" */
static enum status import_range(const struct text *t, struct span line, const char *name,
                                uint32_t app, struct rlt_writer *out, struct err *err)
{
    struct rlt_allocation a = {.app = app};
    if (!span_hex(&line, &a.base) || !span_skip(&line, ",") || !span_decimal(&line, &a.bytes) ||
        a.base > UINT64_MAX - a.bytes)
        return text_wrong(t, err, "has no address and length");
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
        return STATUS_OK; /* copies back, and what a newer tracer may add */
    if (memchr(line.at, '/', (size_t)length) || folder + length >= PATH_BYTES)
        return text_wrong(t, err, "names a kernel that does not lie beside the list");
    (void)snprintf(path, sizeof path, "%.*s%.*s", folder, list, length, line.at);
    return import_kernel(path, app, out, counts, err);
}

enum status import_accelsim(const char *path, struct rlt_writer *out, struct import_counts *counts,
                            struct err *err)
{
    const uint32_t app = rlt_write_app(out, "");
    struct err own = {0};
    struct text text;
    struct span line;
    FILE *in;
    enum status s;
    if (strstr(path, ".traceg"))
        return import_kernel(path, app, out, counts, err);
    in = fopen(path, "re");
    if (!in)
        return err_set(err, STATUS_IO, "cannot open %s: %s", path, strerror(errno));
    s = text_open(&text, in, &own);
    while (s == STATUS_OK && text_line(&text, &line, &own))
        s = import_entry(&text, path, line, app, out, counts, &own);
    text_close(&text);
    (void)fclose(in);
    if (own.status != STATUS_OK)
        return err_set(err, own.status, "%s", own.text);
    return counts->records > 0 ? STATUS_OK
                               : err_set(err, STATUS_CORRUPT, "%s names no kernel", path);
}
