/* sim_profiles.c: the named GPUs. A number is published, was measured by this project, or is a
 * guess that the model needs. `sources` has the origin of each number. To correct a profile, edit
 * its description and change the field's row from guess to measured, with the directory in
 * docs/measurements/ that shows it.
 *
 * The published sources are Karnagel et al., Big Data causing Big (TLB) Problems, DaMoN 2017, table
 * 2 and figures 5 and 6; Mei and Chu, Dissecting GPU Memory Hierarchy through Microbenchmarking,
 * TPDS 2017 (arXiv 2015), section 4.4; Walker, Enabling full-speed random access to the entire
 * memory on the A100 GPU, 2024; the public raw data of the cuda-gpu-tlb benchmark for the K80;
 * NVIDIA's data sheets.
 */
#include "gpu/sim/sim_profiles.h"

#include <stdio.h>
#include <string.h>

#define COUNT(a) (uint32_t)(sizeof(a) / sizeof(a)[0])

/* K80: one of the two GPUs of the board, with 13 of 15 SMs. The groups of level l2 follow the
 * published raw data: two of them have two SMs. */
static const char k80_description[] =
    "name=K80 cc=3.7 sms=13 memory=12G l2cache=1536K granule=128K latency=241 spread=12 "
    "noise=gauss:1 outliers=0.001@1500 "
    "l1=16@128K/sm;miss=9 "
    "l2=65@2M/0,5:1,6:2,7,10:3,8,11:4,9,12;miss=55;sets=17+8x6;miss_ns=6 "
    "l3=1032@2M/gpu;miss=177;sets=16+8x127;hash=skew;miss_ns=18.4 "
    "plateau=150 read_noise=0.003";

static const struct sim_source k80_sources[] = {
    {"sms", SIM_PUBLISHED, "Karnagel 2017, section 4.2: 13 of the 15 SMs of the GK210"},
    {"memory", SIM_PUBLISHED, "Karnagel 2017, table 1: 12 GB for each of the two GPUs"},
    {"l2cache", SIM_PUBLISHED, "Karnagel 2017, section 3: 1.5 MB"},
    {"granule", SIM_PUBLISHED, "Karnagel 2017: allocations use the small page, 128 KB"},
    {"latency", SIM_PUBLISHED, "cuda-gpu-tlb, raw data of the K80: 241 cycles below 2 MB"},
    {"spread", SIM_PUBLISHED, "cuda-gpu-tlb, raw data of the K80: rows differ by some 12 cycles"},
    {"l1", SIM_PUBLISHED, "Karnagel 2017, table 2: 16 x 128 KB, +9 cycles, each SM its own"},
    {"l2", SIM_PUBLISHED, "Karnagel 2017, table 2 and figure 5b: 65 x 2 MB, +55 cycles"},
    {"l2.sets", SIM_PUBLISHED, "Mei 2016, section 4.4, on a GTX 780: one set of 17, six of 8, LRU"},
    {"l3", SIM_PUBLISHED,
     "Karnagel 2017, table 2 and figure 5c: 1032 x 2 MB, +177 cycles, all SMs"},
    {"l3.sets", SIM_GUESS,
     "fits the public raw data: every load misses from 2320 MB on; half as dense, 4640"},
    {"l2.miss_ns", SIM_GUESS, "set so that the first drop of Karnagel's figure 1a is visible"},
    {"l3.miss_ns", SIM_GUESS,
     "set so that random reads over 11.2 GB take 13.3 times as long as over 2 GB: Karnagel 2017 "
     "has "
     "the factor, and wins 13 of it back with passes of 2 GB"},
    {"plateau", SIM_GUESS, "about 60% of the 240 GB/s of the data sheet"},
    {"noise outliers read_noise", SIM_GUESS, ""},
};

/* P100: 56 of 60 SMs. Four of the six GPCs have ten SMs, and two have eight. L3 is beyond the
 * memory of the card but not beyond a virtual range, so the model has the L3 that the paper
 * predicts. */
#define P100_GROUPS                                                                                \
    "0,1,18,19,28,29,38,39,50,51:"                                                                 \
    "2,3,16,17,32,33,36,37,52,53:"                                                                 \
    "4,5,14,15,34,35,42,43,48,49:"                                                                 \
    "6,7,22,23,26,27,44,45:"                                                                       \
    "8,9,20,21,24,25,46,47:"                                                                       \
    "10,11,12,13,30,31,40,41,54,55"
static const char p100_description[] =
    "name=P100 cc=6.0 sms=56 memory=16G l2cache=4M latency=260 spread=20 noise=gauss:1.5 "
    "outliers=0.001@1500 range=16G "
    "l1=16@2M/2;miss=9 "
    "l2=65@32M/" P100_GROUPS ";miss=110;sets=17+8x6;miss_ns=8.4 "
    "l3=1032@32M/gpu;sets=16+8x127;hash=skew "
    "plateau=450 read_noise=0.003";

static const struct sim_source p100_sources[] = {
    {"sms", SIM_PUBLISHED, "Karnagel 2017: 56 of 60 SMs"},
    {"memory", SIM_PUBLISHED, "Karnagel 2017, table 1: 16 GB"},
    {"l2cache", SIM_PUBLISHED, "Karnagel 2017, section 3: 4 MB"},
    {"l1", SIM_PUBLISHED, "Karnagel 2017, table 2 and figure 6a: 16 x 2 MB, +9 cycles, two SMs"},
    {"l2", SIM_PUBLISHED, "Karnagel 2017, table 2: 65 x 32 MB, +110 cycles"},
    {"l2.sharing", SIM_GUESS, "groups of 10, sometimes 8, are published; which SMs is made up"},
    {"l2.sets", SIM_GUESS, "as on the K80, whose number of entries is the same"},
    {"l3", SIM_PUBLISHED, "Karnagel 2017, section 4.1: predicted at 32 GB, never seen in 16 GB"},
    {"range", SIM_GUESS, "no larger than the memory, so that L3 stays as unseen as in the paper"},
    {"l2.miss_ns", SIM_GUESS, "set so that random reads lose some 4 times (Karnagel: 4.3)"},
    {"plateau", SIM_GUESS, "about 60% of the 732 GB/s of the data sheet"},
    {"latency spread noise outliers read_noise", SIM_GUESS, ""},
};

/* A100 SXM4-80GB: 14 groups of half a GPC, twelve of eight SMs and two of six. */
#define A100_GROUPS                                                                                \
    "0,1,46,47,80,81:"                                                                             \
    "2,3,34,35,78,79,100,101:"                                                                     \
    "4,5,54,55,82,83,90,91:"                                                                       \
    "6,7,50,51,74,75:"                                                                             \
    "8,9,52,53,72,73,96,97:"                                                                       \
    "10,11,40,41,66,67,102,103:"                                                                   \
    "12,13,30,31,70,71,104,105:"                                                                   \
    "14,15,36,37,76,77,106,107:"                                                                   \
    "16,17,44,45,68,69,94,95:"                                                                     \
    "18,19,32,33,60,61,98,99:"                                                                     \
    "20,21,42,43,56,57,84,85:"                                                                     \
    "22,23,38,39,62,63,88,89:"                                                                     \
    "24,25,48,49,64,65,86,87:"                                                                     \
    "26,27,28,29,58,59,92,93"
static const char a100_description[] =
    "name=A100-80G cc=8.0 sms=108 memory=80G l2cache=40M latency=290 spread=30 noise=gauss:2 "
    "outliers=0.0005@3000 "
    "l1=16@2M/2;miss=20 "
    "l2=2048@32M/" A100_GROUPS ";miss=300;sets=8x256;hash=xor;miss_ns=15 "
    "plateau=1240 sm_gbps=15 read_noise=0.003";

static const struct sim_source a100_sources[] = {
    {"sms", SIM_PUBLISHED, "data sheet; Walker 2024, section 1.1"},
    {"memory", SIM_PUBLISHED, "data sheet: SXM4-80GB"},
    {"l2cache", SIM_PUBLISHED, "data sheet: 40 MB"},
    {"l2.reach", SIM_PUBLISHED, "Walker 2024: 64 GB for each group"},
    {"l2.sharing", SIM_PUBLISHED,
     "Walker 2024, figure 3: 14 groups of 8 or 6 SMs; which SMs is made up"},
    {"plateau", SIM_PUBLISHED, "Walker 2024, figure 1, read off the plot: 1240 GB/s"},
    {"sm_gbps", SIM_PUBLISHED, "Walker 2024, figure 4: 120 GB/s for a group of 8 SMs"},
    {"l1", SIM_GUESS, "as on the P100"},
    {"l2.entries", SIM_GUESS, "entries of 32 MB as on the P100, enough for 64 GB"},
    {"l2.sets", SIM_GUESS, "the A30's are reported to be chosen by eight folded bits"},
    {"l2.miss_ns", SIM_GUESS, "the depth of the drop is not in the text of the paper"},
    {"l2.miss latency spread noise outliers read_noise", SIM_GUESS, ""},
};

/* The GPUs of Mei and Chu 2016. The text of the paper has the structure of the caches and of the
 * TLBs, but only figures have the latencies. The latencies here are made up. */
#define MEI      "Mei and Chu 2016, "
#define MEI_TLBS "l1=16@2M/sm;miss=27;policy=random l2=65@2M/gpu;miss=261;sets=17+8x6 "
static const char gtx560ti_description[] =
    "name=GTX560Ti cc=2.1 sms=8 memory=1G l2cache=512K latency=350 spread=12 noise=gauss:2 "
    "outliers=0.0005@2000 " MEI_TLBS
    "l1d=128@128;miss=250;sets=4x32;policy=cycle:2,3,2,1,2,4 ro=384@32;miss=120;sets=96x4;block=4 "
    "memory_miss=300 shared=50,32x4+37,36.7,48K/48K plateau=80 read_noise=0.003";
static const char gtx780_description[] =
    "name=GTX780 cc=3.5 sms=12 memory=3G l2cache=1536K latency=220 spread=12 noise=gauss:2 "
    "outliers=0.0005@2000 " MEI_TLBS "ro=384@32;miss=100;sets=96x4;block=4 memory_miss=160 "
    "page_tables=512M@300 shared=47,32x8+14,83.3,48K/48K "
    "plateau=150 read_noise=0.003";
static const char gtx980_description[] =
    "name=GTX980 cc=5.2 sms=16 memory=4G l2cache=2M latency=220 spread=12 noise=gauss:2 "
    "outliers=0.0005@2000 " MEI_TLBS "l1d=768@32;miss=130;sets=192x4;block=4 memory_miss=160 "
    "page_tables=512M@600 shared=28,32x4+2,107.4,96K/48K "
    "plateau=110 read_noise=0.003";

#define MEI_SOURCES                                                                                \
    {"sms", SIM_PUBLISHED, MEI "table 2"}, {"memory", SIM_PUBLISHED, MEI "table 2"},               \
        {"l2cache", SIM_PUBLISHED, MEI "section 4.6"},                                             \
        {"l2fill", SIM_PUBLISHED, MEI "section 4.6: 32 bytes, the default"},                       \
        {"l1", SIM_PUBLISHED, MEI "section 4.4: 16 x 2 MB, one set, not LRU"},                     \
        {"l2", SIM_PUBLISHED, MEI "section 4.4: 65 x 2 MB, LRU"},                                  \
        {"l2.sets", SIM_PUBLISHED, MEI "section 4.4: one set of 17, six of 8"},                    \
        {"l1.policy", SIM_GUESS, "not LRU is published; random is made up"},                       \
        {"l1.miss", SIM_GUESS, "27 cycles is the GTX560Ti's in the L2"},                           \
        {"l2.miss", SIM_GUESS, "288 cycles in all is the GTX560Ti's in L1"},                       \
        {"plateau", SIM_GUESS, "random reads; no paper has them"},                                 \
    {                                                                                              \
        "l2.sharing latency spread memory_miss noise outliers read_noise", SIM_GUESS, ""           \
    }

static const struct sim_source gtx560ti_sources[] = {
    MEI_SOURCES,
    {"shared", SIM_PUBLISHED,
     MEI "table 7 and section 6.2: 50 cycles, 32 banks of 4 bytes, 34.90 GB/s of an SM at 950 MHz"},
    {"shared.conflict", SIM_GUESS,
     "linear; 32 ways cost far more than memory; the numbers stand only in a figure"},
    {"l1d", SIM_PUBLISHED, MEI "section 4.5: 16 KB, 128-byte lines, 32 sets of 4 ways, not LRU"},
    {"l1d.policy", SIM_GUESS, "six ways in turn, which give the trace of figure 11 exactly"},
    {"ro", SIM_PUBLISHED, MEI "table 5: texture L1, 12 KB, 32-byte lines, 4 sets of 96, LRU"},
    {"l1d.miss ro.miss", SIM_GUESS, ""},
};
static const struct sim_source gtx780_sources[] = {
    MEI_SOURCES,
    {"shared", SIM_PUBLISHED,
     MEI
     "table 7 and section 6.2: 47 cycles, 32 banks of 8 bytes, 83.81 GB/s of an SM at 1006 MHz"},
    {"shared.conflict", SIM_GUESS,
     "linear; 32 ways cost more than memory; the numbers stand only in a figure"},
    {"l1d", SIM_PUBLISHED, MEI "section 4.5: for local data only, so there is none here"},
    {"ro", SIM_PUBLISHED, MEI "table 5: 12 KB, 32-byte lines, 4 sets of 96, LRU"},
    {"page_tables", SIM_PUBLISHED, MEI "section 5.2: only the entries of 512 MB are live"},
    {"page_tables.cycles", SIM_GUESS, "the numbers stand only in a figure"},
    {"ro.miss", SIM_GUESS, ""},
};
static const struct sim_source gtx980_sources[] = {
    MEI_SOURCES,
    {"shared", SIM_PUBLISHED,
     MEI
     "table 7 and section 6.2: 28 cycles, 32 banks of 4 bytes, 137.41 GB/s of an SM at 1279 MHz"},
    {"shared.conflict", SIM_GUESS,
     "mild: 32 ways cost about an L1 hit; the numbers stand only in a figure"},
    {"l1d", SIM_PUBLISHED,
     MEI "table 5: 24 KB, 32-byte lines, 4 sets of 192, LRU; texture and read-only data too"},
    {"page_tables", SIM_PUBLISHED, MEI "section 5.2: only the entries of 512 MB are live"},
    {"page_tables.cycles", SIM_GUESS, "the numbers stand only in a figure"},
    {"l1d.miss", SIM_GUESS, ""},
};

/* H100 and H200: nothing about their translation is published. The H200 profile is GPU-32d7f372,
 * and the H100 profile is GPU-dcda818d. Their measured levels and groups are the same. */
#define HOPPER_GROUPS                                                                              \
    "0,1,48,49,128,129:"                                                                           \
    "2,3,50,51,92,93:"                                                                             \
    "4,5,52,53,94,95:"                                                                             \
    "6,7,54,55,96,97:"                                                                             \
    "8,9,56,57,98,99:"                                                                             \
    "10,11,58,59,100,101:"                                                                         \
    "12,13,60,61,102,103:"                                                                         \
    "14,15,62,63,104,105:"                                                                         \
    "16,17,124,125,130,131:"                                                                       \
    "18,19,64,65,106,107:"                                                                         \
    "20,21,66,67,108,109:"                                                                         \
    "22,23,68,69,110,111:"                                                                         \
    "24,25,70,71,112,113:"                                                                         \
    "26,27,72,73,114,115:"                                                                         \
    "28,29,74,75,116,117:"                                                                         \
    "30,31,76,77,118,119:"                                                                         \
    "32,33,126,127:"                                                                               \
    "34,35,78,79:"                                                                                 \
    "36,37,80,81:"                                                                                 \
    "38,39,82,83:"                                                                                 \
    "40,41,84,85:"                                                                                 \
    "42,43,86,87:"                                                                                 \
    "44,45,88,89,120,121:"                                                                         \
    "46,47,90,91,122,123"
#define HOPPER_TLBS                                                                                \
    "l1=16@16M/sm;miss=10 "                                                                        \
    "l2=2048@32M/" HOPPER_GROUPS ";miss=90;sets=8x256;hash=xor;"
/* The GPCs of GPU-e28522e7, an H200 with these groups. They were derived from its clusters. The
 * last four pairs belong to the first GPC by their groups. They take part in no cluster of more
 * than two. */
#define HOPPER_GPCS                                                                                \
    "gpc=0,1,16,17,32,33,48,49:"                                                                   \
    "2,3,18,19,34,35,50,51,64,65,78,79,92,93,106,107:"                                             \
    "4,5,20,21,36,37,52,53,66,67,80,81,94,95,108,109:"                                             \
    "6,7,22,23,38,39,54,55,68,69,82,83,96,97,110,111:"                                             \
    "8,9,24,25,40,41,56,57,70,71,84,85,98,99,112,113:"                                             \
    "10,11,26,27,42,43,58,59,72,73,86,87,100,101,114,115:"                                         \
    "12,13,28,29,44,45,60,61,74,75,88,89,102,103,116,117,120,121:"                                 \
    "14,15,30,31,46,47,62,63,76,77,90,91,104,105,118,119,122,123:"                                 \
    "124,125:"                                                                                     \
    "126,127:"                                                                                     \
    "128,129:"                                                                                     \
    "130,131 "
#define HOPPER_SHARED "shared=23,32x4+2,127.6,228K/227K clusters=16,200/34,57 " HOPPER_GPCS
#define HOPPER_CACHES(miss)                                                                        \
    "l1d=2048@128;miss=" miss ";sets=8x256;hash=xor;sectors=4 array=256K "                         \
    "const=32@64;miss=70;sets=4x8 const_hit=34 clock_pair=8 l2fill=64 tail=0.09@600 "
#define H100_CACHES HOPPER_CACHES("227")
#define H200_CACHES HOPPER_CACHES("262")
/* Whole groups are on one side, so that either side has 66 SMs. */
#define HOPPER_FAR_SIDE "far_side=16-31,38-43,46,47,64-77,82-87,90,91,106-119,122-125,130,131 "
static const char h100_description[] =
    "name=H100-80G cc=9.0 sms=132 memory=81079M l2cache=50M latency=265 spread=60 noise=gauss:1.7 "
    "outliers=0.0005@3000 " HOPPER_TLBS
    "miss_ns=7.5 sides=4K@180 " HOPPER_FAR_SIDE HOPPER_SHARED H100_CACHES
    "memory_miss=445 memory_ns=403 data_l1=124K@29000 data_l2=50M@8300 "
    "plateau=2902 sm_gbps=42.4 read_noise=0.003";

static const char h200_description[] =
    "name=H200 cc=9.0 sms=132 memory=141G l2cache=60M latency=300 spread=40 noise=gauss:2 "
    "frame=32M@1.87 outliers=0.0005@3000 " HOPPER_TLBS
    "miss_ns=7.5 sides=4K@195 " HOPPER_FAR_SIDE HOPPER_SHARED H200_CACHES
    "memory_miss=410 memory_ns=403 data_l1=124K@32000 data_l2=60M@9200 "
    "plateau=4210 sm_gbps=48 read_noise=0.003 "
    "host_memory=126G managed-device=4030/88@290,32M,2048+90,0+0,7.5 "
    "host-pinned=50.6/3@2400,64K,2048+80,8192+350,24 "
    "host-virtual=50.7/3@2400,64K,2048+80,8192+350,24 "
    "managed-host=50.7/3@2480,2M,0+0,2048+180,3.7 "
    "host-registered=50.8/3@2420,64K,2048+80,8192+350,24 "
    "host-registered-huge=50.8/3@2420,64K,2048+80,8192+350,24 "
    "host-gathered=15.6/1@2420,4K,0+0,0+0,0 "
    "peer=375/33@1600,2M,0+0,0+0,0";

/* The sources of the fields of the caches, for both GPUs. */
#define HOPPER_SOURCES                                                                             \
    {"array", SIM_PUBLISHED, "data sheet: 256 KB for L1 and shared memory"},                       \
        {"l1d", SIM_MEASURED, "an H200, 2026-11-23: 128-byte lines, 32-byte sectors"},             \
        {"l1d.miss", SIM_PUBLISHED, "MT4G: 38 cycles"},                                            \
        {"l1d.sets", SIM_GUESS,                                                                    \
         "an H200's follow no rule that was found: 184 KiB fit beside 32 KiB of shared memory"},   \
        {"l1d.policy", SIM_GUESS, "an H200's is not LRU"},                                         \
        {"const", SIM_MEASURED, "an H200, 2026-11-23: 2 KiB, lines of 64 bytes, 8 sets of 4"},     \
        {"const.miss", SIM_MEASURED, "an H200, 2026-11-23"},                                       \
        {"const_hit", SIM_MEASURED, "an H200, 2026-11-23: an indexed load"},                       \
        {"clock_pair", SIM_GUESS, ""},                                                             \
    {                                                                                              \
        "l2fill", SIM_GUESS, "64 bytes, from throughputs of others"                                \
    }

#define H200_HOST "docs/measurements/nvidia-h200-89d5a7b7-2026-11-22"
/* The hosts of the other profiles are unknown. These profiles have no host memory, so no other kind
 * of memory is probed. */
#define H100_MEASURED "docs/measurements/nvidia-h100-80gb-hbm3-dcda818d-2026-11-21"
static const struct sim_source h100_sources[] = {
    HOPPER_SOURCES,
    {"memory_miss", SIM_PUBLISHED, "MT4G's raw loads of two H100s: 710 and 894 cycles"},
    {"tail", SIM_PUBLISHED, "MT4G's raw loads: 9 % take 1000 cycles and more"},
    {"sms", SIM_MEASURED, H100_MEASURED ": 132 SMs, as the data sheet says"},
    {"memory", SIM_MEASURED, H100_MEASURED ": 85017493504 bytes, to the MB"},
    {"l2cache", SIM_MEASURED, H100_MEASURED ": 50 MB, as the driver says"},
    {"l1", SIM_MEASURED, H100_MEASURED ": 16 entries of 16 MB for each SM, +10 cycles"},
    {"l2", SIM_MEASURED, H100_MEASURED ": entries of 32 MB for each group, +90 cycles"},
    {"l2.entries", SIM_MEASURED, H100_MEASURED ": 2049; the model has 2048, as sets come out even"},
    {"l2.sharing", SIM_MEASURED, H100_MEASURED},
    {"l2.sets", SIM_MEASURED, H100_MEASURED ": 256 of 8; the model lacks the one behind them"},
    {"l2.miss_ns", SIM_MEASURED, H100_MEASURED ": set so that reads over all memory are as fast"},
    {"latency", SIM_MEASURED, H100_MEASURED ": hits take 265 cycles at least, 298 in the median"},
    {"spread", SIM_MEASURED, H100_MEASURED ": 276 to 329 cycles, nine of ten, by SM and by line"},
    {"noise", SIM_MEASURED, H100_MEASURED ": one SM and one line, standard deviation 1.7"},
    {"sides", SIM_PUBLISHED,
     "MT4G's raw loads of two H100s: granules of 4 KiB, 416 to 501 cycles instead of 254 to 318"},
    {"far_side", SIM_GUESS, "66 SMs, as on the H200; which ones is made up"},
    {"data_l1", SIM_PUBLISHED,
     "gpu-benches: 126 bytes a cycle and SM; 124 KiB is what 132 KiB of shared memory leave"},
    {"data_l2", SIM_PUBLISHED, "50 MB by the data sheet; 8.3 TB/s in reproductions of Luo 2024"},
    {"shared", SIM_GUESS, "as on the H200; published are 29 cycles with the address computed"},
    {"clusters", SIM_GUESS, "as on the H200; Luo 2024 has 180 to 213 cycles on an H800"},
    {"gpc", SIM_GUESS, "as on the H200"},
    {"memory_ns", SIM_GUESS, "as on the H200"},
    {"outliers", SIM_GUESS, "none of 57024 loads of that GPU was off by 100 cycles"},
    {"plateau", SIM_MEASURED, H100_MEASURED ": 2902 GB/s"},
    {"sm_gbps", SIM_MEASURED, H100_MEASURED ": 254.5 GB/s for a group of six; four read 246"},
    {"read_noise", SIM_GUESS, ""},
};

#define H200_MEASURED "docs/measurements/nvidia-h200-32d7f372-2026-11-21"
static const struct sim_source h200_sources[] = {
    HOPPER_SOURCES,
    {"memory_miss", SIM_GUESS, "as on the H100"},
    {"tail", SIM_GUESS, "as on the H100"},
    {"sms", SIM_PUBLISHED, "data sheet: 132 SMs"},
    {"memory", SIM_PUBLISHED, "data sheet: 141 GB"},
    {"l2cache", SIM_MEASURED, H200_MEASURED ": 60 MB, as the driver says"},
    {"l1", SIM_MEASURED, H200_MEASURED ": 16 entries of 16 MB for each SM, +10 cycles"},
    {"l2", SIM_MEASURED, H200_MEASURED ": entries of 32 MB for each group, +90 cycles"},
    {"l2.entries", SIM_MEASURED, H200_MEASURED ": 2049; the model has 2048, as sets come out even"},
    {"l2.sharing", SIM_MEASURED, H200_MEASURED},
    {"l2.sets", SIM_MEASURED,
     "docs/measurements/nvidia-h200-b76f831d-2026-11-21: 256 of 8; one more behind them is left "
     "out"},
    {"l2.miss_ns", SIM_MEASURED, H200_MEASURED ": set so that reads over all memory are as fast"},
    {"frame", SIM_MEASURED, "docs/contiguity.md: runs of 16 MiB and less cost 1.87 times as much"},
    {"sides", SIM_MEASURED,
     "two H200s, 2026-11-22: granules of 4 KiB; atomics take 290 or 486 cycles"},
    {"far_side", SIM_GUESS, "66 SMs on either side are measured; which ones is made up"},
    {"data_l1", SIM_PUBLISHED,
     "gpu-benches: 126 bytes a cycle and SM; 124 KiB is what 132 KiB of shared memory leave"},
    {"data_l2", SIM_MEASURED,
     "docs/measurements/visit-torch-h200-2bdfc65c-2026-11-23/caches.txt: 9.2 TB/s; 60 MB, of which "
     "near reads use all"},
    {"shared", SIM_MEASURED, "GPU-e28522e7, 2026-11-23: 23 cycles, 2 a pass, 127.6 bytes a cycle"},
    {"clusters", SIM_MEASURED, "GPU-e28522e7, 2026-11-23: 197 to 202 cycles, 34 of the own SM"},
    {"gpc", SIM_MEASURED, "GPU-e28522e7, 2026-11-23"},
    {"memory_ns", SIM_MEASURED,
     "GPU-e28522e7, 2026-11-23: 403, and so much that 512 loads are enough"},
    {"plateau", SIM_MEASURED, H200_MEASURED ": 4213 GB/s"},
    {"host_memory", SIM_MEASURED, H200_HOST ": 126 GB"},
    {"host-pinned", SIM_MEASURED,
     H200_HOST
     ": 50.6 GB/s, full with 4 SMs (1 reads 19), 2435 cycles, 2867 beyond, entries of 64 KB; "
     "their number and the time of a miss give 640 MB, and 5.1 GB/s over 16 GB"},
    {"host-virtual", SIM_MEASURED, H200_HOST ": 50.7 GB/s, otherwise as pinned"},
    {"managed-host", SIM_MEASURED,
     H200_HOST ": 50.7 GB/s, 2667 cycles, entries of 2 MB, 45 GB/s over 16 GB"},
    {"host-registered", SIM_MEASURED, H200_HOST ": 50.8 GB/s, otherwise as pinned"},
    {"host-registered-huge", SIM_MEASURED, H200_HOST ": 50.8 GB/s, otherwise as pinned"},
    {"host-gathered", SIM_MEASURED,
     "docs/measurements/host-tables-h200-71c8ba62-2026-11-27: 15.6 GB/s of rows of 128 bytes"},
    {"managed-device", SIM_MEASURED, H200_HOST ": as fast as its own memory; tables are a guess"},
    {"peer", SIM_MEASURED,
     "two H200s of one host, 2026-11-22: 375 GB/s and 1600 cycles up to 128 GB; 33 SMs are a "
     "guess"},
    {"sm_gbps", SIM_GUESS, "one and a half times the SM's share of the plateau"},
    {"latency spread noise outliers read_noise", SIM_GUESS, ""},
};

static const struct sim_profile profiles[] = {
    {"k80", k80_description, k80_sources, COUNT(k80_sources)},
    {"p100", p100_description, p100_sources, COUNT(p100_sources)},
    {"gtx560ti", gtx560ti_description, gtx560ti_sources, COUNT(gtx560ti_sources)},
    {"gtx780", gtx780_description, gtx780_sources, COUNT(gtx780_sources)},
    {"gtx980", gtx980_description, gtx980_sources, COUNT(gtx980_sources)},
    {"a100-80g", a100_description, a100_sources, COUNT(a100_sources)},
    {"h100-80g", h100_description, h100_sources, COUNT(h100_sources)},
    {"h200", h200_description, h200_sources, COUNT(h200_sources)},
};

const struct sim_profile *sim_profiles(uint32_t *out_count)
{
    *out_count = COUNT(profiles);
    return profiles;
}

const struct sim_profile *sim_profile_find(const char *name)
{
    for (uint32_t i = 0; i < COUNT(profiles); i++) {
        if (strcmp(profiles[i].name, name) == 0)
            return &profiles[i];
    }
    return NULL;
}

static enum status no_such_profile(const char *name, struct err *err)
{
    char names[128] = "";
    size_t n = 0;
    for (uint32_t i = 0; i < COUNT(profiles); i++)
        n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", i > 0 ? ", " : "",
                              profiles[i].name);
    return err_set(
        err, STATUS_NOT_FOUND,
        "unknown simulated GPU \"%.40s\"; use one of %s, or a description: sms=.. memory=.. l1=..",
        name, names);
}

enum status sim_profiles_parse(const char *text, struct sim_desc *out, struct err *err)
{
    const char *blanks = " \t\n";
    const char *word = text + strspn(text, blanks);
    size_t n = strcspn(word, blanks);
    if (n == 0)
        return err_set(err, STATUS_INVALID_ARGUMENT, "simulated GPU: the description is empty");
    if (memchr(word, '=', n))
        return sim_desc_parse(text, NULL, out, err);

    char name[SIM_MAX_NAME];
    (void)snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), word);
    const struct sim_profile *p = n < sizeof name ? sim_profile_find(name) : NULL;
    if (!p)
        return no_such_profile(name, err);
    struct sim_desc base;
    enum status s = sim_desc_parse(p->description, NULL, &base, err);
    if (s != STATUS_OK)
        return err_prefix(err, "profile %s", p->name);
    return sim_desc_parse(word + n, &base, out, err);
}
