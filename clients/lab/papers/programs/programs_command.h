/* programs_command.h: the commands of reach-lab-papers about recorded programs. The arguments
 * follow the name of the command. Each returns an exit status (exit_status.h). */
#pragma once

/* Runs a recorded program on one machine or on all machines. */
int programs_run_command(int argc, char **argv);

/* Prints the speed of the timed engine on recorded programs. */
int programs_bench_command(int argc, char **argv);

/* Runs each recorded program of a folder on each machine and prints tables in Markdown. The folder
 * has a trace NAME.rlt or NAME.rlt.xz and a report NAME.json for each program, and fingerprint.json
 * of the GPU. The output depends only on the folder. */
int programs_table_command(int argc, char **argv);
