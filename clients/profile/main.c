/* main.c: reach-profile, which runs a program, records what its kernels access, and reports what
 * address translation costs them. */
#include "clients/profile/find.h"
#include "clients/profile/folder.h"
#include "clients/profile/launch.h"
#include "clients/profile/report_write.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { PROFILE_USAGE = 2, PROFILE_NOT_STARTED = 125 };

static const char help[] =
    "usage: reach-profile [OPTION].. -- PROGRAM [ARGUMENT]..\n"
    "       reach-profile [OPTION].. --report FOLDER\n"
    "\n"
    "Runs a CUDA program, and reports what address translation costs each of its kernels.\n"
    "\n"
    "  --seconds N        seconds that the recordings of a process may take; default: 10\n"
    "  --launches N       recorded launches of each kernel; default: 3\n"
    "  --skip N           launches of each kernel before its first recording; default: 0\n"
    "  --sanitizer PATH   " FIND_SANITIZER_NAME " of the CUDA Toolkit, or its folder\n"
    "  --keep FOLDER      keep the recordings and traces in FOLDER\n"
    "  --report FOLDER    run nothing; report from a folder of --keep\n"
    "\n"
    "  --fingerprint FILE the fingerprint of a GPU, for each GPU; default: from reachd "
    "(REACHD_URL)\n"
    "  --json             print the report as JSON\n"
    "  --html FILE        also write the report as a page\n"
    "  --trace FILE       also write the trace of the first kernel, for reach-lab what-if\n"
    "  --output FILE      write the report to FILE; default: the standard error\n"
    "\n"
    "  --help             print this text\n"
    "  --version          print the version\n"
    "\n"
    "Exit status: the status of PROGRAM; 128 and the number of the signal that has killed it; 125\n"
    "if it was not started; 2 invalid command line. With --report: 0, or 1 if it failed.\n";

struct options {
    struct launch launch;
    struct report_request report;
    const char *sanitizer;
    const char *keep;
    const char *only_report; /* the folder of --report */
    char **program;          /* ends with NULL */
};

/* The code of an option that sets a text is the offset of its member in struct options. The codes
 * of the other options follow. */
enum { OPT_FINGERPRINT = sizeof(struct options), OPT_JSON, OPT_HELP, OPT_VERSION };

#define TEXT_OPTION(name, member)                                                                  \
    {                                                                                              \
        name, required_argument, NULL, offsetof(struct options, member)                            \
    }

static const struct option known[] = {
    TEXT_OPTION("seconds", launch.seconds),
    TEXT_OPTION("launches", launch.launches),
    TEXT_OPTION("skip", launch.skip),
    TEXT_OPTION("sanitizer", sanitizer),
    TEXT_OPTION("keep", keep),
    TEXT_OPTION("report", only_report),
    {"fingerprint", required_argument, NULL, OPT_FINGERPRINT},
    {"json", no_argument, NULL, OPT_JSON},
    TEXT_OPTION("html", report.html),
    TEXT_OPTION("trace", report.trace),
    TEXT_OPTION("output", report.output),
    {"help", no_argument, NULL, OPT_HELP},
    {"version", no_argument, NULL, OPT_VERSION},
    {NULL, 0, NULL, 0},
};

/* ---- messages ---- */

static void print_error(const struct err *err)
{
    (void)fprintf(stderr, "reach-profile: %s\n  next step: %s\n", err->text, err_next_step(err));
}

static int refuse(const char *text)
{
    (void)fprintf(stderr, "reach-profile: %s; see --help\n", text);
    return PROFILE_USAGE;
}

/* ---- the command line ---- */

static bool is_count(const char *text)
{
    char *end = NULL;
    long value;

    errno = 0;
    value = strtol(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && value > 0 && value <= 1000000;
}

static void add_fingerprint(struct report_request *report, const char *path)
{
    if (report->fingerprint_count < REPORT_MAX_FINGERPRINTS)
        report->fingerprints[report->fingerprint_count] = path;
    report->fingerprint_count++;
}

static int check_options(const struct options *o)
{
    if (o->launch.seconds && !is_count(o->launch.seconds))
        return refuse("--seconds must be a whole number from 1 to 1000000");
    if (o->launch.launches && !is_count(o->launch.launches))
        return refuse("--launches must be a whole number from 1 to 1000000");
    if (o->launch.skip && !is_count(o->launch.skip))
        return refuse("--skip must be a whole number from 1 to 1000000");
    if (o->report.fingerprint_count > REPORT_MAX_FINGERPRINTS)
        return refuse("there are more than 64 fingerprints");
    if (o->only_report && o->program[0])
        return refuse("--report runs no program");
    if (o->only_report &&
        (o->keep || o->sanitizer || o->launch.seconds || o->launch.launches || o->launch.skip))
        return refuse("--report does not take options of a run");
    if (!o->only_report && !o->program[0])
        return refuse("there is no program to run");
    return 0;
}

/* Returns -1 if there is something to do, otherwise the exit status. */
static int parse_options(int argc, char **argv, struct options *o)
{
    int code, status;

    /* "+": the options of PROGRAM are not options of this program. */
    while ((code = getopt_long(argc, argv, "+", known, NULL)) != -1) {
        switch (code) {
        case OPT_HELP:
            return fputs(help, stdout) < 0;
        case OPT_VERSION:
            return puts("reach-profile " REACHD_VERSION) < 0;
        case '?': /* getopt has printed the reason */
            return refuse("invalid command line");
        case OPT_FINGERPRINT:
            add_fingerprint(&o->report, optarg);
            break;
        case OPT_JSON:
            o->report.json = true;
            break;
        default:
            *(const char **)((char *)o + code) = optarg;
        }
    }
    o->program = argv + optind;
    status = check_options(o);
    return status == 0 ? -1 : status;
}

/* ---- a run ---- */

/* Finds what is loaded into the program. If something is missing, prints why; the program then runs
 * without it, and nothing is recorded. */
static void prepare_launch(const struct options *o, char injected[PATH_MAX],
                           char sanitizer[PATH_MAX], struct launch *launch)
{
    const char *const other = launch_other_tool();
    struct err err;

    if (other) {
        (void)fprintf(stderr,
                      "reach-profile: nothing is recorded, because another tool is loaded into the "
                      "program: %s\n  next step: run reach-profile without that tool\n",
                      other);
        return;
    }
    if (find_injected(injected, &err) != STATUS_OK ||
        find_sanitizer(o->sanitizer, o->program[0], sanitizer, &err) != STATUS_OK) {
        (void)err_prefix(&err, "nothing is recorded");
        print_error(&err);
        return;
    }
    launch->injected = injected;
    launch->sanitizer = sanitizer;
}

/* Reports what was recorded. Returns false if the folder must be kept, because the report failed.
 */
static bool report_run(const char *program, int wait_status, struct report_request *request)
{
    const bool recorded = folder_count_recordings(request->folder) > 0;
    struct err err;

    if (WIFSIGNALED(wait_status))
        (void)fprintf(stderr, "reach-profile: %s was killed by signal %d (%s)%s\n", program,
                      WTERMSIG(wait_status), strsignal(WTERMSIG(wait_status)),
                      recorded ? "; the report has what was recorded before"
                               : " before one of its processes used CUDA");
    else if (!recorded)
        (void)fprintf(
            stderr,
            "reach-profile: nothing to report: no process of %s has used CUDA, or another "
            "tool was loaded instead\n",
            program);
    if (!recorded || report_write(request, &err) == STATUS_OK)
        return true;
    print_error(&err);
    (void)fprintf(stderr, "  the recordings are kept: reach-profile --report %s\n",
                  request->folder);
    return false;
}

static int run_program(const struct options *o)
{
    char folder[PATH_MAX], injected[PATH_MAX], sanitizer[PATH_MAX];
    struct launch launch = o->launch;
    struct report_request report = o->report;
    struct err err;
    bool done = true;
    int wait_status = 0;

    if (folder_make(o->keep, folder, &err) != STATUS_OK) {
        print_error(&err);
        return PROFILE_NOT_STARTED;
    }
    launch.folder = report.folder = folder;
    prepare_launch(o, injected, sanitizer, &launch);
    if (launch_run(o->program, &launch, &wait_status, &err) != STATUS_OK) {
        print_error(&err);
        wait_status = W_EXITCODE(PROFILE_NOT_STARTED, 0);
    } else if (launch.injected) {
        done = report_run(o->program[0], wait_status, &report);
    }
    if (done && !o->keep)
        folder_remove(folder);
    return launch_exit_status(wait_status);
}

static int report_only(const struct options *o)
{
    struct report_request report = o->report;
    struct err err;

    report.folder = o->only_report;
    if (report_write(&report, &err) == STATUS_OK)
        return 0;
    print_error(&err);
    return 1;
}

int main(int argc, char **argv)
{
    struct options options = {0};
    const int status = parse_options(argc, argv, &options);

    if (status >= 0)
        return status;
    return options.only_report ? report_only(&options) : run_program(&options);
}
