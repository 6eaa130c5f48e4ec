/* job.h: a recorded program as a job of the timed engine. Record i of a warp is iteration i of its
 * loop, and its mask is a branch. A record has the distinct lines of its lanes in order, but not
 * the line of each lane, so the lanes are spread evenly over the lines. A trace contains no program
 * counters, so compaction assumes that the warps of a block run the same instructions. The
 * functions are pure. */
#pragma once

#include "clients/lab/papers/engine/coalescer.h"
#include "clients/lab/trace/trace.h"

struct lab_job {
    const struct trace *trace; /* borrowed */
    uint32_t gap;         /* instructions before each access, because recorders do not count them */
    uint32_t block_warps; /* warps of the largest block */
    uint32_t iterations;  /* records of the longest warp */
};

/* What a run of the job counts, for one core or for all cores. Every member is a uint64_t, so that
 * engine.c can add them up. */
struct lab_counts {
    uint64_t instructions; /* warp instructions */
    uint64_t memory;       /* instructions with memory */
    uint64_t lanes;        /* active lanes of instructions with memory */
    uint64_t pages;        /* pages in first lookups; pages / memory is the page divergence */
    uint64_t page_misses;  /* number of `pages` that missed */
    uint64_t miss_cycles;  /* cycles from page misses to translations */
    uint64_t walk_loads;
    uint64_t walk_hits; /* number of walk_loads that hit the shared cache */
    uint64_t lines;     /* lines that were read */
    uint64_t line_misses;
    uint64_t line_cycles; /* cycles from queueing to the data, over line_misses */
    uint64_t idle_cycles; /* cycles in which a core with work issued nothing */
    uint64_t core_cycles; /* cycles in which a core had work */
    uint64_t compacted;   /* warps that compaction made */
};

/* Returns STATUS_NOT_APPLICABLE if the trace touches more than 127 GiB. */
enum status lab_job_set(const struct trace *trace, uint32_t gap, struct lab_job *out,
                        struct err *err);

/* Returns the record of a warp of a block, or NULL if the warp has ended or does not exist. */
static inline const struct trace_record *lab_job_record(const struct lab_job *j, uint32_t block,
                                                        uint32_t warp, uint32_t iteration)
{
    const struct trace_block *const blocks = j->trace->blocks;
    if (block >= j->trace->block_count || warp >= blocks[block].warp_count)
        return NULL;
    const struct trace_warp *w = &j->trace->warps[blocks[block].first_warp + warp];
    return iteration < w->record_count ? &j->trace->records[w->first_record + iteration] : NULL;
}

/* Returns whether a warp of the block diverges in this iteration. */
bool lab_job_diverges(const struct lab_job *j, uint32_t block, uint32_t iteration);

/* Finds the lines and pages of an iteration. lab_job_access finds those of all lanes of a warp that
 * has a record. lab_job_access_packed finds those of the lanes in `lanes`, which come from the
 * warps homes[]. */
void lab_job_access(const struct lab_job *j, uint32_t block, uint32_t warp, uint32_t iteration,
                    struct lab_access *out);
void lab_job_access_packed(const struct lab_job *j, uint32_t block, uint32_t iteration,
                           uint32_t lanes, const uint8_t homes[LAB_LANES], struct lab_access *out);
