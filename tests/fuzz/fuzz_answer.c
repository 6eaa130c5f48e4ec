/* fuzz_answer.c: what a daemon, or somebody who says that he is one, answers to libreach. The first
 * byte says to which question. What is taken sends no SM to a window that is not there, and its
 * windows cover the allocation. */
#include "fuzz.h"

#include "clients/c/answer.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static union {
    struct reach_gpus gpus;
    struct reach_gpu gpu;
    struct reach_fingerprint fingerprint;
    struct reach_scope scope;
    struct reach_placement placement;
    struct reach_plan plan;
    struct reach_split split;
    struct reach_explanation explanation;
} answer;

static void check_windows(const struct reach_windows *windows, uint64_t bytes)
{
    uint64_t covered = 0;

    for (uint32_t w = 0; w < windows->window_count; w++) {
        REACH_ASSERT(windows->window[w].first_byte == covered);
        covered += windows->window[w].length_bytes;
    }
    REACH_ASSERT(windows->window_count == 0 || covered == bytes);
    for (uint32_t sm = 0; sm < 2 * REACH_SM_SLOTS; sm++) {
        uint32_t window = UINT32_MAX;
        const enum reach_status status = reach_window_of_sm(windows, sm, &window, NULL);
        REACH_ASSERT(status == REACH_OK ? window < windows->window_count : window == UINT32_MAX);
        REACH_ASSERT(status != REACH_OK || sm < windows->sm_slots);
    }
}

static void check(char question)
{
    if (question == 'p') {
        check_windows(&answer.placement.windows, answer.placement.bytes);
    } else if (question == 'n') {
        REACH_ASSERT(answer.plan.option_count > 0 && answer.plan.options[0].possible);
        check_windows(&answer.plan.windows, answer.plan.bytes);
    } else if (question == 't') {
        for (uint32_t j = 0; j < answer.split.job_count; j++)
            check_windows(&answer.split.parts[j].windows, answer.split.parts[j].bytes);
    } else if (question == 's') {
        REACH_ASSERT(answer.scope.passes > 0 && answer.scope.scope_bytes > 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct {
        char question;
        answer_fn *read;
    } kinds[] = {{'g', answer_gpus},  {'u', answer_gpu},       {'f', answer_fingerprint},
                 {'s', answer_scope}, {'p', answer_placement}, {'n', answer_plan},
                 {'t', answer_split}, {'e', answer_explain}};
    struct reach_error error = {.status = REACH_OK};
    json_t *json = size > 0 ? json_loadb((const char *)data + 1, size - 1, JSON_REJECT_DUPLICATES,
                                         &(json_error_t){0})
                            : NULL;

    for (size_t i = 0; json && i < sizeof(kinds) / sizeof(*kinds); i++) {
        if (kinds[i].question != (char)data[0])
            continue;
        memset(&answer, 0, sizeof(answer));
        if (kinds[i].read(json, &answer, &error) == REACH_OK)
            check(kinds[i].question);
        else
            REACH_ASSERT(error.status != REACH_OK && error.text[0] != '\0');
    }
    json_decref(json);
    return 0;
}
