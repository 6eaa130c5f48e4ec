/* fingerprint.h: the results of analysis for one GPU. A fingerprint is a value without pointers
 * that is copied by assignment. It does not depend on the method of measurement.
 *
 * Units are part of every name: _bytes, _cycles (of the SM clock), _gbps (10^9 bytes per second).
 * Every number is known, unknown or not observable (base/maybe.h). members.c describes each member.
 */
#pragma once

#include "fingerprint/caches.h"
#include "fingerprint/depth.h"
#include "fingerprint/memory_facts.h"
#include "fingerprint/onchip.h"
#include "fingerprint/part.h"
#include "fingerprint/throughput.h"
#include "fingerprint/tlb.h"
#include "fingerprint/topology.h"
#include "types/verdict.h"

enum {
    FINGERPRINT_MAX_NOTES = 8,
    FINGERPRINT_ID_BYTES = 20 /* "fp", 16 hex digits and NUL */
};

/* Findings about memory beyond the last level that was observed. */
struct fingerprint_beyond {
    uint64_t probed_bytes;
    struct maybe_u64 reach_bytes;
    struct maybe_f64 walk_cycles;
};

struct fingerprint_windows {
    struct maybe_u64 reach_bytes;
    struct maybe_u64 entry_bytes;
    struct maybe_u64 recommended_bytes;
};

struct fingerprint_conditions {
    enum verdict verdict;
    char arena[16]; /* "alias", "plain", "simulated" */
    uint64_t range_bytes;
    uint64_t backing_bytes;
    struct maybe_u32 sm_clock_khz;
    struct maybe_u32 other_processes;
    struct maybe_u64 host_memory_bytes;
    struct maybe_u32 pcie_generation;
    struct maybe_u32 pcie_generation_used;
    struct maybe_u32 pcie_lanes;
    struct maybe_u32 pcie_lanes_supported;
    uint32_t note_count;
    char notes[FINGERPRINT_MAX_NOTES][160];
};

/* The measurement that found a part. */
struct fingerprint_source {
    char id[FINGERPRINT_ID_BYTES]; /* id of the measurement's document, or "" */
    enum depth depth;
    int64_t taken_at; /* seconds since 1970, UTC */
};

struct fingerprint {
    struct gpu_identity gpu;
    enum depth depth;
    int64_t taken_at; /* seconds since 1970, UTC */
    uint32_t duration_ms;
    uint32_t probe_ms;
    uint64_t device_memory_bytes;
    uint32_t level_count;
    struct tlb_level levels[FINGERPRINT_MAX_LEVELS];
    struct fingerprint_beyond beyond;
    struct maybe_u64 page_bytes[ALLOCATION_COUNT]; /* indexed by enum allocation */
    struct topology topology;
    struct fingerprint_windows windows;
    struct throughput throughput;
    struct fingerprint_contiguity contiguity;
    struct fingerprint_l2 l2;
    uint32_t working_set_count; /* 0 if not measured */
    struct working_set working_sets[FINGERPRINT_MAX_WORKING_SETS];
    /* The number of caches: 0 if they were not measured, otherwise CACHE_KIND_COUNT. The order is
     * the order of enum cache_kind. Without a measurement all numbers of an element are "not
     * measured", so that caches[CACHE_L1] can always be read. */
    uint32_t cache_count;
    struct cache_facts caches[CACHE_KIND_COUNT];
    struct fingerprint_latency latency;
    struct fingerprint_shared shared;
    struct fingerprint_clusters clusters;
    struct fingerprint_parallelism parallelism;
    /* The number of kinds of memory, or 0 if they were not measured. The order is the order of enum
     * memory_kind, without device memory, followed by the peers. */
    uint32_t memory_count;
    struct memory_facts memory[FINGERPRINT_MAX_MEMORY];
    struct fingerprint_conditions conditions;
    /* The measurements of parts that are kept, because this measurement did not find them
     * (merge.h). */
    struct fingerprint_source kept[PART_COUNT];
    /* The id of the newest measurement, if its own document differs from this document: because
     * parts are kept, or because another release stored it. Otherwise the id is "". If the id is
     * set, measurement_depth is the depth of this measurement, and `depth` is the deepest of all
     * measurements that parts come from. */
    char measurement_id[FINGERPRINT_ID_BYTES];
    enum depth measurement_depth;
    /* An earlier measurement that this measurement contradicts, with the reason. No part of the
     * earlier one is kept. */
    struct fingerprint_source dropped;
    char dropped_reason[160];
};

/* Sets every number to unknown, "not measured". Must be called before a fingerprint is filled
 * in. */
void fingerprint_init(struct fingerprint *out);

/* Rounds each real number to six digits, which makes a fingerprint shorter. Repeats agree in three
 * or four digits, so the other digits of a double are noise. All conclusions must be derived from
 * the full numbers before. */
void fingerprint_round(struct fingerprint *fp);

/* Adds a sentence to the notes of the conditions. The sentence is dropped if there is no room. */
void fingerprint_add_note(struct fingerprint *fp, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Records that the document of `fp` was stored under this id. Sets measurement_id to the id, unless
 * measurement_id is set already. */
void fingerprint_set_measurement(struct fingerprint *fp, const char *id);

/* Returns the depth of the newest measurement. `depth` may be deeper, because of kept parts. */
enum depth fingerprint_newest_depth(const struct fingerprint *fp);

/* Sets `depth` to the deepest of the newest measurement and of the measurements of kept parts. */
void fingerprint_set_depth(struct fingerprint *fp, enum depth newest);

/* Returns the time when a part was measured: taken_at of this measurement, or of the measurement
 * that the part is kept from. */
int64_t fingerprint_part_taken_at(const struct fingerprint *fp, enum fingerprint_part part);

/* Returns the shared memory that an SM had to provide while its working sets were read. A block of
 * this probe uses half of an SM's shared memory and 1 KiB, so that no second block fits. */
struct maybe_u64 working_set_shared_bytes(const struct fingerprint *fp);

/* Returns a hash of the members that describe only the chip: identity, structure of the levels,
 * groups. Two measurements of one quiet chip have the same hash, because numbers with noise
 * (penalties, throughput, times, confidence) are left out. */
uint64_t fingerprint_structure_hash(const struct fingerprint *fp);
