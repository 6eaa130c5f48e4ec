/* json_columns.c: see json_columns.h. */
#include "base/json_columns.h"

#include <stdbool.h>
#include <stdint.h>

/* Appends a value as element `row`, behind nulls for the rows without one. */
static bool put_cell(json_t *columns, const char *name, size_t row, json_t *value)
{
    json_t *column = json_object_get(columns, name);
    bool fine = true;

    if (!column) {
        column = json_array();
        fine = json_object_set_new(columns, name, column) == 0;
    }
    while (fine && json_array_size(column) < row)
        fine = json_array_append_new(column, json_null()) == 0;
    return fine && json_array_append(column, value) == 0;
}

json_t *json_columns_from_rows(const json_t *rows)
{
    json_t *const columns = json_object();
    bool fine = columns && rows;
    json_t *value;
    const char *name;
    json_t *object;
    size_t i;

    json_array_foreach(rows, i, object)
    {
        json_object_foreach(object, name, value)
        {
            fine = fine && (json_is_null(value) || put_cell(columns, name, i, value));
        }
    }
    if (fine)
        return columns;
    json_decref(columns);
    return NULL;
}

/* Gives each row its value of this column, and adds the rows that are missing. */
static bool put_column(json_t *rows, const char *name, const json_t *column)
{
    bool fine = json_is_array(column);
    json_t *value;
    size_t i;

    json_array_foreach(column, i, value)
    {
        if (fine && i == json_array_size(rows))
            fine = json_array_append_new(rows, json_object()) == 0;
        if (fine && !json_is_null(value))
            fine = json_object_set(json_array_get(rows, i), name, value) == 0;
    }
    return fine;
}

json_t *json_columns_to_rows(const json_t *columns)
{
    json_t *const rows = json_array();
    bool fine = rows != NULL;
    const char *name;
    json_t *column;

    json_object_foreach((json_t *)(uintptr_t)columns, name, column)
    {
        fine = fine && put_column(rows, name, column);
    }
    if (fine)
        return rows;
    json_decref(rows);
    return NULL;
}
