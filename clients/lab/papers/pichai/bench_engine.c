/* bench_engine.c: see bench_engine.h. Each job of Pichai 2014 runs on the augmented machine. The
 * result is the processor time of this thread. */
#include "clients/lab/papers/pichai/bench_engine.h"

#include "clients/lab/exit_status.h"
#include "clients/lab/papers/pichai/pichai_runs.h"

#include <stdio.h>
#include <time.h>

static double thread_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int bench_engine(void)
{
    double spent = 0;
    double done = 0;
    struct lab_machine machine;
    pichai_machine(AUGMENTED, &machine);
    for (uint32_t job = 0; job < LAB_JOBS; job++) {
        const struct lab_work *work = lab_gen_work((enum lab_job)job);
        const struct lab_work *of_core[LAB_MAX_CORES];
        struct lab_result r;
        struct err err = {0};
        for (uint32_t i = 0; i < LAB_MAX_CORES; i++)
            of_core[i] = work;
        const double start = thread_seconds();
        if (lab_engine_run(&machine, of_core, PICHAI_BLOCKS, &r, &err) != STATUS_OK) {
            (void)fprintf(stderr, "reach-lab-papers bench: %s\n", err.text);
            return LAB_ERROR;
        }
        const double took = thread_seconds() - start;
        printf(
            "time, %-20s %6.1f M warp instructions/s  %4.1f pages, %4.1f lines each with memory\n",
            work->name, (double)r.all.instructions / took * 1e-6,
            (double)r.all.pages / (double)r.all.memory, (double)r.all.lines / (double)r.all.memory);
        spent += took;
        done += (double)r.all.instructions;
    }
    printf("time, %-20s %6.1f M warp instructions/s\n", "all", done / spent * 1e-6);
    return LAB_OK;
}
