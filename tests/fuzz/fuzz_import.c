/* fuzz_import.c: imports any bytes as measurement files of other tools. The first byte selects the
 * kind of file name, or the place at which the bytes are split into two files. The result is a
 * fingerprint that holds its invariants. */
#include "fuzz.h"

#include "fingerprint/fingerprint_check.h"
#include "import/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fingerprint fp;
    const struct import_options options = {.imported_at = 1700000000};
    struct import_file files[2] = {{.name = "TLB-Test-1.csv"}, {.name = "TLBsharing-2048-65.txt"}};
    struct observation_set set = {0};
    struct err err = {0};
    size_t first;

    if (size == 0)
        return 0;
    /* The first byte n splits the other bytes. The last n/254 of them are the sharing file, the
     * bytes before are the curve file. The value 255 means 254. */
    first = (size - 1) * (254 - (data[0] == 255 ? 254 : data[0])) / 254;
    files[0].text = (const char *)data + 1;
    files[0].bytes = first;
    files[1].text = (const char *)data + 1 + first;
    files[1].bytes = size - 1 - first;
    if (import_derive(data[0] == 255 ? files + 1 : files, data[0] % 255 == 0 ? 1 : 2, &options,
                      &set, &fp, &err) == STATUS_OK)
        REACH_ASSERT(fingerprint_check(&fp, &err) == STATUS_OK);
    else
        REACH_ASSERT(err.text[0] != '\0');
    observation_set_free(&set);
    return 0;
}
