/* topology_chip.c: a chip inside an hwloc topology: a device, its windows, the groups of each. */
#include "clients/reachctl/topology_chip.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 64, VALUE_BYTES = 3072 }; /* the latter for 512 SM ids with commas */

/* A topology that is being added to, and whether all went well so far. */
struct adding {
    hwloc_topology_t topology;
    bool failed;
};

static void add_info(struct adding *a, hwloc_obj_t to, const char *name, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static void add_info(struct adding *a, hwloc_obj_t to, const char *name, const char *format, ...)
{
    char value[VALUE_BYTES];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(value, sizeof(value), format, arguments);
    va_end(arguments);
    if (!to || hwloc_obj_add_info(to, name, value) != 0)
        a->failed = true;
}

static hwloc_obj_t add_misc(struct adding *a, hwloc_obj_t parent, const char *subtype,
                            const char *name)
{
    hwloc_obj_t misc = parent ? hwloc_topology_insert_misc_object(a->topology, parent, name) : NULL;

    if (misc)
        misc->subtype = strdup(subtype);
    if (!misc || !misc->subtype)
        a->failed = true;
    return misc;
}

/* "0-1,48-49,128": as lists of CPUs are written. */
static void list_text(const uint16_t *numbers, uint32_t count, char *out, size_t out_size)
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
}

static void add_group(struct adding *a, hwloc_obj_t parent, const struct chip *chip, uint32_t group)
{
    const struct maybe_f64 gbps = chip->fp->topology.groups[group].random_read_gbps;
    const uint32_t lacks = chip_group_lacks(chip, group);
    uint16_t sms[REACH_MAX_SMS];
    const uint32_t count = chip_group_sms(chip, group, sms);
    char text[VALUE_BYTES];
    hwloc_obj_t misc;

    snprintf(text, NAME_BYTES, "SM group %u", group);
    misc = add_misc(a, parent, "SMGroup", text);
    list_text(sms, count, text, sizeof(text));
    add_info(a, misc, "ReachSMs", "%s", text);
    add_info(a, misc, "ReachSMCount", "%u", count);
    if (lacks > 0)
        add_info(a, misc, "ReachSMsLacking", "%u", lacks);
    if (IS_KNOWN(gbps))
        add_info(a, misc, "ReachRandomReadGbps", "%.1f", gbps.v);
}

static void add_groups(struct adding *a, hwloc_obj_t parent, const struct chip *chip, int window)
{
    uint16_t groups[REACH_MAX_GROUPS];
    const uint32_t count = chip_window_groups(chip, window, groups);

    for (uint32_t i = 0; i < count; i++)
        add_group(a, parent, chip, groups[i]);
}

static void add_windows(struct adding *a, hwloc_obj_t device, const struct chip *chip)
{
    for (uint32_t i = 0; chip->planned && i < chip->plan.window_count; i++) {
        const struct placement_window *w = &chip->plan.windows[i];
        char name[NAME_BYTES];
        hwloc_obj_t misc;
        snprintf(name, sizeof(name), "window %u", i);
        misc = add_misc(a, device, "Window", name);
        add_info(a, misc, "ReachFirstByte", "%llu", (unsigned long long)w->first_byte);
        add_info(a, misc, "ReachLengthBytes", "%llu", (unsigned long long)w->length_bytes);
        add_groups(a, misc, chip, (int)i);
    }
    add_groups(a, device, chip, CHIP_NO_WINDOW);
}

enum status topology_chip_add(hwloc_topology_t topology, hwloc_obj_t device,
                              const struct chip *chip, struct err *err)
{
    const struct fingerprint *fp = chip->fp;
    struct adding a = {.topology = topology};

    add_info(&a, device, "Backend", "reachd");
    add_info(&a, device, "GPUModel", "%s", fp->gpu.name);
    add_info(&a, device, "ReachUUID", "%s", fp->gpu.uuid);
    add_info(&a, device, "ReachOrigin", "%s", origin_name(fp->gpu.origin));
    add_info(&a, device, "ReachFingerprint", "%s", chip->id);
    add_info(&a, device, "ReachSMCount", "%u", fp->gpu.sm_count);
    if (chip->map[0])
        add_info(&a, device, "ReachMap", "%s", chip->map);
    if (fp->gpu.pci_bus_id[0])
        add_info(&a, device, "ReachPCIBusID", "%s", fp->gpu.pci_bus_id);
    if (IS_KNOWN(fp->windows.reach_bytes))
        add_info(&a, device, "ReachBytes", "%llu", (unsigned long long)fp->windows.reach_bytes.v);
    if (chip->planned)
        add_info(&a, device, "ReachAdvice", "%s", advice_name(chip->plan.advice));
    if (fp->topology.disabled.signature[0])
        add_info(&a, device, "ReachDisabled", "%s", fp->topology.disabled.signature);
    add_windows(&a, device, chip);
    return a.failed ? err_set(err, STATUS_NO_MEMORY, "no memory for GPU %s", fp->gpu.uuid)
                    : STATUS_OK;
}

hwloc_obj_t topology_chip_find(hwloc_topology_t topology, const char *uuid)
{
    hwloc_obj_t misc = NULL;

    while ((misc = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_MISC, misc))) {
        const char *found = hwloc_obj_get_info_by_name(misc, "ReachUUID");
        if (found && strcmp(found, uuid) == 0)
            return misc;
    }
    return NULL;
}

uint32_t topology_chip_count(hwloc_topology_t topology)
{
    hwloc_obj_t misc = NULL;
    uint32_t count = 0;

    while ((misc = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_MISC, misc)))
        count += hwloc_obj_get_info_by_name(misc, "ReachUUID") != NULL;
    return count;
}
