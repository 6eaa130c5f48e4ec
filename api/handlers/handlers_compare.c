/* handlers_compare.c: compares the numbers of a GPU with the numbers of the chips in the daemon's
 * reference sets. */
#include "api/handlers/handlers.h"

#include "api/encode/encode.h"

enum { COMPARISON_ROOM = 64 << 10 };

void handlers_compare(struct handlers_context *c, const struct request *request,
                      struct reply *reply)
{
    struct json_writer t;
    struct err err;

    if (!handlers_check_measured(c, request, HTTP_CONFLICT, reply))
        return;
    encode_begin(&t, c->gpu, COMPARISON_ROOM);
    const enum status status =
        c->backend->compare(c->backend->self, &c->gpu->fingerprint, &t, &err);

    json_writer_close(&t, '}');
    if (status == STATUS_OK) {
        reply_document(reply, document_new(&t, NULL));
        return;
    }
    json_writer_discard(&t);
    reply_err(reply, request, &err);
}
