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

#include <stddef.h>

static const struct lab_machine base = {
    .cores = 30,       /* [t] */
    .warps = 48,       /* [t] section 6.2; 1024 threads of section 5.2 would be 32 warps */
    .issue_cycles = 4, /* 32 lanes through a pipeline of 8 [t] */
    .page_shift = 12,  /* [t] */
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

/* Cycles of a lookup that exceed an access to the data cache. 128 entries take no additional cycle
 * [t]. The text does not give the time of larger TLBs. One cycle per doubling is assumed. */
static const struct {
    uint32_t entries, cycles;
} access_time[] = {{64, 0}, {128, 0}, {256, 1}, {512, 2}};

static uint32_t access_cycles(uint32_t entries)
{
    uint32_t cycles = 0;
    for (size_t i = 0; i < sizeof access_time / sizeof access_time[0]; i++)
        cycles = access_time[i].entries <= entries ? access_time[i].cycles : cycles;
    return cycles;
}

enum tlb_kind { NO = 0, NAIVE, SLOW, HIT, HIT_OVERLAP, AUGMENT };

#define TLB(k, e, p, w) .kind = (k), .entries = (e), .ports = (p), .walkers = (w)
static const struct {
    const char *name;
    enum tlb_kind kind;
    uint16_t entries, ports, walkers;
    enum lab_locality locality;
    uint8_t miss_weight, victims;
    uint8_t depth[LAB_DEPTHS];
    bool tbc;
    uint8_t bits;
    uint8_t page_shift;
} table[PICHAI_MACHINES] = {
    [NO_TLB] = {.name = "no TLB", .kind = NO},
    [NAIVE_64_3] = {.name = "naive 64x3", TLB(NAIVE, 64, 3, 1)},
    [NAIVE_128_3] = {.name = "naive 128x3", TLB(NAIVE, 128, 3, 1)},
    [NAIVE_256_3] = {.name = "naive 256x3", TLB(NAIVE, 256, 3, 1)},
    [NAIVE_512_3] = {.name = "naive 512x3", TLB(NAIVE, 512, 3, 1)},
    [NAIVE_64_4] = {.name = "naive 64x4", TLB(NAIVE, 64, 4, 1)},
    [NAIVE_128_4] = {.name = "naive 128x4", TLB(NAIVE, 128, 4, 1)},
    [NAIVE_256_4] = {.name = "naive 256x4", TLB(NAIVE, 256, 4, 1)},
    [NAIVE_512_4] = {.name = "naive 512x4", TLB(NAIVE, 512, 4, 1)},
    [NAIVE_64_8] = {.name = "naive 64x8", TLB(NAIVE, 64, 8, 1)},
    [NAIVE_128_8] = {.name = "naive 128x8", TLB(NAIVE, 128, 8, 1)},
    [NAIVE_256_8] = {.name = "naive 256x8", TLB(NAIVE, 256, 8, 1)},
    [NAIVE_512_8] = {.name = "naive 512x8", TLB(NAIVE, 512, 8, 1)},
    [NAIVE_64_32] = {.name = "naive 64x32", TLB(NAIVE, 64, 32, 1)},
    [NAIVE_128_32] = {.name = "naive 128x32", TLB(NAIVE, 128, 32, 1)},
    [NAIVE_256_32] = {.name = "naive 256x32", TLB(NAIVE, 256, 32, 1)},
    [NAIVE_512_32] = {.name = "naive 512x32", TLB(NAIVE, 512, 32, 1)},
    [SLOW_256_3] = {.name = "256x3, access time", TLB(SLOW, 256, 3, 1)},
    [SLOW_512_3] = {.name = "512x3, access time", TLB(SLOW, 512, 3, 1)},
    [HITS] = {.name = "hits under misses", TLB(HIT, 128, 4, 1)},
    [OVERLAP] = {.name = "+ overlap", TLB(HIT_OVERLAP, 128, 4, 1)},
    [AUGMENTED] = {.name = "augmented", TLB(AUGMENT, 128, 4, 1)},
    [IDEAL] = {.name = "ideal 512x32", TLB(AUGMENT, 512, 32, 1)},
    [WALKERS_2] = {.name = "2 walkers", TLB(NAIVE, 128, 4, 2)},
    [WALKERS_4] = {.name = "4 walkers", TLB(NAIVE, 128, 4, 4)},
    [WALKERS_8] = {.name = "8 walkers", TLB(NAIVE, 128, 4, 8)},
    [CCWS] = {.name = "CCWS", .kind = NO, .locality = LAB_OF_LINES},
    [CCWS_NAIVE_3] = {.name = "CCWS naive 128x3", TLB(NAIVE, 128, 3, 1), .locality = LAB_OF_LINES},
    [CCWS_NAIVE_4] = {.name = "CCWS naive", TLB(NAIVE, 128, 4, 1), .locality = LAB_OF_LINES},
    [CCWS_AUGMENTED] = {.name = "CCWS augmented",
                        TLB(AUGMENT, 128, 4, 1),
                        .locality = LAB_OF_LINES},
    [TA_CCWS_2] = {.name = "TA-CCWS 2:1",
                   TLB(AUGMENT, 128, 4, 1),
                   .locality = LAB_OF_LINES,
                   .miss_weight = 2},
    [TA_CCWS_4] = {.name = "TA-CCWS 4:1",
                   TLB(AUGMENT, 128, 4, 1),
                   .locality = LAB_OF_LINES,
                   .miss_weight = 4},
    [TCWS_2] = {.name = "TCWS 2",
                TLB(AUGMENT, 128, 4, 1),
                .locality = LAB_OF_PAGES,
                .miss_weight = 0,
                .victims = 2},
    [TCWS_4] = {.name = "TCWS 4",
                TLB(AUGMENT, 128, 4, 1),
                .locality = LAB_OF_PAGES,
                .miss_weight = 0,
                .victims = 4},
    [TCWS_8] = {.name = "TCWS 8",
                TLB(AUGMENT, 128, 4, 1),
                .locality = LAB_OF_PAGES,
                .miss_weight = 0,
                .victims = 8},
    [TCWS_16] = {.name = "TCWS 16",
                 TLB(AUGMENT, 128, 4, 1),
                 .locality = LAB_OF_PAGES,
                 .miss_weight = 0,
                 .victims = 16},
    [DEPTH_1234] = {.name = "LRU(1,2,3,4)",
                    TLB(AUGMENT, 128, 4, 1),
                    .locality = LAB_OF_PAGES,
                    .miss_weight = 0,
                    .victims = 8,
                    .depth = {1, 2, 3, 4}},
    [DEPTH_1248] = {.name = "LRU(1,2,4,8)",
                    TLB(AUGMENT, 128, 4, 1),
                    .locality = LAB_OF_PAGES,
                    .miss_weight = 0,
                    .victims = 8,
                    .depth = {1, 2, 4, 8}},
    [DEPTH_1369] = {.name = "LRU(1,3,6,9)",
                    TLB(AUGMENT, 128, 4, 1),
                    .locality = LAB_OF_PAGES,
                    .miss_weight = 0,
                    .victims = 8,
                    .depth = {1, 3, 6, 9}},
    [TBC] = {.name = "TBC", .kind = NO, .tbc = true},
    [TBC_NAIVE_3] = {.name = "TBC naive 128x3", TLB(NAIVE, 128, 3, 1), .tbc = true},
    [TBC_NAIVE_4] = {.name = "TBC naive", TLB(NAIVE, 128, 4, 1), .tbc = true},
    [TBC_AUGMENTED] = {.name = "TBC augmented", TLB(AUGMENT, 128, 4, 1), .tbc = true},
    [AWARE_1] = {.name = "TLB-aware 1 bit", TLB(AUGMENT, 128, 4, 1), .tbc = true, .bits = 1},
    [AWARE_2] = {.name = "TLB-aware 2 bits", TLB(AUGMENT, 128, 4, 1), .tbc = true, .bits = 2},
    [AWARE_3] = {.name = "TLB-aware 3 bits", TLB(AUGMENT, 128, 4, 1), .tbc = true, .bits = 3},
    [LARGE_PAGES] = {.name = "2 MB pages", .kind = NO, .page_shift = 21},
};

const char *pichai_name(enum pichai_machine which)
{
    return table[which].name;
}

void pichai_machine(enum pichai_machine which, struct lab_machine *out)
{
    const enum tlb_kind kind = table[which].kind;
    *out = base;
    out->tlb = (struct lab_tlb_desc){
        .entries = table[which].entries,
        .ways = 4, /* 4 ways, because TCWS has 4 depths [t] */
        .ports = table[which].ports,
        .hit_cycles = kind == SLOW ? access_cycles(table[which].entries) : 0,
        .hits_under_misses = kind >= HIT,
        .overlap = kind >= HIT_OVERLAP,
        .scheduled_walks = kind >= AUGMENT,
        .walkers = table[which].walkers,
    };
    out->sched.locality = table[which].locality;
    out->sched.miss_weight = table[which].miss_weight;
    out->sched.entries = table[which].victims;
    for (uint32_t i = 0; i < LAB_DEPTHS; i++)
        out->sched.depth_weights[i] = table[which].depth[i];
    out->compact = (struct lab_compact_desc){
        .on = table[which].tbc, .aware = table[which].bits > 0, .bits = table[which].bits};
    if (table[which].locality != LAB_NO_LOCALITY)
        out->sched.order = LAB_GREEDY_OLDEST; /* order of the warps that may load (shader.cc) [r] */
    if (table[which].tbc)
        out->sched.order = LAB_OLDEST; /* "age-based scheduling" [t] */
    if (table[which].page_shift > 0)
        out->page_shift = table[which].page_shift;
}
