/* fuzz_answer.c: gives any bytes to libreach as the answer of a daemon. The first byte selects the
 * request. In an accepted answer every SM is in an existing window, and the windows cover the
 * allocation. */
#include "fuzz.h"

#include "clients/c/answer.h"

#include <stdlib.h>
#include <string.h>

static void check_windows(const struct reach_windows *windows, uint64_t bytes)
{
    uint64_t covered = 0;

    for (uint32_t w = 0; w < windows->window_count; w++) {
        REACH_ASSERT(windows->window[w].first_byte == covered);
        covered += windows->window[w].length_bytes;
    }
    REACH_ASSERT(windows->window_count == 0 || covered == bytes);
    for (uint32_t sm = 0; sm < 2 * REACH_SM_MAX; sm++) {
        uint32_t window = UINT32_MAX;
        const enum reach_status status = reach_window_of_sm(windows, sm, &window, NULL);
        REACH_ASSERT(status == REACH_OK ? window < windows->window_count : window == UINT32_MAX);
        REACH_ASSERT(status != REACH_OK || sm < windows->sm_slots);
    }
}

static void check(const struct reach_answer *answer)
{
    const struct reach_placement *placement = reach_answer_placement(answer);
    const struct reach_plan *plan = reach_answer_plan(answer);
    const struct reach_scope *scope = reach_answer_scope(answer);
    const struct reach_share *share;

    if (placement)
        check_windows(&placement->windows, placement->bytes);
    if (plan) {
        REACH_ASSERT(plan->option_count > 0 && reach_answer_option(answer, 0)->possible);
        check_windows(&plan->windows, plan->bytes);
    }
    for (uint32_t j = 0; (share = reach_answer_share(answer, j)); j++)
        check_windows(&share->windows, share->bytes);
    if (scope)
        REACH_ASSERT(scope->passes > 0 && scope->scope_bytes > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct {
        char question;
        const char *target;
    } kinds[] = {{'g', "/v1/gpus"},
                 {'u', "/v1/gpus/0"},
                 {'f', "/v1/gpus/0/fingerprint"},
                 {'s', "/v1/gpus/0/scope?bytes=1"},
                 {'p', "/v1/gpus/0/placement"},
                 {'n', "/v1/gpus/0/plan"},
                 {'t', "/v1/gpus/0/split"},
                 {'e', "/v1/gpus/0/explain"}};

    for (size_t i = 0; size > 0 && i < sizeof(kinds) / sizeof(*kinds); i++) {
        const struct answer_origin origin = {.kind = answer_kind_from_target(kinds[i].target),
                                             .http_status = 200,
                                             .source = REACH_FROM_DAEMON};
        struct reach_error error = {.status = REACH_OK};
        struct reach_answer *answer = NULL;
        char *body = kinds[i].question == (char)data[0] ? malloc(size) : NULL;
        if (!body)
            continue;
        memcpy(body, data + 1, size - 1);
        body[size - 1] = '\0';
        if (answer_new(&origin, body, size - 1, &answer, &error) == REACH_OK)
            check(answer);
        else
            REACH_ASSERT(error.status != REACH_OK && error.text[0] != '\0');
        reach_answer_free(answer);
    }
    return 0;
}
