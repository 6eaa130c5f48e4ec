/* options.c: see options.h. */
#include "options.h"

#include "report.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_LINES   ((uint64_t)1 << 30) /* 128 GiB of reads: some 45 ms at 3 TB/s */
#define MAX_LINES       ((uint64_t)1 << 31)
#define MAX_BYTES       ((uint64_t)1 << 39) /* line numbers have 32 bits */
#define DEFAULT_REPEATS 5

const char options_help[] =
    "random_read: reads random 128-byte lines of one large allocation, in four ways: inside a\n"
    "region that is in reach, naively over everything, in windows by SM, and as reachd "
    "recommends.\n"
    "\n"
    "  --reachd URI    source of answers: unix:/path, http://host:port, or\n"
    "                  file:/fingerprint.json; default as libreach chooses\n"
    "  --gpu N         CUDA's index of the GPU, default 0\n"
    "  --bytes SIZE    of the allocation, such as 79GiB; default: the largest the GPU gives\n"
    "  --lines N       lines that each strategy reads, default 2^30\n"
    "  --repeats N     timed repeats, default 5\n"
    "  --seed N        of the random lines, default 1\n"
    "  --json FILE     write the result as JSON, too\n"
    "  --dry-run       print who would read where and stop; needs no GPU. --gpu is then the\n"
    "                  daemon's index or a UUID\n"
    "\n"
    "Exit status: 0 measured, 1 failed, 2 wrong options.\n";

/* 12345, 4K, 80G, 137GiB: always powers of 1024, as reachd itself reads them. */
static bool parse_size(const char *text, uint64_t max, uint64_t *out)
{
    static const char prefixes[] = "KMGT";
    char *rest = NULL;

    errno = 0;
    const unsigned long long n = strtoull(text, &rest, 10);
    unsigned shift = 0;

    if (text[0] < '0' || text[0] > '9' || errno)
        return false;
    const char *prefix = *rest ? strchr(prefixes, *rest) : NULL;

    if (prefix) {
        shift = 10 * (unsigned)(prefix - prefixes + 1);
        rest += strncmp(rest + 1, "iB", 2) == 0 ? 3 : 1;
    }
    if (*rest || n == 0 || n > max >> shift)
        return false;
    *out = (uint64_t)n << shift;
    return true;
}

static bool parse_u32(const char *text, uint64_t max, uint32_t *out)
{
    uint64_t n = 0;

    if (!parse_size(text, max, &n))
        return false;
    *out = (uint32_t)n;
    return true;
}

static bool take(int option, const char *value, struct options *out)
{
    switch (option) {
    case 'w':
        out->reachd = value;
        return true;
    case 'g':
        out->gpu = value;
        return true;
    case 'b':
        return parse_size(value, MAX_BYTES, &out->bytes);
    case 'l':
        return parse_size(value, MAX_LINES, &out->lines);
    case 'r':
        return parse_u32(value, REPORT_MAX_REPEATS, &out->repeats);
    case 'e':
        return parse_u32(value, UINT32_MAX, &out->seed);
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

bool options_parse(int argc, char **argv, struct options *out, char *why)
{
    static const struct option known[] = {
        {"reachd", required_argument, NULL, 'w'},  {"gpu", required_argument, NULL, 'g'},
        {"bytes", required_argument, NULL, 'b'},   {"lines", required_argument, NULL, 'l'},
        {"repeats", required_argument, NULL, 'r'}, {"seed", required_argument, NULL, 'e'},
        {"json", required_argument, NULL, 'j'},    {"dry-run", no_argument, NULL, 'd'},
        {"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0}};
    int option, index = 0;

    *out =
        (struct options){.gpu = "0", .lines = DEFAULT_LINES, .repeats = DEFAULT_REPEATS, .seed = 1};
    opterr = 0;
    while ((option = getopt_long(argc, argv, "", known, &index)) != -1) {
        if (option == '?') {
            snprintf(why, ASK_TEXT_BYTES, "%s is no option, or lacks its value; try --help",
                     argv[optind - 1]);
            return false;
        }
        if (!take(option, optarg, out)) {
            snprintf(why, ASK_TEXT_BYTES, "--%s cannot be \"%.60s\"", known[index].name, optarg);
            return false;
        }
    }
    if (optind < argc) {
        snprintf(why, ASK_TEXT_BYTES, "\"%.60s\" is no option; try --help", argv[optind]);
        return false;
    }
    return true;
}
