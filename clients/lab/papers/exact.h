/* exact.h: the examples of published papers whose results are exact. */
#ifndef REACH_CLIENTS_LAB_PAPERS_EXACT_H
#define REACH_CLIENTS_LAB_PAPERS_EXACT_H

/* Prints each example with its verdict. Returns an exit status (exit_status.h). */
int exact_check(void);

#endif
