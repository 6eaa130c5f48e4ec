/* diff.c: reachctl diff compares two fingerprints. Each is an id of the daemon's history,
 * "current", or an exported file, which needs no daemon. */
#include "clients/reachctl/client.h"

#include "fingerprint/diff.h"

#include <stdio.h>
#include <stdlib.h>

static enum exit_code print_json(const struct fingerprint_diff *diff)
{
    struct json_writer t;

    json_writer_begin(&t, 0);
    t.indent = 1;
    json_writer_open(&t, NULL, '{');
    json_writer_text(&t, "result", fingerprint_class_name(diff->result));
    json_writer_open(&t, "differences", '[');
    for (uint32_t i = 0; i < diff->count; i++)
        json_writer_text(&t, NULL, diff->sentences[i]);
    json_writer_close(&t, ']');
    json_writer_close(&t, '}');
    return client_print_json(&t);
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
    struct fingerprint_diff *diff = calloc(1, sizeof(*diff));
    enum exit_code exit_code;
    struct fingerprint *a =
        client_load_fingerprint(client, options, options->operand, NULL, &exit_code);
    struct fingerprint *b =
        a ? client_load_fingerprint(client, options, options->second, NULL, &exit_code) : NULL;

    exit_code = EXIT_DIFF_TROUBLE;
    if (diff && b) {
        fingerprint_compare(a, b, diff);
        if (!options->json)
            print_text(diff);
        if (!options->json || print_json(diff) == EXIT_DONE)
            exit_code = codes[diff->result];
    }
    free(diff);
    free(b);
    free(a);
    return exit_code;
}
