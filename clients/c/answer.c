/* answer.c: makes answers, and has the accessors of reach.h. */
#include "clients/c/answer.h"

#include "base/c_locale.h"
#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

enum answer_kind answer_kind_from_target(const char *target)
{
    static const char prefix[] = "/v1/gpus";
    static const struct {
        const char *name;
        enum answer_kind kind;
    } kinds[] = {{"fingerprint", ANSWER_FINGERPRINT},
                 {"scope", ANSWER_SCOPE},
                 {"placement", ANSWER_PLACEMENT},
                 {"plan", ANSWER_PLAN},
                 {"split", ANSWER_SPLIT},
                 {"explain", ANSWER_EXPLANATION}};
    const char *at = target + sizeof(prefix) - 1;
    size_t length;

    if (strncmp(target, prefix, sizeof(prefix) - 1) != 0)
        return ANSWER_RAW;
    if (*at == '\0' || *at == '?')
        return ANSWER_GPUS;
    if (*at != '/')
        return ANSWER_RAW;
    at += 1 + strcspn(at + 1, "/?");
    if (*at != '/')
        return ANSWER_GPU;
    length = strcspn(++at, "?");
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        if (strlen(kinds[i].name) == length && strncmp(at, kinds[i].name, length) == 0)
            return kinds[i].kind;
    }
    return ANSWER_RAW;
}

enum reach_status answer_share(const struct answer_origin *origin, struct answer_content *content,
                               struct reach_answer **out, struct reach_error *error)
{
    struct reach_answer *answer = calloc(1, sizeof(*answer));

    *out = answer;
    if (!answer)
        return fail_with(error, REACH_NO_MEMORY, "cannot allocate an answer: out of memory");
    answer_content_hold(content);
    answer->content = content;
    answer->http_status = origin->http_status;
    answer->source = origin->source;
    answer->confirmed_ms = origin->confirmed_ms;
    answer->provenance = content->provenance;
    return REACH_OK;
}

enum reach_status answer_new(const struct answer_origin *origin, char *take, size_t bytes,
                             struct reach_answer **out, struct reach_error *error)
{
    enum { HTTP_OK = 200 };
    struct answer_content *content = calloc(1, sizeof(*content));
    enum reach_status status = REACH_OK;

    *out = NULL;
    if (!content) {
        free(take);
        free(origin->call);
        return fail_with(error, REACH_NO_MEMORY, "cannot allocate an answer: out of memory");
    }
    atomic_init(&content->refs, 1);
    content->body = take;
    content->bytes = bytes;
    content->call = origin->call;
    content->kind = origin->http_status == HTTP_OK ? origin->kind : ANSWER_RAW;
    if (content->call)
        status = planned_answer(content, origin->gpu, error);
    else if (content->kind != ANSWER_RAW || origin->http_status != HTTP_OK)
        content->json = json_loadb(take, bytes, JSON_REJECT_DUPLICATES, NULL);
    if (!content->call && content->kind != ANSWER_RAW)
        status = decode_answer(content, error);
    if (status == REACH_OK)
        status = answer_share(origin, content, out, error);
    answer_content_release(content);
    return status;
}

void reach_answer_free(struct reach_answer *take)
{
    if (!take)
        return;
    answer_content_release(take->content);
    free(take);
}

/* ---- accessors ---- */

const char *reach_answer_body(const struct reach_answer *answer, size_t *bytes)
{
    if (bytes)
        *bytes = answer ? answer->content->bytes : 0;
    return answer ? answer->content->body : NULL;
}

uint32_t reach_answer_http_status(const struct reach_answer *answer)
{
    return answer ? answer->http_status : 0;
}

enum reach_source reach_answer_source(const struct reach_answer *answer)
{
    return answer ? answer->source : (enum reach_source)0;
}

uint64_t reach_answer_age_ms(const struct reach_answer *answer)
{
    const uint64_t now_ms = clock_monotonic() / NSEC_PER_MSEC;

    return answer && now_ms > answer->confirmed_ms ? now_ms - answer->confirmed_ms : 0;
}

const struct reach_provenance *reach_answer_provenance(const struct reach_answer *answer)
{
    return answer && answer->content->rests_on_fingerprint ? &answer->provenance : NULL;
}

enum reach_status reach_check_gpu(const char *answered_uuid, const char *gpu_uuid,
                                  struct reach_error *error)
{
    C_LOCALE_HERE;

    if (!answered_uuid || !*answered_uuid || !gpu_uuid || !*gpu_uuid)
        return fail_with(error, REACH_INVALID_ARGUMENT,
                         "a check needs an answer that rests on a fingerprint, and the UUID of the "
                         "GPU in use");
    if (identity_is_same_uuid(answered_uuid, gpu_uuid))
        return REACH_OK;
    return fail_with(error, REACH_WRONG_GPU,
                     "this answer is for %.63s, and the GPU in use is %.60s: SM ids and groups "
                     "differ from chip to chip, so request one for that GPU",
                     answered_uuid, gpu_uuid);
}

enum reach_status reach_answer_check_gpu(const struct reach_answer *answer, const char *gpu_uuid,
                                         struct reach_error *error)
{
    const struct reach_provenance *p = reach_answer_provenance(answer);

    return reach_check_gpu(p ? p->gpu_uuid : NULL, gpu_uuid, error);
}

static bool is_of(const struct reach_answer *answer, enum answer_kind kind)
{
    return answer && answer->content->kind == kind;
}

uint32_t reach_answer_gpu_count(const struct reach_answer *answer)
{
    return is_of(answer, ANSWER_GPUS) || is_of(answer, ANSWER_GPU) ? answer->content->count : 0;
}

const struct reach_gpu *reach_answer_gpu(const struct reach_answer *answer, uint32_t i)
{
    return i < reach_answer_gpu_count(answer) ? &answer->content->gpus[i] : NULL;
}

const struct reach_fingerprint *reach_answer_fingerprint(const struct reach_answer *answer)
{
    return is_of(answer, ANSWER_FINGERPRINT) ? &answer->content->fingerprint : NULL;
}

const struct reach_scope *reach_answer_scope(const struct reach_answer *answer)
{
    return is_of(answer, ANSWER_SCOPE) ? &answer->content->scope : NULL;
}

const struct reach_placement *reach_answer_placement(const struct reach_answer *answer)
{
    return is_of(answer, ANSWER_PLACEMENT) ? &answer->content->placement : NULL;
}

const struct reach_plan *reach_answer_plan(const struct reach_answer *answer)
{
    return is_of(answer, ANSWER_PLAN) ? &answer->content->plan : NULL;
}

const struct reach_option *reach_answer_option(const struct reach_answer *answer, uint32_t i)
{
    return is_of(answer, ANSWER_PLAN) && i < answer->content->count ? &answer->content->options[i]
                                                                    : NULL;
}

const struct reach_split *reach_answer_split(const struct reach_answer *answer)
{
    return is_of(answer, ANSWER_SPLIT) ? &answer->content->split : NULL;
}

const struct reach_share *reach_answer_share(const struct reach_answer *answer, uint32_t i)
{
    return is_of(answer, ANSWER_SPLIT) && i < answer->content->count ? &answer->content->shares[i]
                                                                     : NULL;
}

const struct reach_explanation *reach_answer_explanation(const struct reach_answer *answer)
{
    return is_of(answer, ANSWER_EXPLANATION) ? &answer->content->explanation : NULL;
}
