/* fetch.c: a fingerprint as a checked value. What the daemon or a file says goes through the same
 * check as what the daemon itself loads, so that a command can rely on its counts and indices. */
#include "clients/reachctl/fetch.h"

#include "clients/reachctl/client.h"

#include <ctype.h>
#include <stdio.h>
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

enum exit_code fetch_read(const json_t *json, const char *name, struct fingerprint *out,
                          char *out_id)
{
    const char *id = json_string_value(json_object_get(json, "id"));
    struct err err = {0};

    if (fingerprint_from_json(json, out, &err) != STATUS_OK) {
        fprintf(stderr, "reachctl: %s is no fingerprint: %s\n", name, err.text);
        return EXIT_FAILED;
    }
    if (out_id && id && is_id(id))
        snprintf(out_id, FINGERPRINT_ID_BYTES, "%s", id);
    else if (out_id && fingerprint_id(out, out_id, &err) != STATUS_OK)
        return fprintf(stderr, "reachctl: %s\n", err.text), EXIT_FAILED;
    return EXIT_DONE;
}

static enum exit_code read_file(const char *path, struct fingerprint *out, char *out_id)
{
    json_error_t why;
    json_t *json = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
    enum exit_code exit_code = EXIT_FAILED;

    if (json)
        exit_code = fetch_read(json, path, out, out_id);
    else
        fprintf(stderr, "reachctl: cannot read %s: %s\n", path, why.text);
    json_decref(json);
    return exit_code;
}

static enum exit_code ask(struct client *client, const struct options *options, const char *id,
                          struct fingerprint *out, char *out_id)
{
    struct client_answer answer;
    char path[CLIENT_PATH_BYTES];
    enum exit_code exit_code;

    client_gpu_path(options, "/fingerprint", path);
    client_add_param(path, "at", is_id(id) ? id : NULL);
    exit_code = client_get(client, path, NULL, &answer);
    if (exit_code != EXIT_DONE)
        return exit_code;
    exit_code = fetch_read(answer.json, id, out, out_id);
    client_answer_free(&answer);
    return exit_code;
}

enum exit_code fetch_fingerprint(struct client *client, const struct options *options,
                                 const char *which, struct fingerprint *out, char *out_id)
{
    if (is_id(which) || strcmp(which, "current") == 0)
        return ask(client, options, which, out, out_id);
    return read_file(which, out, out_id);
}
