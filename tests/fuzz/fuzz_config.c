/* fuzz_config.c: reads any bytes as the configuration file. It is refused with a reason, or the
 * output of --check-config reads as the same configuration. */
#include "fuzz.h"

#include "config/config.h"
#include "config/config_table.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct config one = config_defaults(), other = config_defaults();
    struct err err = {0};
    char *printed = NULL;
    size_t printed_size = 0;

    if (size > CONFIG_MAX_FILE_BYTES)
        return 0;
    if (config_read_text(&one, "input", (const char *)data, size, &err) != STATUS_OK) {
        REACH_ASSERT(err.text[0] != '\0');
        config_free(&one);
        return 0;
    }
    FILE *out = open_memstream(&printed, &printed_size);

    REACH_ASSERT(out);
    config_print(&one, out);
    fclose(out);
    REACH_ASSERT(config_read_text(&other, "printed", printed, printed_size, &err) == STATUS_OK);
    for (size_t i = 0; i < config_option_count; i++)
        REACH_ASSERT(config_options[i].section == CONFIG_ONCE ||
                     config_same(&one, &other, &config_options[i]));
    free(printed);
    config_free(&one);
    config_free(&other);
    return 0;
}
