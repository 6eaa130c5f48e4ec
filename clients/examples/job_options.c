/* job_options.c: the command line of a job (job.h). */
#include "job.h"

#include "base/units.h"

#include <getopt.h>
#include <stdarg.h>
#include <string.h>

enum { LIST_BYTES = 1024 };

static const struct job_limits usual_limits = {.sizes = JOB_MAX_SIZES,
                                               .bytes = (uint64_t)1 << 40,
                                               .count = (uint64_t)1 << 36,
                                               .repeats = 32,
                                               .seed = 1u << 20};

static const char common_help[] =
    "  --reachd URI     source of answers: unix:/path, http://host:port, or "
    "file:/path/fingerprint.json;\n"
    "                   default: REACHD_URL, the daemon's socket, http://127.0.0.1:17322\n"
    "  --gpu N          CUDA's index of the GPU, default 0\n"
    "  --bytes LIST     accessed at random: sizes such as 16GiB,64GiB,largest; default: largest.\n"
    "                   GB is 10^9 bytes, GiB and G are 2^30\n"
    "  --strategy NAME  run only this strategy, such as naive; default: all that are possible\n"
    "  --repeats N      timed repeats of each strategy, default 5\n"
    "  --seed N         of the random sequences, default 1\n"
    "  --json FILE      also write the results as JSON\n"
    "  --dry-run        print the plans and stop; needs no GPU. --gpu is then the daemon's index "
    "or\n"
    "                   a UUID, and --bytes must name sizes\n"
    "\n"
    "Exit status: 0 all results are the same, 1 they differ or an error occurred, 2 wrong "
    "options.\n";

bool job_fail(char *why, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(why, JOB_TEXT_BYTES, format, arguments);
    va_end(arguments);
    return false;
}

void job_options_help(FILE *out, const struct job *job)
{
    fprintf(out, "%s: %s\n\n%s%s", job->name, job->title, job->help, common_help);
}

/* Reads a number from 1 to `max`. Writes the reason to `why` if the text is not a number. */
static bool parse_number(const char *text, uint64_t max, uint64_t *out, char *why)
{
    struct err err;

    if (units_parse_bytes(text, out, &err) != STATUS_OK)
        return job_fail(why, "%s", err.text);
    return *out > 0 && *out <= max;
}

static bool parse_u32(const char *text, uint32_t max, uint32_t *out, char *why)
{
    uint64_t n = 0;
    const bool good = parse_number(text, max, &n, why);

    if (good)
        *out = (uint32_t)n;
    return good;
}

static bool parse_sizes(const char *text, const struct job_limits *limits, struct job_options *out,
                        char *why)
{
    char list[LIST_BYTES], *rest = list;

    if (snprintf(list, sizeof list, "%s", text) >= (int)sizeof list)
        return false;
    for (out->size_count = 0; rest; out->size_count++) {
        const char *size = strsep(&rest, ",");
        uint64_t *bytes = &out->bytes[out->size_count];

        if (out->size_count == limits->sizes)
            return false;
        *bytes = 0;
        if (strcmp(size, "largest") != 0 && !parse_number(size, limits->bytes, bytes, why))
            return false;
    }
    return true;
}

static bool parse_row(const char *text, uint32_t *out, char *why)
{
    return parse_u32(text, 512, out, why) && (*out == 128 || *out == 256 || *out == 512);
}

static bool parse_input(const char *text, bool *host)
{
    *host = strcmp(text, "host") == 0;
    return *host || strcmp(text, "device") == 0;
}

static bool parse_strategy(const char *text, const char **out, char *why)
{
    const char *known;

    for (unsigned i = 0; (known = reach_strategy_name((enum reach_strategy)i)); i++) {
        if (strcmp(text, known) == 0) {
            *out = known;
            return true;
        }
    }
    return job_fail(why, "no strategy has this name");
}

static bool parse_option(int option, const char *value, const struct job_limits *limits,
                         struct job_options *out, char *why)
{
    switch (option) {
    case 'w':
        out->uri = value;
        return true;
    case 'g':
        out->gpu = value;
        return true;
    case 'b':
        return parse_sizes(value, limits, out, why);
    case 'c':
        return parse_number(value, limits->count, &out->count, why);
    case 'o':
        return parse_row(value, &out->row_bytes, why);
    case 'i':
        return parse_input(value, &out->host_input);
    case 's':
        return parse_strategy(value, &out->strategy, why);
    case 'r':
        return parse_u32(value, limits->repeats, &out->repeats, why);
    case 'e':
        return parse_u32(value, limits->seed, &out->seed, why);
    case 'j':
        out->json = value;
        return true;
    case 'd':
        out->dry_run = true;
        return true;
    case 'h':
        out->help = true;
        return true;
    default:
        return false;
    }
}

/* Returns whether the job has this option. The help text of a job lists its own options. */
static bool applies(const struct job *job, const char *name)
{
    const bool specific = strcmp(name, "row-bytes") == 0 || strcmp(name, "input") == 0;

    return !specific || strstr(job->help, name);
}

bool job_options_parse(int argc, char **argv, const struct job *job, struct job_options *out,
                       char *why)
{
    const struct option known[] = {{"reachd", required_argument, NULL, 'w'},
                                   {"gpu", required_argument, NULL, 'g'},
                                   {"bytes", required_argument, NULL, 'b'},
                                   {job->unit, required_argument, NULL, 'c'},
                                   {"row-bytes", required_argument, NULL, 'o'},
                                   {"input", required_argument, NULL, 'i'},
                                   {"strategy", required_argument, NULL, 's'},
                                   {"repeats", required_argument, NULL, 'r'},
                                   {"seed", required_argument, NULL, 'e'},
                                   {"json", required_argument, NULL, 'j'},
                                   {"dry-run", no_argument, NULL, 'd'},
                                   {"help", no_argument, NULL, 'h'},
                                   {NULL, 0, NULL, 0}};
    const struct job_limits *limits = job->limits ? job->limits : &usual_limits;
    char reason[JOB_TEXT_BYTES];
    int option, index = 0;

    *out = (struct job_options){.gpu = "0",
                                .size_count = 1,
                                .count = job->default_count,
                                .row_bytes = 128,
                                .repeats = 5,
                                .seed = 1};
    opterr = 0;
    optind = 1;
    while ((option = getopt_long(argc, argv, "", known, &index)) != -1) {
        if (option == '?')
            return job_fail(why, "%.60s: unknown option or missing value; see --help",
                            argv[optind - 1]);
        if (!applies(job, known[index].name))
            return job_fail(why, "--%s is not an option of %s; see --help", known[index].name,
                            job->name);
        reason[0] = '\0';
        if (!parse_option(option, optarg, limits, out, reason))
            return job_fail(why, "--%s: invalid value \"%.60s\"; %.160s", known[index].name, optarg,
                            reason[0] ? reason : "see --help");
    }
    if (optind < argc)
        return job_fail(why, "unexpected argument \"%.60s\"; see --help", argv[optind]);
    return true;
}
