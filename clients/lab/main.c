/* main.c: reach-lab, the command line of traces, what-if and validation. */
#include "base/output.h"
#include "clients/lab/exit_status.h"
#include "clients/lab/trace/trace_commands.h"
#include "clients/lab/validate/check_chips.h"
#include "clients/lab/validate/check_jobs.h"
#include "clients/lab/whatif/bench_count.h"
#include "clients/lab/whatif/whatif_command.h"

#include <stdio.h>
#include <string.h>

#define MEASURED "docs/measurements"

static const char help[] =
    "usage: reach-lab COMMAND\n"
    "\n"
    "  check              both of the following, with docs/measurements\n"
    "  check DIR          compares the model with the GPUs measured in DIR\n"
    "  check jobs [DIR]   compares what-if with the jobs measured in DIR\n"
    "  bench              prints the speed of counting\n"
    "\n"
    "  gen JOB [--bytes SIZE] [--count N] [--row-bytes N] [--threads N] [--seed N]\n"
    "          [--granule SIZE] >TRACE\n"
    "                     the accesses of a job: random, sampling, gather, grouping\n"
    "  import nvbit|accelsim|csv [--granule SIZE] FILE >TRACE\n"
    "                     converts the output of a tracer; - is the standard input\n"
    "  info [--json] TRACE\n"
    "                     describes a trace\n"
    "  sample --one-in N TRACE >TRACE\n"
    "                     keeps one thread block in N of a trace\n"
    "  what-if [--contiguous SHARE] [--in-reach-gbps N] [--input-bytes N] [--output-bytes N]\n"
    "          [--launch-accesses N] [--reserve SIZE] [--blocks N] [--cold]\n"
    "          [--only QUESTION].. [--json] FINGERPRINT TRACE\n"
    "                     what the traced job costs on that GPU, and what would change it;\n"
    "                     questions are contiguity, entry, order, blocks, scopes, windows\n"
    "\n"
    "  --help             print this text\n"
    "  --version          print the version\n"
    "\n"
    "Exit status: 0 done, and all targets are reproduced; 1 a target is not reproduced; 2 an "
    "error.\n";

enum { LAB_USAGE = -1 }; /* status of an invalid command line */

static int check_all(void)
{
    const int chips = check_chips(MEASURED);
    const int jobs = check_jobs(MEASURED);
    return chips > jobs ? chips : jobs;
}

static int run_check(int argc, char **argv)
{
    if (argc == 2)
        return check_all();
    if (argc <= 4 && strcmp(argv[2], "jobs") == 0)
        return check_jobs(argc == 4 ? argv[3] : MEASURED);
    return argc == 3 ? check_chips(argv[2]) : LAB_USAGE;
}

static int run_command(int argc, char **argv)
{
    const char *command = argc > 1 ? argv[1] : "";

    if (strcmp(command, "check") == 0)
        return run_check(argc, argv);
    if (strcmp(command, "bench") == 0 && argc == 2)
        return bench_count();
    if (strcmp(command, "gen") == 0)
        return trace_command_gen(argc - 2, argv + 2);
    if (strcmp(command, "import") == 0)
        return trace_command_import(argc - 2, argv + 2);
    if (strcmp(command, "info") == 0)
        return trace_command_info(argc - 2, argv + 2);
    if (strcmp(command, "sample") == 0)
        return trace_command_sample(argc - 2, argv + 2);
    if (strcmp(command, "what-if") == 0)
        return whatif_command(argc - 2, argv + 2);
    if (strcmp(command, "--help") == 0 && argc == 2)
        return fputs(help, stdout) < 0 ? LAB_ERROR : LAB_OK;
    if (strcmp(command, "--version") == 0 && argc == 2)
        return puts("reach-lab " REACHD_VERSION) < 0 ? LAB_ERROR : LAB_OK;
    return LAB_USAGE;
}

int main(int argc, char **argv)
{
    int result = run_command(argc, argv);
    if (result == LAB_USAGE) {
        (void)fprintf(stderr,
                      "reach-lab: unknown command \"%s\" or invalid arguments; see --help\n",
                      argc > 1 ? argv[1] : "");
        result = LAB_ERROR;
    }
    return output_exit("reach-lab", result, LAB_ERROR);
}
