/* onchip.c: the part of `reachctl caches` about shared memory, clusters and parallelism. */
#include "clients/reachctl/onchip.h"

#include "clients/reachctl/text.h"

#include <stdbool.h>

/* Returns whether a part of the response has a known value and not only reasons. */
static bool has_rows(const json_t *part, const char *list)
{
    return json_array_size(json_object_get(part, list)) > 0;
}

static void print_shared(const json_t *shared)
{
    text_print(shared, "shared      {sm_bytes:B} of an SM, {block_bytes:B} of a block; {banks:d} "
                       "banks of {bank_bytes:d} bytes\n");
    if (has_rows(shared, "widths"))
        text_table(json_object_get(shared, "widths"),
                   ">bytes of a lane {width_bytes:d}|>cycles {latency_cycles:1}|>a pass more "
                   "{conflict_cycles:2}|>bytes a cycle {bytes_per_cycle:1}|>loads enough "
                   "{loads_enough:d}|>loads needed {loads_needed:d}");
}

static void print_clusters(const json_t *clusters)
{
    const json_t *const gpcs = json_object_get(clusters, "sms");
    size_t k;
    json_t *sms;

    text_print(clusters, "clusters    up to {largest:d} SMs; a load from the own SM {own_cycles:1} "
                         "cycles; GPCs {gpcs:d}\n");
    json_array_foreach(gpcs, k, sms)
    {
        json_t *const line = json_pack("{s:O,s:I,s:I}", "sms", sms, "gpc", (json_int_t)k, "count",
                                       (json_int_t)json_array_size(sms));
        text_print(line, "GPC {gpc:d}       {count:d} SMs: {sms:r}\n");
        json_decref(line);
    }
    if (has_rows(clusters, "sizes"))
        text_table(json_object_get(clusters, "sizes"),
                   ">SMs {sms:d}|>clusters {clusters:d}|>SMs used {usable_sms:d}|>cycles "
                   "{latency_cycles:0}|>bytes a cycle {bytes_per_cycle:1}");
}

static void print_parallelism(const json_t *p)
{
    text_print(p, "in flight   {loads_enough:d} loads of 128 bytes in an SM reach 95 % of "
                  "{plateau_gbps:0 GB/s}, {loads_short:d} do not; one takes {latency_ns:0 ns}\n"
                  "SMs         {sms_enough:d} reach 95 %, {sms_short:d} do not\n");
    if (has_rows(p, "surface"))
        text_table(json_object_get(p, "surface"),
                   ">warps of an SM {warps:d}|>loads of a warp {loads:d}|>GB/s {gbps:0}");
    if (has_rows(p, "by_sms"))
        text_table(json_object_get(p, "by_sms"), ">SMs {sms:d}|>GB/s {gbps:0}");
}

void onchip_print(const json_t *caches)
{
    print_shared(json_object_get(caches, "shared"));
    print_clusters(json_object_get(caches, "clusters"));
    print_parallelism(json_object_get(caches, "parallelism"));
}
