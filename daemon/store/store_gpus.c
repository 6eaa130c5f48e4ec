/* store_gpus.c: which GPUs the state file knows. */
#include "store/store_private.h"

#include "store/store_sql.h"

#include <stdio.h>
#include <stdlib.h>

/* The UUIDs that have fingerprints, good or not. */
static enum status list_uuids(struct store *store, struct gpu_identity *out, uint32_t max,
                              uint32_t *out_count, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    bool more = true;
    enum status s;

    pthread_mutex_lock(&store->reading->mutex);
    s = store_sql_query(store->reading->db, "SELECT DISTINCT uuid FROM fingerprint ORDER BY uuid",
                        NULL, 0, &stmt, err);
    while (s == STATUS_OK && *out_count < max) {
        s = store_sql_next(stmt, &more, err);
        if (s != STATUS_OK || !more)
            break;
        const unsigned char *uuid = sqlite3_column_text(stmt, 0);
        snprintf(out[*out_count].uuid, sizeof(out->uuid), "%s", uuid ? (const char *)uuid : "");
        (*out_count)++;
    }
    sqlite3_finalize(stmt);
    pthread_mutex_unlock(&store->reading->mutex);
    return s;
}

enum status store_list_gpus(struct store *store, struct gpu_identity *out, uint32_t max,
                            uint32_t *out_count, struct err *err)
{
    struct fingerprint *fp = calloc(1, sizeof(*fp));
    uint32_t listed = 0;
    enum status s;

    *out_count = 0;
    if (!fp)
        return err_set(err, STATUS_NO_MEMORY, "no memory for a fingerprint");
    s = list_uuids(store, out, max, &listed, err);
    for (uint32_t i = 0; i < listed && s == STATUS_OK; i++) {
        s = store_current_fingerprint(store, out[i].uuid, fp, err);
        if (s == STATUS_OK)
            out[(*out_count)++] = fp->gpu;
        else if (s == STATUS_NOT_FOUND) /* all of its rows are damaged */
            s = STATUS_OK;
    }
    free(fp);
    return s;
}
