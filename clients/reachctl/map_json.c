/* map_json.c: reachctl map --json: groups and windows by number, null where nothing is known. */
#include "clients/reachctl/map_json.h"

#include "base/json_builder.h"

#include <stdio.h>

static json_t *numbers(const uint16_t *values, uint32_t count)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < count; i++)
        json_array_append_new(list, json_integer(values[i]));
    return list;
}

static json_t *groups_to_json(const struct chip *chip)
{
    json_t *list = json_array();

    for (uint32_t g = 0; g < chip->group_count; g++) {
        struct json_builder o;
        uint16_t sms[REACH_MAX_SMS];
        const uint32_t count = chip_group_sms(chip, g, sms);
        const int window = chip->window_of_group[g];
        json_builder_begin(&o);
        json_builder_value(&o, "id", json_integer(g));
        json_builder_value(&o, "sms", numbers(sms, count));
        json_builder_value(&o, "window",
                           window == CHIP_NO_WINDOW ? json_null() : json_integer(window));
        json_builder_value(&o, "lacks", json_integer(chip_group_lacks(chip, g)));
        json_array_append_new(list, json_builder_end(&o));
    }
    return list;
}

static json_t *windows_to_json(const struct chip *chip)
{
    json_t *list = json_array();

    for (uint32_t i = 0; chip->planned && i < chip->plan.window_count; i++) {
        const struct placement_window *w = &chip->plan.windows[i];
        struct json_builder o;
        uint16_t groups[REACH_MAX_GROUPS];
        const uint32_t count = chip_window_groups(chip, (int)i, groups);
        json_builder_begin(&o);
        json_builder_value(&o, "first_byte", json_integer((json_int_t)w->first_byte));
        json_builder_value(&o, "length_bytes", json_integer((json_int_t)w->length_bytes));
        json_builder_value(&o, "groups", numbers(groups, count));
        json_array_append_new(list, json_builder_end(&o));
    }
    return list;
}

enum exit_code map_print_json(const struct chip *chip)
{
    const struct disabled_sms *disabled = &chip->fp->topology.disabled;
    struct json_builder o;
    json_t *json;
    int result;

    json_builder_begin(&o);
    json_builder_text(&o, "fingerprint_id", chip->id);
    json_builder_text(&o, "uuid", chip->fp->gpu.uuid);
    json_builder_text(&o, "name", chip->fp->gpu.name);
    json_builder_text(&o, "origin", origin_name(chip->fp->gpu.origin));
    json_builder_text_or_null(&o, "map", chip->map);
    json_builder_value(&o, "sm_count", json_integer(chip->fp->gpu.sm_count));
    json_builder_value(&o, "groups", groups_to_json(chip));
    json_builder_text_or_null(&o, "advice", chip->planned ? advice_name(chip->plan.advice) : "");
    json_builder_text(&o, "reason", chip->planned ? chip->plan.reason : chip->why.text);
    json_builder_value(&o, "windows", windows_to_json(chip));
    json_builder_text_or_null(&o, "signature", disabled->signature);
    json = json_builder_end(&o);
    result = json_print(json, 1, stdout);
    json_decref(json);
    if (result != 0) {
        fputs("reachctl: no memory, or it cannot write\n", stderr);
        return EXIT_FAILED;
    }
    return EXIT_DONE;
}
