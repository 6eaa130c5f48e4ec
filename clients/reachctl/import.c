/* import.c: reachctl import: a fingerprint from files that somebody else has measured.
 *
 * Nothing is asked of a daemon: the files are read and concluded from right here. What comes out
 * has origin imported and a UUID that no attached GPU has.
 */
#include "clients/reachctl/client.h"
#include "clients/reachctl/show.h"

#include "base/clock.h"
#include "batch/export.h"
#include "import/import.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What was read, to be given back in one place. */
struct reading {
    struct import_file files[IMPORT_MAX_FILES];
    char *texts[IMPORT_MAX_FILES]; /* owned */
    size_t count;
};

static void reading_free(struct reading *take)
{
    for (size_t i = 0; i < take->count; i++)
        free(take->texts[i]);
    free(take);
}

/* One byte more than may be read shows that there is too much; import_read says so. */
static enum status read_whole(const char *path, char **out, size_t *out_bytes, struct err *err)
{
    enum { MOST = IMPORT_MAX_FILE_BYTES + 1, FIRST = 1 << 16 };
    FILE *const file = fopen(path, "re");
    size_t room = FIRST;
    size_t bytes = 0;
    char *text = malloc(room);
    enum status s = STATUS_OK;

    if (!file)
        s = err_set(err, STATUS_IO, "cannot open %.200s: %s", path, strerror(errno));
    while (s == STATUS_OK && text && bytes < MOST) {
        const size_t n = fread(text + bytes, 1, room - bytes, file);
        bytes += n;
        if (n == 0)
            break;
        if (bytes < room)
            continue;
        char *const more = realloc(text, room * 2);
        if (!more) {
            free(text);
            text = NULL;
            break;
        }
        text = more;
        room *= 2;
    }
    if (s == STATUS_OK && !text)
        s = err_set(err, STATUS_NO_MEMORY, "no memory for %.200s", path);
    if (s == STATUS_OK && ferror(file))
        s = err_set(err, STATUS_IO, "cannot read %.200s: %s", path, strerror(errno));
    if (file)
        (void)fclose(file);
    if (s != STATUS_OK) {
        free(text);
        return s;
    }
    *out = text;
    *out_bytes = bytes;
    return STATUS_OK;
}

static enum status read_files(const struct options *options, struct reading *out, struct err *err)
{
    enum status s = STATUS_OK;

    if (options->operand_count > IMPORT_MAX_FILES)
        return err_set(err, STATUS_INVALID_ARGUMENT, "%d files are given, at most %d are read",
                       options->operand_count, IMPORT_MAX_FILES);
    for (int i = 0; i < options->operand_count && s == STATUS_OK; i++) {
        struct import_file *const file = &out->files[out->count];
        file->name = options->operands[i];
        s = read_whole(file->name, &out->texts[out->count], &file->bytes, err);
        file->text = out->texts[out->count];
        out->count += s == STATUS_OK;
    }
    return s;
}

/* The folder that `reachd --export` would make. */
static enum status export_all(const char *dir, const struct observation_set *set,
                              const struct fingerprint *fp, struct err *err)
{
    char folder[EXPORT_PATH_BYTES - 64];
    char path[EXPORT_PATH_BYTES];
    enum status s = export_folder(dir, &fp->gpu, fp->taken_at, folder, sizeof folder, err);

    if (s != STATUS_OK)
        return s;
    snprintf(path, sizeof path, "%s/observations-%s.jsonl", folder, depth_name(fp->depth));
    s = export_observations(path, set, fp->depth, err);
    if (s != STATUS_OK)
        return s;
    snprintf(path, sizeof path, "%s/fingerprint-%s.json", folder, depth_name(fp->depth));
    s = export_fingerprint(path, fp, err);
    if (s == STATUS_OK)
        fprintf(stderr, "exported to %s\n", folder);
    return s;
}

static enum status print_result(const struct options *options, const struct fingerprint *fp,
                                struct err *err)
{
    json_t *const json = fingerprint_to_json(fp);
    enum status s = STATUS_OK;

    if (!json)
        return err_set(err, STATUS_NO_MEMORY, "no memory for a document");
    if (options->json)
        s = export_json(stdout, json, err);
    else
        show_fingerprint(json);
    if (!options->json && options->evidence)
        show_evidence(json);
    json_decref(json);
    return s;
}

static enum status import_all(const struct options *options, struct reading *reading,
                              struct fingerprint *fp, struct err *err)
{
    const struct import_options how = {.gpu_name = options->gpu_name,
                                       .imported_at = clock_wall_seconds()};
    struct observation_set set = {0};
    enum status s = read_files(options, reading, err);

    if (s == STATUS_OK)
        s = import_derive(reading->files, reading->count, &how, &set, fp, err);
    if (s == STATUS_OK)
        s = print_result(options, fp, err);
    if (s == STATUS_OK && options->export_dir)
        s = export_all(options->export_dir, &set, fp, err);
    observation_set_free(&set);
    return s;
}

enum exit_code command_import(struct client *client, const struct options *options)
{
    struct reading *const reading = calloc(1, sizeof *reading);
    struct fingerprint *const fp = calloc(1, sizeof *fp);
    struct err err = {0};
    enum status s;

    (void)client; /* nobody is asked */
    if (reading && fp)
        s = import_all(options, reading, fp, &err);
    else
        s = err_set(&err, STATUS_NO_MEMORY, "no memory to import");
    if (s != STATUS_OK)
        fprintf(stderr, "reachctl: %s\n  next step: %s\n", err.text, err_next_step(&err));
    if (reading)
        reading_free(reading);
    free(fp);
    return s == STATUS_OK ? EXIT_DONE : EXIT_FAILED;
}
