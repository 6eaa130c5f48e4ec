/* sim_desc.h: a simulated GPU, described by one line of text.
 *
 *     sms=13 memory=12G l1=16@128K/sm;miss=9 l2=65@2M/0,5:1,6:2,7,10:3,8,11:4,9,12;sets=17+8x6
 *
 * The text is a list of fields `key=value`, separated by blanks, in any order except that `sms` and
 * `smids` come before the first level and far_side, and levels in order. No field may come twice.
 * Sizes are in bytes and may be written 128K, 2M, 80G (powers of 1024; base/units.h).
 *
 *   sms=132            number of SMs, 1..512; required
 *   smids=0-63,66-133  their %smid values, ascending; default 0..sms-1
 *   memory=80G         device memory; required
 *   name=H200          letters, digits and - _ . only; shown as "H200 (simulated)"
 *   cc=9.0             compute capability
 *   l2cache=50M        data cache
 *   range=564G         virtual range the probes may use; default: four times the memory
 *   granule=2M         allocation granularity; default 2M
 *   frame=32M@1.87     a miss takes a walker 1.87 times as long if the frame of 32M around the
 *                      address is not one run of physical memory; default: runs do not matter
 *   clock=1980000      SM clock in kHz, as read back after a run; default: not reported
 *   latency=241        cycles of a load that hits the first level; default 300
 *   spread=12          a load of each SM takes 0..12 cycles more, fixed by `seed`
 *   noise=gauss:1.5    scatter of one load: gauss:<standard deviation> or uniform:<+-cycles>
 *   outliers=0.001@2000  this share of the loads takes up to 2000 cycles more
 *   sides=4K@195       the L2 has two sides: granules of 4K live on either, and an atomic on the
 *                      other side takes 195 cycles more; default: one side
 *   far_side=66-131    the SMs of the second side, by id; default: none
 *   data_l1=124K@33000   bytes that fit the L1 of an SM, and random reads from all L1s, GB/s
 *   data_l2=60M@9300   bytes that fit the L2, both sides together, and random reads from it, GB/s;
 *                      by default there are no such caches, and memory answers every read
 *   l1d=192@128;sets=4x48;miss=200   the data cache of every SM, like a level below without its
 *                      sharing: lines @ bytes of a line. A load that hits takes `miss` cycles less
 *                      than `latency`, which is a hit in the L2. Default: no such cache
 *   array=256K         shared memory and l1d share an array of this length. The shared memory
 *                      that a probe requests takes whole ways; default: they are separate
 *   ro=..  const=..    the cache of the read-only path (default: l1d is), and of constants
 *   const_hit=17       cycles of a hit in `const`; its misses take `miss` more. Default: like l1d
 *   clock_pair=8       cycles that reading the clock twice adds to each of these loads; default 0
 *   l2fill=64          bytes that a miss of the L2 (of l2cache= bytes) loads; default 32
 *   l2line=128         bytes of the L2 that one word takes; default: l2fill
 *   l2keeps=1          the lines of a long footprint that stay in the L2: 0 the lines at some
 *                      addresses (the default), 1 the last lines, 2 newer lines more likely
 *   memory_miss=440    cycles that a miss of the L2 takes on top of a hit; default 0
 *   tail=0.09@400      this share of the loads from memory takes up to 400 cycles more
 *   page_tables=512M@300   a translation that all levels miss takes 300 cycles more in another
 *                      stretch of 512M than the one before it; default: the place has no effect
 *   shared=29,32x4+2,128,228K/227K   shared memory: cycles of a load, banks x bytes of a bank +
 *                      cycles that each pass after the first adds, bytes a cycle of one SM, bytes
 *                      of an SM / of one block at most; default: no such probe has an answer
 *   clusters=16,200/33,22   blocks of the largest cluster, cycles of a load from shared memory of
 *                      another SM / of the same SM, bytes a cycle that an SM reads from the next;
 *                      default: none
 *   gpc=0-15:16-31     the SMs of each GPC, within which a cluster lies, like a level's sharing;
 *                      default: gpu
 *   memory_ns=450      time of one load from memory, which bounds reads with few loads in flight;
 *                      default 0 means no limit
 *   plateau=2800       random 128-byte reads inside every reach, GB/s, the whole GPU; default 1000
 *   sm_gbps=25         limit of one SM, GB/s; default: twice its share of the plateau
 *   read_noise=0.003   relative standard deviation of a throughput
 *   seed=7             seed of all random numbers here; default 1
 *
 *   uuid=SIM-1 serial=7 driver=580.1   its identity; the default UUID follows from the text
 *   neighbor=30000@500000  another process on the GPU: after some 30000 loads one after the other
 *                      (at most 60000; loads of all SMs and lanes at once count as one load) it
 *                      gets the GPU for 500000 cycles, in which it fills all TLBs with its own
 *                      pages. The load in progress takes 500000 cycles longer.
 *   neighbor_pages=200  the neighbor fills no TLB completely: each SM touches 200 pages of the
 *                      neighbor; default: enough for all TLBs
 *   neighbor_level=2   the neighbor fills only level 2; default 0 means all levels
 *   reclock=50000@0.74  after every 50000 loads the SM clock changes to a random share of its
 *                      value, between 0.74 and 1; default: it does not change
 *   coupled=0.9        this share of the time of a load has clocks that follow the SM clock, so it
 *                      takes the same SM cycles at each clock; default 0
 *
 *   l1=.. l2=.. up to l6   translation levels, l1 nearest to the SM; at least one is required
 *     <entries>@<entry bytes>/<sharing>{;<option>}
 *     sharing  sm     every SM has its own instance
 *              gpu    all SMs share one instance
 *              8      groups of eight SMs, in ascending order of their ids
 *              0,5:1,6:2-4   the groups themselves, by SM id; each SM in exactly one
 *     options  miss=55        cycles that a miss costs on top of a hit in this level; default 0
 *              sets=17+8x6    one set of 17 ways and six of 8 ways; default: one set (fully
 *                             associative). The ways add up to the entries.
 *              policy=random  victim: lru (default), fifo, random, or cycle:2,3,2,1,2,4: each set
 *                             replaces its ways, from 1, in this order again and again; sets of at
 *                             most 32 ways (Mei 2016, figure 11)
 *              hash=xor       how pages choose a set: mod (default); skew: like mod, shifted by one
 *                             set after each round through the entries, so that pages at twice the
 *                             distance also reach all sets; xor: all bits of the page number folded
 *                             over each other, for a power of two of equal sets
 *              block=4        entries side by side that choose the same set: a power of two, with
 *                             hash=mod and a power of two of equal sets; default 1
 *              recent=16      translations that missed last in this level stay beside the sets and
 *                             answer like them, whatever their sets evict. The least recently used
 *                             of them is replaced. It needs lru, undivided entries and sets of
 *                             at most 32 ways. They do not count as entries; default 0
 *              sectors=16     parts of an entry that are filled one by one; default 1
 *              miss_ns=2.5    ns that one miss keeps a walker busy; default 0 means no limit
 *              walkers=4      walkers of each group; default 1
 *
 *   pcie=5@16          link to the host: generation 5, 16 lanes; default 0 means not reported
 *   domains=2@66       locality domains that the driver reports, and SMs of each domain; default 0
 *                      means that the driver does not support the attributes
 *   link=3@16          generation and lanes of this link that are in use; default: those of pcie=
 *   host_memory=64G    memory of the host, for the kinds of memory below; default 0 means
 *                      that no such kind is probed
 *   host_nodes=2@20    NUMA nodes of the host, and the largest GB/s of memory that is not on node
 * 0, which is nearest to the GPU; default 0 means that nodes are not reported
 *   host-pinned=51.3/4@2075,64K,2048+100,8192+350,24   a kind of memory (types/memory_kind.h):
 *                      GB/s of the link / SMs that fill it @ cycles of a load that hits, bytes of
 *                      an entry, entries of each group of the last level + cycles of a miss there,
 *                      entries of the GPU + cycles of a miss, ns that a miss occupies the only
 *                      walker. 0+0 means no table. The value may also be the reason why the
 *                      kind is absent: not-permitted. Default: not-supported
 *
 * `hash=mod` with unequal sets assigns pages to the sets in turn, skipping full sets, and starts
 * again after one page for each entry. So the 66th page overflows the set of 17, and each of the
 * next six pages overflows one set of 8 (Mei 2016, section 4.4).
 */
#pragma once

#include "types/identity.h"
#include "types/memory_kind.h"
#include "base/status.h"

enum {
    SIM_MAX_LEVELS = 6,
    SIM_MAX_RUNS = 4,        /* different set sizes of one level */
    SIM_MAX_ENTRIES = 65536, /* entries of one instance of a level */
    SIM_MAX_SECTORS = 64,
    SIM_MAX_RECENT = 64,
    SIM_MAX_CYCLE = 16,      /* victims of policy=cycle */
    SIM_MAX_SHORT_WAYS = 32, /* largest set of a level with recent= or policy=cycle */
    SIM_MAX_BANKS = 256,
    SIM_MAX_BANK_BYTES = 16,
    SIM_MAX_NAME = 48
};

enum sim_policy { SIM_LRU = 0, SIM_RANDOM, SIM_FIFO, SIM_CYCLE };
enum sim_hash { SIM_HASH_MOD = 0, SIM_HASH_SKEW, SIM_HASH_XOR };
enum sim_noise { SIM_NOISE_NONE = 0, SIM_NOISE_UNIFORM, SIM_NOISE_GAUSS };

struct sim_run {
    uint32_t ways;
    uint32_t count; /* number of sets with that number of ways */
};

struct sim_level {
    uint64_t entry_bytes;
    double miss_ns;
    uint32_t entries;
    uint32_t miss_cycles;
    uint32_t walkers;
    uint32_t sectors;
    uint32_t recent;
    uint32_t block; /* 0 means one entry */
    uint32_t cycle_count;
    uint8_t cycle[SIM_MAX_CYCLE]; /* the ways in order of replacement, from 1 */
    enum sim_policy policy;
    enum sim_hash hash;
    uint32_t run_count;
    struct sim_run runs[SIM_MAX_RUNS];
    uint32_t instance_count;
    uint16_t instance_of_sm[REACH_MAX_SMS]; /* by position; instances are in the order of their
                                               first SM */
};

/* Another kind of memory. If gbps is 0, the kind is absent, and `refused` has the reason. */
struct sim_kind {
    double gbps;
    double miss_ns;
    uint64_t entry_bytes;
    uint32_t sms_to_fill;
    uint32_t latency_cycles;
    uint32_t group_entries, group_miss_cycles;
    uint32_t gpu_entries, gpu_miss_cycles;
    enum reason refused;
};

/* Shared memory of an SM. latency_cycles is 0 if probes of it are not answered. */
struct sim_shared {
    uint64_t sm_bytes, block_bytes;
    double conflict_cycles;
    double bytes_per_cycle;
    uint32_t latency_cycles;
    uint32_t banks, bank_bytes;
};

/* Clusters. `largest` is 0 if there are none. */
struct sim_clusters {
    double bytes_per_cycle;
    uint32_t largest;
    uint32_t latency_cycles, own_cycles;
};

/* The part of a footprint longer than the L2 that stays in it. */
enum sim_l2_keeps { SIM_L2_KEEPS_SOME = 0, SIM_L2_KEEPS_LAST, SIM_L2_KEEPS_YOUNG };

/* A simulated GPU. It is a flat value, which must be zeroed before use. A number that is 0 stands
 * for the default of its field. */
struct sim_desc {
    char name[SIM_MAX_NAME];
    uint64_t text_hash;        /* of the fields in the text, without blanks */
    char uuid[SIM_MAX_NAME];   /* "" means a UUID from text_hash */
    char serial[SIM_MAX_NAME]; /* "" means not reported */
    char driver[SIM_MAX_NAME]; /* "": "simulated" */
    uint64_t memory_bytes;
    uint64_t l2_cache_bytes;
    uint64_t range_bytes;        /* 0 means four times the memory */
    uint64_t granule_bytes;      /* 0 means 2 MiB */
    uint64_t frame_bytes;        /* 0 means no frames */
    uint64_t side_granule_bytes; /* 0 means that the L2 has one side */
    uint64_t array_bytes;        /* 0 means that shared memory is separate */
    uint64_t l2_fill_bytes;      /* 0 means 32 */
    uint64_t l2_line_bytes;      /* 0 means l2_fill_bytes */
    uint64_t page_table_bytes;   /* 0 means no page tables */
    double tail_share;           /* share of the loads from memory that take longer */
    double scattered_factor;
    uint64_t data_l1_bytes; /* 0 means no such cache, like for the L2 */
    uint64_t data_l2_bytes;
    double data_l1_gbps;
    double data_l2_gbps;
    double noise_cycles;
    double outlier_share; /* share of the loads that take longer, 0..1 */
    double plateau_gbps;
    double sm_gbps; /* 0 means twice the share of the plateau */
    double read_noise;
    double reclock_factor;
    double coupled;
    double memory_ns; /* time of one load; 0 means no limit */
    uint64_t seed;
    uint32_t cc_major;
    uint32_t cc_minor;
    uint32_t clock_khz; /* 0 means not reported */
    uint32_t latency_cycles;
    uint32_t spread_cycles;
    uint32_t outlier_cycles;
    uint32_t neighbor_loads; /* loads between two turns of the neighbor, on average; 0 means no
                                neighbor */
    uint32_t neighbor_cycles;
    uint32_t neighbor_pages; /* 0 means that all entries are evicted */
    uint32_t neighbor_level; /* 0 means all levels */
    uint32_t far_cycles;     /* extra cycles of an atomic on the other side of the L2 */
    uint32_t reclock_loads;  /* loads between two changes of the clock; 0 means no change */
    enum sim_noise noise;
    uint32_t sm_count;
    uint32_t level_count;
    uint16_t sm_ids[REACH_MAX_SMS];     /* ascending */
    uint16_t side_of_sm[REACH_MAX_SMS]; /* by position; 0 or 1 */
    uint16_t gpc_of_sm[REACH_MAX_SMS];  /* by position; GPCs in the order of their first SM */
    struct sim_shared shared;
    struct sim_clusters clusters;
    struct sim_level levels[SIM_MAX_LEVELS];
    struct sim_level l1d, read_only,
        constant;             /* caches of each SM; a cache without entries is absent */
    uint32_t constant_cycles; /* 0 means latency_cycles minus its miss_cycles */
    uint32_t clock_cycles;    /* extra cycles for reading the clock in each timed load of a CACHE */
    uint32_t memory_cycles;
    uint32_t l2_keeps; /* enum sim_l2_keeps */
    uint32_t page_table_cycles;
    uint32_t tail_cycles;
    uint64_t host_memory_bytes;
    double far_node_gbps;
    uint32_t host_nodes;      /* number of NUMA nodes */
    uint32_t pcie_generation; /* generation of the link to the host; 0 means not reported */
    uint32_t pcie_lanes;
    uint32_t domains; /* locality domains; 0 means not supported */
    uint32_t domain_sms;
    uint32_t link_generation; /* generation and lanes in use; 0 means the supported ones */
    uint32_t link_lanes;
    struct sim_kind kinds[MEMORY_KIND_COUNT]; /* by enum memory_kind */
};

/* Parses a description. `base` (may be NULL: the defaults above) has the fields that the text
 * leaves out; `sms` and `smids` in the text remove the levels of `base`. Returns
 * STATUS_INVALID_ARGUMENT, and an error that names the field and the place in it. */
enum status sim_desc_parse(const char *text, const struct sim_desc *base, struct sim_desc *out,
                           struct err *err);

/* Returns the virtual range in bytes, or its default if the description has none. */
uint64_t sim_desc_range(const struct sim_desc *desc);

/* Return the generation and the lanes of the link to the host that are in use; 0 means not
 * reported. */
static inline uint32_t sim_desc_generation(const struct sim_desc *desc)
{
    return desc->link_generation > 0 ? desc->link_generation : desc->pcie_generation;
}

static inline uint32_t sim_desc_lanes(const struct sim_desc *desc)
{
    return desc->link_lanes > 0 ? desc->link_lanes : desc->pcie_lanes;
}

/* Describes the memory of this kind as a separate GPU with a range of this length, so that the same
 * model answers its probes. The kind must exist. `node` is the same as in probe_spec. */
void sim_kind_desc(const struct sim_desc *desc, enum memory_kind kind, uint32_t node,
                   uint64_t range_bytes, struct sim_desc *out);

/* Writes the identity of the simulated GPU `desc` (sim_gpu.c), the `twin`th (0, 1, ..) of its kind
 * on the node. The UUID is a hash of its text and `twin`, so it changes only if the text changes.
 */
void sim_gpu_identity(const struct sim_desc *desc, uint32_t twin, struct gpu_identity *out);

struct gpu;
struct gpu_options;
/* Makes a GPU with this description and identity. The caller owns `*out` (gpu_close). */
enum status sim_gpu_new(const struct sim_desc *desc, const struct gpu_identity *identity,
                        const struct gpu_options *options, struct gpu **out, struct err *err);
