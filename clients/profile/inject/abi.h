/* abi.h: the buffers that the patch fills on the GPU and that the recorder reads. The patch
 * (patch.cu) and the recorder (recorder.c) include this header; the device is little-endian, like
 * the host.
 *
 * A launch is recorded in three ways at once. The set of pages and the counters of instructions are
 * exact for the whole launch. The records have the addresses of a sample of its thread blocks. */
#pragma once

#include <stdint.h>

enum {
    PROFILE_PAGE_SHIFT = 21,        /* a page is 2 MiB */
    PROFILE_PAGES = 1 << 20,        /* slots of the set of pages; a power of two */
    PROFILE_INSTRUCTIONS = 1 << 11, /* slots of a set of instructions; a power of two */
    PROFILE_COPIES = 32, /* sets of instructions; block b counts in set b % PROFILE_COPIES,
                            because additions to one address take turns */
    PROFILE_PROBES = 64, /* slots that are tried before an entry has none */
    PROFILE_KINDS = 3,
    PROFILE_WIDTHS = 8,       /* widths 0, 1, 2, 4 .. 64 bytes per lane */
    PROFILE_HEAD_WORDS = 8,   /* words of a record before its addresses */
    PROFILE_LISTED = 1u << 31 /* in `kind_bytes` of a record: a list of addresses follows */
};

enum profile_kind { PROFILE_LOAD = 0, PROFILE_STORE, PROFILE_ATOMIC };

/* Counters of one instruction. `pc` is the program counter plus 1; 0 means a free slot. The kind is
 * in bits 8 and above of `kind_bytes`, the bytes per lane in the lowest 8 bits. The bytes of a copy
 * of the tensor memory accelerator are 0, because it has no record. */
struct profile_instruction {
    uint64_t pc;
    uint32_t kind_bytes;
    uint32_t unused;
    uint64_t warps; /* executions by a warp */
    uint64_t lanes; /* active lanes of all executions */
    uint64_t runs;  /* contiguous runs of addresses of all executions */
};

/* The head of a record: one execution by a warp. The addresses are base + k * stride for the k-th
 * active lane; or a list of 64-bit addresses of the active lanes follows (PROFILE_LISTED). */
struct profile_record {
    uint64_t block; /* x + y grid[0] + z grid[0] grid[1] */
    uint32_t warp;  /* number of the warp in its block */
    uint32_t mask;  /* active lanes */
    uint32_t kind_bytes;
    int32_t stride;
    uint64_t base;
};

/* A block is in the sample if (block >> run_shift) % every is 0. */
struct profile_launch {
    uint64_t *pages;                          /* PROFILE_PAGES page numbers plus 1 */
    struct profile_instruction *instructions; /* PROFILE_COPIES sets */
    uint32_t *words;                          /* records */
    uint64_t room;                            /* words */
    unsigned long long used; /* words that the sample needs; the excess over `room` was lost */
    unsigned long long records_lost;
    unsigned long long pages_lost; /* accesses to pages without a slot */
    unsigned long long begin_ns; /* time of the first access, by the timer of the GPU; 0 if none */
    unsigned long long limit_ns; /* accesses after this time are not recorded; 0 means no limit */
    uint32_t is_late;            /* set to 1 after the limit: the recording is partial */
    uint32_t run_shift, every;
    /* Instructions without a slot, counted together by kind and width. `pc` stays 0. */
    struct profile_instruction others[PROFILE_KINDS][PROFILE_WIDTHS];
};
