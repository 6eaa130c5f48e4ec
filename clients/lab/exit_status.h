/* exit_status.h: what reach-lab and reach-lab-papers return to the shell. */
#ifndef REACH_CLIENTS_LAB_EXIT_STATUS_H
#define REACH_CLIENTS_LAB_EXIT_STATUS_H

enum {
    LAB_OK = 0,      /* done, and every target that was checked is reproduced */
    LAB_DIFFERS = 1, /* a target is not reproduced */
    LAB_ERROR = 2,
};

#endif
