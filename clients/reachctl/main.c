/* main.c: reachctl, the command line of reachd. Options may precede or follow the command; an
 * option that a command does not take is an error.
 */
#include "clients/reachctl/client.h"
#include "clients/reachctl/options.h"

#include "base/output.h"

#include <curl/curl.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

struct command {
    const char *name;
    const char *operand; /* NULL for none, "[ID]" for an optional one, "A B" for two, "FILE..." for
                            one or more */
    uint64_t options;    /* BIT()s of the options it takes besides --json, --socket and --url */
    command_fn *run;
    const char *usage;
    const char *about;
};

#define BIT(id) (UINT64_C(1) << OPTION_##id)
_Static_assert(OPTION_COUNT <= 64, "a bit for each option");

static const struct command commands[] = {
    {"gpus", NULL, 0, command_gpus, "gpus", "the GPUs and the state of each"},
    {"health", NULL, 0, command_health, "health",
     "whether the GPUs of the node are usable, for health checks of Slurm and Kubernetes"},
    {"measure", NULL, BIT(GPU) | BIT(DEPTH) | BIT(WAIT), command_measure,
     "measure [--depth quick|full|memory|matrix] [--wait]",
     "measure the GPU; --wait waits, and fails if that fails"},
    {"forget", "[UUID]", BIT(LOST), command_forget, "forget UUID | --lost",
     "delete all about a GPU that is lost; --lost: about each that is"},
    {"diff", "A B", BIT(GPU), command_diff, "diff A B",
     "compare two fingerprints: ids, \"current\", or files"},
    {"show", "[curve]", BIT(GPU) | BIT(AT) | BIT(EVIDENCE) | BIT(SVG), command_show,
     "show [--at ID] [--evidence] | --svg curve",
     "the current fingerprint or an older one; --evidence adds the evidence of each number"},
    {"map", "[FILE]", BIT(GPU) | BIT(ALL) | BIT(AT) | BIT(SVG) | BIT(BYTES), command_map,
     "map [FILE] [--all] [--at ID] [--bytes B] [--svg]",
     "a chip as text: SMs by group, windows, disabled SMs; --all: each GPU of the node"},
    {"compare", "[FILE]", BIT(GPU) | BIT(REFERENCE), command_compare,
     "compare [FILE] [--reference DIR]",
     "compare each number of a GPU with those of other chips of its kind"},
    {"share", "[FILE]", BIT(GPU) | BIT(EXPORT), command_share, "share [FILE] [--export DIR]",
     "write an anonymous file with which a chip joins the reference set"},
    {"scope", "BYTES...", BIT(GPU), command_answer, "scope BYTES... [parameters]",
     "the number of bytes that one pass may access at random"},
    {"placement", "BYTES", BIT(GPU), command_answer, "placement BYTES [parameters]",
     "the window of memory in which each SM should work"},
    {"plan", "BYTES...", BIT(GPU), command_answer, "plan BYTES... [parameters]",
     "every strategy for a job, best first; several BYTES: allocations touched together"},
    {"break-even", "[GPU]", BIT(GPU) | BIT(FINGERPRINT) | BIT(FORMAT), command_break_even,
     "break-even [GPU] [--fingerprint FILE] [--input-bytes N --scan-gps N --format markdown]",
     "what this chip gains by row size and by table size"},
    {"split", "BYTES...", BIT(GPU) | BIT(FORMAT), command_answer,
     "split BYTES BYTES... [--format green-context] [parameters]",
     "one GPU for several jobs, by whole groups; --format: a recipe for green contexts"},
    {"explain", "BYTES", BIT(GPU), command_answer, "explain BYTES --gbps N [parameters]",
     "whether the TLB limits a job; N is its throughput"},
    {"memory", "[BYTES]", BIT(GPU), command_answer, "memory [BYTES] [parameters]",
     "every kind of memory that the GPU can access; how to allocate BYTES, best first"},
    {"fit", "BYTES", BIT(GPU), command_answer, "fit BYTES [parameters]",
     "where a set that is read repeatedly stays, and what it costs outside"},
    {"caches", NULL, BIT(GPU), command_answer, "caches",
     "data caches, latencies, the sides of the L2, shared memory, clusters, loads in flight"},
    {"contiguity", NULL, BIT(GPU), command_contiguity, "contiguity",
     "how contiguous the free memory is; takes all of it for about a second"},
    {"observations", "[ID]", BIT(GPU) | BIT(RUN) | BIT(CSV), command_observations,
     "observations [--run N] | ID [--csv]", "the raw measurements, or all values of one"},
    {"import", "FILE...", BIT(GPU_NAME) | BIT(EXPORT) | BIT(EVIDENCE), command_import,
     "import FILE... [--gpu-name NAME] [--export DIR]",
     "derive a fingerprint from files of the public cuda-gpu-tlb benchmark; takes --evidence"},
    {"export", "[GPU] [FILE]", BIT(GPU) | BIT(AT), command_export, "export [GPU] [FILE] [--at ID]",
     "write the fingerprint to FILE (fingerprint.json), for planning without a daemon"},
    {"backup", "FILE", BIT(STATE), command_backup, "backup FILE [--state PATH]",
     "copy the daemon's database while it is in use; needs no daemon"},
    {"survey", "[HOST...]",
     BIT(HOSTS) | BIT(FILE_SD) | BIT(SLURM) | BIT(DB) | BIT(PORT) | BIT(CA) | BIT(DEADLINE) |
         BIT(HOST_LIMIT) | BIT(AT_ONCE) | BIT(ATTEMPTS),
     command_survey, "survey [HOST...] [--hosts FILE] [--slurm LIST]",
     "collect the fingerprints of many daemons in a database"},
    {"survey report", "[REPORT...]", BIT(DB) | BIT(FORMAT) | BIT(SURVEY) | BIT(MODEL),
     command_survey_report, "survey report [REPORT...] [--format F]",
     "results of surveys: signatures, maps, quartiles, outliers, drift"},
};
enum {
    COMMAND_COUNT = sizeof(commands) / sizeof(*commands),
    COMMAND_NAME_BYTES = 128,
    OPTION_NAME_BYTES = 32
};

/* Writes the name of an option, such as "no-sm-binding", to out[OPTION_NAME_BYTES]. Returns `out`.
 */
static const char *option_name(const struct param *p, char *out)
{
    size_t n = 0;

    for (; p->name[n] && n + 1 < OPTION_NAME_BYTES; n++)
        out[n] = (char)(p->name[n] == '_' ? '-' : p->name[n]);
    out[n] = '\0';
    return out;
}

/* Prints the first sentence of each parameter, and the commands that take the parameter. The first
 * parameter, the bytes, is left out because it is an operand. */
static void print_params(void)
{
    const struct param *p;
    char name[OPTION_NAME_BYTES];

    puts("Parameters, and the commands that accept each (man reachctl describes them):");
    for (uint32_t i = 1; (p = param_at(i)); i++) {
        const char *end = strstr(p->about, ". ");
        const char *before = "(";
        printf("  --%-20s %-8s %.*s ", option_name(p, name), p->operand ? p->operand : "",
               end ? (int)(end - p->about) + 1 : -1, p->about);
        for (uint32_t k = 0; p->word && p->word(k); k++)
            printf("%s%s", p->word(k), p->word(k + 1) ? "|" : " ");
        for (enum planner_function f = PLANNER_SCOPE; f < PLANNER_COUNT; f++) {
            if (p->uses[f].form) {
                printf("%s%s", before, planner_function_name(f));
                before = ", ";
            }
        }
        puts(")");
    }
    puts("");
}

static void print_help(void)
{
    puts("reachctl queries reachd about how much memory each GPU of a node accesses at full "
         "speed.\n");
    for (int i = 0; i < COMMAND_COUNT; i++)
        printf("  reachctl %-52s %s\n", commands[i].usage, commands[i].about);
    puts("\n"
         "  --gpu G        index or UUID of the GPU; default 0\n"
         "  --json         print the daemon's response as it is\n"
         "  --socket PATH  connect to this Unix socket\n"
         "  --url URL      connect to this URL; default: the environment's REACHD_URL, else the\n"
         "                 socket /run/reachd/reachd.sock if it exists, else\n"
         "                 http://127.0.0.1:17322\n"
         "  --help         print this text\n"
         "  --version      print the version of reachctl\n"
         "\n"
         "BYTES and B are sizes: 137GiB, 80G, 1048576. GB is 10^9 bytes, GiB and G are 2^30. If "
         "the\n"
         "daemon requires a token to measure, the environment's REACHD_TOKEN_FILE names the file\n"
         "that contains it.\n");
    print_params();
    puts(
        "break-even takes --input-bytes N (of one index; default 8), --scan-gps N and --format\n"
        "markdown. With --fingerprint FILE (exported) the command needs no daemon.\n"
        "\n"
        "import needs no daemon. The name of a sharing file must end in its stride in KiB and its\n"
        "number of pages: TLBsharing-2048-65.txt.\n"
        "\n"
        "survey takes HOSTs (names or addresses, with or without a port, URLs, unix:/path, - for\n"
        "standard input), --hosts FILE (one per line), --file-sd FILE (of Prometheus), --slurm "
        "LIST\n"
        "('n[001-256]'), --port P (the default port), --ca FILE (trusted certificates),\n"
        "--concurrency N, --attempts N, --host-deadline S (per host), --deadline S (in all) and\n"
        "--db WHERE (where the fingerprints are stored: a file or postgresql://...).\n"
        "survey report prints REPORTs (changes, signatures, maps, quartiles, outliers, drift,\n"
        "hosts, inventory, costs, gpus; without one a summary) of the latest survey or of --survey "
        "N,\n"
        "of all GPUs or those of --model NAME, as --format table|json|csv|markdown|html (a\n"
        "page for a browser).\n"
        "\n"
        "Exit status: 0 success, 1 the request was refused or the measurement failed, 2 invalid\n"
        "usage, 3 no daemon responds. Of diff: 0 same, 1 changed, 2 different hardware, 3 any\n"
        "failure. Of health: 0 no problem, 1 a problem, 3 unknown. Of survey: 4 if some hosts did "
        "not answer, 3 if none did.");
}

/* Finds the command at the beginning of `words`, which ends with NULL, and the number of words of
 * its name. A name of two words is preferred. */
static const struct command *find_command(char **words, int *out_words)
{
    const struct command *found = NULL;
    char two[COMMAND_NAME_BYTES];

    snprintf(two, sizeof(two), "%.60s %.60s", words[0], words[1] ? words[1] : "");
    for (int i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(two, commands[i].name) == 0) {
            *out_words = 2;
            return &commands[i];
        }
        if (strcmp(words[0], commands[i].name) == 0)
            found = &commands[i];
    }
    *out_words = 1;
    return found;
}

/* ---- the command line ---- */

enum {
    OPT_SOCKET = 0x100,
    OPT_URL,
    OPT_JSON,
    OPT_HELP,
    OPT_VERSION,
    OPT_LIMITED,
    OPT_PARAM = OPT_LIMITED + OPTION_COUNT
};
#define LONG_OPTION(id, field, name, argument) {name, argument, NULL, OPT_LIMITED + OPTION_##id},
static const struct option fixed_options[] = {
    OPTIONS_ALL(LONG_OPTION) /* these come first, so that element i is option i */
    {"socket", required_argument, NULL, OPT_SOCKET},
    {"url", required_argument, NULL, OPT_URL},
    {"json", no_argument, NULL, OPT_JSON},
    {"help", no_argument, NULL, OPT_HELP},
    {"version", no_argument, NULL, OPT_VERSION},
};
enum { FIXED_COUNT = sizeof(fixed_options) / sizeof(*fixed_options) };

/* Returns the fixed options and the options of the parameters, terminated. */
static const struct option *make_long_options(void)
{
    static struct option all[FIXED_COUNT + PARAM_MOST_ROWS + 1];
    static char names[PARAM_MOST_ROWS][OPTION_NAME_BYTES];
    const struct param *p;

    memcpy(all, fixed_options, sizeof(fixed_options));
    for (uint32_t i = 1; (p = param_at(i)); i++) {
        all[FIXED_COUNT + i - 1] =
            (struct option){option_name(p, names[i]), p->operand ? required_argument : no_argument,
                            NULL, OPT_PARAM + (int)i};
    }
    return all;
}

/* The last value of an option counts; of options for sources, every value counts. */
static void set_option(struct options *o, enum option_id id, const char *value)
{
    const bool source = id == OPTION_HOSTS || id == OPTION_FILE_SD || id == OPTION_SLURM;

    o->value[id] = value ? value : "true";
    if (source && o->source_count++ < OPTIONS_MOST_SOURCES)
        o->sources[o->source_count - 1] = (struct option_source){id, value};
}

/* Returns false if there is nothing to run: help or version were printed, or the command line is
 * invalid. */
static bool parse_options(int argc, char **argv, struct options *o, enum exit_code *out)
{
    const struct option *const long_options = make_long_options();
    int code;

    *out = EXIT_DONE;
    while ((code = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
        switch (code) {
        case OPT_SOCKET:
            o->socket_path = optarg;
            break;
        case OPT_URL:
            o->url = optarg;
            break;
        case OPT_JSON:
            o->json = true;
            break;
        case 'h':
        case OPT_HELP:
            print_help();
            return false;
        case OPT_VERSION:
            puts("reachctl " REACHD_VERSION);
            return false;
        case '?': /* getopt has printed the reason */
            *out = client_usage_error("invalid command line", NULL);
            return false;
        default:
            if (code >= OPT_PARAM)
                o->params[code - OPT_PARAM] = optarg ? optarg : "true";
            else
                set_option(o, (enum option_id)(code - OPT_LIMITED), optarg);
        }
    }
    return true;
}

static enum exit_code refuse_option(const struct command *c, const char *name)
{
    fprintf(stderr, "reachctl: %s does not take --%s\n  next step: reachctl --help\n", c->name,
            name);
    return EXIT_USAGE;
}

/* A command with the name of a function of the planner takes its parameters. */
static bool takes_param(const struct command *c, const struct param *p)
{
    for (enum planner_function f = PLANNER_SCOPE; f < PLANNER_COUNT; f++) {
        if (strcmp(planner_function_name(f), c->name) == 0)
            return p->uses[f].form != PARAM_ABSENT;
    }
    return c->run == command_break_even &&
           (strcmp(p->name, "input_bytes") == 0 || strcmp(p->name, "scan_gps") == 0);
}

/* Checks that the command takes every option that was given. */
static enum exit_code check_options(const struct command *c, const struct options *o)
{
    const struct param *p;
    char name[OPTION_NAME_BYTES];

    for (int i = 0; i < OPTION_COUNT; i++) {
        if (o->value[i] && !(c->options >> i & 1))
            return refuse_option(c, fixed_options[i].name);
    }
    for (uint32_t i = 0; (p = param_at(i)); i++) {
        if (o->params[i] && !takes_param(c, p))
            return refuse_option(c, option_name(p, name));
    }
    return EXIT_DONE;
}

/* Makes all checks that need no daemon. */
static enum exit_code check_usage(const struct command *c, const struct options *o, int operands)
{
    const bool many = c->operand && strstr(c->operand, "...");
    const int most = !c->operand ? 0 : many ? INT_MAX : strchr(c->operand, ' ') ? 2 : 1;
    const int least = !c->operand || c->operand[0] == '[' ? 0 : many ? 1 : most;
    enum depth depth;

    if (check_options(c, o) != EXIT_DONE)
        return EXIT_USAGE;
    if (operands < least)
        return client_usage_error("missing operand:", c->operand);
    if (operands > most)
        return client_usage_error("too many operands for", c->name);
    if (o->url && o->socket_path)
        return client_usage_error("--url and --socket exclude each other", NULL);
    if (o->gpu && *o->gpu == '\0')
        return client_usage_error("--gpu needs an index or a UUID", NULL);
    if (o->depth && !depth_from_name(o->depth, &depth))
        return client_usage_error("--depth must be quick, full, memory or matrix, not", o->depth);
    return EXIT_DONE;
}

/* Returns the status of a command that cannot finish. Status 1 of diff and of health is a result.
 */
static enum exit_code exit_code_of_trouble(const struct command *c)
{
    if (c && c->run == command_diff)
        return EXIT_DIFF_TROUBLE;
    return c && c->run == command_health ? EXIT_UNREACHABLE : EXIT_FAILED;
}

static enum exit_code run_command(const struct command *c, const struct options *o)
{
    struct client *client;
    enum exit_code exit_code;

    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        fputs("reachctl: cannot initialize libcurl\n", stderr);
        return exit_code_of_trouble(c);
    }
    client = client_new(o);
    exit_code = client ? c->run(client, o) : exit_code_of_trouble(c);
    client_free(client);
    curl_global_cleanup();
    return exit_code;
}

/* An incomplete output is a failure, whatever the result of the command. */
static enum exit_code check_output(const struct command *command, enum exit_code exit_code)
{
    const enum exit_code trouble = exit_code_of_trouble(command);
    const bool replaced =
        trouble != EXIT_FAILED || exit_code == EXIT_DONE || exit_code == EXIT_PARTLY;

    return (enum exit_code)output_exit("reachctl", (int)exit_code,
                                       (int)(replaced ? trouble : exit_code));
}

int main(int argc, char **argv)
{
    struct options options = {.command = NULL};
    const struct command *command;
    enum exit_code exit_code;
    int words = 1;

    if (!parse_options(argc, argv, &options, &exit_code))
        return check_output(NULL, exit_code);
    if (optind == argc)
        return client_usage_error("missing command", NULL);
    command = find_command(&argv[optind], &words);
    if (!command)
        return client_usage_error("unknown command", argv[optind]);
    optind += words;
    exit_code = check_usage(command, &options, argc - optind);
    if (exit_code != EXIT_DONE)
        return command->run == command_diff ? EXIT_DIFF_TROUBLE : exit_code;
    if (optind < argc)
        options.operand = argv[optind];
    if (options.operand && command->operand && strncmp(command->operand, "[GPU]", 5) == 0)
        options.gpu = options.operand;
    if (!options.gpu)
        options.gpu = "0";
    if (optind + 1 < argc)
        options.second = argv[optind + 1];
    options.command = command->name;
    options.operand_count = argc - optind;
    options.operands = argv + optind;
    return check_output(command, run_command(command, &options));
}
