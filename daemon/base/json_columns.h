/* json_columns.h: a shorter form of a list of objects, which has each name once:
 *
 *     [{"x": 1, "y": 2}, {"x": 3}]     {"x": [1, 3], "y": [2]}
 *
 * Null is the same as a missing value: in a column before its last value, and not in a row. Pure;
 * any thread. All functions return a new reference, which shares values with the argument, and NULL
 * without memory or argument.
 */
#ifndef REACH_BASE_JSON_COLUMNS_H
#define REACH_BASE_JSON_COLUMNS_H

#include <jansson.h>

/* The columns of a list of objects. */
json_t *json_columns_from_rows(const json_t *rows);
/* The list again. NULL also if a column is not an array. */
json_t *json_columns_to_rows(const json_t *columns);

#endif
