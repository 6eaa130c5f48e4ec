/* left_out.c: see left_out.h. */
#include "clients/lab/trace/left_out.h"

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

void left_out_write(struct json_writer *t, const struct rlt_left_out *l, uint64_t records)
{
    json_writer_open(t, "left_out", '{');
    json_writer_real(t, "share", rlt_left_out_share(l, records));
    json_writer_u64(t, "copies", l->copies);
    json_writer_u64(t, "textures", l->textures);
    json_writer_u64(t, "unknown", l->unknown);
    json_writer_u64(t, "lost", l->lost);
    json_writer_close(t, '}');
}
