/* params.c: the table of parameters, and the checks on numbers. */
#include "planner/params.h"

#include "planner/fit.h"
#include "planner/strategy.h"
#include "planner/split.h"
#include "types/name_of.h"

#include <string.h>

/* Defines a function that returns the word of an enumerator, or NULL after the last one. */
#define WORDS(prefix, type, count)                                                                 \
    static const char *prefix##_word(uint32_t i)                                                   \
    {                                                                                              \
        return i < (count) ? prefix##_name((type)i) : NULL;                                        \
    }

WORDS(access, enum access, ACCESS_COUNT)
WORDS(memory_location, enum memory_location, LOCATION_COUNT)
WORDS(fit_reuse, enum fit_reuse, FIT_REUSE_COUNT)

static const char *memory_kind_word(uint32_t i)
{
    if (i == 0)
        return "any";
    return i <= MEMORY_KIND_COUNT ? memory_kind_name((enum memory_kind)(i - 1)) : NULL;
}

/* Describes the use of a parameter by a function: the struct, its member, and more members of
 * struct param_use. */
#define TAKES(form, type, member, ...)                                                             \
    {                                                                                              \
        form, offsetof(struct type, member), #member, __VA_ARGS__                                  \
    }
#define ONE(type, member, ...)   TAKES(PARAM_ONE, type, member, __VA_ARGS__)
#define ITEMS(type, member, ...) TAKES(PARAM_ITEMS, type, member, __VA_ARGS__)
#define EACH(type, member, ...)  TAKES(PARAM_EACH, type, member, __VA_ARGS__)

#define A_SIZE "give a size, as in bytes=137GiB"
#define SIZES                                                                                      \
    "The number of bytes that the job accesses at random, at most 1 PiB. Several allocations "     \
    "that "                                                                                        \
    "are accessed together have up to 16 sizes, separated by commas. Windows and scopes are then " \
    "parts of each allocation at the same fraction."

static const struct param rows[] = {
    {"bytes", PARAM_SIZE, "bytes",
     .about = "The number of bytes that the job accesses at random, at most 1 PiB.",
     .uses = {[PLANNER_SCOPE] = ITEMS(layout_allocation, bytes, .needed = A_SIZE, .about = SIZES),
              [PLANNER_PLACEMENT] = ONE(placement_request, bytes, .needed = A_SIZE),
              [PLANNER_PLAN] = ITEMS(job_allocation, bytes, .needed = A_SIZE, .about = SIZES),
              [PLANNER_SPLIT] =
                  ITEMS(split_job, bytes, .needed = "give the bytes of each job, as in 20G,40G",
                        .about = "The number of bytes that each of 1 to 16 jobs accesses at "
                                 "random, separated by commas."),
              [PLANNER_EXPLAIN] = ONE(explain_request, bytes, .needed = A_SIZE),
              [PLANNER_MEMORY] =
                  ONE(memory_request, bytes, .needed = A_SIZE, .unless_alone = true,
                      .about = "The number of bytes that the job accesses at random, at most 1 "
                               "PiB. Any other parameter requires this parameter."),
              [PLANNER_FIT] = ONE(fit_request, bytes, .needed = A_SIZE,
                                  .about = "The size of the set that all SMs read together.")}},
    {"access", PARAM_WORD, "kind", .word = access_word, .by_default = "read",
     .about = "The kind of the random accesses.",
     .uses = {[PLANNER_SCOPE] =
                  ONE(scope_request, access,
                      .about = "The kind of the random accesses. Predictions exist only for reads; "
                               "the predictions for atomics and writes are null."),
              [PLANNER_PLAN] = ONE(job_request, access),
              [PLANNER_EXPLAIN] = ONE(explain_request, access),
              [PLANNER_MEMORY] = ONE(memory_request, access)}},
    {"touches", PARAM_REAL_OR_0, "n", .most = STRATEGY_MAX_TOUCHES, .by_default = "1",
     .about = "The number of accesses to each allocation per item. An item is the work that the "
              "job repeats; input_bytes, accesses and all other parameters count per item. A 0 "
              "marks an allocation without accesses that is laid out with the others.",
     .uses = {[PLANNER_PLAN] = {PARAM_EACH, offsetof(struct job_allocation, touches)}}},
    {"element", PARAM_ACCESS_SIZE, "bytes", .most = STRATEGY_MAX_TRANSACTION,
     .about = "The size of one access, at most 1 MiB. The default is 128 bytes.",
     .uses = {[PLANNER_PLAN] = EACH(job_allocation, element_bytes),
              [PLANNER_EXPLAIN] = ONE(explain_request, element_bytes),
              [PLANNER_MEMORY] = ONE(memory_request, element_bytes),
              [PLANNER_FIT] = ONE(fit_request, element_bytes)}},
    {"transaction", PARAM_ACCESS_SIZE, "bytes", .most = STRATEGY_MAX_TRANSACTION,
     .about = "The number of bytes that memory moves for one access, at most 1 MiB. The default is "
              "the mean size of the sectors of 32 bytes that an element touches if elements follow "
              "one another: 32 for 8 bytes, 72 for 44 bytes. Throughputs count these bytes.",
     .uses = {[PLANNER_PLAN] = EACH(job_allocation, transaction_bytes),
              [PLANNER_EXPLAIN] = ONE(explain_request, transaction_bytes)}},
    {"reserve", PARAM_SIZE, "bytes",
     .about = "The size of further memory that all SMs access at random. The size is subtracted "
              "from every window and every scope.",
     .uses = {[PLANNER_PLAN] = ONE(job_request, reserve_bytes)}},
    {"accesses", PARAM_LONG_COUNT, "n", .most = (double)INT64_MAX,
     .about =
         "The total number of items of one batch. An item is one access by default; touches "
         "changes this. With accesses, the answer has extra bytes in total, and predictions "
         "include the time of launches. Without accesses, predictions do not include launches.",
     .uses = {[PLANNER_PLAN] = ONE(job_request, accesses),
              [PLANNER_MEMORY] = ONE(
                  memory_request, accesses,
                  .about = "The number of accesses of one batch. With accesses, the choices for "
                           "host memory include passes over scopes, and predictions of passes "
                           "include the time of launches.")}},
    {"launch_us", PARAM_REAL, "n", .most = STRATEGY_MAX_RATE, .by_default = "10",
     .about = "The time in microseconds of one launch, of one reset of the queues of windows, and "
              "of the wait for the slowest window. The default is an assumption. The parameter has "
              "an effect only with accesses.",
     .uses = {[PLANNER_PLAN] = ONE(job_request, launch_us),
              [PLANNER_MEMORY] = ONE(memory_request, launch_us)}},
    {"first_launch_us", PARAM_REAL, "n", .most = STRATEGY_MAX_RATE,
     .about =
         "The time in microseconds of a batch of few accesses, from launch to launch. It replaces "
         "launch_us for the first launch of a batch, and includes the latency of memory. The "
         "default is launch_us. The parameter has an effect only with accesses.",
     .uses = {[PLANNER_PLAN] = ONE(job_request, first_launch_us)}},
    {"dependent_reads", PARAM_COUNT, "n", .most = STRATEGY_MAX_DEPENDENT,
     .about =
         "The number of reads in the longest chain of a launch, in which each read waits for the "
         "previous one. first_launch_us includes the time of 2 such reads, a position and the "
         "access at this position. Each further read adds one latency to each pass. The default "
         "is 2. The parameter has an effect only with "
         "accesses.",
     .uses = {[PLANNER_PLAN] = ONE(job_request, dependent_reads)}},
    {"busiest_bank_ns", PARAM_REAL, "n", .most = STRATEGY_MAX_RATE,
     .about =
         "The time in nanoseconds by which the busiest bank of memory ends later than the mean "
         "bank, after one random read. After n reads it is sqrt(n) times this time. A job measures "
         "it with two launches that are so long that banks limit them, and differ in length. By "
         "default all banks end at once. The parameter has an effect only with accesses, for "
         "reads.",
     .uses = {[PLANNER_PLAN] = ONE(job_request, busiest_bank_ns)}},
    {"no_sm_binding", PARAM_FLAG, .by_default = "false",
     .about = "True if work cannot be bound to SMs.",
     .uses = {[PLANNER_PLAN] = ONE(job_request, no_sm_binding)}},
    {"single_pass", PARAM_FLAG, .by_default = "false",
     .about = "True if the input cannot be read again.",
     .uses = {[PLANNER_PLAN] = ONE(job_request, single_pass)}},
    {"input_bytes", PARAM_REAL, "n", .most = STRATEGY_MAX_INPUT_BYTES,
     .about = "The number of bytes of input per access. By default the job has no input: positions "
              "are computed, not read.",
     .uses = {[PLANNER_PLAN] = ONE(job_request, input_bytes),
              [PLANNER_MEMORY] = ONE(memory_request, input_bytes)}},
    {"input_gbps", PARAM_REAL, "n", .most = STRATEGY_MAX_RATE,
     .about = "The GB/s at which the input arrives over a link, concurrently with the work. Input "
              "that is needed again is kept in GPU memory, chunk by chunk. By default the whole "
              "input is in GPU memory. The parameter requires input_bytes.",
     .uses = {[PLANNER_PLAN] = ONE(job_request, input_gbps)}},
    {"scan_gps", PARAM_REAL, "n", .most = STRATEGY_MAX_RATE,
     .about = "The number of positions that all SMs together can scan and skip, in 10^9 per "
              "second. By default the scan has no cost.",
     .uses = {[PLANNER_PLAN] = ONE(job_request, scan_gps)}},
    {"in_reach_gbps", PARAM_REAL, "n", .most = STRATEGY_MAX_RATE,
     .about = "The GB/s that the job attains within the reach, including the scan and one reading "
              "of its input. The default is the throughput that the fingerprint has for the same "
              "kind of access.",
     .uses = {[PLANNER_PLAN] = ONE(job_request, in_reach_gbps)}},
    {"output_bytes", PARAM_REAL, "n", .most = STRATEGY_MAX_INPUT_BYTES,
     .about = "The number of bytes of output per access to which several passes or windows may "
              "add. Each pass or window after the first reads and writes these bytes once more. By "
              "default the job has no such output.",
     .uses = {[PLANNER_PLAN] = ONE(job_request, output_bytes)}},
    {"written_bytes", PARAM_REAL, "n", .most = STRATEGY_MAX_INPUT_BYTES,
     .about = "The number of bytes of output per access that are written exactly once, such as the "
              "rows of a gather. By default the job has no such output.",
     .uses = {[PLANNER_PLAN] = ONE(job_request, written_bytes),
              [PLANNER_MEMORY] =
                  ONE(memory_request, written_bytes,
                      .about = "The number of bytes of output per access that are written to "
                               "memory of the GPU, in order. The default for reads of host memory "
                               "is the element, as in a gather; otherwise the job has no output. A "
                               "job that reads without output gives a small number, such as "
                               "0.001.")}},
    {"partition_bytes", PARAM_REAL, "n", .most = STRATEGY_MAX_INPUT_BYTES,
     .about = "The number of bytes that a partition writes per access. The default is input_bytes, "
              "or 8 if positions are computed.",
     .uses = {[PLANNER_PLAN] = ONE(job_request, partition_bytes)}},
    {"contiguous", PARAM_COMPLEMENT, "share", .most = 1, .by_default = "1",
     .about = "The share of the memory in physically contiguous frames of contiguity.frame_bytes. "
              "A large allocation on an idle GPU is contiguous, and memory mapped from small "
              "handles is not. A miss costs more in a frame that is not contiguous.",
     .uses = {[PLANNER_PLAN] = ONE(job_request, scattered),
              [PLANNER_EXPLAIN] = ONE(explain_request, scattered)}},
    {"concentration", PARAM_REAL, "c", .most = 1,
     .about = "How unequally often the pages of the memory are accessed. The most accessed share x "
              "of the pages receives the share x^(1 - c) of the accesses. If a share a of the "
              "accesses falls on a share p of the pages, c is 1 - ln(a) / ln(p): 0.86 for 80 % of "
              "the accesses on 20 % of the pages. TLBs keep these pages, so a pass over all memory "
              "misses less often. By default all pages are accessed equally often.",
     .uses = {[PLANNER_PLAN] = ONE(job_request, concentration)}},
    {"window_concentration", PARAM_REAL, "c", .most = 1,
     .about = "How unequally the accesses fall on the windows, if the most accessed pages are "
              "adjacent. The busiest window, which has a share x of the memory, receives the share "
              "x^(1 - c) of the accesses, and the other windows wait for it. Pages in such windows "
              "are accessed unequally too, so the larger of this number and concentration counts "
              "for the pages. By default each window receives accesses in proportion to its size.",
     .uses = {[PLANNER_PLAN] = ONE(job_request, window_concentration)}},
    {"lines", PARAM_REAL, "n", .most = STRATEGY_MAX_TRANSACTION,
     .about =
         "The mean number of different lines of 128 bytes per access, among accesses that are "
         "near in time. It is small if accesses fall on adjacent or equal elements: 1 / 16 for "
         "elements of 8 bytes in order. The parameter counts for reads of one allocation. The "
         "default follows from the element: elements are apart from one another.",
     .uses = {[PLANNER_PLAN] = ONE(job_request, lines)}},
    {"line_concentration", PARAM_REAL, "c", .most = 1,
     .about =
         "How unequally often lines of 128 bytes are read, like concentration for pages. The L2 "
         "keeps lines that are read often. The parameter counts for reads of one allocation. "
         "By default every read comes from memory.",
     .uses = {[PLANNER_PLAN] = ONE(job_request, line_concentration)}},
    {"windows", PARAM_COUNT, "n", .most = PLACEMENT_MAX_WINDOWS,
     .about = "The number of windows. The default is the smallest number that the reach allows.",
     .uses = {[PLANNER_PLACEMENT] = ONE(placement_request, windows),
              [PLANNER_PLAN] = ONE(job_request, windows)}},
    {"granularity", PARAM_SIZE, "bytes",
     .about = "Window bounds are multiples of this size. Window bounds are also multiples of the "
              "TLB entry if a common multiple is fine enough. The default is the TLB entry.",
     .uses =
         {[PLANNER_SCOPE] = {PARAM_EACH, offsetof(struct layout_allocation, row_bytes),
                             "granularity_bytes",
                             .about = "Bounds of scopes are multiples of this size (a row). The "
                                      "default is 1 byte, or 128 bytes with several allocations."},
          [PLANNER_PLACEMENT] = ONE(placement_request, granularity_bytes),
          [PLANNER_PLAN] = EACH(
              job_allocation, granularity_bytes,
              .about =
                  "Window bounds are multiples of this size, as in placement. With several "
                  "allocations the size is the row of each allocation, and the default is the "
                  "element. Allocations with the same number of rows are cut at the same row.")}},
    {"weight", PARAM_REAL, "n", .most = SPLIT_MAX_WEIGHT,
     .about = "The relative share of the SMs that each job gets. By default the shares are equal.",
     .uses = {[PLANNER_SPLIT] = TAKES(PARAM_EACH_ALWAYS, split_job, weight, )}},
    {"gbps", PARAM_REAL, "n", .most = STRATEGY_MAX_RATE,
     .about = "The throughput that the job observes, in 10^9 transaction bytes per second.",
     .uses = {[PLANNER_EXPLAIN] =
                  ONE(explain_request, observed_gbps,
                      .needed = "give the throughput that the job observes, as in gbps=412.5")}},
    {"location", PARAM_WORD, "location", .word = memory_location_word, .by_default = "any",
     .about = "The location of the memory. The value any includes peer memory, which is memory of "
              "another GPU.",
     .uses = {[PLANNER_MEMORY] = ONE(memory_request, location)}},
    {"kind", PARAM_WORD, "kind", .word = memory_kind_word, .by_default = "any",
     .about = "The only kind of memory in the choices. The parameter is for a table that exists "
              "and cannot be allocated otherwise.",
     .uses = {[PLANNER_MEMORY] = ONE(memory_request, kind)}},
    {"shared_bytes", PARAM_MAYBE_SIZE, "bytes",
     .about = "The size of the shared memory that a block takes.",
     .uses = {[PLANNER_FIT] = ONE(fit_request, shared_bytes)}},
    {"blocks_per_sm", PARAM_COUNT, "n", .most = FIT_MAX_BLOCKS, .by_default = "1",
     .about = "The number of blocks that work on one SM at the same time.",
     .uses = {[PLANNER_FIT] = ONE(fit_request, blocks_per_sm)}},
    {"reuse", PARAM_WORD, "kind", .word = fit_reuse_word, .by_default = "same",
     .about = "With same, every SM reads the whole set. With own, each SM reads its own part.",
     .uses = {[PLANNER_FIT] = ONE(fit_request, reuse)}},
};
enum { ROW_COUNT = sizeof(rows) / sizeof(*rows) };
_Static_assert((int)ROW_COUNT <= (int)PARAM_MOST_ROWS, "reachctl has room for each");

/* In requests of a plan or a scope, `bytes` is the size of the first allocation until the decoder
 * has read all allocations. */
static const struct param_layout layouts[PLANNER_COUNT] = {
    [PLANNER_SCOPE] = {sizeof(struct scope_request), offsetof(struct scope_request, layout.count),
                       offsetof(struct scope_request, layout.of), sizeof(struct layout_allocation),
                       LAYOUT_MAX},
    [PLANNER_PLACEMENT] = {.size = sizeof(struct placement_request)},
    [PLANNER_PLAN] = {sizeof(struct job_request), offsetof(struct job_request, allocation_count),
                      offsetof(struct job_request, allocations), sizeof(struct job_allocation),
                      LAYOUT_MAX},
    [PLANNER_SPLIT] = {sizeof(struct split_request), offsetof(struct split_request, job_count),
                       offsetof(struct split_request, jobs), sizeof(struct split_job),
                       SPLIT_MAX_JOBS},
    [PLANNER_EXPLAIN] = {.size = sizeof(struct explain_request)},
    [PLANNER_MEMORY] = {.size = sizeof(struct memory_request)},
    [PLANNER_FIT] = {.size = sizeof(struct fit_request)},
};

NAME_FUNCTION(planner_function_name,
              enum planner_function, [PLANNER_NONE] = "none", [PLANNER_SCOPE] = "scope",
              [PLANNER_PLACEMENT] = "placement", [PLANNER_PLAN] = "plan", [PLANNER_SPLIT] = "split",
              [PLANNER_EXPLAIN] = "explain", [PLANNER_MEMORY] = "memory", [PLANNER_FIT] = "fit")

const struct param *param_at(uint32_t i)
{
    return i < ROW_COUNT ? &rows[i] : NULL;
}

const struct param *param_find(enum planner_function function, const char *name)
{
    for (uint32_t i = 0; i < ROW_COUNT; i++) {
        if (rows[i].uses[function].form != PARAM_ABSENT && strcmp(rows[i].name, name) == 0)
            return &rows[i];
    }
    return NULL;
}

const struct param_layout *param_layout(enum planner_function function)
{
    return &layouts[function];
}

static enum status check_real(const struct param *p, const char *from, struct err *err)
{
    double v;

    memcpy(&v, from, sizeof(v));
    if (v >= 0 && v <= p->most) /* NaN fails both comparisons */
        return STATUS_OK;
    return err_set_field(err, STATUS_INVALID_ARGUMENT, p->name,
                         "%s must be a number from 0 to %.0f", p->name, p->most);
}

enum status param_check(enum planner_function function, const void *request, struct err *err)
{
    const struct param_layout *const of = &layouts[function];
    const char *const base = request;
    enum status s = STATUS_OK;
    uint32_t count = 0;

    if (of->items_offset > 0)
        memcpy(&count, base + of->count_offset, sizeof(count));
    for (uint32_t i = 0; i < ROW_COUNT && s == STATUS_OK; i++) {
        const struct param_use *const use = &rows[i].uses[function];
        const bool is_real = rows[i].kind == PARAM_REAL || rows[i].kind == PARAM_REAL_OR_0 ||
                             rows[i].kind == PARAM_COMPLEMENT;
        if (is_real && use->form == PARAM_ONE)
            s = check_real(&rows[i], base + use->offset, err);
        for (uint32_t k = 0; is_real && use->form > PARAM_ONE && k < count && s == STATUS_OK; k++)
            s = check_real(&rows[i], base + of->items_offset + k * of->item_size + use->offset,
                           err);
    }
    return s;
}
