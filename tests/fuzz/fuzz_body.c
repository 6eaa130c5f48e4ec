/* fuzz_body.c: reads any bytes as a part of a request: a JSON body, a target, or a list field. The
 * first byte selects the part. */
#include "fuzz.h"

#include "api/handlers/auth.h"
#include "api/decode/decode.h"
#include "api/handlers/reply.h"
#include "api/decode/request.h"

#include <stdlib.h>
#include <string.h>

static void body(const char *text, size_t size)
{
    struct request request = {.content_type = "application/json"};
    enum depth depth = DEPTH_COUNT;
    struct problem problem = {.detail = ""};

    if (request_add_body(&request, text, size) == STATUS_OK && !request.body_too_large) {
        if (decode_depth_body(&request, &depth, &problem))
            REACH_ASSERT((unsigned)depth <= DEPTH_COUNT);
        else
            REACH_ASSERT(problem.detail[0] != '\0');
    }
    request_clear(&request);
}

static void target(const char *text)
{
    struct request request = {.method = "GET"};
    struct err err = {0};
    struct placement_request placement;

    if (request_parse(&request, text, &err) == STATUS_OK) {
        REACH_ASSERT(request.segment_count <= REQUEST_MAX_SEGMENTS);
        for (uint32_t i = 0; i < request.param_count; i++)
            REACH_ASSERT(request_param(&request, request.params[i].name));
        if (!decode_planner_request(&request, PLANNER_PLACEMENT, &placement, &err))
            REACH_ASSERT(err.text[0] != '\0');
    } else {
        REACH_ASSERT(err.text[0] != '\0');
    }
    request_clear(&request);
}

static void fields(const char *text)
{
    struct request request = {.method = "GET"};

    REACH_ASSERT(accept_weight(text, "text/csv") >= ACCEPT_NOT);
    (void)reply_tag_matches(text, "\"0123456789abcdef\"");
    REACH_ASSERT(!auth_is_allowed("a-token-that-nobody-guesses", text) ||
                 strstr(text, "a-token-that-nobody-guesses"));
    request_take_id(&request, text);
    REACH_ASSERT(strlen(request.trace) < REQUEST_ID_BYTES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text;

    if (size == 0)
        return 0;
    text = malloc(size);
    REACH_ASSERT(text);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    if (data[0] % 3 == 0)
        body(text, size - 1);
    else if (data[0] % 3 == 1)
        target(text);
    else
        fields(text);
    free(text);
    return 0;
}
