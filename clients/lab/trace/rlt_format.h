/* rlt_format.h: constants and encodings of .rlt. Only rlt_write.c and rlt_read.c include this
 * header. clients/cuda/reach_trace.cuh has its own copy. */
#pragma once

#include "clients/lab/trace/rlt.h"

#include <string.h>

enum {
    RLT_OLDEST_VERSION = 1, /* has no LEFT_OUT */
    RLT_VERSION = 2,
    RLT_MAGIC_BYTES = 8,
    RLT_HEADER_BYTES = 16, /* magic, version, log2 of the granule, 0, check */
    RLT_CHUNK_HEAD_BYTES = 12,
    RLT_MAX_RECORD_BYTES = 400 /* upper limit, including the head of the run */
};

static const uint8_t RLT_MAGIC[RLT_MAGIC_BYTES] = {0x89, 'R', 'L', 'T', '\r', '\n', 0x1a, '\n'};

/* Types of chunks. */
enum {
    RLT_APP = 'P',
    RLT_ALLOCATION = 'A',
    RLT_KERNEL = 'K',
    RLT_RECORDS = 'W',
    RLT_LEFT_OUT = 'L',
    RLT_THE_END = 'E'
};

/* Forms of a record's lines. */
enum { RLT_ONE = 0, RLT_STRIDE, RLT_LIST };

/* The byte of a record: kind in bits 0-1, log2 of the width in bits 2-4, form in bits 5-6. Bit 7 is
 * set if a mask follows. */
enum { RLT_WIDTH_SHIFT = 2, RLT_FORM_SHIFT = 5, RLT_HAS_MASK = 0x80 };

static inline void rlt_put_u32(uint8_t *at, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(v >> 8 * i);
}

static inline uint32_t rlt_get_u32(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static inline uint64_t rlt_zigzag(uint64_t difference)
{
    return difference << 1 ^ (0 - (difference >> 63));
}

static inline uint64_t rlt_unzigzag(uint64_t v)
{
    return v >> 1 ^ (0 - (v & 1));
}

/* Returns the check of a chunk. Words of eight little-endian bytes are combined by exclusive or and
 * multiplication by an odd number. The last word is padded with zeros. */
static inline uint32_t rlt_check(uint8_t type, const uint8_t *bytes, size_t count)
{
    uint64_t h = 0xcbf29ce484222325u ^ ((uint64_t)count << 8 | type);
    for (size_t at = 0; at < count; at += 8) {
        uint64_t word = 0;
        if (count - at >= 8) {
            word = rlt_get_u32(bytes + at) | (uint64_t)rlt_get_u32(bytes + at + 4) << 32;
        } else {
            for (size_t i = 0; i < count - at; i++)
                word |= (uint64_t)bytes[at + i] << 8 * i;
        }
        h = (h ^ word) * 0x9e3779b97f4a7c15u;
        h ^= h >> 32;
    }
    return (uint32_t)h;
}
