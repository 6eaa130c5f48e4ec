/* job_options.c: the command line of a job (job.h). */
#include "job.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BYTES ((uint64_t)1 << 40)
#define MAX_COUNT ((uint64_t)1 << 36)

static const char common_help[] =
    "  --reachd WHERE   whom to ask: unix:/path, http://host:port, or "
    "file:/path/fingerprint.json;\n"
    "                   default: REACHD_URL, the daemon's socket, http://127.0.0.1:17322\n"
    "  --gpu N          CUDA's index of the GPU, default 0\n"
    "  --bytes LIST     touched at random: sizes such as 16GiB,64GiB,largest; default: largest\n"
    "  --repeats N      timed repeats of each strategy, default 5\n"
    "  --seed N         of the random sequences, default 1\n"
    "  --json FILE      write the results as JSON, too\n"
    "  --dry-run        print the plans and stop; needs no GPU. --gpu is then the daemon's index "
    "or\n"
    "                   a UUID, and each size has to be named\n"
    "\n"
    "Exit status: 0 measured and all results the same, 1 not, 2 wrong options.\n";

void job_options_help(FILE *out, const struct job *job)
{
    fprintf(out, "%s: %s\n\n%s%s", job->name, job->title, job->help, common_help);
}

/* 12345, 4K, 80G, 137GiB up to `end`: powers of 1024, as reachd itself reads them. */
static bool parse_size(const char *text, const char *end, uint64_t max, uint64_t *out)
{
    static const char prefixes[] = "KMGT";
    char *rest = NULL;

    errno = 0;
    const unsigned long long n = strtoull(text, &rest, 10);

    if (text[0] < '0' || text[0] > '9' || errno || rest > end)
        return false;
    const char *prefix = rest < end ? strchr(prefixes, *rest) : NULL;
    const unsigned shift = prefix ? 10 * (unsigned)(prefix - prefixes + 1) : 0;

    if (prefix)
        rest += end - rest >= 3 && strncmp(rest + 1, "iB", 2) == 0 ? 3 : 1;
    if (rest != end || n == 0 || n > max >> shift)
        return false;
    *out = (uint64_t)n << shift;
    return true;
}

static bool parse_number(const char *text, uint64_t max, uint64_t *out)
{
    return parse_size(text, text + strlen(text), max, out);
}

static bool parse_u32(const char *text, uint32_t max, uint32_t *out)
{
    uint64_t n = 0;
    const bool good = parse_number(text, max, &n);

    if (good)
        *out = (uint32_t)n;
    return good;
}

static bool parse_sizes(const char *text, struct job_options *out)
{
    out->size_count = 0;
    for (;;) {
        const char *end = strchrnul(text, ',');
        uint64_t *bytes = &out->bytes[out->size_count];

        if (out->size_count == JOB_MAX_SIZES)
            return false;
        if ((size_t)(end - text) == strlen("largest") && strncmp(text, "largest", 7) == 0)
            *bytes = 0;
        else if (!parse_size(text, end, MAX_BYTES, bytes))
            return false;
        out->size_count++;
        if (*end == '\0')
            return true;
        text = end + 1;
    }
}

static bool parse_row(const char *text, uint32_t *out)
{
    return parse_u32(text, 512, out) && (*out == 128 || *out == 256 || *out == 512);
}

static bool parse_input(const char *text, bool *host)
{
    *host = strcmp(text, "host") == 0;
    return *host || strcmp(text, "device") == 0;
}

static bool take(int option, const char *value, struct job_options *out)
{
    switch (option) {
    case 'w':
        out->where = value;
        return true;
    case 'g':
        out->gpu = value;
        return true;
    case 'b':
        return parse_sizes(value, out);
    case 'c':
        return parse_number(value, MAX_COUNT, &out->count);
    case 'o':
        return parse_row(value, &out->row_bytes);
    case 'i':
        return parse_input(value, &out->host_input);
    case 'r':
        return parse_u32(value, JOB_MAX_REPEATS, &out->repeats);
    case 'e':
        return parse_u32(value, 1u << 20, &out->seed);
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

/* An option that is another job's is no option of this one: its help names those it has. */
static bool belongs(const struct job *job, const char *name)
{
    const bool particular = strcmp(name, "row-bytes") == 0 || strcmp(name, "input") == 0;

    return !particular || strstr(job->help, name);
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
                                   {"repeats", required_argument, NULL, 'r'},
                                   {"seed", required_argument, NULL, 'e'},
                                   {"json", required_argument, NULL, 'j'},
                                   {"dry-run", no_argument, NULL, 'd'},
                                   {"help", no_argument, NULL, 'h'},
                                   {NULL, 0, NULL, 0}};
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
        if (option == '?' || !belongs(job, known[index].name)) {
            snprintf(why, JOB_TEXT_BYTES, "%.60s is no option, or lacks its value; try --help",
                     argv[optind - 1]);
            return false;
        }
        if (!take(option, optarg, out)) {
            snprintf(why, JOB_TEXT_BYTES, "--%s cannot be \"%.60s\"", known[index].name, optarg);
            return false;
        }
    }
    if (optind < argc) {
        snprintf(why, JOB_TEXT_BYTES, "\"%.60s\" is no option; try --help", argv[optind]);
        return false;
    }
    return true;
}
