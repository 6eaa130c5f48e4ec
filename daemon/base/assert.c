/* assert.c: logs a broken invariant and ends the process. */
#include "base/assert.h"

#include "base/log.h"

#include <stdlib.h>

void reach_assert_failed(const char *expression, const char *file, int line)
{
    log_error("%s:%d: broken invariant: %s", file, line, expression);
    abort();
}
