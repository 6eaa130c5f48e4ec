/* main.c: reach-lab-papers, the command line of the machines of published papers. */
#include "base/output.h"
#include "clients/lab/exit_status.h"
#include "clients/lab/papers/exact.h"
#include "clients/lab/papers/programs/programs_command.h"

#include <stdio.h>
#include <string.h>

static const char help[] =
    "usage: reach-lab-papers COMMAND\n"
    "\n"
    "  run [--gap N] MACHINE TRACE   a recorded program on a machine of Pichai 2014 or Mosaic "
    "2017,\n"
    "                                on all of them (MACHINE all), or on the GPU of a fingerprint\n"
    "                                (MACHINE FINGERPRINT.json); N instructions without memory\n"
    "                                before each access, default 4\n"
    "  table FOLDER                  all recorded programs of a folder on all machines, in "
    "Markdown\n"
    "  check                         the examples whose results are exact in the papers\n"
    "  bench TRACE..                 prints the speed of the simulation\n"
    "\n"
    "  --help                        print this text\n"
    "  --version                     print the version\n"
    "\n"
    "docs/lab-programs.md has the results. Exit status: 0 done, and all examples are reproduced; 1 "
    "an\n"
    "example is not reproduced; 2 an error.\n";

enum { LAB_USAGE = -1 }; /* status of an invalid command line */

static int run_command(int argc, char **argv)
{
    const char *command = argc > 1 ? argv[1] : "";

    if (strcmp(command, "run") == 0)
        return programs_run_command(argc - 2, argv + 2);
    if (strcmp(command, "table") == 0)
        return programs_table_command(argc - 2, argv + 2);
    if (strcmp(command, "check") == 0 && argc == 2)
        return exact_check();
    if (strcmp(command, "bench") == 0 && argc > 2)
        return programs_bench_command(argc - 2, argv + 2);
    if (strcmp(command, "--help") == 0 && argc == 2)
        return fputs(help, stdout) < 0 ? LAB_ERROR : LAB_OK;
    if (strcmp(command, "--version") == 0 && argc == 2)
        return puts("reach-lab-papers " REACHD_VERSION) < 0 ? LAB_ERROR : LAB_OK;
    return LAB_USAGE;
}

int main(int argc, char **argv)
{
    int result = run_command(argc, argv);
    if (result == LAB_USAGE) {
        (void)fprintf(stderr,
                      "reach-lab-papers: unknown command \"%s\" or invalid arguments; see --help\n",
                      argc > 1 ? argv[1] : "");
        result = LAB_ERROR;
    }
    return output_exit("reach-lab-papers", result, LAB_ERROR);
}
