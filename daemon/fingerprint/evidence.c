/* evidence.c: see evidence.h. Margins are truncated to thousandths, so that they do not depend on
 * the last digit of a logarithm. */
#include "fingerprint/evidence.h"

#include "types/name_of.h"

#include <math.h>
#include <stddef.h>

#define MARGIN_PARTS 1000.0

NAME_FUNCTIONS(
    evidence_method, enum evidence_method, [EVIDENCE_NONE] = "none",
    [EVIDENCE_ENTRY_SEARCH] = "entry-search", [EVIDENCE_ENTRY_TEST] = "entry-test",
    [EVIDENCE_REFINE] = "refine", [EVIDENCE_ROUNDS] = "rounds", [EVIDENCE_PAIRS] = "pairs",
    [EVIDENCE_ROUNDS_AND_PAIRS] = "rounds-and-pairs", [EVIDENCE_TRACES] = "traces",
    [EVIDENCE_STRIDES] = "strides", [EVIDENCE_FLOOR_PLAN] = "floor-plan",
    [EVIDENCE_RANDOM_READS] = "random-reads", [EVIDENCE_CLASSES] = "classes",
    [EVIDENCE_GROUP_PAIRS] = "group-pairs", [EVIDENCE_MEAN_CURVES] = "mean-curves",
    [EVIDENCE_MEAN_PAIRS] = "mean-pairs", [EVIDENCE_RANDOM_ACCESSES] = "random-accesses",
    [EVIDENCE_RUN_LENGTHS] = "run-lengths", [EVIDENCE_WALKS] = "walks", [EVIDENCE_SIDES] = "sides",
    [EVIDENCE_BANKS] = "banks", [EVIDENCE_CLUSTERS] = "clusters",
    [EVIDENCE_IN_FLIGHT] = "in-flight", [EVIDENCE_SM_COUNTS] = "sm-counts",
    [EVIDENCE_WORKING_SETS] = "working-sets")

struct evidence evidence_make(enum evidence_method method, uint64_t repeats, double margin)
{
    struct evidence e = {.method = method, .repeats = 1};

    if (repeats > 1)
        e.repeats = repeats < UINT32_MAX ? (uint32_t)repeats : UINT32_MAX;
    if (margin > 0)
        e.margin = margin < 1 ? floor(margin * MARGIN_PARTS) / MARGIN_PARTS : 1;
    return e;
}

struct evidence evidence_weaker(struct evidence a, struct evidence b)
{
    a.repeats = b.repeats < a.repeats ? b.repeats : a.repeats;
    a.margin = b.margin < a.margin ? b.margin : a.margin;
    return a;
}

const char *evidence_fault(struct evidence e, bool known)
{
    const char *fault = NULL;

    if ((unsigned)e.method >= EVIDENCE_METHOD_COUNT)
        fault = "has evidence of a method that does not exist";
    else if (e.method != EVIDENCE_NONE && !known)
        fault = "is absent and has evidence";
    else if ((e.method == EVIDENCE_NONE) != (e.repeats == 0))
        fault = "has evidence without repeats, or repeats without a method";
    else if (!(e.margin >= 0 && e.margin <= 1) || (e.method == EVIDENCE_NONE && e.margin > 0))
        fault = "has evidence with a margin that is not in 0..1";
    return fault;
}
