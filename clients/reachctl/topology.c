/* topology.c: reachctl hwloc: the GPUs as an hwloc topology in XML, for tools that read hwloc.
 *
 * Alone, the topology has one device per GPU and nothing else of the machine. hwloc requires a
 * processor and memory, so there is one of each, and an info says that they represent none. With
 * --merge the GPUs are added to a topology that lstopo has written: each below the device that has
 * its PCI address, or below the machine if none has.
 *
 * What hwloc calls a Group is a set of CPUs, and SMs are none. Misc objects may have any parent and
 * any name, so windows and SM groups are Misc objects below the object of their GPU. Their
 * properties are infos whose names begin with "Reach". libhwloc reads, extends and writes the
 * topology.
 */
#include "clients/reachctl/chip.h"
#include "clients/reachctl/client.h"

#include <errno.h>
#include <hwloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 96, DEVICE_BYTES = 128, VALUE_BYTES = 3072 /* 512 SM ids with commas */ };

/* ---- a chip in a topology ---- */

/* A topology that is being extended, and whether an allocation has failed. */
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

static void add_group(struct adding *a, hwloc_obj_t parent, const struct chip *chip, uint32_t group)
{
    const struct maybe_f64 gbps = chip->fp.topology.groups[group].random_read_gbps;
    const uint32_t lacks = chip_group_lacks(chip, group);
    uint16_t sms[REACH_MAX_SMS];
    const uint32_t count = chip_group_sms(chip, group, sms);
    char text[VALUE_BYTES];
    hwloc_obj_t misc;

    snprintf(text, NAME_BYTES, "SM group %u", group);
    misc = add_misc(a, parent, "SMGroup", text);
    add_info(a, misc, "ReachSMs", "%s", chip_format_list(sms, count, text, sizeof(text)));
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

/* Describes the chip in the infos of `device` and adds its windows and groups below it. False: out
 * of memory, and only some of it is there. */
static bool add_chip(hwloc_topology_t topology, hwloc_obj_t device, const struct chip *chip)
{
    const struct fingerprint *fp = &chip->fp;
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
    return !a.failed;
}

/* The next Misc object of a GPU after `misc`; NULL at the end. */
static hwloc_obj_t next_gpu(hwloc_topology_t topology, hwloc_obj_t misc)
{
    while ((misc = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_MISC, misc))) {
        if (hwloc_obj_get_info_by_name(misc, "ReachUUID"))
            return misc;
    }
    return NULL;
}

static bool has_gpu(hwloc_topology_t topology, const char *uuid)
{
    for (hwloc_obj_t gpu = NULL; (gpu = next_gpu(topology, gpu));) {
        if (strcmp(hwloc_obj_get_info_by_name(gpu, "ReachUUID"), uuid) == 0)
            return true;
    }
    return false;
}

struct export
{
    hwloc_topology_t topology;
    bool merge;
    uint32_t count; /* GPUs that are in it */
};

/* ---- the topology they go into ---- */

static const char base_head[] =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
    "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
    "<topology version=\"2.0\">\n"
    "<object type=\"Machine\" os_index=\"0\" cpuset=\"0x1\" complete_cpuset=\"0x1\" "
    "allowed_cpuset=\"0x1\" nodeset=\"0x1\" complete_nodeset=\"0x1\" allowed_nodeset=\"0x1\" "
    "gp_index=\"1\">\n"
    "<info name=\"ReachNote\" value=\"GPUs alone: processor and memory stand for none\"/>\n"
    "<object type=\"NUMANode\" os_index=\"0\" cpuset=\"0x1\" complete_cpuset=\"0x1\" "
    "nodeset=\"0x1\" complete_nodeset=\"0x1\" gp_index=\"2\"/>\n"
    "<object type=\"PU\" os_index=\"0\" cpuset=\"0x1\" complete_cpuset=\"0x1\" nodeset=\"0x1\" "
    "complete_nodeset=\"0x1\" gp_index=\"3\"/>\n";
static const char base_tail[] = "</object>\n</topology>\n";
/* Type 5 is a co-processor (hwloc.h, hwloc_obj_osdev_type_e). */
static const char base_device[] =
    "<object type=\"OSDev\" gp_index=\"%u\" name=\"reachd%u\" osdev_type=\"5\"/>\n";
enum { BASE_FIRST_INDEX = 4 };

/* A machine with `count` devices and nothing else. Owned by the caller; NULL without memory. */
static char *base_new(uint32_t count)
{
    const size_t room = sizeof(base_head) + sizeof(base_tail) + (size_t)count * DEVICE_BYTES;
    char *text = malloc(room);
    size_t at;

    if (!text)
        return NULL;
    at = (size_t)snprintf(text, room, "%s", base_head);
    for (uint32_t i = 0; i < count; i++)
        at += (size_t)snprintf(text + at, room - at, base_device, BASE_FIRST_INDEX + i, i);
    snprintf(text + at, room - at, "%s", base_tail);
    return text;
}

/* Keeps everything in the file, also what hwloc leaves out by default. */
static bool load(struct export *e, const char *path, uint32_t count)
{
    char *base = NULL;
    bool good = false;

    e->merge = path != NULL;
    if (hwloc_topology_init(&e->topology) != 0) {
        e->topology = NULL;
        goto out;
    }
    hwloc_topology_set_all_types_filter(e->topology, HWLOC_TYPE_FILTER_KEEP_ALL);
    hwloc_topology_set_flags(e->topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED |
                                              HWLOC_TOPOLOGY_FLAG_IMPORT_SUPPORT);
    if (!path)
        base = base_new(count);
    if (path ? hwloc_topology_set_xml(e->topology, path) != 0
             : !base || hwloc_topology_set_xmlbuffer(e->topology, base, (int)strlen(base) + 1) != 0)
        goto out;
    good = hwloc_topology_load(e->topology) == 0;
    for (hwloc_obj_t gpu = NULL; good && (gpu = next_gpu(e->topology, gpu));)
        e->count++;
out:
    if (!good)
        fprintf(stderr, "reachctl: %s is no topology that hwloc can read\n",
                path ? path : "what was made");
    free(base);
    return good;
}

/* ---- the GPUs ---- */

static hwloc_obj_t device_by_name(hwloc_topology_t topology, const char *name)
{
    hwloc_obj_t device = NULL;

    while ((device = hwloc_get_next_osdev(topology, device))) {
        if (device->name && strcmp(device->name, name) == 0)
            return device;
    }
    return NULL;
}

/* The parent of a GPU in a machine: the co-processor at its PCI address, else any device there,
 * else the machine. */
static hwloc_obj_t place_of(hwloc_topology_t topology, const struct fingerprint *fp)
{
    hwloc_obj_t pci = fp->gpu.pci_bus_id[0]
                          ? hwloc_get_pcidev_by_busidstring(topology, fp->gpu.pci_bus_id)
                          : NULL;

    if (!pci)
        return hwloc_get_root_obj(topology);
    for (hwloc_obj_t child = pci->io_first_child; child; child = child->next_sibling) {
        if (child->type == HWLOC_OBJ_OS_DEVICE && child->attr->osdev.type == HWLOC_OBJ_OSDEV_COPROC)
            return child;
    }
    return pci;
}

/* A new Misc object in a topology that was read, the whole device in ours. NULL: the reason is
 * printed. */
static hwloc_obj_t device_for(struct export *e, const struct fingerprint *fp)
{
    const bool measured = fp->gpu.origin == ORIGIN_MEASURED;
    const char *const origin = origin_name(fp->gpu.origin);
    char name[NAME_BYTES];
    hwloc_obj_t device;

    if (e->merge && has_gpu(e->topology, fp->gpu.uuid)) {
        fprintf(stderr,
                "reachctl: GPU %s is in that topology already\n  next step: merge into one that "
                "lstopo has just written\n",
                fp->gpu.uuid);
        return NULL;
    }
    snprintf(name, sizeof(name), "reachd%u", e->count);
    device = e->merge ? NULL : device_by_name(e->topology, name);
    if (e->merge) {
        snprintf(name, sizeof(name), "reachd%u%s%s", e->count, measured ? "" : " ",
                 measured ? "" : origin);
        device = hwloc_topology_insert_misc_object(e->topology, place_of(e->topology, fp), name);
    }
    if (device && (device->subtype = strdup(measured || e->merge ? "GPU" : origin)))
        return device;
    fputs("reachctl: no memory\n", stderr);
    return NULL;
}

static bool add(struct export *e, struct chip *chip)
{
    hwloc_obj_t device = device_for(e, &chip->fp);

    if (!device)
        return false;
    chip_derive(chip);
    e->count++;
    if (add_chip(e->topology, device, chip))
        return true;
    fprintf(stderr, "reachctl: no memory for GPU %s\n", chip->fp.gpu.uuid);
    return false;
}

/* ---- the command ---- */

static enum exit_code print(const struct export *e)
{
    char *xml = NULL;
    int length = 0;
    enum exit_code exit_code = EXIT_FAILED;

    if (hwloc_topology_export_xmlbuffer(e->topology, &xml, &length, 0) == 0) {
        fputs(xml, stdout);
        exit_code = EXIT_DONE;
    } else {
        fprintf(stderr, "reachctl: hwloc cannot write the topology: %s\n", strerror(errno));
    }
    hwloc_free_xmlbuffer(e->topology, xml);
    return exit_code;
}

/* The GPUs to export. */
struct source {
    uint32_t count;
    struct chip *chips; /* owned */
};

static enum exit_code allocate(struct source *s, size_t count)
{
    s->chips = calloc(count, sizeof(*s->chips));
    if (s->chips)
        return EXIT_DONE;
    fputs("reachctl: no memory\n", stderr);
    return EXIT_FAILED;
}

static enum exit_code read_operands(struct client *client, const struct options *options,
                                    struct source *s)
{
    const uint32_t count = (uint32_t)options->operand_count;
    enum exit_code exit_code = allocate(s, count);

    for (; s->count < count && exit_code == EXIT_DONE; s->count++)
        exit_code = client_get_fingerprint(client, options, options->operands[s->count],
                                           &s->chips[s->count].fp, s->chips[s->count].id);
    return exit_code;
}

static enum exit_code read_daemon(struct client *client, struct source *s)
{
    struct client_answer answer;
    enum exit_code exit_code = client_get(client, "/v1/fingerprints", NULL, &answer);
    const json_t *gpus;
    size_t i;
    json_t *gpu;

    if (exit_code != EXIT_DONE)
        return exit_code;
    gpus = json_object_get(answer.json, "gpus");
    exit_code = allocate(s, json_array_size(gpus) + 1);
    json_array_foreach(gpus, i, gpu)
    {
        const json_t *json = json_object_get(gpu, "fingerprint");
        const char *uuid = json_string_value(json_object_get(gpu, "uuid"));
        const char *state = json_string_value(json_object_get(gpu, "state"));
        if (exit_code != EXIT_DONE || !json_is_object(json) ||
            (state && strcmp(state, "lost") == 0)) /* not in this node now */
            continue;
        exit_code = client_read_fingerprint(json, uuid ? uuid : "a GPU", &s->chips[s->count].fp,
                                            s->chips[s->count].id);
        s->count++;
    }
    if (exit_code == EXIT_DONE && s->count == 0) {
        fputs("reachctl: no GPU there has a fingerprint\n  next step: reachctl gpus\n", stderr);
        exit_code = EXIT_FAILED;
    }
    client_answer_free(&answer);
    return exit_code;
}

enum exit_code command_hwloc(struct client *client, const struct options *options)
{
    struct export e = {.topology = NULL};
    struct source s = {.count = 0};
    enum exit_code exit_code;

    if (options->json)
        return client_usage_error("hwloc writes XML, no JSON", NULL);
    exit_code =
        options->operand_count > 0 ? read_operands(client, options, &s) : read_daemon(client, &s);
    if (exit_code == EXIT_DONE && !load(&e, options->merge, s.count))
        exit_code = EXIT_FAILED;
    for (uint32_t i = 0; i < s.count && exit_code == EXIT_DONE; i++)
        exit_code = add(&e, &s.chips[i]) ? EXIT_DONE : EXIT_FAILED;
    if (exit_code == EXIT_DONE)
        exit_code = print(&e);
    if (e.topology)
        hwloc_topology_destroy(e.topology);
    free(s.chips);
    return exit_code;
}
