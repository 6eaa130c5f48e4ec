/* pichai_command.h: the commands about Pichai 2014. They reorder `argv` and return an exit
 * status. */
#ifndef REACH_CLIENTS_LAB_PAPERS_PICHAI_PICHAI_COMMAND_H
#define REACH_CLIENTS_LAB_PAPERS_PICHAI_PICHAI_COMMAND_H

int pichai_check(int argc, char **argv);          /* [OPTION..] [TARGET..], or --varied */
int pichai_figure_command(int argc, char **argv); /* [OPTION..] FIGURE */

#endif
