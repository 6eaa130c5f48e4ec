/* measure.c: reachctl measure starts a measurement, and with --wait waits for its end.
 *
 * On a terminal, progress is one line that is overwritten. Otherwise a line is printed whenever the
 * message of the daemon changes, so that a log stays readable. */
#include "clients/reachctl/client.h"
#include "clients/reachctl/text.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

enum { POLL_MS = 100, BAR_CELLS = 30 };

static void print_bar(double progress, const char *message)
{
    char bar[BAR_CELLS + 1];
    int full = (int)(progress * BAR_CELLS);

    full = full < 0 ? 0 : full > BAR_CELLS ? BAR_CELLS : full;
    memset(bar, '#', (size_t)full);
    memset(bar + full, '.', (size_t)(BAR_CELLS - full));
    bar[BAR_CELLS] = '\0';
    printf("\r[%s] %3.0f%%  %s\033[K", bar, progress * 100,
           message); /* the sequence clears the rest of the line */
    fflush(stdout);
}

static void print_line(double progress, const char *message)
{
    static char last[256];

    if (strncmp(last, message, sizeof(last) - 1) == 0)
        return;
    snprintf(last, sizeof(last), "%s", message);
    printf("%3.0f%%  %s\n", progress * 100, message);
    fflush(stdout);
}

static void print_progress(const json_t *measurement)
{
    const char *message = json_string_value(json_object_get(measurement, "message"));
    double progress = json_number_value(json_object_get(measurement, "progress"));

    if (!message || !*message)
        message = json_string_value(json_object_get(measurement, "state"));
    if (isatty(STDOUT_FILENO))
        print_bar(progress, message ? message : "");
    else
        print_line(progress, message ? message : "");
}

static enum exit_code print_end(const json_t *measurement, bool failed)
{
    const char *served = json_string_value(json_object_get(measurement, "fingerprint_id"));
    const char *measured = json_string_value(json_object_get(measurement, "measured_id"));
    char text[TEXT_LINE_BYTES] = "";

    if (!failed) {
        text_print(measurement, "done: fingerprint {fingerprint_id}");
        if (served && measured && strcmp(served, measured) != 0)
            text_print(measurement, ", merged with earlier measurements (this one: {measured_id})");
        putchar('\n');
        return EXIT_DONE;
    }
    if (json_is_object(json_object_get(measurement, "error")))
        text_expand(measurement, "  {error.text}\n  next step: {error.next_step}\n", text,
                    sizeof(text));
    fprintf(stderr, "reachctl: the measurement failed\n%s", text);
    return EXIT_FAILED;
}

static enum exit_code wait_for_end(struct client *client, const struct options *options,
                                   const char *id)
{
    const struct timespec pause = {.tv_nsec = POLL_MS * 1000000L};
    char path[CLIENT_PATH_BYTES];

    snprintf(path, sizeof(path), "/v1/measurements/%.100s", id);
    for (;;) {
        struct client_answer answer;
        enum exit_code exit_code = client_get(client, path, NULL, &answer);
        const char *state;
        bool failed;
        if (exit_code != EXIT_DONE)
            return exit_code;
        state = json_string_value(json_object_get(answer.json, "state"));
        failed = state && strcmp(state, "failed") == 0;
        if (!options->json)
            print_progress(answer.json);
        if (!state || failed || strcmp(state, "done") == 0) {
            if (!options->json && isatty(STDOUT_FILENO))
                putchar('\n');
            if (options->json)
                fputs(answer.body, stdout);
            exit_code =
                options->json ? (failed ? EXIT_FAILED : EXIT_DONE) : print_end(answer.json, failed);
            client_answer_free(&answer);
            return exit_code;
        }
        client_answer_free(&answer);
        nanosleep(&pause, NULL);
    }
}

enum exit_code command_measure(struct client *client, const struct options *options)
{
    struct client_answer answer;
    char path[CLIENT_PATH_BYTES];
    char body[64];
    const char *id;
    enum exit_code exit_code;

    client_gpu_path(options, "/measurements", path);
    snprintf(body, sizeof(body), "{\"depth\": \"%.32s\"}", options->depth ? options->depth : "");
    exit_code = client_change(client, "POST", path, options->depth ? body : NULL, &answer);
    if (exit_code != EXIT_DONE)
        return exit_code;
    id = json_string_value(json_object_get(answer.json, "id"));
    if (options->wait && id)
        exit_code = wait_for_end(client, options, id);
    else if (options->json)
        fputs(answer.body, stdout);
    else
        printf("%s is queued; reachctl gpus shows the state\n", id ? id : "a measurement");
    client_answer_free(&answer);
    return exit_code;
}
