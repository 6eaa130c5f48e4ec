/* names.c: the names in requests and answers. */
#include "types/name_of.h"
#include "planner/explain.h"
#include "planner/placement.h"
#include "planner/requests.h"
#include "planner/strategy.h"

NAME_FUNCTION(advice_name,
              enum advice, [ADVICE_NOTHING_TO_DO] = "nothing-to-do", [ADVICE_SCOPES] = "scopes",
              [ADVICE_WINDOWS] = "windows", [ADVICE_NO_LIMIT_SEEN] = "no-limit-seen",
              [ADVICE_NOT_ENOUGH_GROUPS] = "not-enough-groups")

NAME_FUNCTION(strategy_name,
              enum strategy, [STRATEGY_NAIVE] = "naive", [STRATEGY_SCOPES] = "scopes",
              [STRATEGY_WINDOWS] = "windows", [STRATEGY_FILTERED_WINDOWS] = "filtered-windows",
              [STRATEGY_PARTITIONED_WINDOWS] = "partitioned-windows", [STRATEGY_SIDES] = "sides",
              [STRATEGY_SORTED] = "sorted", [STRATEGY_CPU_GATHER] = "cpu-gather")

NAME_FUNCTION(bound_name, enum bound, [BOUND_UNKNOWN] = "unknown", [BOUND_MEMORY] = "memory",
              [BOUND_TRANSLATION] = "translation", [BOUND_INPUT] = "input", [BOUND_SCAN] = "scan",
              [BOUND_LAUNCH] = "launch")

NAME_FUNCTION(
    basis_name,
    enum basis, [BASIS_NONE] = "none", [BASIS_MEASURED] = "measured", [BASIS_BETWEEN] = "between",
    [BASIS_SCALED] = "scaled", [BASIS_JOB] = "job", [BASIS_SIMULATED] = "simulated")

enum basis basis_of_origin(const struct fingerprint *fp, enum basis b)
{
    return b == BASIS_MEASURED && fp->gpu.origin == ORIGIN_SIMULATED ? BASIS_SIMULATED : b;
}

NAME_FUNCTION(bottleneck_name, enum bottleneck, [BOTTLENECK_CANNOT_SAY] = "cannot-say",
              [BOTTLENECK_TRANSLATION] = "translation", [BOTTLENECK_PARTLY] = "partly",
              [BOTTLENECK_NOT] = "not-translation")

NAME_FUNCTION(fit_reuse_name, enum fit_reuse, [FIT_SAME] = "same", [FIT_OWN] = "own")

NAME_FUNCTION(memory_location_name, enum memory_location, [LOCATION_ANY] = "any",
              [LOCATION_DEVICE] = "device", [LOCATION_HOST] = "host")
