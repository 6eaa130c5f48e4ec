/* bench_timed.c: how fast the timed engine is: each job of Pichai 2014 on the augmented machine, by
 * the processor time of this thread. */
#include "clients/lab/lab.h"
#include "clients/lab/paper.h"

#include <stdio.h>
#include <time.h>

static double seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int lab_bench_timed(void)
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
        const double start = seconds();
        if (lab_engine_run(&machine, of_core, PAPER_BLOCKS, &r, &err) != STATUS_OK) {
            (void)fprintf(stderr, "reach-lab: %s\n", err.text);
            return LAB_ERROR;
        }
        const double took = seconds() - start;
        printf(
            "time, %-20s %6.1f M warp instructions/s  %4.1f pages, %4.1f lines each with memory\n",
            work->name, (double)r.all.instructions / took * 1e-6,
            (double)r.all.pages / (double)r.all.memory, (double)r.all.lines / (double)r.all.memory);
        spent += took;
        done += (double)r.all.instructions;
    }
    printf("time, %-20s %6.1f M warp instructions/s\n", "all", done / spent * 1e-6);
    return LAB_AS_SAID;
}
