/* stream.h: the accesses of a trace in the order in which a GPU's SMs make them, each with its SM,
 * and how many of them walk. A stream is dealt from the blocks of a trace; the others are made of
 * it: sorted in buffers, dealt to windows, filtered by scopes.
 *
 * Private to what-if. 7 bytes for each access. One thread.
 */
#ifndef REACH_CLIENTS_LAB_STREAM_H
#define REACH_CLIENTS_LAB_STREAM_H

#include "clients/lab/trace.h"
#include "gpu/sim/sim_desc.h"

/* Warps that an SM takes side by side, and that a sorted or windowed stream deals at a time. */
enum { STREAM_SM_WARPS = 64, STREAM_SM_BLOCKS = 32, STREAM_PIECE = 32 };

/* A line of a record has a class: its kind and the sectors that memory moves for it. The first line
 * of each page of a record asks for a translation; further ones of the page share it. */
enum { STREAM_KIND_CLASSES = 32, STREAM_CLASSES = 96, STREAM_SHARED = 0x80 };

struct stream {
    size_t count;
    uint32_t unit_shift;
    uint64_t range_bytes;
    uint32_t *units;
    uint16_t *sms; /* positions */
    uint8_t *classes;
};

/* Blocks go to the SMs in turn as room becomes free, at most `sm_blocks` of them side by side on
 * one (0: as many as its threads allow, 64 warps in all); an SM takes one record of each of its
 * warps in turn. Lines of a record within one `page_bytes` share a translation. */
enum status stream_deal(const struct trace *t, const struct sim_desc *machine, uint32_t sm_blocks,
                        uint64_t page_bytes, struct stream *out, struct err *err);

/* Warps that an SM takes side by side so: of the first block. */
uint32_t stream_sm_warps(const struct trace *t, uint32_t sm_blocks);

/* Room for a stream of so many accesses like `like`, with none yet. */
enum status stream_new(const struct stream *like, struct stream *out, struct err *err);
void stream_free(struct stream *take);

/* The accesses sorted by `page_bytes` in buffers of `records` (a power of two), each buffer then
 * dealt to all SMs, STREAM_PIECE at a time. Sorting is stable. */
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

/* Accesses of each part [ends[i - 1], ends[i]) that were walked, to walks[i]. Unless `cold` each
 * part is first run once to fill the levels: what is counted is a job that goes on so. `flight`:
 * how long a miss is under way (flight.h); NULL: an entry is there as soon as it was missed once.
 */
struct flight;
enum status stream_count(const struct stream *s, const struct sim_desc *machine,
                         const struct flight *flight, bool cold, const size_t *ends, uint32_t parts,
                         uint64_t *walks, struct err *err);

#endif
