/* compare.c: reachctl compare reports whether a chip is normal. The daemon compares its own GPUs.
 * This program compares an exported fingerprint itself, and any fingerprint if another reference
 * set is given. reachctl share writes the anonymous file with which a chip joins the reference set.
 */
#include "clients/reachctl/client.h"
#include "clients/reachctl/text.h"

#include "batch/export.h"
#include "compare/compare.h"
#include "compare/share.h"
#include "base/format_size.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- text ---- */

static const char *get_text(const json_t *object, const char *name)
{
    const char *const text = json_string_value(json_object_get(object, name));

    return text ? text : "-";
}

/* Writes numbers of a row as text: six digits, or a size if the name of the row ends in _bytes. */
static json_t *make_shown_row(const json_t *row)
{
    static const char *const members[] = {"value", "least", "median", "most"};
    static const char suffix[] = "_bytes";
    const char *const name = get_text(row, "name");
    const size_t n = strlen(name);
    const bool is_size = n > strlen(suffix) && strcmp(name + n - strlen(suffix), suffix) == 0;
    json_t *const shown = json_copy((json_t *)(uintptr_t)row);
    char text[FORMAT_SIZE_BYTES];

    for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++) {
        const json_t *const number = json_object_get(row, members[i]);
        const double v = json_number_value(number);
        if (!json_is_number(number))
            continue;
        if (is_size && v >= 0)
            format_size((uint64_t)v, text);
        else
            (void)snprintf(text, sizeof(text), "%.6g", v);
        (void)json_object_set_new(shown, members[i], json_string(text));
    }
    if (json_is_null(json_object_get(row, "deviations")))
        (void)json_object_set_new(shown, "deviations_reason", json_string("not-applicable"));
    return shown;
}

/* Prints the odd rows of a list, or all others if `odd` is false. */
static void print_rows(const json_t *rows, bool odd, const char *columns)
{
    json_t *const shown = json_array();
    const json_t *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        if ((strcmp(get_text(row, "verdict"), "odd") == 0) == odd)
            (void)json_array_append_new(shown, make_shown_row(row));
    }
    if (json_array_size(shown) > 0)
        text_table(shown, columns);
    json_decref(shown);
}

static void print_tables(const json_t *answer, bool odd)
{
    print_rows(json_object_get(answer, "numbers"), odd,
               "number {name}|>value {value}|>least {least}|>median {median}|>most {most}|"
               ">chips {chips:d}|>dev. {deviations:1}|verdict {verdict}");
    print_rows(json_object_get(answer, "properties"), odd,
               "property {name}|value {value}|usual {usual}|>have it {have:d}|>chips {chips:d}|"
               "verdict {verdict}");
}

/* Prints the next step if the set has no chip of this kind, or if there is no set. */
static void print_unknown(const struct options *options, const json_t *answer)
{
    const bool is_here = options->operand || options->reference;

    if (strstr(get_text(answer, "sentence"), COMPARE_NO_REFERENCE))
        puts(is_here ? "Name a reference set: --reference FOLDER (reference/ of the source)"
                     : "Name a reference set: --reference FOLDER here, or in the options of reachd "
                       "(reference/ of the source)");
    else if (strcmp(get_text(answer, "origin"), "measured") == 0)
        puts("Contribute this chip: reachctl share");
}

static void print_comparison(const struct options *options, const json_t *answer)
{
    text_print(answer, "{sentence}\n");
    if (strcmp(get_text(answer, "origin"), "measured") != 0)
        text_print(answer, "This fingerprint is {origin}, not measured on hardware.\n");
    if (!json_is_object(json_object_get(answer, "kind"))) {
        print_unknown(options, answer);
        return;
    }
    text_print(answer, "kind: {kind.name}, {kind.sm_count:d} SMs, {kind.memory_bytes:B}, "
                       "{kind.chips:d} chips in the reference set\n");
    if (json_is_object(json_object_get(answer, "map")))
        text_print(answer, "group map {map.name}: {map.chips:d} of them have it\n");
    if (json_array_size(json_object_get(answer, "odd")) > 0) {
        puts("\nodd");
        print_tables(answer, true);
    }
    puts("\nall others");
    print_tables(answer, false);
}

/* ---- without a daemon ---- */

static char *comparison_text(const struct comparison *c, const struct fingerprint *fp,
                             const char *id, size_t *out_bytes)
{
    struct json_writer t;

    json_writer_begin(&t, 64 << 10);
    json_writer_open(&t, NULL, '{');
    json_writer_text(&t, "gpu", fp->gpu.uuid);
    json_writer_text(&t, "fingerprint_id", id);
    json_writer_text(&t, "origin", origin_name(fp->gpu.origin));
    comparison_write(&t, c);
    json_writer_close(&t, '}');
    return json_writer_end(&t, out_bytes);
}

static enum exit_code print_text(const struct options *options, const char *text)
{
    json_t *const answer = text ? json_loads(text, 0, NULL) : NULL;

    if (!answer)
        return client_no_memory();
    if (options->json)
        fputs(text, stdout);
    else
        print_comparison(options, answer);
    json_decref(answer);
    return EXIT_DONE;
}

static enum exit_code compare_here(const struct options *options, const struct fingerprint *fp,
                                   const char *id)
{
    struct reference *reference = NULL;
    struct comparison c = {.rows = NULL};
    struct err err = {0};
    char folder[PATH_MAX];
    char *text = NULL;
    size_t bytes = 0;
    enum exit_code exit_code;
    enum status s = STATUS_OK;

    if (options->reference)
        s = reference_load(options->reference, &reference, &err);
    else if (reference_find_folder(folder, sizeof(folder)))
        s = reference_load(folder, &reference, &err);
    if (s == STATUS_OK)
        s = comparison_make(reference, fp, &c, &err);
    if (s == STATUS_OK) {
        text = comparison_text(&c, fp, id, &bytes);
        exit_code = print_text(options, text);
    } else {
        exit_code = client_print_error(&err);
    }
    free(text);
    comparison_free(&c);
    reference_free(reference);
    return exit_code;
}

enum exit_code command_compare(struct client *client, const struct options *options)
{
    const char *const which = options->operand ? options->operand : "current";
    char id[FINGERPRINT_ID_BYTES];
    char path[CLIENT_PATH_BYTES];
    struct fingerprint *fp;
    enum exit_code exit_code;

    if (!options->operand && !options->reference) {
        client_gpu_path(options, "/compare", path);
        return client_print(client, options, path, print_comparison);
    }
    fp = client_load_fingerprint(client, options, which, id, &exit_code);
    if (fp)
        exit_code = compare_here(options, fp, id);
    free(fp);
    return exit_code;
}

/* ---- share ---- */

static enum exit_code write_share_file(const struct options *options, const struct fingerprint *fp)
{
    char file[SHARE_FILE_BYTES];
    char path[PATH_MAX];
    struct err err = {0};
    char *text = NULL;
    size_t bytes = 0;
    enum status s = share_make(fp, &text, &bytes, file, &err);

    if (s == STATUS_OK && options->json) {
        fputs(text, stdout);
    } else if (s == STATUS_OK) {
        (void)snprintf(path, sizeof(path), "%s/%s", options->export_dir ? options->export_dir : ".",
                       file);
        s = export_text(path, text, bytes, &err);
    }
    free(text);
    if (s != STATUS_OK)
        return client_print_error(&err);
    if (!options->json)
        printf(
            "%s\nThe file contains the model and the day, and no data of this machine; check the "
            "file.\nTo contribute, attach the file to a pull request that adds it to reference/.\n",
            path);
    return EXIT_DONE;
}

enum exit_code command_share(struct client *client, const struct options *options)
{
    const char *const which = options->operand ? options->operand : "current";
    enum exit_code exit_code;
    struct fingerprint *const fp =
        client_load_fingerprint(client, options, which, NULL, &exit_code);

    if (fp)
        exit_code = write_share_file(options, fp);
    free(fp);
    return exit_code;
}
