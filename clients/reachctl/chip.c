/* chip.c: the SM groups of a fingerprint and their windows over the whole memory (chip.h). */
#include "clients/reachctl/chip.h"

#include <stdio.h>

/* All SMs of a group work in one window, so the window of the first SM is the window of the group.
 */
static void derive_windows(struct chip *chip)
{
    const struct placement_request request = {.bytes = chip->bytes, .fingerprint_id = chip->id};

    if (request.bytes == 0)
        err_set(&chip->why, STATUS_NOT_APPLICABLE, "the memory size of the GPU is unknown");
    else
        chip->planned = placement_plan(&chip->fp, &request, &chip->plan, &chip->why) == STATUS_OK;
    for (uint32_t g = 0; g < chip->group_count; g++) {
        uint16_t sms[REACH_MAX_SMS];
        if (chip_group_sms(chip, g, sms) > 0 && chip->planned && chip->plan.window_count > 0 &&
            sms[0] < chip->plan.sm_slots)
            chip->window_of_group[g] = chip->plan.window_of_sm[sms[0]];
        else
            chip->window_of_group[g] = CHIP_NO_WINDOW;
    }
}

void chip_derive(struct chip *chip)
{
    chip->bytes = chip->job_bytes > 0 ? chip->job_bytes : chip->fp.gpu.memory_bytes;
    chip->group_count = chip->fp.topology.partition.group_count;
    fingerprint_map_hash(&chip->fp.topology.partition, chip->map);
    derive_windows(chip);
}

uint32_t chip_group_sms(const struct chip *chip, uint32_t group, uint16_t *out)
{
    uint32_t count = 0;

    for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++) {
        if (chip->fp.topology.partition.group_of_sm[sm] == group)
            out[count++] = (uint16_t)sm;
    }
    return count;
}

uint32_t chip_window_groups(const struct chip *chip, int window, uint16_t *out)
{
    uint32_t count = 0;

    for (uint32_t g = 0; g < chip->group_count; g++) {
        if (chip->window_of_group[g] == window)
            out[count++] = (uint16_t)g;
    }
    return count;
}

uint32_t chip_group_lacks(const struct chip *chip, uint32_t group)
{
    const struct maybe_u32 full = chip->fp.topology.nominal_group_sms;
    const uint32_t there = chip->fp.topology.groups[group].sm_count;

    return IS_KNOWN(full) && full.v > there ? full.v - there : 0;
}

char *chip_format_list(const uint16_t *numbers, uint32_t count, char *out, size_t out_size)
{
    size_t at = 0;

    out[0] = '\0';
    for (uint32_t i = 0; i < count && at < out_size; i++) {
        const uint32_t first = i;
        while (i + 1 < count && numbers[i + 1] == numbers[i] + 1)
            i++;
        at +=
            (size_t)snprintf(out + at, out_size - at, "%s%u", first > 0 ? "," : "", numbers[first]);
        if (i > first && at < out_size)
            at += (size_t)snprintf(out + at, out_size - at, "-%u", numbers[i]);
    }
    return out;
}

void chip_write_numbers(struct json_writer *t, const char *name, const uint16_t *numbers,
                        uint32_t count)
{
    json_writer_open(t, name, '[');
    for (uint32_t i = 0; i < count; i++)
        json_writer_u64(t, NULL, numbers[i]);
    json_writer_close(t, ']');
}
