/* handlers_ui.c: serves the page at /ui/ (docs/ui.md), whose files are constants of the program.
 *
 * Its policy allows only its own script and connections to this daemon, and forbids turning text
 * into markup (require-trusted-types-for). A client that accepts gzip gets the stored compressed
 * bytes. Nothing is copied or compressed when a file is served, and nothing is kept afterwards.
 */
#include "api/decode/decode.h"
#include "api/handlers/handlers.h"
#include "api/handlers/ui_file.h"

#include <stdio.h>
#include <string.h>

#define PLAIN_FIELDS                                                                               \
    {"Content-Security-Policy",                                                                    \
     "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "               \
     "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "                \
     "require-trusted-types-for 'script'; trusted-types 'none'"},                                  \
        {"X-Content-Type-Options", "nosniff"}, {"Referrer-Policy", "no-referrer"},                 \
        {"Cross-Origin-Opener-Policy", "same-origin"},                                             \
    {                                                                                              \
        "Cross-Origin-Resource-Policy", "same-origin"                                              \
    }

static const struct reply_field plain_fields[] = {PLAIN_FIELDS, {NULL, NULL}};
static const struct reply_field gzip_fields[] = {
    PLAIN_FIELDS, {"Content-Encoding", "gzip"}, {NULL, NULL}};

void handlers_ui(struct handlers_context *c, const struct request *request, struct reply *reply)
{
    const char *name = request->segments[1];
    const bool gzip =
        request->accept_encoding && accept_weight(request->accept_encoding, "gzip") > 0;
    const struct ui_file *file = c->ui;
    const unsigned char *text;

    while (file && file->name && strcmp(file->name, name) != 0)
        file++;
    if (!file || !file->name) {
        handlers_need_daemon(request, reply);
        return;
    }
    text = gzip ? file->gzip : file->text;
    reply_document(reply, document_new_static(file->content_type, (const char *)text,
                                              gzip ? file->gzip_bytes : file->text_bytes));
    reply->vary = "Accept-Encoding";
    reply->fields = gzip ? gzip_fields : plain_fields;
}

void handlers_ui_redirect(struct handlers_context *c, const struct request *request,
                          struct reply *reply)
{
    (void)c;
    (void)request;
    reply_empty(reply, HTTP_PERMANENT_REDIRECT);
    /* The link is relative, because a proxy may put a prefix before the path. */
    snprintf(reply->location, sizeof(reply->location), "ui/");
}
