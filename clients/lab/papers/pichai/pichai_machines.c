/* pichai_machines.c: the machines of Pichai 2014. No parameter is fitted. Each parameter has an
 * origin:
 *
 *   [t]  the paper's text. For memory, it gives only channels and capacities.
 *   [r]  the configuration of CCWS (tgrogers/ccws-2012, QuadroFX5800-CCWS). It describes a
 *        Quadro FX 5800 with data caches. Section 5.2 names it as the origin of parameters.
 *   [c]  GPGPU-Sim's public configuration of the Quadro FX 5800. It has the same numbers of cores
 *        and channels. Memory runs at 800 MHz with two transfers of 8 bytes per cycle.
 *
 * Both files describe 8 lanes at 1300 MHz as 32 lanes at 325 MHz, so a cycle of these files is four
 * cycles here. */
#include "clients/lab/papers/pichai/pichai_machines.h"

static const struct lab_machine base = {
    .cores = 30,       /* [t] */
    .warps = 48,       /* [t] section 6.2; 1024 threads of section 5.2 would be 32 warps */
    .issue_cycles = 4, /* 32 lanes through a pipeline of 8 [t] */
    .l1_bytes = 32768, /* [t] */
    .l1_ways = 8,      /* [r] */
    .l1_cycles = 80,   /* 20 cycles of 325 MHz [r] */
    .l1_busy = 4,      /* one line per cycle of 325 MHz [r] */
    .memory =
        {
            .cache_bytes = 8 * 131072, /* [t] */
            .cache_ways = 8,           /* [c] */
            .cache_line_shift = 1,     /* 256 bytes [r] */
            .cache_cycles = 60,        /* "several tens of cycles" [t] */
            .cache_busy = 10,          /* 128 + 8 bytes, 32 per cycle of 650 MHz [c] */
            .channels = 8,             /* [t] */
            .dram_cycles = 65,   /* precharge, activate, read: 10 + 12 + 10 and 8 of 800 MHz [c] */
            .dram_busy = 26,     /* 256 bytes at 16 per cycle of 800 MHz [c] */
            .cores_per_port = 3, /* [c] */
            .port_busy = 10,     /* the time of the channel [c] */
            .entry_busy = 2,     /* 8 + 8 bytes in a flit of 32 [c] */
        },
};

enum tlb_kind { NO = 0, NAIVE, AUGMENT };

#define TLB(k, e, p, w) .kind = (k), .entries = (e), .ports = (p), .walkers = (w)
static const struct {
    enum tlb_kind kind;
    uint16_t entries, ports, walkers;
    enum lab_locality locality;
    uint8_t miss_weight;
    uint8_t depth[LAB_DEPTHS];
    bool tbc;
    uint8_t bits;
} table[PICHAI_MACHINES] = {
    [NO_TLB] = {.kind = NO},
    [NAIVE_128_3] = {TLB(NAIVE, 128, 3, 1)},
    [WALKERS_8] = {TLB(NAIVE, 128, 4, 8)},
    [AUGMENTED] = {TLB(AUGMENT, 128, 4, 1)},
    [CCWS] = {.kind = NO, .locality = LAB_OF_LINES},
    [CCWS_AUGMENTED] = {TLB(AUGMENT, 128, 4, 1), .locality = LAB_OF_LINES},
    [TA_CCWS_4] = {TLB(AUGMENT, 128, 4, 1), .locality = LAB_OF_LINES, .miss_weight = 4},
    [TCWS] = {TLB(AUGMENT, 128, 4, 1), .locality = LAB_OF_PAGES},
    [DEPTH_1248] = {TLB(AUGMENT, 128, 4, 1), .locality = LAB_OF_PAGES, .depth = {1, 2, 4, 8}},
    [TBC] = {.kind = NO, .tbc = true},
    [TBC_AUGMENTED] = {TLB(AUGMENT, 128, 4, 1), .tbc = true},
    [AWARE_3] = {TLB(AUGMENT, 128, 4, 1), .tbc = true, .bits = 3},
};

void pichai_machine(enum pichai_machine which, struct lab_machine *out)
{
    const enum tlb_kind kind = table[which].kind;
    *out = base;
    out->tlb = (struct lab_tlb_desc){
        .entries = table[which].entries,
        .ways = 4, /* 4 ways, because TCWS has 4 depths [t] */
        .ports = table[which].ports,
        .hits_under_misses = kind == AUGMENT,
        .overlap = kind == AUGMENT,
        .scheduled_walks = kind == AUGMENT,
        .walkers = table[which].walkers,
    };
    out->sched.locality = table[which].locality;
    out->sched.miss_weight = table[which].miss_weight;
    for (uint32_t i = 0; i < LAB_DEPTHS; i++)
        out->sched.depth_weights[i] = table[which].depth[i];
    out->compact = (struct lab_compact_desc){.on = table[which].tbc, .bits = table[which].bits};
    if (table[which].locality != LAB_NO_LOCALITY)
        out->sched.order = LAB_GREEDY_OLDEST; /* order of the warps that may load (shader.cc) [r] */
    if (table[which].tbc)
        out->sched.order = LAB_OLDEST; /* "age-based scheduling" [t] */
}
