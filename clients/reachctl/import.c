/* import.c: reachctl import derives a fingerprint from files of a public benchmark, without a
 * daemon. The fingerprint has the origin imported and a UUID that no attached GPU has. */
#include "clients/reachctl/client.h"

#include "base/clock.h"
#include "batch/export.h"
#include "batch/report.h"
#include "import/import.h"

#include <stdio.h>
#include <stdlib.h>

static enum status read_files(const struct options *options, struct import_file *files,
                              char **texts, struct err *err)
{
    enum status s = STATUS_OK;

    if (options->operand_count > IMPORT_MAX_FILES)
        return err_set(err, STATUS_INVALID_ARGUMENT, "too many files: %d, at most %d",
                       options->operand_count, IMPORT_MAX_FILES);
    for (int i = 0; i < options->operand_count && s == STATUS_OK; i++) {
        files[i].name = options->operands[i];
        s = client_read_file(fopen(files[i].name, "re"), files[i].name, IMPORT_MAX_FILE_BYTES,
                             &texts[i], &files[i].bytes, err);
        files[i].text = texts[i];
    }
    return s;
}

/* Writes the same directory as `reachd --export`. */
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

static enum status import_all(const struct options *options, struct fingerprint *fp,
                              struct err *err)
{
    struct import_file files[IMPORT_MAX_FILES] = {{.name = NULL}};
    char *texts[IMPORT_MAX_FILES] = {NULL};
    const struct import_options how = {.gpu_name = options->gpu_name,
                                       .imported_at = clock_wall_seconds()};
    struct observation_set set = {0};
    enum status s = read_files(options, files, texts, err);

    if (s == STATUS_OK)
        s = import_derive(files, (size_t)options->operand_count, &how, &set, fp, err);
    if (s == STATUS_OK)
        s = options->json ? export_print(stdout, fp, err)
                          : report_fingerprint(stdout, fp, options->evidence, err);
    if (s == STATUS_OK && options->export_dir)
        s = export_all(options->export_dir, &set, fp, err);
    observation_set_free(&set);
    for (int i = 0; i < IMPORT_MAX_FILES; i++)
        free(texts[i]);
    return s;
}

enum exit_code command_import(struct client *client, const struct options *options)
{
    struct fingerprint *const fp = calloc(1, sizeof *fp);
    struct err err = {0};
    enum status s;

    (void)client; /* this command needs no daemon */
    s = fp ? import_all(options, fp, &err)
           : err_set(&err, STATUS_NO_MEMORY, "cannot import the files: out of memory");
    free(fp);
    return s == STATUS_OK ? EXIT_DONE : client_print_error(&err);
}
