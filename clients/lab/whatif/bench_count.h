/* bench_count.h: prints the speed of the counting engine. */
#pragma once

/* Returns an exit status. */
int bench_count(void);
