/* gups.h: the host side of reach-gups, and the random sequence of HPCC's RandomAccess, which host
 * and device compile from the same lines. The header is plain C without CUDA
 * (tests/unit/clients/examples/test_gups.c).
 *
 * The sequence is from the benchmark (HPC Challenge, RandomAccess, http://icl.cs.utk.edu/hpcc).
 * Number n is x^n modulo x^64 + x^2 + x + 1 over GF(2). So the next number is one shift, and any
 * number is reached from n by squaring.
 */
#pragma once

#include "element.h"
#include "job.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { GUPS_STEPS = 256 }; /* numbers of the sequence that a thread uses at a time */

/* Test numbers of NVIDIA's sample. Test 5 is an addition. */
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
    uint32_t log2_elements; /* the table has 2^log2_elements words of 8 bytes */
    uint32_t accesses; /* accesses per element; 0 on the command line means the test's default */
    enum gups_test test;
    uint32_t device; /* CUDA's index, or the daemon's index with dry_run */
    uint32_t repeats;
    const char *uri; /* URI for reach_open; NULL means its default */
    bool dry_run;
    bool help;
};

/* Returns the number after `number`. */
ELEMENT_FN uint64_t gups_next(uint64_t number)
{
    return (number << 1) ^ ((int64_t)number < 0 ? 7u : 0u);
}

/* Spreads bits: bit i of the low half becomes bit 2i. */
ELEMENT_FN uint64_t gups_spread(uint32_t half)
{
    uint64_t x = half;

    x = (x | x << 16) & 0x0000ffff0000ffffull;
    x = (x | x << 8) & 0x00ff00ff00ff00ffull;
    x = (x | x << 4) & 0x0f0f0f0f0f0f0f0full;
    x = (x | x << 2) & 0x3333333333333333ull;
    return (x | x << 1) & 0x5555555555555555ull;
}

/* Returns the square of a polynomial. A square over GF(2) has no mixed terms, and x^64 is x^2 + x +
 * 1. */
ELEMENT_FN uint64_t gups_square(uint64_t number)
{
    const uint64_t high = gups_spread((uint32_t)(number >> 32));
    const uint64_t over = high >> 63 ^ high >> 62; /* the bits that a product with 7 shifts out */

    return gups_spread((uint32_t)number) ^ high ^ high << 1 ^ high << 2 ^ over ^ over << 1 ^
           over << 2;
}

/* Returns number n of the sequence; number 0 is 1. */
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

/* Finds the next number of the sequence whose element lies in [first, first + length), among
 * `*left` remaining ones. Returns false if there is none. Elements are the low bits of a number. */
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

/* Reads the command line. Returns false, with a message in `why` (JOB_TEXT_BYTES), for invalid
 * options. */
bool gups_options_parse(int argc, char **argv, struct gups_options *out, char *why);
void gups_help(FILE *out);

/* These functions return the bytes of the table, the updates of one repeat, and the pieces of the
 * warps. */
uint64_t gups_bytes(const struct gups_options *options);
uint64_t gups_accesses(const struct gups_options *options);
uint32_t gups_pieces(const struct gups_options *options);
/* Returns a static text such as "Gupdates/s ATOM.CAS.64(loop)", the format of NVIDIA's sample. */
const char *gups_result_name(enum gups_test test);
/* Returns whether the accesses, made twice, restore the table. */
bool gups_can_verify(enum gups_test test);

/* Gets the plan for the table. Sets `*plan`, which the caller frees, and its choices, naive first.
 * Without a plan only naive remains, and `why` (JOB_TEXT_BYTES) has the reason; otherwise it is
 * empty. Returns the number of choices. */
uint32_t gups_plan(struct reach *reach, const char *gpu, const struct gups_options *options,
                   struct reach_answer **plan, struct job_choice choices[JOB_MAX_CHOICES],
                   char *why);

/* The properties of the GPU that gups_print_header prints in the lines of NVIDIA's sample. */
struct gups_gpu {
    int count, warp, sms, sm_threads;
    uint64_t threads; /* threads of a launch */
};
void gups_print_header(FILE *out, const struct gups_options *options, const struct gups_gpu *gpu);
/* Prints "Elapsed time = ..", "Result .. = ..", after a line that names the choice. */
void gups_print_result(FILE *out, const struct gups_options *options,
                       const struct job_choice *choice);
/* Prints all choices side by side; before a run it prints the predictions alone. */
void gups_print_table(FILE *out, const struct gups_options *options,
                      const struct job_choice *choices, uint32_t count);

#ifdef __cplusplus
}
#endif
