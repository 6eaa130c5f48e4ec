/* diff.c: reachctl diff A B: two fingerprints side by side. Each is the id of one in
 * the daemon's history, "current", or a file that the daemon has exported; files need no daemon. */
#include "clients/reachctl/client.h"

#include "base/json_builder.h"
#include "fingerprint/diff.h"

#include <stdio.h>
#include <stdlib.h>

static void print_json(const struct fingerprint_diff *diff)
{
    json_t *list = json_array();
    json_t *json;

    for (uint32_t i = 0; i < diff->count; i++)
        json_array_append_new(list, json_string(diff->sentences[i]));
    json = json_pack("{s:s, s:o}", "result", fingerprint_class_name(diff->result), "differences",
                     list);
    if (json_print(json, 1, stdout) != 0)
        fputs("reachctl: no memory, or it cannot write\n", stderr);
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

    if (two && diff &&
        client_get_fingerprint(client, options, options->operand, &two[0], NULL) == EXIT_DONE &&
        client_get_fingerprint(client, options, options->second, &two[1], NULL) == EXIT_DONE) {
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
