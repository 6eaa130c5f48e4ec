/* fuzz_simulated.c: reads any text as the description of a simulated GPU. An accepted text is
 * printed and reads as the same struct, byte for byte. */
#include "fuzz.h"

#include "gpu/sim/sim_desc.h"

#include <string.h>

enum { TEXT_BYTES = 8192 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[TEXT_BYTES];
    static char printed[SIM_DESC_TEXT_BYTES];
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
    (void)sim_desc_print(&desc, printed, sizeof(printed));
    REACH_ASSERT(sim_desc_parse(printed, NULL, &back, &err) == STATUS_OK);
    REACH_ASSERT(memcmp(&desc, &back, sizeof(desc)) == 0);
    return 0;
}
