/* name_functions.h: the functions that convert between enumerators and their names, defined from a
 * list of designated initializers. */
#ifndef REACH_BASE_NAME_FUNCTIONS_H
#define REACH_BASE_NAME_FUNCTIONS_H

#include "base/name_of.h"

#include <stdbool.h>
#include <string.h>

/* Defines one function: the name of an enumerator. */
#define NAME_FUNCTION(function, type, ...)                                                         \
    const char *function(type value)                                                               \
    {                                                                                              \
        static const char *const names[] = {__VA_ARGS__};                                          \
                                                                                                   \
        return NAME_OF(names, value);                                                              \
    }

/* Defines PREFIX_name(), and PREFIX_from_name(), which is false, and leaves `*out` unchanged, if no
 * enumerator has the name or it is NULL. */
#define NAME_FUNCTIONS(prefix, type, ...)                                                          \
    static const char *const prefix##_names[] = {__VA_ARGS__};                                     \
                                                                                                   \
    const char *prefix##_name(type value)                                                          \
    {                                                                                              \
        return NAME_OF(prefix##_names, value);                                                     \
    }                                                                                              \
                                                                                                   \
    bool prefix##_from_name(const char *name, type *out)                                           \
    {                                                                                              \
        for (unsigned i = 0; name && i < sizeof(prefix##_names) / sizeof(*prefix##_names); i++) {  \
            if (strcmp(name, prefix##_names[i]) == 0) {                                            \
                *out = (type)i;                                                                    \
                return true;                                                                       \
            }                                                                                      \
        }                                                                                          \
        return false;                                                                              \
    }

#endif
