/* sim_shared_text.c: reads the text of shared memory and clusters of a simulated GPU. */
#include "gpu/probe.h"
#include "gpu/sim/sim_text.h"

#include <string.h>

enum { MAX_BYTES_PER_CYCLE = 100000 };

#define SHARED_AT(member)  offsetof(struct sim_shared, member)
#define CLUSTER_AT(member) offsetof(struct sim_clusters, member)
#define COUNT(a)           (sizeof(a) / sizeof(a)[0])

static const struct sim_part shared_parts[] = {
    {"", {SIM_U32, SHARED_AT(latency_cycles), SIM_MAX_CYCLES}},
    {",", {SIM_U32, SHARED_AT(banks), SIM_MAX_BANKS}},
    {"x", {SIM_U32, SHARED_AT(bank_bytes), SIM_MAX_BANK_BYTES}},
    {"+", {SIM_F64, SHARED_AT(conflict_cycles), SIM_MAX_CYCLES}},
    {",", {SIM_F64, SHARED_AT(bytes_per_cycle), MAX_BYTES_PER_CYCLE}},
    {",", {SIM_BYTES, SHARED_AT(sm_bytes), 0}},
    {"/", {SIM_BYTES, SHARED_AT(block_bytes), 0}},
};
static const struct sim_part cluster_parts[] = {
    {"", {SIM_U32, CLUSTER_AT(largest), PROBE_MAX_CLUSTER}},
    {",", {SIM_U32, CLUSTER_AT(latency_cycles), SIM_MAX_CYCLES}},
    {"/", {SIM_U32, CLUSTER_AT(own_cycles), SIM_MAX_CYCLES}},
    {",", {SIM_F64, CLUSTER_AT(bytes_per_cycle), MAX_BYTES_PER_CYCLE}},
};

enum status sim_shared_read(struct sim_cursor *c, struct sim_shared *out)
{
    memset(out, 0, sizeof *out);
    const enum status s =
        sim_text_parts(c, shared_parts, COUNT(shared_parts),
                       "expected cycles,banksxbytes+cycles,bytes a cycle,bytes/bytes", out);
    if (s != STATUS_OK)
        return s;
    if (out->latency_cycles == 0 || out->banks == 0 || out->bank_bytes < 4 ||
        out->bank_bytes % 4 != 0 || !(out->bytes_per_cycle > 0))
        return sim_text_fail(
            c, "shared memory must have cycles, banks of 4, 8 or 16 bytes, and a speed");
    if (out->block_bytes < PROBE_SHARED_BYTES || out->block_bytes > out->sm_bytes)
        return sim_text_fail(c, "a block must have at least 32K of shared memory, and at most the "
                                "shared memory of an SM");
    return STATUS_OK;
}

enum status sim_clusters_read(struct sim_cursor *c, struct sim_clusters *out)
{
    memset(out, 0, sizeof *out);
    const enum status s = sim_text_parts(c, cluster_parts, COUNT(cluster_parts),
                                         "expected SMs,cycles/cycles,bytes a cycle", out);
    if (s == STATUS_OK && (out->largest < 2 || !(out->bytes_per_cycle > 0)))
        return sim_text_fail(c, "a cluster must have at least two SMs, and a speed");
    return s;
}
