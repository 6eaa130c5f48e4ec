/* fuzz_simulated.c: reads any text as the description of a simulated GPU. Reading an accepted text
 * again gives the same struct, byte for byte. */
#include "fuzz.h"

#include "gpu/sim/sim_desc.h"

#include <string.h>

enum { TEXT_BYTES = 8192 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[TEXT_BYTES];
    static struct sim_desc desc;
    static struct sim_desc back;
    struct err err = {0};

    if (size >= sizeof(text))
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    memset(&desc, 0, sizeof(desc));
    memset(&back, 0, sizeof(back));
    if (sim_desc_parse(text, NULL, &desc, &err) != STATUS_OK) {
        REACH_ASSERT(err.text[0] != '\0');
        return 0;
    }
    REACH_ASSERT(sim_desc_parse(text, NULL, &back, &err) == STATUS_OK);
    REACH_ASSERT(memcmp(&desc, &back, sizeof(desc)) == 0);
    return 0;
}
