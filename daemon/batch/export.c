/* export.c: writes the results of one run to files. See export.h.
 *
 * A file is written completely under another name and then renamed, so a folder never contains a
 * partial file.
 */
#include "batch/export.h"

#include "base/clock.h"
#include "base/json_reader.h"
#include "base/json_load.h"
#include "base/json_writer.h"
#include "batch/report.h"
#include "fingerprint/fingerprint_json.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXPORT_UUID_CHARS = 8, EXPORT_DATE_CHARS = 10, EXPORT_SLUG_BYTES = 64 };

/* Writes a name for use in a path: "NVIDIA H200 NVL" becomes "nvidia-h200-nvl". */
static void export_slug(const char *name, char *out, size_t out_size)
{
    size_t n = 0;

    for (; *name && n + 1 < out_size; name++) {
        if (isalnum((unsigned char)*name)) {
            out[n++] = (char)tolower((unsigned char)*name);
        } else if (n > 0 && out[n - 1] != '-') {
            out[n++] = '-';
        }
    }
    while (n > 0 && out[n - 1] == '-')
        n--;
    out[n] = '\0';
}

static enum status export_mkdir(const char *path, struct err *err)
{
    return mkdir(path, 0755) < 0 && errno != EEXIST
               ? err_set(err, STATUS_IO, "cannot create %s: %s", path, strerror(errno))
               : STATUS_OK;
}

enum status export_folder(const char *dir, const struct gpu_identity *gpu, int64_t now, char *out,
                          size_t out_size, struct err *err)
{
    char slug[EXPORT_SLUG_BYTES], date[32];
    const char *dash = strchr(gpu->uuid, '-'); /* after "GPU-" */
    const char *uuid = dash ? dash + 1 : gpu->uuid;
    enum status status = export_mkdir(dir, err);

    if (status)
        return status;
    export_slug(gpu->name, slug, sizeof slug);
    clock_rfc3339(now, date, sizeof date);
    int n = snprintf(out, out_size, "%s/%s-%.*s-%.*s", dir, slug[0] ? slug : "gpu",
                     EXPORT_UUID_CHARS, uuid, EXPORT_DATE_CHARS, date);

    if (n < 0 || (size_t)n >= out_size)
        return err_set(err, STATUS_INVALID_ARGUMENT, "the path of %s is too long", dir);
    return export_mkdir(out, err);
}

/* Opens "PATH.tmp". */
static FILE *export_begin(const char *path, char *temporary, size_t size, struct err *err)
{
    const int n = snprintf(temporary, size, "%s.tmp", path);
    const bool fits = n >= 0 && (size_t)n < size;
    FILE *file = fits ? fopen(temporary, "we") : NULL;

    if (!file)
        err_set(err, STATUS_IO, "cannot write %s: %s", path,
                fits ? strerror(errno) : "the path is too long");
    return file;
}

/* Closes the file and renames it, or removes it after a failure. */
static enum status export_end(FILE *take, enum status status, const char *temporary,
                              const char *path, struct err *err)
{
    bool broken = ferror(take) != 0;

    broken = fclose(take) != 0 || broken;
    if (!status && (broken || rename(temporary, path) < 0))
        status = err_set(err, STATUS_IO, "cannot write %s: %s", path, strerror(errno));
    if (status)
        unlink(temporary);
    return status;
}

static enum status export_header(FILE *out, const struct observation_set *set, enum depth depth,
                                 struct err *err)
{
    struct json_writer t;

    json_writer_begin(&t, 0);
    json_writer_open(&t, NULL, '{');
    json_writer_text(&t, "format", "reachd-observations-1");
    json_writer_text(&t, "depth", depth_name(depth));
    identity_json_write(&t, "gpu", &set->gpu);
    gpu_limits_write(&t, "limits", &set->limits);
    json_writer_close(&t, '}');
    return json_writer_print(&t, out, err);
}

/* Writes the document of an observation on one line. */
static enum status export_observation(FILE *out, const struct observation *o, struct err *err)
{
    struct json_writer t;

    json_writer_begin(&t, 0);
    observation_write(&t, NULL, o);
    return json_writer_print(&t, out, err);
}

enum status export_observations(const char *path, const struct observation_set *set,
                                enum depth depth, struct err *err)
{
    char temporary[PATH_MAX];
    FILE *file = export_begin(path, temporary, sizeof temporary, err);

    if (!file)
        return STATUS_IO;
    enum status status = export_header(file, set, depth, err);

    for (size_t i = 0; i < set->count && !status; i++)
        status = export_observation(file, &set->items[i], err);
    for (size_t i = 0; i < set->excluded.count && !status; i++)
        status = export_observation(file, &set->excluded.items[i], err);
    return export_end(file, status, temporary, path, err);
}

enum status export_text(const char *path, const char *text, size_t bytes, struct err *err)
{
    char temporary[PATH_MAX];
    FILE *file = export_begin(path, temporary, sizeof temporary, err);

    if (!file)
        return STATUS_IO;
    (void)fwrite(text, 1, bytes, file); /* export_end reports a failure */
    return export_end(file, STATUS_OK, temporary, path, err);
}

enum status export_print(FILE *out, const struct fingerprint *fp, struct err *err)
{
    struct json_writer t;

    json_writer_begin(&t, 0);
    t.indent = 1;
    fingerprint_write(&t, NULL, fp, NULL);
    return json_writer_print(&t, out, err);
}

enum status export_fingerprint(const char *path, const struct fingerprint *fp, struct err *err)
{
    char temporary[PATH_MAX];
    FILE *file = export_begin(path, temporary, sizeof temporary, err);

    if (!file)
        return STATUS_IO;
    return export_end(file, export_print(file, fp, err), temporary, path, err);
}

enum status export_table(const char *path, const struct fingerprint *fp, struct err *err)
{
    char temporary[PATH_MAX];
    FILE *file = export_begin(path, temporary, sizeof temporary, err);

    if (!file)
        return STATUS_IO;
    return export_end(file, report_fingerprint(file, fp, true, err), temporary, path, err);
}

static enum status export_read_header(const json_t *json, struct observation_set *out,
                                      enum depth *depth, struct err *err)
{
    struct json_reader in;
    struct err inner = {0};

    json_reader_begin(&in, json, "", JSON_READER_STRICT, STATUS_PROTOCOL, err);
    const char *format = json_reader_word(&in, "format");
    const char *name = json_reader_word(&in, "depth");

    if (format && strcmp(format, "reachd-observations-1") != 0)
        json_reader_fail(&in, "format", "is not reachd-observations-1");
    if (name && !depth_from_name(name, depth))
        json_reader_fail(&in, "depth", "is not quick, full, memory or matrix");
    const json_t *gpu = json_reader_object(&in, "gpu");
    const json_t *limits = json_reader_object(&in, "limits");

    if (json_reader_ok(&in) && (gpu_identity_from_json(gpu, &out->gpu, &inner) ||
                                gpu_limits_from_json(limits, &out->limits, &inner)))
        return err_set(err, inner.status, "%s", inner.text);
    return json_reader_end(&in);
}

enum status export_read_observations(FILE *in, struct observation_set *out, enum depth *depth,
                                     struct err *err)
{
    enum status status = STATUS_OK;
    char *line = NULL;
    size_t capacity = 0, number = 0;
    ssize_t n;

    *out = (struct observation_set){0};
    while (!status && (n = getline(&line, &capacity, in)) > 0) {
        json_error_t error;
        json_t *json = json_load_whole(line, (size_t)n, &error);
        struct observation o = {0};

        number++;
        if (!json) {
            status = err_set(err, STATUS_PROTOCOL, "line %zu is not JSON: %s", number, error.text);
        } else if (number == 1) {
            status = export_read_header(json, out, depth, err);
        } else {
            status = observation_from_json(json, &o, err);
            status = status ? status : observation_set_add(out, &o, err);
        }
        if (status && json)
            err_prefix(err, "line %zu", number);
        json_decref(json);
    }
    if (!status && number == 0)
        status = err_set(err, STATUS_PROTOCOL, "the file is empty");
    free(line);
    if (status)
        observation_set_free(out);
    return status;
}
