/* check.c: checks the relations between the fields of an answer before a job relies on it. Windows
 * must be contiguous and cover the allocation, every SM must be in an existing window, and each
 * possible strategy must have its fields. */
#include "clients/c/answer.h"

#include <inttypes.h>

/* Fills the error and returns false. */
#define wrong(error, field, ...)                                                                   \
    (fail_text(error, REACH_PROTOCOL,                                                              \
               "unexpected response from reachd: field " field ": " __VA_ARGS__),                  \
     false)

static bool wrong_ranges(struct reach_error *error, const char *field, uint32_t k, uint32_t i)
{
    fail_text(
        error, REACH_PROTOCOL,
        "unexpected response from reachd: field %s: part %u of allocation %u does not begin at "
        "the end of the one before it, or they do not cover the allocations",
        field, k, i);
    return false;
}

/* Checks that every SM of the table is in an existing window. The table must have the same number
 * of SMs in each window that the window reports. */
static bool check_table(const struct reach_windows *windows, struct reach_error *error)
{
    uint32_t count[REACH_WINDOW_MAX] = {0};

    for (uint32_t sm = 0; sm < windows->sm_slots; sm++) {
        const int16_t w = windows->window_of_sm[sm];
        if (w == REACH_IDLE)
            continue;
        if (w < 0 || (uint32_t)w >= windows->window_count)
            return wrong(error, "window_of_sm", "has SM %u in window %d, and there are %u", sm, w,
                         windows->window_count);
        count[w]++;
    }
    for (uint32_t w = 0; w < windows->window_count; w++) {
        if (count[w] == 0 || count[w] != windows->window[w].sm_count)
            return wrong(error, "windows", "window %u has %u SMs, and the table has %u in it", w,
                         windows->window[w].sm_count, count[w]);
    }
    return true;
}

/* Checks that the ranges of each allocation are contiguous from 0 and contain `bytes` in total. */
static bool check_ranges(const struct reach_extent *ranges, uint32_t count, uint32_t allocations,
                         uint64_t bytes, const char *field, struct reach_error *error)
{
    uint64_t all = 0;

    for (uint32_t i = 0; i < allocations; i++) {
        uint64_t next = 0;
        for (uint32_t k = 0; k < count; k++) {
            const struct reach_extent *r = &ranges[(size_t)k * allocations + i];
            if (r->first_byte != next || r->length_bytes > bytes - next)
                return wrong_ranges(error, field, k, i);
            next += r->length_bytes;
        }
        all += next;
    }
    return all == bytes || wrong_ranges(error, field, count, 0);
}

/* Checks that the windows are contiguous and cover [0, bytes). */
static bool check_windows(const struct reach_windows *windows, uint64_t bytes,
                          struct reach_error *error)
{
    uint64_t next = 0;

    for (uint32_t w = 0; w < windows->window_count; w++) {
        const struct reach_window *window = &windows->window[w];
        if (window->first_byte != next || window->length_bytes == 0 ||
            window->length_bytes > bytes - next)
            return wrong(error, "windows",
                         "window %u does not begin at the end of the one before it, or does not "
                         "end within the allocation",
                         w);
        next += window->length_bytes;
    }
    if (windows->window_count > 0 && next != bytes)
        return wrong(error, "windows", "they do not cover the allocation");
    if (windows->window_count > 0 &&
        !check_ranges(windows->part, windows->window_count, windows->allocation_count, bytes,
                      "windows", error))
        return false;
    return check_table(windows, error);
}

static bool check_scopes(const struct reach_scopes *s, uint64_t passes, uint64_t bytes,
                         struct reach_error *error)
{
    if (s->scope_count == 0) /* the list is empty or was too long */
        return true;
    if (s->scope_count != passes)
        return wrong(error, "scopes", "there are %u, and %" PRIu64 " passes", s->scope_count,
                     passes);
    return check_ranges(s->range, s->scope_count, s->allocation_count, bytes, "scopes", error);
}

static bool check_scope(const struct reach_scope *s, struct reach_error *error)
{
    if (s->scope_bytes == 0 || s->passes == 0 || s->scope_bytes < s->bytes / s->passes)
        return wrong(error, "scope_bytes",
                     "%" PRIu64 " bytes do not fit %" PRIu64 " passes of %" PRIu64, s->bytes,
                     s->passes, s->scope_bytes);
    return check_scopes(&s->scopes, s->passes, s->bytes, error);
}

static bool check_options(const struct answer_content *answer, struct reach_error *error)
{
    const struct reach_plan *plan = &answer->plan;

    if (answer->count == 0 || !answer->options[0].possible)
        return wrong(error, "options", "nothing is possible");
    for (uint32_t i = 0; i < answer->count; i++) {
        const struct reach_option *o = &answer->options[i];
        if (o->possible && o->strategy == REACH_SCOPES &&
            (plan->passes == 0 ||
             (plan->allocation_count == 0 && plan->scope_bytes < plan->bytes / plan->passes)))
            return wrong(error, "scope", "scopes are possible, and there is none");
        if (o->possible && o->strategy >= REACH_WINDOWS &&
            o->strategy <= REACH_PARTITIONED_WINDOWS && plan->windows.window_count == 0)
            return wrong(error, "placement", "windows are possible, and there are none");
    }
    return check_scopes(&plan->scopes, plan->passes, plan->bytes, error) &&
           check_windows(&plan->windows, plan->bytes, error);
}

/* Checks that each job has its windows, and that no SM works for two jobs. */
static bool check_shares(const struct answer_content *answer, struct reach_error *error)
{
    bool taken[REACH_SM_MAX] = {false};

    for (uint32_t j = 0; j < answer->count; j++) {
        const struct reach_windows *windows = &answer->shares[j].windows;
        if (windows->window_count == 0)
            return wrong(error, "jobs", "job %u has no window", j);
        if (!check_windows(windows, answer->shares[j].bytes, error))
            return false;
        for (uint32_t sm = 0; sm < windows->sm_slots; sm++) {
            if (windows->window_of_sm[sm] == REACH_IDLE)
                continue;
            if (taken[sm])
                return wrong(error, "jobs", "SM %u works for two of them", sm);
            taken[sm] = true;
        }
    }
    return true;
}

enum reach_status answer_check(const struct answer_content *answer, struct reach_error *error)
{
    bool good = true;

    if (answer->kind == ANSWER_SCOPE)
        good = check_scope(&answer->scope, error);
    else if (answer->kind == ANSWER_PLACEMENT)
        good = check_windows(&answer->placement.windows, answer->placement.bytes, error);
    else if (answer->kind == ANSWER_PLAN)
        good = check_options(answer, error);
    else if (answer->kind == ANSWER_SPLIT)
        good = check_shares(answer, error);
    return good ? REACH_OK : REACH_PROTOCOL;
}
