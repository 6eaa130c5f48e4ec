/* programs_command.h: reach-lab-papers run and bench. */
#ifndef REACH_CLIENTS_LAB_PAPERS_PROGRAMS_PROGRAMS_COMMAND_H
#define REACH_CLIENTS_LAB_PAPERS_PROGRAMS_PROGRAMS_COMMAND_H

/* Runs a recorded program on one machine or on all machines. The arguments follow the name of the
 * command. Returns an exit status (exit_status.h). */
int programs_run_command(int argc, char **argv);

/* Prints the speed of the timed engine on recorded programs. */
int programs_bench_command(int argc, char **argv);

#endif
