/* name_of.h: the name of an enumerator, from the table of names of its type. Shared with libreach,
 * which must not end the process that it is linked into: a value outside of the table is "invalid".
 */
#ifndef REACH_BASE_NAME_OF_H
#define REACH_BASE_NAME_OF_H

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

/* Defines PREFIX_name(), and PREFIX_from_name(), which is false, and leaves `*out` unchanged, if no
 * enumerator has the name or it is NULL. Needs stdbool.h and string.h. */
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
