/* handlers_compare.c: is this GPU normal? Its numbers among those of the reference set. */
#include "api/handlers/handlers.h"

#include "api/encode/encode.h"
#include "compare/compare.h"

void handlers_compare(struct handlers_context *c, const struct request *request,
                      struct reply *reply)
{
    struct comparison comparison;
    struct err err;
    size_t bytes = 0;
    char *text;

    if (!handlers_check_measured(c, request, HTTP_CONFLICT, reply))
        return;
    if (comparison_make(c->reference, &c->gpu->fingerprint, &comparison, &err) == STATUS_OK) {
        text = encode_comparison(c->gpu, &comparison, &bytes);
        reply_document(reply, document_new_text(text, bytes, NULL));
    } else {
        reply_err(reply, request, &err);
    }
    comparison_free(&comparison);
}
