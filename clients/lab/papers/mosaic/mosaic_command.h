/* mosaic_command.h: the commands about Mosaic. Each returns an exit status. */
#ifndef REACH_CLIENTS_LAB_PAPERS_MOSAIC_MOSAIC_COMMAND_H
#define REACH_CLIENTS_LAB_PAPERS_MOSAIC_MOSAIC_COMMAND_H

int mosaic_check(int argc, char **argv);          /* [--all] [TARGET..] */
int mosaic_figure_command(int argc, char **argv); /* FIGURE [--json|--svg] */

#endif
