/* encode_fit.c: writes the level of the memory hierarchy that holds a working set. */
#include "api/encode/encode.h"

#include "base/json_writer.h"

static void write_cache(struct json_writer *t, const char *name, const struct fit_cache *c)
{
    json_writer_open(t, name, '{');
    json_writer_u64_maybe(t, "size_bytes", c->size_bytes);
    json_writer_u64_maybe(t, "keeps_bytes", c->keeps_bytes);
    json_writer_figure_maybe(t, "gbps", c->gbps);
    json_writer_f64_maybe(t, "latency_cycles", c->latency_cycles);
    json_writer_close(t, '}');
}

static void write_request(struct json_writer *t, const struct fit_request *r,
                          const struct fit_answer *a)
{
    json_writer_u64(t, "bytes", r->bytes);
    json_writer_text(t, "reuse", fit_reuse_name(r->reuse));
    if (IS_KNOWN(r->shared_bytes)) {
        json_writer_u64(t, "shared_bytes", r->shared_bytes.v);
        json_writer_u64(t, "blocks_per_sm", r->blocks_per_sm > 0 ? r->blocks_per_sm : 1);
    }
    json_writer_u64(t, "transaction_bytes", a->transaction_bytes);
}

void encode_fit(struct json_writer *t, const struct fit_call *call)
{
    const struct fit_answer *const a = &call->answer;

    write_request(t, &call->request, a);
    json_writer_u64(t, "sm_bytes", a->sm_bytes);
    json_writer_text(t, "stays", fit_level_name(a->stays));
    json_writer_figure_maybe(t, "gbps", a->gbps);
    json_writer_figure_maybe(t, "near_gbps", a->near_gbps);
    json_writer_figure_maybe(t, "outside_gbps", a->outside_gbps);
    write_cache(t, "l1", &a->l1);
    write_cache(t, "l2", &a->l2);
    json_writer_u64_maybe(t, "near_keeps_bytes", a->near_keeps_bytes);
    json_writer_u64_maybe(t, "reach_bytes", a->reach_bytes);
    json_writer_f64_maybe(t, "memory_latency_cycles", a->memory_latency_cycles);
    json_writer_u64_maybe(t, "carveout_bytes", a->carveout_bytes);
    json_writer_u64_maybe(t, "padding_bytes", a->padding_bytes);
    json_writer_u32_maybe(t, "loads_enough", a->loads_enough);
    json_writer_u32_maybe(t, "loads_short", a->loads_short);
    json_writer_u32_maybe(t, "sms_enough", a->sms_enough);
    json_writer_u32_maybe(t, "sms_short", a->sms_short);
    json_writer_u32_maybe(t, "cluster_sms", a->cluster_sms);
    json_writer_text(t, "reason", a->reason);
}
