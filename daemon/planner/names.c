/* names.c: the names in requests and answers. */
#include "base/name_of.h"
#include "planner/explain.h"
#include "planner/placement.h"
#include "planner/strategy.h"

#include <string.h>

const char *advice_name(enum advice a)
{
    static const char *const names[] = {[ADVICE_NOTHING_TO_DO] = "nothing-to-do",
                                        [ADVICE_SCOPES] = "scopes",
                                        [ADVICE_WINDOWS] = "windows",
                                        [ADVICE_NO_LIMIT_SEEN] = "no-limit-seen",
                                        [ADVICE_NOT_ENOUGH_GROUPS] = "not-enough-groups"};

    return NAME_OF(names, a);
}

static const char *const strategy_names[STRATEGY_COUNT] = {
    [STRATEGY_NAIVE] = "naive",
    [STRATEGY_SCOPES] = "scopes",
    [STRATEGY_WINDOWS] = "windows",
    [STRATEGY_FILTERED_WINDOWS] = "filtered-windows",
    [STRATEGY_PARTITIONED_WINDOWS] = "partitioned-windows"};

const char *strategy_name(enum strategy s)
{
    return NAME_OF(strategy_names, s);
}

bool strategy_from_name(const char *name, enum strategy *out)
{
    for (unsigned i = 0; i < STRATEGY_COUNT; i++) {
        if (strcmp(name, strategy_names[i]) == 0) {
            *out = (enum strategy)i;
            return true;
        }
    }
    return false;
}

const char *bound_name(enum bound b)
{
    static const char *const names[] = {[BOUND_UNKNOWN] = "unknown",
                                        [BOUND_MEMORY] = "memory",
                                        [BOUND_TRANSLATION] = "translation",
                                        [BOUND_INPUT] = "input",
                                        [BOUND_SCAN] = "scan"};

    return NAME_OF(names, b);
}

const char *basis_name(enum basis b)
{
    static const char *const names[] = {[BASIS_NONE] = "none",
                                        [BASIS_MEASURED] = "measured",
                                        [BASIS_BETWEEN] = "between",
                                        [BASIS_SCALED] = "scaled",
                                        [BASIS_JOB] = "job"};

    return NAME_OF(names, b);
}

const char *bottleneck_name(enum bottleneck c)
{
    static const char *const names[] = {[BOTTLENECK_CANNOT_SAY] = "cannot-say",
                                        [BOTTLENECK_TRANSLATION] = "translation",
                                        [BOTTLENECK_PARTLY] = "partly",
                                        [BOTTLENECK_NOT] = "not-translation"};

    return NAME_OF(names, c);
}
