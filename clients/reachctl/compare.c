/* compare.c: reachctl compare reports whether a chip is normal. The daemon compares its own GPUs.
 * This program compares an exported fingerprint, or uses another reference set, without a daemon.
 * reachctl share writes the anonymous file with which a chip joins the reference set. */
#include "clients/reachctl/client.h"

#include "batch/export.h"
#include "compare/compare.h"
#include "compare/share.h"
#include "planner/format_size.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- text ---- */

static const char *get_text(const json_t *row, const char *name)
{
    const char *const text = json_string_value(json_object_get(row, name));

    return text ? text : "-";
}

static double get_number(const json_t *row, const char *name)
{
    return json_number_value(json_object_get(row, name));
}

static bool is_verdict(const json_t *row, const char *verdict)
{
    return strcmp(get_text(row, "verdict"), verdict) == 0;
}

/* Writes six digits, or a size if the name of the row ends in _bytes. */
static const char *format_number(const json_t *row, const char *member, char *out)
{
    const char *const name = get_text(row, "name");
    const size_t n = strlen(name);
    const double v = get_number(row, member);

    if (n > strlen("_bytes") && strcmp(name + n - strlen("_bytes"), "_bytes") == 0 && v >= 0)
        return format_size((uint64_t)v, out);
    (void)snprintf(out, FORMAT_SIZE_BYTES, "%.6g", v);
    return out;
}

static void print_number(const json_t *row)
{
    char text[4][FORMAT_SIZE_BYTES];
    char deviations[32] = "-";

    if (json_is_number(json_object_get(row, "deviations")))
        (void)snprintf(deviations, sizeof(deviations), "%.1f", get_number(row, "deviations"));
    printf("  %-44s %12s %12s %12s %12s %6.0f %6s  %s\n", get_text(row, "name"),
           format_number(row, "value", text[0]), format_number(row, "least", text[1]),
           format_number(row, "median", text[2]), format_number(row, "most", text[3]),
           get_number(row, "chips"), deviations, get_text(row, "verdict"));
}

static void print_property(const json_t *row)
{
    printf("  %-44s %12s, usual is %s (%.0f of %.0f)  %s\n", get_text(row, "name"),
           get_text(row, "value"), get_text(row, "usual"), get_number(row, "have"),
           get_number(row, "chips"), get_text(row, "verdict"));
}

/* Prints the odd rows, or all others if `odd` is false. */
static void print_rows(const json_t *rows, bool odd, const char *head,
                       void (*print)(const json_t *))
{
    const json_t *row;
    bool first = true;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        if (is_verdict(row, "odd") != odd)
            continue;
        if (first)
            puts(head);
        first = false;
        print(row);
    }
}

static void print_tables(const json_t *answer, bool odd)
{
    static const char numbers[] =
        "  number                                              value        "
        "least       median         most  chips   dev.";

    print_rows(json_object_get(answer, "numbers"), odd, numbers, print_number);
    print_rows(json_object_get(answer, "properties"), odd, "  property", print_property);
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
        puts("Send it in: reachctl share");
}

static void print_comparison(const struct options *options, const json_t *answer)
{
    const json_t *const map = json_object_get(answer, "map");
    const json_t *const kind = json_object_get(answer, "kind");

    puts(get_text(answer, "sentence"));
    if (strcmp(get_text(answer, "origin"), "measured") != 0)
        printf("This fingerprint is %s, not measured on hardware.\n", get_text(answer, "origin"));
    if (!json_is_object(kind)) {
        print_unknown(options, answer);
        return;
    }
    printf("kind: %s, %.0f SMs, %.1f GiB, %.0f chips in the reference set\n",
           get_text(kind, "name"), get_number(kind, "sm_count"),
           ldexp(get_number(kind, "memory_bytes"), -30), get_number(kind, "chips"));
    if (json_is_object(map))
        printf("group map %.12s: %.0f of them have it\n", get_text(map, "name"),
               get_number(map, "chips"));
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
        printf("%s\nIt names the model and the day, and nothing of this machine; read it. To send "
               "it in,\nattach it to a pull request that adds it to reference/.\n",
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
