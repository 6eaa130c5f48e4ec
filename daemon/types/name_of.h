/* name_of.h: enumerators and their names, by the table of names of their type. It is shared with
 * libreach, which must not end its process. So the name of a value outside of the table is
 * "invalid". */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define NAME_OF(names, value)                                                                      \
    ((unsigned)(value) < sizeof(names) / sizeof(*(names)) ? (names)[value] : "invalid")

/* Defines the function that names the enumerators of a type, from designated initializers. */
#define NAME_FUNCTION(function, type, ...)                                                         \
    const char *function(type value)                                                               \
    {                                                                                              \
        static const char *const names[] = {__VA_ARGS__};                                          \
                                                                                                   \
        return NAME_OF(names, value);                                                              \
    }

/* Defines <prefix>_name like NAME_FUNCTION, and <prefix>_from_name like FROM_NAME. */
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
        return FROM_NAME(prefix##_names, name, out);                                               \
    }

/* Sets `*out` to the enumerator called `name`. Returns false if there is none or `name` is NULL;
 * `*out` is then unchanged. */
#define FROM_NAME(names, name, out)                                                                \
    name_find(names, sizeof(names) / sizeof(*(names)), name, (int *)(out))

static inline bool name_find(const char *const *names, size_t count, const char *name, int *out)
{
    for (size_t i = 0; name && i < count; i++) {
        if (strcmp(name, names[i]) == 0) {
            *out = (int)i;
            return true;
        }
    }
    return false;
}
