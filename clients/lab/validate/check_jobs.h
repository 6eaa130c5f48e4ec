/* check_jobs.h: compares what-if with measured jobs. */
#pragma once

/* Prints the target V2 for the jobs in a folder like docs/measurements. Returns an exit status. */
int check_jobs(const char *folder);
