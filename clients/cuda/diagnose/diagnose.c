/* diagnose.c: the sequence of a diagnosis, and its text. See reach_diagnose.h. */
#include "clients/cuda/diagnose/diagnose_parts.h"

#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the context ---- */

/* Uses the current context if that belongs to the device, because a job's allocations may be in
 * it. */
static enum reach_alloc_status enter(struct diagnose *d, struct reach_alloc_error *error)
{
    int current = -1;
    void *context = NULL;
    enum reach_alloc_status s = DRV(d, error, cuDeviceGet, &d->device, d->options.device);

    if (s != REACH_ALLOC_OK || (d->driver.cuCtxGetDevice(&current) == 0 && current == d->device))
        return s;
    s = DRV(d, error, cuDevicePrimaryCtxRetain, &context, d->device);
    if (s != REACH_ALLOC_OK)
        return s;
    s = DRV(d, error, cuCtxPushCurrent, context);
    d->retained = s == REACH_ALLOC_OK;
    if (!d->retained)
        (void)d->driver.cuDevicePrimaryCtxRelease(d->device);
    return s;
}

enum reach_alloc_status diagnose_open(const struct reach_diagnose_options *options,
                                      struct diagnose **out, struct reach_alloc_error *error)
{
    struct diagnose *d;
    enum reach_alloc_status s;

    *out = NULL;
    if (options && options->size < sizeof options->size)
        return alloc_fail(error, REACH_ALLOC_INVALID_ARGUMENT,
                          "size of the options must be sizeof(struct reach_diagnose_options)");
    d = calloc(1, sizeof *d);
    if (!d)
        return alloc_fail(error, REACH_ALLOC_NO_MEMORY,
                          "cannot allocate a diagnosis: out of memory");
    d->start_ns = read_elapsed_ns(d);
    if (options)
        memcpy(&d->options, options,
               options->size < sizeof d->options ? options->size : sizeof d->options);
    s = alloc_driver_open(d->options.driver, &d->driver, error);
    if (s == REACH_ALLOC_OK)
        s = enter(d, error);
    if (s == REACH_ALLOC_OK)
        *out = d;
    else
        diagnose_close(d);
    return s;
}

void diagnose_close(struct diagnose *take)
{
    void *context;

    if (!take)
        return;
    read_close(take);
    if (take->retained) {
        (void)take->driver.cuCtxPopCurrent(&context);
        (void)take->driver.cuDevicePrimaryCtxRelease(take->device);
    }
    alloc_driver_close(&take->driver);
    free(take);
}

/* ---- the text ---- */

/* Appends text, and truncates it at the end of the buffer. */
__attribute__((format(printf, 2, 3))) static void say(struct reach_diagnosis *f, const char *format,
                                                      ...)
{
    const size_t at = strlen(f->text);
    va_list args;

    va_start(args, format);
    (void)vsnprintf(f->text + at, sizeof f->text - at, format, args);
    va_end(args);
}

/* Appends `before` and the size, such as "96.00 GiB". */
static void say_size(struct reach_diagnosis *f, const char *before, double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;

    for (; bytes >= 1024 && unit < 4; bytes /= 1024)
        unit++;
    say(f, "%s%.*f %s", before, bytes < 10 && unit > 0 ? 2 : 0, bytes, units[unit]);
}

static void say_rate(struct reach_diagnosis *f, const char *before, double gbps)
{
    say(f, "%s%.*f GB/s", before, gbps < 100 ? 1 : 0, gbps);
}

static void say_reads(struct reach_diagnosis *f)
{
    if (f->out_of_reach.known)
        say(f, ", %s", f->out_of_reach.value != 0 ? "out of reach" : "within reach");
    if (f->read_gbps.known)
        say_rate(f, "; random reads at ", f->read_gbps.value);
    if (f->part_gbps.known) {
        say_rate(f, ", ", f->part_gbps.value);
        say_size(f, " over ", (double)f->part_bytes);
    }
    if (f->out_of_reach.known && f->out_of_reach.value != 0 && f->gain.known)
        say(f, "; work within the reach can gain up to %.1f times", f->gain.value);
    if (f->reach_bytes.known)
        say_size(f, "; reach about ", f->reach_bytes.value);
    if (f->entry_bytes.known)
        say_size(f, ", entries of ", f->entry_bytes.value);
    if (!f->out_of_reach.known)
        say(f, "; reach not observable: %s", f->out_of_reach.reason);
}

/* Formats in the C locale, because the job's locale may have a decimal comma. */
static void write_text(struct reach_diagnosis *f)
{
    const locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    const locale_t before = uselocale(c);

    f->text[0] = '\0';
    say(f, "%s memory", reach_memory_name(f->memory));
    say_size(f, ", ", (double)f->bytes);
    if (f->mapping_bytes > 0)
        say_size(f, " in pieces of ", (double)f->mapping_bytes);
    say_reads(f);
    if (f->compressible.known && f->compressible.value != 0)
        say(f, "; compressible, which makes random reads slow");
    if (f->contiguous.known) {
        say(f, "; %.0f %% of its frames are contiguous (+- %.0f)", 100 * f->contiguous.value,
            100 * f->contiguous.error);
        if (f->contiguous_gbps.known)
            say_rate(f, ", if all were, at ", f->contiguous_gbps.value);
    }
    say(f, ".");
    uselocale(before);
    if (c)
        freelocale(c);
}

/* ---- the call ---- */

enum reach_alloc_status diagnose_run(struct diagnose *d, uint64_t pointer, uint64_t bytes,
                                     struct reach_alloc_error *error)
{
    const struct reach_finding none = finding_absent("it was not read");
    struct reach_diagnosis *const f = &d->found;
    enum reach_alloc_status s;

    f->compressible = f->out_of_reach = f->read_gbps = f->part_gbps = f->gain = none;
    f->reach_bytes = f->entry_bytes = f->contiguous = f->contiguous_gbps = none;
    f->bytes = bytes;
    if (pointer == 0 || bytes == 0 || bytes > UINT64_MAX - pointer)
        return alloc_fail(error, REACH_ALLOC_INVALID_ARGUMENT,
                          "the memory is empty; pass a pointer and at least one byte");
    s = diagnose_kind(d, pointer, error);
    if (s == REACH_ALLOC_OK && !d->unread)
        s = read_open(d, error);
    if (s == REACH_ALLOC_OK)
        s = find_all(d, error);
    f->ns = read_elapsed_ns(d);
    write_text(f);
    return s;
}

enum reach_alloc_status diagnose_copy(struct diagnose *d, struct reach_diagnosis *out,
                                      struct reach_alloc_error *error)
{
    const size_t size = out ? out->size : 0;

    if (size < sizeof size)
        return alloc_fail(error, REACH_ALLOC_INVALID_ARGUMENT,
                          "size of the diagnosis must be sizeof(struct reach_diagnosis)");
    d->found.size = size < sizeof d->found ? size : sizeof d->found;
    memcpy(out, &d->found, d->found.size);
    return REACH_ALLOC_OK;
}

enum reach_alloc_status reach_diagnose(const void *pointer, uint64_t bytes,
                                       const struct reach_diagnose_options *options,
                                       struct reach_diagnosis *out, struct reach_alloc_error *error)
{
    struct diagnose *d;
    enum reach_alloc_status s = diagnose_open(options, &d, error);

    if (s == REACH_ALLOC_OK)
        s = diagnose_run(d, (uintptr_t)pointer, bytes, error);
    if (s == REACH_ALLOC_OK)
        s = diagnose_copy(d, out, error);
    diagnose_close(d);
    return s;
}
