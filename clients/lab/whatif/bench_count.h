/* bench_count.h: prints how fast the counting engine is. */
#ifndef REACH_CLIENTS_LAB_WHATIF_BENCH_COUNT_H
#define REACH_CLIENTS_LAB_WHATIF_BENCH_COUNT_H

/* Returns an exit status. */
int bench_count(void);

#endif
