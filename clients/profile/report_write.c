/* report_write.c: see report_write.h. */
#include "clients/profile/report_write.h"

#include "base/text.h"
#include "clients/profile/fingerprints.h"
#include "clients/profile/recording.h"
#include "clients/profile/report_html.h"
#include "clients/profile/report_json.h"
#include "clients/profile/report_table.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BEGIN "recording-"
#define NAME_END   ".json"

struct recordings {
    uint32_t count;
    struct recording *all;
};

/* ---- reading ---- */

static int is_recording(const struct dirent *entry)
{
    const size_t length = strlen(entry->d_name);

    return length > strlen(NAME_BEGIN NAME_END) &&
           strncmp(entry->d_name, NAME_BEGIN, strlen(NAME_BEGIN)) == 0 &&
           strcmp(entry->d_name + length - strlen(NAME_END), NAME_END) == 0;
}

/* Replaces a recording that cannot be read by the reason. */
static void set_problem(struct recording *r, struct err *err)
{
    recording_free(r);
    text_sanitize(err->text);
    r->document = json_string(err->text);
    if (r->document)
        r->problem = json_string_value(r->document);
}

/* Fails if no recording can be read. */
static enum status read_all(const char *folder, struct dirent **entries, int count,
                            struct recordings *out, struct err *err)
{
    struct err own = {0};
    enum status s;
    bool any = false;

    out->all = calloc((size_t)count + 1, sizeof(*out->all));
    if (!out->all)
        return err_no_memory(err, "the recordings");
    for (int i = 0; i < count; i++) {
        char path[PATH_MAX];
        if (snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name) >= (int)sizeof(path))
            return err_set(err, STATUS_INVALID_ARGUMENT, "the path of %s is too long",
                           entries[i]->d_name);
        struct recording *const r = &out->all[out->count++];
        s = recording_read(path, r, &own);
        any = any || s == STATUS_OK;
        if (s == STATUS_NO_MEMORY || (i + 1 == count && !any))
            return err_set_hint(err, s, own.hint, "%s", own.text);
        if (s != STATUS_OK)
            set_problem(r, &own);
    }
    return STATUS_OK;
}

/* Reads the recordings of a folder, in the order of their process numbers. */
static enum status read_folder(const char *folder, struct recordings *out, struct err *err)
{
    struct dirent **entries = NULL;
    const int count = scandir(folder, &entries, is_recording, versionsort);
    enum status s;

    if (count < 0)
        return err_set(err, STATUS_IO, "cannot read the folder %s: %s", folder, strerror(errno));
    if (count == 0)
        s = err_set_hint(err, STATUS_NOT_FOUND,
                         "Check that the program calls CUDA, and that the folder is the one of "
                         "--keep.",
                         "%s has no recording, because no process called CUDA", folder);
    else
        s = read_all(folder, entries, count, out, err);
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
    return s;
}

/* ---- writing ---- */

typedef enum status print_fn(const struct report_source *source, const struct report *r, FILE *out,
                             struct err *err);

/* Prints to a file, or to the standard error if `path` is NULL. */
static enum status print_to(const char *path, print_fn *print, const struct report_source *source,
                            const struct report *r, struct err *err)
{
    FILE *const out = path ? fopen(path, "we") : stderr;
    enum status s;

    if (!out)
        return err_set(err, STATUS_IO, "cannot write %s: %s", path, strerror(errno));
    s = print(source, r, out, err);
    if (path && fclose(out) != 0 && s == STATUS_OK)
        s = err_set(err, STATUS_IO, "cannot write %s: %s", path, strerror(errno));
    return s;
}

static enum status print_trace(const struct report_source *source, const struct report *r,
                               FILE *out, struct err *err)
{
    const struct report_section *section;
    const struct report_row *row;
    struct place_map map;
    enum status s;

    if (!report_first(r, &section, &row) || !row->launch)
        return err_set(err, STATUS_NOT_FOUND, "the first kernel of the report has no trace");
    s = place_map_make(section->recording, section->gpu, &map, err);
    if (s == STATUS_OK) {
        const struct launch_context context = {.recording = section->recording,
                                               .map = &map,
                                               .folder = source->folder,
                                               .fp = section->fp};
        s = launch_cost_write_trace(&context, row->launch, out, err);
    }
    place_map_free(&map);
    return s;
}

static enum status write_all(const struct report_request *request,
                             const struct report_source *source, const struct report *r,
                             struct err *err)
{
    enum status s = print_to(
        request->output, request->json ? report_json_print : report_table_print, source, r, err);

    if (s == STATUS_OK && request->html)
        s = print_to(request->html, report_html_print, source, r, err);
    if (s == STATUS_OK && request->trace)
        s = print_to(request->trace, print_trace, source, r, err);
    return s;
}

enum status report_write(const struct report_request *request, struct err *err)
{
    struct recordings recordings = {0};
    struct fingerprints *fingerprints = NULL;
    struct report report = {0};
    enum status s = read_folder(request->folder, &recordings, err);

    if (s == STATUS_OK)
        s = fingerprints_open(request->fingerprints, request->fingerprint_count, &fingerprints,
                              err);
    if (s == STATUS_OK) {
        const struct report_source source = {.recordings = recordings.all,
                                             .count = recordings.count,
                                             .folder = request->folder,
                                             .find = fingerprints_find,
                                             .context = fingerprints};
        s = report_make(&source, &report, err);
        if (s == STATUS_OK)
            s = write_all(request, &source, &report, err);
    }
    report_free(&report);
    fingerprints_close(fingerprints);
    for (uint32_t i = 0; i < recordings.count; i++)
        recording_free(&recordings.all[i]);
    free(recordings.all);
    return s;
}
