/* assert.h: defines an assertion that stays on in every build. It logs file and line, then aborts:
 * a daemon that has lost an invariant must not answer any more. It is for broken invariants of our
 * own code only, never for input. */
#pragma once

_Noreturn void reach_assert_failed(const char *expression, const char *file, int line);

#define REACH_ASSERT(x) ((x) ? (void)0 : reach_assert_failed(#x, __FILE__, __LINE__))
