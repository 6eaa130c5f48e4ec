/* check_jobs.h: compares what-if with measured jobs. */
#ifndef REACH_CLIENTS_LAB_VALIDATE_CHECK_JOBS_H
#define REACH_CLIENTS_LAB_VALIDATE_CHECK_JOBS_H

/* Prints the target V2 for the jobs in a folder like docs/measurements. Returns an exit status. */
int check_jobs(const char *folder);

#endif
