/* name_of.h: the name of an enumerator, from the table of names of its type. Shared with libreach,
 * which must not end the process that it is linked into: a value outside of the table is "invalid".
 */
#ifndef REACH_BASE_NAME_OF_H
#define REACH_BASE_NAME_OF_H

#define NAME_OF(names, value)                                                                      \
    ((unsigned)(value) < sizeof(names) / sizeof(*(names)) ? (names)[value] : "invalid")

#endif
