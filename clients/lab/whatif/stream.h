/* stream.h: the accesses of a trace in the order in which the SMs of a GPU issue them, each with
 * its SM. A stream is dealt from the blocks of a trace. Other streams are derived from it: sorted
 * in buffers, dealt to windows, or filtered by scope.
 *
 * Only what-if includes this header. A stream takes 7 bytes per access. Only one thread may use a
 * stream at a time. */
#pragma once

#include "clients/lab/trace/trace.h"
#include "gpu/sim/sim_desc.h"

/* Maximum numbers of resident warps and blocks per SM. STREAM_PIECE is the number of accesses that
 * a sorted or windowed stream deals to an SM at a time. */
enum { STREAM_SM_WARPS = 64, STREAM_SM_BLOCKS = 32, STREAM_PIECE = 32 };

/* The class of an access is its kind and the sectors that memory moves for it. The first line of
 * each page of a record needs a translation. Lines that need no translation are marked
 * STREAM_SHARED. */
enum { STREAM_KIND_CLASSES = 32, STREAM_CLASSES = 96, STREAM_SHARED = 0x80 };

struct stream {
    size_t count;
    uint32_t group_count; /* groups whose SMs make the accesses; 0 if all groups do */
    uint32_t unit_shift;
    uint64_t range_bytes;
    uint32_t *units; /* moved addresses, shifted by unit_shift */
    uint16_t *sms;   /* positions in the SM list of the machine */
    uint8_t *classes;
};

/* How blocks are dealt. */
struct stream_rules {
    uint32_t sm_blocks;  /* maximum number of resident blocks per SM; 0 if only warps limit it */
    uint64_t page_bytes; /* lines of a record in the same page of this size share a translation */
    const struct sim_desc *data_cache; /* the data cache of each SM as level 1; NULL if unknown */
};

/* Writes the positions of the SMs that get the blocks of the trace, in ascending order, and returns
 * their number. A trace with one block in N of its launches runs on one group in N, so an SM has
 * about the number of blocks that it had in the launches. A launch without a block in the trace
 * does not count. At least one group is used, the groups with the most SMs first. All groups are
 * used if the number of blocks of a launch is unknown. */
uint32_t stream_sms(const struct trace *t, const struct sim_desc *machine,
                    uint16_t out[REACH_MAX_SMS], uint32_t *out_groups);

/* Deals blocks in turn to SMs that have room. An SM issues one line of each resident warp in turn,
 * so a record takes longer the more lines it has. A load that finds its line in the data cache
 * needs no translation and is marked STREAM_SHARED. */
enum status stream_deal(const struct trace *t, const struct sim_desc *machine,
                        const struct stream_rules *rules, struct stream *out, struct err *err);

/* Returns the number of resident warps per SM if all blocks are like the first. */
uint32_t stream_sm_warps(const struct trace *t, uint32_t sm_blocks);

/* Makes an empty stream with room for the accesses of `like`. Free it with stream_free. */
enum status stream_new(const struct stream *like, struct stream *out, struct err *err);
void stream_free(struct stream *take);

/* Sorts the accesses by `page_bytes` within buffers of `records` accesses, a power of two. Then
 * deals each buffer to all SMs, STREAM_PIECE accesses at a time. The sort is stable. */
enum status stream_sort(const struct stream *s, uint64_t page_bytes, uint32_t records,
                        uint32_t sm_count, struct stream *out, struct err *err);

static inline uint64_t stream_address(const struct stream *s, size_t i)
{
    return (uint64_t)s->units[i] << s->unit_shift;
}

static inline void stream_append(struct stream *s, uint32_t unit, uint32_t sm, uint8_t class)
{
    s->units[s->count] = unit;
    s->sms[s->count] = (uint16_t)sm;
    s->classes[s->count++] = class;
}
