/* store_rows.h: the columns that the checksums of a row cover, in SQL that writers and readers
 * share.
 *
 * reach_row_hash (store_sql.h) covers the columns that never change. Enums are hashed by name, so
 * that renumbering one does not make old rows look corrupt. The hash leaves out a verdict of clean,
 * so that it is the same for rows without a verdict. The number that SQLite gives a row on insert
 * is not known when that hash is made. `checksum` is a second hash over row_hash, that number, and
 * the columns that change later (0003_checksums.sql).
 */
#pragma once

#define RUN_CHECKSUM         "reach_checksum(id, row_hash, state, ended_at, failure, failure_text)"
#define OBSERVATION_CHECKSUM "reach_checksum(id, row_hash)"

/* These expressions are 1 if the columns of a row are unchanged since they were written. The
 * document is checked separately, by document_hash. */
#define RUN_IS_GOOD                                                                                \
    "(row_hash = reach_row_hash(uuid, depth, started_at, document_hash) "                          \
    "AND checksum = " RUN_CHECKSUM ")"
#define OBSERVATION_IS_GOOD                                                                        \
    "(row_hash = reach_row_hash(run, kind, started_at, duration_ns, value_count, "                 \
    "CASE WHEN verdict = 'clean' THEN NULL ELSE coalesce(verdict, '') END, document_hash) "        \
    "AND checksum = " OBSERVATION_CHECKSUM ")"
#define FINGERPRINT_IS_GOOD                                                                        \
    "(row_hash = reach_row_hash(run, uuid, id, depth, origin, taken_at, duration_ms, "             \
    "document_hash))"
/* If a document is NULL, it is the same as the fingerprint of the same run (0005_served.sql). */
#define KNOWLEDGE_CHECKSUM "reach_checksum(number, row_hash)"
#define KNOWLEDGE_IS_GOOD                                                                          \
    "(" FINGERPRINT_IS_GOOD " AND checksum = " KNOWLEDGE_CHECKSUM " AND (document IS NOT NULL "    \
    "OR EXISTS (SELECT 1 FROM fingerprint f WHERE f.run = knowledge.run AND f.id = knowledge.id "  \
    "AND f.document_hash = knowledge.document_hash)))"
#define DAMAGE_IS_GOOD "(checksum = reach_checksum(found_at, kind, run, uuid))"
