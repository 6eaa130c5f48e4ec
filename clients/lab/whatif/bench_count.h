/* bench_count.h: prints the speed of the counting engine. */
#ifndef REACH_CLIENTS_LAB_WHATIF_BENCH_COUNT_H
#define REACH_CLIENTS_LAB_WHATIF_BENCH_COUNT_H

/* Returns an exit status. */
int bench_count(void);

#endif
