/* store_rows.h: what a row's hashes cover. Writers and readers must agree to the byte. */
#ifndef REACH_STORE_STORE_ROWS_H
#define REACH_STORE_STORE_ROWS_H

#include "store/store.h"

#include <stddef.h>

/* The columns of a run that never change. */
struct store_run_row {
    const char *uuid;
    const char *depth;
    int64_t started_at;
};

uint64_t store_rows_document(const char *document, size_t size);
/* The same in pieces: `h` is store_rows_document("", 0) at first. */
uint64_t store_rows_document_more(uint64_t h, const void *piece, size_t size);
uint64_t store_rows_run(const struct store_run_row *row, uint64_t document_hash);
uint64_t store_rows_observation(const struct store_observation_row *row, uint64_t document_hash);
uint64_t store_rows_fingerprint(const struct store_fingerprint_row *row, const char *uuid,
                                uint64_t document_hash);

#endif
