/* share.c: makes the anonymous document of a chip. */
#include "compare/share.h"

#include "compare/metrics.h"

#include "base/hash.h"
#include "base/json_writer.h"
#include "base/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

bool share_is_key(const char *property)
{
    return strcmp(property, "gpu.compute_capability") == 0 ||
           strcmp(property, "gpu.sm_count") == 0 || strcmp(property, "gpu.memory_bytes") == 0;
}

static void add_property(void *self, const char *name, enum known known, double v, const char *text)
{
    (void)v;
    if (known == MAYBE_KNOWN && !share_is_key(name))
        json_writer_text(self, name, text);
}

static void add_number(void *self, const char *name, enum known known, double v, const char *text)
{
    (void)text;
    if (known != MAYBE_KNOWN || !metrics_is_of_chip(name))
        return;
    if (v >= 0 && v < (double)((uint64_t)1 << 53) && (double)(uint64_t)v == v)
        json_writer_u64(self, name, (uint64_t)v);
    else
        json_writer_real(self, name, v);
}

static void write_gpu(struct json_writer *t, const struct gpu_identity *gpu)
{
    char name[sizeof(gpu->name)];
    char capability[24];

    memcpy(name, gpu->name, sizeof(name));
    text_sanitize(name);
    (void)snprintf(capability, sizeof(capability), "%u.%u", gpu->compute_major, gpu->compute_minor);
    json_writer_open(t, "gpu", '{');
    json_writer_text(t, "name", name);
    json_writer_text(t, "compute_capability", capability);
    json_writer_u64(t, "sm_count", gpu->sm_count);
    json_writer_u64(t, "memory_bytes", gpu->memory_bytes);
    json_writer_close(t, '}');
}

static void write_day(struct json_writer *t, int64_t seconds)
{
    const time_t at = (time_t)seconds;
    struct tm day;
    char text[32] = "";

    if (!gmtime_r(&at, &day) || strftime(text, sizeof(text), "%Y-%m-%d", &day) == 0)
        t->failed = true;
    json_writer_text(t, "measured_on", text);
}

/* "nvidia-h200-0f3a9c1d5e7b2468.json" */
static void name_file(const struct gpu_identity *gpu, const char *text, size_t bytes, char *out)
{
    enum { MODEL_CHARACTERS = 48 };
    size_t n = 0;

    for (const char *s = gpu->name; *s && n < MODEL_CHARACTERS; s++) {
        if (isalnum((unsigned char)*s))
            out[n++] = (char)tolower((unsigned char)*s);
        else if (n > 0 && out[n - 1] != '-')
            out[n++] = '-';
    }
    if (n > 0 && out[n - 1] == '-')
        n--;
    (void)snprintf(out + n, SHARE_FILE_BYTES - n, "%s%016" PRIx64 ".json", n > 0 ? "-" : "gpu-",
                   hash_bytes(HASH_START, text, bytes));
}

enum status share_make(const struct fingerprint *fp, char **out_text, size_t *out_bytes,
                       char *out_file, struct err *err)
{
    char map[FINGERPRINT_MAP_HASH_BYTES];
    struct json_writer t;

    *out_text = NULL;
    if (fp->gpu.origin != ORIGIN_MEASURED)
        return err_set_hint(err, STATUS_NOT_APPLICABLE,
                            "Share a fingerprint that was measured on the chip itself.",
                            "this fingerprint is %s: the reference set has measured ones only",
                            origin_name(fp->gpu.origin));
    json_writer_begin(&t, 0);
    t.indent = 1;
    json_writer_open(&t, NULL, '{');
    json_writer_text(&t, "format", SHARE_FORMAT);
    write_gpu(&t, &fp->gpu);
    json_writer_text(&t, "depth", depth_name(fp->depth));
    write_day(&t, fp->taken_at);
    json_writer_text_or_null(&t, "map", fingerprint_map_hash(&fp->topology.partition, map));
    json_writer_open(&t, "properties", '{');
    structure_visit(fp, add_property, &t);
    json_writer_close(&t, '}');
    json_writer_open(&t, "numbers", '{');
    metrics_visit(fp, add_number, &t);
    json_writer_close(&t, '}');
    json_writer_close(&t, '}');
    *out_text = json_writer_end(&t, out_bytes);
    if (!*out_text)
        return err_no_memory(err, "the file of a chip");
    name_file(&fp->gpu, *out_text, *out_bytes, out_file);
    return STATUS_OK;
}
