/* fingerprint.c: the names of the enumerations of a fingerprint, and its hashes.
 *
 * The id (fingerprint_json.c) is the hash of the canonical JSON: sorted keys, no blanks, floats
 * with 17 digits (which give every double back exactly). So the id of a value does not depend on
 * padding, on bytes after the end of a text or on unused slots, and it is the same
 * after a round trip through the store. The text is hashed as it is written and never
 * held whole.
 */
#include "fingerprint/fingerprint.h"

#include "types/name_of.h"
#include "base/hash.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

NAME_FUNCTION(shared_by_name, enum shared_by, [SHARED_UNKNOWN] = "unknown", [SHARED_SM] = "sm",
              [SHARED_GROUP] = "group", [SHARED_GPU] = "gpu")

NAME_FUNCTION(replacement_name, enum replacement, [REPLACEMENT_UNKNOWN] = "unknown",
              [REPLACEMENT_LRU] = "lru", [REPLACEMENT_NOT_LRU] = "not-lru")

NAME_FUNCTION(fill_name,
              enum fill, [FILL_UNKNOWN] = "unknown", [FILL_WHOLE] = "whole", [FILL_PARTS] = "parts")

NAME_FUNCTION(
    finding_name,
    enum finding, [FINDING_UNKNOWN] = "unknown", [FINDING_YES] = "yes", [FINDING_NO] = "no")

NAME_FUNCTION(cache_kind_name, enum cache_kind, [CACHE_L1] = "l1", [CACHE_READ_ONLY] = "read-only",
              [CACHE_CONSTANT] = "constant", [CACHE_L2] = "l2")
NAME_FUNCTION(slow_cause_name, enum slow_cause, [SLOW_UNKNOWN] = "unknown", [SLOW_BY_TLB] = "tlb",
              [SLOW_BY_BANDWIDTH] = "bandwidth")

NAME_FUNCTION(allocation_name, enum allocation, [ALLOCATION_VIRTUAL] = "virtual",
              [ALLOCATION_PLAIN] = "plain", [ALLOCATION_MANAGED] = "managed")

NAME_FUNCTIONS(depth, enum depth, [DEPTH_QUICK] = "quick", [DEPTH_FULL] = "full",
               [DEPTH_MEMORY] = "memory", [DEPTH_MATRIX] = "matrix")

struct maybe_u64 working_set_shared_bytes(const struct fingerprint *fp)
{
    enum { SHARES = 2, EXTRA_BYTES = 1024 };
    struct maybe_u64 bytes = fp->shared.sm_bytes;

    if (IS_KNOWN(bytes))
        bytes.v = bytes.v / SHARES + EXTRA_BYTES;
    return bytes;
}

const struct cache_carveout *cache_carveout_beside(const struct cache_facts *l1,
                                                   uint64_t shared_bytes)
{
    for (uint32_t i = 0; i < l1->carveout_count; i++)
        if (l1->carveouts[i].shared_bytes >= shared_bytes)
            return &l1->carveouts[i];
    return NULL;
}

struct maybe_u64 cache_kept_bytes(struct maybe_u64 fits, struct maybe_u64 size)
{
    return IS_KNOWN(fits) ? fits : size;
}

void fingerprint_add_note(struct fingerprint *fp, const char *format, ...)
{
    struct fingerprint_conditions *c = &fp->conditions;
    va_list args;

    if (c->note_count == FINGERPRINT_MAX_NOTES)
        return;
    va_start(args, format);
    (void)vsnprintf(c->notes[c->note_count], sizeof c->notes[0], format, args);
    va_end(args);
    c->note_count += 1;
}

void fingerprint_set_measurement(struct fingerprint *fp, const char *id)
{
    if (fp->measurement_id[0])
        return;
    (void)snprintf(fp->measurement_id, sizeof fp->measurement_id, "%s", id);
    fp->measurement_depth = fp->depth;
}

enum depth fingerprint_newest_depth(const struct fingerprint *fp)
{
    return fp->measurement_id[0] ? fp->measurement_depth : fp->depth;
}

void fingerprint_set_depth(struct fingerprint *fp, enum depth newest)
{
    fp->depth = fp->measurement_depth = newest;
    for (uint32_t part = 0; part < PART_COUNT; part++)
        if (fp->kept[part].id[0] && fp->kept[part].depth > fp->depth)
            fp->depth = fp->kept[part].depth;
}

int64_t fingerprint_part_taken_at(const struct fingerprint *fp, enum fingerprint_part part)
{
    return fp->kept[part].id[0] ? fp->kept[part].taken_at : fp->taken_at;
}

/* With its NUL, so that "ab","c" and "a","bc" differ. */
static uint64_t hash_string(uint64_t h, const char *s)
{
    return hash_bytes(h, s, strlen(s) + 1);
}

/* A number that may be absent. */
#define HASH_MAYBE(h, m) hash_u64(hash_u64(h, (uint64_t)(m).known), (m).v)

static uint64_t hash_partition(uint64_t h, const struct sm_partition *p)
{
    h = hash_u64(h, p->group_count);
    for (uint32_t sm = 0; p->group_count > 0 && sm < REACH_MAX_SMS; sm++)
        h = hash_u64(h, p->group_of_sm[sm]);
    return h;
}

/* What every depth finds. Onset and saturation are points of the sweep, which differ between
 * depths; sets, ways and replacement are known at some depths only. */
static uint64_t hash_level(uint64_t h, const struct tlb_level *l)
{
    h = hash_u64(h, l->level);
    h = HASH_MAYBE(h, l->entries);
    h = HASH_MAYBE(h, l->entry_bytes);
    h = HASH_MAYBE(h, l->page_bytes);
    h = HASH_MAYBE(h, l->reach_bytes);
    h = hash_u64(h, (uint64_t)l->shared_by);
    return hash_partition(h, &l->sharing);
}

/* The PCI slot and the versions of the driver are not properties of the chip. */
static uint64_t hash_chip(uint64_t h, const struct gpu_identity *id)
{
    h = hash_string(h, id->uuid);
    h = hash_string(h, id->name);
    h = hash_string(h, id->serial);
    h = hash_u64(h, id->compute_major);
    h = hash_u64(h, id->compute_minor);
    h = hash_u64(h, id->sm_count);
    h = hash_u64(h, id->memory_bytes);
    h = hash_u64(h, id->l2_cache_bytes);
    h = hash_u64(h, id->mig);
    return hash_u64(h, (uint64_t)id->origin);
}

uint64_t fingerprint_structure_hash(const struct fingerprint *fp)
{
    uint64_t h = hash_chip(HASH_START, &fp->gpu);

    h = hash_u64(h, fp->level_count);
    for (uint32_t i = 0; i < fp->level_count; i++)
        h = hash_level(h, &fp->levels[i]);
    h = HASH_MAYBE(h, fp->topology.level);
    h = HASH_MAYBE(h, fp->topology.nominal_group_sms);
    h = HASH_MAYBE(h, fp->topology.full_sm_count);
    h = hash_string(h, fp->topology.disabled.signature);
    h = HASH_MAYBE(h, fp->topology.disabled.candidate_count);
    return hash_partition(h, &fp->topology.partition);
}

/* The SM and the lowest SM of its group, low byte first: what does not change with the numbers. */
static uint64_t hash_pair(uint64_t h, uint32_t sm, uint32_t first)
{
    const unsigned char bytes[] = {(unsigned char)sm, (unsigned char)(sm >> 8),
                                   (unsigned char)first, (unsigned char)(first >> 8)};

    return hash_bytes(h, bytes, sizeof(bytes));
}

char *fingerprint_map_hash(const struct sm_partition *partition, char *out)
{
    uint16_t first_of[REACH_MAX_GROUPS];
    uint64_t h = HASH_START;

    for (uint32_t g = 0; g < REACH_MAX_GROUPS; g++)
        first_of[g] = FINGERPRINT_NO_GROUP;
    for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++) {
        const uint16_t g = partition->group_of_sm[sm];
        if (g >= REACH_MAX_GROUPS)
            continue;
        if (first_of[g] == FINGERPRINT_NO_GROUP)
            first_of[g] = (uint16_t)sm;
        h = hash_pair(h, sm, first_of[g]);
    }
    out[0] = '\0';
    if (partition->group_count > 0)
        (void)snprintf(out, FINGERPRINT_MAP_HASH_BYTES, "map%016" PRIx64, h);
    return out;
}
