/* left_out.c: see left_out.h. */
#include "clients/lab/trace/left_out.h"

#include "base/json_builder.h"

void left_out_print(const struct rlt_left_out *l, uint64_t records, FILE *out)
{
    const double share = rlt_left_out_share(l, records);
    if (share > 0)
        (void)fprintf(out,
                      "left out: %.1f %% of the accesses to global memory: %llu bulk copies (TMA), "
                      "%llu to textures or surfaces, %llu without an address\n",
                      100 * share, (unsigned long long)l->copies, (unsigned long long)l->textures,
                      (unsigned long long)l->unknown);
    if (l->lost > 0)
        (void)fprintf(out, "lost: %llu accesses, because the recorder's buffer was full\n",
                      (unsigned long long)l->lost);
}

json_t *left_out_json(const struct rlt_left_out *l, uint64_t records)
{
    struct json_builder o;
    json_builder_begin(&o);
    json_builder_real(&o, "share", rlt_left_out_share(l, records));
    json_builder_u64(&o, "copies", l->copies);
    json_builder_u64(&o, "textures", l->textures);
    json_builder_u64(&o, "unknown", l->unknown);
    json_builder_u64(&o, "lost", l->lost);
    return json_builder_end(&o);
}
