/* encode_csv.h: one observation as a table, for spreadsheets and data frames. */
#ifndef REACH_API_ENCODE_CSV_H
#define REACH_API_ENCODE_CSV_H

#include <jansson.h>
#include <stddef.h>

/* The text, which the caller frees; NULL without memory, or where the document is not one that
 * observation_to_json wrote. */
char *encode_csv(const json_t *observation, size_t *out_bytes);

#endif
