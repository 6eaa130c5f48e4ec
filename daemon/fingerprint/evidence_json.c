/* evidence_json.c: see evidence_json.h. */
#include "fingerprint/evidence_json.h"

static json_t *one_to_json(const struct evidence *e)
{
    struct json_builder o;

    json_builder_begin(&o);
    json_builder_text(&o, "method", evidence_method_name(e->method));
    json_builder_u64(&o, "repeats", e->repeats);
    json_builder_real(&o, "margin", e->margin);
    return json_builder_end(&o);
}

void evidence_write(struct json_builder *o, const char *const *names, const struct evidence *e,
                    uint32_t count)
{
    struct json_builder inner;

    json_builder_begin(&inner);
    for (uint32_t i = 0; i < count; i++)
        if (e[i].method != EVIDENCE_NONE)
            json_builder_value(&inner, names[i], one_to_json(&e[i]));
    json_builder_value(o, "evidence", json_builder_end(&inner));
}

static void one_from_json(struct json_reader *outer, const char *name, struct evidence *out)
{
    const json_t *const json = json_reader_object(outer, name);
    struct maybe_f64 margin = KNOWN(0);
    const char *word;
    struct json_reader in;

    if (!json)
        return;
    json_reader_begin_inside(&in, outer, json, name, -1);
    word = json_reader_word(&in, "method");
    if (word && !evidence_method_from_name(word, &out->method))
        json_reader_fail(&in, "method", "is none that this release knows");
    json_reader_u32(&in, "repeats", UINT32_MAX, &out->repeats);
    json_reader_f64_maybe(&in, "margin", &margin);
    out->margin = margin.v;
    json_reader_absorb(outer, json_reader_end(&in));
}

void evidence_read(struct json_reader *in, const char *const *names, struct evidence *out,
                   uint32_t count)
{
    const json_t *const json = json_reader_object(in, "evidence");
    struct json_reader inner;

    if (!json)
        return;
    json_reader_begin_inside(&inner, in, json, "evidence", -1);
    for (uint32_t i = 0; i < count; i++)
        one_from_json(&inner, names[i], &out[i]);
    json_reader_absorb(in, json_reader_end(&inner));
}
