/* devices.c: implements devices.h. */
#include "clients/slurm/devices.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEVICE_MINORS = 256 }; /* the driver numbers its files below 256 */

static bool is_name(const char *text)
{
    static const char GOOD[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

    return text[0] != '\0' && text[strspn(text, GOOD)] == '\0';
}

static bool is_index(const char *text)
{
    return text[0] != '\0' && strlen(text) <= 4 && text[strspn(text, "0123456789")] == '\0';
}

/* Splits "a,b,c"; returns false if an entry is not a valid name. */
static bool split_list(const char *text, struct devices *out)
{
    out->count = 0;
    while (*text) {
        const size_t n = strcspn(text, ",");
        if (out->count == DEVICES_MAX || n >= DEVICE_NAME_BYTES)
            return false;
        memcpy(out->names[out->count], text, n);
        out->names[out->count][n] = '\0';
        if (!is_name(out->names[out->count++]))
            return false;
        text += n;
        if (*text == ',' && *++text == '\0')
            return false;
    }
    return out->count > 0;
}

static bool has_device(const struct devices *list, const char *name)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (strcmp(list->names[i], name) == 0)
            return true;
    }
    return false;
}

/* Replaces the index `name` of the task with the index of the node. If both lists have the same
 * length, the place in the list decides. If the task has fewer GPUs (it is bound to some of the
 * step), `name` is an index of the node or of the step. Returns false if both meanings are possible
 * and differ. */
static bool on_node(const struct devices *node, bool same_count, uint32_t place, char *name)
{
    const unsigned long index = strtoul(name, NULL, 10);
    const bool as_node = has_device(node, name);
    const char *in_list = same_count            ? node->names[place]
                          : index < node->count ? node->names[index]
                                                : NULL;

    if (same_count) {
        strcpy(name, in_list);
        return true;
    }
    if (as_node && in_list && strcmp(in_list, name) != 0)
        return false;
    if (!as_node && in_list)
        strcpy(name, in_list);
    return as_node || in_list;
}

/* Replaces indices of the task with indices of the node. Returns false if they are ambiguous. */
static bool translate_indices(const char *node, struct devices *io)
{
    struct devices on;

    if (!split_list(node, &on))
        return *node == '\0';
    for (uint32_t i = 0; i < on.count; i++) {
        if (!is_index(on.names[i]))
            return true; /* without a list of indices there is no translation */
    }
    for (uint32_t i = 0; i < io->count; i++) {
        if (is_index(io->names[i]) && !on_node(&on, on.count == io->count, i, io->names[i]))
            return false;
    }
    return true;
}

void devices_list_files(char out[DEVICE_FILES_BYTES])
{
    char path[32];
    size_t n = 0;
    unsigned forbidden = 0;

    out[0] = '\0';
    for (unsigned minor = 0; minor < DEVICE_MINORS; minor++) {
        (void)snprintf(path, sizeof(path), "/dev/nvidia%u", minor);
        if (access(path, R_OK | W_OK) == 0)
            n += (size_t)snprintf(out + n, DEVICE_FILES_BYTES - n, "%s%u", n ? "," : "", minor);
        else
            forbidden += errno == EPERM; /* missing rights give EACCES */
        if (n >= DEVICE_FILES_BYTES)
            break;
    }
    if (n >= DEVICE_FILES_BYTES || forbidden == 0)
        out[0] = '\0';
}

static void name_index(const char *kind, const char *files, char *io)
{
    char name[DEVICE_NAME_BYTES];

    (void)snprintf(name, sizeof(name), "%s%.4s%s%s", kind, io, *files ? "@" : "", files);
    memcpy(io, name, sizeof(name));
}

bool devices_read(const char *visible, const char *node, const char *order, const char *files,
                  struct devices *out)
{
    struct devices before;

    if (!split_list(visible, out))
        return false;
    for (uint32_t i = 0; i < out->count; i++) {
        if (strcmp(out->names[i], "-1") == 0)
            out->count = i;
    }
    before = *out;
    if (out->count == 0 || (!*files && !translate_indices(node, out)))
        return false;
    const bool only = *files ? !strchr(files, ',')
                             : out->count == 1 && strcmp(out->names[0], before.names[0]) != 0;
    const bool by_address = only || strcmp(order, "PCI_BUS_ID") == 0;
    for (uint32_t i = 0; i < out->count; i++) {
        if (is_index(out->names[i]))
            name_index(by_address ? "pci:" : "cuda:", files, out->names[i]);
    }
    return true;
}
