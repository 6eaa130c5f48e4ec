/* survey_report.c: reachctl survey report: what surveys found, from their database; asks no host.
 */
#include "clients/reachctl/client.h"
#include "clients/reachctl/survey_db.h"

#include "clients/fleet/report.h"

#include <stdio.h>
#include <stdlib.h>

static enum exit_code wrong(const char *text, const char *what)
{
    fprintf(stderr, "reachctl: %s%s\n  next step: reachctl --help\n", text, what);
    return EXIT_USAGE;
}

static enum exit_code take_options(const struct options *o, struct fleet_report_options *out)
{
    char *end = NULL;
    unsigned bit;

    *out = (struct fleet_report_options){.model = o->model};
    for (int i = 0; i < o->operand_count; i++) {
        if (!fleet_report_from_name(o->operands[i], &bit))
            return wrong("there is no report ", o->operands[i]);
        out->reports |= bit;
    }
    if (o->json && o->format)
        return wrong("--json and --format exclude each other", "");
    if (o->json)
        out->format = FLEET_FORMAT_JSON;
    if (o->format && !fleet_format_from_name(o->format, &out->format))
        return wrong("--format is table, json, csv, markdown or svg, not ", o->format);
    if (o->survey)
        out->survey = strtoll(o->survey, &end, 10);
    if (o->survey && (*end != '\0' || out->survey < 1))
        return wrong("--survey is the number of a survey, from 1, not ", o->survey);
    return EXIT_DONE;
}

enum exit_code command_survey_report(struct client *client, const struct options *options)
{
    struct fleet_report_options how;
    struct fleet_db *db = NULL;
    struct err err = {0};
    enum exit_code exit_code = take_options(options, &how);
    enum status s;

    (void)client; /* nobody is asked */
    if (options->url || options->socket_path)
        return wrong("survey report asks no daemon: it takes neither --url nor --socket", "");
    if (exit_code != EXIT_DONE)
        return exit_code;
    s = survey_db_open(options->db, &db, &err);
    if (s == STATUS_OK)
        s = fleet_report(db, &how, stdout, &err);
    fleet_close(db);
    if (s == STATUS_OK)
        return EXIT_DONE;
    fprintf(stderr, "reachctl: %s\n  next step: %s\n", err.text, err_next_step(&err));
    return s == STATUS_INVALID_ARGUMENT ? EXIT_USAGE : EXIT_FAILED;
}
