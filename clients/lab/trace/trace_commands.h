/* trace_commands.h: the commands of reach-lab that make, import, describe and shorten traces.
 * `argv` begins behind the command. Each command returns an exit status and reports errors on
 * stderr. */
#pragma once

int trace_command_gen(int argc, char **argv);    /* JOB [OPTION..] */
int trace_command_import(int argc, char **argv); /* nvbit|accelsim|csv [--granule SIZE] FILE|- */
int trace_command_info(int argc, char **argv);   /* [--json] TRACE|- */
int trace_command_sample(int argc, char **argv); /* --one-in N TRACE */
