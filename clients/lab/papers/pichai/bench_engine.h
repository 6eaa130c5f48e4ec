/* bench_engine.h: prints the speed of the timed engine. */
#ifndef REACH_CLIENTS_LAB_PAPERS_PICHAI_BENCH_ENGINE_H
#define REACH_CLIENTS_LAB_PAPERS_PICHAI_BENCH_ENGINE_H

/* Returns an exit status. */
int bench_engine(void);

#endif
