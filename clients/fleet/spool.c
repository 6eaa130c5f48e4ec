/* spool.c: see spool.h. */
#include "clients/fleet/spool.h"

#include "base/json_out.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct spool {
    FILE *file;
    uint64_t bytes; /* written */
};

enum status spool_open(struct spool **out, struct err *err)
{
    struct spool *const spool = calloc(1, sizeof(*spool));

    *out = NULL;
    if (!spool)
        return err_set(err, STATUS_NO_MEMORY, "no memory for a survey");
    spool->file = tmpfile();
    if (!spool->file) {
        free(spool);
        return err_set(err, STATUS_IO, "cannot make a temporary file: %s", strerror(errno));
    }
    *out = spool;
    return STATUS_OK;
}

void spool_close(struct spool *take)
{
    if (!take)
        return;
    (void)fclose(take->file);
    free(take);
}

enum status spool_put(struct spool *spool, const json_t *document, struct spool_place *out,
                      struct err *err)
{
    size_t bytes;
    char *const text = json_out_render(document, &bytes);
    enum status s = STATUS_OK;

    if (!text)
        return err_set(err, STATUS_NO_MEMORY, "no memory for a fingerprint");
    bytes--; /* the line feed */
    *out = (struct spool_place){.at = spool->bytes, .bytes = (uint32_t)bytes};
    if (fseeko(spool->file, (off_t)spool->bytes, SEEK_SET) != 0 ||
        fwrite(text, 1, bytes, spool->file) != bytes)
        s = err_set(err, STATUS_IO, "cannot write to a temporary file: %s", strerror(errno));
    spool->bytes += bytes;
    free(text);
    return s;
}

enum status spool_get(struct spool *spool, const struct spool_place *place, char **out,
                      struct err *err)
{
    char *const text = malloc((size_t)place->bytes + 1);

    *out = NULL;
    if (!text)
        return err_set(err, STATUS_NO_MEMORY, "no memory for a fingerprint");
    if (fseeko(spool->file, (off_t)place->at, SEEK_SET) != 0 ||
        fread(text, 1, place->bytes, spool->file) != place->bytes) {
        free(text);
        return err_set(err, STATUS_IO, "cannot read from a temporary file");
    }
    text[place->bytes] = '\0';
    *out = text;
    return STATUS_OK;
}
