/* options.c: see options.h. */
#include "clients/lab/trace/options.h"

#include "base/units.h"
#include "clients/lab/trace/trace_load.h"
#include "clients/lab/trace/unpack.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

__attribute__((format(printf, 2, 3))) static void report(struct option_list *l, const char *format,
                                                         ...)
{
    va_list arguments;
    if (l->failed)
        return;
    va_start(arguments, format);
    (void)fprintf(stderr, "reach-lab %s: ", l->command);
    (void)vfprintf(stderr, format, arguments);
    (void)fputc('\n', stderr);
    va_end(arguments);
    l->failed = true;
}

bool option_text(struct option_list *l, const char *name, const char **out)
{
    if (l->failed || l->argc == 0 || strcmp(l->argv[0], name) != 0)
        return false;
    if (l->argc < 2) {
        report(l, "option %s needs a value", name);
        return false;
    }
    *out = l->argv[1];
    l->argc -= 2;
    l->argv += 2;
    return true;
}

bool option_flag(struct option_list *l, const char *name)
{
    if (l->failed || l->argc == 0 || strcmp(l->argv[0], name) != 0)
        return false;
    l->argc--;
    l->argv++;
    return true;
}

bool option_bytes(struct option_list *l, const char *name, uint64_t *out)
{
    struct err err = {0};
    const char *value;
    if (!option_text(l, name, &value))
        return false;
    if (units_parse_bytes(value, out, &err) != STATUS_OK)
        report(l, "%s: %s", name, err.text);
    return !l->failed;
}

bool option_count(struct option_list *l, const char *name, uint64_t *out)
{
    const char *value;
    char *end = NULL;
    if (!option_text(l, name, &value))
        return false;
    errno = 0;
    *out = strtoull(value, &end, 10);
    if (errno != 0 || end == value || *end != '\0' || strchr(value, '-'))
        report(l, "%s must be a whole number, not \"%s\"", name, value);
    return !l->failed;
}

bool option_real(struct option_list *l, const char *name, double *out)
{
    const char *value;
    char *end = NULL;
    if (!option_text(l, name, &value))
        return false;
    *out = strtod(value, &end);
    if (end == value || *end != '\0' || !(*out >= 0))
        report(l, "%s must be a number of at least 0, not \"%s\"", name, value);
    return !l->failed;
}

bool option_end(struct option_list *l, int wanted)
{
    if (l->argc > 0 && l->argv[0][0] == '-' && l->argv[0][1] != '\0')
        report(l, "unknown option %s; see --help", l->argv[0]);
    if (l->argc != wanted)
        report(l, "expected %d argument%s behind the options, found %d; see --help", wanted,
               wanted == 1 ? "" : "s", l->argc);
    return !l->failed;
}

/* Writes the unpacked content to a temporary file, because some commands read a trace twice. */
static FILE *unpack_to_file(struct unpack *u, struct err *err)
{
    char bytes[1 << 16];
    FILE *out = tmpfile();
    enum status s = STATUS_OK;

    for (size_t n = 1; out && n > 0 && s == STATUS_OK;) {
        n = fread(bytes, 1, sizeof bytes, u->in);
        if (fwrite(bytes, 1, n, out) != n)
            s = err_set(err, STATUS_IO, "cannot write a temporary file: %s", strerror(errno));
    }
    if (!out)
        s = err_set(err, STATUS_IO, "cannot make a temporary file: %s", strerror(errno));
    s = unpack_close(u, s, err);
    if (out && (s != STATUS_OK || fseek(out, 0, SEEK_SET) != 0)) {
        (void)fclose(out);
        return NULL;
    }
    return out;
}

FILE *option_open_file(struct option_list *l, const char *path)
{
    struct err err = {0};
    struct unpack u;
    FILE *in = NULL;

    if (strcmp(path, "-") == 0)
        return stdin;
    if (unpack_open(path, &u, &err) == STATUS_OK)
        in = u.with ? unpack_to_file(&u, &err) : u.in;
    if (!in)
        report(l, "%s", err.text);
    return in;
}

bool option_load_trace(struct option_list *l, const char *path, struct trace *out)
{
    struct err err = {0};
    *out = (struct trace){0};
    FILE *in = option_open_file(l, path);
    if (in && trace_load(in, out, &err) != STATUS_OK)
        report(l, "%s", err.text);
    if (in && in != stdin)
        (void)fclose(in);
    return !l->failed;
}
