/* encode_compare.c: a comparison with the chip that it is of. */
#include "api/encode/encode.h"

#include "compare/compare.h"

#include "base/json_writer.h"

enum { COMPARISON_ROOM = 64 << 10 };

char *encode_comparison(const struct snapshot_gpu *gpu, const struct comparison *comparison,
                        size_t *out_bytes)
{
    struct json_writer t;

    json_writer_begin(&t, COMPARISON_ROOM);
    json_writer_open(&t, NULL, '{');
    encode_basis(&t, gpu);
    comparison_write(&t, comparison);
    json_writer_close(&t, '}');
    return json_writer_end(&t, out_bytes);
}
