/* programs_table.h: reach-lab-papers table. */
#ifndef REACH_CLIENTS_LAB_PAPERS_PROGRAMS_PROGRAMS_TABLE_H
#define REACH_CLIENTS_LAB_PAPERS_PROGRAMS_PROGRAMS_TABLE_H

/* Runs each recorded program of a folder on each machine and prints tables in Markdown. The folder
 * has a trace NAME.rlt or NAME.rlt.xz and a report NAME.json for each program, and fingerprint.json
 * of the GPU. The output depends only on the folder. The argument follows the name of the command.
 * Returns an exit status (exit_status.h). */
int programs_table_command(int argc, char **argv);

#endif
