/* main.c: reach-lab, the command line of the lab. */
#include "clients/lab/lab.h"

#include <stdio.h>
#include <string.h>

static const char help[] =
    "usage: reach-lab COMMAND\n"
    "\n"
    "  check         all of the following, with the GPUs measured in docs/measurements\n"
    "  check DIR     compare the model with the GPUs measured in DIR\n"
    "  check pichai [OPTION..] [TARGET..]   compare the timed engine with Pichai 2014\n"
    "  paper pichai [OPTION..] FIGURE       a figure of Pichai 2014, simulated\n"
    "                --json, --svg, --warps N, --gap N, --threads N: man reach-lab\n"
    "  check mosaic [--all] [TARGET..]      compare the simulated machine with Mosaic 2017\n"
    "  paper mosaic FIGURE [--json|--svg]   a figure of Mosaic 2017, simulated\n"
    "  bench         how fast accesses are counted and jobs simulated\n"
    "  --help        print this text\n"
    "  --version     print the version\n"
    "\n"
    "Exit status: 0 all is as said, 1 a target of check is not reproduced, 2 an error.\n";

static int worse(int a, int b)
{
    return a > b ? a : b;
}

int main(int argc, char **argv)
{
    const char *command = argc > 1 ? argv[1] : "";
    int result = LAB_ERROR;

    if (strcmp(command, "check") == 0 && argc >= 3 && strcmp(argv[2], "pichai") == 0)
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
        result = worse(worse(lab_check("docs/measurements"), lab_check_pichai(0, NULL)),
                       lab_check_mosaic(NULL, 0, false));
    else if (strcmp(command, "bench") == 0 && argc == 2)
        result = lab_bench();
    else if (strcmp(command, "--help") == 0 && argc == 2)
        result = fputs(help, stdout) < 0 ? LAB_ERROR : LAB_AS_SAID;
    else if (strcmp(command, "--version") == 0 && argc == 2)
        result = puts("reach-lab " REACHD_VERSION) < 0 ? LAB_ERROR : LAB_AS_SAID;
    else
        (void)fprintf(stderr, "reach-lab: this is no command line that it knows\n%s", help);
    if (fflush(stdout) != 0) {
        (void)fprintf(stderr, "reach-lab: cannot write the output\n");
        return LAB_ERROR;
    }
    return result;
}
