/* gups.c: the command line, the plan and the output of reach-gups (gups.h). */
#include "gups.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum { ELEMENT_BYTES = 8, TRANSACTION_BYTES = 32, LOG2_MIN = 16, LOG2_MAX = 40, ACCESSES_MAX = 64 };

static const char help_text[] =
    "reach-gups: random updates of a table of 2^N 8-byte words (HPCC RandomAccess), naive and as\n"
    "reachd plans them: in scopes and in windows. Options and results are those of gups in "
    "NVIDIA's\n"
    "code-samples.\n"
    "\n"
    "Usage:\n"
    "  -n <int> input data size = 2^n [default: 29]\n"
    "  -r <int> number of kernel repetitions [default: 1]\n"
    "  -a <int> number of random accesses per input element [default: 32 (r, w) or 8 (u, unl, rw,"
    " ux)]\n"
    "  -t <int> test type (0 - update (u), 1 - read (r), 2 - write (w), 3 - read write (rw),\n"
    "           4 - update no loop (unl), 5 - update by one atomic XOR (ux)) [default: 0]\n"
    "  -d <int> device ID to use [default: 0]\n"
    "  --reachd URI     source of answers: unix:/path, http://host:port, or\n"
    "                   file:/path/fingerprint.json; default: REACHD_URL, the daemon's socket,\n"
    "                   http://127.0.0.1:17322\n"
    "  --dry-run        print the plan and stop; needs no GPU. -d is then the daemon's index\n"
    "\n"
    "Without an answer from reachd only the naive choice is run, and the output says why.\n"
    "Exit status: 0 done, 1 an error, or more than 1 % of the table is wrong, 2 wrong options.\n";

void gups_help(FILE *out)
{
    fputs(help_text, out);
}

static bool parse_number(const char *text, uint32_t min, uint32_t max, uint32_t *out)
{
    char *end = NULL;
    const unsigned long long n = strtoull(text, &end, 10);

    *out = (uint32_t)n;
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && n >= min && n <= max;
}

static bool parse_option(int option, const char *value, struct gups_options *out)
{
    uint32_t test = 0;

    switch (option) {
    case 'n':
        return parse_number(value, LOG2_MIN, LOG2_MAX, &out->log2_elements);
    case 'r':
        return parse_number(value, 1, JOB_MAX_REPEATS, &out->repeats);
    case 'a':
        return parse_number(value, 1, ACCESSES_MAX, &out->accesses);
    case 't':
        if (!parse_number(value, 0, GUPS_TEST_COUNT - 1, &test))
            return false;
        out->test = (enum gups_test)test;
        return true;
    case 'd':
        return parse_number(value, 0, 1023, &out->device);
    case 'w':
        out->uri = value;
        return true;
    case 'D':
        out->dry_run = true;
        return true;
    case 'h':
        out->help = true;
        return true;
    default:
        return false;
    }
}

bool gups_options_parse(int argc, char **argv, struct gups_options *out, char *why)
{
    static const struct option known[] = {{"reachd", required_argument, NULL, 'w'},
                                          {"dry-run", no_argument, NULL, 'D'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    int option;

    *out = (struct gups_options){.log2_elements = 29, .repeats = 1};
    opterr = 0;
    optind = 0; /* glibc then restarts, also within a cluster of short options */
    while ((option = getopt_long(argc, argv, "n:r:a:t:d:h", known, NULL)) != -1) {
        if (option == '?')
            return job_fail(why, "%.60s: unknown option or missing value; see -h",
                            argv[optind - 1]);
        if (!parse_option(option, optarg, out))
            return job_fail(why, "%s %.60s: invalid value; see -h", argv[optind - 2], optarg);
    }
    if (optind < argc)
        return job_fail(why, "unexpected argument \"%.60s\"; see -h", argv[optind]);
    if (out->accesses == 0)
        out->accesses = out->test == GUPS_READ || out->test == GUPS_WRITE ? 32 : 8;
    if (gups_accesses(out) / (32 * GUPS_STEPS) > INT32_MAX)
        return job_fail(why, "2^%u elements with %u accesses each are too many; reduce -a",
                        out->log2_elements, out->accesses);
    return true;
}

uint64_t gups_bytes(const struct gups_options *options)
{
    return (uint64_t)ELEMENT_BYTES << options->log2_elements;
}

uint64_t gups_accesses(const struct gups_options *options)
{
    return (uint64_t)options->accesses << options->log2_elements;
}

uint32_t gups_pieces(const struct gups_options *options)
{
    return (uint32_t)(gups_accesses(options) / (32 * GUPS_STEPS));
}

const char *gups_result_name(enum gups_test test)
{
    static const char *const names[GUPS_TEST_COUNT] = {
        "Gupdates/s ATOM.CAS.64(loop)",
        "Greads/s LD.64",
        "Gwrites/s STG.64",
        "Greads+writes/s LDG.64+STG.64",
        "Gupdates/s ATOM.CAS.64(no_loop)",
        "Gupdates/s RED.XOR.64",
    };

    return names[test];
}

bool gups_can_verify(enum gups_test test)
{
    return test == GUPS_UPDATE || test == GUPS_UPDATE_XOR;
}

/* ---- the plan -------------------------------------------------------------------------------- */

static enum reach_access access_of(enum gups_test test)
{
    switch (test) {
    case GUPS_READ:
        return REACH_READ;
    case GUPS_WRITE:
    case GUPS_READ_WRITE:
        return REACH_WRITE;
    default:
        return REACH_ATOMIC;
    }
}

/* Naive comes first, because every other choice is compared with it. */
static int by_strategy(const void *a, const void *b)
{
    return (int)((const struct job_choice *)a)->strategy -
           (int)((const struct job_choice *)b)->strategy;
}

uint32_t gups_plan(struct reach *reach, const char *gpu, const struct gups_options *options,
                   struct reach_answer **plan, struct job_choice choices[JOB_MAX_CHOICES],
                   char *why)
{
    static const struct job_variant variants[] = {{REACH_NAIVE, 0, "naive", false},
                                                  {REACH_SCOPES, 0, "scopes", false},
                                                  {REACH_FILTERED_WINDOWS, 0, "windows", false},
                                                  {REACH_NAIVE, 0, NULL, false}};
    const struct reach_job job = {.size = sizeof job,
                                  .bytes = gups_bytes(options),
                                  .access = access_of(options->test),
                                  .element_bytes = ELEMENT_BYTES,
                                  .transaction_bytes = TRANSACTION_BYTES};
    struct reach_error error;
    uint32_t count = 0;

    why[0] = '\0';
    if (reach_get_plan(reach, gpu, &job, plan, &error) == REACH_OK &&
        (options->dry_run || reach_answer_check_gpu(*plan, gpu, &error) == REACH_OK))
        count = job_choices_make(variants, *plan, NULL, choices);
    else
        job_fail(why, "%s", error.text);
    if (count == 0) {
        memset(choices, 0, JOB_MAX_CHOICES * sizeof *choices);
        choices[0] =
            (struct job_choice){.strategy = REACH_NAIVE, .label = "naive", .pass_count = 1};
        count = 1;
    }
    qsort(choices, count, sizeof *choices, by_strategy);
    return count;
}

/* ---- output ---------------------------------------------------------------------------------- */

void gups_print_header(FILE *out, const struct gups_options *options, const struct gups_gpu *gpu)
{
    fprintf(out,
            "Using GPU %u of %d GPUs.\nWarp size = %d.\nMulti-processor count = %d.\n"
            "Max threads per multi-processor = %d.\n",
            options->device, gpu->count, gpu->warp, gpu->sms, gpu->sm_threads);
    fprintf(out,
            "Table size = %llu (%lf GB.)\nTotal number of threads %llu\n"
            "Each thread access %llu locations.\nNumber of iterations = %u\n",
            1ull << options->log2_elements, (double)gups_bytes(options) / 1e9,
            (unsigned long long)gpu->threads,
            (unsigned long long)(gups_accesses(options) / gpu->threads), options->repeats);
}

static double giga_accesses(const struct gups_options *options, double milliseconds)
{
    return (double)gups_accesses(options) * options->repeats / (milliseconds * 1e6);
}

void gups_print_result(FILE *out, const struct gups_options *options,
                       const struct job_choice *choice)
{
    fprintf(out, "Strategy: %s", choice->label);
    if (choice->strategy == REACH_SCOPES)
        fprintf(out, ", %u", choice->pass_count);
    if (choice->windows)
        fprintf(out, ", %u", choice->windows);
    fprintf(out, "\nElapsed time = %.6f seconds\nResult %s = %.6f\n", choice->milliseconds[0] / 1e3,
            gups_result_name(options->test), giga_accesses(options, choice->milliseconds[0]));
}

/* A word that is read and then written is only one access in the plan. */
static bool has_one_access(enum gups_test test)
{
    return test != GUPS_UPDATE && test != GUPS_UPDATE_NO_LOOP && test != GUPS_READ_WRITE;
}

static bool is_predicted(const struct gups_options *options, const struct job_choice *choice)
{
    return choice->predicted_gbps.known && has_one_access(options->test);
}

void gups_print_table(FILE *out, const struct gups_options *options,
                      const struct job_choice *choices, uint32_t count)
{
    const double naive_ms = choices[0].milliseconds[0];

    fprintf(out, "\n%-10s %8s %8s%13s%13s%13s\n", "strategy", "passes", "windows", "G/s",
            "predicted", "times naive");
    for (uint32_t i = 0; i < count; i++) {
        const struct job_choice *choice = &choices[i];
        const double ms = choice->milliseconds[0];

        fprintf(out, "%-10s %8u %8u", choice->label, choice->pass_count, choice->windows);
        job_print_number(out, 12, 2, ms > 0, ms > 0 ? giga_accesses(options, ms) : 0);
        job_print_number(out, 12, 2, is_predicted(options, choice),
                         choice->predicted_gbps.value / TRANSACTION_BYTES);
        job_print_number(out, 12, 2, ms > 0, ms > 0 ? naive_ms / ms : 0);
        fputc('\n', out);
    }
    if (count > 0 && choices[0].predicted_gbps.known && !has_one_access(options->test))
        fprintf(out,
                "No predictions: test %u reads a word and then changes it, and a plan has one "
                "access of each item.\nTests 1 (-t 1, read), 2 (write) and 5 (update by XOR) have "
                "predictions.\n",
                (unsigned)options->test);
}
