/* comma_locale.h: a locale with a decimal comma, which a test makes for itself. */
#pragma once

#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* Makes the locale in a new folder and sets it for the program. Returns false if localedef is
 * missing. */
static inline bool comma_locale_set(void)
{
    char folder[] = "/tmp/reach-locale-XXXXXX";
    char command[256];
    bool is_set;

    if (!mkdtemp(folder))
        return false;
    (void)snprintf(
        command, sizeof(command),
        "printf 'LC_NUMERIC\\ndecimal_point \",\"\\nthousands_sep \".\"\\ngrouping 3;3\\n"
        "END LC_NUMERIC\\n' | localedef -c -i /dev/stdin %s/comma >%s/log 2>&1",
        folder, folder);
    (void)!system(command); /* localedef warns about the categories that are missing */
    (void)setenv("LOCPATH", folder, 1);
    is_set = setlocale(LC_NUMERIC, "comma") != NULL;
    (void)snprintf(command, sizeof(command), "rm -r %s", folder);
    (void)!system(command);
    return is_set;
}
