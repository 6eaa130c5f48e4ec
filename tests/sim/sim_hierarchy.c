/* sim_hierarchy.c: see sim_hierarchy.h. */
#include "tests/sim/sim_hierarchy.h"

#include "campaign/campaign.h"
#include "gpu/gpu.h"
#include "tests/sim/sim_measure.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

enum { MOST_PROBES = 200, WARM_UP_US = 100 };

static void ask(struct gpu *gpu, struct observation_set *set, const struct probe_spec *spec)
{
    struct err err = {0};

    if (sim_probe(gpu, set, spec, &err) != STATUS_OK)
        fail_msg("%s", err.text);
}

static void show(const struct hierarchy_estimate *e)
{
    if (!getenv("REACH_SHOW"))
        return;
    for (uint32_t k = 0; k < CACHE_KIND_COUNT; k++) {
        const struct cache_facts *const c = &e->caches[k];
        printf("# %-9s size %llu (%s) line %llu sector %llu fill %llu sets %u (%s) ways %u %s "
               "latency %.0f, miss %.0f, as L1: %s %s\n",
               cache_kind_name(c->kind), (unsigned long long)c->size_bytes.v,
               reason_slug(c->size_bytes.reason), (unsigned long long)c->line_bytes.v,
               (unsigned long long)c->sector_bytes.v, (unsigned long long)c->fill_bytes.v,
               c->sets.v, reason_slug(c->sets.reason), c->ways.v, replacement_name(c->replacement),
               c->latency_cycles.v, c->miss_latency_cycles.v, finding_name(c->same_as_l1),
               c->trace);
        for (uint32_t i = 0; i < c->carveout_count; i++)
            printf("#   with %llu of shared memory: %llu\n",
                   (unsigned long long)c->carveouts[i].shared_bytes,
                   (unsigned long long)c->carveouts[i].size_bytes.v);
    }
    printf("# memory: P1 %.0f P4 %.0f P5 %.0f P6 %.0f (%s) near %.0f far %.0f tail %.0f of %.3f\n",
           e->latency.p1_cycles.v, e->latency.p4_cycles.v, e->latency.p5_cycles.v,
           e->latency.p6_cycles.v, reason_slug(e->latency.p6_cycles.reason),
           e->latency.near_cycles.v, e->latency.far_cycles.v, e->latency.tail_cycles.v,
           e->latency.tail_share.v);
}

void sim_hierarchy_changed(const char *text, sim_change_fn change, struct hierarchy_estimate *out)
{
    const struct probe_spec warm_up = campaign_warm_up(WARM_UP_US, 1);
    struct observation_set set = {.count = 0};
    struct gpu *gpu = NULL;
    struct err err = {0};
    uint32_t probes = 0;
    size_t values = 0;

    if (sim_open(text, &gpu, &err) != STATUS_OK)
        fail_msg("%s: %s", text, err.text);
    gpu_describe(gpu, &set.gpu, &set.limits);
    ask(gpu, &set, &warm_up);
    for (hierarchy_estimate(&set, out); out->walks.ask_count > 0 && probes < MOST_PROBES;
         hierarchy_estimate(&set, out)) {
        for (uint32_t i = 0; i < out->walks.ask_count; i++, probes++) {
            ask(gpu, &set, &out->walks.asks[i]);
            if (change)
                change(&set.items[set.count - 1]);
        }
    }
    for (size_t i = 0; i < set.count; i++)
        values += set.items[i].result.value_count;
    if (getenv("REACH_SHOW"))
        printf("# %.160s\n# %u probes, %zu values\n", text, probes, values);
    show(out);
    if (out->walks.ask_count > 0)
        fail_msg("%s: asks again and again", text);
    observation_set_free(&set);
    gpu_close(gpu);
}

void sim_hierarchy(const char *text, struct hierarchy_estimate *out)
{
    sim_hierarchy_changed(text, NULL, out);
}
