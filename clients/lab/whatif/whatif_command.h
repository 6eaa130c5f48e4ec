/* whatif_command.h: the command reach-lab what-if. */
#ifndef REACH_CLIENTS_LAB_WHATIF_WHATIF_COMMAND_H
#define REACH_CLIENTS_LAB_WHATIF_WHATIF_COMMAND_H

/* Runs [OPTION..] FINGERPRINT TRACE|-. `argv` begins behind the command. Returns an exit status. */
int whatif_command(int argc, char **argv);

#endif
