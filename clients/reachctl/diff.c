/* diff.c: reachctl fingerprint diff A B: two fingerprints side by side. Each is the id of one in
 * the daemon's history, "current", or a file that the daemon has exported; files need no daemon. */
#include "clients/reachctl/client.h"
#include "clients/reachctl/text.h"

#include "fingerprint/diff.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { ID_DIGITS = 16 };

/* "fp" and sixteen hexadecimal digits. */
static bool is_id(const char *text)
{
    size_t n = 0;

    if (strncmp(text, "fp", 2) != 0)
        return false;
    while (isxdigit((unsigned char)text[2 + n]))
        n++;
    return n == ID_DIGITS && text[2 + n] == '\0';
}

static bool read_json(const json_t *json, const char *name, struct fingerprint *out)
{
    struct err err = {0};

    if (fingerprint_from_json(json, out, &err) == STATUS_OK)
        return true;
    fprintf(stderr, "reachctl: %s is no fingerprint: %s\n", name, err.text);
    return false;
}

static bool read_file(const char *path, struct fingerprint *out)
{
    json_error_t why;
    json_t *json = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
    bool good = false;

    if (json)
        good = read_json(json, path, out);
    else
        fprintf(stderr, "reachctl: cannot read %s: %s\n", path, why.text);
    json_decref(json);
    return good;
}

static bool ask(struct client *client, const struct options *options, const char *id,
                struct fingerprint *out)
{
    struct client_answer answer;
    char path[CLIENT_PATH_BYTES];
    bool good;

    client_gpu_path(options, "/fingerprint", path);
    client_add_param(path, "at", is_id(id) ? id : NULL);
    if (client_get(client, path, NULL, &answer) != EXIT_DONE)
        return false;
    good = read_json(answer.json, id, out);
    client_answer_free(&answer);
    return good;
}

static bool get(struct client *client, const struct options *options, const char *which,
                struct fingerprint *out)
{
    if (is_id(which) || strcmp(which, "current") == 0)
        return ask(client, options, which, out);
    return read_file(which, out);
}

static void print_json(const struct fingerprint_diff *diff)
{
    json_t *list = json_array();
    json_t *json;

    for (uint32_t i = 0; i < diff->count; i++)
        json_array_append_new(list, json_string(diff->sentences[i]));
    json = json_pack("{s:s, s:o}", "result", fingerprint_class_name(diff->result), "differences",
                     list);
    if (json && json_dumpf(json, stdout, JSON_INDENT(1)) == 0)
        putchar('\n');
    json_decref(json);
}

static void print_text(const struct fingerprint_diff *diff)
{
    static const char *const results[] = {
        [FINGERPRINT_SAME] = "the same",
        [FINGERPRINT_CHANGED] = "the same hardware, changed",
        [FINGERPRINT_OTHER_HARDWARE] = "different hardware",
    };

    puts(results[diff->result]);
    for (uint32_t i = 0; i < diff->count; i++)
        printf("  %s\n", diff->sentences[i]);
}

enum exit_code command_diff(struct client *client, const struct options *options)
{
    static const enum exit_code codes[] = {
        [FINGERPRINT_SAME] = EXIT_DONE,
        [FINGERPRINT_CHANGED] = EXIT_DIFF_CHANGED,
        [FINGERPRINT_OTHER_HARDWARE] = EXIT_DIFF_OTHER,
    };
    struct fingerprint *two = calloc(2, sizeof(*two));
    struct fingerprint_diff *diff = calloc(1, sizeof(*diff));
    enum exit_code exit_code = EXIT_DIFF_TROUBLE;

    if (two && diff && get(client, options, options->operand, &two[0]) &&
        get(client, options, options->second, &two[1])) {
        fingerprint_compare(&two[0], &two[1], diff);
        if (options->json)
            print_json(diff);
        else
            print_text(diff);
        exit_code = codes[diff->result];
    }
    free(diff);
    free(two);
    return exit_code;
}
