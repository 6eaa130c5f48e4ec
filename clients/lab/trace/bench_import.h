/* bench_import.h: prints the speed of the importers. */
#ifndef REACH_CLIENTS_LAB_TRACE_BENCH_IMPORT_H
#define REACH_CLIENTS_LAB_TRACE_BENCH_IMPORT_H

/* Returns an exit status. */
int bench_import(void);

#endif
