/* evidence_json.c: see evidence_json.h. */
#include "fingerprint/evidence_json.h"

static json_t *one_to_json(const struct evidence *e)
{
    struct json_out o;

    json_out_begin(&o);
    json_out_text(&o, "method", evidence_method_name(e->method));
    json_out_u64(&o, "repeats", e->repeats);
    json_out_real(&o, "margin", e->margin);
    return json_out_end(&o);
}

void evidence_write(struct json_out *o, const char *const *names, const struct evidence *e,
                    uint32_t count)
{
    struct json_out inner;

    json_out_begin(&inner);
    for (uint32_t i = 0; i < count; i++)
        if (e[i].method != EVIDENCE_NONE)
            json_out_value(&inner, names[i], one_to_json(&e[i]));
    json_out_value(o, "evidence", json_out_end(&inner));
}

static void one_from_json(struct json_in *outer, const char *name, struct evidence *out)
{
    const json_t *const json = json_in_object(outer, name);
    struct maybe_f64 margin = KNOWN(0);
    const char *word;
    struct json_in in;

    if (!json)
        return;
    json_in_begin_inside(&in, outer, json, name, -1);
    word = json_in_word(&in, "method");
    if (word && !evidence_method_from_name(word, &out->method))
        json_in_fail(&in, "method", "is none that this release knows");
    json_in_u32(&in, "repeats", UINT32_MAX, &out->repeats);
    json_in_f64_maybe(&in, "margin", &margin);
    out->margin = margin.v;
    json_in_absorb(outer, json_in_end(&in));
}

void evidence_read(struct json_in *in, const char *const *names, struct evidence *out,
                   uint32_t count)
{
    const json_t *const json = json_in_object(in, "evidence");
    struct json_in inner;

    if (!json)
        return;
    json_in_begin_inside(&inner, in, json, "evidence", -1);
    for (uint32_t i = 0; i < count; i++)
        one_from_json(&inner, names[i], &out[i]);
    json_in_absorb(in, json_in_end(&inner));
}
