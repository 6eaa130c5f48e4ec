/* placement_fixture.h: makes fingerprints for tests of the planner, and checks the invariants of
 * every answer. */
#pragma once

#include "planner/strategy.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

/* Assigns SMs to groups in turn, like on real chips: group g gets sizes[g] SMs. */
void placement_make_groups(struct fingerprint *fp, const uint32_t *sizes, uint32_t groups);
void placement_make_limits(struct fingerprint *fp, uint64_t reach, uint64_t entry);
void placement_make_empty(struct fingerprint *fp);
/* Makes an invented chip with 132 SMs in 8 groups and 64 GiB of reach. */
void placement_make_large(struct fingerprint *fp);

/* These functions check the invariants of every plan. */
void placement_check_cover(const struct placement_answer *a, uint64_t bytes);
void placement_check_windows(const struct fingerprint *fp, const struct placement_answer *a,
                             uint64_t bytes, uint64_t unit);
void placement_check_sms(const struct fingerprint *fp, const struct placement_answer *a);
void placement_check_balance(const struct fingerprint *fp, const struct placement_answer *a);

/* Returns the planner's option of this strategy, at any rank. */
const struct strategy_option *placement_option(const struct strategy_answer *a, enum strategy s);

/* Compares the strategy of an option by name, so that a failure prints both names. */
#define placement_assert_recommends(o, expected)                                                   \
    assert_string_equal(strategy_name((o)->strategy), strategy_name(expected))
