/* assert.c: the last line of a process that found its own invariant broken. */
#include "base/assert.h"

#include "base/log.h"

#include <stdlib.h>

void reach_assert_failed(const char *expression, const char *file, int line)
{
    log_error("%s:%d: broken invariant: %s", file, line, expression);
    abort();
}
