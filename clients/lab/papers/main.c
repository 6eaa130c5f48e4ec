/* main.c: reach-lab-papers, the command line of the machines of published papers. */
#include "base/output.h"
#include "clients/lab/exit_status.h"
#include "clients/lab/papers/mosaic/mosaic_command.h"
#include "clients/lab/papers/pichai/bench_engine.h"
#include "clients/lab/papers/pichai/pichai_command.h"
#include "clients/lab/papers/programs/programs_command.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char help[] =
    "usage: reach-lab-papers COMMAND\n"
    "\n"
    "  check                                all of the following checks\n"
    "  check pichai [OPTION..] [TARGET..]   compares simulated machines with Pichai 2014\n"
    "  check pichai --varied                the same, once for each parameter that its text does\n"
    "                                       not give, with another value\n"
    "  check mosaic [--all] [TARGET..]      compares simulated machines with Mosaic 2017; --all\n"
    "                                       sweeps over all workloads instead of a part of them\n"
    "\n"
    "  paper pichai [OPTION..] FIGURE       a figure of Pichai 2014, simulated\n"
    "  paper mosaic FIGURE [--json|--svg]   a figure of Mosaic 2017, simulated\n"
    "\n"
    "  run [--gap N] MACHINE TRACE          a recorded program on a machine of Pichai 2014, or on\n"
    "                                       all of them (MACHINE all); N instructions without\n"
    "                                       memory before each access, default 4\n"
    "\n"
    "  bench                                prints the speed of the simulation\n"
    "\n"
    "  --help                               print this text\n"
    "  --version                            print the version\n"
    "\n"
    "Options of Pichai 2014:\n"
    "  --json, --svg   (figures) print JSON or a picture\n"
    "  --warps N       warps of a core: 16, 32 or 48 (default)\n"
    "  --gap N         N times the instructions between those with memory\n"
    "  --fitted        run jobs that are fitted to all inputs in the text\n"
    "  --threads N     runs at the same time, default one per processor\n"
    "\n"
    "docs/papers/ has the results. Exit status: 0 done, and all targets are reproduced; 1 a "
    "target\n"
    "is not reproduced; 2 an error.\n";

static int check_all(void)
{
    const int pichai = pichai_check(0, NULL);
    const int mosaic = mosaic_check(0, NULL);
    return pichai > mosaic ? pichai : mosaic;
}

enum { LAB_USAGE = -1 }; /* status of an invalid command line */

static int run_command(int argc, char **argv)
{
    const char *command = argc > 1 ? argv[1] : "";
    const char *paper = argc > 2 ? argv[2] : "";
    const bool is_check = strcmp(command, "check") == 0;
    const bool is_figure = strcmp(command, "paper") == 0 && argc > 3;

    if (is_check && argc == 2)
        return check_all();
    if (is_check && strcmp(paper, "pichai") == 0)
        return pichai_check(argc - 3, argv + 3);
    if (is_check && strcmp(paper, "mosaic") == 0)
        return mosaic_check(argc - 3, argv + 3);
    if (is_figure && strcmp(paper, "pichai") == 0)
        return pichai_figure_command(argc - 3, argv + 3);
    if (is_figure && strcmp(paper, "mosaic") == 0)
        return mosaic_figure_command(argc - 3, argv + 3);
    if (strcmp(command, "run") == 0)
        return programs_run_command(argc - 2, argv + 2);
    if (strcmp(command, "bench") == 0 && argc == 2)
        return bench_engine();
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
