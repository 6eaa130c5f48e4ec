/* encode_memory.c: writes the facts of each kind of memory, in the form of the fingerprint's
 * document, and the choices for an allocation. */
#include "api/encode/encode.h"

#include "base/json_writer.h"
#include "fingerprint/fingerprint_json.h"
#include "fingerprint/members.h"

enum { FACTS_ROOM = 32 << 10, CHOICES_ROOM = 8 << 10 };

/* Writes the sizes of device and host memory, which an imported fingerprint does not contain. */
static void write_bytes(struct json_writer *t, const struct fingerprint *fp)
{
    json_writer_u64_maybe(t, "device_memory_bytes",
                          fp->gpu.memory_bytes > 0 ? KNOWN_U64(fp->gpu.memory_bytes)
                                                   : UNKNOWN_U64(REASON_NOT_REPORTED));
    json_writer_u64_maybe(t, "host_memory_bytes", fp->conditions.host_memory_bytes);
}

/* Writes the numbers of an object of the fingerprint, without its lists. */
static void write_numbers(struct json_writer *t, const struct fingerprint *fp, const char *name)
{
    const struct member *const part = object_member(&fingerprint_object, name);
    const void *const base = member_at(part, fp);

    for (const struct member *m = part->object->members;
         m < part->object->members + part->object->count; m++) {
        if (m->type == MEMBER_U64_MAYBE)
            json_writer_u64_maybe(t, m->name, *(const struct maybe_u64 *)member_at(m, base));
        else if (m->type == MEMBER_F64_MAYBE)
            json_writer_f64_maybe(t, m->name, *(const struct maybe_f64 *)member_at(m, base));
    }
}

static void write_device(struct json_writer *t, const struct fingerprint *fp)
{
    json_writer_open(t, "device", '{');
    write_numbers(t, fp, "throughput");
    json_writer_u64_maybe(t, "reach_bytes", fp->windows.reach_bytes);
    json_writer_u64_maybe(t, "entry_bytes", fp->windows.entry_bytes);
    write_numbers(t, fp, "contiguity");
    json_writer_close(t, '}');
}

char *encode_memory_facts(const struct snapshot_gpu *gpu, size_t *out_bytes)
{
    struct json_writer t;

    encode_begin(&t, gpu, FACTS_ROOM);
    write_bytes(&t, &gpu->fingerprint);
    write_device(&t, &gpu->fingerprint);
    fingerprint_write_member(&t, &gpu->fingerprint, "memory");
    json_writer_close(&t, '}');
    return json_writer_end(&t, out_bytes);
}

static void write_choice(struct json_writer *t, const struct memory_choice *w)
{
    json_writer_open(t, NULL, '{');
    json_writer_text(t, "kind", memory_kind_name(w->kind));
    json_writer_text_or_null(t, "peer_uuid", w->peer_uuid);
    json_writer_text(t, "allocate", w->allocate);
    json_writer_u64_maybe(t, "capacity_bytes", w->capacity_bytes);
    json_writer_text(t, "strategy", strategy_name(w->strategy));
    json_writer_figure_maybe(t, "gbps", w->gbps);
    json_writer_text(t, "basis", choice_basis_name(w->basis));
    json_writer_u64_maybe(t, "probed_bytes", w->probed_bytes);
    json_writer_figure_maybe(t, "probed_gbps", w->probed_gbps);
    json_writer_u32_maybe(t, "sms", w->sms);
    json_writer_u64_maybe(t, "in_flight_bytes", w->in_flight_bytes);
    json_writer_u64(t, "passes", w->passes);
    json_writer_u64(t, "scope_bytes", w->scope_bytes);
    json_writer_u64(t, "windows", w->windows);
    json_writer_u64(t, "window_bytes", w->window_bytes);
    json_writer_text(t, "why", w->why);
    json_writer_close(t, '}');
}

char *encode_memory_choices(const struct snapshot_gpu *gpu, const struct memory_call *call,
                            size_t *out_bytes)
{
    const struct memory_request *const request = &call->request;
    const struct memory_answer *const answer = &call->answer;
    struct json_writer t;

    encode_begin(&t, gpu, CHOICES_ROOM);
    json_writer_u64(&t, "bytes", request->bytes);
    json_writer_text(&t, "access", access_name(request->access));
    json_writer_text(&t, "location", memory_location_name(request->location));
    json_writer_u64(&t, "element_bytes", answer->element_bytes);
    json_writer_u64(&t, "transaction_bytes", answer->transaction_bytes);
    write_bytes(&t, &gpu->fingerprint);
    json_writer_text(&t, "reason", answer->reason);
    json_writer_open(&t, "choices", '[');
    for (uint32_t i = 0; i < answer->choice_count; i++)
        write_choice(&t, &answer->choices[i]);
    json_writer_close(&t, ']');
    json_writer_open(&t, "left_out", '[');
    for (uint32_t i = 0; i < answer->left_out_count; i++) {
        const struct memory_left_out *const l = &answer->left_out[i];
        json_writer_open(&t, NULL, '{');
        json_writer_text(&t, "kind", memory_kind_name(l->kind));
        json_writer_text_or_null(&t, "peer_uuid", l->peer_uuid);
        json_writer_text(&t, "why", l->why);
        json_writer_close(&t, '}');
    }
    json_writer_close(&t, ']');
    json_writer_close(&t, '}');
    return json_writer_end(&t, out_bytes);
}
