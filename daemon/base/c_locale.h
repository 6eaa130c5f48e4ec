/* c_locale.h: sets the C locale for a block of code. libreach runs in programs that call
 * setlocale(). A locale with a decimal comma changes the results of printf, strtod, strcasecmp and
 * jansson.
 *
 *     C_LOCALE_HERE;
 *
 * at the start of a block sets the C locale of this thread and restores the caller's locale at
 * every exit of the block. Blocks may be nested. If memory runs out, the locale does not change. */
#pragma once

#include <locale.h>

static inline locale_t c_locale_enter(void)
{
    return uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
}

static inline void c_locale_leave(const locale_t *before)
{
    const locale_t used = uselocale(*before);

    if (used != *before)
        freelocale(used);
}

#define C_LOCALE_HERE                                                                              \
    const locale_t c_locale_before __attribute__((cleanup(c_locale_leave), unused)) =              \
        c_locale_enter()
