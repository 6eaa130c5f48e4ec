/* main.c: reach-profile, the command line. */
#include "clients/profile/report_write.h"

#include "base/output.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

static const char help[] =
    "usage: reach-profile --report FOLDER [OPTION]..\n"
    "\n"
    "  --report FOLDER      report on the recordings in FOLDER\n"
    "  --fingerprint FILE   use this fingerprint of a GPU instead of asking reachd; may be "
    "repeated\n"
    "  --json               write JSON instead of a table\n"
    "  --output FILE        write the report to FILE instead of the standard error\n"
    "  --html FILE          also write the report as one HTML page\n"
    "  --trace FILE         also write the trace of the first kernel, for reach-lab what-if\n"
    "  --help               print this text\n"
    "  --version            print the version\n"
    "\n"
    "Exit status: 0 done; 1 the report could not be written; 2 an invalid command line.\n";

enum option_id {
    OPTION_REPORT = 1,
    OPTION_FINGERPRINT,
    OPTION_JSON,
    OPTION_OUTPUT,
    OPTION_HTML,
    OPTION_TRACE,
    OPTION_HELP,
    OPTION_VERSION
};

static const struct option options[] = {
    {"report", required_argument, NULL, OPTION_REPORT},
    {"fingerprint", required_argument, NULL, OPTION_FINGERPRINT},
    {"json", no_argument, NULL, OPTION_JSON},
    {"output", required_argument, NULL, OPTION_OUTPUT},
    {"html", required_argument, NULL, OPTION_HTML},
    {"trace", required_argument, NULL, OPTION_TRACE},
    {"help", no_argument, NULL, OPTION_HELP},
    {"version", no_argument, NULL, OPTION_VERSION},
    {NULL, 0, NULL, 0}};

static int print_usage(const char *problem)
{
    (void)fprintf(stderr, "reach-profile: %s; see --help\n", problem);
    return EXIT_USAGE;
}

static int print_text(const char *text)
{
    return output_exit("reach-profile", fputs(text, stdout) < 0 ? EXIT_FAILED : EXIT_OK,
                       EXIT_FAILED);
}

/* Sets one option. Returns false if the option is unknown or is repeated too often. */
static bool set_option(struct report_request *r, int option, const char *value)
{
    switch (option) {
    case OPTION_REPORT:
        r->folder = value;
        break;
    case OPTION_FINGERPRINT:
        if (r->fingerprint_count == REPORT_MAX_FINGERPRINTS)
            return false;
        r->fingerprints[r->fingerprint_count++] = value;
        break;
    case OPTION_JSON:
        r->json = true;
        break;
    case OPTION_OUTPUT:
        r->output = value;
        break;
    case OPTION_HTML:
        r->html = value;
        break;
    case OPTION_TRACE:
        r->trace = value;
        break;
    default:
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    struct report_request request = {0};
    struct err err = {0};
    int option;

    while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
        if (option == OPTION_HELP)
            return print_text(help);
        if (option == OPTION_VERSION)
            return print_text("reach-profile " REACHD_VERSION "\n");
        if (!set_option(&request, option, optarg))
            return print_usage("invalid options");
    }
    if (!request.folder || optind < argc)
        return print_usage("a report needs --report FOLDER and no operand");
    if (report_write(&request, &err) == STATUS_OK)
        return EXIT_OK;
    (void)fprintf(stderr, "reach-profile: %s\n  next step: %s\n", err.text, err_next_step(&err));
    return EXIT_FAILED;
}
