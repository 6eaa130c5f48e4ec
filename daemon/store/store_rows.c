/* store_rows.c: the hashes that tell a corrupt row from a good one. SQLite's own integrity check
 * looks at the structure of its pages and misses most flipped bits of their content.
 *
 * Enums go in by name, so that renumbering one does not make old rows look corrupt. The number that
 * SQLite gives a row on insert is not known when the hash is made: it is in the row's checksum, a
 * second hash over row_hash and what the insert did not know or what changes later
 * (0003_seals.sql).
 */
#include "store/store_rows.h"

#include "base/hash.h"
#include "store/store_sql.h"

uint64_t store_rows_document(const char *document, size_t size)
{
    return hash_bytes(HASH_START, document, size);
}

uint64_t store_rows_document_more(uint64_t h, const void *piece, size_t size)
{
    return hash_bytes(h, piece, size);
}

uint64_t store_rows_run(const struct store_run_row *row, uint64_t document_hash)
{
    uint64_t h = store_sql_hash_text(HASH_START, row->uuid);

    h = store_sql_hash_text(h, row->depth);
    h = store_sql_hash_int(h, row->started_at);
    return store_sql_hash_int(h, (int64_t)document_hash);
}

uint64_t store_rows_observation(const struct store_observation_row *row, uint64_t document_hash)
{
    uint64_t h = store_sql_hash_int(HASH_START, row->run);

    h = store_sql_hash_text(h, probe_kind_name(row->kind));
    h = store_sql_hash_int(h, row->started_at);
    h = store_sql_hash_int(h, (int64_t)row->duration_ns);
    h = store_sql_hash_int(h, (int64_t)row->value_count);
    /* Clean ones are hashed as before there were verdicts: old rows stay good. */
    if (row->verdict != VERDICT_CLEAN)
        h = store_sql_hash_text(h, verdict_name(row->verdict));
    return store_sql_hash_int(h, (int64_t)document_hash);
}

uint64_t store_rows_fingerprint(const struct store_fingerprint_row *row, const char *uuid,
                                uint64_t document_hash)
{
    uint64_t h = store_sql_hash_int(HASH_START, row->run);

    h = store_sql_hash_text(h, uuid);
    h = store_sql_hash_text(h, row->id);
    h = store_sql_hash_text(h, depth_name(row->depth));
    h = store_sql_hash_text(h, origin_name(row->origin));
    h = store_sql_hash_int(h, row->taken_at);
    h = store_sql_hash_int(h, row->duration_ms);
    return store_sql_hash_int(h, (int64_t)document_hash);
}
