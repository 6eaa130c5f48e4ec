/* gups.h: the host side of reach-gups, and the random sequence of HPCC's RandomAccess, which host
 * and device compile from the same lines. Plain C without CUDA
 * (tests/unit/clients/examples/test_gups.c).
 *
 * The sequence is the benchmark's (HPC Challenge, RandomAccess, http://icl.cs.utk.edu/hpcc):
 * number n is x^n modulo x^64 + x^2 + x + 1 over GF(2), so the next number is one shift, and any
 * number is reached from n by squaring.
 */
#ifndef REACH_CLIENTS_EXAMPLES_GUPS_H
#define REACH_CLIENTS_EXAMPLES_GUPS_H

#include "element.h"
#include "job.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { GUPS_STEPS = 256 }; /* numbers of the sequence that a thread uses at a time */

/* Numbers as NVIDIA's sample has them; the last is ours. */
enum gups_test {
    GUPS_UPDATE = 0,
    GUPS_READ = 1,
    GUPS_WRITE = 2,
    GUPS_READ_WRITE = 3,
    GUPS_UPDATE_NO_LOOP = 4,
    GUPS_UPDATE_XOR = 5,
    GUPS_TEST_COUNT = 6
};

/* The command line. Strings are borrowed from it. */
struct gups_options {
    uint32_t log2_elements; /* of the table of 8-byte words */
    uint32_t accesses;      /* per element of the table; 0 on the command line: of the test */
    enum gups_test test;
    uint32_t device; /* CUDA's index; with dry_run the daemon's */
    uint32_t repeats;
    const char *uri; /* as reach_open takes it; NULL: its default */
    bool dry_run;
    bool help;
};

/* The number after `number`. */
ELEMENT_FN uint64_t gups_next(uint64_t number)
{
    return (number << 1) ^ ((int64_t)number < 0 ? 7u : 0u);
}

/* Bit i of the low half becomes bit 2i. */
ELEMENT_FN uint64_t gups_spread(uint32_t half)
{
    uint64_t x = half;

    x = (x | x << 16) & 0x0000ffff0000ffffull;
    x = (x | x << 8) & 0x00ff00ff00ff00ffull;
    x = (x | x << 4) & 0x0f0f0f0f0f0f0f0full;
    x = (x | x << 2) & 0x3333333333333333ull;
    return (x | x << 1) & 0x5555555555555555ull;
}

/* The square of a polynomial: a square over GF(2) has no mixed terms, and x^64 is x^2 + x + 1. */
ELEMENT_FN uint64_t gups_square(uint64_t number)
{
    const uint64_t high = gups_spread((uint32_t)(number >> 32));
    const uint64_t over = high >> 63 ^ high >> 62; /* what times 7 shifts out of 64 bits */

    return gups_spread((uint32_t)number) ^ high ^ high << 1 ^ high << 2 ^ over ^ over << 1 ^
           over << 2;
}

/* Number n of the sequence; number 0 is 1. */
ELEMENT_FN uint64_t gups_start(uint64_t n)
{
    uint64_t number = 1;

    for (int bit = 63; bit >= 0; bit--) {
        number = gups_square(number);
        if (n >> bit & 1)
            number = gups_next(number);
    }
    return number;
}

/* The next number of the sequence whose element lies in [first, first + length), of `*left` that
 * remain; false if there is none. Elements are the low bits of a number. */
ELEMENT_FN bool gups_next_inside(uint64_t *number, uint32_t *left, uint64_t mask, uint64_t first,
                                 uint64_t length)
{
    bool inside = false;

    while (*left && !inside) {
        *number = gups_next(*number);
        --*left;
        inside = element_inside(*number & mask, first, length);
    }
    return inside;
}

/* False, with a message in `why` (JOB_TEXT_BYTES), for options that are not valid. */
bool gups_options_parse(int argc, char **argv, struct gups_options *out, char *why);
void gups_help(FILE *out);

/* Bytes of the table; updates of one repeat; warps' pieces of them. */
uint64_t gups_bytes(const struct gups_options *options);
uint64_t gups_accesses(const struct gups_options *options);
uint32_t gups_pieces(const struct gups_options *options);
/* "Gupdates/s ATOM.CAS.64(loop)", as NVIDIA's sample prints it. Static. */
const char *gups_result_name(enum gups_test test);
/* Whether the accesses, made twice, leave the table as it was. */
bool gups_can_verify(enum gups_test test);

/* Gets the plan for the table: `*plan`, which the caller frees, and its choices, naive first.
 * Without a plan naive alone remains, and `why` (JOB_TEXT_BYTES) says why; else it is empty.
 * Returns the number of choices. */
uint32_t gups_plan(struct reach *reach, const char *gpu, const struct gups_options *options,
                   struct reach_answer **plan, struct job_choice choices[JOB_MAX_CHOICES],
                   char *why);

/* The lines of NVIDIA's sample about the GPU and the table. */
struct gups_gpu {
    int count, warp, sms, sm_threads;
    uint64_t threads; /* of a launch */
};
void gups_print_header(FILE *out, const struct gups_options *options, const struct gups_gpu *gpu);
/* "Elapsed time = ..", "Result .. = ..", behind a line that names the choice. */
void gups_print_result(FILE *out, const struct gups_options *options,
                       const struct job_choice *choice);
/* All choices beside each other; before a run with the predictions alone. */
void gups_print_table(FILE *out, const struct gups_options *options,
                      const struct job_choice *choices, uint32_t count);

#ifdef __cplusplus
}
#endif

#endif
