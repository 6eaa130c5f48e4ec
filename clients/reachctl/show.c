/* show.c: reachctl show prints a fingerprint on one screen, and the evidence of its numbers. */
#include "clients/reachctl/client.h"
#include "clients/reachctl/picture.h"

#include "batch/report.h"
#include "planner/next_step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_show(const struct options *options, const json_t *fp)
{
    report_print(stdout, fp);
    if (options->evidence)
        report_evidence(stdout, fp);
}

static enum exit_code show_curve(struct client *client, const struct options *options)
{
    char id[FINGERPRINT_ID_BYTES];
    enum exit_code exit_code;
    struct fingerprint *const fp = client_load_fingerprint(
        client, options, options->at ? options->at : "current", id, &exit_code);

    if (fp && !picture_curve(fp, id)) {
        fprintf(stderr, "reachctl: fingerprint %s has no curve\n  next step: %s\n", id,
                next_step_full(fp, REASON_NOT_MEASURED));
        exit_code = EXIT_FAILED;
    }
    free(fp);
    return exit_code;
}

enum exit_code command_show(struct client *client, const struct options *options)
{
    char path[CLIENT_PATH_BYTES];

    if ((options->svg != NULL) != (options->operand != NULL) ||
        (options->operand && strcmp(options->operand, "curve") != 0))
        return client_usage_error(
            "show accepts an operand only with --svg: show --svg curve, or show --gpu N", NULL);
    if (options->svg)
        return show_curve(client, options);
    client_gpu_path(options, "/fingerprint", path);
    client_add_param(path, "at", options->at);
    return client_print(client, options, path, print_show);
}
