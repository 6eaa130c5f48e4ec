/* sim_profiles.c: the named GPUs. docs/simulated-gpus.md has the source of each number. */
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

/* The GPUs of Mei and Chu 2016. The text of the paper has the structure of the caches and of the
 * TLBs, but only figures have the latencies. The latencies here are made up. */
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

static const struct sim_profile profiles[] = {
    {"k80", k80_description},           {"p100", p100_description},
    {"gtx560ti", gtx560ti_description}, {"gtx780", gtx780_description},
    {"gtx980", gtx980_description},     {"a100-80g", a100_description},
    {"h100-80g", h100_description},     {"h200", h200_description},
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
