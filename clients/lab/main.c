/* main.c: reach-lab, the command line of the lab. */
#include "clients/lab/lab.h"
#include "clients/lab/trace_commands.h"

#include "base/output.h"

#include <stdio.h>
#include <string.h>

#define MEASURED "docs/measurements"

static const char help[] =
    "usage: reach-lab COMMAND\n"
    "\n"
    "  check         all of the following, with what is in docs/measurements\n"
    "  check DIR     compare the model with the GPUs measured in DIR\n"
    "  check jobs [DIR]   compare what-if with the jobs measured there\n"
    "  check pichai [OPTION..] [TARGET..]   compare the timed engine with Pichai 2014\n"
    "  check pichai --varied                the same, with what its text does not say varied\n"
    "  paper pichai [OPTION..] FIGURE       a figure of Pichai 2014, simulated\n"
    "                --json, --svg, --warps N, --gap N, --threads N, --fitted: man reach-lab\n"
    "  check mosaic [--all] [TARGET..]      compare the simulated machine with Mosaic 2017\n"
    "  paper mosaic FIGURE [--json|--svg]   a figure of Mosaic 2017, simulated\n"
    "  bench         how fast accesses are counted, jobs simulated, and traces imported\n"
    "\n"
    "  gen JOB [--bytes B] [--count N] [--row-bytes N] [--threads N] [--seed N]\n"
    "          [--granule B] >TRACE\n"
    "                the accesses of a job: random, sampling, gather, grouping\n"
    "  import nvbit|accelsim|csv [--granule B] FILE >TRACE\n"
    "                what another tool traced; - is the standard input\n"
    "  info [--json] TRACE\n"
    "  what-if [--contiguous SHARE] [--in-reach-gbps N] [--input-bytes N] [--output-bytes N]\n"
    "          [--reserve B] [--blocks N] [--cold] [--only QUESTION].. [--json] FINGERPRINT TRACE\n"
    "                what the traced job costs on that GPU, and what would change it: as-it-is,\n"
    "                contiguity, entry, order, blocks, scopes, windows\n"
    "\n"
    "  --help        print this text\n"
    "  --version     print the version\n"
    "\n"
    "Exit status: 0 all is as said, 1 a target of check is not reproduced, 2 an error.\n";

static int worse(int a, int b)
{
    return a > b ? a : b;
}

static int check_all(void)
{
    return worse(worse(lab_check(MEASURED), lab_check_jobs(MEASURED)),
                 worse(lab_check_pichai(0, NULL), lab_check_mosaic(NULL, 0, false)));
}

int main(int argc, char **argv)
{
    const char *command = argc > 1 ? argv[1] : "";
    int result = LAB_ERROR;

    if (strcmp(command, "check") == 0 && argc >= 3 && argc <= 4 && strcmp(argv[2], "jobs") == 0)
        result = lab_check_jobs(argc == 4 ? argv[3] : MEASURED);
    else if (strcmp(command, "check") == 0 && argc == 4 && strcmp(argv[2], "pichai") == 0 &&
             strcmp(argv[3], "--varied") == 0)
        result = lab_check_pichai_varied();
    else if (strcmp(command, "check") == 0 && argc >= 3 && strcmp(argv[2], "pichai") == 0)
        result = lab_check_pichai(argc - 3, argv + 3);
    else if (strcmp(command, "paper") == 0 && argc >= 4 && strcmp(argv[2], "pichai") == 0)
        result = lab_paper_pichai(argc - 3, argv + 3);
    else if (strcmp(command, "check") == 0 && argc >= 3 && strcmp(argv[2], "mosaic") == 0)
        result = argc > 3 && strcmp(argv[3], "--all") == 0
                     ? lab_check_mosaic(argv + 4, argc - 4, true)
                     : lab_check_mosaic(argv + 3, argc - 3, false);
    else if (strcmp(command, "paper") == 0 && argc >= 4 && strcmp(argv[2], "mosaic") == 0 &&
             argc <= 5)
        result = lab_paper_mosaic(argv[3], argc == 5 ? argv[4] : NULL);
    else if (strcmp(command, "check") == 0 && argc == 3)
        result = lab_check(argv[2]);
    else if (strcmp(command, "check") == 0 && argc == 2)
        result = check_all();
    else if (strcmp(command, "bench") == 0 && argc == 2)
        result = lab_bench() == LAB_AS_SAID ? lab_bench_traces() : LAB_ERROR;
    else if (strcmp(command, "gen") == 0)
        result = lab_gen(argc - 2, argv + 2);
    else if (strcmp(command, "import") == 0)
        result = lab_import(argc - 2, argv + 2);
    else if (strcmp(command, "info") == 0)
        result = lab_info(argc - 2, argv + 2);
    else if (strcmp(command, "what-if") == 0)
        result = lab_what_if(argc - 2, argv + 2);
    else if (strcmp(command, "--help") == 0 && argc == 2)
        result = fputs(help, stdout) < 0 ? LAB_ERROR : LAB_AS_SAID;
    else if (strcmp(command, "--version") == 0 && argc == 2)
        result = puts("reach-lab " REACHD_VERSION) < 0 ? LAB_ERROR : LAB_AS_SAID;
    else
        (void)fprintf(stderr, "reach-lab: this is no command line that it knows\n%s", help);
    return output_exit("reach-lab", result, LAB_ERROR);
}
